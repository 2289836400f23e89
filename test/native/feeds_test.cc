// The table of feeds against a small model: random publications, watchers, streams that read
// slowly, connections that go, feeds that end, and time.
//
//   feeds_test [steps] [seed]
//
// The model keeps every value a feed has ever had. Each answer is read back from its pieces, and
// must be the newest value, or patches that lead to it from the version the watcher named, in
// order. When all is done every watcher who kept asking has the newest value, nobody ever saw an
// older one after a newer one, and no memory is left.
#include "feeds/feeds.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "expect.h"

namespace {

using namespace server;

uint64_t clockNow = 0;

/** What everybody holds who watches: what he has of each feed. */
struct Person {
  bool busy = false;  // a request is open
  bool stream = false;
  bool slow = false;  // a stream's last event has not been taken
  bool delta = false;
  uint32_t watcher = Feeds::kNoWatcher;
  std::vector<std::string> keys;
  std::map<std::string, std::string> cursors;
  std::map<std::string, std::string> values;
};

struct Model {
  Cursor cursor;
  std::map<uint64_t, std::string> values;
};

class Test : FeedResponder {
 public:
  explicit Test(uint64_t seed)
      : random_(seed),
        limits_({.connections = 0,
                 .clients = 0,
                 .joinRate = 0,
                 .joinBurst = 0,
                 .spriteBytes = 0,
                 .heldBytes = 0,
                 .feeds = 3}),
        feeds_(
            {.hold = 20, .feeds = 6, .memory = 100000, .watchers = 40, .upstream = false}, 0,
            [] { return clockNow; }, &limits_),
        people_(24) {
    feeds_.setResponder(this);
  }

  void run(uint64_t steps) {
    for (uint64_t i = 0; i < steps; ++i) {
      step();
      if (i % 64 == 0) hear();
    }
    settle();
    printf("published %" PRIu64 ", documents %" PRIu64 ", patches %" PRIu64 ", skipped %" PRIu64
           ", pings %" PRIu64 ", refused %" PRIu64 "\n",
           feeds_.counts().published, feeds_.counts().documents, feeds_.counts().patches,
           feeds_.counts().skipped, feeds_.counts().pings, refused_);
  }

 private:
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  std::string anyKey() { return "key/" + std::to_string(below(8)); }

  static std::string text(Cursor cursor) {
    std::string text;
    cursor.appendTo(&text);
    return text;
  }

  void step() {
    clockNow += below(3);
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
        return publish(anyKey());
      case 3:
        if (below(20) == 0) return end(anyKey());
        return;
      case 4:
        now_ += below(3000);
        while (!feeds_.tick(now_)) {
        }
        return;
      case 5:
      case 6:
        feeds_.step(below(4));
        return;
      case 7: {
        Person& one = people_[below(people_.size())];
        if (one.busy && one.watcher != Feeds::kNoWatcher && below(4) == 0) {
          feeds_.drop(one.watcher);
          one.busy = one.slow = false;
          one.watcher = Feeds::kNoWatcher;
        }
        return;
      }
      case 8:
      case 9: {
        Person& one = people_[below(people_.size())];
        if (one.busy && one.slow) takeRest(&one);
        return;
      }
      default:
        return ask(below(people_.size()));
    }
  }

  void publish(const std::string& key) {
    Model& model = models_[key];
    const bool fresh = model.values.empty();
    const Cursor cursor =
        fresh ? Cursor{++epochs_, 1} : Cursor{model.cursor.epoch, model.cursor.version + 1};
    const std::string patch = "{\"v\":" + std::to_string(cursor.version) + "}";
    const std::string value = "{\"at\":" + std::to_string(cursor.version) + ",\"p\":\"" +
                              std::string(below(400), 'x') + "\"}";
    uint32_t watching = 0;
    const Outcome outcome = feeds_.publish({.key = key,
                                            .cursor = cursor,
                                            .value = value,
                                            .patch = below(10) == 0 ? "" : patch,
                                            .gzip = {},
                                            .upstream = false},
                                           &watching);
    if (outcome != Outcome::kOk) {
      EXPECT(outcome == Outcome::kTooManyFeeds && fresh && feeds_.counts().feeds == 6);
      models_.erase(key);
      ++refused_;
      return;
    }
    EXPECT(feeds_.counts().feeds <= 6);
    model.cursor = cursor;
    model.values[cursor.version] = value;
  }

