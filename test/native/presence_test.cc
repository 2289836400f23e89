// Presence: the bounds of names and counts, the exchange between servers of a world, and bad
// tokens. The simulation checks that presence names exactly the actual watchers
// (simulated_visitors.h).
//
//   presence_test
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "expect.h"
#include "feeds/feeds.h"

namespace {

using namespace server;

constexpr uint64_t kLease = 4000;

uint64_t timeNow = 0;  // milliseconds

uint64_t clockNow() { return timeNow * 1000; }

FeedsOptions optionsOf(uint32_t feeds) {
  return {
      .hold = 20,
      .feeds = feeds,
      .memory = 1 << 20,
      .watchers = 2000,
      .privatePatterns = std::make_shared<const KeyPatterns>(std::vector<std::string>{"room/*"}),
      .hasGrants = true,
      .lease = kLease};
}

/** A table of feeds, which records the answers to its watchers. */
class Table : public FeedResponder {
 public:
  explicit Table(const FeedsOptions& options) : feeds(options, 0, clockNow) {
    timeNow = 0;
    feeds.setResponder(this);
  }

  Outcome publish(const std::string& key) {
    const Feed* const feed = feeds.find(key);
    const bool hasValue = feed != nullptr && feed->value;
    uint32_t watching;
    return feeds.publish({.key = key,
                          .cursor = hasValue ? Cursor{feed->cursor.epoch, feed->cursor.version + 1}
                                             : Cursor{++epochs_, 1},
                          .value = std::to_string(++values_)},
                         &watching);
  }

  /** Adds a grant with this name. */
  uint32_t addGrant(const std::string& name, bool present, std::vector<std::string> reads) {
    GrantRights rights;
    const uint32_t number = ++grants_;
    memcpy(rights.token.data(), &number, sizeof number);
    rights.timeLeft = 1 << 30;
    rights.read = std::move(reads);
    rights.parts = {"", name, "key"};
    rights.present = present;
    return feeds.addGrant(rights);
  }

  /** Watches from the newest version on: the watcher parks. */
  uint32_t watch(const std::string& key, uint32_t grant, uint32_t token, bool stream = false) {
    std::string after;
    if (const Feed* feed = feeds.find(key)) feed->cursor.appendTo(&after);
    const FeedRequest request = {key, after};
    uint32_t watcher;
    const Outcome outcome =
        feeds.watch(&request, 1, {.hold = 20, .stream = stream, .grant = grant}, token, &watcher);
    EXPECT(outcome == Outcome::kOk);
    return watcher;
  }

  /** Asks for the current value. The answer comes at once. */
  Outcome request(const std::string& key) {
    const FeedRequest request = {key, {}};
    uint32_t watcher;
    return feeds.watch(&request, 1, {.hold = 20}, kAskingToken, &watcher);
  }

  /** Lets time pass, tick by tick. */
  void advance(uint64_t milliseconds) {
    for (; milliseconds > 0; milliseconds -= kFeedTick) {
      timeNow += kFeedTick;
      while (!feeds.tick(timeNow)) continue;
    }
  }

  void runSteps() {
    while (feeds.step(1000)) continue;
  }

  std::string valueOf(const std::string& key) const {
    const Feed* const feed = feeds.find(key);
    return feed == nullptr || !feed->value ? "" : std::string(feed->value->text());
  }

  WriteResult answer(uint32_t token, const FeedAnswer& answer) override {
    if (token != kAskingToken && (!answer.isEvent || answer.endsStream))
      endedTokens.push_back(token);
    return WriteResult::kWhole;
  }

  static constexpr uint32_t kAskingToken = UINT32_MAX;

  std::vector<uint32_t> endedTokens;  // tokens of ended polls and streams
  Feeds feeds;

