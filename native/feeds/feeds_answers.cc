// The answers: the pieces of a body, for a poll, for a poll of many feeds, and for a stream.
#include <algorithm>

#include "base/digits.h"
#include "base/hold.h"
#include "feeds.h"

namespace server {

namespace {

void appendFeed(std::string* to, std::string_view key) {
  *to += "{\"feed\":\"";
  *to += key;
  *to += '"';
}

void appendCursor(std::string* to, std::string_view name, Cursor cursor) {
  *to += ",\"";
  *to += name;
  *to += "\":\"";
  cursor.appendTo(to);
  *to += '"';
}

/** How long a cache may keep the newest version, in seconds. */
constexpr uint32_t kFreshNewest = 1;

/** Interval of a worker's looks for the word of the main table, in milliseconds; usually the word
 * comes within microseconds. */
constexpr uint64_t kMainTableCheckEvery = 1000;

}  // namespace

/** Returns the first watcher of a poll, which has the timer, given any of its watchers. */
uint32_t Feeds::firstOf(uint32_t watcher) const {
  while (!watchers_[watcher].isFirst) watcher = watchers_[watcher].sibling;
  return watcher;
}

/** Begins the body of an answer. */
void Feeds::beginAnswer() {
  envelope_.clear();
  pieces_.clear();
  isCompressed_ = mayCompress_ = false;
}

/** Appends to the envelope. Its memory never moves: earlier pieces stay valid. */
template <typename Write>
std::string_view Feeds::appendToEnvelope(Write&& write) {
  const size_t begin = envelope_.size();
  write(&envelope_);
  return std::string_view(envelope_).substr(begin);
}

void Feeds::addTextPiece(std::string_view text) { pieces_.push_back({text, nullptr, 0, 0, {}}); }

/** Returns the part of a log for a watcher with news. */
LogPart Feeds::partFor(const Feed& feed, const Watcher& watcher) const {
  LogPart part = feed.partAfter(watcher.seenVersion, options_.answerBytes);
  if (watcher.hadCursor && watcher.seenVersion == 0) part.gap = true;
  return part;
}

/** Length of what `addNews` adds, without its head. */
uint32_t Feeds::newsLength(const Watcher& watcher) const {
  const Feed& feed = *feeds_[watcher.feed];
  if (!feed.isLog) return feed.value->length();
  const LogPart part = partFor(feed, watcher);
  return part.end - part.begin;
}

/**
 * Adds the newest version for a watcher with `watcher.seen`: a value, a patch or items.
 * @return the version that the watcher has then
 */
uint64_t Feeds::addNews(const Watcher& watcher) {
  Feed& feed = *feeds_[watcher.feed];
  if (feed.isLog) {
    ++counts_.patches;
    mayCompress_ = true;
    const LogPart part = partFor(feed, watcher);
    const auto head = appendToEnvelope([&](std::string* text) { feed.appendHead(text, part); });
    pieces_.push_back({head, feed.history.get(), part.begin, part.end, "]}"});
    return part.to;
  }
  if (watcher.seenVersion > 0 && watcher.seenVersion < feed.cursor.version) {
    counts_.skipped += feed.cursor.version - watcher.seenVersion - 1;
  }
  if (const uint64_t from = patchFor(feed, watcher); from > 0) {
    ++counts_.patches;
    mayCompress_ = true;
    const auto begin = static_cast<uint32_t>(feed.patchesFrom(from)) + 1;
    const auto before = appendToEnvelope([&](std::string* text) {
      appendFeed(text, feed.key);
      appendCursor(text, "from", {feed.cursor.epoch, from});
      appendCursor(text, "cursor", feed.cursor);
      *text += ",\"patch\":[";
    });
    pieces_.push_back({before, feed.history.get(), begin, feed.historyEnd, "]}"});
    return feed.cursor.version;
  }
  ++counts_.documents;
  if (takesGzip(watcher) && feed.gzip) {
    isCompressed_ = true;
    pieces_.push_back({{}, feed.gzip.get(), 0, feed.gzip->length(), {}});
    return feed.cursor.version;
  }
  const auto before = appendToEnvelope([&](std::string* text) { feed.appendHead(text); });
  pieces_.push_back({before, feed.value.get(), 0, feed.value->length(), "}"});
  return feed.cursor.version;
}

void Feeds::addProblem(std::string_view key, Outcome problem) {
  addTextPiece(appendToEnvelope([&](std::string* text) {
    appendFeed(text, key);
    *text += ",\"problem\":\"";
    *text += kOutcomeNames[static_cast<size_t>(problem)];
    *text += "\"}";
  }));
}

/** Joins the items of many feeds into one document. */
void Feeds::joinPieces(bool turns) {
  mayCompress_ = true;
  const auto end = appendToEnvelope([&](std::string* text) {
    *text += ']';
    appendTurnOrRetry(text, turns);
    *text += '}';
  });
  joinedPieces_.clear();
  joinedPieces_.push_back({"{\"items\":[", nullptr, 0, 0, {}});
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (i > 0) joinedPieces_.push_back({",", nullptr, 0, 0, {}});
    joinedPieces_.push_back(pieces_[i]);
  }
  joinedPieces_.push_back({end, nullptr, 0, 0, {}});
  pieces_.swap(joinedPieces_);
}

