// Feeds between the main thread and a worker: what crosses on its way, and what a worker that is
// behind skips.
//
//   worker_feeds_test

#include "server/worker_feeds.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expect.h"
#include "server/worker_service.h"

namespace {

using namespace server;

constexpr uint64_t kMemory = 256 << 20;

/** The number of another worker than the one that is looked at. */
constexpr uint32_t kOther = 100;

uint64_t microseconds() { return EventSet::now(); }

/** The main thread, which has the feeds. */
class Main : public FeedsWatcher {
 public:
  explicit Main(bool upstream)
      : pool_({.capacity = 64,
               .hold = 30,
               .lease = 30,
               .maxSprite = 256,
               .mailboxSprites = 64,
               .mailboxBytes = 1 << 16,
               .mailboxMemory = 1 << 20,
               .answerBytes = 4096},
              &limits_, 0),
        feeds_({.hold = 30, .feeds = 200, .memory = kMemory, .watchers = 8, .upstream = upstream},
               0, microseconds),
        service({.pool = &pool_, .feeds = &feeds_, .clock = microseconds}, PollHolder::kFirstWorker,
                16) {
    feeds_.watchFor(this);
  }

  void published(const Feed& feed) override { service.published(feed); }
  void compressed(const Feed& feed) override { service.compressed(feed); }
  void ended(std::string_view key, Outcome why) override { service.ended(key, why); }

  /** Publishes a value of about `length` bytes, as e1-`version`; how many watch it. */
  uint32_t publish(std::string_view key, uint64_t version, size_t length = 10) {
    uint32_t watching;
    EXPECT(feeds_.publish(
               {.key = key, .cursor = {1, version}, .value = '"' + std::string(length, 'x') + '"'},
               &watching) == Outcome::kOk);
    return watching;
  }

  /** A client of another worker begins to wait for a feed's first value, or ends. */
  void anotherWaits(std::string_view key) {
    EXPECT(feeds_.askForWorker(key, kOther, {}, true) == Outcome::kOk);
    feeds_.watchedAtWorkers(key, {}, {.watching = 1});
  }
  void anotherLeaves(std::string_view key) {
    feeds_.watchedAtWorkers(key, {.watching = 1}, {});
    feeds_.leftAtWorker(key, kOther);
  }

  const Feeds& feeds() const { return feeds_; }

  void remove(std::string_view key) { EXPECT(feeds_.remove(key) == Outcome::kOk); }

  /** The compressed form of the newest version has come. */
  void compress(std::string_view key) {
    feeds_.compressed(key, feeds_.find(key)->cursor, std::string(100, 'z'));
  }

 private:
  AddressLimits limits_{AddressLimitsOptions{}};
  Pool pool_;
  Feeds feeds_;

 public:
  WorkerService service;
};

/** A worker, and what its watchers are told. */
class Watchers : public FeedResponder {
 public:
  explicit Watchers(const Feeds& shown)
      : asks({.maxSprite = 256, .inputs = false}),
        feeds({.hold = 30,
               .feeds = 200,
               .memory = kMemory,
               .watchers = 200,
               .upstream = shown.options().upstream,
               .shows = &shown},
              0, microseconds, &asks) {
    feeds.table().setResponder(this);
  }

  /** A client watches a feed by a poll. @return what to drop it by */
  uint32_t watch(std::string_view key, std::string_view after, uint32_t grant = Grants::kNone) {
    return watch(key, after, WatchHow{.grant = grant});
  }
  uint32_t watch(std::string_view key, std::string_view after, const WatchHow& how) {
    const Wanted wanted = {key, after};
    uint32_t watcher;
    EXPECT(feeds.table().watch(&wanted, 1, how, 0, &watcher) == Outcome::kOk);
    return watcher;
  }

  /** A client watches two feeds by one poll. */
  void watchBoth(const Wanted& one, const Wanted& other) {
    const Wanted wanted[] = {one, other};
    uint32_t watcher;
    EXPECT(feeds.table().watch(wanted, 2, {.many = true}, 0, &watcher) == Outcome::kOk);
  }