 private:
  uint64_t epochs_ = 0, values_ = 0;
  uint32_t grants_ = 0;
};

/** A table with the feed "open". */
struct OpenTable : Table {
  explicit OpenTable(const FeedsOptions& options = optionsOf(4)) : Table(options) {
    publish("open");
  }
};

std::string presenceText(uint32_t watching, const std::vector<std::string>& who) {
  std::string text = "{\"watching\":" + std::to_string(watching) + ",\"who\":[";
  for (const std::string& name : who) text += (text.back() == '[' ? "\"" : ",\"") + name + '"';
  return text + "]}";
}

// ---- Bounds -------------------------------------------------------------------------------------

/** Presence names a hundred watchers, the first in order, and counts all. */
void namesAHundred() {
  OpenTable table;
  std::vector<std::string> names;
  names.reserve(130);
  for (int i = 0; i < 130; ++i) names.push_back("n" + std::to_string(1000 + i * 37 % 130));
  for (const std::string& name : names)
    table.watch("open", table.addGrant(name, true, {"open"}), 0);
  EXPECT(table.request("presence/open") == Outcome::kOk);
  std::sort(names.begin(), names.end());
  names.resize(kMaxNamed);
  EXPECT(table.valueOf("presence/open") == presenceText(130, names));
}

/** A name stays for a lease after its last watcher, and stays when a watcher comes back in time. */
void keepsANameForALease() {
  OpenTable table;
  const uint32_t ann = table.addGrant("ann", true, {"*"});
  EXPECT(table.request("presence/open") == Outcome::kOk);
  const auto isNamed = [&] {
    return table.valueOf("presence/open").find("\"ann\"") != std::string::npos;
  };
  for (const bool comesBack : {true, false}) {
    const uint32_t watcher = table.watch("open", ann, 0);
    table.advance(1200);
    EXPECT(isNamed());
    table.feeds.drop(watcher);
    table.advance(kLease - 200);
    EXPECT(isNamed());
    if (!comesBack) break;
    const uint32_t again = table.watch("open", ann, 0);
    table.advance(2 * kLease);
    EXPECT(isNamed());
    table.feeds.drop(again);
    table.advance(100);
  }
  table.advance(1400);
  EXPECT(table.valueOf("presence/open") == presenceText(0, {}));
}

/** There are never fewer watchers than names: watchers that came one after the other, or before the
 * first request for presence, count as long as they are named. */
void countsWhomItNames() {
  OpenTable table;
  table.feeds.drop(table.watch("open", table.addGrant("ann", true, {"*"}), 0));
  EXPECT(table.request("presence/open") == Outcome::kOk);
  EXPECT(table.valueOf("presence/open") == presenceText(1, {"ann"}));
  table.feeds.drop(table.watch("open", table.addGrant("bo", true, {"*"}), 0));
  table.advance(1200);
  EXPECT(table.valueOf("presence/open") == presenceText(2, {"ann", "bo"}));
  table.advance(2 * kLease);
  EXPECT(table.valueOf("presence/open") == presenceText(0, {}));
}

/** Without room for another name, its watcher is only counted. The name appears with the watcher's
 * next request once there is room. */
void keepsSoManyNames() {
  FeedsOptions options = optionsOf(4);
  options.maxNames = 2;
  OpenTable table(options);
  const uint32_t first = table.watch("open", table.addGrant("ann", true, {"*"}), 0);
  table.watch("open", table.addGrant("bo", true, {"*"}), 1);
  const uint32_t third = table.addGrant("cy", true, {"*"});
  const uint32_t waitingWatcher = table.watch("open", third, 2);
  EXPECT(table.request("presence/open") == Outcome::kOk);
  EXPECT(table.valueOf("presence/open") == presenceText(3, {"ann", "bo"}));
  table.feeds.drop(first);
  table.advance(6000);
  table.feeds.drop(waitingWatcher);
  table.watch("open", third, 2);
  table.advance(6000);
  EXPECT(table.valueOf("presence/open") == presenceText(2, {"bo", "cy"}));
}

/** There are at most as many presence feeds as feeds. Ended ones count until watchers know. */
void keepsSoManyFeeds() {
  OpenTable table(optionsOf(1));
  EXPECT(table.request("presence/open") == Outcome::kOk);
  // A presence feed uses no place of a published feed.
  EXPECT(table.feeds.counts().feeds == 1 && table.feeds.counts().presences == 1);
  table.watch("presence/open", Grants::kNone, 0);
  EXPECT(table.feeds.remove("open") == Outcome::kOk);
  EXPECT(table.publish("other") == Outcome::kOk);
  EXPECT(table.request("presence/other") == Outcome::kTooManyFeeds);
  table.runSteps();
  EXPECT(table.endedTokens.size() == 1);
  EXPECT(table.request("presence/other") == Outcome::kOk);
}

/** Without memory a new presence feed is refused, and an existing one keeps its value. */
void heedsMemory() {
  FeedsOptions options = optionsOf(4);
  options.memory = 2000;
  OpenTable table(options);
  EXPECT(table.request("presence/open") == Outcome::kOk);
  EXPECT(table.valueOf("presence/open") == presenceText(0, {}));
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i) + std::string(150, 'x');
    table.watch("open", table.addGrant(name, true, {"*"}), 0);
  }
  table.advance(2000);
  EXPECT(table.valueOf("presence/open") == presenceText(0, {}));
  table.publish("other");
  options.memory = 3 * sizeof(base::Bytes) + 10;
  OpenTable smaller(options);
  EXPECT(smaller.request("presence/open") == Outcome::kFeedMemoryFull);
}