  void end(const std::string& key) {
    const bool there = models_.erase(key) > 0;
    EXPECT((feeds_.remove(key) == Outcome::kOk) == there);
  }

  void ask(uint32_t number) {
    Person& one = people_[number];
    if (one.busy) return;
    one.stream = below(4) == 0;
    one.delta = below(2) == 0;
    const bool many = !one.stream && below(2) == 0;
    one.keys.clear();
    const uint32_t count = many ? 1 + below(4) : 1;
    std::set<std::string> keys;
    while (keys.size() < count) keys.insert(anyKey());
    std::vector<Wanted> wanted;
    for (const std::string& key : keys) {
      const std::string& has = one.cursors[key];
      wanted.push_back({key, has.empty() && below(2) == 0 ? kNoCursor : std::string_view(has)});
      one.keys.push_back(key);
    }
    const bool waits = one.stream || wanted[0].after == kNoCursor;
    one.busy = true;
    one.slow = false;
    one.watcher = Feeds::kNoWatcher;
    uint32_t watcher;
    const Outcome outcome = feeds_.watch(wanted.data(), count,
                                         {.hold = below(5) == 0 ? kNoFeedHold : 5 + below(16),
                                          .delta = one.delta,
                                          .gzip = false,
                                          .stream = one.stream,
                                          .many = many,
                                          .from = {.host = 1 + below(3)}},
                                         number, &watcher);
    if (outcome != Outcome::kOk) {
      one.busy = false;
      ++refused_;
      if (outcome == Outcome::kUnknownFeed) {
        EXPECT(models_.count(one.keys[0]) == 0 && !waits);
        forget(&one, one.keys[0]);
      } else if (outcome == Outcome::kTooManyFetches || outcome == Outcome::kTooManyFeeds) {
        EXPECT(models_.count(one.keys[0]) == 0 && waits);
      } else {
        EXPECT(outcome == Outcome::kTooManyWatchers || outcome == Outcome::kBadHold);
      }
      return;
    }
    if (one.busy) one.watcher = watcher;
  }

  static void forget(Person* one, const std::string& key) {
    one->cursors.erase(key);
    one->values.erase(key);
  }

  void takeRest(Person* one) {
    one->slow = false;
    feeds_.writable(one->watcher);
  }

  Taken answer(uint32_t token, const FeedAnswer& answer) override {
    Person& one = people_[token];
    EXPECT(one.busy);
    if (!answer.stream || answer.ends) one.busy = false;
    if (answer.outcome != Outcome::kOk) {
      EXPECT(answer.outcome == Outcome::kUnknownFeed);
      forget(&one, one.keys[0]);
      return Taken::kWhole;
    }
    std::string body;
    for (uint32_t i = 0; i < answer.count; ++i) {
      const FeedItem& item = answer.items[i];
      body += item.before;
      if (item.bytes != nullptr)
        body += item.bytes->text().substr(item.begin, item.end - item.begin);
      body += item.after;
    }
    EXPECT(body.size() == answer.length());
    for (size_t at = body.find("{\"feed\":\""); at != std::string::npos;
         at = body.find("{\"feed\":\"", at + 1)) {
      read(&one, body.substr(at));
    }
    if (!answer.stream) return Taken::kWhole;
    if (below(30) == 0 && !answer.ends) {
      one.busy = false;
      one.watcher = Feeds::kNoWatcher;
      return Taken::kLost;
    }
    one.slow = below(3) == 0;
    return one.slow ? Taken::kInPart : Taken::kWhole;
  }

  static std::string between(const std::string& text, const char* from, const char* to) {
    const size_t begin = text.find(from);
    if (begin == std::string::npos) return {};
    const size_t start = begin + strlen(from);
    return text.substr(start, text.find(to, start) - start);
  }

