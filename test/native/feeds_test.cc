// Cases of the table of feeds: a table that is behind other servers', shares of a turn, holds,
// compression, feeds that can't be fetched, bounds of logs. The simulation checks the guarantees to
// watchers, for every way of watching (simulated_feeds.h).
//
//   feeds_test
#include "feeds/feeds.h"

#include <cstdio>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/hold.h"
#include "expect.h"

namespace {

using namespace server;

uint64_t clockNow = 0;

/**
 * A table in a world that is behind a watcher's version from another server: the watcher gets no
 * older version, but the next one. (worker_feeds_test has the tables of workers.)
 */
class TableBehind : FeedResponder {
 public:
  explicit TableBehind(bool many)
      : feeds_({.hold = 20, .feeds = 6, .memory = 100000, .watchers = 40, .inWorld = true}, 0,
               [] { return clockNow; }),
        hasManyFeeds_(many) {
    feeds_.setResponder(this);
  }

  void run() {
    publish({1, 2});
    watch("e1-4");
    EXPECT(answered_.empty());
    publish({1, 3});
    EXPECT(answered_.empty());
    publish({1, 4});
    EXPECT(answered_.empty());
    publish({1, 5});
    EXPECT(answered_.find("\"cursor\":\"e1-5\"") != std::string::npos);
    EXPECT(answered_.find("\"value\":[5]") != std::string::npos);

    // At the end of its hold a watcher keeps its cursor.
    watch("e1-9");
    for (uint64_t now = 0; now < 60000; now += 100) {
      while (!feeds_.tick(now)) continue;
    }
    EXPECT(answered_ == (hasManyFeeds_ ? R"({"items":[]})" : R"({"feed":"a","cursor":"e1-9"})"));

    // Another epoch is news, whatever its version.
    watch("e1-9");
    publish({2, 1});
    EXPECT(answered_.find("\"cursor\":\"e2-1\"") != std::string::npos);
    if (!hasManyFeeds_) log();
  }

 private:
  /** Opens a stream of a log that has not come yet. The client got its first item elsewhere. */
  void log() {
    answered_.clear();
    const FeedRequest wanted = {"log", "e1-1"};
    uint32_t watcher;
    EXPECT(feeds_.watch(&wanted, 1, {.stream = true}, 0, &watcher) == Outcome::kOk);
    append(1);
    EXPECT(answered_.empty());
    append(2);
    EXPECT(answered_.find("\"items\":[2]") != std::string::npos);
    feeds_.drop(watcher);
  }

  void append(uint64_t version) {
    uint32_t watching;
    EXPECT(feeds_.append("log", {1, version}, std::to_string(version), &watching) == Outcome::kOk);
    while (feeds_.step(1000)) clockNow += 10;
  }

  void publish(Cursor cursor) {
    const std::string value = "[" + std::to_string(cursor.version) + "]";
    uint32_t watching;
    EXPECT(feeds_.publish({.key = "a", .cursor = cursor, .value = value, .upstream = true},
                          &watching) == Outcome::kOk);
    while (feeds_.step(1000)) clockNow += 10;
  }

  /** Watches a feed; in a list together with an unpublished feed. */
  void watch(const char* after) {
    answered_.clear();
    const FeedRequest wanted[] = {{"a", after}, {"b", "none"}};
    uint32_t watcher;
    EXPECT(feeds_.watch(wanted, hasManyFeeds_ ? 2 : 1, {.hasManyFeeds = hasManyFeeds_}, 0,
                        &watcher) == Outcome::kOk);
  }

  WriteResult answer(uint32_t, const FeedAnswer& answer) override {
    for (uint32_t i = 0; i < answer.count; ++i) {
      const BodyPiece& piece = answer.pieces[i];
      answered_ += piece.before;
      if (piece.bytes != nullptr)
        answered_ += piece.bytes->text().substr(piece.begin, piece.end - piece.begin);
      answered_ += piece.after;
    }
    return WriteResult::kWhole;
  }

  Feeds feeds_;
  const bool hasManyFeeds_;
  std::string answered_;
};

/**
 * Time: a turn answers as many watchers as fit its share, feeds take turns, a hold never ends
 * early, and a quiet event stream gets a comment every 25 s, unless its reader is slow. At the end
 * every watcher is answered within the window; a slow one when it has read on.
 */
class Timing : FeedResponder {
 public:
  Timing()
      : feeds_({.hold = 60, .feeds = 2, .memory = 100000, .watchers = 4000}, 0,
               [] { return clockNow; }) {
    feeds_.setResponder(this);
    publish("a", 1);
    publish("b", 1);
  }

