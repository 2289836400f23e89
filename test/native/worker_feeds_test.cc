// Feeds between the main thread and a worker: messages that cross on their way, and news that a
// slow worker skips.
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

/** The number of another worker. */
constexpr uint32_t kOtherWorker = 100;

uint64_t microseconds() { return EventSet::now(); }

/** The main thread, which has the feeds. */
class MainThread : public FeedsObserver {
 public:
  explicit MainThread(bool upstream)
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
    feeds_.setObserver(this);
  }

  void published(const Feed& feed) override { service.published(feed); }
  void compressed(const Feed& feed) override { service.compressed(feed); }
  void ended(std::string_view key, Outcome why) override { service.ended(key, why); }

  /** Publishes a value of about `length` bytes, as e1-`version`. Returns the number of watchers. */
  uint32_t publish(std::string_view key, uint64_t version, size_t length = 10) {
    uint32_t watching;
    EXPECT(feeds_.publish(
               {.key = key, .cursor = {1, version}, .value = '"' + std::string(length, 'x') + '"'},
               &watching) == Outcome::kOk);
    return watching;
  }

  /** A client of another worker begins to wait for a feed's first value, or stops. */
  void otherWorkerWaits(std::string_view key) {
    EXPECT(feeds_.requestForWorker(key, kOtherWorker, {}, true) == Outcome::kOk);
    feeds_.updateWorkerWatchers(key, {}, {.watching = 1});
  }
  void otherWorkerLeaves(std::string_view key) {
    feeds_.updateWorkerWatchers(key, {.watching = 1}, {});
    feeds_.detachWorker(key, kOtherWorker);
  }

  const Feeds& feeds() const { return feeds_; }

  void remove(std::string_view key) { EXPECT(feeds_.remove(key) == Outcome::kOk); }

  /** Adds the compressed form of the newest version. */
  void compress(std::string_view key) {
    feeds_.setCompressed(key, feeds_.find(key)->cursor, std::string(100, 'z'));
  }

 private:
  AddressLimits limits_{AddressLimitsOptions{}};
  Pool pool_;
  Feeds feeds_;

 public:
  WorkerService service;
};

/** A worker, and the answers to its watchers. */
class WorkerThread : public FeedResponder {
 public:
  explicit WorkerThread(const Feeds& shown)
      : asks({.maxSprite = 256, .inputs = false}),
        feeds({.hold = 30,
               .feeds = 200,
               .memory = kMemory,
               .watchers = 200,
               .upstream = shown.options().upstream,
               .mainTable = &shown},
              0, microseconds, &asks) {
    feeds.table().setResponder(this);
  }

  /**
   * Watches a feed by a poll.
   *
   * @return the watcher, for `drop`
   */
  uint32_t watch(std::string_view key, std::string_view after, uint32_t grant = Grants::kNone) {
    return watch(key, after, WatchOptions{.grant = grant});
  }
  uint32_t watch(std::string_view key, std::string_view after, const WatchOptions& how) {
    const FeedRequest wanted = {key, after};
    uint32_t watcher;
    EXPECT(feeds.table().watch(&wanted, 1, how, 0, &watcher) == Outcome::kOk);
    return watcher;
  }

  /** Watches two feeds by one poll. */
  void watchBoth(const FeedRequest& one, const FeedRequest& other) {
    const FeedRequest wanted[] = {one, other};
    uint32_t watcher;
    EXPECT(feeds.table().watch(wanted, 2, {.hasManyFeeds = true}, 0, &watcher) == Outcome::kOk);
  }

  /** Watches a feed by an event stream. */
  void stream(std::string_view key) {
    const FeedRequest wanted = {key, ""};
    uint32_t watcher;
    EXPECT(feeds.table().watch(&wanted, 1, {.stream = true}, 0, &watcher) == Outcome::kOk);
  }

  /** Adds a grant with this name. */
  uint32_t addGrant(const std::string& name) {
    GrantRights rights = {
        .timeLeft = 1 << 30, .read = {"*"}, .parts = {"", name, ""}, .present = true};
    memcpy(rights.token.data(), name.data(), name.size());
    return feeds.table().addGrant(rights);
  }

  void drop(uint32_t watcher) { feeds.table().drop(watcher); }

  void step() {
    while (feeds.step()) continue;
  }

