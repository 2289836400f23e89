// One poll after the other for all feeds that are watched. How every client behaves is said in
// lib/client/README.md.
//
//   any thread                    the engine's thread (the client's own, or perform()'s caller)
//   ──────────                    ─────────────────────────────────────────────────────────────
//   watch, unwatch ─▶ inbox ────▶ table ─▶ POST /feeds ─▶ transport ─▶ replies ─▶ table ─▶
//   callbacks close, tryNow    (mutex, wake-up)
//
// As in engine.h: one turn() takes the inbox, starts what is due, moves bytes, reads replies, and
// only then calls back, with no lock held. The next poll starts after the callbacks.
#ifndef SPRITES_CLIENT_FEEDS_ENGINE_H_
#define SPRITES_CLIENT_FEEDS_ENGINE_H_

#include <cstdint>
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
  /** Tells a program what is new. */
  using TellNews = std::function<void(const FeedNews&)>;

  /** Throws as Feeds' constructor does. */
  FeedsEngine(FeedsOptions options, GrantCallback grant);

  // For any thread.
  Feeds::WatchId watch(std::string key, FeedKind kind, FeedHeld held, TellNews tell);
  void unwatch(Feeds::WatchId watch);
  void close();
  FeedsState state() const { return locked(state_); }

  /** One turn of at most `timeout`; always true: there may be more to watch. For one thread. */
  bool turn(Millis timeout);

  // For the thread that takes the turns: see Feeds.
  Millis timeout();

 private:
  /** What the program wants of the table: a watch, or the end of one (without a key). */
  struct Wanted {
    Feeds::WatchId watch = 0;
    std::string key;
    FeedKind kind = FeedKind::kValue;
    FeedHeld held;
    bool ends = false;
  };

  using Watches = std::map<Feeds::WatchId, TellNews>;

  void takeInbox(Time now) override;
  void changed(Time now);
  void startDue(Time now) override;
  unsigned holdUntil(Time next, Time now) const;
  void readReplies(Time now) override;
  std::optional<FeedsAnswer> answerOf(const Reply& reply) const;
  void onAnswer(FeedsAnswer answer, Time now);
  void onFailure(const Reply& reply, bool wasCut, Time now);
  void tellNews();
  void setState(FeedsState state, const Why& why = {});
  Millis untilNext(Time now) const override;

  const FeedsOptions options_;
  std::vector<Wanted> inbox_;             // under mutex_
  Watches watches_;                       // under mutex_: those that are open
  Feeds::WatchId lastWatch_ = 0;          // under mutex_
  FeedsState state_ = FeedsState::kIdle;  // under mutex_

  // The engine's thread only.
  Grant grant_;
  FeedTable table_;
  RequestId poll_ = 0;
  Time pollStarted_;
  unsigned pollHold_ = 0;                     // seconds; 0: none was asked for
  std::map<std::string, std::string> asked_;  // the cursors of the poll
  std::string asking_;        // the key of a poll of one feed that a cache can answer; empty: none
  std::string path_;          // of a poll that a cache can answer, without a turn
  std::string turn_;          // that the next request for the same carries
  std::string askedTurn_;     // that the poll has carried
  bool byCache_ = false;      // a cache can answer the poll
  bool direct_ = false;       // the next poll goes past the cache: what that has is old
  unsigned turns_ = 0;        // pings in a row that a cache had
  bool doubt_ = false;        // whether there is contact
  unsigned holdRefused_ = 0;  // seconds the server does not grant; 0: none yet
  Time next_;                 // no poll before: a wait of its own
  Time open_;                 // no poll before: the server has asked for it
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_FEEDS_ENGINE_H_
