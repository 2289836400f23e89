#include "worker_feeds.h"

namespace server {

namespace {

/** Microseconds of a turn for due watchers: the thread has no other work. */
constexpr uint64_t kFeedShare = 2500;

}  // namespace

void WorkerFeeds::turn() {
  for (const Feeds::Want& want : table_.takeWants()) {
    AskHead head = askBy(want.fetch ? Ask::kFeedWant : Ask::kFeedGzip, {want.number, 0}, want.from);
    head.number = want.waits ? 1 : 0;
    asks_->add(head, want.key);
  }
  std::vector<std::string> left;
  table_.takeTouched([&](const Feed& feed) {
    // The main thread no longer counts watchers of a feed that has ended; a new feed may have its
    // key.
    if (feed.gone) return;
    const FeedWatchers watchers = {feed.watching, feed.patching, feed.patchesUntil};
    asks_->add(askBy(Ask::kFeedWatched, {}, watchers), feed.key);
    if (feed.awaited && feed.watching == 0) left.push_back(feed.key);
  });
  table_.takeNamed([this](std::string_view key, std::string_view name, bool there) {
    asks_->add({.ask = Ask::kFeedNamed, .number = there ? uint64_t{1} : 0},
               std::string(key).append(1, kEndOfKey).append(name));
  });
  for (const std::string& key : left) {
    if (table_.forgetAwaited(key)) leave(key);
  }
}

bool WorkerFeeds::step() { return table_.step(kFeedShare); }

bool WorkerFeeds::tick(uint64_t now) {
  const bool done = table_.tick(now);
  if (now >= lookAt_) {
    lookAt_ = now + kLookEvery;
    table_.forgetIdle(kIdle, [this](std::string_view key) { leave(key); });
  }
  return done;
}

void WorkerFeeds::take(const SayHead& head, std::string_view text) {
  const bool isNews = head.say == Say::kFeed || head.say == Say::kFeedGzip;
  const auto news = isNews ? Handed::take<FeedNews>(text) : nullptr;
  const std::string_view key = isNews ? news->key : text;
  const Feed* const feed = table_.find(key);
  // The feed may have been forgotten and wanted again while this message was on its way: then its
  // own messages are still to come.
  if (feed == nullptr || feed->want != head.ticket.connection) return;
  switch (head.say) {
    case Say::kFeed:
      return table_.show(key, std::move(news->value), std::move(news->gzip));
    case Say::kFeedGzip:
      return table_.showCompressed(key, news->value.cursor, std::move(news->gzip));
    case Say::kFeedAwaited:
      return table_.await(key);
    default:
      // The next request asks the main thread again.
      return table_.end(key, head.outcome);
  }
}

}  // namespace server
