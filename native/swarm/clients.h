// The clients: each client joins, then keeps one long poll parked. It takes the sprites of an
// answer, and acks them with the next poll on the same connection.
//
//   unopened ─▶ connecting ─▶ joining ─▶ parked ─┐        an answer: take, poll again
//                  ▲                        ▲ └──┘
//                  │ backoff                │ retry, Retry-After
//               waiting ◀── connection ── pausing
//                              lost
//
// With a transient port the joins are errands of the lanes (kJoinQueued), and a client connects
// once it has an id. A client joins again after the answer unknown-client. Clients reconnect until
// the end of the run.
//
// A parked client costs 72 bytes here, 12 in the wheel, and its socket; it has no buffers. Requests
// are built on the stack and fit into any socket's buffer; connections.h describes the answers.
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

  /** Starts to open the clients; pump() continues. */
  void open() { isOpening_ = true; }

  /**
   * Sets the number of parked clients: opens further clients, or lets the last ones leave. A client
   * that is joining leaves once it has joined.
   */
  void setClientCount(uint32_t count);

  /** Opens as many clients as the ramp and the bound on unfinished ones allow. */
  void pump();

  void timeout(uint32_t index);

  /** Closes the connections of all clients. They do not reconnect until reconnect(). */
  void drop();

  /**
   * Starts to reconnect the dropped clients; pump() continues.
   *
   * @param spread the clients reconnect at random within this time, in nanoseconds; 0: at once
   */
  void reconnect(uint64_t spread);

  /** @return whether pump() has further clients to reconnect at once */
  bool isReconnecting() const { return nextToReconnect_ < clients_.size(); }

  /** Finds a client that has to leave. @return false when there is none */
  bool popLeaver(uint32_t* index);

  /** Finds a client that waits for a lane to join it. @return false when there is none */
  bool popJoiner(uint32_t* index);

  /** Takes the answer of a join by a lane. */
  void onJoinAnswer(uint32_t index, std::string_view body);
  /** Retries a join that was refused to a lane after `pause` nanoseconds. */
  void onJoinRefused(uint32_t index, uint64_t pause);
  /** Ends a client whose leave the server has answered, once its last acks are settled. */
  void onLeaveAnswer(uint32_t index);

  /** @return the client's id; empty: it has none (yet) */
  std::string_view id(uint32_t index) const {
    return {clients_[index].id.data(), clients_[index].idLength};
  }
  /** @return the client's number for its next throw, from 1 */
  uint32_t nextThrowNumber(uint32_t index) { return ++clients_[index].throwCount; }

  /** Keeps the client from throwing for `pause` nanoseconds. */
  void holdBack(uint32_t index, uint64_t pause);
  bool mayThrow(uint32_t index) const {
    const Client& client = clients_[index];
    return client.idLength > 0 && client.leave == Leave::kNo &&
           client.throwAfter <= core_->now / kHoldBackUnitNs;
  }

  /** @return the number of opened clients, which have the lowest indices */
  uint32_t openedCount() const { return openedCount_; }
  uint32_t size() const { return static_cast<uint32_t>(clients_.size()); }
  uint32_t countIn(State state) const { return stateCounts_[state]; }
  /** @return the number of clients with an id, connected or not: their places in the torus */
  uint32_t members() const { return members_; }

 private:
  static constexpr size_t kLongestId = 43;
  static constexpr uint64_t kHoldBackUnitNs = 100'000'000;

  /** kDue: the leave is due or under way; kAnswered: only the answer to the last ack is missing. */
  enum class Leave : uint8_t { kNo, kDue, kAnswered };

  struct Client : Connection {
    State state = kUnopened;
    uint64_t lastSeq = 0;  // highest seq received: the next ack
    uint32_t throwCount = 0;
    uint32_t throwAfter = 0;  // in units of kHoldBackUnitNs
    uint16_t unacked = 0;     // sprites of the last answer, until the next answer confirms the ack
    uint8_t attempts = 0;
    uint8_t idLength = 0;
    Leave leave = Leave::kNo;
    std::array<char, kLongestId> id;
  };
  static_assert(sizeof(Client) == 72, "the cost that is named above");

  Connection& connectionAt(uint32_t index) override { return clients_[index]; }
  void onOpen(uint32_t index) override;
  void onAnswer(uint32_t index, const Response& response) override;
  void onEnd(uint32_t index) override;
  void onFailure(uint32_t index) override;

  void beginLeave(uint32_t index);
  void finishLeave(uint32_t index);
  void pumpOpening();
  void pumpReconnects();
  void setState(uint32_t index, State state);
  void joinOrDial(uint32_t index);
  void dial(uint32_t index);
  void sendJoin(uint32_t index);
  void sendPoll(uint32_t index);
  void sendRequest(uint32_t index, State state, uint64_t timeoutNs, std::string_view request);
  void onPollAnswer(uint32_t index, const Response& response);
  bool readNchan(uint32_t index, const Response& response);
  void acceptArrivals(uint32_t index);
  void onPollRefused(uint32_t index, const Response& response);
  bool acceptId(uint32_t index, std::string_view body);
  void abandonId(uint32_t index);
  void clearId(Client* client);
  void pause(uint32_t index, uint64_t nanoseconds);

  std::vector<Client> clients_;
  std::array<uint32_t, kStates> stateCounts_ = {};
  std::deque<uint32_t> joiners_;
  std::deque<uint32_t> leavers_;  // clients that have to leave after setClientCount()
  PollAnswer answer_;
  std::string joinRequest_;
  std::string pollTail_;
  std::vector<std::string> cursors_;  // nchan: headers of each client's next poll
  uint32_t clientCount_;
  bool isOpening_ = false;
  uint32_t openedCount_ = 0;
  uint32_t members_ = 0;
  uint32_t nextToReconnect_ = UINT32_MAX;  // next client to reconnect after a drop
  uint64_t reconnectSpread_ = 0;
  double rampTokens_ = 0;
  uint64_t refilledAt_ = 0;
  uint64_t pollTimeout_;
};

}  // namespace swarm

#endif  // SPRITES_SWARM_CLIENTS_H_
