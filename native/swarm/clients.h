// The clients: each joins, then keeps one long poll parked, takes what its answers bring and polls
// again on the same connection, acking what it took.
//
//   unopened ─▶ connecting ─▶ joining ─▶ parked ─┐        an answer: take, poll again
//                  ▲                        ▲ └──┘
//                  │ backoff                │ retry, Retry-After
//               waiting ◀── connection ── pausing
//                              lost
//
// With a transient port the joins are errands of the lanes (joinQueued) and a client connects when
// it has an id. A client that gets unknown-client joins again. Reconnecting goes on for as long as
// the run does.
//
// A parked client costs 72 bytes here, 12 in the wheel, and its socket: no buffers. What is written
// is built on the stack and fits into any socket's buffer; connections.h says what is read.
#ifndef SPRITES_SWARM_CLIENTS_H_
#define SPRITES_SWARM_CLIENTS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "answers.h"
#include "connections.h"
#include "core.h"

namespace swarm {

class Clients : public Connections {
 public:
  enum State : uint8_t {
    kUnopened,
    kWaiting,
    kConnecting,
    kJoinQueued,
    kJoining,
    kParked,
    kPausing,
    kDropped,
    kStates
  };

  /** @param core outlives the clients */
  explicit Clients(Core* core);

  /** Begins to open the clients; pump() goes on with it. */
  void open() { opening_ = true; }

  /**
   * So many clients shall be parked: more are opened, or the last ones take their leave. One that
   * is joining leaves when it has joined.
   */
  void aim(uint32_t count);

  /** Opens as many as the ramp and the bound on unfinished ones allow. */
  void pump();

  void timeout(uint32_t index);

  /** All connections of clients are closed, and none made until back(). */
  void drop();

  /**
   * The dropped ones come back; pump() goes on with it.
   *
   * @param spread nanoseconds over which they come back at random; 0 is at once
   */
  void back(uint64_t spread);

  /** @return whether pump() has more to bring back right away */
  bool returning() const { return returner_ < clients_.size(); }

  /** @return false when no client is left to leave */
  bool nextLeaver(uint32_t* index);

  /** @return false when no client waits for an errand to join it */
  bool nextJoiner(uint32_t* index);

  /** An errand joined the client. */
  void joined(uint32_t index, std::string_view body);
  /** An errand could not: try again after `pause` nanoseconds. */
  void joinRefused(uint32_t index, uint64_t pause);
  /** An errand told the server that the client leaves. */
  void leaveTold(uint32_t index);

  /** @return the client's id, empty when it has none (yet) */
  std::string_view id(uint32_t index) const {
    return {clients_[index].id.data(), clients_[index].idLength};
  }
  /** @return the client's number for its next throw, from 1 */
  uint32_t nextNumber(uint32_t index) { return ++clients_[index].thrown; }

  /** The client may not throw for `pause` nanoseconds. */
  void holdBack(uint32_t index, uint64_t pause);
  bool mayThrow(uint32_t index) const {
    const Client& client = clients_[index];
    return client.idLength > 0 && client.leave == Leave::kNo &&
           client.throwAfter <= core_->now / kHoldBackNs;
  }

  /** @return how many have been opened: those from there on are not */
  uint32_t opened() const { return opened_; }
  uint32_t size() const { return static_cast<uint32_t>(clients_.size()); }
  uint32_t in(State state) const { return states_[state]; }
  /** @return how many hold an id, connected or not: the places in the torus that are theirs */
  uint32_t members() const { return members_; }

 private:
  static constexpr size_t kLongestId = 43;
  static constexpr uint64_t kHoldBackNs = 100'000'000;

  /** kDue, or on the way; kTold where only the answer to its last ack is not there yet. */
  enum class Leave : uint8_t { kNo, kDue, kTold };

  struct Client : Connection {
    State state = kUnopened;
    uint64_t taken = 0;  // highest seq taken: the next ack
    uint32_t thrown = 0;
    uint32_t throwAfter = 0;  // in units of kHoldBackNs
    uint16_t unacked = 0;  // sprites in the last answer, until the next one shows they were acked
    uint8_t attempts = 0;
    uint8_t idLength = 0;
    Leave leave = Leave::kNo;
    std::array<char, kLongestId> id;
  };
  static_assert(sizeof(Client) == 72, "the cost that is named above");

  Connection& at(uint32_t index) override { return clients_[index]; }
  void opened(uint32_t index) override;
  void answered(uint32_t index, const Response& response) override;
  void ended(uint32_t index) override;
  void lost(uint32_t index) override;

  void dismiss(uint32_t index);
  void left(uint32_t index);
  void pumpOpening();
  void pumpReturning();
  void enter(uint32_t index, State state);
  void begin(uint32_t index);
  void dial(uint32_t index);
  void sendJoin(uint32_t index);
  void poll(uint32_t index);
  void ask(uint32_t index, State state, uint64_t patience, std::string_view request);
  void pollAnswered(uint32_t index, const Response& response);
  bool readNchan(uint32_t index, const Response& response);
  void take(uint32_t index);
  void refusedPoll(uint32_t index, const Response& response);
  bool keepId(uint32_t index, std::string_view body);
  void forgetId(uint32_t index);
  void dropId(Client* client);
  void pause(uint32_t index, uint64_t nanoseconds);

  std::vector<Client> clients_;
  std::array<uint32_t, kStates> states_ = {};
  std::deque<uint32_t> joiners_;
  std::deque<uint32_t> leavers_;  // of those that are fewer now
  PollAnswer answer_;
  std::string joinRequest_;
  std::string pollTail_;
  std::vector<std::string> cursors_;  // of nchan: headers of the next poll
  uint32_t aim_;
  bool opening_ = false;
  uint32_t opened_ = 0;
  uint32_t members_ = 0;
  uint32_t returner_ = UINT32_MAX;  // the next one that comes back from a drop
  uint64_t spread_ = 0;
  double tokens_ = 0;
  uint64_t refilled_ = 0;
  uint64_t overdue_;
};

}  // namespace swarm

#endif  // SPRITES_SWARM_CLIENTS_H_