  /** A client watches a feed by an event stream. */
  void stream(std::string_view key) {
    const Wanted wanted = {key, ""};
    uint32_t watcher;
    EXPECT(feeds.table().watch(&wanted, 1, {.stream = true}, 0, &watcher) == Outcome::kOk);
  }

  /** A grant of this name. */
  uint32_t grant(const std::string& name) {
    GrantRights rights = {.left = 1 << 30, .read = {"*"}, .parts = {"", name, ""}, .present = true};
    memcpy(rights.token.data(), name.data(), name.size());
    return feeds.table().takeGrant(rights);
  }

  void drop(uint32_t watcher) { feeds.table().drop(watcher); }

  void step() {
    while (feeds.step()) continue;
  }

  /** So many milliseconds after the beginning. */
  void passTo(uint64_t now) {
    while (!feeds.tick(now)) continue;
  }

  Taken answer(uint32_t, const FeedAnswer& answer) override {
    said.emplace_back();
    if (answer.outcome != Outcome::kOk) {
      said.back() = kOutcomeNames[static_cast<size_t>(answer.outcome)];
    }
    // The cursors are in there.
    for (uint32_t i = 0; i < answer.count; ++i) said.back() += answer.items[i].before;
    return Taken::kWhole;
  }

  /** Whether the one answer since the last call has `text` in it. */
  bool heard(std::string_view text) {
    const std::vector<std::string> all = std::exchange(said, {});
    return all.size() == 1 && all[0].find(text) != std::string::npos;
  }

  WorkerAsks asks;
  WorkerFeeds feeds;
  std::vector<std::string> said;
};

/** Both, and what is on its way between them. */
class Both {
 public:
  explicit Both(bool upstream = false) : main(upstream) {}
  ~Both() {
    while (says_.take(&batch_)) discard(batch_);
  }

  /** What the worker has asked so far arrives. */
  void ask() {
    worker.feeds.turn();
    worker.asks.send(&asks_);
    while (asks_.take(&batch_)) main.service.serve(batch_);
  }

  /** What the main thread has said so far arrives. */
  void tell() {
    hand();
    worker.step();
  }

  /** The same, and no watcher is answered yet. */
  void hand() {
    say();
    while (handBatch()) continue;
  }

  /** What was said first arrives; false: nothing was left. */
  bool handBatch() {
    if (!says_.take(&batch_)) return false;
    eachMessage<SayHead>(batch_, [this](const SayHead& head, std::string_view text) {
      worker.feeds.take(head, text);
    });
    return true;
  }

  /** The main thread says what it has to say, and the worker does not look. */
  void say() { main.service.send(&says_); }

  /** The worker is to know that there is something to say. */
  void announce() { main.service.announce(&says_); }

  bool owes() const { return says_.owes(); }

  /** All that is on its way arrives. */
  void settle() {
    for (int i = 0; i < 4; ++i) {
      ask();
      tell();
    }
  }

  /** Whether something is on its way to the main thread. */
  bool asks() {
    worker.feeds.turn();
    return worker.asks.send(&asks_);
  }

  Main main;
  Watchers worker{main.feeds()};

