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

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine_base.h"
#include "feed_table.h"
#include "grant.h"
#include "json.h"
#include "sprites/feeds.h"

namespace sprites {

/** A hold in seconds; 0: the request proves contact; none: the server chooses. */
using Hold = std::optional<unsigned>;

constexpr unsigned kFeedHold = 55;  // seconds: many proxies cut off what is silent for a minute

/** Most cached pings in a row after which the client asks at once: a cache has kept few turns. */
constexpr unsigned kMaxCachedPings = 8;

/** Longest path that every cache accepts, in characters; a longer one becomes a POST. */
constexpr size_t kMaxPath = 4000;

/** Returns the path of a poll. Equal polls have equal paths, so that a cache can answer. */
inline std::string pathOf(const std::map<std::string, std::string>& feeds, Hold hold, bool delta) {
  std::string path;
  if (feeds.size() == 1) {
    path = "/feed/" + feeds.begin()->first + "?after=" + feeds.begin()->second;
  } else {
    for (const auto& [key, cursor] : feeds) {
      path += path.empty() ? "/feeds?watch=" : ",";
      path += key;
      path += ':';
      path += cursor;
    }
  }
  if (hold) path += "&hold=" + std::to_string(*hold);
  return delta ? path + "&delta=1" : path;
}

inline std::string bodyOf(const std::map<std::string, std::string>& feeds, Hold hold, bool delta) {
  std::string text = "{";
  if (hold) text += "\"hold\":" + std::to_string(*hold) + ",";
  if (delta) text += "\"delta\":true,";
  text += "\"feeds\":{";
  bool first = true;
  for (const auto& [key, cursor] : feeds) {
    if (!std::exchange(first, false)) text += ',';
    text += json::quote(key) + ":" + json::quote(cursor);
  }
  return text + "}}";
}

class FeedsEngine : public EngineBase {
 public:
  /** Passes news on to the program. */
  using NewsCallback = std::function<void(const FeedNews&)>;

  /** Throws as Feeds' constructor does. */
  FeedsEngine(FeedsOptions options, GrantCallback grant)
      : EngineBase(options, options.maxAnswerBytes),
        options_(std::move(options)),
        grant_(std::move(grant)),
        table_([this](uint64_t failures) { return backoff(failures); }) {
    holdMost_ = kFeedHold;
  }

  // For any thread.

  Feeds::WatchId watch(std::string key, FeedKind kind, FeedHeld held, NewsCallback onNews) {
    Feeds::WatchId watch = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      watch = ++lastWatch_;
      inbox_.push_back({watch, std::move(key), kind, std::move(held), false});
      watches_[watch] = std::move(onNews);
    }
    wake();
    return watch;
  }