  void read(Person* one, const std::string& item) {
    const std::string key = between(item, "\"feed\":\"", "\"");
    if (item.compare(0, key.size() + 22, "{\"feed\":\"" + key + "\",\"problem\":\"") == 0) {
      forget(one, key);
      return;
    }
    const std::string cursor = between(item, "\"cursor\":\"", "\"");
    if (cursor == kNoCursor) {
      EXPECT(models_.count(key) == 0 && one->cursors[key].empty());
      return;
    }
    const Model& model = models_[key];
    const Cursor now = Cursor::of(cursor);
    EXPECT(now.epoch == model.cursor.epoch && now.version == model.cursor.version);
    const Cursor before = Cursor::of(one->cursors[key]);
    EXPECT(before.epoch != now.epoch || before.version <= now.version);
    const std::string head = item.substr(0, item.find("\"cursor\""));
    if (head.find("\"from\"") != std::string::npos) {
      EXPECT(one->delta);
      EXPECT(between(item, "\"from\":\"", "\"") == one->cursors[key]);
      std::string expected = "\"patch\":[";
      for (uint64_t version = before.version + 1; version <= now.version; ++version) {
        if (version > before.version + 1) expected += ',';
        expected += "{\"v\":" + std::to_string(version) + "}";
      }
      EXPECT(item.find(expected + "]}") != std::string::npos);
    } else if (item.find("\"value\":") != std::string::npos) {
      EXPECT(between(item, "\"value\":", "\"}") + "\"}" == model.values.at(now.version));
    } else {
      EXPECT(before.version == now.version);
      return;
    }
    one->cursors[key] = cursor;
    one->values[key] = model.values.at(now.version);
  }

  /** Everybody who watches and is not slow has heard of what is newest. */
  void hear() {
    while (feeds_.step(1000)) clockNow += 10;
    for (Person& one : people_) {
      if (!one.busy || one.slow) continue;
      for (const std::string& key : one.keys) {
        if (models_.count(key) > 0) EXPECT(one.cursors[key] == text(models_[key].cursor));
      }
    }
  }

  /** Everybody keeps asking until all have what is newest; then all goes, and nothing is left. */
  void settle() {
    for (int round = 0; round < 3; ++round) {
      while (feeds_.step(1000)) clockNow += 10;
      for (Person& one : people_) {
        if (one.busy && one.slow) takeRest(&one);
      }
    }
    hear();
    for (uint32_t number = 0; number < people_.size(); ++number) {
      Person& one = people_[number];
      if (one.busy) feeds_.drop(one.watcher);
      one.busy = false;
      for (const auto& [key, model] : models_) {
        one.keys = {key};
        one.stream = false;
        const Wanted wanted = {key, one.cursors[key]};
        uint32_t watcher;
        one.busy = true;
        EXPECT(feeds_.watch(&wanted, 1, {kNoFeedHold, one.delta, false, false, false}, number,
                            &watcher) == Outcome::kOk);
        if (one.busy) feeds_.drop(watcher);
        one.busy = false;
        EXPECT(one.values[key] == model.values.rbegin()->second);
      }
    }
    EXPECT(feeds_.counts().watching == 0 && feeds_.counts().streams == 0);
    while (!models_.empty()) end(std::string(models_.begin()->first));
    EXPECT(feeds_.counts().feeds == 0 && feeds_.counts().awaited == 0 && limits_.size() == 0);
    EXPECT(feeds_.counts().memory == 0 && feeds_.held() == 0);
  }

  std::mt19937_64 random_;
  AddressLimits limits_;
  Feeds feeds_;
  std::vector<Person> people_;
  std::map<std::string, Model> models_;
  uint64_t epochs_ = 0;
  uint64_t now_ = 0;
  uint64_t refused_ = 0;
};

enum class Whose : uint8_t { kShown, kWorld };

/**
 * A table that shows another, or one of a server of a world, that is behind what a watcher was told
 * elsewhere: the watcher is not sent back to an older version, and hears of the next one.
 */
class Behind : FeedResponder {
 public:
  Behind(bool many, Whose whose)
      : feeds_({.hold = 20,
                .feeds = 6,
                .memory = 100000,
                .watchers = 40,
                .upstream = false,
                .shows = whose == Whose::kShown ? &shown_ : nullptr,
                .shared = whose == Whose::kWorld},
               0, [] { return clockNow; }),
        many_(many) {
    feeds_.setResponder(this);
  }

