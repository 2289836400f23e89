// Logs against a plain model: random appends, ends, watchers with any cursor by poll, by list and
// by stream, readers who are slow, and other epochs.
//
//   logs_test [steps] [seed]
//
// The model keeps every item that a log has ever had, and how many of them it keeps by its bounds.
// Whoever goes on asking has every item once and in order; where `gap` says that some are gone,
// they are gone.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "expect.h"
#include "feeds/feeds.h"

namespace {

using namespace server;

uint64_t clockNow = 0;

constexpr LogBounds kBounds = {.items = 12, .bytes = 300};
constexpr uint32_t kAnswerBytes = 120;

/** A log as it was in all its life. */
struct Model {
  uint64_t epoch = 0;
  std::vector<std::string> items;  // the first has the version 1
  size_t gone = 0;

  uint64_t newest() const { return items.size(); }

  void trim() {
    const auto bytes = [this] {
      size_t sum = 0;
      for (size_t i = gone; i < items.size(); ++i) sum += items[i].size() + 1;
      return sum;
    };
    while (items.size() - gone > 1 &&
           (items.size() - gone > kBounds.items || bytes() > kBounds.bytes)) {
      ++gone;
    }
  }
};

struct Person {
  bool busy = false;
  bool stream = false;
  bool slow = false;
  bool foreign = false;  // the cursor is of no life of this log
  uint32_t last = kNotLast;
  uint32_t watcher = Feeds::kNoWatcher;
  std::string key;
  std::string cursor;
};

class Test : FeedResponder {
 public:
  Test(uint64_t seed, bool shared)
      : random_(seed),
        feeds_({.hold = 20,
                .feeds = 6,
                .memory = 100000,
                .watchers = 60,
                .upstream = false,
                .shared = shared,
                .log = kBounds,
                .answerBytes = kAnswerBytes},
               0, [] { return clockNow; }),
        people_(20) {
    feeds_.setResponder(this);
  }

  void run(uint64_t steps) {
    for (uint64_t i = 0; i < steps; ++i) step();
    settle();
    for (Person& one : people_) {
      if (one.busy && one.watcher != Feeds::kNoWatcher) feeds_.drop(one.watcher);
    }
    uint64_t bytes = 0;
    feeds_.forEach([&](const Feed& feed) { bytes += feed.cost(); });
    EXPECT(bytes == feeds_.counts().memory && feeds_.held() == 0);
    for (uint32_t key = 0; key < 4; ++key) feeds_.remove(keyOf(key));
    while (feeds_.step(100)) {
    }
    EXPECT(feeds_.counts().memory == 0 && feeds_.held() == 0 && feeds_.counts().feeds == 0);
    EXPECT(answered_ > steps / 20 && gaps_ > 0 && parts_ > 0);
    printf("items %" PRIu64 ", answers %" PRIu64 ", gaps %" PRIu64 ", parts %" PRIu64 "\n", told_,
           answered_, gaps_, parts_);
  }

 private:
  /** Whoever reads on has all in the end, however far behind he was. */
  void settle() {
    slowness_ = false;
    for (bool again = true; again;) {
      again = false;
      for (Person& one : people_) {
        if (!one.busy || !one.slow) continue;
        one.slow = false;
        again = true;
        feeds_.writable(one.watcher);
      }
      while (feeds_.step(100)) {
      }
    }
    for (const Person& one : people_) {
      const Model& model = models_[one.key];
      if (!one.busy || one.key.empty() || model.items.empty()) continue;
      EXPECT(one.cursor == text({model.epoch, model.newest()}));
    }
  }

  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  static std::string keyOf(uint32_t number) { return "log/" + std::to_string(number); }

  static std::string text(Cursor cursor) {
    std::string text;
    cursor.appendTo(&text);
    return text;
  }