/** Returns the version from which a watcher gets a patch; 0: it gets the value. */
uint64_t Feeds::patchFor(const Feed& feed, const Watcher& watcher) const {
  return watcher.takesPatches && feed.hasShorterPatches(watcher.seenVersion) ? watcher.seenVersion
                                                                             : 0;
}

/**
 * Appends the tag of what `addNews` adds for a watcher. In a poll for many feeds the watcher has
 * this `place`, and the answer has the `shortTag` of all.
 */
void Feeds::appendTag(std::string* text, uint32_t place, const Watcher& watcher) const {
  const Feed& feed = *feeds_[watcher.feed];
  if (watcher.hasManyFeeds) {
    base::appendDigits(text, place);
    *text += ':';
  }
  if (feed.isLog) return feed.appendTag(text, partFor(feed, watcher));
  const uint64_t from = patchFor(feed, watcher);
  feed.appendTag(text, from, from == 0 && takesGzip(watcher) && feed.gzip);
}

/** Returns the hash of a tag (FNV-1a). */
std::string Feeds::shortTag(std::string_view text) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char c : text) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  std::string tag;
  base::appendDigits(&tag, sum, 36);
  return tag;
}

/** Appends the turn of the next request, or, while the server ends, its `retry`. */
void Feeds::appendTurnOrRetry(std::string* text, bool turns) {
  if (turns) {
    *text += ",\"turn\":\"";
    appendTurn(text);
    *text += '"';
  }
  if (!draining()) return;
  *text += ",\"retry\":";
  base::appendDigits(text, retryDelay());
}

/**
 * Appends a turn: the time at which a hold ended, in units of the shortest hold. A hold that begins
 * with a turn ends in a later one. All clients whose holds end in one turn request the same URL
 * next.
 */
void Feeds::appendTurn(std::string* text) const {
  base::appendDigits(text, (wallClockAtZero_ + now_) / (uint64_t{1000} * kShortestHold), 36);
}

FeedResponder::WriteResult Feeds::deliver(uint32_t token, FeedAnswer answer) {
  answer.pieces = pieces_.data();
  answer.count = static_cast<uint32_t>(pieces_.size());
  answer.gzip = isCompressed_;
  return responder_->answer(token, answer);
}

/** Answers a due poll, or writes to a due stream. */
void Feeds::serve(uint32_t first) {
  if (watchers_[first].isStream) {
    serveStream(first);
  } else {
    servePoll(first);
  }
}

