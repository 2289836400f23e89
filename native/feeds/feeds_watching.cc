// The watchers: from a request to its answer, the lists of watchers, and their timers.
#include <algorithm>

#include "base/hold.h"
#include "feeds.h"

namespace server {

namespace {

/** Watchers of one feed that are answered before it is the next feed's turn. */
constexpr uint32_t kShare = 64;

/** Watchers that a tick checks for an ended grant. */
constexpr uint32_t kLookShare = 1 << 17;

/** From this length on a value is not written at once: its watcher becomes due. */
constexpr uint32_t kLargeAnswer = 16384;

}  // namespace

// ---- Watching -----------------------------------------------------------------------------------

/**
 * Finds the feed of a request. A feed without a value is fetched, if there is an upstream;
 * otherwise its watchers await it. It counts for the address that asks first.
 */
Outcome Feeds::ask(const Wanted& wanted, const WatchHow& how, Feed** found) {
  const bool tells = !toldBy(wanted.key).empty();
  Feed* feed = lookUp(wanted.key);
  if (tells && !shows() && (feed == nullptr || feed->awaited)) {
    const Outcome outcome = beginPresence(wanted.key);
    if (outcome != Outcome::kOk && outcome != Outcome::kUnknownFeed) return outcome;
    feed = lookUp(wanted.key);
  }
  const bool fetched = shows() || mayBeFetched(wanted.key);
  const bool waits = waitsFor(wanted, how);
  if (feed == nullptr) {
    if (!fetched && !waits) return Outcome::kUnknownFeed;
    if (fetched && draining()) return Outcome::kDraining;
    Source source = kNoSource;
    if (limits_ != nullptr && (source = limits_->fetch(how.from)) == kNoSource) {
      return Outcome::kTooManyFetches;
    }
    feed = create(wanted.key, !fetched);
    if (feed == nullptr) {
      if (limits_ != nullptr) limits_->forget(source);
      return Outcome::kTooManyFeeds;
    }
    feed->upstream = fetched;
    feed->source = source;
  }
  *found = feed;
  asked(feed, how.delta);
  if (feed->awaited) return waits ? Outcome::kOk : Outcome::kUnknownFeed;
  // At a worker, a watcher that waits for a first value asks for more than the others do.
  const bool asks = shows() && waits && !feed->wantedByWaiter;
  if (feed->value || (feed->wanted && !asks)) return Outcome::kOk;
  if (feed->failedUntil > now_) return Outcome{feed->failure};
  feed->wanted = true;
  feed->want = ++lastWant_;
  feed->wantedByWaiter = waits;
  feed->failedUntil = 0;
  // Names that were reported before are lost if the main table had refused the first request.
  if (asks && feed->names) {
    for (const auto& [name, one] : *feed->names) named_.push_back({feed->key, name, true});
  }
  want({.key = feed->key,
        .fetch = true,
        .source = feed->source,
        .number = feed->want,
        .from = how.from,
        .waits = waits});
  return Outcome::kOk;
}

Outcome Feeds::watch(const Wanted* wanted, uint32_t count, const WatchHow& how, uint32_t token,
                     uint32_t* watcher) {
  *watcher = kNoWatcher;
  const uint32_t hold = how.hold == kNoFeedHold ? options_.hold : how.hold;
  if (!isHold(hold, options_.hold)) {
    return Outcome::kBadHold;
  }
  if (watchingInAll() + count > options_.watchers) return Outcome::kTooManyWatchers;
  Feed* feeds[kFeedsAtOnce];
  Outcome problems[kFeedsAtOnce];
  bool unknown = false;
  for (uint32_t i = 0; i < count; ++i) {
    problems[i] = wanted[i].problem;
    if (problems[i] == Outcome::kOk) problems[i] = ask(wanted[i], how, &feeds[i]);
    if (problems[i] == Outcome::kOk && how.last != kNotLast && feeds[i]->value &&
        !feeds[i]->isLog) {
      problems[i] = Outcome::kNotALog;
    }
    if (problems[i] == Outcome::kOk) continue;
    if (!how.many) return problems[i];
    unknown = true;
  }
  ++counts_.polls;
  const uint32_t grant = bindingOf(wanted, count, how.grant);

  // Creates a watcher for each feed, linked in a circle, and checks whether one of them has news.
  uint32_t first = kNoWatcher;
  uint32_t last = kNoWatcher;
  bool news = unknown || draining();
  bool large = false;
  bool ahead = false;
  const Keep keep = keepOf(wanted, count, how);
  for (uint32_t i = 0; i < count; ++i) {
    if (problems[i] != Outcome::kOk) continue;
    const uint32_t number = newWatcher();
    Watcher& one = watchers_[number];
    one = watcherOf(*feeds[i], wanted[i], how);
    one.live = true;
    one.token = token;
    one.keep = keep;
    const bool hasAfter = shows() || one.reads || (options_.shared && one.knew);
    if (hasAfter && !feeds[i]->value) afters_[number] = afterOf(wanted[i], how);
    if (noteAhead(number)) ahead = true;
    if (grant != Grants::kNone) {
      one.grant = grant;
      grants_.watched(grant);
      come(feeds[i], nameOf(wanted[i].key, grant));
    }
    one.sibling = number;
    if (first == kNoWatcher) {
      first = number;
      one.first = true;
    } else {
      watchers_[last].sibling = number;
      one.sibling = first;
    }
    last = number;
    ++feeds[i]->watching;
    if (how.delta) ++feeds[i]->patching;
    ++counts_.watching;
    ++shared_->watching;
    if (how.stream) ++counts_.streams;
    if (hasNews(one)) {
      news = true;
      large = large || newsLength(one) >= kLargeAnswer;
    }
  }
  // The main table answers within microseconds: a list of feeds is answered as a whole.
  const bool together = how.many && first != kNoWatcher && (ahead || awaitsValue(first));
  if (unknown && together && !draining()) {
    for (uint32_t i = 0; i < count; ++i) {
      if (problems[i] != Outcome::kOk)
        refused_[first].push_back({std::string(wanted[i].key), problems[i]});
    }
  } else if (unknown) {
    // A missing feed is reported at once, together with the news of the others.
    begin();
    uint32_t at = first;
    for (uint32_t i = 0; i < count; ++i) {
      if (problems[i] != Outcome::kOk) {
        addProblem(wanted[i].key, problems[i]);
        continue;
      }
      if (hasNews(watchers_[at])) addNews(watchers_[at]);
      at = watchers_[at].sibling;
    }
    joinItems(false);
    deliver(token, {});
    if (first != kNoWatcher) release(first);
    return Outcome::kOk;
  }
  *watcher = first;
  const uint64_t most =
      how.stream ? kCommentEvery : hold * uint64_t{1000} + random(hold * 1000 / kJitterShare);
  arm(first, withinGrant(watchers_[first], most));
  // The head of a stream is sent at once.
  const bool opens = how.stream && (feeds[0]->value || feeds[0]->awaited);
  const bool compression = awaitsCompression(watchers_[first]);
  const bool waits = compression || together || (!news && !opens);
  parkAll(first);
  if (waits && !draining()) return Outcome::kOk;
  if (large && !draining()) {
    // A turn may serve hundreds of requests: large answers have their own share of the turn.
    Feed* const feed = feeds_[watchers_[first].feed].get();
    unhang(first);
    hang(first, List::kDue);
    spread(feed);
    return Outcome::kOk;
  }
  // The answer ends a poll, so that there is no watcher to drop.
  *watcher = how.stream ? first : kNoWatcher;
  serve(first);
  if (how.stream && !watchers_[first].live) *watcher = kNoWatcher;
  return Outcome::kOk;
}

void Feeds::drop(uint32_t watcher) {
  if (watcher < used_ && watchers_[watcher].live) release(watcher);
}

void Feeds::writable(uint32_t watcher) {
  Watcher& one = watchers_[watcher];
  if (!one.live || one.listed) return;
  Feed* const feed = feeds_[one.feed].get();
  // While the server ends, the timer of a slow reader may have fired already.
  if (hasNews(one) || feed->gone || draining() || grantOver(one) != Outcome::kOk) {
    hang(watcher, List::kDue);
    spread(feed);
  } else {
    hang(watcher, List::kParked);
  }
}

/**
 * The version of a watcher with the cursor `after`; 0 for another epoch or a future version. A
 * watcher may be ahead of a worker's table, or of a server of a world: it has its version from
 * elsewhere. The reader of a log has all items before the `after.version` newest, or none for
 * kFromStart.
 */
uint64_t Feeds::seenOf(const Feed& feed, const Watcher& watcher, Cursor after) const {
  if (watcher.reads) {
    const bool back = feed.isLog && after.version != kFromStart;
    return back && after.version < feed.cursor.version ? feed.cursor.version - after.version : 0;
  }
  const bool ours = feed.value && after.epoch == feed.cursor.epoch;
  return ours && (mayBeBehind() || after.version <= feed.cursor.version) ? after.version : 0;
}

/** Returns the watcher of a request, without its place in a list. */
Feeds::Watcher Feeds::watcherOf(const Feed& feed, const Wanted& wanted, const WatchHow& how) const {
  Watcher one = {};
  one.feed = feed.number;
  one.delta = how.delta;
  one.gzip = how.gzip;
  one.stream = how.stream;
  one.many = how.many;
  one.waits = waitsFor(wanted, how);
  one.reads = how.last != kNotLast;
  one.knew = !one.reads && !wanted.after.empty() && wanted.after != kNoCursor;
  one.seen = seenOf(feed, one, afterOf(wanted, how));
  return one;
}

Feeds::Keep Feeds::keepOf(const Wanted* wanted, uint32_t count, const WatchHow& how) const {
  if (options_.cache == 0 || how.posted || how.stream) return Keep::kNot;
  Keep keep = Keep::kLong;
  for (uint32_t i = 0; i < count; ++i) {
    if (isPrivate(wanted[i].key)) return Keep::kNot;
    if (wanted[i].after.empty() || wanted[i].after == kNoCursor) keep = Keep::kShort;
  }
  return keep;
}

std::string Feeds::tagNow(const Wanted* wanted, uint32_t count, const WatchHow& how) {
  if (keepOf(wanted, count, how) == Keep::kNot || draining()) return {};
  std::string tag;
  for (uint32_t i = 0; i < count; ++i) {
    Feed* const feed = lookUp(wanted[i].key);
    if (feed == nullptr || !feed->value) return {};
    const Watcher one = watcherOf(*feed, wanted[i], how);
    if (isNoLog(*feed, one)) return {};
    if (hasNews(one)) appendTag(&tag, i, one);
    asked(feed, how.delta);
  }
  return how.many && !tag.empty() ? shortTag(tag) : tag;
}

/** Whether the newest version is new to the watcher. */
bool Feeds::hasNews(const Watcher& watcher) const {
  const Feed& feed = *feeds_[watcher.feed];
  return feed.value && watcher.seen < feed.cursor.version;
}

/** Returns whether the answer waits for the compressed value. Asks JavaScript for it. */
bool Feeds::awaitsCompression(const Watcher& watcher) {
  Feed& feed = *feeds_[watcher.feed];
  if (!takesGzip(watcher)) return false;
  if (feed.awaited) feed.gzipAsked = true;
  if (!feed.value || feed.value->length() < Feed::kCompressFrom) return false;
  feed.gzipAsked = true;
  if (feed.gzip || feed.gzipFailed || !hasNews(watcher)) return false;
  if (patchFor(feed, watcher) > 0) return false;
  if (!feed.gzipWanted) {
    feed.gzipWanted = true;
    want({feed.key, false, feed.source, feed.cursor});
  }
  return true;
}

void Feeds::want(Want want) {
  wants_.push_back(std::move(want));
  if (busy_) busy_();
}

/** At a worker: whether a feed of a poll is on its way from the main table. */
bool Feeds::awaitsValue(uint32_t first) const {
  return shows() && isAny(first, [](const Watcher&, const Feed& feed) {
           return feed.wanted && !feed.value && !feed.gone;
         });
}

/** At a worker: whether the main table has not said yet whether there is such a feed. With an
 * upstream this is unknown. */
bool Feeds::isUnheard(const Feed& feed) const {
  return shows() && !mayBeFetched(feed.key) && feed.wanted && !feed.value && !feed.gone;
}

/** At a worker: whether the answer waits for the word of the main table. */
bool Feeds::awaitsWord(uint32_t first) const {
  return isAny(first, [this](const Watcher&, const Feed& feed) { return isUnheard(feed); });
}

/** Whether a poll has all versions there are, so that it parks. */
bool Feeds::knowsAll(uint32_t first) const {
  return !isAny(first, [this](const Watcher& one, const Feed& feed) {
    const bool isMissing = feed.gone || feed.failedUntil > 0 || isUnknown(feed, one);
    return hasNews(one) || (!feed.value && isMissing);
  });
}

/** Parks all watchers of a poll. Removes them from other lists. */
void Feeds::parkAll(uint32_t first) {
  for (uint32_t at = first;;) {
    unhang(at);
    park(at);
    at = watchers_[at].sibling;
    if (at == first) return;
  }
}

void Feeds::park(uint32_t watcher) {
  const Watcher& one = watchers_[watcher];
  const Feed& feed = *feeds_[one.feed];
  const bool waits = !feed.value || hasNews(one);
  hang(watcher, waits ? List::kUnready : List::kParked);
}

// ---- The lists of watchers ----------------------------------------------------------------------

uint32_t Feeds::newWatcher() {
  uint32_t number;
  if (freeWatcher_ != 0) {
    number = freeWatcher_ - 1;
    freeWatcher_ = watchers_[number].next;
  } else {
    number = used_++;
  }
  return number;
}

/** Frees the watchers of a poll or stream. */
void Feeds::release(uint32_t watcher) {
  for (uint32_t at = watcher;;) {
    Watcher& one = watchers_[at];
    const uint32_t sibling = one.sibling;
    Feed* const feed = feeds_[one.feed].get();
    unhang(at);
    if (one.first) wheel_.disarm(at);
    if (!afters_.empty()) afters_.erase(at);
    if (!refused_.empty()) refused_.erase(at);
    if (!ahead_.empty()) std::erase(ahead_, at);
    --feed->watching;
    if (one.delta) --feed->patching;
    asked(feed, one.delta);
    if (one.grant != Grants::kNone) {
      go(feed, one.grant);
      grants_.unwatched(one.grant);
    }
    --counts_.watching;
    --shared_->watching;
    if (one.stream) --counts_.streams;
    one.live = false;
    one.next = freeWatcher_;
    freeWatcher_ = at + 1;
    eraseIfOver(feed);
    if (sibling == watcher) return;
    at = sibling;
  }
}

uint32_t Feeds::listOf(const Feed& feed, List list) const {
  return options_.watchers + feed.number * kLists + static_cast<uint32_t>(list);
}

bool Feeds::empty(uint32_t list) const { return watchers_[list].next == list; }

/** Appends a watcher to a list of its feed. */
void Feeds::hang(uint32_t watcher, List which) {
  Watcher& one = watchers_[watcher];
  const uint32_t list = listOf(*feeds_[one.feed], which);
  const uint32_t last = watchers_[list].previous;
  one.next = list;
  one.previous = last;
  one.listed = true;
  watchers_[last].next = watcher;
  watchers_[list].previous = watcher;
}

void Feeds::unhang(uint32_t watcher) {
  Watcher& one = watchers_[watcher];
  if (!one.listed) return;
  watchers_[one.previous].next = one.next;
  watchers_[one.next].previous = one.previous;
  one.listed = false;
}

/** Appends a whole list to the due watchers, in constant time. */
void Feeds::makeDue(Feed* feed, List which) {
  const uint32_t from = listOf(*feed, which);
  if (empty(from)) return;
  const uint32_t due = listOf(*feed, List::kDue);
  const uint32_t first = watchers_[from].next;
  const uint32_t last = watchers_[from].previous;
  const uint32_t before = watchers_[due].previous;
  watchers_[before].next = first;
  watchers_[first].previous = before;
  watchers_[last].next = due;
  watchers_[due].previous = last;
  watchers_[from].next = watchers_[from].previous = from;
  spread(feed);
}

/** Queues a feed, so that `step` answers its due watchers. */
void Feeds::spread(Feed* feed) {
  if (feed->spreading) return;
  feed->spreading = true;
  spreading_.push_back(feed);
  if (busy_) busy_();
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
  while (!spreading_.empty()) {
    Feed* const feed = spreading_.front();
    spreading_.pop_front();
    const uint32_t due = listOf(*feed, List::kDue);
    bool late = false;
    for (uint32_t share = kShare; share > 0 && !late && !empty(due); --share) {
      const uint32_t watcher = watchers_[due].next;
      prefetch(watchers_[watcher].next);
      serve(firstOf(watcher));
      late = clock_() >= end;
    }
    if (!empty(due)) {
      spreading_.push_back(feed);
    } else {
      feed->spreading = false;
      eraseIfOver(feed);
    }
    if (late) break;
  }
  return !spreading_.empty();
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
  if (lookFrom_ < used_) endOver();
  if (!leaving_.empty()) endLeases();
  if (!telling_.empty()) tellDue();
  const bool done = wheel_.sweep(now, kTickBudget, [this](uint32_t watcher) { fire(watcher); });
  return done && lookFrom_ >= used_;
}

// ---- Grants -------------------------------------------------------------------------------------

void Feeds::endGrants(GrantPart part, std::string_view name) {
  if (grants_.end(part, name)) lookFrom_ = 0;
  if (part != GrantPart::kSub) return;
  // A name without watchers is removed at once; other names go with their watchers.
  for (const std::unique_ptr<Feed>& feed : feeds_) {
    if (feed == nullptr || !feed->names) continue;
    const auto found = feed->names->find(name);
    if (found != feed->names->end() && found->second.watching == 0) leave(feed.get(), found);
  }
}

/** Answers a share of the watchers whose grants were ended before their time. */
void Feeds::endOver() {
  const uint32_t end = std::min(used_, lookFrom_ + kLookShare);
  for (; lookFrom_ < end; ++lookFrom_) {
    const Watcher& one = watchers_[lookFrom_];
    const bool waits = one.live && one.first && one.listed;
    if (waits && grantOver(one) != Outcome::kOk) serve(lookFrom_);
  }
}

void Feeds::fire(uint32_t watcher) {
  Watcher& one = watchers_[watcher];
  if (one.stream) {
    const uint64_t quietAt = feeds_[one.feed]->quietAt;
    const bool quiet =
        now_ >= quietAt || hasNews(one) || draining() || grantOver(one) != Outcome::kOk;
    arm(watcher, withinGrant(one, quiet ? kCommentEvery : quietAt - now_));
    // No comment: a slow reader still has bytes to read, or the stream has just had a version.
    if (!one.listed || !quiet) return;
  }
  serve(watcher);
}

void Feeds::drain(uint32_t window) {
  drainWindow_ = window;
  drainEnd_ = now_ + window + 1;
  for (uint32_t watcher = 0; watcher < used_; ++watcher) {
    if (watchers_[watcher].live && watchers_[watcher].first) arm(watcher, random(window));
  }
}

/** When a drained watcher may come back, in milliseconds: after the window, within a second one. */
uint32_t Feeds::retry() {
  return static_cast<uint32_t>((drainEnd_ > now_ ? drainEnd_ - now_ : 0) +
                               random(drainWindow_ + 1));
}

}  // namespace server
