#include "feed_replica.h"

namespace server {

void FeedReplica::turn() {
  for (const Feeds::Want& want : feeds_->takeWants()) {
    AskHead head = {.ask = want.fetch ? Ask::kFeedWant : Ask::kFeedGzip,
                    .number = want.cursor.version};
    memcpy(head.who, &want.from, sizeof head.who);
    send_(head, want.key);
  }
  feeds_->takeTouched([this](const Feed& feed) {
    // Of one that has ended the main process counts nobody; there may be a new one of its key.
    if (feed.gone) return;
    send_({.ask = Ask::kFeedWatched, .number = feed.watching}, feed.key);
  });
  const FeedCounts& counts = feeds_->counts();
  const FeedTally tally = {.polls = counts.polls,
                           .pings = counts.pings,
                           .documents = counts.documents,
                           .patches = counts.patches,
                           .skipped = counts.skipped,
                           .held = feeds_->ledger().bytes - counts.memory,
                           .watching = counts.watching,
                           .streams = counts.streams};
  if (tally == told_) return;
  told_ = tally;
  send_({.ask = Ask::kFeedCounts}, {reinterpret_cast<const char*>(&tally), sizeof tally});
}

void FeedReplica::tick(uint64_t now) {
  if (now < lookAt_) return;
  lookAt_ = now + kLookEvery;
  feeds_->forgetIdle(kIdle, [this](std::string_view key) { send_({.ask = Ask::kFeedLeft}, key); });
}

bool FeedReplica::take(const SayHead& head, std::string_view text) {
  if (head.say == Say::kFeed) return takeFeed(text);
  if (head.say == Say::kFeedGzip) {
    FeedText feed;
    if (!readFeed(text, &feed)) return false;
    feeds_->compressed(feed.key, feed.cursor(), feed.gzip);
    return true;
  }
  if (!isFeedKey(text) || head.feedOutcome == Outcome::kOk ||
      head.feedOutcome >= Outcome{kOutcomes}) {
    return false;
  }
  // Who asks next asks the main process anew.
  feeds_->end(text, head.feedOutcome);
  return true;
}

bool FeedReplica::takeFeed(std::string_view text) {
  FeedText feed;
  if (!readFeed(text, &feed)) return false;
  if (feeds_->find(feed.key) == nullptr) {
    // It was forgotten here while this was on its way. As nobody has asked since, none is wanted:
    // a replica that the main process does not know of would stay as it is.
    send_({.ask = Ask::kFeedLeft}, feed.key);
    return true;
  }
  const bool next = feed.head.next == 1;
  const Publication publication = {.key = feed.key,
                                   .cursor = feed.cursor(),
                                   .value = feed.value,
                                   .patch = next ? feed.patches : std::string_view(),
                                   .gzip = feed.gzip,
                                   .upstream = true};
  const Outcome outcome =
      feeds_->take(publication, next ? std::string_view() : feed.patches, feed.begins);
  if (outcome == Outcome::kOk) return true;
  // There is no room for it here, and the version before is not the newest any more.
  feeds_->end(feed.key, outcome);
  send_({.ask = Ask::kFeedLeft}, feed.key);
  return true;
}

}  // namespace server
