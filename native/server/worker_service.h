// The main thread's end of a worker: it does with pool, arena, feeds and JavaScript what the worker
// asks, and holds the worker's parked polls.
//
//   ask ─▶ pool ─▶ say
//   parked     [ 7: record, generation ][ 8: … ]     by the worker's connections
//   requests   [ head, body ] …                      that JavaScript has not been asked for yet
//
// Cost: 8 bytes a parked poll, reserved once and touched as they fill, beside its client's record.
#ifndef SPRITES_WORKER_SERVICE_H_
#define SPRITES_WORKER_SERVICE_H_

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arena/arena.h"
#include "asks.h"
#include "base/reserve.h"
#include "feeds/feeds.h"
#include "torus/pool.h"

namespace server {

/** Batches of a worker that it has not taken, from which on news of feeds wait. */
constexpr uint32_t kMostAhead = 4;

/** What the services of all workers work with; each of these outlives them. */
struct ServiceParts {
  Pool* pool;
  Feeds* feeds = nullptr;  // there may be none
  Arena* arena = nullptr;  // there may be none
  uint64_t (*clock)();     // microseconds, never goes back
  std::function<std::string_view()> counts = {};
  std::function<void(const AskHead&, std::string_view)> request = {};  // has JavaScript asked
  std::function<void(Ticket)> gone = {};  // tells JavaScript of a parked request's connection
};

/** What became of the requests of a turn: as they were decided, or unknown. */
enum class Settled : uint8_t { kHolds, kUnknown };

class WorkerService : public PollResponder {
 public:
  /**
   * For a worker with at most `connections`, whose polls are held as `holder`. Throws
   * std::bad_alloc.
   */
  WorkerService(const ServiceParts& parts, PollHolder holder, uint32_t connections);
  ~WorkerService() override;
  WorkerService(const WorkerService&) = delete;
  WorkerService& operator=(const WorkerService&) = delete;

  /** Serves a batch of asks. */
  void serve(std::string_view batch);

  /** How many hot requests it has served. */
  uint64_t hot() const { return hot_; }

  /** Whether a request waits until JavaScript is asked for it. */
  bool hasRequests() const { return !requests_.empty(); }

  /** Has JavaScript asked for one of them. */
  void askForOne();

  /** Ends a turn: what was decided since the last call holds, or may not be answered. */
  void settle(Settled settled);

  void say(SayHead head, std::string_view text) {
    head.length = static_cast<uint32_t>(text.size());
    addMessage(&gathered_, head, text);
  }

  /** Has the worker wait for what was gathered: before another worker is sent the same. */
  void announce(BatchRing* ring) const;

  /** Puts what was gathered into the ring, as far as there is room: then its reader is to be woken.
   */
  bool send(BatchRing* ring);

  // Of FeedsWatcher.
  void published(const Feed& feed);
  void compressed(const Feed& feed);
  void ended(std::string_view key, Outcome why);

  /** A poll's answer, from the pool. */
  void answer(uint32_t token, std::string_view body) override;
  void prefetch(uint32_t token) const override { __builtin_prefetch(&parked_[token]); }

 private:
  /** A parked poll; `record` 0: none, else the client's and 1. */
  struct Parked {
    uint32_t record;
    uint32_t generation;  // of the connection it is parked at
  };

  /** A feed that the worker has asked for. */
  struct Watched {
    FeedWatchers watchers;        // there
    uint32_t want = 0;            // the number of its last want
    bool gzip = false;            // one of them takes it compressed
    bool owesVersion = false;     // the newest version is among what is owed
    bool owesCompressed = false;  // its compressed form is
  };

  /** What of a feed is to be said when there is room: its newest version (kFeed), or kFeedGzip. */
  struct Owed {
    std::string key;
    Say what;
  };

  /** Asks whose memory is prefetched together. */
  static constexpr uint32_t kPrefetched = 32;

  void prefetch(std::string_view window) const;
  void serve(const AskHead& head, std::string_view text);
  void join(const AskHead& head);
  void poll(const AskHead& head);
  void place(const AskHead& head);
  bool drop(Ticket ticket);
  void input(const AskHead& head, std::string_view text);
  void serveFeed(const AskHead& head, std::string_view key);
  /** Its number among the threads that have names. */
  uint32_t thread() const { return static_cast<uint32_t>(holder_); }
  void want(std::string_view key, const AskHead& head);
  void owe(Watched* watched, std::string_view key, Say what);
  void sayOwed();
  void setWatchers(Watched* watched, std::string_view key, const FeedWatchers& watchers);
  void decide(Ticket ticket, Outcome outcome, std::string_view text = {});

  const ServiceParts parts_;
  const PollHolder holder_;
  base::Reserved<Parked> parked_;
  uint32_t used_ = 0;  // places of it that were ever used
  std::deque<std::pair<AskHead, std::string>> requests_;
  std::unordered_map<std::string, Watched> feeds_;
  std::deque<Owed> owed_;      // in order; what the worker does not want any more is passed over
  std::string decided_;        // outcomes that wait for the end of the turn
  std::vector<Ticket> ended_;  // polls that end behind what the turn answers
  std::string gathered_;
  uint64_t hot_ = 0;
};

}  // namespace server

#endif  // SPRITES_WORKER_SERVICE_H_