  void unwatch(Feeds::WatchId watch) {
    // Outlives the lock: destructors of the callback may call this client.
    Watches::node_type ended;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended = watches_.extract(watch);
      if (!ended) return;
      inbox_.push_back({watch, {}, {}, {}, true});
    }
    wake();
  }

  void close() {
    Watches ended;  // outlives the lock, too
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended.swap(watches_);
      for (const auto& [watch, onNews] : ended) inbox_.push_back({watch, {}, {}, {}, true});
    }
    wake();
  }
  FeedsState state() const { return readLocked(state_); }

  /** Runs a turn of at most `timeout`; always true: more may be watched. For one thread. */
  bool turn(Millis timeout) {
    runTurn(timeout);
    return true;
  }

  // For the thread that runs the turns: see Feeds.

  Millis timeout() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!inbox_.empty() || tryNowRequested_) return Millis(0);
    }
    if (!callbacks_.empty()) return Millis(0);
    return std::min(timeUntilDue(Clock::now()), transport_.timeout());
  }

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

  void readInbox(Time now) override {
    std::vector<WatchChange> changes;
    bool tryNow = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      changes.swap(inbox_);
      tryNow = std::exchange(tryNowRequested_, false);
    }
    bool hasNewFeeds = false;
    for (WatchChange& each : changes) {
      if (each.isEnd) {
        table_.remove(each.watch);
        if (table_.size() == 0) onWatchesChanged(now);
      } else if (table_.add(each.watch, each.key, each.kind, std::move(each.held))) {
        hasNewFeeds = true;
        if (state() == FeedsState::kIdle) onWatchesChanged(now);
      }
    }
    reportNews();
    if (hasNewFeeds) onWatchesChanged(now);
    if (!tryNow || table_.size() == 0) return;
    table_.endProblemWaits();
    isContactInDoubt_ = true;
    clientWaitEnd_ = now;
    if (poll_ != 0 && now - pollStarted_ >= kEarlyAnswer)
      transport_.cancel(std::exchange(poll_, 0));
  }

  /** Ends the poll, as more feeds are watched, or none any more. */
  void onWatchesChanged(Time now) {
    transport_.cancel(std::exchange(poll_, 0));
    if (table_.size() == 0) {
      setState(FeedsState::kIdle);
    } else if (state() == FeedsState::kIdle) {
      failures_ = 0;
      isContactInDoubt_ = true;
      clientWaitEnd_ = now;
      setState(FeedsState::kAsking);
    } else if (state() != FeedsState::kOffline) {
      clientWaitEnd_ = now;  // else offline: the wait after a failure holds for all feeds
    }
  }

  void startDueRequests(Time now) override {
    if (!callbacks_.empty() || poll_ != 0 || now < clientWaitEnd_ || now < serverWaitEnd_) return;
    FeedTable::Poll poll = table_.nextPoll(now);
    if (poll.feeds.empty()) return;
    const std::optional<std::string> header = grant_.header();
    now = Clock::now();  // the program's callback may have been slow
    if (!header) {
      clientWaitEnd_ = now + nextBackoff();
      isContactInDoubt_ = true;
      setState(FeedsState::kOffline, noGrantReason());
      return;
    }
    pollHold_ = holdForPoll(poll.nextDue, now);
    Request request;
    std::string path = pathOf(poll.feeds, pollHold_, options_.patches);
    isCacheable_ = options_.cached && !grant_ && !std::exchange(bypassesCache_, false) &&
                   path.size() <= kMaxPath;
    cacheableKey_ = isCacheable_ && poll.feeds.size() == 1 ? poll.feeds.begin()->first : "";
    const std::string cacheTurn = std::exchange(nextCacheTurn_, {});
    const std::string previousPath = std::exchange(cacheablePath_, {});
    sentCacheTurn_.clear();
    if (isCacheable_) {
      cacheablePath_ = std::move(path);
      if (cacheablePath_ == previousPath) sentCacheTurn_ = cacheTurn;
      request.method = Method::kGet;
      request.path =
          sentCacheTurn_.empty() ? cacheablePath_ : cacheablePath_ + "&turn=" + sentCacheTurn_;
    } else {
      request.method = Method::kPost;
      request.path = "/feeds";
      request.body = bodyOf(poll.feeds, pollHold_, options_.patches);
    }
    request.timeout = pollTimeout(pollHold_.value_or(kUsualHold));
    sentCursors_ = std::move(poll.feeds);
    pollStarted_ = now;
    poll_ = transport_.start(request, *header);
  }

  /** Returns the poll's hold. The next feed that the poll leaves out is due at `nextDue`. */
  Hold holdForPoll(Time nextDue, Time now) const {
    if (isContactInDoubt_ && pollFailures_ < kMaxPollFailures) return 0;
    unsigned hold = isContactInDoubt_ ? kShortestHold : holdMost_;
    if (nextDue != Time::max()) {
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(nextDue - now).count();
      // `nextDue` may be past: the program may have been slow to return a grant.
      hold = static_cast<unsigned>(std::clamp<int64_t>(seconds, kShortestHold, hold));
    }
    return refusedHold_ > 0 && hold >= refusedHold_ ? Hold() : hold;
  }

  void readReplies(Time now) override {
    for (const Reply& reply : transport_.takeReplies()) {
      log(reply);
      if (reply.id != poll_) continue;
      poll_ = 0;
      const auto parked = now - pollStarted_;
      if (parked >= kLongPark) {  // the server let it park
        grant_.markAccepted();
        pollFailures_ = 0;
      }
      const bool wasCutOff = recordPollEnd(reply, parked);
      std::optional<FeedsAnswer> answer = readAnswer(reply);
      if (answer) {
        onAnswer(std::move(*answer), now);
      } else {
        onFailure(reply, wasCutOff, now);
      }
    }
  }

  /** Returns the answer about feeds in a reply, if it has one. */
  std::optional<FeedsAnswer> readAnswer(const Reply& reply) const {
    if (cacheableKey_.empty()) return reply.status == 200 ? readFeeds(reply.body) : std::nullopt;
    FeedsAnswer answer;
    // Problems of the feed, not of the request.
    const Problem problem = readProblem(reply.body);
    for (const char* name : {"unknown-feed", "upstream-failed", "grant-required"}) {
      if (reply.status < 400 || !isProblem(problem, name)) continue;
      answer.items.emplace_back();
      answer.items.front().feed = cacheableKey_;
      answer.items.front().problem = name;
      return answer;
    }
    return reply.status == 200 ? readFeed(reply.body) : std::nullopt;
  }

  void onAnswer(FeedsAnswer answer, Time now) {
    grant_.markAccepted();
    isContactInDoubt_ = false;
    if (pollHold_ != 0U) pollFailures_ = 0;
    setState(FeedsState::kOnline);
    const auto isOlder = [this](const auto& item) { return table_.isOlder(item); };
    if (isCacheable_ && std::any_of(answer.items.begin(), answer.items.end(), isOlder)) {
      bypassesCache_ = true;
      clientWaitEnd_ = now + nextBackoff();
      return;
    }
    const bool isNews = table_.storeAnswer(std::move(answer.items), sentCursors_, now);
    reportNews();
    if (answer.retry > Millis(0)) serverWaitEnd_ = now + answer.retry;
    if (isNews || now - pollStarted_ + answer.retry >= kEarlyAnswer) {
      failures_ = 0;
      cachedPings_ = 0;
      if (!isNews) nextCacheTurn_ = answer.turn;
      return;
    }
    nextCacheTurn_ = answer.turn;
    if (pollHold_ == 0U) return;
    // The ping came from a cache: with the new turn the next path is another.
    if (!nextCacheTurn_.empty() && nextCacheTurn_ != sentCacheTurn_ &&
        ++cachedPings_ <= kMaxCachedPings)
      return;
    // An empty answer should come at the end of the hold. A sender of early ones is not hammered.
    clientWaitEnd_ = now + nextBackoff();
  }

  /** Handles a missing or unusable answer. */
  void onFailure(const Reply& reply, bool wasCutOff, Time now) {
    const Problem problem = readProblem(reply.body);
    if (grant_.dropIfRefused(problem)) return;  // a new grant is asked for at once
    const Reason reason = reasonOf(reply, problem);
    clientWaitEnd_ = now + nextBackoff();
    if (isProblem(problem, "bad-hold") && pollHold_) {
      isContactInDoubt_ = false;  // the server has answered
      if (*pollHold_ > 0) refusedHold_ = *pollHold_;
      return;
    }
    if (pollHold_ != 0U) pollFailures_++;
    if (isProblem(problem, "bad-cursor")) table_.clearCursors();
    // A poll that was cut off after a long time does not prove that contact is lost.
    if (!wasCutOff || isContactInDoubt_ || state() != FeedsState::kOnline)
      setState(FeedsState::kOffline, reason);
    isContactInDoubt_ = true;
    if (reply.retryAfter > Millis(0))
      serverWaitEnd_ = now + serverWait(reply.retryAfter, failures_);
  }

  void reportNews() {
    for (FeedNews& news : table_.drainNews()) {
      callbacks_.emplace_back([this, news = std::move(news)] {
        for (const Feeds::WatchId watch : news.watches) {
          NewsCallback onNews;
          {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto found = watches_.find(watch);
            if (found == watches_.end()) continue;  // the watch has ended meanwhile
            onNews = news.endsWatches ? std::move(found->second) : found->second;
            if (news.endsWatches) watches_.erase(found);
          }
          onNews(news);
        }
      });
    }
  }

  void setState(FeedsState state, const Reason& reason = {}) {
    if (!changeState(&state_, state, reason) || !options_.onState) return;
    callbacks_.emplace_back([this, change = FeedsStateChange{state, reason.name, reason.line}] {
      options_.onState(change);
    });
  }

  Millis timeUntilDue(Time now) const override {
    constexpr std::chrono::minutes kMax(1);
    if (poll_ != 0 || table_.size() == 0) return kMax;
    const FeedTable::Poll poll = table_.nextPoll(now);
    Time next = std::max(clientWaitEnd_, serverWaitEnd_);
    if (poll.feeds.empty()) next = std::max(next, poll.nextDue);
    return std::clamp<Millis>(std::chrono::ceil<Millis>(next - now), Millis(0), kMax);
  }

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
  Hold pollHold_;
  std::map<std::string, std::string> sentCursors_;  // the cursors of the poll
  std::string cacheableKey_;   // the key of a poll of one feed that a cache can answer; empty: none
  std::string cacheablePath_;  // of a poll that a cache can answer, without its `turn`
  std::string nextCacheTurn_;  // `turn` for the next request with the same path
  std::string sentCacheTurn_;  // `turn` of the poll
  bool isCacheable_ = false;   // a cache can answer the poll
  bool bypassesCache_ = false;     // the next poll bypasses the cache, whose answer was old
  unsigned cachedPings_ = 0;       // pings in a row that came from a cache
  bool isContactInDoubt_ = false;  // contact is in doubt: a request must prove it first
  unsigned pollFailures_ = 0;      // polls with a hold, in a row
  unsigned refusedHold_ = 0;       // seconds: a hold that the server refused; 0: none yet
  Time clientWaitEnd_;             // the earliest next poll, by the client's own wait
  Time serverWaitEnd_;             // the earliest next poll, by the server's wait
};
}  // namespace sprites

#endif  // SPRITES_CLIENT_FEEDS_ENGINE_H_