  void step() {
    clockNow += below(3);
    switch (below(14)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return append(keyOf(below(4)));
      case 4:
        if (below(30) == 0) return end(keyOf(below(4)));
        if (below(30) == 0) return renew(keyOf(below(4)));
        return;
      case 5:
      case 6:
        feeds_.step(below(4));
        return;
      case 7:
        now_ += below(2000);
        while (!feeds_.tick(now_)) {
        }
        return;
      case 8:
      case 9: {
        Person& one = people_[below(people_.size())];
        if (!one.busy || !one.slow) return;
        one.slow = false;
        feeds_.writable(one.watcher);
        return;
      }
      case 10: {
        Person& one = people_[below(people_.size())];
        if (!one.busy || one.watcher == Feeds::kNoWatcher || below(4) > 0) return;
        feeds_.drop(one.watcher);
        one.busy = one.slow = false;
        return;
      }
      default:
        return ask(below(people_.size()));
    }
  }

  void append(const std::string& key) {
    Model& model = models_[key];
    if (model.items.empty()) model.epoch = ++epochs_;
    const std::string item = "\"" + std::to_string(model.newest() + 1) +
                             std::string(below(60) == 0 ? 350 : below(30), 'x') + "\"";
    uint32_t watching;
    const Outcome outcome = feeds_.append(key, {model.epoch, model.newest() + 1}, item, &watching);
    // Those that have ended have a place until their watchers know.
    if (outcome == Outcome::kTooManyFeeds && model.items.empty()) return;
    EXPECT(outcome == Outcome::kOk);
    model.items.push_back(item);
    model.trim();
    EXPECT(feeds_.find(key)->patches.size() == model.items.size() - model.gone);
    ++told_;
  }

  void end(const std::string& key) {
    Model& model = models_[key];
    EXPECT((feeds_.remove(key) == Outcome::kOk) == !model.items.empty());
    model = {};
  }

  /** The log has another epoch: whoever had a version has none of it. */
  void renew(const std::string& key) {
    Model& model = models_[key];
    uint32_t watching;
    const Outcome outcome = feeds_.append(key, {++epochs_, model.newest()}, {}, &watching);
    EXPECT((outcome == Outcome::kOk) == !model.items.empty());
    if (!model.items.empty()) model.epoch = epochs_;
  }

  void ask(uint32_t number) {
    Person& one = people_[number];
    if (one.busy) return;
    one.last = kNotLast;
    if (one.key.empty() || below(8) == 0) {
      one.key = keyOf(below(4));
      one.cursor = below(2) == 0 ? "" : "none";
      const Model& model = models_[one.key];
      if (below(4) == 0) one.cursor = "e" + std::to_string(below(9)) + "-9007199254740993";
      if (below(4) == 0 && model.newest() > 0) {
        one.cursor = text({model.epoch, 1 + below(model.newest())});
      }
    }
    WatchHow how = {.delta = below(2) == 0, .gzip = below(2) == 0, .stream = below(3) == 0};
    how.many = !how.stream && below(3) == 0;
    if (!how.many && below(6) == 0)
      how.last = one.last = below(2) == 0 ? kFromStart : 1 + below(20);
    const Wanted wanted = {
        one.key, one.last == kNotLast ? std::string_view(one.cursor) : std::string_view()};
    one.busy = true;
    one.stream = how.stream;
    one.watcher = Feeds::kNoWatcher;
    uint32_t watcher;
    const Outcome outcome = feeds_.watch(&wanted, 1, how, number, &watcher);
    if (outcome != Outcome::kOk) {
      EXPECT(outcome == Outcome::kUnknownFeed && models_[one.key].items.empty());
      one.busy = false;
      one.key.clear();
      return;
    }
    if (one.busy) one.watcher = watcher;
  }

  static std::string between(const std::string& text, const std::string& begin,
                             const std::string& end) {
    const size_t at = text.find(begin);
    if (at == text.npos) return {};
    const size_t from = at + begin.size();
    return text.substr(from, text.find(end, from) - from);
  }