/** A tick updates 256 presence feeds; further ones are updated in the next ticks. */
void tellsSoManyAtATime() {
  constexpr uint32_t kFeeds = 300;
  Table table(optionsOf(kFeeds));
  const auto key = [](uint32_t i) { return "f" + std::to_string(i); };
  for (uint32_t i = 0; i < kFeeds; ++i) {
    table.publish(key(i));
    EXPECT(table.request("presence/" + key(i)) == Outcome::kOk);
    table.watch(key(i), Grants::kNone, 0);
  }
  const auto updatedFeeds = [&] {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < kFeeds; ++i)
      sum += table.valueOf("presence/" + key(i)) == presenceText(1, {});
    return sum;
  };
  table.advance(1000);
  EXPECT(updatedFeeds() == 256);
  table.advance(100);
  EXPECT(updatedFeeds() == kFeeds);
}

/** A presence feed is forgotten after a minute without requests; the next one starts it again. */
void forgetsUnwatched() {
  OpenTable table;
  EXPECT(table.request("presence/open") == Outcome::kOk);
  const uint64_t epoch = table.feeds.find("presence/open")->cursor.epoch;
  table.advance(50000);
  EXPECT(table.feeds.find("presence/open")->cursor.epoch == epoch);
  table.advance(15000);
  EXPECT(table.feeds.find("presence/open") == nullptr && table.feeds.counts().presences == 0);
  EXPECT(table.request("presence/open") == Outcome::kOk);
  EXPECT(table.feeds.find("presence/open")->cursor.epoch != epoch);
}

/** A stream that came before the feed gets presence from the feed's first value on. */
void waitsForTheFeed() {
  Table table(optionsOf(4));
  EXPECT(table.request("presence/open") == Outcome::kUnknownFeed);
  table.watch("presence/open", Grants::kNone, 0, true);
  EXPECT(table.feeds.counts().awaited == 1);
  table.publish("open");
  EXPECT(table.valueOf("presence/open") == presenceText(0, {}));
  EXPECT(table.feeds.counts().awaited == 0 && table.feeds.counts().presences == 1);
  EXPECT(table.request("presence/presence/open") == Outcome::kUnknownFeed);
}

