#include "worker_feeds.h"

namespace server {

namespace {

/** Microseconds of a turn that go to due watchers: the thread has nothing else to do. */
constexpr uint64_t kFeedShare = 2500;

}  // namespace

void WorkerFeeds::turn() {
  for (const Feeds::Want& want : table_.takeWants()) {
    AskHead head = askBy(want.fetch ? Ask::kFeedWant : Ask::kFeedGzip, {}, want.from);
    head.number = want.waits ? 1 : 0;
    asks_->add(head, want.key);
  }
  std::vector<std::string> left;
  table_.takeTouched([&](const Feed& feed) {
    // The main thread counts no watchers of a feed that has ended; there may be a new one of its
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
  if (head.say == Say::kFeedAwaited) return table_.await(text);
  if (head.say == Say::kFeedEnd) {
    if (head.outcome == Outcome::kUnknownFeed) return table_.refuse(text);
    // The next request asks the main thread anew.
    return table_.end(text, head.outcome);
  }
  const auto news = Handed::take<FeedNews>(text);
  if (head.say == Say::kFeedGzip) {
    return table_.showCompressed(news->key, news->value.cursor, std::move(news->gzip));
  }
  // It may have been forgotten here while this was on its way. Without a request since, none is
  // wanted: one that the main thread does not know of would stay as it is.
  if (!table_.show(news->key, std::move(news->value), std::move(news->gzip))) leave(news->key);
}

}  // namespace server