  /** Advances the time to so many milliseconds after the start. */
  void advanceTo(uint64_t now) {
    while (!feeds.tick(now)) continue;
  }

  WriteResult answer(uint32_t, const FeedAnswer& answer) override {
    answers.emplace_back();
    if (answer.outcome != Outcome::kOk) {
      answers.back() = kOutcomeNames[static_cast<size_t>(answer.outcome)];
    }
    // These texts contain the cursors.
    for (uint32_t i = 0; i < answer.count; ++i) answers.back() += answer.pieces[i].before;
    return WriteResult::kWhole;
  }

  /** Whether there was exactly one answer since the last call, and it contains `text`. */
  bool gotOnly(std::string_view text) {
    const std::vector<std::string> all = std::exchange(answers, {});
    return all.size() == 1 && all[0].find(text) != std::string::npos;
  }

  WorkerAsks asks;
  WorkerFeeds feeds;
  std::vector<std::string> answers;
};

/** Both threads, and the messages between them. */
class ThreadPair {
 public:
  explicit ThreadPair(bool upstream = false) : main(upstream) {}
  ~ThreadPair() {
    while (notices_.take(&batch_)) discard(batch_);
  }

  /** Delivers the worker's messages. */
  void deliverAsks() {
    worker.feeds.turn();
    worker.asks.send(&asks_);
    while (asks_.take(&batch_)) main.service.serve(batch_);
  }

  /** Delivers the main thread's messages, and answers watchers. */
  void deliverAndAnswer() {
    deliverNotices();
    worker.step();
  }

  /** Delivers the main thread's messages, without answering watchers. */
  void deliverNotices() {
    sendNotices();
    while (deliverBatch()) continue;
  }

  /** Delivers the oldest batch. Returns false when there is none. */
  bool deliverBatch() {
    if (!notices_.take(&batch_)) return false;
    eachMessage<NoticeHead>(batch_, [this](const NoticeHead& head, std::string_view text) {
      worker.feeds.handle(head, text);
    });
    return true;
  }

  /** The main thread sends its messages; the worker does not look. */
  void sendNotices() { main.service.send(&notices_); }

  /** Marks that the main thread has messages for the worker. */
  void markUnsent() { main.service.markUnsent(&notices_); }

  bool hasUnsent() const { return notices_.hasUnsent(); }

  /** Delivers all messages. */
  void deliverAll() {
    for (int i = 0; i < 4; ++i) {
      deliverAsks();
      deliverAndAnswer();
    }
  }

  /** Delivers all messages. Returns whether one answer came of it, with `text` in it. */
  bool gets(std::string_view text) {
    deliverAll();
    return worker.gotOnly(text);
  }
  bool getsNothing() {
    deliverAll();
    return worker.answers.empty();
  }

  /** Whether the worker sends messages to the main thread. */
  bool sendsAsks() {
    worker.feeds.turn();
    return worker.asks.send(&asks_);
  }

  MainThread main;
  WorkerThread worker{main.feeds()};

 private:
  EventSet events_;
  Waker waker_{&events_};
  BatchRing asks_{&waker_};
  BatchRing notices_{&waker_};
  std::string batch_;
};

/** Messages of a worker about an unknown feed leave nothing behind. */
void keepsNothingOfWhatIsUnknown() {
  ThreadPair pair;
  pair.worker.watch("a", "e1-1");
  EXPECT(pair.gets("unknown-feed"));
  EXPECT(pair.main.publish("a", 1) == 0);
  pair.worker.watch("a", "e1-1");
  EXPECT(pair.getsNothing());
  // A leftover count would be compared with this one.
  EXPECT(pair.main.publish("a", 2) == 1);
  EXPECT(pair.gets("e1-2"));
}

/**
 * A watcher that has not heard yet that its feed has ended does not watch the next feed with the
 * key.
 */
void countsNoWatcherOfAnEndedFeed() {
  ThreadPair pair;
  pair.main.publish("a", 1);
  uint32_t watchers[3];
  for (uint32_t& watcher : watchers) watcher = pair.worker.watch("a", "e1-1");
  pair.deliverAll();
  EXPECT(pair.main.publish("a", 2) == 3);
  pair.deliverAll();
  EXPECT(pair.worker.answers.size() == 3);
  for (uint32_t& watcher : watchers) watcher = pair.worker.watch("a", "e1-2");
  pair.deliverAll();
  pair.worker.answers.clear();
  pair.main.remove("a");
  pair.deliverNotices();
  EXPECT(pair.main.publish("a", 1) == 0);
  pair.worker.watch("a", "e1-1");
  pair.worker.drop(watchers[0]);
  pair.deliverAsks();
  EXPECT(pair.main.publish("a", 2) == 1);
  pair.deliverAll();
  EXPECT(pair.worker.answers.size() == 3);
}