/** A name is escaped as JSON. */
void writesAnyName() {
  OpenTable table;
  table.watch("open", table.addGrant("a\"\\\n\x01\x1f\xc3\xa9", true, {"*"}), 0);
  EXPECT(table.request("presence/open") == Outcome::kOk);
  EXPECT(table.valueOf("presence/open") ==
         "{\"watching\":1,\"who\":[\"a\\\"\\\\\\n\\u0001\\u001f\xc3\xa9\"]}");
}

// ---- Other servers of a world -------------------------------------------------------------------

/** The table of a server in a world, with its messages to the others. */
class WorldMember : public OpenTable {
 public:
  explicit WorldMember(FeedsOptions options = optionsOf(4))
      : OpenTable(inWorld(std::move(options))) {}

  /** Returns its messages since the last call: the number of questions, and the sent shares. */
  std::pair<uint32_t, std::vector<Attendance>> takeMessages() {
    std::pair<uint32_t, std::vector<Attendance>> all;
    for (const Feeds::Task& task : feeds.takeTasks()) {
      all.first += task.asksForShares;
      if (task.ownShare) all.second.push_back(*task.ownShare);
    }
    return all;
  }

 private:
  static FeedsOptions inWorld(FeedsOptions options) {
    options.inWorld = true;
    return options;
  }
};

const std::string kOpen = "presence/open";

/** A server with a presence feed asks the others at once, and every 5 s while the feed is watched;
 * not when another server has just asked. */
void asksOthers() {
  WorldMember member;
  EXPECT(member.takeMessages().first == 0);
  EXPECT(member.request(kOpen) == Outcome::kOk);
  EXPECT(member.takeMessages().first == 1);
  member.advance(20000);
  EXPECT(member.takeMessages().first == 4);
  for (int i = 0; i < 5; ++i) {
    member.feeds.answerShareRequest(kOpen);
    member.advance(4000);
  }
  EXPECT(member.takeMessages().first == 0);
  member.advance(60000);
  member.takeMessages();
  member.advance(60000);
  EXPECT(member.takeMessages().first == 0 && member.feeds.find(kOpen) == nullptr);
}

/** A server answers a question with its share at once, and each further question. For 15 s it also
 * sends changes of the share, at most once a second. */
void tellsOthers() {
  WorldMember member;
  member.advance(60000);
  member.feeds.answerShareRequest("presence/none");
  member.feeds.answerShareRequest("open");
  EXPECT(member.takeMessages().second.empty());
  member.feeds.answerShareRequest(kOpen);
  const auto first = member.takeMessages();
  EXPECT(first.first == 0 && first.second == std::vector<Attendance>({{0, {}}}));
  const uint32_t ann = member.addGrant("ann", true, {"*"});
  // The others' shares are no part of its share.
  member.feeds.setShare(kOpen, "b", {7, {"bo"}});
  for (int i = 0; i < 10; ++i) {
    member.watch("open", ann, 0);
    member.advance(300);
  }
  const std::vector<Attendance> shares = member.takeMessages().second;
  EXPECT(shares.size() >= 2 && shares.size() <= 3);
  EXPECT(shares.back().watching >= 7 && shares.back().names == std::vector<std::string>({"ann"}));
  member.advance(3000);
  member.takeMessages();
  member.advance(3000);
  EXPECT(member.takeMessages().second.empty());
  member.feeds.answerShareRequest(kOpen);
  member.advance(1000);
  EXPECT(member.takeMessages().second.size() == 1);
  member.advance(14000);
  member.watch("open", Grants::kNone, 0);
  member.advance(3000);
  EXPECT(member.takeMessages().second.empty());
}