  void run() {
    publish({1, 2});
    watch("e1-4");
    EXPECT(said_.empty());
    publish({1, 3});
    EXPECT(said_.empty());
    publish({1, 4});
    EXPECT(said_.empty());
    publish({1, 5});
    EXPECT(said_.find("\"cursor\":\"e1-5\"") != std::string::npos);
    EXPECT(said_.find("\"value\":[5]") != std::string::npos);

    // The end of his hold leaves him what he has.
    watch("e1-9");
    for (uint64_t now = 0; now < 60000; now += 100) {
      while (!feeds_.tick(now)) {
      }
    }
    EXPECT(said_ == (many_ ? R"({"items":[]})" : R"({"feed":"a","cursor":"e1-9"})"));

    // Another epoch is news, whatever its version.
    watch("e1-9");
    publish({2, 1});
    EXPECT(said_.find("\"cursor\":\"e2-1\"") != std::string::npos);
  }

 private:
  void publish(Cursor cursor) {
    const std::string value = "[" + std::to_string(cursor.version) + "]";
    uint32_t watching;
    EXPECT(feeds_.publish({.key = "a",
                           .cursor = cursor,
                           .value = value,
                           .patch = {},
                           .gzip = {},
                           .upstream = true},
                          &watching) == Outcome::kOk);
    while (feeds_.step(1000)) clockNow += 10;
  }

  void watch(const char* after) {
    said_.clear();
    const Wanted wanted = {"a", after};
    uint32_t watcher;
    EXPECT(feeds_.watch(&wanted, 1, {kNoFeedHold, false, false, false, many_}, 0, &watcher) ==
           Outcome::kOk);
  }

  Taken answer(uint32_t, const FeedAnswer& answer) override {
    for (uint32_t i = 0; i < answer.count; ++i) {
      const FeedItem& item = answer.items[i];
      said_ += item.before;
      if (item.bytes != nullptr)
        said_ += item.bytes->text().substr(item.begin, item.end - item.begin);
      said_ += item.after;
    }
    return Taken::kWhole;
  }

  // Of another thread.
  Feeds shown_{{.hold = 20, .feeds = 6, .memory = 100000, .watchers = 40, .upstream = false},
               0,
               [] { return clockNow; }};
  Feeds feeds_;
  const bool many_;
  std::string said_;
};

/**
 * What is said of time: a turn answers as many as its share has time for, feeds take turns, a hold
 * is never over early, and an event stream has a comment every 25 s, but for one who is slow; at
 * the end everybody is told within the window, and who is slow when he has read on.
 */
class Times : FeedResponder {
 public:
  Times()
      : feeds_({.hold = 60, .feeds = 2, .memory = 100000, .watchers = 4000, .upstream = false}, 0,
               [] { return clockNow; }) {
    feeds_.setResponder(this);
    publish("a", 1);
    publish("b", 1);
  }

  void run() {
    shares();
    holds();
    comments();
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
    EXPECT(feeds_.publish({.key = key,
                           .cursor = {1, version},
                           .value = value,
                           .patch = patch,
                           .gzip = {},
                           .upstream = false},
                          &watching) == Outcome::kOk);
  }

  /** A watcher of `key`, with what is newest; `token` says to whom its answers count. */
  uint32_t watch(const char* key, const char* after, uint32_t token, bool stream) {
    const Wanted wanted = {key, after};
    uint32_t watcher;
    EXPECT(feeds_.watch(&wanted, 1, {kNoFeedHold, false, false, stream, false}, token, &watcher) ==
           Outcome::kOk);
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
    // The thousand of the one do not stand before the other's.
    EXPECT(before_ <= 64);
  }

  void passTo(uint64_t end) {
    for (; now_ < end; now_ += 100) {
      while (!feeds_.tick(now_)) {
      }
    }
  }

