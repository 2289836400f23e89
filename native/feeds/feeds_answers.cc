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
constexpr uint64_t kWordEvery = 1000;

}  // namespace

/** Returns the first watcher of a poll, which has the timer, given any of its watchers. */
uint32_t Feeds::firstOf(uint32_t watcher) const {
  while (!watchers_[watcher].first) watcher = watchers_[watcher].sibling;
  return watcher;
}

/** Begins the body of an answer. */
void Feeds::begin() {
  envelope_.clear();
  items_.clear();
  gzip_ = packs_ = false;
}

/** Appends to the envelope. Its memory never moves: earlier pieces stay valid. */
template <typename Write>
std::string_view Feeds::envelope(Write&& write) {
  const size_t begin = envelope_.size();
  write(&envelope_);
  return std::string_view(envelope_).substr(begin);
}

void Feeds::addText(std::string_view text) { items_.push_back({text, nullptr, 0, 0, {}}); }

/** Returns the part of a log for a watcher with news. */
LogPart Feeds::partFor(const Feed& feed, const Watcher& watcher) const {
  LogPart part = feed.partAfter(watcher.seen, options_.answerBytes);
  if (watcher.knew && watcher.seen == 0) part.gap = true;
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
    packs_ = true;
    const LogPart part = partFor(feed, watcher);
    const auto head = envelope([&](std::string* text) { feed.appendHead(text, part); });
    items_.push_back({head, feed.log.get(), part.begin, part.end, "]}"});
    return part.to;
  }
  if (watcher.seen > 0 && watcher.seen < feed.cursor.version) {
    counts_.skipped += feed.cursor.version - watcher.seen - 1;
  }
  if (const uint64_t from = patchFor(feed, watcher); from > 0) {
    ++counts_.patches;
    packs_ = true;
    const auto begin = static_cast<uint32_t>(feed.patchesFrom(from)) + 1;
    const auto before = envelope([&](std::string* text) {
      appendFeed(text, feed.key);
      appendCursor(text, "from", {feed.cursor.epoch, from});
      appendCursor(text, "cursor", feed.cursor);
      *text += ",\"patch\":[";
    });
    items_.push_back({before, feed.log.get(), begin, feed.logEnd, "]}"});
    return feed.cursor.version;
  }
  ++counts_.documents;
  if (takesGzip(watcher) && feed.gzip) {
    gzip_ = true;
    items_.push_back({{}, feed.gzip.get(), 0, feed.gzip->length(), {}});
    return feed.cursor.version;
  }
  const auto before = envelope([&](std::string* text) { feed.appendHead(text); });
  items_.push_back({before, feed.value.get(), 0, feed.value->length(), "}"});
  return feed.cursor.version;
}

void Feeds::addProblem(std::string_view key, Outcome problem) {
  addText(envelope([&](std::string* text) {
    appendFeed(text, key);
    *text += ",\"problem\":\"";
    *text += kOutcomeNames[static_cast<size_t>(problem)];
    *text += "\"}";
  }));
}

/** Joins the items of many feeds into one document. */
void Feeds::joinItems(bool turns) {
  packs_ = true;
  const auto end = envelope([&](std::string* text) {
    *text += ']';
    appendNext(text, turns);
    *text += '}';
  });
  joined_.clear();
  joined_.push_back({"{\"items\":[", nullptr, 0, 0, {}});
  for (size_t i = 0; i < items_.size(); ++i) {
    if (i > 0) joined_.push_back({",", nullptr, 0, 0, {}});
    joined_.push_back(items_[i]);
  }
  joined_.push_back({end, nullptr, 0, 0, {}});
  items_.swap(joined_);
}

/** Returns the version from which a watcher gets a patch; 0: it gets the value. */
uint64_t Feeds::patchFor(const Feed& feed, const Watcher& watcher) const {
  return watcher.delta && feed.remembers(watcher.seen) ? watcher.seen : 0;
}

/**
 * Appends the tag of what `addNews` adds for a watcher. In a poll for many feeds the watcher has
 * this `place`, and the answer has the `shortTag` of all.
 */
