// A worker's feeds: its copy of the feeds that are watched there.
//
//   main thread                                    worker's thread
//   feeds ─published─▶ WorkerService ──[kFeed]──▶ WorkerFeeds ─▶ its table ─▶ a thousand watchers
//                          ▲                         │
//                          └── kFeedWant, kFeedWatched, kFeedLeft ─┘
//
// All threads share the bytes of a version, counted by reference: a pointer crosses to each worker,
// however many watch there. Watchers, their holds and their streams are the worker's own (feeds.h).
// A feed that is new to the worker is treated like a fetched one: its watchers wait for its value,
// or until the main thread reports that there is none. The worker forgets a feed after kIdle
// without requests, and ignores a version that arrives later.
//
// Rejected: an answer for each watcher through the ring, one table and a lock (a publication to a
// million watchers would hold it), all feeds in all workers.
#ifndef SPRITES_WORKER_FEEDS_H_
#define SPRITES_WORKER_FEEDS_H_

#include <string_view>

#include "worker_asks.h"

namespace server {

class WorkerFeeds {
 public:
  /** Milliseconds after which a feed without requests is forgotten. */
  static constexpr uint64_t kIdle = 5000;

  /**
   * `asks` outlives the object. `options.shows` is the main thread's table. `now` in milliseconds.
   */
  WorkerFeeds(const FeedsOptions& options, uint64_t now, uint64_t (*clock)(), WorkerAsks* asks)
      : table_(options, now, clock), asks_(asks) {}

  Feeds& table() { return table_; }

  /** Asks for wanted feeds, and reports watchers. To be called at the end of every turn. */
  void turn();

  /** Answers due watchers, for a share of a turn. Returns whether some are left. */
  bool step();

  /**
   * To be called every kTickMilliseconds, with the time in milliseconds; false: call again soon.
   */
  bool tick(uint64_t now);

  /** Reads a message of the main thread about a feed. */
  void handle(const NoticeHead& head, std::string_view text);

 private:
  /** Milliseconds between two searches for feeds without requests. */
  static constexpr uint64_t kIdleCheckEvery = 1000;

  void leaveFeed(std::string_view key) { asks_->addAsk({.ask = Ask::kFeedLeft}, key); }

  Feeds table_;
  WorkerAsks* const asks_;
  uint64_t nextIdleCheckAt_ = 0;
};

}  // namespace server

#endif  // SPRITES_WORKER_FEEDS_H_