/**
 * The main thread knows whether a client of a worker takes patches, or took them within a minute.
 */
void crossesTakersOfPatches() {
  ThreadPair pair;
  const auto patched = [&pair](uint64_t now) {
    pair.worker.advanceTo(now);
    pair.deliverAll();
    return pair.main.feeds().find("a")->takesPatches(now);
  };
  pair.main.publish("a", 1);
  pair.worker.watch("a", "e1-1");
  EXPECT(!patched(100));
  // The watcher is answered at once, and does not ask again.
  pair.worker.watch("a", "", WatchOptions{.delta = true});
  EXPECT(patched(100 + kPatchesKept - 1));
  EXPECT(!patched(100 + kPatchesKept));
  const uint32_t watcher =
      pair.worker.watch("a", "e1-1", WatchOptions{.delta = true, .stream = true});
  EXPECT(patched(100000));
  EXPECT(patched(100000 + kPatchesKept));
  pair.worker.drop(watcher);
  pair.deliverAll();
  EXPECT(patched(100000 + 2 * kPatchesKept - 1));
  EXPECT(!patched(100000 + 2 * kPatchesKept));
}

/** A worker has had version 1, and has just forgotten the feed; version 2 is on its way. */
void forgetAndPublish(ThreadPair* pair) {
  pair->main.publish("a", 1);
  pair->worker.watch("a", "");
  EXPECT(pair->gets("e1-1"));
  pair->worker.advanceTo(10000);
  EXPECT(pair->sendsAsks());
  pair->main.publish("a", 2);
  pair->sendNotices();
}

/** Version 2 has arrived, and the next one does too. */
void expectNextVersion(ThreadPair* pair) {
  EXPECT(pair->worker.gotOnly("e1-2"));
  pair->worker.watch("a", "e1-2");
  EXPECT(pair->getsNothing());
  EXPECT(pair->main.publish("a", 3) == 1);
  EXPECT(pair->gets("e1-3"));
}

/** A watcher of a feed that the worker had forgotten gets every version from then on. */
void crossesForgetting() {
  ThreadPair pair;
  forgetAndPublish(&pair);
  pair.deliverAndAnswer();
  pair.deliverAll();
  pair.worker.watch("a", "e1-1");
  pair.deliverAll();
  expectNextVersion(&pair);
}

/** A watcher that asks while both messages cross is served by the answer to its own request. */
void crossesAsking() {
  ThreadPair pair;
  forgetAndPublish(&pair);
  pair.worker.watch("a", "e1-1");
  pair.deliverAll();
  expectNextVersion(&pair);
}

/**
 * An earlier message about a feed that was forgotten and wanted again is not taken for the answer
 * to the last request for it.
 */
void takesNoAnswerForAnother() {
  ThreadPair pair;
  pair.main.otherWorkerWaits("a");
  pair.worker.watch("a", "");
  pair.deliverAsks();
  pair.sendNotices();
  const uint32_t watcher = pair.worker.watch("a", kNoCursor);
  pair.deliverAsks();
  pair.sendNotices();
  EXPECT(pair.deliverBatch());
  pair.worker.step();
  pair.worker.drop(watcher);
  pair.deliverAsks();
  pair.main.otherWorkerLeaves("a");
  pair.worker.watch("a", "");
  pair.deliverAsks();
  pair.worker.watch("a", kNoCursor);
  pair.deliverAll();
  pair.main.publish("a", 1);
  pair.deliverAll();
  const std::vector<std::string>& answers = pair.worker.answers;
  EXPECT(answers.size() == 3 && answers[0] == "unknown-feed" && answers[1] == "unknown-feed");
  EXPECT(answers[2].find("e1-1") != std::string::npos);
}

/**
 * A hold that ends before the main thread has answered whether there is a feed does not make the
 * request fail.
 */
