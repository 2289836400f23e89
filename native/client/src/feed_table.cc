#include "feed_table.h"

#include <algorithm>
#include <utility>

#include "feed_patch.h"
#include "json.h"

namespace sprites {

namespace {

/** Cursor of a client without a value: the server answers as soon as the feed has one. */
constexpr const char* kNoCursor = "none";

}  // namespace

bool FeedTable::add(Feeds::WatchId watch, const std::string& key, FeedKind kind, FeedHeld held) {
  FeedNews news;
  news.watches = {watch};
  FeedChange& change = news.change;
  change.key = key;
  const auto found = entries_.find(key);
  const bool isNew = found == entries_.end();
  const bool isLog = kind == FeedKind::kLog;
  if (!isFeedKey(key)) {
    change.problem = "bad-key";
  } else if (!isNew && (isLog || found->second.kind == FeedKind::kLog)) {
    change.problem = "other-kind";  // the items of a log are not kept
  } else if (isNew && entries_.size() >= kMaxFeeds) {
    change.problem = "too-many-keys";
  }
  if (!change.problem.empty()) {
    news.endsWatches = true;
    news_.push_back(std::move(news));
    return false;
  }
  Entry& entry = entries_[key];
  entry.watches.push_back(watch);
  if (!isNew) {
    change.problem = entry.problem;
    if (entry.problem.empty()) {
      change.cursor = entry.cursor;
      change.value = entry.value;
    }
    if (!change.problem.empty() || !change.cursor.empty()) news_.push_back(std::move(news));
    return false;
  }
  entry.kind = kind;
  if (!isFeedCursor(held.cursor) || held.cursor == kNoCursor) return true;
  if (isLog) {
    entry.cursor = entry.reportedCursor = std::move(held.cursor);
  } else if (json::value(held.value, kFeedDepth) && json::isUtf8(held.value)) {
    entry.cursor = std::move(held.cursor);
    entry.reportedCursor = entry.cursor;
    entry.value = std::move(held.value);
  }
  return true;
}

void FeedTable::remove(Feeds::WatchId watch) {
  for (auto at = entries_.begin(); at != entries_.end(); at++) {
    auto& watches = at->second.watches;
    const auto found = std::find(watches.begin(), watches.end(), watch);
    if (found == watches.end()) continue;
    watches.erase(found);
    if (watches.empty()) entries_.erase(at);
    return;
  }
}

std::string FeedTable::Entry::cursorToSend() const {
  if (cursor.empty()) return kNoCursor;
  // During a problem the value is asked for whole, to report it when the problem ends.
  return problem.empty() || kind == FeedKind::kLog ? cursor : "";
}

std::string FeedTable::Entry::problemOf(const FeedItem& item) const {
  if (!item.problem.empty()) return item.problem;
  const bool isOtherKind =
      kind == FeedKind::kLog ? !item.value.empty() || !item.patch.empty() : !item.items.empty();
  return isOtherKind ? "other-kind" : "";
}

bool FeedTable::isOlder(const FeedItem& item) const {
  const auto found = entries_.find(item.feed);
  return found != entries_.end() && isOlderCursor(item.cursor, found->second.reportedCursor);
}

void FeedTable::clearCursors() {
  for (auto& [key, entry] : entries_) {
    if (!entry.cursor.empty()) entry.gap = entry.kind == FeedKind::kLog;
    entry.cursor.clear();
  }
}

void FeedTable::endProblemWaits() {
  for (auto& [key, entry] : entries_) entry.due = Time();
}

FeedTable::Poll FeedTable::nextPoll(Time now) const {
  Poll poll;
  for (const auto& [key, entry] : entries_) {
    if (entry.due <= now) {
      poll.feeds[key] = entry.cursorToSend();
    } else {
      poll.nextDue = std::min(poll.nextDue, entry.due);
    }
  }
  return poll;
}

bool FeedTable::storeAnswer(std::vector<FeedItem> items,
                            const std::map<std::string, std::string>& sentCursors, Time now) {
  bool hasNews = false;
  for (FeedItem& item : items) {
    const auto found = entries_.find(item.feed);
    const auto sentCursor = sentCursors.find(item.feed);
    // Ignores a feed that was not asked for, or has another cursor by now: the answer continues the
    // cursor of its poll.
    if (found == entries_.end() || sentCursor == sentCursors.end()) continue;
    if (found->second.cursorToSend() != sentCursor->second) continue;
    const std::string problem = found->second.problemOf(item);
    if (problem.empty()) {
      if (storeItem(found->first, &found->second, std::move(item))) hasNews = true;
    } else {
      storeProblem(found->first, &found->second, problem, now);
      hasNews = true;
    }
  }
  return hasNews;
}

void FeedTable::storeProblem(const std::string& key, Entry* entry, const std::string& problem,
                             Time now) {
  entry->problemsInRow++;
  const bool feedEnded = problem == "unknown-feed" && !entry->cursor.empty();
  // Without a cursor the server parks the poll until the feed is published again: no backoff. A
  // cache may have the old value: when that ends again, there is a backoff.
  const bool isFirst = feedEnded && entry->cursor != entry->endedCursor;
  entry->due = isFirst ? Time() : now + backoff_(entry->problemsInRow);
  if (feedEnded) {
    entry->endedCursor = std::exchange(entry->cursor, {});
    entry->value.clear();
  }
  if (entry->problem == problem) return;
  entry->problem = problem;
  FeedNews news;
  news.change.key = key;
  news.change.problem = problem;
  addNews(*entry, std::move(news));
}

/** Stores a value, a patch or items. @return whether there was something to report */
bool FeedTable::storeItem(const std::string& key, Entry* entry, FeedItem item) {
  entry->problemsInRow = 0;
  if (!item.items.empty()) return storeLogItems(key, entry, item);
  FeedNews news;
  FeedChange& change = news.change;
  change.key = key;
  change.cursor = item.cursor;
  if (item.value.empty() && item.patch.empty()) {
    // A ping: nothing new. It may end a problem.
    if (entry->problem.empty() || entry->cursor != item.cursor) return false;
    entry->problem.clear();
    change.value = entry->value;
    addNews(*entry, std::move(news));
    return true;
  }
  std::optional<std::string> value;
  if (!item.value.empty()) {
    if (json::value(item.value, kFeedDepth)) value = std::move(item.value);
  } else if (!entry->cursor.empty() && item.from == entry->cursor) {
    value = applyPatch(entry->value, item.patch);
    change.patch = std::move(item.patch);
  }
  if (!value) {
    entry->cursor.clear();  // the next poll asks for the whole value
    return false;
  }
  const bool isNews = entry->cursor != item.cursor || !entry->problem.empty();
  entry->cursor = std::move(item.cursor);
  entry->reportedCursor = entry->cursor;
  entry->value = std::move(*value);
  entry->problem.clear();
  change.value = entry->value;
  if (isNews) addNews(*entry, std::move(news));
  return isNews;
}

/** Stores items. @return whether they were new */
bool FeedTable::storeLogItems(const std::string& key, Entry* entry, const FeedItem& item) {
  FeedNews news;
  json::elements(item.items, [&news](std::string_view each) {
    news.items.emplace_back(each);
    return true;
  });
  // A cache may repeat an answer.
  if (news.items.empty() || item.cursor == entry->cursor) return false;
  news.gap = std::exchange(entry->gap, false) || item.gap;
  entry->cursor = entry->reportedCursor = item.cursor;
  entry->problem.clear();
  news.change.key = key;
  news.change.cursor = item.cursor;
  addNews(*entry, std::move(news));
  return true;
}

void FeedTable::addNews(const Entry& entry, FeedNews news) {
  news.watches = entry.watches;
  news_.push_back(std::move(news));
}

}  // namespace sprites
