// Feeds between the main process and a worker: what crosses on its way, what there is no room for,
// and what a worker asks for all at once.
//
//   relay_feeds_test
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expect.h"
#include "relay/links.h"
#include "relay/relay.h"
#include "relay/relay_server.h"

namespace {

using namespace server;

constexpr uint64_t kMemory = 256 << 20;

uint64_t microseconds() { return EventSet::now(); }

/** The main process, which has the feeds. */
class Main : public FeedsWatcher {
 public:
  Main()
      : pool_({.capacity = 64,
               .hold = 30,
               .lease = 30,
               .maxSprite = 256,
               .mailboxSprites = 64,
               .mailboxBytes = 1 << 16,
               .mailboxMemory = 1 << 20,
               .answerBytes = 4096,
               .throwRate = 0,
               .throwBurst = 1,
               .pollRate = 0,
               .pollBurst = 1},
              &limits_, 0),
        feeds_({.hold = 30, .feeds = 200, .memory = kMemory, .watchers = 8, .upstream = false}, 0,
               microseconds),
        server({&pool_, &limits_, &feeds_, microseconds, [] { return std::string_view("{}"); }},
               PollHolder::kFirstWorker, 16) {
    feeds_.watchFor(this);
  }

  void published(const Feed& feed) override { server.published(feed); }
  void compressed(const Feed& feed) override { server.compressed(feed); }
  void ended(std::string_view key, Outcome why) override { server.ended(key, why); }

  /** Publishes a value of about `length` bytes, as e1-`version`; how many watch it. */
  uint32_t publish(std::string_view key, uint64_t version, size_t length = 10) {
    uint32_t watching;
    EXPECT(feeds_.publish({.key = key,
                           .cursor = {1, version},
                           .value = '"' + std::string(length, 'x') + '"',
                           .patch = {},
                           .gzip = {},
                           .upstream = false},
                          &watching) == Outcome::kOk);
    return watching;
  }

  void remove(std::string_view key) { EXPECT(feeds_.remove(key) == Outcome::kOk); }

 private:
  AddressLimits limits_{AddressLimitsOptions{}};
  Pool pool_;
  Feeds feeds_;

 public:
  RelayServer server;
};

/** A worker, and what its watchers are told. */
class Worker : public FeedResponder {
 public:
  explicit Worker(uint64_t memory = kMemory)
      : handler(256),
        feeds_({.hold = 30,
                .feeds = 200,
                .memory = memory,
                .watchers = 200,
                .upstream = false,
                .replica = true},
               0, microseconds) {
    handler.replicate(&feeds_);
    feeds_.setResponder(this);
  }

  /** Somebody watches a feed by a poll: what to drop it by. */
  uint32_t watch(std::string_view key, std::string_view after) {
    const Wanted wanted = {key, after};
    uint32_t watcher;
    EXPECT(feeds_.watch(
               &wanted, 1,
               {.hold = kNoFeedHold, .delta = false, .gzip = false, .stream = false, .many = false},
               0, &watcher) == Outcome::kOk);
    return watcher;
  }

  void drop(uint32_t watcher) { feeds_.drop(watcher); }

  void step() {
    while (feeds_.step(1000)) continue;
  }

  /** So many milliseconds after the beginning. */
  void passTo(uint64_t now) {
    while (!feeds_.tick(now)) continue;
    handler.feeds()->tick(now);
  }

  Taken answer(uint32_t, const FeedAnswer& answer) override {
    said.emplace_back();
    if (answer.outcome != Outcome::kOk) {
      said.back() = kOutcomeNames[static_cast<size_t>(answer.outcome)];
    } else if (answer.count > 0) {
      // The cursor is in there.
      said.back() = answer.items[0].before;
    }
    return Taken::kWhole;
  }

  /** Whether the one answer since the last call has `text` in it. */
  bool heard(std::string_view text) {
    const std::vector<std::string> all = std::exchange(said, {});
    return all.size() == 1 && all[0].find(text) != std::string::npos;
  }

  RelayHandler handler;
  std::vector<std::string> said;

 private:
  Feeds feeds_;
};

/** Both, and what is on its way between them. */
class Both {
 public:
  explicit Both(uint64_t memory = kMemory) : worker(memory) {}

  /** What the worker has asked so far arrives. */
  void ask() {
    worker.handler.feeds()->turn();
    EXPECT(main.server.receive(std::exchange(worker.handler.outgoing(), {})));
  }

  /** What the main process has said so far arrives. */
  void tell() {
    hand();
    worker.step();
  }

  /** The same, and nobody is answered yet. */
  void hand() { EXPECT(worker.handler.receive(std::exchange(main.server.outgoing(), {}))); }

  /** All that is on its way arrives. */
  void settle() {
    for (int i = 0; i < 4; ++i) {
      ask();
      tell();
    }
  }