  void run() {
    shares();
    holds();
    comments();
    commentsBetweenVersions();
    slowness();
    compression();
    failedCompression();
    sharing();
    end();
  }

 private:
  static constexpr uint32_t kMany = 1000;
  static constexpr uint64_t kCost = 10;  // microseconds of an answer
  static constexpr uint64_t kShare = 1000;

  void publish(const char* key, uint64_t version) {
    publish(key, version, "[" + std::to_string(version) + "]", {});
  }

  void publish(const char* key, uint64_t version, std::string_view value, std::string_view patch) {
    uint32_t watching;
    EXPECT(feeds_.publish({.key = key, .cursor = {1, version}, .value = value, .patch = patch},
                          &watching) == Outcome::kOk);
  }

  /** Adds a watcher of `key`; `token`: the counter of its answers. */
  uint32_t watch(const char* key, const char* after, uint32_t token, bool stream) {
    const FeedRequest wanted = {key, after};
    uint32_t watcher;
    EXPECT(feeds_.watch(&wanted, 1, {.stream = stream}, token, &watcher) == Outcome::kOk);
    return watcher;
  }

  void shares() {
    for (uint32_t i = 0; i < kMany; ++i) watch("a", "e1-1", 0, false);
    watch("b", "e1-1", 1, false);
    publish("a", 2);
    publish("b", 2);
    EXPECT(answers_[0] == 0 && answers_[1] == 0);
    uint64_t turns = 0;
    for (bool more = true; more; ++turns) {
      const uint64_t before = answers_[0] + answers_[1];
      const uint64_t began = clockNow;
      more = feeds_.step(kShare);
      EXPECT(clockNow - began <= kShare + kCost);
      EXPECT(answers_[0] + answers_[1] > before);
    }
    EXPECT(turns == (kMany + 1) * kCost / kShare + 1);
    EXPECT(answers_[0] == kMany && answers_[1] == 1);
    // The thousand watchers of one feed do not delay the other feed's.
    EXPECT(before_ <= 64);
  }

  void passTo(uint64_t end) {
    for (; now_ < end; now_ += 100) {
      while (!feeds_.tick(now_)) continue;
    }
  }

  void holds() {
    answers_[0] = 0;
    for (uint32_t i = 0; i < kMany; ++i) watch("a", "e1-2", 0, false);
    // A watcher may have come two ticks later than the table knows.
    passTo(60000 + 2 * kFeedTick + 1);
    EXPECT(answers_[0] == 0);
    // Within a sixteenth of the hold and some ticks later, to spread polls that came together.
    passTo(62000);
    EXPECT(answers_[0] > kMany / 4 && answers_[0] < kMany * 3 / 4);
    passTo(60000 + 60000 / 16 + 500);
    EXPECT(answers_[0] == kMany && feeds_.counts().watching == 0);
  }

  void comments() {
    const uint64_t began = now_;
    answers_[0] = answers_[1] = 0;
    const uint32_t reader = watch("a", "e1-2", 0, true);
    slow_ = true;
    const uint32_t slow = watch("a", "e1-2", 1, true);
    // The stream's head is sent at once.
    EXPECT(answers_[0] == 1 && answers_[1] == 1);
    passTo(began + 25000);
    EXPECT(answers_[0] == 1);
    passTo(began + 26000);
    EXPECT(answers_[0] == 2 && answers_[1] == 1);
    passTo(began + 77000);
    EXPECT(answers_[0] == 4 && answers_[1] == 1);
    feeds_.writable(slow);
    passTo(began + 103000);
    EXPECT(answers_[1] == 2);
    for (const uint32_t watcher : {reader, slow}) feeds_.drop(watcher);
  }

  /** A version counts as a sign of life: the next comment comes 25 s after it. */
  void commentsBetweenVersions() {
    const uint64_t began = now_;
    answers_[0] = 0;
    const uint32_t reader = watch("a", "e1-2", 0, true);
    passTo(began + 20000);
    publish("a", 3);
    while (feeds_.step(kShare)) continue;
    EXPECT(answers_[0] == 2);
    passTo(began + 45000);
    EXPECT(answers_[0] == 2);
    passTo(began + 46000);
    EXPECT(answers_[0] == 3);
    passTo(began + 71000);
    EXPECT(answers_[0] == 4);
    feeds_.drop(reader);
  }

