// The relay: how a worker's requests reach the pool in the main process, and its answers return.
//
//   worker                                           main process
//   front door ─▶ RelayHandler ─▶ [ask│ask│…] ─socket pair─▶ RelayServer ─▶ pool
//   front door ◀─ LateAnswers ◀── [say│say│…] ◀─socket pair─ RelayServer ◀── pool, as a responder
//
// Who owns what: a worker has its connections, and what each has sent and not yet read; the main
// process has the clients, the sprites and who is parked where. What is asked gathers for one turn
// of the worker's loop and crosses in one buffer; what is said comes back in one, once the turn of
// the main process is in its journal. Messages: frames.h.
//
// A parked poll, at a worker's connection 7 of generation 3:
//
//   GET /poll ─▶ kPoll {7, 3} ─▶ Pool::poll(…, holder: the worker, token: 7)
//                                 RelayServer [ 7: record, generation 3 ]
//   answered: kAnswer {7, 3} ◀── RelayServer::answer(7) ◀── sprite, hold over, superseded, left
//   its connection closes: kDrop {7, 3} ─▶ Pool::drop
//
// Both may happen at once: an answer that finds another generation at connection 7 is nobody's,
// and its sprites wait, unacked, for the client's next poll. A drop that finds no poll is late.
//
// When a worker ends or dies, some of its open requests were served and others not, and its polls
// are dropped at once: their clients poll again within their lease. Clients repeat their throws
// with the same number: a throw that was served is answered "duplicate". When the main process dies
// its workers end.
//
// What waits to cross is bounded at both ends. A worker reads no more requests while kMostAsked
// bytes wait: they wait in the kernel. A worker for which more than kMostSaid bytes wait, and which
// has read none of them for kPatience, does not read, and is given up: its end is closed. So is one
// for which kMostEver bytes wait. Each of its polls has one answer at most in there. Versions of
// feeds wait in the table and not in there while kMostAhead bytes wait: a worker that is behind
// skips some, as any slow watcher does, and may ask for all feeds at once.
//
// Cost: 40 bytes and the text a throw or an input, 40 a poll, 16 and the text an answer, each
// copied once; one system call a batch at each end; 8 bytes in the main process a parked poll,
// beside its client's record. Rejected: JSON over Node's own channel (parsing costs more than the
// throw), shared memory (a second allocator and its locks, to save one copy of 200 bytes), handing
// descriptors to who holds the neighbor's poll (a system call a sprite).
#ifndef SPRITES_RELAY_H_
#define SPRITES_RELAY_H_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "feed_replica.h"
#include "frames.h"

namespace server {

/** Bytes that may wait for the main process before requests wait in the kernel. */
constexpr size_t kMostAsked = 16 << 20;

/** The worker's end. */
class RelayHandler : public RequestHandler,
                     public PollHandler,
                     public ConnectionWatcher,
                     public RelayEnd {
 public:
  /** `maxSprite` in bytes. */
  explicit RelayHandler(uint32_t maxSprite) : maxSprite_(maxSprite) {}

  /** Who is told of late answers: to requests of JavaScript, and of the front door; not owned. */
  void tell(LateAnswers* script, LateAnswers* door) {
    script_ = script;
    door_ = door;
  }

  /** Has `feeds`, which outlive it, be a replica of the main process's. */
  void replicate(Feeds* feeds);

  /** nullptr where there are no feeds. */
  FeedReplica* feeds() { return feeds_.get(); }

  /** Has `lost` called when the main process is gone. */
  void onLost(std::function<void()> lost) { lost_ = std::move(lost); }

  // Of RequestHandler.
  bool hasRoom() const override { return outgoing().size() < kMostAsked; }
  std::optional<Outcome> join(Ticket ticket, const Address& address, Id* id) override;
  std::optional<Outcome> throwSprite(Ticket ticket, const HotRequest& request,
                                     std::string_view text) override;
  std::optional<Outcome> leave(Ticket ticket, const Id& id) override;

  /** From now on inputs of players are decided on by the main process, which has arenas. */
  void takeInputs() { takesInputs_ = true; }

  bool takesInputs() const override { return takesInputs_; }
  std::optional<Outcome> input(Ticket ticket, const HotRequest& request, std::string_view arena,
                               std::string_view text) override;

  // Of PollHandler.
  PollResult poll(Ticket ticket, const HotRequest& request) override;
  void drop(uint32_t record, Ticket ticket) override;
  bool ended(Ticket ticket) override;
  Found place(Ticket ticket, const Id& id, Place* place) override;
  void counts(Ticket ticket) override;
  void countsOf(Ticket ticket, const Id& id) override;

  // Of ConnectionWatcher.
  void opened(const Address& address, uint64_t tag) override;
  void closed(const Address& address) override;

  /** A throw as the handler's, for JavaScript; `number` may be kNoNumber. */
  std::optional<Outcome> throwSprite(Ticket ticket, const Id& id, Edge edge, uint64_t number,
                                     std::string_view text);

  /** A poll as the handler's; `hold` in seconds, or kNoHold. */
  void poll(Ticket ticket, const Id& id, uint64_t ack, uint32_t hold);

  // Of RelayEnd.
  bool receive(std::string_view bytes) override;
  void lost() override;

  /** Counts a request that is refused on this side, for `reason`, and gives that back. */
  Outcome refuse(Outcome reason) {
    ++refused_[static_cast<size_t>(reason)];
    return reason;
  }

  /** Requests refused on this side, which the main process does not know of. */
  const std::array<uint64_t, kOutcomes>& refused() const { return refused_; }

 private:
  template <typename Who>
  void ask(Ask ask, Ticket ticket, const Who& who) {
    AskHead head = {.ask = ask, .ticket = ticket};
    memcpy(head.who, &who, sizeof head.who);
    add(head, {});
  }
  bool take(const SayHead& head, std::string_view text);

  const uint32_t maxSprite_;
  bool takesInputs_ = false;
  LateAnswers* script_ = nullptr;
  LateAnswers* door_ = nullptr;
  std::function<void()> lost_;
  std::unique_ptr<FeedReplica> feeds_;
  RelayReader<SayHead> says_;
  std::array<uint64_t, kOutcomes> refused_ = {};
};

}  // namespace server

#endif  // SPRITES_RELAY_H_