  Main main;
  Worker worker;
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

/** Who still waits to be told that a feed has ended does not watch the next one of its key. */
void countsNobodyOfWhatHasEnded() {
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

/** A worker that has version 1, and has just forgotten it; version 2 is on its way. */
void forgetAndPublish(Both* both) {
  both->main.publish("a", 1);
  both->worker.watch("a", "");
  both->settle();
  EXPECT(both->worker.heard("e1-1"));
  both->worker.passTo(10000);
  EXPECT(!both->worker.handler.outgoing().empty());
  both->main.publish("a", 2);
  EXPECT(!both->main.server.outgoing().empty());
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

/** Who watches what a worker had forgotten hears of every version from then on. */
void crossesForgetting() {
  Both both;
  forgetAndPublish(&both);
  both.tell();
  both.settle();
  both.worker.watch("a", "e1-1");
  both.settle();
  hearsOn(&both);
}

/** So does who asks while both are on their way. */
void crossesAsking() {
  Both both;
  forgetAndPublish(&both);
  both.worker.watch("a", "e1-1");
  both.tell();
  hearsOn(&both);
}

/** A version that a worker has no room for is not replaced by an older one. */
void hasNoRoom() {
  Both both(10000);
  both.main.publish("a", 1);
  both.worker.watch("a", "e1-1");
  both.settle();
  EXPECT(both.worker.said.empty());
  both.main.publish("a", 2, 8000);
  both.settle();
  EXPECT(both.worker.heard("feed-memory-full"));
  both.worker.watch("a", "e1-1");
  both.settle();
  EXPECT(both.worker.heard("feed-memory-full"));
  both.main.publish("a", 3);
  both.worker.watch("a", "e1-1");
  both.settle();
  EXPECT(both.worker.heard("e1-3"));
}

/** Both, with the sockets between them. */
class Linked {
 public:
  Linked() : mainLinks_(&mainEvents_), workerLinks_(&workerEvents_) {
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    mainLinks_.attach(
        ends[0], &main.server,
        {.pace = 0, .mostKept = kMostSaid, .mostEver = kMostEver, .patience = kPatience});
    workerLinks_.attach(ends[1], &worker.handler, {.pace = 0, .mostKept = 0});
  }

  void turnMain() {
    mainEvents_.dispatch([](uint32_t, uint32_t, uint32_t) {});
    main.server.settle(Settled::kHolds);
    mainLinks_.send();
    mainLinks_.giveUpTheDeaf();
    EXPECT(mainLinks_.attached(&main.server));
    // What has been sent is taken away by the mebibyte.
    EXPECT(main.server.outgoing().size() < kMostAhead + 2 * kLength);
  }

  void turnWorker() {
    workerEvents_.dispatch([](uint32_t, uint32_t, uint32_t) {});
    worker.step();
    worker.handler.feeds()->turn();
    workerLinks_.send();
  }

  /** Until so many have been answered. */
  void turnUntil(size_t answers) {
    for (int turns = 0; worker.said.size() < answers; ++turns) {
      EXPECT(turns < 200000);
      turnMain();
      turnWorker();
    }
  }

  static constexpr size_t kLength = 1 << 20;  // bytes of a value

  Main main;
  Worker worker;

 private:
  EventSet mainEvents_, workerEvents_;
  RelayLinks mainLinks_, workerLinks_;
};

/** A worker may ask for more at once than may wait for it: it gets all. */
void asksForAllAtOnce() {
  constexpr size_t kFeeds = 80;
  static_assert(kFeeds * Linked::kLength > kMostSaid);
  Linked linked;
  for (size_t i = 0; i < kFeeds; ++i) {
    const std::string key = "feed/" + std::to_string(i);
    linked.main.publish(key, 1, Linked::kLength);
    linked.worker.watch(key, "");
  }
  linked.turnWorker();
  linked.turnUntil(kFeeds);
  for (const std::string& text : linked.worker.said) EXPECT(text.find("e1-1") != text.npos);
}

/** Versions that a worker has not read wait in the table: it gets the newest. */
void skipsWhatItIsTooSlowFor() {
  constexpr uint64_t kVersions = 80;
  Linked linked;
  linked.main.publish("a", 1, Linked::kLength);
  linked.worker.watch("a", "");
  linked.turnWorker();
  linked.turnUntil(1);
  linked.worker.said.clear();
  for (uint64_t version = 2; version <= kVersions; ++version) {
    linked.main.publish("a", version, Linked::kLength);
    linked.turnMain();
  }
  const std::string newest = "e1-" + std::to_string(kVersions);
  std::string after = "e1-1";
  size_t answers = 0;
  while (after != newest) {
    linked.worker.watch("a", after);
    linked.turnUntil(1);
    const std::string text = std::exchange(linked.worker.said, {})[0];
    const size_t at = text.find("e1-");
    EXPECT(at != text.npos);
    after = text.substr(at, text.find('"', at) - at);
    ++answers;
  }
  EXPECT(answers < kVersions / 4);
}

}  // namespace

int main() {
  keepsNothingOfWhatIsUnknown();
  countsNobodyOfWhatHasEnded();
  crossesForgetting();
  crossesAsking();
  hasNoRoom();
  asksForAllAtOnce();
  skipsWhatItIsTooSlowFor();
}