  /** A stream that reads slowly skips to the newest version when it has read on. */
  void slowness() {
    slow_ = true;
    const uint32_t watcher = watch("b", "e1-2", 1, true);
    const uint64_t before = answers_[1];
    for (const uint64_t version : {3, 4}) {
      publish("b", version);
      while (feeds_.step(kShare)) continue;
      EXPECT(answers_[1] == before);
    }
    for (const uint64_t answers : {before + 1, before + 1}) {
      feeds_.writable(watcher);
      while (feeds_.step(kShare)) continue;
      EXPECT(answers_[1] == answers);
    }
    feeds_.drop(watcher);
  }

  /** A watcher of "b" that accepts gzip. */
  void watchCompressed(const char* after) {
    const FeedRequest wanted = {"b", after};
    uint32_t watcher;
    EXPECT(feeds_.watch(&wanted, 1, {.gzip = true}, 0, &watcher) == Outcome::kOk);
  }

  /** A version is compressed once, however many watchers wait for it. */
  void compression() {
    slow_ = false;
    answers_[0] = 0;
    const std::string value = "[\"" + std::string(2000, 'x') + "\"]";
    publish("b", 5, value, {});
    feeds_.takeTasks();
    for (uint32_t i = 0; i < kMany; ++i) watchCompressed("e1-4");
    EXPECT(answers_[0] == 0 && feeds_.takeTasks().size() == 1);
    // A late result for an older version is ignored.
    feeds_.setCompressed("b", {1, 4}, "of the version before");
    EXPECT(!feeds_.step(kShare) && answers_[0] == 0);
    feeds_.setCompressed("b", {1, 5}, "compressed");
    while (feeds_.step(kShare)) continue;
    EXPECT(answers_[0] == kMany && feeds_.takeTasks().empty());
  }

  /** A version whose compression failed is sent uncompressed, also to later watchers. */
  void failedCompression() {
    answers_[0] = 0;
    const std::string value = "[\"" + std::string(2000, 'y') + "\"]";
    publish("b", 6, value, {});
    watchCompressed("e1-5");
    EXPECT(answers_[0] == 0 && feeds_.takeTasks().size() == 1);
    feeds_.setCompressed("b", {1, 6}, {});
    while (feeds_.step(kShare)) continue;
    EXPECT(answers_[0] == 1);
    watchCompressed("e1-5");
    EXPECT(answers_[0] == 2 && !compressed_ && feeds_.takeTasks().empty());
    // A process that asks for it now learns of the failure.
    FailureCounter failures;
    feeds_.setObserver(&failures);
    feeds_.requestCompressed("b");
    EXPECT(failures.failed == 1 && feeds_.takeTasks().empty());
    feeds_.setObserver(nullptr);
    // The next version may be compressed again.
    publish("b", 7, value, {});
    watchCompressed("e1-6");
    EXPECT(answers_[0] == 2 && feeds_.takeTasks().size() == 1);
    feeds_.setCompressed("b", {1, 7}, "compressed");
    while (feeds_.step(kShare)) continue;
    EXPECT(answers_[0] == 3 && compressed_);
  }

  /** A thousand watchers with the same cursor share bytes: one value, one run of patches. */
  void sharing() {
    const auto sentTo = [&](const char* after, bool delta) {
      sent_.clear();
      for (uint32_t i = 0; i < kMany; ++i) {
        const FeedRequest wanted = {"a", after};
        uint32_t watcher;
        EXPECT(feeds_.watch(&wanted, 1, {.delta = delta}, 0, &watcher) == Outcome::kOk);
      }
      while (feeds_.step(kShare)) continue;
      EXPECT(sent_.size() == kMany);
      return std::set<SentBytes>(sent_.begin(), sent_.end());
    };
    // Patches are kept up to half the length of the value.
    const std::string padding = ",\"" + std::string(500, 'x') + "\"";
    for (const uint64_t version : {3, 4}) {
      const std::string number = std::to_string(version);
      publish("a", version, std::string("[").append(number).append(padding).append("]"),
              R"({"op":"replace","path":"/0","value":)" + number + "}");
    }
    while (feeds_.step(kShare)) continue;
    const auto whole = sentTo("e1-2", false);
    EXPECT(whole.size() == 1);
    const auto patched = sentTo("e1-2", true);
    const auto later = sentTo("e1-3", true);
    EXPECT(patched.size() == 1 && later.size() == 1);
    // They share the run of patches: the later one from its cursor on.
    EXPECT(std::get<0>(*patched.begin()) == std::get<0>(*later.begin()));
    EXPECT(std::get<1>(*patched.begin()) < std::get<1>(*later.begin()));
    EXPECT(std::get<0>(*whole.begin()) != std::get<0>(*later.begin()));
  }

