// The watchers: from a request to its answer, the lists of watchers, and their timers.
#include <algorithm>

#include "base/hold.h"
#include "feeds.h"

namespace server {

namespace {

/** Watchers of one feed that are answered before it is the next feed's turn. */
constexpr uint32_t kDueBudget = 64;

/** Watchers that a tick checks for an ended grant. */
constexpr uint32_t kGrantScanBudget = 1 << 17;

/** From this length on a value is not written at once: its watcher becomes due. */
constexpr uint32_t kLargeAnswer = 16384;

}  // namespace

// ---- Watching -----------------------------------------------------------------------------------

/**
 * Finds the feed of a request. A feed without a value is fetched, if there is an upstream;
 * otherwise its watchers await it. It counts for the address that asks first.
 */
Outcome Feeds::findOrRequest(const FeedRequest& request, const WatchOptions& how, Feed** found) {
  const bool isPresence = !presenceSubjectOf(request.key).empty();
  Feed* feed = lookUp(request.key);
  if (isPresence && !isWorkerTable() && (feed == nullptr || feed->isAwaited)) {
    const Outcome outcome = createPresence(request.key);
    if (outcome != Outcome::kOk && outcome != Outcome::kUnknownFeed) return outcome;
    feed = lookUp(request.key);
  }
  const bool isFetched = isWorkerTable() || mayBeFetched(request.key);
  const bool isWaiting = waitsForFirst(request, how);
  if (feed == nullptr) {
    if (!isFetched && !isWaiting) return Outcome::kUnknownFeed;
    if (isFetched && draining()) return Outcome::kDraining;
    Source source = kNoSource;
    if (limits_ != nullptr && (source = limits_->addFeed(how.address)) == kNoSource) {
      return Outcome::kTooManyFetches;
    }
    feed = create(request.key, !isFetched);
    if (feed == nullptr) {
      if (limits_ != nullptr) limits_->removeFeed(source);
      return Outcome::kTooManyFeeds;
    }
    feed->upstream = isFetched;
    feed->source = source;
  }
  *found = feed;
  noteRequest(feed, how.delta);
  if (feed->isAwaited) return isWaiting ? Outcome::kOk : Outcome::kUnknownFeed;
  // At a worker, a watcher that waits for a first value asks for more than the others do.
  const bool mustAsk = isWorkerTable() && isWaiting && !feed->fetchRequestedByWaiter;
  if (feed->value || (feed->fetchRequested && !mustAsk)) return Outcome::kOk;
  if (feed->failedUntil > now_) return Outcome{feed->failure};
  feed->fetchRequested = true;
  feed->fetchTaskNumber = ++lastFetchTask_;
  feed->fetchRequestedByWaiter = isWaiting;
  feed->failedUntil = 0;
  // Names that were reported before are lost if the main table had refused the first request.
  if (mustAsk && feed->names) {
    for (const auto& [name, one] : *feed->names) nameChanges_.push_back({feed->key, name, true});
  }
  addTask({.key = feed->key,
           .fetch = true,
           .source = feed->source,
           .number = feed->fetchTaskNumber,
           .address = how.address,
           .waitsForFirst = isWaiting});
  return Outcome::kOk;
}

Outcome Feeds::watch(const FeedRequest* requests, uint32_t count, const WatchOptions& how,
                     uint32_t token, uint32_t* watcher) {
  *watcher = kNoWatcher;
  uint32_t hold = how.hold == kNoFeedHold ? options_.hold : how.hold;
  if (hold > 0 && !isValidHold(hold, options_.hold)) return Outcome::kBadHold;
  if (watchingInAll() + count > options_.watchers) return Outcome::kTooManyWatchers;
  Feed* feeds[kFeedsAtOnce];
  Outcome problems[kFeedsAtOnce];
  bool hasProblem = false;
  for (uint32_t i = 0; i < count; ++i) {
    problems[i] = requests[i].problem;
    if (problems[i] == Outcome::kOk) problems[i] = findOrRequest(requests[i], how, &feeds[i]);
    if (problems[i] == Outcome::kOk && how.lastItems != kNoLastItems && feeds[i]->value &&
        !feeds[i]->isLog) {
      problems[i] = Outcome::kNotALog;
    }
    if (problems[i] == Outcome::kOk) continue;
    if (!how.hasManyFeeds) return problems[i];
    hasProblem = true;
  }
  ++counts_.polls;
  const uint32_t grant = bindingGrant(requests, count, how.grant);

  // Creates a watcher for each feed, linked in a circle, and checks whether one of them has news.
  uint32_t first = kNoWatcher;
  uint32_t last = kNoWatcher;
  bool news = hasProblem || draining();
  bool isLarge = false;
  bool isAhead = false;
  const CacheLifetime cacheLifetime = cacheLifetimeOf(requests, count, how);
  for (uint32_t i = 0; i < count; ++i) {
    if (problems[i] != Outcome::kOk) continue;
    const uint32_t number = addWatcher(feeds[i], requests[i], how);
    Watcher& one = watchers_[number];
    one.token = token;
    one.cacheLifetime = cacheLifetime;
    if (noteAhead(number)) isAhead = true;
    if (grant != Grants::kNone) {
      one.grant = grant;
      grants_.addWatcher(grant);
      addNamedWatcher(feeds[i], watcherName(requests[i].key, grant));
    }
    if (first == kNoWatcher) first = last = number;
    one.isFirst = number == first;
    watchers_[last].sibling = number;
    one.sibling = first;
    last = number;
    if (hasNews(one)) {
      news = true;
      isLarge = isLarge || newsLength(one) >= kLargeAnswer;
    }
  }
  // The main table answers within microseconds: a list of feeds is answered as a whole.
  const bool waitsForAll =
      how.hasManyFeeds && first != kNoWatcher && (isAhead || awaitsValue(first));
  if (hasProblem && waitsForAll && !draining()) {
    for (uint32_t i = 0; i < count; ++i) {
      if (problems[i] != Outcome::kOk)
        deferredProblems_[first].push_back({std::string(requests[i].key), problems[i]});
    }
  } else if (hasProblem) {
    // A missing feed is reported at once, together with the news of the others.
    beginAnswer();
    uint32_t at = first;
    for (uint32_t i = 0; i < count; ++i) {
      if (problems[i] != Outcome::kOk) {
        addProblem(requests[i].key, problems[i]);
        continue;
      }
      if (hasNews(watchers_[at])) addNews(watchers_[at]);
      at = watchers_[at].sibling;
    }
    joinPieces(false);
    deliver(token, {});
    if (first != kNoWatcher) release(first);
    return Outcome::kOk;
  }
  *watcher = first;
  // Without a hold, the answer about a single feed still waits for a first fetch.
  if (hold == 0 && !how.hasManyFeeds && !feeds[0]->value && mayBeFetched(feeds[0]->key))
    hold = std::min(kShortestHold, options_.hold);
  const uint64_t duration =
      how.stream ? kCommentEvery : hold * uint64_t{1000} + random(hold * 1000 / kJitterShare);
  arm(first, limitToGrant(watchers_[first], duration));
  // The head of a stream is sent at once.
  const bool opens = how.stream && (feeds[0]->value || feeds[0]->isAwaited);
  const bool mustWait = awaitsCompression(watchers_[first]) || waitsForAll || (!news && !opens);
  parkAll(first);
  if (mustWait && !draining()) return Outcome::kOk;
  if (isLarge && !draining()) {
    // A turn may serve hundreds of requests: large answers have their own share of the turn.
    removeFromList(first);
    addToList(first, List::kDue);
    return Outcome::kOk;
  }
  serve(first);
  // The answer ends a poll, so that there is no watcher to drop.
  if (!how.stream || !watchers_[first].isLive) *watcher = kNoWatcher;
  return Outcome::kOk;
}

void Feeds::drop(uint32_t watcher) {
  if (watcher < used_ && watchers_[watcher].isLive) release(watcher);
}

void Feeds::writable(uint32_t watcher) {
  Watcher& one = watchers_[watcher];
  if (!one.isLive || one.isListed) return;
  // While the server ends, the timer of a slow reader may have fired already.
  const bool isDue = hasNews(one) || feeds_[one.feed]->isDeleted || draining() ||
                     grantProblem(one) != Outcome::kOk;
  addToList(watcher, isDue ? List::kDue : List::kParked);
}

/**
 * The version of a watcher with the cursor `after`; 0 for another epoch or a future version. A
 * watcher may be ahead of a worker's table, or of a server of a world: it has its version from
 * elsewhere. The reader of a log has all items before the `after.version` newest, or none for
 * kAllItems.
 */
uint64_t Feeds::seenVersionOf(const Feed& feed, const Watcher& watcher, Cursor after) const {
  if (watcher.readsLog) {
    const bool back = feed.isLog && after.version != kAllItems;
    return back && after.version < feed.cursor.version ? feed.cursor.version - after.version : 0;
  }
  const bool isOurEpoch = feed.value && after.epoch == feed.cursor.epoch;
  return isOurEpoch && (mayBeBehind() || after.version <= feed.cursor.version) ? after.version : 0;
}

/** Returns the watcher of a request, without its place in a list. */
Feeds::Watcher Feeds::watcherOf(const Feed& feed, const FeedRequest& request,
                                const WatchOptions& how) const {
  Watcher one = {};
  one.feed = feed.number;
  one.takesPatches = how.delta;
  one.acceptsGzip = how.gzip;
  one.isStream = how.stream;
  one.hasManyFeeds = how.hasManyFeeds;
  one.waitsForFirst = waitsForFirst(request, how);
  one.readsLog = how.lastItems != kNoLastItems;
  one.hadCursor = !one.readsLog && !request.after.empty() && request.after != kNoCursor;
  one.seenVersion = seenVersionOf(feed, one, cursorOf(request, how));
  return one;
}

Feeds::CacheLifetime Feeds::cacheLifetimeOf(const FeedRequest* requests, uint32_t count,
                                            const WatchOptions& how) const {
  if (options_.cache == 0 || how.isPost || how.stream) return CacheLifetime::kNone;
  CacheLifetime cacheLifetime = CacheLifetime::kLong;
  for (uint32_t i = 0; i < count; ++i) {
    if (isPrivate(requests[i].key)) return CacheLifetime::kNone;
    if (requests[i].after.empty() || requests[i].after == kNoCursor)
      cacheLifetime = CacheLifetime::kShort;
  }
  return cacheLifetime;
}

std::string Feeds::tagNow(const FeedRequest* requests, uint32_t count, const WatchOptions& how) {
  if (cacheLifetimeOf(requests, count, how) == CacheLifetime::kNone || draining()) return {};
  std::string tag;
  for (uint32_t i = 0; i < count; ++i) {
    Feed* const feed = lookUp(requests[i].key);
    if (feed == nullptr || !feed->value) return {};
    const Watcher one = watcherOf(*feed, requests[i], how);
    if (isNoLog(*feed, one)) return {};
    if (hasNews(one)) appendTag(&tag, i, one);
    noteRequest(feed, how.delta);
  }
  return how.hasManyFeeds && !tag.empty() ? shortTag(tag) : tag;
}

/** Whether the newest version is new to the watcher. */
bool Feeds::hasNews(const Watcher& watcher) const {
  const Feed& feed = *feeds_[watcher.feed];
  return feed.value && watcher.seenVersion < feed.cursor.version;
}

/** Returns whether the answer waits for the compressed value. Asks JavaScript for it. */
bool Feeds::awaitsCompression(const Watcher& watcher) {
  Feed& feed = *feeds_[watcher.feed];
  if (!takesGzip(watcher)) return false;
  if (feed.isAwaited) feed.hasGzipReaders = true;
  if (!feed.value || feed.value->length() < Feed::kCompressFrom) return false;
  feed.hasGzipReaders = true;
  if (feed.gzip || feed.gzipFailed || !hasNews(watcher)) return false;
  if (patchFor(feed, watcher) > 0) return false;
  if (!feed.gzipRequested) {
    feed.gzipRequested = true;
    addTask({feed.key, false, feed.source, feed.cursor});
  }
  return true;
}

void Feeds::addTask(Task want) {
  tasks_.push_back(std::move(want));
  if (onBusy_) onBusy_();
}

/** At a worker: whether a feed of a poll is on its way from the main table. */
bool Feeds::awaitsValue(uint32_t first) const {
  return isWorkerTable() && isAnyOfPoll(first, [](const Watcher&, const Feed& feed) {
           return feed.fetchRequested && !feed.value && !feed.isDeleted;
         });
}

/** At a worker: whether the main table has not said yet whether there is such a feed. With an
 * upstream this is unknown. */
bool Feeds::awaitsMainTable(const Feed& feed) const {
  return isWorkerTable() && !mayBeFetched(feed.key) && feed.fetchRequested && !feed.value &&
         !feed.isDeleted;
}

/** At a worker: whether the answer waits for the word of the main table. */
bool Feeds::pollAwaitsMainTable(uint32_t first) const {
  return isAnyOfPoll(first,
                     [this](const Watcher&, const Feed& feed) { return awaitsMainTable(feed); });
}

/** Whether a poll has all versions there are, so that it parks. */
bool Feeds::isUpToDate(uint32_t first) const {
  return !isAnyOfPoll(first, [this](const Watcher& one, const Feed& feed) {
    const bool isMissing = feed.isDeleted || feed.failedUntil > 0 || isUnknown(feed, one);
    return hasNews(one) || (!feed.value && isMissing);
  });
}

/** Parks all watchers of a poll. Removes them from other lists. */
void Feeds::parkAll(uint32_t first) {
  for (uint32_t at = first;;) {
    removeFromList(at);
    park(at);
    at = watchers_[at].sibling;
    if (at == first) return;
  }
}

void Feeds::park(uint32_t watcher) {
  const Watcher& one = watchers_[watcher];
  const Feed& feed = *feeds_[one.feed];
  const bool mustWait = !feed.value || hasNews(one);
  addToList(watcher, mustWait ? List::kUnready : List::kParked);
}

// ---- The lists of watchers ----------------------------------------------------------------------

/** Adds a watcher of one feed. */
uint32_t Feeds::addWatcher(Feed* feed, const FeedRequest& request, const WatchOptions& how) {
  const uint32_t number = freeWatcher_ != 0 ? freeWatcher_ - 1 : used_++;
  Watcher& one = watchers_[number];
  if (freeWatcher_ != 0) freeWatcher_ = one.next;
  one = watcherOf(*feed, request, how);
  one.isLive = true;
  const bool hasAfter = isWorkerTable() || one.readsLog || (options_.inWorld && one.hadCursor);
  if (hasAfter && !feed->value) deferredCursors_[number] = cursorOf(request, how);
  ++feed->watching;
  if (how.delta) ++feed->patching;
  ++counts_.watching;
  ++sharedCounts_->watching;
  if (how.stream) ++counts_.streams;
  return number;
}

/** Frees the watchers of a poll or stream. */
void Feeds::release(uint32_t watcher) {
  for (uint32_t at = watcher;;) {
    Watcher& one = watchers_[at];
    const uint32_t sibling = one.sibling;
    Feed* const feed = feeds_[one.feed].get();
    removeFromList(at);
    if (one.isFirst) wheel_.disarm(at);
    if (!deferredCursors_.empty()) deferredCursors_.erase(at);
    if (!deferredProblems_.empty()) deferredProblems_.erase(at);
    if (!watchersAhead_.empty()) std::erase(watchersAhead_, at);
    --feed->watching;
    if (one.takesPatches) --feed->patching;
    noteRequest(feed, one.takesPatches);
    if (one.grant != Grants::kNone) {
      removeNamedWatcher(feed, one.grant);
      grants_.removeWatcher(one.grant);
    }
    --counts_.watching;
    --sharedCounts_->watching;
    if (one.isStream) --counts_.streams;
    one.isLive = false;
    one.next = freeWatcher_;
    freeWatcher_ = at + 1;
    eraseIfUnused(feed);
    if (sibling == watcher) return;
    at = sibling;
  }
}

uint32_t Feeds::listOf(const Feed& feed, List list) const {
  return options_.watchers + feed.number * kLists + static_cast<uint32_t>(list);
}

bool Feeds::isEmpty(uint32_t list) const { return watchers_[list].next == list; }

/** Appends a watcher to a list of its feed. */
void Feeds::addToList(uint32_t watcher, List which) {
  Watcher& one = watchers_[watcher];
  Feed* const feed = feeds_[one.feed].get();
  const uint32_t list = listOf(*feed, which);
  const uint32_t last = watchers_[list].previous;
  one.next = list;
  one.previous = last;
  one.isListed = true;
  watchers_[last].next = watcher;
  watchers_[list].previous = watcher;
  if (which == List::kDue) queueForStep(feed);
}

void Feeds::removeFromList(uint32_t watcher) {
  Watcher& one = watchers_[watcher];
  if (!one.isListed) return;
  watchers_[one.previous].next = one.next;
  watchers_[one.next].previous = one.previous;
  one.isListed = false;
}

/** Appends a whole list to the due watchers, in constant time. */
void Feeds::makeDue(Feed* feed, List which) {
  const uint32_t from = listOf(*feed, which);
  if (isEmpty(from)) return;
  const uint32_t due = listOf(*feed, List::kDue);
  const uint32_t first = watchers_[from].next;
  const uint32_t last = watchers_[from].previous;
  const uint32_t before = watchers_[due].previous;
  watchers_[before].next = first;
  watchers_[first].previous = before;
  watchers_[last].next = due;
  watchers_[due].previous = last;
  watchers_[from].next = watchers_[from].previous = from;
  queueForStep(feed);
}

/** Queues a feed, so that `step` answers its due watchers. */
void Feeds::queueForStep(Feed* feed) {
  if (feed->isQueued) return;
  feed->isQueued = true;
  feedsWithDue_.push_back(feed);
  if (onBusy_) onBusy_();
}

/**
 * Prefetches the memory of the next watcher of a list while the current one is answered: with many
 * watchers it is in no cache of the processor. The watcher's own line was prefetched a step before.
 */
void Feeds::prefetch(uint32_t watcher) const {
  const Watcher& one = watchers_[watcher];
  __builtin_prefetch(&watchers_[one.next]);
  wheel_.prefetch(watcher);
  responder_->prefetch(one.token);
}

bool Feeds::step(uint64_t budget) {
  const uint64_t end = clock_() + budget;
  while (!feedsWithDue_.empty()) {
    Feed* const feed = feedsWithDue_.front();
    feedsWithDue_.pop_front();
    const uint32_t due = listOf(*feed, List::kDue);
    bool isOutOfTime = false;
    for (uint32_t budget = kDueBudget; budget > 0 && !isOutOfTime && !isEmpty(due); --budget) {
      const uint32_t watcher = watchers_[due].next;
      prefetch(watchers_[watcher].next);
      serve(firstOf(watcher));
      isOutOfTime = clock_() >= end;
    }
    if (!isEmpty(due)) {
      feedsWithDue_.push_back(feed);
    } else {
      feed->isQueued = false;
      eraseIfUnused(feed);
    }
    if (isOutOfTime) break;
  }
  return !feedsWithDue_.empty();
}

// ---- Time ---------------------------------------------------------------------------------------

void Feeds::arm(uint32_t watcher, uint64_t milliseconds) {
  // The timer is never early, even if now_ lags behind.
  wheel_.arm(watcher, now_ + milliseconds + 2 * kFeedTick);
}

uint32_t Feeds::random(uint32_t below) {
  return below == 0 ? 0 : std::uniform_int_distribution<uint32_t>(0, below - 1)(random_);
}

bool Feeds::tick(uint64_t now) {
  now_ = now;
  if (grantScanFrom_ < used_) serveEndedGrants();
  if (!nameLeases_.empty()) endNameLeases();
  if (!presenceSchedule_.empty()) updateDuePresences();
  const bool done = wheel_.sweep(now, kTickBudget, [this](uint32_t watcher) { onTimer(watcher); });
  return done && grantScanFrom_ >= used_;
}

// ---- Grants -------------------------------------------------------------------------------------

void Feeds::endGrants(GrantPart part, std::string_view name) {
  if (grants_.endByPart(part, name)) grantScanFrom_ = 0;
  if (part != GrantPart::kSub) return;
  // A name without watchers is removed at once; other names go with their watchers.
  for (const std::unique_ptr<Feed>& feed : feeds_) {
    if (feed == nullptr || !feed->names) continue;
    const auto found = feed->names->find(name);
    if (found != feed->names->end() && found->second.watching == 0) endName(feed.get(), found);
  }
}

/** Answers a share of the watchers whose grants were ended before their time. */
void Feeds::serveEndedGrants() {
  const uint32_t end = std::min(used_, grantScanFrom_ + kGrantScanBudget);
  for (; grantScanFrom_ < end; ++grantScanFrom_) {
    const Watcher& one = watchers_[grantScanFrom_];
    const bool mustWait = one.isLive && one.isFirst && one.isListed;
    if (mustWait && grantProblem(one) != Outcome::kOk) serve(grantScanFrom_);
  }
}

void Feeds::onTimer(uint32_t watcher) {
  Watcher& one = watchers_[watcher];
  if (one.isStream) {
    const uint64_t quietAt = feeds_[one.feed]->commentDueAt;
    const bool quiet =
        now_ >= quietAt || hasNews(one) || draining() || grantProblem(one) != Outcome::kOk;
    arm(watcher, limitToGrant(one, quiet ? kCommentEvery : quietAt - now_));
    // No comment: a slow reader still has bytes to read, or the stream has just had a version.
    if (!one.isListed || !quiet) return;
  }
  serve(watcher);
}

void Feeds::drain(uint32_t window) {
  drainWindow_ = window;
  drainEnd_ = now_ + window + 1;
  for (uint32_t watcher = 0; watcher < used_; ++watcher) {
    if (watchers_[watcher].isLive && watchers_[watcher].isFirst) arm(watcher, random(window));
  }
}

/** When a drained watcher may come back, in milliseconds: after the window, within a second one. */
uint32_t Feeds::retryDelay() {
  return static_cast<uint32_t>((drainEnd_ > now_ ? drainEnd_ - now_ : 0) +
                               random(drainWindow_ + 1));
}

}  // namespace server
