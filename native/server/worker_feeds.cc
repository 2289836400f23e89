#include "worker_feeds.h"

namespace server {

namespace {

/** Microseconds of a turn for due watchers: the thread has no other work. */
constexpr uint64_t kFeedShare = 2500;

}  // namespace

void WorkerFeeds::turn() {
  for (const Feeds::Task& want : table_.takeTasks()) {
    AskHead head =
        askBy(want.fetch ? Ask::kFeedWant : Ask::kFeedGzip, {want.number, 0}, want.address);
    head.number = want.waitsForFirst ? 1 : 0;
    asks_->addAsk(head, want.key);
  }
  std::vector<std::string> unwatchedKeys;
  table_.takeDirty([&](const Feed& feed) {
    // The main thread no longer counts watchers of a feed that has ended; a new feed may have its
    // key.
    if (feed.isDeleted) return;
    const WatcherCounts watchers = {feed.watching, feed.patching, feed.patchesUntil};
    asks_->addAsk(askBy(Ask::kFeedWatched, {}, watchers), feed.key);
    if (feed.isAwaited && feed.watching == 0) unwatchedKeys.push_back(feed.key);
  });
  table_.takeNameChanges([this](std::string_view key, std::string_view name, bool isPresent) {
    asks_->addAsk({.ask = Ask::kFeedNamed, .number = isPresent ? uint64_t{1} : 0},
                  std::string(key).append(1, kEndOfKey).append(name));
  });
  for (const std::string& key : unwatchedKeys) {
    if (table_.removeAwaited(key)) leaveFeed(key);
  }
}

bool WorkerFeeds::step() { return table_.step(kFeedShare); }

bool WorkerFeeds::tick(uint64_t now) {
  const bool done = table_.tick(now);
  if (now >= nextIdleCheckAt_) {
    nextIdleCheckAt_ = now + kIdleCheckEvery;
    table_.removeIdle(kIdle, [this](std::string_view key) { leaveFeed(key); });
  }
  return done;
}

void WorkerFeeds::handle(const NoticeHead& head, std::string_view text) {
  const bool isNews = head.notice == Notice::kFeed || head.notice == Notice::kFeedGzip;
  const auto news = isNews ? PassedObject::reclaim<FeedNews>(text) : nullptr;
  const std::string_view key = isNews ? news->key : text;
  const Feed* const feed = table_.find(key);
  // The feed may have been forgotten and wanted again while this message was on its way: then its
  // own messages are still to come.
  if (feed == nullptr || feed->fetchTaskNumber != head.ticket.connection) return;
  switch (head.notice) {
    case Notice::kFeed:
      return table_.show(key, std::move(news->value), std::move(news->gzip));
    case Notice::kFeedGzip:
      return table_.showCompressed(key, news->value.cursor, std::move(news->gzip));
    case Notice::kFeedAwaited:
      return table_.markAwaited(key);
    default:
      // The next request asks the main thread again.
      return table_.end(key, head.outcome);
  }
}

}  // namespace server