  void end() {
    EXPECT(feeds_.counts().watching == 0);
    slow_ = true;
    watch("a", "e1-4", 0, true);
    const uint32_t slow = watch("a", "e1-4", 1, true);
    feeds_.drain(2000);
    passTo(now_ + 3000);
    EXPECT(feeds_.counts().watching == 1 && ended_ == 1);
    feeds_.writable(slow);
    while (feeds_.step(kShare)) continue;
    EXPECT(feeds_.counts().watching == 0 && ended_ == 2);
  }

  WriteResult answer(uint32_t token, const FeedAnswer& sent) override {
    clockNow += kCost;
    ++answers_[token];
    compressed_ = sent.gzip;
    if (sent.endsStream) ++ended_;
    for (uint32_t i = 0; i < sent.count; ++i) {
      const BodyPiece& piece = sent.pieces[i];
      if (piece.bytes != nullptr) sent_.emplace_back(piece.bytes, piece.begin, piece.end);
    }
    if (token == 1) before_ = answers_[0];
    return token == 1 && slow_ ? WriteResult::kInPart : WriteResult::kWhole;
  }

  /** Counts failed compressions, as another process would learn of them. */
  struct FailureCounter : FeedsObserver {
    void published(const Feed&) override {}
    void compressed(const Feed& feed) override { failed += feed.gzip ? 0 : 1; }
    void ended(std::string_view, Outcome) override {}
    uint32_t failed = 0;
  };

  /** Sent bytes: the buffer, and its range. */
  using SentBytes = std::tuple<const base::Bytes*, uint32_t, uint32_t>;

  Feeds feeds_;
  std::vector<SentBytes> sent_;
  uint64_t now_ = 0;
  bool slow_ = false;
  bool compressed_ = false;  // whether the last answer was
  uint64_t ended_ = 0;       // streams
  uint64_t answers_[2] = {};
  uint64_t before_ = 0;  // answers of the first feed when the second one got its first
};

/** Requested feeds that can't be fetched: they make room for others, and leave nothing. */
class UnfetchedFeeds : FeedResponder {
 public:
  UnfetchedFeeds()
      : feeds_({.hold = 20, .feeds = 2, .memory = 1000, .watchers = 10, .upstream = true}, 0,
               [] { return clockNow; }) {
    feeds_.setResponder(this);
  }

  void run() {
    waitForFetch();
    repetitions();
    makeRoom();
    keepToPlaces();
    keepStaged();
  }

 private:
  Outcome ask(const std::string& key, uint32_t* watcher) {
    const FeedRequest wanted = {key, ""};
    const Outcome outcome = feeds_.watch(&wanted, 1, {}, 0, watcher);
    feeds_.takeTasks();
    return outcome;
  }

  /** A watcher asks, and learns that the fetch failed. */
  void failToFetch(const std::string& key) {
    uint32_t watcher;
    EXPECT(ask(key, &watcher) == Outcome::kOk);
    feeds_.fail(key, kLater);
    feeds_.step(1000);
    EXPECT(feeds_.find(key)->watching == 0);
  }

  void publish(const char* key) {
    uint32_t watching;
    EXPECT(feeds_.publish({.key = key, .cursor = {1, 1}, .value = "1"}, &watching) == Outcome::kOk);
  }

  /** Also a request without a hold waits for a first fetch. */
  void waitForFetch() {
    uint32_t watcher;
    const FeedRequest wanted = {"a", "none"};
    EXPECT(feeds_.watch(&wanted, 1, {.hold = 0}, 0, &watcher) == Outcome::kOk);
    feeds_.tick(kShortestHold * 1000);
    EXPECT(feeds_.find("a")->watching == 1);
    feeds_.tick(kShortestHold * 1100 + 1000);
    EXPECT(feeds_.find("a")->watching == 0);
    feeds_.fail("a", kLater);
    EXPECT(feeds_.removeFetched("a"));
  }

