// A worker's feeds: those that are watched there, as the main thread has them.
//
//   main thread                                    worker's thread
//   feeds ─published─▶ WorkerService ──[kFeed]──▶ WorkerFeeds ─▶ its table ─▶ a thousand watchers
//                          ▲                         │
//                          └── kFeedWant, kFeedWatched, kFeedLeft ─┘
//
// The bytes of a version are the same in all threads, counted by reference: what crosses is a
// pointer a worker, however many watch there. Watchers, their holds, their streams and what they
// can take are the worker's own (feeds.h). A feed without a request before is treated like
// one that an upstream has: its watchers wait until it has come, or until the main thread says
// that there is none. A feed without a request in kIdle is forgotten in the worker; a
// version of it that is on its way then is not taken.
//
// Rejected: an answer for each watcher through the ring, one table and a lock (a publication to a
// million would hold it), all feeds in all workers.
#ifndef SPRITES_WORKER_FEEDS_H_
#define SPRITES_WORKER_FEEDS_H_

#include <string_view>

#include "worker_asks.h"

namespace server {

class WorkerFeeds {
 public:
  /** Milliseconds after which a feed without requests is forgotten. */
  static constexpr uint64_t kIdle = 5000;

  /** `asks` outlive it. `options.shows` is the main thread's table. `now` in milliseconds. */
  WorkerFeeds(const FeedsOptions& options, uint64_t now, uint64_t (*clock)(), WorkerAsks* asks)
      : table_(options, now, clock), asks_(asks) {}

  Feeds& table() { return table_; }

  /** Asks for what is wanted, and tells of watchers. To be called at the end of every turn. */
  void turn();

  /** Answers watchers that are due, for a share of a turn. Returns whether some are left. */
  bool step();

  /** To be called every kTickMilliseconds, with the time in milliseconds; false: again soon. */
  bool tick(uint64_t now);

  /** Takes what the main thread says of feeds. */
  void take(const SayHead& head, std::string_view text);

 private:
  /** Milliseconds between two looks for feeds without requests. */
  static constexpr uint64_t kLookEvery = 1000;

  void leave(std::string_view key) { asks_->add({.ask = Ask::kFeedLeft}, key); }

  Feeds table_;
  WorkerAsks* const asks_;
  uint64_t lookAt_ = 0;
};

}  // namespace server

#endif  // SPRITES_WORKER_FEEDS_H_