  Taken answer(uint32_t token, const FeedAnswer& answer) override {
    Person& one = people_[token];
    EXPECT(one.busy && !one.slow);
    std::string body;
    for (uint32_t i = 0; i < answer.count; ++i) {
      const FeedItem& item = answer.items[i];
      body += item.before;
      if (item.bytes != nullptr)
        body += item.bytes->text().substr(item.begin, item.end - item.begin);
      body += item.after;
    }
    if (!one.stream || answer.ends) one.busy = false;
    if (answer.outcome != Outcome::kOk || body.find("\"problem\"") != body.npos) {
      one.key.clear();
      one.busy = false;
      return Taken::kWhole;
    }
    const size_t begin = body.find("\"items\":[\"");
    if (begin == body.npos) {
      if (answer.count > 0 && !one.stream) EXPECT(one.last == kNotLast);
      return Taken::kWhole;
    }
    const std::string items = body.substr(begin + 9, body.rfind("\"]") + 1 - begin - 9);
    check(&one, body, items);
    if (one.stream) EXPECT(answer.cursor == one.cursor);
    if (!one.stream) return Taken::kWhole;
    one.slow = slowness_ && below(3) == 0;
    return one.slow ? Taken::kInPart : Taken::kWhole;
  }

  /** The items are those behind what he had, or what is kept. */
  void check(Person* one, const std::string& body, const std::string& items) {
    ++answered_;
    const Model& model = models_[one->key];
    const Cursor from = Cursor::of(between(body, "\"from\":\"", "\""));
    const std::string cursorText = between(body, "\"cursor\":\"", "\"");
    const Cursor to = Cursor::of(cursorText);
    const bool gap = body.find("\"gap\":true") != body.npos;
    EXPECT(to.epoch == model.epoch && to.version <= model.newest() && to.version > from.version);
    // Where he was: behind which version, and whether that is one of this life.
    Cursor had = Cursor::of(one->cursor);
    bool foreign = !one->cursor.empty() && one->cursor != "none" &&
                   (had.epoch != model.epoch || had.version > model.newest() || had.version == 0);
    if (foreign) had.version = 0;
    if (one->last != kNotLast) {
      foreign = false;
      had.version =
          one->last == kFromStart || one->last >= model.newest() ? 0 : model.newest() - one->last;
      one->last = kNotLast;
    }
    const bool isGone = had.version < model.gone;
    EXPECT(gap == (foreign || isGone));
    EXPECT(from.version == std::max<uint64_t>(had.version, model.gone));
    gaps_ += gap;
    std::string expected;
    for (uint64_t i = from.version; i < to.version; ++i) {
      if (!expected.empty()) expected += ',';
      expected += model.items[i];
    }
    EXPECT(items == expected);
    EXPECT(expected.size() <= kAnswerBytes || to.version == from.version + 1);
    // As much as fits.
    if (to.version < model.newest()) {
      ++parts_;
      EXPECT(expected.size() + 1 + model.items[to.version].size() > kAnswerBytes);
    }
    one->cursor = cursorText;
  }

  std::mt19937_64 random_;
  Feeds feeds_;
  std::vector<Person> people_;
  std::map<std::string, Model> models_;
  bool slowness_ = true;
  uint64_t epochs_ = 10;
  uint64_t now_ = 0;
  uint64_t told_ = 0, answered_ = 0, gaps_ = 0, parts_ = 0;
};

/** Appends that wait for a journal are told of when it has them; and bounds. */
void testBounds() {
  Feeds feeds({.hold = 20,
               .feeds = 2,
               .memory = 1000,
               .watchers = 10,
               .upstream = false,
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
  // A value in its place, and a log in that one's.
  EXPECT(
      feeds.publish(
          {.key = "b", .cursor = {4, 1}, .value = "{}", .patch = {}, .gzip = {}, .upstream = false},
          &watching) == Outcome::kOk);
  EXPECT(!feeds.find("b")->isLog && feeds.find("b")->patches.empty());
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t steps = argc > 1 ? strtoull(argv[1], nullptr, 10) : 200000;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : std::random_device{}();
  printf("logs_test: seed %" PRIu64 "\n", seed);
  testBounds();
  Test(seed, false).run(steps);
  return 0;
}
