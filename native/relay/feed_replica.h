// A worker's feeds: those that somebody watches there, as the main process has them.
//
//   main process                                   worker
//   feeds ─published─▶ RelayServer ──[kFeed]──▶ FeedReplica ─▶ feeds ─▶ a thousand watchers
//                          ▲                         │
//                          └── kFeedWant, kFeedWatched, kFeedLeft ─┘
//
// A publication crosses once a worker, however many watch it there; watchers, their holds, their
// streams and what they can take are the worker's own (feeds.h). A feed that nobody has asked for
// before is treated like one that an upstream has: its watchers wait until it has come, or until
// the main process says that there is none. A feed that nobody has asked for in kIdle is forgotten
// in the worker; a version of it that is on its way then is not taken.
//
// Cost: a copy of what is watched in each worker, within --feed-memory. Rejected: an answer for
// each watcher through the relay (a document of 165 kB to ten thousand), all feeds in all workers.
#ifndef SPRITES_FEED_REPLICA_H_
#define SPRITES_FEED_REPLICA_H_

#include <functional>
#include <string_view>

#include "feed_frames.h"
#include "feeds/feeds.h"
#include "frames.h"

namespace server {

class FeedReplica {
 public:
  /** Sends an ask with a text, mostly a key; `head` has its kind, its number and whose it is. */
  using Send = std::function<void(AskHead head, std::string_view text)>;

  /** `feeds` outlives it. */
  FeedReplica(Feeds* feeds, Send send) : feeds_(feeds), send_(std::move(send)) {}

  /** Asks for what is wanted, and tells who watches. To be called at the end of every turn. */
  void turn();

  /** To be called every kTickMilliseconds, with the time in milliseconds. */
  void tick(uint64_t now);

  /** Takes what the main process says of feeds; false when it makes no sense. */
  bool take(const SayHead& head, std::string_view text);

 private:
  /** Milliseconds after which a feed that nobody asks for is forgotten. */
  static constexpr uint64_t kIdle = 5000;

  /** Milliseconds between two looks. */
  static constexpr uint64_t kLookEvery = 1000;

  bool takeFeed(std::string_view text);

  Feeds* const feeds_;
  const Send send_;
  FeedTally told_;
  uint64_t lookAt_ = 0;
};

}  // namespace server

#endif  // SPRITES_FEED_REPLICA_H_