void waitsForTheMainThread() {
  constexpr uint64_t kOver =
      40000;  // milliseconds: every hold is over, and a stream's comment is due
  const auto waits = [](auto&& watch, const char* answers) {
    ThreadPair pair;
    pair.main.publish("a", 1);
    watch(pair.worker);
    pair.worker.advanceTo(kOver);
    pair.worker.advanceTo(kOver + 5000);
    EXPECT(pair.worker.answers.empty());
    pair.deliverAll();
    // A watcher of a missing feed waits a moment longer.
    pair.worker.advanceTo(kOver + 10000);
    EXPECT(pair.worker.gotOnly(answers));
  };
  waits([](WorkerThread& worker) { worker.watch("a", ""); }, "e1-1");
  waits([](WorkerThread& worker) { worker.watch("a", "e1-1"); }, "\"cursor\":\"e1-1\"}");
  waits([](WorkerThread& worker) { worker.watch("b", kNoCursor); }, "\"cursor\":\"none\"}");
  waits([](WorkerThread& worker) { worker.watch("b", ""); }, "unknown-feed");
  waits([](WorkerThread& worker) { worker.stream("a"); }, "e1-1");
  waits([](WorkerThread& worker) { worker.watchBoth({"a", ""}, {"b", kNoCursor}); }, "e1-1");
  waits(
      [](WorkerThread& worker) {
        worker.watchBoth({"b", kNoCursor}, {"a", "e1-1"});
      },
      "{\"items\":[]}");
  // A feed that the main thread fetches counts as failed for its watcher by then.
  ThreadPair pair(true);
  pair.worker.watch("a", "");
  pair.deliverAll();
  pair.worker.advanceTo(kOver);
  EXPECT(pair.worker.gotOnly("upstream-failed"));
}

/** A result for one feed of a list is sent as soon as the other is known to have no news. */
void saysWhatIsKnownOfOne() {
  const FeedRequest refused = {"p", "", Outcome::kGrantRequired};
  for (const FeedRequest& other : {FeedRequest{"a", "e1-1"}, FeedRequest{"b", kNoCursor}}) {
    ThreadPair pair;
    pair.main.publish("a", 1);
    pair.worker.watchBoth(other, refused);
    EXPECT(pair.worker.answers.empty());
    EXPECT(pair.gets("grant-required"));
  }
}

/** A list does not wait for the fetch of one of its feeds. */
void saysNewsBesideAFetch() {
  ThreadPair pair(true);
  pair.main.publish("a", 1);
  pair.worker.watchBoth({"a", ""}, {"b", ""});
  EXPECT(pair.gets("e1-1"));
  pair.worker.watchBoth({"a", "e1-1"}, {"b", ""});
  EXPECT(pair.getsNothing());
  pair.main.publish("a", 2);
  EXPECT(pair.gets("e1-2"));
  pair.worker.watch("b", "");
  pair.worker.watchBoth({"a", "e1-2"}, {"b", ""});
  EXPECT(pair.getsNothing());
  pair.main.publish("b", 3);
  pair.deliverAll();
  EXPECT(pair.worker.answers.size() == 2);
}

/** All threads share the same bytes, which are freed when none needs them. */
void sharesBytes() {
  ThreadPair pair;
  pair.main.publish("a", 1, 100000);
  pair.worker.watch("a", "");
  pair.deliverAll();
  const Feed* const shown = pair.worker.feeds.table().find("a");
  EXPECT(shown->value.get() == pair.main.feeds().find("a")->value.get());
  EXPECT(pair.main.feeds().unsentBytes() == 0);
  pair.main.publish("a", 2, 100000);
  // The worker has not got the newer version yet, and keeps the older.
  EXPECT(pair.main.feeds().unsentBytes() > 100000);
  pair.deliverAll();
  EXPECT(pair.main.feeds().unsentBytes() == 0);
  EXPECT(pair.main.feeds().counts().memory < 300000);
}

/** Versions that a worker has not read are conflated in the table: it gets the newest. */
void skipsWhatItIsTooSlowFor() {
  constexpr uint64_t kVersions = 80;
  ThreadPair pair;
  pair.main.publish("a", 1);
  pair.worker.watch("a", "");
  pair.deliverAll();
  pair.worker.answers.clear();
  pair.worker.watch("a", "e1-1");
  pair.deliverAsks();
  for (uint64_t version = 2; version <= kVersions; ++version) {
    pair.main.publish("a", version);
    pair.sendNotices();
  }
  // Messages sent before the worker was behind are still delivered.
  pair.deliverNotices();
  EXPECT(pair.gets("e1-80"));
  // Meanwhile bytes of only a few versions were kept for it.
  EXPECT(pair.worker.feeds.table().find("a")->cursor.version == kVersions);
}