void Feeds::appendTag(std::string* text, uint32_t place, const Watcher& watcher) const {
  const Feed& feed = *feeds_[watcher.feed];
  if (watcher.many) {
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
void Feeds::appendNext(std::string* text, bool turns) {
  if (turns) {
    *text += ",\"turn\":\"";
    appendTurn(text);
    *text += '"';
  }
  if (!draining()) return;
  *text += ",\"retry\":";
  base::appendDigits(text, retry());
}

/**
 * Appends a turn: the time at which a hold ended, in units of the shortest hold. A hold that begins
 * with a turn ends in a later one. All clients whose holds end in one turn request the same URL
 * next.
 */
void Feeds::appendTurn(std::string* text) const {
  base::appendDigits(text, (wallAt_ + now_) / (uint64_t{1000} * kShortestHold), 36);
}

FeedResponder::Taken Feeds::deliver(uint32_t token, FeedAnswer answer) {
  answer.items = items_.data();
  answer.count = static_cast<uint32_t>(items_.size());
  answer.gzip = gzip_;
  return responder_->answer(token, answer);
}

/** Answers a due poll, or writes to a due stream. */
void Feeds::serve(uint32_t first) {
  if (watchers_[first].stream) {
    serveStream(first);
  } else {
    servePoll(first);
  }
}

void Feeds::servePoll(uint32_t first) {
  const Watcher one = watchers_[first];
  const Feed& feed = *feeds_[one.feed];
  const Outcome over = grantOver(one);
  const bool mayWait = over == Outcome::kOk && mayBeBehind() && !draining();
  if (mayWait && wheel_.armed(first)) {
    const bool waits = one.many && awaitsValue(first);
    if (waits || (knowsAll(first) && !refused_.contains(first))) return parkAll(first);
  } else if (mayWait && awaitsWord(first)) {
    arm(first, withinGrant(one, kWordEvery));
    return parkAll(first);
  }
  begin();
  FeedAnswer answer;
  // How long a cache may keep the answer, and its tag.
  bool cached = one.keep != Keep::kNot && !draining();
  bool isPing = false;
  std::string tag;
  if (over != Outcome::kOk) {
    answer.outcome = over;
  } else if (one.many) {
    const auto refuse = [&](std::string_view key, Outcome why) {
      addProblem(key, why);
      cached = false;
    };
    if (const auto found = refused_.find(first); found != refused_.end()) {
      for (const auto& [key, why] : found->second) refuse(key, why);
    }
    for (uint32_t at = first, place = 0;; ++place) {
      const Watcher& each = watchers_[at];
      const Feed& its = *feeds_[each.feed];
      if (its.gone || (!its.value && its.failedUntil > 0)) {
        refuse(its.key, Outcome{its.failure});
      } else if (isUnknown(its, each)) {
        refuse(its.key, Outcome::kUnknownFeed);
      } else if (hasNews(each)) {
        if (cached) appendTag(&tag, place, each);
        addNews(each);
      }
      at = each.sibling;
      if (at == first) break;
    }
    isPing = items_.empty();
    if (!isPing && cached) tag = shortTag(tag);
    joinItems(isPing && cached);
  } else if (feed.gone) {
    answer.outcome = Outcome{feed.failure};
  } else if (isUnknown(feed, one)) {
    answer.outcome = Outcome::kUnknownFeed;
  } else if (!feed.value && !feed.awaited) {
    // The hold ended before the first fetch: for this watcher the fetch has failed.
    const Outcome why = feed.failedUntil > 0 ? Outcome{feed.failure} : Outcome::kUpstreamFailed;
    answer.outcome = draining() ? Outcome::kDraining : why;
  } else if (isNoLog(feed, one)) {
    answer.outcome = Outcome::kNotALog;
  } else if (hasNews(one)) {
    if (cached) appendTag(&tag, 0, one);
    addNews(one);
  } else {
    isPing = true;
    // A watcher that is ahead of this table keeps its cursor.
    const Cursor cursor = {feed.cursor.epoch, std::max(feed.cursor.version, one.seen)};
    addText(envelope([&](std::string* text) {
      appendFeed(text, feed.key);
      appendCursor(text, "cursor", cursor);
      appendNext(text, cached);
      *text += '}';
    }));
    if (cached) {
      cursor.appendTo(&tag);
      tag += '.';
    }
  }
  if (isPing) ++counts_.pings;
  answer.packs = packs_ && one.gzip;
  if (cached && answer.outcome == Outcome::kOk) {
    if (isPing) appendTurn(&(tag += "turn-"));
    const bool isShort = one.keep == Keep::kShort && !isPing;
    answer.fresh = isShort ? std::min(kFreshNewest, options_.cache) : options_.cache;
    answer.tag = tag;
  }
  // The answer points into the feed, which may go with its last watcher: the watcher is freed last.
  deliver(one.token, answer);
  release(first);
}

void Feeds::serveStream(uint32_t first) {
  Watcher& one = watchers_[first];
  const Feed& feed = *feeds_[one.feed];
  const Outcome over = grantOver(one);
  if (over == Outcome::kOk && !draining() && awaitsWord(first)) return parkAll(first);
  takeAfter(first);
  begin();
  gzip_ = one.gzip;
  FeedAnswer answer;
  answer.stream = true;
  if (over != Outcome::kOk) {
    answer.outcome = over;
  } else if (feed.gone) {
    answer.outcome = Outcome{feed.failure};
  } else if (!feed.value && !feed.awaited) {
    answer.outcome = feed.failedUntil > 0 ? Outcome{feed.failure} : Outcome::kUpstreamFailed;
  } else if (draining()) {
    answer.ends = true;
    answer.retry = retry();
  } else if (isNoLog(feed, one)) {
    answer.outcome = Outcome::kNotALog;
  } else if (hasNews(one)) {
    one.seen = addNews(one);
    const Cursor cursor = {feed.cursor.epoch, one.seen};
    answer.cursor = envelope([&](std::string* text) { cursor.appendTo(text); });
  }
  if (answer.outcome != Outcome::kOk) {
    addProblem(feed.key, answer.outcome);
    answer.ends = true;
  }
  unhang(first);
  const uint32_t token = one.token;
  if (answer.ends) {
    deliver(token, answer);
    release(first);
    return;
  }
  switch (deliver(token, answer)) {
    case FeedResponder::Taken::kWhole:
      // A log may have more items.
      if (!hasNews(one)) return hang(first, List::kParked);
      hang(first, List::kDue);
      return spread(feeds_[one.feed].get());
    case FeedResponder::Taken::kInPart:
      return;
    case FeedResponder::Taken::kLost:
      return release(first);
  }
}

}  // namespace server