  /** However often fetches fail, the table remembers no more failures than it has feeds. */
  void repetitions() {
    for (uint32_t i = 0; i < 100000; ++i) {
      const std::string key = "key/" + std::to_string(i);
      failToFetch(key);
      feeds_.fail(key, kLater);
      EXPECT(feeds_.evictableCount() == 1);
      EXPECT(feeds_.removeFetched(key) && feeds_.evictableCount() == 0);
    }
    failToFetch("a");
    publish("a");
    EXPECT(feeds_.evictableCount() == 0 && feeds_.remove("a") == Outcome::kOk);
  }

  /** The oldest failed feed makes room first, except one with watchers. */
  void makeRoom() {
    uint32_t watcher;
    for (const char* key : {"a", "b", "c"}) failToFetch(key);
    EXPECT(feeds_.find("a") == nullptr && feeds_.find("b") != nullptr);
    EXPECT(feeds_.counts().feeds == 2 && feeds_.evictableCount() == 2);
    feeds_.tick(kLater);
    EXPECT(ask("b", &watcher) == Outcome::kOk);
    failToFetch("d");
    EXPECT(feeds_.find("b") != nullptr && feeds_.find("c") == nullptr);
    feeds_.fail("b", 2 * kLater);
    feeds_.step(1000);
    EXPECT(feeds_.evictableCount() == 2 && feeds_.removeFetched("b") && feeds_.removeFetched("d"));
    EXPECT(feeds_.counts().feeds == 0 && feeds_.evictableCount() == 0);
  }

  /** A feed whose watchers go before they are answered keeps its place until the next step. */
  void keepToPlaces() {
    uint32_t watchers[2];
    EXPECT(ask("a", &watchers[0]) == Outcome::kOk);
    EXPECT(ask("b", &watchers[1]) == Outcome::kOk);
    for (const char* key : {"a", "b"}) feeds_.fail(key, 3 * kLater);
    for (const uint32_t watcher : watchers) feeds_.drop(watcher);
    uint32_t watcher;
    EXPECT(ask("c", &watcher) == Outcome::kTooManyFeeds);
    EXPECT(feeds_.counts().feeds == 2);
    feeds_.step(1000);
    EXPECT(ask("c", &watcher) == Outcome::kOk);
    EXPECT(feeds_.counts().feeds == 1);
    feeds_.drop(watcher);
    EXPECT(feeds_.removeFetched("c") && feeds_.counts().feeds == 0);
  }

  /** A staged change keeps its place, and no other change comes before it. */
  void keepStaged() {
    Journal journal;
    feeds_.keepJournal(&journal);
    failToFetch("a");
    publish("a");
    uint32_t watchers[2];
    EXPECT(ask("b", &watchers[0]) == Outcome::kOk);
    EXPECT(ask("c", &watchers[1]) == Outcome::kTooManyFeeds);
    EXPECT(!feeds_.removeFetched("a"));
    EXPECT(feeds_.countUnchanged("a") == Outcome::kStateUnwritable);
    EXPECT(feeds_.remove("a") == Outcome::kStateUnwritable);
    feeds_.written();
    feeds_.reveal();
    EXPECT(feeds_.find("a")->cursor.version == 1 && feeds_.countUnchanged("a") == Outcome::kOk);
    feeds_.keepJournal(nullptr);
    EXPECT(feeds_.remove("a") == Outcome::kOk);
    feeds_.drop(watchers[0]);
    EXPECT(feeds_.removeFetched("b") && feeds_.counts().feeds == 0);
  }

  WriteResult answer(uint32_t, const FeedAnswer&) override { return WriteResult::kWhole; }

  static constexpr uint64_t kLater = 1000;  // milliseconds