/** While the ring lacks the newest version, the worker knows that. */
void owesWhatTheRingHasNot() {
  ThreadPair pair;
  pair.main.publish("a", 1);
  pair.worker.watch("a", "");
  pair.deliverAll();
  pair.markUnsent();
  EXPECT(!pair.hasUnsent());
  for (uint64_t version = 2; version <= 80; ++version) {
    pair.main.publish("a", version);
    pair.markUnsent();
    EXPECT(pair.hasUnsent());
    pair.sendNotices();
    EXPECT(pair.hasUnsent() == (version > 1 + kMaxAhead));
  }
  // News of a feed that has ended are not owed.
  pair.main.remove("a");
  pair.deliverNotices();
  pair.deliverAll();
  EXPECT(!pair.hasUnsent());
}

/** A worker that is behind keeps at most kMaxAhead versions of a feed alive. */
void keepsFewVersions() {
  constexpr size_t kLength = 1 << 20;
  ThreadPair pair;
  pair.main.publish("a", 1, kLength);
  pair.worker.watch("a", "");
  pair.deliverAll();
  for (uint64_t version = 2; version <= 80; ++version) {
    pair.main.publish("a", version, kLength);
    pair.sendNotices();
    EXPECT(pair.main.feeds().unsentBytes() < (kMaxAhead + 2) * kLength);
  }
}

/**
 * Names cross when they come, and when their lease is over; the end of a feed, or of its watch at
 * the worker, ends them.
 */
void crossesNames() {
  ThreadPair pair;
  pair.main.publish("a", 1);
  const uint32_t ann = pair.worker.addGrant("ann");
  const uint32_t bo = pair.worker.addGrant("bo");
  uint32_t watcher = pair.worker.watch("a", "e1-1", ann);
  pair.deliverAll();
  const auto names = [&] {
    std::string all;
    if (const Names* of = pair.main.feeds().find("a")->names.get()) {
      for (const auto& [name, one] : *of) all += name + (one.isPresent(0) ? " " : "? ");
    }
    return all;
  };
  EXPECT(names() == "ann ");
  // A poll that ends and comes again sends nothing but the count.
  pair.worker.drop(watcher);
  watcher = pair.worker.watch("a", "e1-1", ann);
  pair.worker.watch("a", "e1-1", bo);
  pair.deliverAll();
  EXPECT(names() == "ann bo ");
  pair.worker.advanceTo(100);
  pair.worker.drop(watcher);
  pair.worker.advanceTo(30000);
  pair.deliverAll();
  EXPECT(names() == "ann bo ");
  pair.worker.advanceTo(30200);
  pair.deliverAll();
  EXPECT(names() == "bo ");
  // A name of a feed whose end the worker has not heard of is not counted for the next feed with
  // the key.
  pair.main.remove("a");
  pair.worker.watch("a", "e1-1", ann);
  pair.deliverNotices();
  pair.main.publish("a", 1);
  pair.deliverAll();
  EXPECT(names().empty());
}

/**
 * A cursor ahead of every version counts as foreign, once the worker has all versions that its
 * client may have got from another thread.
 */
void answersThoseThatAreAhead() {
  for (const bool isKnown : {false, true}) {
    ThreadPair pair;
    pair.main.publish("a", 1);
    if (isKnown) pair.worker.watch("a", "");
    pair.deliverAll();
    pair.worker.answers.clear();
    pair.worker.watch("a", "e1-2");
    pair.worker.watch("a", "e1-3");
    pair.deliverAsks();
    pair.main.publish("a", 2);
    pair.deliverAndAnswer();
    EXPECT(pair.worker.answers.empty());
    pair.worker.feeds.table().resolveAhead();
    pair.worker.step();
    EXPECT(pair.worker.gotOnly("\"cursor\":\"e1-2\",\"value\""));
  }
  // In a list it is answered together with the news of the other feeds.
  ThreadPair pair;
  pair.main.publish("a", 1);
  pair.main.publish("b", 1);
  pair.worker.watchBoth({"a", ""}, {"b", ""});
  pair.deliverAll();
  pair.worker.answers.clear();
  for (const char* const after : {"e1-9", "e1-2"}) {
    pair.worker.watchBoth({"a", ""}, {"b", after});
    EXPECT(pair.worker.answers.empty());
    if (after[3] == '2') pair.main.publish("b", 2);
    pair.deliverNotices();
    pair.worker.feeds.table().resolveAhead();
    pair.worker.step();
    EXPECT(pair.worker.answers.size() == 1 &&
           pair.worker.answers[0].find("\"a\"") != std::string::npos);
    EXPECT((pair.worker.answers[0].find("\"b\"") != std::string::npos) == (after[3] == '9'));
    pair.worker.answers.clear();
  }
}