void Feeds::servePoll(uint32_t first) {
  const Watcher one = watchers_[first];
  const Feed& feed = *feeds_[one.feed];
  const Outcome grantOutcome = grantProblem(one);
  const bool mayWait = grantOutcome == Outcome::kOk && mayBeBehind() && !draining();
  if (mayWait && wheel_.isArmed(first)) {
    const bool waits = one.hasManyFeeds && awaitsValue(first);
    if (waits || (isUpToDate(first) && !deferredProblems_.contains(first))) return parkAll(first);
  } else if (mayWait && pollAwaitsMainTable(first)) {
    arm(first, limitToGrant(one, kMainTableCheckEvery));
    return parkAll(first);
  }
  beginAnswer();
  FeedAnswer answer;
  // How long a cache may keep the answer, and its tag.
  bool isCacheable = one.cacheLifetime != CacheLifetime::kNone && !draining();
  bool isPing = false;
  std::string tag;
  if (grantOutcome != Outcome::kOk) {
    answer.outcome = grantOutcome;
  } else if (one.hasManyFeeds) {
    const auto addFailure = [&](std::string_view key, Outcome why) {
      addProblem(key, why);
      isCacheable = false;
    };
    if (const auto found = deferredProblems_.find(first); found != deferredProblems_.end()) {
      for (const auto& [key, why] : found->second) addFailure(key, why);
    }
    for (uint32_t at = first, place = 0;; ++place) {
      const Watcher& each = watchers_[at];
      const Feed& eachFeed = *feeds_[each.feed];
      if (eachFeed.isDeleted || (!eachFeed.value && eachFeed.failedUntil > 0)) {
        addFailure(eachFeed.key, Outcome{eachFeed.failure});
      } else if (isUnknown(eachFeed, each)) {
        addFailure(eachFeed.key, Outcome::kUnknownFeed);
      } else if (hasNews(each)) {
        if (isCacheable) appendTag(&tag, place, each);
        addNews(each);
      }
      at = each.sibling;
      if (at == first) break;
    }
    isPing = pieces_.empty();
    if (!isPing && isCacheable) tag = shortTag(tag);
    joinPieces(isPing && isCacheable);
  } else if (feed.isDeleted) {
    answer.outcome = Outcome{feed.failure};
  } else if (isUnknown(feed, one)) {
    answer.outcome = Outcome::kUnknownFeed;
  } else if (!feed.value && !feed.isAwaited) {
    // The hold ended before the first fetch: for this watcher the fetch has failed.
    const Outcome why = feed.failedUntil > 0 ? Outcome{feed.failure} : Outcome::kUpstreamFailed;
    answer.outcome = draining() ? Outcome::kDraining : why;
  } else if (isNoLog(feed, one)) {
    answer.outcome = Outcome::kNotALog;
  } else if (hasNews(one)) {
    if (isCacheable) appendTag(&tag, 0, one);
    addNews(one);
  } else {
    isPing = true;
    // A watcher that is ahead of this table keeps its cursor.
    const Cursor cursor = {feed.cursor.epoch, std::max(feed.cursor.version, one.seenVersion)};
    addTextPiece(appendToEnvelope([&](std::string* text) {
      appendFeed(text, feed.key);
      appendCursor(text, "cursor", cursor);
      appendTurnOrRetry(text, isCacheable);
      *text += '}';
    }));
    if (isCacheable) {
      cursor.appendTo(&tag);
      tag += '.';
    }
  }
  if (isPing) ++counts_.pings;
  answer.mayCompress = mayCompress_ && one.acceptsGzip;
  if (isCacheable && answer.outcome == Outcome::kOk) {
    if (isPing) appendTurn(&(tag += "turn-"));
    const bool isShort = one.cacheLifetime == CacheLifetime::kShort && !isPing;
    answer.cacheSeconds = isShort ? std::min(kFreshNewest, options_.cache) : options_.cache;
    answer.tag = tag;
  }
  // The answer points into the feed, which may go with its last watcher: the watcher is freed last.
  deliver(one.token, answer);
  release(first);
}

void Feeds::serveStream(uint32_t first) {
  Watcher& one = watchers_[first];
  const Feed& feed = *feeds_[one.feed];
  const Outcome grantOutcome = grantProblem(one);
  if (grantOutcome == Outcome::kOk && !draining() && pollAwaitsMainTable(first))
    return parkAll(first);
  applyDeferredCursor(first);
  beginAnswer();
  isCompressed_ = one.acceptsGzip;
  FeedAnswer answer;
  answer.isEvent = true;
  if (grantOutcome != Outcome::kOk) {
    answer.outcome = grantOutcome;
  } else if (feed.isDeleted) {
    answer.outcome = Outcome{feed.failure};
  } else if (!feed.value && !feed.isAwaited) {
    answer.outcome = feed.failedUntil > 0 ? Outcome{feed.failure} : Outcome::kUpstreamFailed;
  } else if (draining()) {
    answer.endsStream = true;
    answer.retry = retryDelay();
  } else if (isNoLog(feed, one)) {
    answer.outcome = Outcome::kNotALog;
  } else if (hasNews(one)) {
    one.seenVersion = addNews(one);
    const Cursor cursor = {feed.cursor.epoch, one.seenVersion};
    answer.cursor = appendToEnvelope([&](std::string* text) { cursor.appendTo(text); });
  }
  if (answer.outcome != Outcome::kOk) {
    addProblem(feed.key, answer.outcome);
    answer.endsStream = true;
  }
  removeFromList(first);
  const uint32_t token = one.token;
  if (answer.endsStream) {
    deliver(token, answer);
    release(first);
    return;
  }
  switch (deliver(token, answer)) {
    case FeedResponder::WriteResult::kWhole:
      // A log may have more items.
      return addToList(first, hasNews(one) ? List::kDue : List::kParked);
    case FeedResponder::WriteResult::kInPart:
      return;
    case FeedResponder::WriteResult::kLost:
      return release(first);
  }
}

}  // namespace server
