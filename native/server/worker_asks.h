// A worker's asks: the questions and decisions of its door, as messages to the main thread.
//
//   worker's thread                              main thread
//   door ─▶ WorkerAsks ─▶ [ask│ask│…] ─ring─▶ WorkerService ─▶ pool, arena, feeds, JavaScript
//   door ◀──── Worker ◀── [notice│…] ◀─ring─ WorkerService ◀─ their answers
//
// A parked poll, at a worker's connection 7 of generation 3:
//
//   GET /poll ─▶ kPoll {7, 3} ─▶ Pool::poll(…, holder: the worker, token: 7)
//                                 WorkerService [ 7: record, generation 3 ]
//   answered: kAnswer {7, 3} ◀── WorkerService::answer(7) ◀── sprite, hold over, superseded, left
//   its connection closes: kDrop {7, 3} ─▶ Pool::drop
//
// Both may happen at the same time. An answer for another generation of connection 7 is dropped,
// and its sprites wait, unacked, for the client's next poll. A drop that finds no poll came too
// late and is ignored.
#ifndef SPRITES_WORKER_ASKS_H_
#define SPRITES_WORKER_ASKS_H_

#include <string>
#include <string_view>

#include "asks.h"
#include "http/door.h"

namespace server {

/** Most bytes that wait for the main thread; above this, requests wait in the kernel. */
constexpr size_t kMaxAskBytes = 16 << 20;

/** Most requests of a worker that JavaScript has not been asked for yet. */
constexpr uint32_t kMaxRequests = 16;

class WorkerAsks : public RequestHandler {
 public:
  struct Options {
    uint32_t maxSprite;  // bytes
    bool inputs;         // whether there are arenas
  };

  explicit WorkerAsks(const Options& options) : options_(options) {}

  // Of RequestHandler.
  bool hasRoom() const override { return gathered_.size() < kMaxAskBytes; }
  std::optional<Outcome> join(Ticket ticket, const Address& address, Id* id) override;
  std::optional<Outcome> throwSprite(Ticket ticket, const HotRequest& request,
                                     std::string_view text) override;
  std::optional<Outcome> leave(Ticket ticket, const Id& id) override;
  bool decidesInputs() const override { return options_.inputs; }
  std::optional<Outcome> input(Ticket ticket, const HotRequest& request, std::string_view arena,
                               std::string_view text) override;
  PollResult poll(Ticket ticket, const HotRequest& request) override;
  void dropPoll(uint32_t record, Ticket ticket) override;
  bool mayDropEndedPoll(Ticket ticket) override;
  LookupResult findPlace(Ticket ticket, const Id& id, Place* place) override;
  void requestCounts(Ticket ticket) override;
  void requestCountsOf(Ticket ticket, const Id& id) override;

  // Of ScriptHandler.
  bool mayAsk() const { return waitingRequests_ < kMaxRequests; }
  void ask(const ScriptRequest& question);
  void gone(Ticket ticket);

  /** Counts a request that JavaScript was asked for. */
  void onRequestTaken() { --waitingRequests_; }

  void addAsk(AskHead head, std::string_view text) {
    head.length = static_cast<uint32_t>(text.size());
    addMessage(&gathered_, head, text);
  }

  /** Puts the gathered messages into the ring. Returns false when there are none, or no room. */
  bool send(BatchRing* ring) { return !gathered_.empty() && ring->put(&gathered_); }

 private:
  const Options options_;
  std::string gathered_;
  uint32_t waitingRequests_ = 0;
};

}  // namespace server

#endif  // SPRITES_WORKER_ASKS_H_