/** A name crosses again with a waiting request, after an earlier one was refused. */
void crossesNamesOfThoseThatWait() {
  ThreadPair pair;
  const uint32_t ann = pair.worker.addGrant("ann");
  pair.worker.watch("a", "e1-1", ann);
  pair.deliverAsks();
  pair.worker.watch("a", kNoCursor, ann);
  pair.deliverAll();
  pair.main.publish("a", 2);
  const Names* const names = pair.main.feeds().find("a")->names.get();
  EXPECT(names != nullptr && names->contains("ann"));
}

/**
 * A feed that a worker waits for is kept for it, even if the client that asked first has gone
 * before the main thread has answered.
 */
void crossesThoseThatComeAfterOne() {
  ThreadPair pair;
  const uint32_t first = pair.worker.watch("a", kNoCursor);
  pair.deliverAsks();
  pair.worker.drop(first);
  pair.deliverAsks();
  pair.worker.watch("a", kNoCursor, pair.worker.addGrant("ann"));
  pair.deliverAll();
  EXPECT(pair.main.publish("a", 1) == 1);
  const Names* const names = pair.main.feeds().find("a")->names.get();
  EXPECT(names != nullptr && names->contains("ann"));
  EXPECT(pair.gets("e1-1"));
}

/** A feed without a value is forgotten with its last waiting client. */
void forgetsThoseThatHaveGone() {
  ThreadPair pair;
  const uint32_t watcher = pair.worker.watch("a", kNoCursor);
  pair.deliverAsks();
  pair.worker.drop(watcher);
  pair.deliverAll();
  EXPECT(pair.main.feeds().find("a") == nullptr);
  EXPECT(pair.worker.feeds.table().find("a") == nullptr);
}

/**
 * The compression of an older version, which a slow worker never gets, is not taken for a failed
 * compression of a newer one.
 */
void compressesForAWorkerThatIsBehind() {
  constexpr size_t kLength = 2000;
  ThreadPair pair;
  pair.main.publish("a", 1, kLength);
  pair.worker.watch("a", "", WatchOptions{.gzip = true});
  pair.deliverAll();
  pair.main.compress("a");
  pair.deliverAll();
  EXPECT(pair.worker.answers.size() == 1);
  uint64_t version = 2;
  for (; version < 2 + kMaxAhead; ++version) {
    pair.main.publish("a", version, kLength);
    pair.sendNotices();
  }
  pair.main.publish("a", version, kLength);
  pair.main.compress("a");
  pair.main.publish("a", ++version, kLength);
  pair.deliverNotices();
  pair.deliverAll();
  pair.worker.answers.clear();
  // The watcher waits for the compressed form, which will come.
  pair.worker.watch("a", "", WatchOptions{.gzip = true});
  EXPECT(pair.getsNothing());
  pair.main.compress("a");
  pair.deliverAll();
  EXPECT(pair.worker.answers.size() == 1);
}

/** What a batch passes is freed even if no thread reads it. */
void freesWhatIsNotRead() {
  std::string batch;
  const auto add = [&](Notice notice, const PassedObject& object) {
    addMessage(&batch, NoticeHead{.length = sizeof object, .notice = notice}, object);
  };
  add(Notice::kWatch, PassedObject(std::make_unique<WatchOrder>()));
  add(Notice::kFeed, PassedObject(std::make_unique<FeedNews>()));
  add(Notice::kFeedGzip, PassedObject(std::make_unique<FeedNews>()));
  add(Notice::kRun, PassedObject(std::make_unique<Command>()));
  discard(batch);
}

}  // namespace

int main() {
  freesWhatIsNotRead();
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
