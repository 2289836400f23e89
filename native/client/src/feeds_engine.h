// Watches all feeds by one poll after the other. lib/client/README.md specifies the behavior of
// every client.
//
//   any thread                    the engine's thread (the client's own, or perform()'s caller)
//   ──────────                    ─────────────────────────────────────────────────────────────
//   watch, unwatch ─▶ inbox ────▶ table ─▶ POST /feeds ─▶ transport ─▶ replies ─▶ table
//   close, tryNow    (mutex, wake-up)                                               │
//                                                        callbacks, no lock held ◀──┘
//
// As in engine.h: one turn() takes the inbox, starts a due poll, moves bytes, reads replies, and
// only then calls back, with no lock held. The next poll starts after the callbacks.
#ifndef SPRITES_CLIENT_FEEDS_ENGINE_H_
#define SPRITES_CLIENT_FEEDS_ENGINE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine_base.h"
#include "feed_table.h"
#include "grant.h"
#include "sprites/feeds.h"

namespace sprites {

class FeedsEngine : public EngineBase {
 public:
  /** Passes news on to the program. */
  using NewsCallback = std::function<void(const FeedNews&)>;

  /** Throws as Feeds' constructor does. */
  FeedsEngine(FeedsOptions options, GrantCallback grant);

  // For any thread.
  Feeds::WatchId watch(std::string key, FeedKind kind, FeedHeld held, NewsCallback onNews);
  void unwatch(Feeds::WatchId watch);
  void close();
  FeedsState state() const { return readLocked(state_); }

  /** Runs a turn of at most `timeout`; always true: more may be watched. For one thread. */
  bool turn(Millis timeout);

  // For the thread that runs the turns: see Feeds.
  Millis timeout();

 private:
  /** A change of the table for the program: a new watch, or the end of one (without a key). */
  struct WatchChange {
    Feeds::WatchId watch = 0;
    std::string key;
    FeedKind kind = FeedKind::kValue;
    FeedHeld held;
    bool isEnd = false;
  };

  using Watches = std::map<Feeds::WatchId, NewsCallback>;

  void readInbox(Time now) override;
  void onWatchesChanged(Time now);
  void startDueRequests(Time now) override;
  unsigned holdForPoll(Time nextDue, Time now) const;
  void readReplies(Time now) override;
  std::optional<FeedsAnswer> readAnswer(const Reply& reply) const;
  void onAnswer(FeedsAnswer answer, Time now);
  void onFailure(const Reply& reply, bool wasCutOff, Time now);
  void reportNews();
  void setState(FeedsState state, const Reason& reason = {});
  Millis timeUntilDue(Time now) const override;

  const FeedsOptions options_;
  std::vector<WatchChange> inbox_;        // under mutex_
  Watches watches_;                       // under mutex_: the open ones
  Feeds::WatchId lastWatch_ = 0;          // under mutex_
  FeedsState state_ = FeedsState::kIdle;  // under mutex_

  // The engine's thread only.
  Grant grant_;
  FeedTable table_;
  RequestId poll_ = 0;
  Time pollStarted_;
  unsigned pollHold_ = 0;                           // seconds; 0: the poll has none
  std::map<std::string, std::string> sentCursors_;  // the cursors of the poll
  std::string cacheableKey_;   // the key of a poll of one feed that a cache can answer; empty: none
  std::string cacheablePath_;  // of a poll that a cache can answer, without its `turn`
  std::string nextCacheTurn_;  // `turn` for the next request with the same path
  std::string sentCacheTurn_;  // `turn` of the poll
  bool isCacheable_ = false;   // a cache can answer the poll
  bool bypassesCache_ = false;     // the next poll bypasses the cache, whose answer was old
  unsigned cachedPings_ = 0;       // pings in a row that came from a cache
  bool isContactInDoubt_ = false;  // contact is in doubt: the next hold is short
  unsigned refusedHold_ = 0;       // seconds: a hold that the server refused; 0: none yet
  Time clientWaitEnd_;             // the earliest next poll, by the client's own wait
  Time serverWaitEnd_;             // the earliest next poll, by the server's wait
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_FEEDS_ENGINE_H_
