#include "feeds_engine.h"

#include <algorithm>
#include <utility>

#include "engine_base.h"
#include "json.h"

namespace sprites {

namespace {

constexpr unsigned kFeedHold = 55;  // seconds: many proxies cut off what is silent for a minute

/** Most cached pings in a row after which the client asks at once: a cache has kept few turns. */
constexpr unsigned kTurnsAtOnce = 8;

/** Longest path that every cache accepts, in characters; a longer one becomes a POST. */
constexpr size_t kAddressMost = 4000;

/** Returns the path of a poll. Equal polls have equal paths, so that a cache can answer. */
std::string pathOf(const std::map<std::string, std::string>& feeds, unsigned hold, bool delta) {
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
  if (hold > 0) path += "&hold=" + std::to_string(hold);
  return delta ? path + "&delta=1" : path;
}

std::string bodyOf(const std::map<std::string, std::string>& feeds, unsigned hold, bool delta) {
  std::string text = "{";
  if (hold > 0) text += "\"hold\":" + std::to_string(hold) + ",";
  if (delta) text += "\"delta\":true,";
  text += "\"feeds\":{";
  bool first = true;
  for (const auto& [key, cursor] : feeds) {
    if (!std::exchange(first, false)) text += ',';
    text += json::quote(key) + ":" + json::quote(cursor);
  }
  return text + "}}";
}

}  // namespace

FeedsEngine::FeedsEngine(FeedsOptions options, GrantCallback grant)
    : EngineBase(options, options.maxAnswerBytes),
      options_(std::move(options)),
      grant_(std::move(grant)),
      table_([this](uint64_t failures) { return backoff(failures); }) {
  holdMost_ = kFeedHold;
}

// ---- for any thread

Feeds::WatchId FeedsEngine::watch(std::string key, FeedKind kind, FeedHeld held, TellNews tell) {
  Feeds::WatchId watch = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    watch = ++lastWatch_;
    inbox_.push_back({watch, std::move(key), kind, std::move(held), false});
    watches_[watch] = std::move(tell);
  }
  wake();
  return watch;
}

void FeedsEngine::unwatch(Feeds::WatchId watch) {
  Watches::node_type ended;  // outlives the lock: destructors of the callback may call this client
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended = watches_.extract(watch);
    if (!ended) return;
    inbox_.push_back({watch, {}, {}, {}, true});
  }
  wake();
}

void FeedsEngine::close() {
  Watches ended;  // outlives the lock, too
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended.swap(watches_);
    for (const auto& [watch, tell] : ended) inbox_.push_back({watch, {}, {}, {}, true});
  }
  wake();
}

// ---- the turn

bool FeedsEngine::turn(Millis timeout) {
  runTurn(timeout);
  return true;
}

Millis FeedsEngine::timeout() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!inbox_.empty() || tryNowRequested_) return Millis(0);
  }
  if (!callbacks_.empty()) return Millis(0);
  return std::min(timeUntilDue(Clock::now()), transport_.timeout());
}

void FeedsEngine::readInbox(Time now) {
  std::vector<Wanted> wanted;
  bool tryNow = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    wanted.swap(inbox_);
    tryNow = std::exchange(tryNowRequested_, false);
  }
  bool more = false;
  for (Wanted& each : wanted) {
    if (each.ends) {
      table_.remove(each.watch);
      if (table_.size() == 0) changed(now);
    } else if (table_.add(each.watch, each.key, each.kind, std::move(each.held))) {
      more = true;
      if (state() == FeedsState::kIdle) changed(now);
    }
  }
  tellNews();
  if (more) changed(now);
  if (!tryNow || table_.size() == 0) return;
  table_.hurry();
  doubt_ = true;
  next_ = now;
  if (poll_ != 0 && now - pollStarted_ >= kEarlyAnswer) transport_.cancel(std::exchange(poll_, 0));
}

/** Ends the poll, as more feeds are watched, or none any more. */
void FeedsEngine::changed(Time now) {
  transport_.cancel(std::exchange(poll_, 0));
  if (table_.size() == 0) {
    setState(FeedsState::kIdle);
  } else if (state() == FeedsState::kIdle) {
    failures_ = 0;
    doubt_ = true;
    next_ = now;
    setState(FeedsState::kAsking);
  } else if (state() != FeedsState::kOffline) {
    next_ = now;  // else offline: the wait after a failure holds for all feeds
  }
}

void FeedsEngine::startDueRequests(Time now) {
  if (!callbacks_.empty() || poll_ != 0 || now < next_ || now < open_) return;
  FeedTable::Poll poll = table_.nextPoll(now);
  if (poll.feeds.empty()) return;
  const std::optional<std::string> header = grant_.header();
  now = Clock::now();  // the program's callback may have been slow
  if (!header) {
    next_ = now + nextBackoff();
    doubt_ = true;
    setState(FeedsState::kOffline, noGrantReason());
    return;
  }
  pollHold_ = holdUntil(poll.next, now);
  Request request;
  std::string path = pathOf(poll.feeds, pollHold_, options_.patches);
  byCache_ =
      options_.cached && !grant_ && !std::exchange(direct_, false) && path.size() <= kAddressMost;
  asking_ = byCache_ && poll.feeds.size() == 1 ? poll.feeds.begin()->first : "";
  const std::string turn = std::exchange(turn_, {});
  const std::string before = std::exchange(path_, {});
  askedTurn_.clear();
  if (byCache_) {
    path_ = std::move(path);
    if (path_ == before) askedTurn_ = turn;
    request.method = Method::kGet;
    request.path = askedTurn_.empty() ? path_ : path_ + "&turn=" + askedTurn_;
  } else {
    request.method = Method::kPost;
    request.path = "/feeds";
    request.body = bodyOf(poll.feeds, pollHold_, options_.patches);
  }
  request.timeout = pollTimeout(pollHold_ > 0 ? pollHold_ : kUsualHold);
  asked_ = std::move(poll.feeds);
  pollStarted_ = now;
  poll_ = transport_.start(request, *header);
}