 private:
  EventSet events_;
  Waker waker_{&events_};
  BatchRing asks_{&waker_};
  BatchRing says_{&waker_};
  std::string batch_;
};

/** What a worker says of a feed that there was not leaves nothing behind. */
void keepsNothingOfWhatIsUnknown() {
  Both both;
  both.worker.watch("a", "e1-1");
  both.settle();
  EXPECT(both.worker.heard("unknown-feed"));
  EXPECT(both.main.publish("a", 1) == 0);
  both.worker.watch("a", "e1-1");
  both.settle();
  EXPECT(both.worker.said.empty());
  // A count that had stayed would be what this one is compared with.
  EXPECT(both.main.publish("a", 2) == 1);
  both.settle();
  EXPECT(both.worker.heard("e1-2"));
}

/** A watcher that is still to be told that its feed has ended does not watch the key's next feed.
 */
void countsNoWatcherOfAnEndedFeed() {
  Both both;
  both.main.publish("a", 1);
  uint32_t watchers[3];
  for (uint32_t& watcher : watchers) watcher = both.worker.watch("a", "e1-1");
  both.settle();
  EXPECT(both.main.publish("a", 2) == 3);
  both.settle();
  EXPECT(both.worker.said.size() == 3);
  for (uint32_t& watcher : watchers) watcher = both.worker.watch("a", "e1-2");
  both.settle();
  both.worker.said.clear();
  both.main.remove("a");
  both.hand();
  EXPECT(both.main.publish("a", 1) == 0);
  both.worker.watch("a", "e1-1");
  both.worker.drop(watchers[0]);
  both.ask();
  EXPECT(both.main.publish("a", 2) == 1);
  both.settle();
  EXPECT(both.worker.said.size() == 3);
}

/** The main thread knows whether a client of a worker takes patches, or has for a minute. */
void crossesTakersOfPatches() {
  Both both;
  const auto patched = [&both](uint64_t now) {
    both.worker.passTo(now);
    both.settle();
    return both.main.feeds().find("a")->takesPatches(now);
  };
  both.main.publish("a", 1);
  both.worker.watch("a", "e1-1");
  EXPECT(!patched(100));
  // The watcher is answered at once, and asks no more.
  both.worker.watch("a", "", WatchHow{.delta = true});
  EXPECT(patched(100 + kPatchesKept - 1));
  EXPECT(!patched(100 + kPatchesKept));
  const uint32_t watcher = both.worker.watch("a", "e1-1", WatchHow{.delta = true, .stream = true});
  EXPECT(patched(100000));
  EXPECT(patched(100000 + kPatchesKept));
  both.worker.drop(watcher);
  both.settle();
  EXPECT(patched(100000 + 2 * kPatchesKept - 1));
  EXPECT(!patched(100000 + 2 * kPatchesKept));
}

/** A worker that has version 1, and has just forgotten it; version 2 is on its way. */
void forgetAndPublish(Both* both) {
  both->main.publish("a", 1);
  both->worker.watch("a", "");
  both->settle();
  EXPECT(both->worker.heard("e1-1"));
  both->worker.passTo(10000);
  EXPECT(both->asks());
  both->main.publish("a", 2);
  both->say();
}

/** Version 2 was heard of, and so is the next one. */
void hearsOn(Both* both) {
  EXPECT(both->worker.heard("e1-2"));
  both->worker.watch("a", "e1-2");
  both->settle();
  EXPECT(both->worker.said.empty());
  EXPECT(both->main.publish("a", 3) == 1);
  both->settle();
  EXPECT(both->worker.heard("e1-3"));
}

/** A watcher of a feed that a worker had forgotten hears of every version from then on. */
void crossesForgetting() {
  Both both;
  forgetAndPublish(&both);
  both.tell();
  both.settle();
  both.worker.watch("a", "e1-1");
  both.settle();
  hearsOn(&both);
}

/** So does a watcher that asks while both messages cross: by what is said of its own request. */
void crossesAsking() {
  Both both;
  forgetAndPublish(&both);
  both.worker.watch("a", "e1-1");
  both.settle();
  hearsOn(&both);
}

/** What the main thread has said of a feed that was forgotten and wanted again is not taken for an
 * answer to the last request for it. */
void takesNoAnswerForAnother() {
  Both both;
  both.main.anotherWaits("a");
  both.worker.watch("a", "");
  both.ask();
  both.say();
  const uint32_t watcher = both.worker.watch("a", kNoCursor);
  both.ask();
  both.say();
  EXPECT(both.handBatch());
  both.worker.step();
  both.worker.drop(watcher);
  both.ask();
  both.main.anotherLeaves("a");
  both.worker.watch("a", "");
  both.ask();
  both.worker.watch("a", kNoCursor);
  both.settle();
  both.main.publish("a", 1);
  both.settle();
  const std::vector<std::string>& said = both.worker.said;
  EXPECT(said.size() == 3 && said[0] == "unknown-feed" && said[1] == "unknown-feed");
  EXPECT(said[2].find("e1-1") != std::string::npos);
}

/** A hold that is over before the main thread has said whether there is a feed is no failure of
 * that. */
void waitsForTheMainThread() {
  constexpr uint64_t kOver = 40000;  // milliseconds: every hold is, and a stream's comment is due
  const auto waits = [](auto&& watch, const char* said) {
    Both both;
    both.main.publish("a", 1);
    watch(both.worker);
    both.worker.passTo(kOver);
    both.worker.passTo(kOver + 5000);
    EXPECT(both.worker.said.empty());
    both.settle();
    // What there is not is waited for in vain for a moment longer.
    both.worker.passTo(kOver + 10000);
    EXPECT(both.worker.heard(said));
  };
  waits([](Watchers& worker) { worker.watch("a", ""); }, "e1-1");
  waits([](Watchers& worker) { worker.watch("a", "e1-1"); }, "\"cursor\":\"e1-1\"}");
  waits([](Watchers& worker) { worker.watch("b", kNoCursor); }, "\"cursor\":\"none\"}");
  waits([](Watchers& worker) { worker.watch("b", ""); }, "unknown-feed");
  waits([](Watchers& worker) { worker.stream("a"); }, "e1-1");
  waits([](Watchers& worker) { worker.watchBoth({"a", ""}, {"b", kNoCursor}); }, "e1-1");
  waits(
      [](Watchers& worker) {
        worker.watchBoth({"b", kNoCursor}, {"a", "e1-1"});
      },
      "{\"items\":[]}");
  // A feed that the main thread fetches has failed by then, for its watcher.
  Both both(true);
  both.worker.watch("a", "");
  both.settle();
  both.worker.passTo(kOver);
  EXPECT(both.worker.heard("upstream-failed"));
}

/** What is known of one feed of a list is said as soon as there is known to be nothing new of the
 * other. */
void saysWhatIsKnownOfOne() {
  const Wanted refused = {"p", "", Outcome::kGrantRequired};
  for (const Wanted& other : {Wanted{"a", "e1-1"}, Wanted{"b", kNoCursor}}) {
    Both both;
    both.main.publish("a", 1);
    both.worker.watchBoth(other, refused);
    EXPECT(both.worker.said.empty());
    both.settle();
    EXPECT(both.worker.heard("grant-required"));
  }
}

/** A list does not wait for the fetch of one of its feeds. */
void saysNewsBesideAFetch() {
  Both both(true);
  both.main.publish("a", 1);
  both.worker.watchBoth({"a", ""}, {"b", ""});
  both.settle();
  EXPECT(both.worker.heard("e1-1"));
  both.worker.watchBoth({"a", "e1-1"}, {"b", ""});
  both.settle();
  EXPECT(both.worker.said.empty());
  both.main.publish("a", 2);
  both.settle();
  EXPECT(both.worker.heard("e1-2"));
  both.worker.watch("b", "");
  both.worker.watchBoth({"a", "e1-2"}, {"b", ""});
  both.settle();
  EXPECT(both.worker.said.empty());
  both.main.publish("b", 3);
  both.settle();
  EXPECT(both.worker.said.size() == 2);
}

/** All threads have the same bytes, which are given back when none needs them. */
void sharesBytes() {
  Both both;
  both.main.publish("a", 1, 100000);
  both.worker.watch("a", "");
  both.settle();
  const Feed* const shown = both.worker.feeds.table().find("a");
  EXPECT(shown->value.get() == both.main.feeds().find("a")->value.get());
  EXPECT(both.main.feeds().held() == 0);
  both.main.publish("a", 2, 100000);
  // The worker has not heard of the newer one, and keeps the older.
  EXPECT(both.main.feeds().held() > 100000);
  both.settle();
  EXPECT(both.main.feeds().held() == 0);
  EXPECT(both.main.feeds().counts().memory < 300000);
}

/** Versions that a worker has not read wait in the table: it gets the newest. */
void skipsWhatItIsTooSlowFor() {
  constexpr uint64_t kVersions = 80;
  Both both;
  both.main.publish("a", 1);
  both.worker.watch("a", "");
  both.settle();
  both.worker.said.clear();
  both.worker.watch("a", "e1-1");
  both.ask();
  for (uint64_t version = 2; version <= kVersions; ++version) {
    both.main.publish("a", version);
    both.say();
  }
  // What was said before it was behind is not taken back.
  both.hand();
  both.settle();
  EXPECT(both.worker.heard("e1-80"));
  // Bytes of few versions only were kept for it meanwhile.
  EXPECT(both.worker.feeds.table().find("a")->cursor.version == kVersions);
}

/** While the ring does not have the newest version, the worker knows that. */
void owesWhatTheRingHasNot() {
  Both both;
  both.main.publish("a", 1);
  both.worker.watch("a", "");
  both.settle();
  both.announce();
  EXPECT(!both.owes());
  for (uint64_t version = 2; version <= 80; ++version) {
    both.main.publish("a", version);
    both.announce();
    EXPECT(both.owes());
    both.say();
    EXPECT(both.owes() == (version > 1 + kMostAhead));
  }
  // What the worker does not want any more is not owed.
  both.main.remove("a");
  both.hand();
  both.settle();
  EXPECT(!both.owes());
}

/** A worker that is behind keeps at most kMostAhead versions of a feed alive. */
void keepsFewVersions() {
  constexpr size_t kLength = 1 << 20;
  Both both;
  both.main.publish("a", 1, kLength);
  both.worker.watch("a", "");
  both.settle();
  for (uint64_t version = 2; version <= 80; ++version) {
    both.main.publish("a", version, kLength);
    both.say();
    EXPECT(both.main.feeds().held() < (kMostAhead + 2) * kLength);
  }
}

/** Names cross when they come, and when their lease is over; what ends a feed, or its watch there,
 * ends them. */
void crossesNames() {
  Both both;
  both.main.publish("a", 1);
  const uint32_t ann = both.worker.grant("ann");
  const uint32_t bo = both.worker.grant("bo");
  uint32_t watcher = both.worker.watch("a", "e1-1", ann);
  both.settle();
  const auto names = [&] {
    std::string all;
    if (const Names* of = both.main.feeds().find("a")->names.get()) {
      for (const auto& [name, one] : *of) all += name + (one.isThere(0) ? " " : "? ");
    }
    return all;
  };
  EXPECT(names() == "ann ");
  // A poll that ends and comes again crosses nothing but the count.
  both.worker.drop(watcher);
  watcher = both.worker.watch("a", "e1-1", ann);
  both.worker.watch("a", "e1-1", bo);
  both.settle();
  EXPECT(names() == "ann bo ");
  both.worker.passTo(100);
  both.worker.drop(watcher);
  both.worker.passTo(30000);
  both.settle();
  EXPECT(names() == "ann bo ");
  both.worker.passTo(30200);
  both.settle();
  EXPECT(names() == "bo ");
  // What the worker has not heard of yet is not taken for the next feed of the key.
  both.main.remove("a");
  both.worker.watch("a", "e1-1", ann);
  both.hand();
  both.main.publish("a", 1);
  both.settle();
  EXPECT(names().empty());
}

/** A cursor ahead of every version is none of this server's, once all is here that its client may
 * have heard from another thread. */
void answersThoseThatAreAhead() {
  for (const bool isKnown : {false, true}) {
    Both both;
    both.main.publish("a", 1);
    if (isKnown) both.worker.watch("a", "");
    both.settle();
    both.worker.said.clear();
    both.worker.watch("a", "e1-2");
    both.worker.watch("a", "e1-3");
    both.ask();
    both.main.publish("a", 2);
    both.tell();
    EXPECT(both.worker.said.empty());
    both.worker.feeds.table().caughtUp();
    both.worker.step();
    EXPECT(both.worker.heard("\"cursor\":\"e1-2\",\"value\""));
  }
  // Of a list it is answered together with the news of the others.
  Both both;
  both.main.publish("a", 1);
  both.main.publish("b", 1);
  both.worker.watchBoth({"a", ""}, {"b", ""});
  both.settle();
  both.worker.said.clear();
  for (const char* const after : {"e1-9", "e1-2"}) {
    both.worker.watchBoth({"a", ""}, {"b", after});
    EXPECT(both.worker.said.empty());
    if (after[3] == '2') both.main.publish("b", 2);
    both.hand();
    both.worker.feeds.table().caughtUp();
    both.worker.step();
    EXPECT(both.worker.said.size() == 1 && both.worker.said[0].find("\"a\"") != std::string::npos);
    EXPECT((both.worker.said[0].find("\"b\"") != std::string::npos) == (after[3] == '9'));
    both.worker.said.clear();
  }
}

/** A name is told of again with a request that waits, where the one before it was refused. */
void crossesNamesOfThoseThatWait() {
  Both both;
  const uint32_t ann = both.worker.grant("ann");
  both.worker.watch("a", "e1-1", ann);
  both.ask();
  both.worker.watch("a", kNoCursor, ann);
  both.settle();
  both.main.publish("a", 2);
  const Names* const names = both.main.feeds().find("a")->names.get();
  EXPECT(names != nullptr && names->contains("ann"));
}

/** A feed that a worker waits for is there for it, also where the client that asked first has gone
 * before the main thread has said so. */
void crossesThoseThatComeAfterOne() {
  Both both;
  const uint32_t first = both.worker.watch("a", kNoCursor);
  both.ask();
  both.worker.drop(first);
  both.ask();
  both.worker.watch("a", kNoCursor, both.worker.grant("ann"));
  both.settle();
  EXPECT(both.main.publish("a", 1) == 1);
  const Names* const names = both.main.feeds().find("a")->names.get();
  EXPECT(names != nullptr && names->contains("ann"));
  both.settle();
  EXPECT(both.worker.heard("e1-1"));
}

/** It goes with the last of them. */
void forgetsThoseThatHaveGone() {
  Both both;
  const uint32_t watcher = both.worker.watch("a", kNoCursor);
  both.ask();
  both.worker.drop(watcher);
  both.settle();
  EXPECT(both.main.feeds().find("a") == nullptr);
  EXPECT(both.worker.feeds.table().find("a") == nullptr);
}

/** That an older version is compressed, of which a worker that is behind hears no more, is not
 * taken for a newer one that could not be. */
void compressesForAWorkerThatIsBehind() {
  constexpr size_t kLength = 2000;
  Both both;
  both.main.publish("a", 1, kLength);
  both.worker.watch("a", "", WatchHow{.gzip = true});
  both.settle();
  both.main.compress("a");
  both.settle();
  EXPECT(both.worker.said.size() == 1);
  uint64_t version = 2;
  for (; version < 2 + kMostAhead; ++version) {
    both.main.publish("a", version, kLength);
    both.say();
  }
  both.main.publish("a", version, kLength);
  both.main.compress("a");
  both.main.publish("a", ++version, kLength);
  both.hand();
  both.settle();
  both.worker.said.clear();
  // It waits for the compressed form, as there will be one.
  both.worker.watch("a", "", WatchHow{.gzip = true});
  both.settle();
  EXPECT(both.worker.said.empty());
  both.main.compress("a");
  both.settle();
  EXPECT(both.worker.said.size() == 1);
}

}  // namespace

int main() {
  answersThoseThatAreAhead();
  crossesThoseThatComeAfterOne();
  forgetsThoseThatHaveGone();
  compressesForAWorkerThatIsBehind();
  crossesNames();
  crossesNamesOfThoseThatWait();
  crossesTakersOfPatches();
  keepsNothingOfWhatIsUnknown();
  countsNoWatcherOfAnEndedFeed();
  crossesForgetting();
  crossesAsking();
  takesNoAnswerForAnother();
  waitsForTheMainThread();
  saysWhatIsKnownOfOne();
  saysNewsBesideAFetch();
  sharesBytes();
  skipsWhatItIsTooSlowFor();
  owesWhatTheRingHasNot();
  keepsFewVersions();
}
