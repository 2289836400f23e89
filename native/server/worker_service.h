// The main thread's side of a worker: serves its asks with pool, arena, feeds and JavaScript, and
// holds its parked polls.
//
//   ask ─▶ pool ─▶ notice
//   parked     [ 7: record, generation ][ 8: … ]     by the worker's connection
//   requests   [ head, body ] …                      that JavaScript was not asked for yet
//
// Cost: 8 bytes for each parked poll, reserved once and touched as they fill, besides its client's
// record.
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

/** Number of batches that a worker has not taken from which on news of feeds wait. */
constexpr uint32_t kMaxAhead = 4;

/** The parts of the services of all workers; all of them outlive the services. */
struct ServiceParts {
  Pool* pool;
  Feeds* feeds;
  Arena* arena = nullptr;  // nullptr: none
  uint64_t (*clock)();     // microseconds, never goes back
  std::function<std::string_view()> counts = {};
  std::function<void(const AskHead&, std::string_view)> ask = {};  // asks JavaScript
  std::function<void(Ticket)> gone = {};  // a parked request's connection is gone
};

/** Whether the decisions of a turn hold, or that is unknown. */
enum class DecisionState : uint8_t { kHolds, kUnknown };

class WorkerService : public PollResponder {
 public:
  /**
   * Creates the service of a worker with at most `connections`. `holder` names its polls in the
   * pool. Throws std::bad_alloc.
   */
  WorkerService(const ServiceParts& parts, PollHolder holder, uint32_t connections);
  ~WorkerService() override;
  WorkerService(const WorkerService&) = delete;
  WorkerService& operator=(const WorkerService&) = delete;

  /** Serves a batch of asks. */
  void serve(std::string_view batch);

  /** Number of hot requests served. */
  uint64_t hotRequests() const { return hotRequests_; }

  /** Whether a request waits for JavaScript to be asked. */
  bool hasRequests() const { return !requests_.empty(); }

  /** Asks JavaScript for one request. */
  void askForOne();

  /** Ends a turn: the decisions since the last call hold, or must not be answered. */
  void settleTurn(DecisionState decisions);

  void addNotice(NoticeHead head, std::string_view text) {
    head.length = static_cast<uint32_t>(text.size());
    addMessage(&gathered_, head, text);
  }

  /**
   * Marks that the ring does not have all gathered messages. To be called before another worker is
   * sent the same news.
   */
  void markUnsent(BatchRing* ring) const;

  /**
   * Puts the gathered messages into the ring, as far as there is room. Returns whether its reader
   * must be woken.
   */
  bool send(BatchRing* ring);

  // Of FeedsObserver.
  void published(const Feed& feed);
  void compressed(const Feed& feed);
  void ended(std::string_view key, Outcome why);

  /** Takes the answer of a poll from the pool. */
  void answer(uint32_t token, std::string_view body) override;
  void prefetch(uint32_t token) const override { __builtin_prefetch(&parked_[token]); }

 private:
  /** A parked poll; `record` is that of the client + 1; 0: none. */
  struct ParkedPoll {
    uint32_t record;
    uint32_t generation;  // of its connection
  };

  /** A feed that the worker has asked for. */
  struct WatchedFeed {
    WatcherCounts watchers;            // at the worker
    uint32_t want = 0;                 // number of its last kFeedWant
    bool gzip = false;                 // a watcher takes it compressed
    bool hasQueuedVersion = false;     // its newest version is in `queuedNews_`
    bool hasQueuedCompressed = false;  // its compressed form is in `queuedNews_`
  };

  /** News of a feed to be sent when there is room: its newest version (kFeed), or kFeedGzip. */
  struct QueuedNews {
    std::string key;
    Notice notice;
  };

  /** Number of asks whose memory is prefetched together. */
  static constexpr uint32_t kPrefetched = 32;

  void prefetch(std::string_view window) const;
  void serve(const AskHead& head, std::string_view text);
  void serveJoin(const AskHead& head);
  void servePoll(const AskHead& head);
  void servePlace(const AskHead& head);
  bool dropPoll(Ticket ticket);
  void serveInput(const AskHead& head, std::string_view text);
  void serveFeed(const AskHead& head, std::string_view key);
  /** The worker's number among the threads that have names. */
  uint32_t threadNumber() const { return static_cast<uint32_t>(holder_); }
  void serveWant(std::string_view key, const AskHead& head);
  void queueNews(WatchedFeed* watched, std::string_view key, Notice notice);
  void addQueuedNews();
  void setWatchers(WatchedFeed* watched, std::string_view key, const WatcherCounts& watchers);
  void addOutcome(Ticket ticket, Outcome outcome, std::string_view text = {});

  const ServiceParts parts_;
  const PollHolder holder_;
  base::Reserved<ParkedPoll> parked_;
  uint32_t usedPlaces_ = 0;  // places that were ever used
  std::deque<std::pair<AskHead, std::string>> requests_;
  std::unordered_map<std::string, WatchedFeed> feeds_;
  std::deque<QueuedNews>
      queuedNews_;        // in order; entries of feeds that the worker has left are skipped
  std::string outcomes_;  // outcomes that wait for the end of the turn
  std::vector<Ticket> endedPolls_;  // polls to end after the answers of the turn
  std::string gathered_;
  uint64_t hotRequests_ = 0;
};

}  // namespace server

#endif  // SPRITES_WORKER_SERVICE_H_