/** Returns the poll's hold in seconds; 0: the server chooses. The next feed that the poll leaves
 * out is due at `next`. */
unsigned FeedsEngine::holdUntil(Time next, Time now) const {
  unsigned hold = doubt_ ? kShortestHold : holdMost_;
  if (next != Time::max()) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(next - now).count();
    // `next` may be past: the program may have been slow to return a grant.
    hold = static_cast<unsigned>(std::clamp<int64_t>(seconds, kShortestHold, hold));
  }
  return holdRefused_ > 0 && hold >= holdRefused_ ? 0 : hold;
}

void FeedsEngine::readReplies(Time now) {
  for (const Reply& reply : transport_.takeReplies()) {
    log(reply);
    if (reply.id != poll_) continue;
    poll_ = 0;
    const auto parked = now - pollStarted_;
    if (parked >= kLongPark) grant_.accepted();  // the server let it park
    const bool wasCut = recordPollEnd(reply, parked);
    std::optional<FeedsAnswer> answer = answerOf(reply);
    if (answer) {
      onAnswer(std::move(*answer), now);
    } else {
      onFailure(reply, wasCut, now);
    }
  }
}

/** Returns the answer about feeds in a reply, if it has one. */
std::optional<FeedsAnswer> FeedsEngine::answerOf(const Reply& reply) const {
  if (asking_.empty()) return reply.status == 200 ? readFeeds(reply.body) : std::nullopt;
  FeedsAnswer answer;
  // Problems of the feed, not of the request.
  const Problem problem = readProblem(reply.body);
  for (const char* name : {"unknown-feed", "upstream-failed", "grant-required"}) {
    if (reply.status < 400 || !isProblem(problem, name)) continue;
    answer.items.emplace_back();
    answer.items.front().feed = asking_;
    answer.items.front().problem = name;
    return answer;
  }
  return reply.status == 200 ? readFeed(reply.body) : std::nullopt;
}

void FeedsEngine::onAnswer(FeedsAnswer answer, Time now) {
  grant_.accepted();
  doubt_ = false;
  setState(FeedsState::kOnline);
  const auto isOlder = [this](const auto& item) { return table_.isOlder(item); };
  if (byCache_ && std::any_of(answer.items.begin(), answer.items.end(), isOlder)) {
    direct_ = true;
    next_ = now + nextBackoff();
    return;
  }
  const bool isNews = table_.take(std::move(answer.items), asked_, now);
  tellNews();
  if (answer.retry > Millis(0)) open_ = now + answer.retry;
  if (isNews || answer.retry > Millis(0) || now - pollStarted_ >= kEarlyAnswer) {
    failures_ = 0;
    turns_ = 0;
    if (!isNews) turn_ = answer.turn;
    return;
  }
  turn_ = answer.turn;
  // The ping came from a cache: with the new turn the next path is another.
  if (!turn_.empty() && turn_ != askedTurn_ && ++turns_ <= kTurnsAtOnce) return;
  // An empty answer should come at the end of the hold. A sender of early ones is not hammered.
  next_ = now + nextBackoff();
}

/** Handles a missing or unusable answer. */
void FeedsEngine::onFailure(const Reply& reply, bool wasCut, Time now) {
  const Problem problem = readProblem(reply.body);
  if (grant_.refused(problem)) return;  // a new grant is asked for at once
  const Reason why = reasonOf(reply, problem);
  next_ = now + nextBackoff();
  if (isProblem(problem, "bad-hold") && pollHold_ > 0) {
    holdRefused_ = pollHold_;  // the answer came at once: there is contact
    return;
  }
  if (isProblem(problem, "bad-cursor")) table_.forgetCursors();
  // A poll that was cut off after a long time does not prove that contact is lost.
  if (!wasCut || doubt_ || state() != FeedsState::kOnline) setState(FeedsState::kOffline, why);
  doubt_ = true;
  if (reply.retryAfter > Millis(0)) open_ = now + serverWait(reply.retryAfter, failures_);
}

// ---- telling

void FeedsEngine::tellNews() {
  for (FeedNews& news : table_.news()) {
    callbacks_.emplace_back([this, news = std::move(news)] {
      for (const Feeds::WatchId watch : news.watches) {
        TellNews tell;
        {
          const std::lock_guard<std::mutex> lock(mutex_);
          const auto found = watches_.find(watch);
          if (found == watches_.end()) continue;  // the watch has ended meanwhile
          tell = news.ends ? std::move(found->second) : found->second;
          if (news.ends) watches_.erase(found);
        }
        tell(news);
      }
    });
  }
}

void FeedsEngine::setState(FeedsState state, const Reason& why) {
  if (!changeState(&state_, state, why) || !options_.onState) return;
  callbacks_.emplace_back(
      [this, told = FeedsStateChange{state, why.name, why.line}] { options_.onState(told); });
}

// ---- waits

Millis FeedsEngine::timeUntilDue(Time now) const {
  constexpr std::chrono::minutes kMost(1);
  if (poll_ != 0 || table_.size() == 0) return kMost;
  const FeedTable::Poll poll = table_.nextPoll(now);
  Time next = std::max(next_, open_);
  if (poll.feeds.empty()) next = std::max(next, poll.next);
  return std::clamp<Millis>(std::chrono::ceil<Millis>(next - now), Millis(0), kMost);
}

}  // namespace sprites