  void holds() {
    answers_[0] = 0;
    for (uint32_t i = 0; i < kMany; ++i) watch("a", "e1-2", 0, false);
    passTo(60000);
    EXPECT(answers_[0] == 0);
    // A sixteenth of it later, so that polls that came together part; and some ticks.
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
    // Its head goes out at once.
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

  /** A watcher of "b" who takes it compressed. */
  void watchCompressed(const char* after) {
    const Wanted wanted = {"b", after};
    uint32_t watcher;
    EXPECT(feeds_.watch(&wanted, 1, {kNoFeedHold, false, true, false, false}, 0, &watcher) ==
           Outcome::kOk);
  }

  /** A version is compressed once, however many wait for that. */
  void compression() {
    slow_ = false;
    answers_[0] = 0;
    const std::string value = "[\"" + std::string(2000, 'x') + "\"]";
    publish("b", 3, value, {});
    feeds_.takeWants();
    for (uint32_t i = 0; i < kMany; ++i) watchCompressed("e1-2");
    EXPECT(answers_[0] == 0 && feeds_.takeWants().size() == 1);
    feeds_.compressed("b", {1, 3}, "compressed");
    while (feeds_.step(kShare)) {
    }
    EXPECT(answers_[0] == kMany && feeds_.takeWants().empty());
  }

  /** A version that could not be compressed goes out as it is, to those who come later as well. */
  void failedCompression() {
    answers_[0] = 0;
    const std::string value = "[\"" + std::string(2000, 'y') + "\"]";
    publish("b", 4, value, {});
    watchCompressed("e1-3");
    EXPECT(answers_[0] == 0 && feeds_.takeWants().size() == 1);
    feeds_.compressed("b", {1, 4}, {});
    while (feeds_.step(kShare)) {
    }
    EXPECT(answers_[0] == 1);
    watchCompressed("e1-3");
    EXPECT(answers_[0] == 2 && !compressed_ && feeds_.takeWants().empty());
    // Another process that asks for it now is told so.
    Told told;
    feeds_.watchFor(&told);
    feeds_.wantCompressed("b");
    EXPECT(told.failed == 1 && feeds_.takeWants().empty());
    feeds_.watchFor(nullptr);
    // The next version may be compressed again.
    publish("b", 5, value, {});
    watchCompressed("e1-4");
    EXPECT(answers_[0] == 2 && feeds_.takeWants().size() == 1);
    feeds_.compressed("b", {1, 5}, "compressed");
    while (feeds_.step(kShare)) {
    }
    EXPECT(answers_[0] == 3 && compressed_);
  }

  /** All with the same cursor get the same bytes: one value, one run of patches, for a thousand. */
  void sharing() {
    const auto sentTo = [&](const char* after, bool delta) {
      sent_.clear();
      for (uint32_t i = 0; i < kMany; ++i) {
        const Wanted wanted = {"a", after};
        uint32_t watcher;
        EXPECT(feeds_.watch(&wanted, 1, {kNoFeedHold, delta, false, false, false}, 0, &watcher) ==
               Outcome::kOk);
      }
      while (feeds_.step(kShare)) {
      }
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
    while (feeds_.step(kShare)) {
    }
    const auto whole = sentTo("e1-2", false);
    EXPECT(whole.size() == 1);
    const auto patched = sentTo("e1-2", true);
    const auto later = sentTo("e1-3", true);
    EXPECT(patched.size() == 1 && later.size() == 1);
    // The one run of patches, from there on.
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
    while (feeds_.step(kShare)) {
    }
    EXPECT(feeds_.counts().watching == 0 && ended_ == 2);
  }

  Taken answer(uint32_t token, const FeedAnswer& sent) override {
    clockNow += kCost;
    ++answers_[token];
    compressed_ = sent.gzip;
    if (sent.ends) ++ended_;
    for (uint32_t i = 0; i < sent.count; ++i) {
      const FeedItem& item = sent.items[i];
      if (item.bytes != nullptr) sent_.emplace_back(item.bytes, item.begin, item.end);
    }
    if (token == 1) before_ = answers_[0];
    return token == 1 && slow_ ? Taken::kInPart : Taken::kWhole;
  }

  /** What another process would hear. */
  struct Told : FeedsWatcher {
    void published(const Feed&) override {}
    void compressed(const Feed& feed) override { failed += feed.gzip ? 0 : 1; }
    void ended(std::string_view, Outcome) override {}
    uint32_t failed = 0;
  };

  /** Which bytes were sent, and from where to where. */
  using SentBytes = std::tuple<const base::Bytes*, uint32_t, uint32_t>;

  Feeds feeds_;
  std::vector<SentBytes> sent_;
  uint64_t now_ = 0;
  bool slow_ = false;
  bool compressed_ = false;  // the last answer
  uint64_t ended_ = 0;       // streams
  uint64_t answers_[2] = {};
  uint64_t before_ = 0;  // answers to the first when the second had one
};

/** Feeds that are asked for and can't be fetched: they make room for others, and leave nothing. */
class Unfetched : FeedResponder {
 public:
  Unfetched()
      : feeds_({.hold = 20, .feeds = 2, .memory = 1000, .watchers = 10, .upstream = true}, 0,
               [] { return clockNow; }) {
    feeds_.setResponder(this);
  }

  void run() {
    repetitions();
    makeRoom();
    keepToPlaces();
  }

 private:
  Outcome ask(const std::string& key, uint32_t* watcher) {
    const Wanted wanted = {key, ""};
    const Outcome outcome =
        feeds_.watch(&wanted, 1, {kNoFeedHold, false, false, false, false}, 0, watcher);
    feeds_.takeWants();
    return outcome;
  }

  /** Somebody asks, and is told that it can't be had. */
  void failToFetch(const std::string& key) {
    uint32_t watcher;
    EXPECT(ask(key, &watcher) == Outcome::kOk);
    feeds_.fail(key, kLater);
    feeds_.step(1000);
    EXPECT(feeds_.find(key)->watching == 0);
  }

  /** However often fetches fail, what is kept of that is no more than there are feeds. */
  void repetitions() {
    for (uint32_t i = 0; i < 100000; ++i) {
      const std::string key = "key/" + std::to_string(i);
      failToFetch(key);
      feeds_.fail(key, kLater);
      EXPECT(feeds_.failed() == 1);
      EXPECT(feeds_.forget(key) && feeds_.failed() == 0);
    }
    failToFetch("a");
    uint32_t watching;
    EXPECT(feeds_.publish({.key = "a",
                           .cursor = {1, 1},
                           .value = "1",
                           .patch = {},
                           .gzip = {},
                           .upstream = false},
                          &watching) == Outcome::kOk);
    EXPECT(feeds_.failed() == 0 && feeds_.remove("a") == Outcome::kOk);
  }

  /** The oldest goes first, but for one that is waited for. */
  void makeRoom() {
    uint32_t watcher;
    for (const char* key : {"a", "b", "c"}) failToFetch(key);
    EXPECT(feeds_.find("a") == nullptr && feeds_.find("b") != nullptr);
    EXPECT(feeds_.counts().feeds == 2 && feeds_.failed() == 2);
    feeds_.tick(kLater);
    EXPECT(ask("b", &watcher) == Outcome::kOk);
    failToFetch("d");
    EXPECT(feeds_.find("b") != nullptr && feeds_.find("c") == nullptr);
    feeds_.fail("b", 2 * kLater);
    feeds_.step(1000);
    EXPECT(feeds_.failed() == 2 && feeds_.forget("b") && feeds_.forget("d"));
    EXPECT(feeds_.counts().feeds == 0 && feeds_.failed() == 0);
  }

  /** One whose watchers go before they are answered has its place until the next step. */
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
    EXPECT(feeds_.forget("c") && feeds_.counts().feeds == 0);
  }

  Taken answer(uint32_t, const FeedAnswer&) override { return Taken::kWhole; }

  static constexpr uint64_t kLater = 1000;  // milliseconds

  Feeds feeds_;
};

}  // namespace

int main(int count, char** arguments) {
  const uint64_t steps = count > 1 ? strtoull(arguments[1], nullptr, 10) : 300000;
  const uint64_t seed = count > 2 ? strtoull(arguments[2], nullptr, 10) : std::random_device{}();
  printf("seed %" PRIu64 "\n", seed);
  for (const Whose whose : {Whose::kShown, Whose::kWorld}) {
    Behind(false, whose).run();
    Behind(true, whose).run();
  }
  Times().run();
  Unfetched().run();
  Test(seed).run(steps);
  return 0;
}