  Feeds feeds_;
};

/** The awaited feeds of an address, and of all, are bounded. Publishers are not affected. */
void testAwaited() {
  struct : FeedResponder {
    WriteResult answer(uint32_t, const FeedAnswer&) override { return WriteResult::kWhole; }
  } responder;
  AddressLimits limits({.feeds = 2});
  Feeds feeds(
      {.hold = 20, .feeds = 3, .memory = 10000, .watchers = 10}, 0, [] { return clockNow; },
      &limits);
  feeds.setResponder(&responder);
  std::vector<uint32_t> watchers;
  const auto awaits = [&](uint32_t host, const char* key) {
    const FeedRequest wanted = {key, kNoCursor};
    return feeds.watch(&wanted, 1, {.address = {.host = host}}, 0, &watchers.emplace_back());
  };
  const auto publish = [&](const char* key) {
    uint32_t watching;
    return feeds.publish({.key = key, .cursor = {1, 1}, .value = "1"}, &watching);
  };
  constexpr uint32_t kHostile = 1;
  constexpr uint32_t kOther = 2;
  for (const char* key : {"a", "b"}) EXPECT(awaits(kHostile, key) == Outcome::kOk);
  EXPECT(awaits(kHostile, "c") == Outcome::kTooManyFetches);
  for (const char* key : {"b", "c"}) EXPECT(awaits(kOther, key) == Outcome::kOk);
  EXPECT(awaits(kOther, "d") == Outcome::kTooManyFeeds);
  for (const char* key : {"x", "y", "a"}) EXPECT(publish(key) == Outcome::kOk);
  EXPECT(publish("c") == Outcome::kTooManyFeeds);
  while (feeds.step(1000)) continue;
  // A published feed counts for no address.
  EXPECT(awaits(kHostile, "d") == Outcome::kOk && feeds.counts().awaited == 3);
  for (const uint32_t watcher : watchers) feeds.drop(watcher);
  EXPECT(feeds.counts().awaited == 0);
  for (const char* key : {"e", "f"}) EXPECT(awaits(kHostile, key) == Outcome::kOk);
}

/** The memory and places of logs. After a deletion a value may use the key. */
void testLogs() {
  Feeds feeds({.hold = 20,
               .feeds = 2,
               .memory = 1000,
               .watchers = 10,
               .log = {.items = 1000, .bytes = 100000},
               .answerBytes = 100},
              0, [] { return clockNow; });
  uint32_t watching;
  const std::string item(100, '1');
  uint64_t version = 0;
  while (feeds.append("a", {1, version + 1}, item, &watching) == Outcome::kOk) ++version;
  EXPECT(version > 1 && feeds.counts().memory <= 1000);
  EXPECT(feeds.append("a", {1, version + 1}, item, &watching) == Outcome::kFeedMemoryFull);
  EXPECT(feeds.find("a")->cursor.version == version);
  EXPECT(feeds.append("b", {2, 1}, "1", &watching) == Outcome::kOk);
  EXPECT(feeds.append("c", {3, 1}, "1", &watching) == Outcome::kTooManyFeeds);
  EXPECT(feeds.append("c", {3, 1}, {}, &watching) == Outcome::kUnknownFeed);
  EXPECT(feeds.remove("a") == Outcome::kOk && feeds.counts().memory < 200);
  // A value replaces the log, and a log the value.
  EXPECT(feeds.publish({.key = "b", .cursor = {4, 1}, .value = "{}"}, &watching) == Outcome::kOk);
  EXPECT(!feeds.find("b")->isLog && feeds.find("b")->entryStarts.empty());
  // A log with a new epoch, from another server of a world: it keeps none of the earlier items.
  for (const uint64_t one : {1, 2, 3}) {
    EXPECT(feeds.append("a", {5, one}, "1", &watching) == Outcome::kOk);
  }
  EXPECT(feeds.append("a", {6, 9}, "2", &watching, true) == Outcome::kOk);
  EXPECT(feeds.find("a")->cursor.version == 9 && feeds.find("a")->entryStarts.size() == 1);
}

/** A log keeps the newest items up to both of its bounds, and always one. */
void testLogBounds() {
  Feeds feeds({.hold = 20,
               .feeds = 2,
               .memory = 100000,
               .watchers = 10,
               .log = {.items = 4, .bytes = 30},
               .answerBytes = 100},
              0, [] { return clockNow; });
  uint64_t version = 0;
  const auto itemsAfterAppend = [&](size_t length) {
    uint32_t watching;
    const std::string item(length, '1');
    EXPECT(feeds.append("a", {1, ++version}, item, &watching) == Outcome::kOk);
    return feeds.find("a")->entryStarts.size();
  };
  // A comma is one byte.
  for (const size_t kept : {1, 2, 3, 4, 4, 4}) EXPECT(itemsAfterAppend(5) == kept);
  EXPECT(itemsAfterAppend(11) == 4 && itemsAfterAppend(12) == 2 && itemsAfterAppend(100) == 1 &&
         itemsAfterAppend(1) == 1);
}

}  // namespace

int main() {
  TableBehind(false).run();
  TableBehind(true).run();
  Timing().run();
  UnfetchedFeeds().run();
  testAwaited();
  testLogs();
  testLogBounds();
  printf("feeds_test: tables behind others, times, bounds\n");
}