/** The shares of all servers are added up: each name once, a hundred names, any number. */
void addsUpShares() {
  WorldMember member;
  member.feeds.setShare(kOpen, "b", {7, {}});  // not watched here
  EXPECT(member.feeds.find(kOpen) == nullptr);
  member.watch("open", member.addGrant("cy", true, {"*"}), 0);
  EXPECT(member.request(kOpen) == Outcome::kOk);
  EXPECT(member.valueOf(kOpen) == presenceText(1, {"cy"}));
  member.feeds.setShare(kOpen, "b", {7, {"ann", "cy"}});
  member.feeds.setShare(kOpen, "c", {2, {"di", "ann"}});
  member.feeds.setShare(kOpen, "b", {8, {"ann", "cy", "bo"}});
  const uint64_t before = member.feeds.find(kOpen)->cursor.version;
  member.advance(900);
  EXPECT(member.feeds.find(kOpen)->cursor.version == before);
  member.advance(200);
  EXPECT(member.valueOf(kOpen) == presenceText(11, {"ann", "bo", "cy", "di"}));
  member.feeds.removeShares("b");
  member.advance(1100);
  EXPECT(member.valueOf(kOpen) == presenceText(3, {"ann", "cy", "di"}));
  std::vector<std::string> names;
  names.reserve(150);
  for (int i = 0; i < 150; ++i) names.push_back("a" + std::to_string(100 + i));
  member.feeds.setShare(kOpen, "b", {UINT32_MAX, names});
  member.advance(1100);
  names.resize(kMaxNamed);
  EXPECT(member.valueOf(kOpen) == presenceText(UINT32_MAX, names));
}

/** Other servers' names count against the bound of names. They go with their server, and with the
 * feed. */
void keepsSoManyNamesOfOthers() {
  FeedsOptions options = optionsOf(4);
  options.maxNames = 3;
  WorldMember member(options);
  EXPECT(member.request(kOpen) == Outcome::kOk);
  for (int round = 0; round < 3; ++round) {
    member.feeds.setShare(kOpen, "b", {2, {"a", "b"}});
    member.feeds.setShare(kOpen, "c", {2, {"c", "d"}});
    member.advance(1100);
    EXPECT(member.valueOf(kOpen) == presenceText(4, {"a", "b", "c"}));
    if (round == 0) {
      member.feeds.removeShares("b");
      member.feeds.removeShares("c");
    } else {
      EXPECT(member.feeds.remove("open") == Outcome::kOk);
      member.runSteps();
      EXPECT(member.publish("open") == Outcome::kOk);
      EXPECT(member.request(kOpen) == Outcome::kOk);
    }
  }
}

// ---- Bad tokens ---------------------------------------------------------------------------------

/** Bad tokens are remembered for half a minute, at most a thousand, and use no grant's place. */
void remembersBadTokens() {
  Table table(optionsOf(4));
  const auto token = [](uint32_t number) {
    TokenHash hash = {};
    memcpy(hash.data(), &number, sizeof number);
    return hash;
  };
  EXPECT(!table.feeds.isBadGrant(token(7)));
  table.feeds.rememberBadGrant(token(7));
  EXPECT(table.feeds.isBadGrant(token(7)) && !table.feeds.isBadGrant(token(8)));
  EXPECT(table.feeds.findGrant(token(7)) == Grants::kNone);
  table.advance(29900);
  EXPECT(table.feeds.isBadGrant(token(7)));
  table.advance(200);
  EXPECT(!table.feeds.isBadGrant(token(7)));
  const uint32_t most = Grants::kMaxBad;
  for (uint32_t i = 0; i < 2 * most; ++i) table.feeds.rememberBadGrant(token(i));
  uint32_t known = 0;
  for (uint32_t i = 0; i < 2 * most; ++i) known += table.feeds.isBadGrant(token(i));
  EXPECT(known == most);
}

}  // namespace

int main() {
  namesAHundred();
  keepsANameForALease();
  countsWhomItNames();
  keepsSoManyNames();
  keepsSoManyFeeds();
  heedsMemory();
  tellsSoManyAtATime();
  forgetsUnwatched();
  waitsForTheFeed();
  writesAnyName();
  asksOthers();
  tellsOthers();
  addsUpShares();
  keepsSoManyNamesOfOthers();
  remembersBadTokens();
  printf("presence_test: bounds, other servers, tokens that are none\n");
}
