// Fuzzes both ends of the relay under the sanitizers, without sockets.
//
//   relay_fuzz [count] [seed]
//
// A round is a pool with some clients of the main process's own, and a worker with some of its own.
// What both ends send is kept; then bytes of it are changed, cut, doubled or made up, and what
// comes of that is given to a new pair of ends in pieces of any size. What must hold, whatever has
// come:
//  - nothing is read outside the bytes (the sanitizers look on: every piece is an exact copy);
//  - the law of sprites: thrown = acked + waiting + lost, and that of inputs;
//  - a player whose id the worker does not know has sent nothing;
//  - the sprites of who has no poll at that worker are all there, in their order, unacked: a worker
//    that does not know an id can do nothing to its owner but throw at him as a neighbor may;
//  - once the end is lost, no poll of it is parked, and no connection of it is counted.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "expect.h"
#include "fuzz.h"
#include "relay/relay.h"
#include "relay/relay_server.h"

namespace {

using namespace server;
using server::test::ExactCopy;
using server::test::Random;

constexpr uint32_t kMaxSprite = 256;
constexpr uint32_t kConnections = 16;
constexpr size_t kOwn = 6;
constexpr size_t kPlayers = 4;  // of whom the worker knows all but the first

uint64_t now = 1000;

uint64_t microseconds() { return now * 1000; }

PoolOptions poolOptions() {
  return {.capacity = 64,
          .hold = 30,
          .lease = 30,
          .maxSprite = kMaxSprite,
          .mailboxSprites = 64,
          .mailboxBytes = 1 << 16,
          .mailboxMemory = 1 << 20,
          .answerBytes = 4096,
          .throwRate = 0,
          .throwBurst = 1,
          .pollRate = 0,
          .pollBurst = 1};
}

ArenaOptions arenaOptions() {
  return {.rooms = {"hall"}, .players = kPlayers, .lease = 30, .rate = 1000000};
}

FeedsOptions feedsOptions(bool replica) {
  return {.hold = 30,
          .feeds = 32,
          .memory = 1 << 20,
          .watchers = 64,
          .upstream = false,
          .replica = replica};
}

/** Who is told at the worker: it keeps what it needs to go on. */
class Front : public LateAnswers {
 public:
  void complete(Ticket ticket, std::optional<Outcome> outcome, const Id* id) override {
    if (outcome == Outcome::kOk && ticket.generation == 1) ids.push_back(*id);
    ++told;
  }
  void answer(Ticket, std::string_view) override { ++told; }
  void over(Ticket) override { ++told; }
  void tooMany(Ticket) override { ++told; }

  std::vector<Id> ids;  // of joins, whose tickets are of generation 1
  uint64_t told = 0;
};

/** Watchers of feeds at the worker: nobody reads what they get. */
class Nobody : public FeedResponder, public PollResponder {
 public:
  Taken answer(uint32_t, const FeedAnswer& answer) override {
    answered += answer.length();
    return Taken::kWhole;
  }
  void answer(uint32_t, std::string_view) override {}
  uint64_t answered = 0;
};

/** The main process, with clients that a worker knows nothing of. */
class Main {
 public:
  Main()
      : pool_(poolOptions(), &limits_, now),
        feeds_(feedsOptions(false), now, microseconds),
        arena_(arenaOptions(), &limits_, now),
        server({&pool_, &limits_, &feeds_, microseconds, [] { return std::string_view("{}"); },
                &arena_},
               PollHolder::kFirstWorker, kConnections) {
    arena_.setFields(0, {{"y", 0, 1, 0.5, false}});
    for (Id& id : players) {
      uint32_t number;
      EXPECT(arena_.join("hall", {0, 1}, microseconds(), &id, &number) == Outcome::kOk);
    }
    pool_.setResponder(PollHolder::kDoor, &nobody_);
    for (size_t i = 0; i < kOwn; ++i) {
      EXPECT(pool_.join({0, 1}, microseconds(), &own[i]) == Outcome::kOk);
    }
    for (size_t i = 0; i < kOwn; ++i) {
      pool_.throwSprite(own[i], Edge::kRight, 1, R"({"own":1})", microseconds());
    }
    for (const char* key : {"a", "scores/1"}) publish(key, 1);
  }

  void publish(const char* key, uint64_t version) {
    uint32_t watching;
    const std::string value = "[" + std::to_string(version) + ",\"" + std::string(80, 'x') + "\"]";
    feeds_.publish({.key = key,
                    .cursor = {7, version},
                    .value = value,
                    .patch = R"({"op":"replace","path":"/0","value":1})",
                    .gzip = {},
                    .upstream = false},
                   &watching);
    if (const Feed* feed = feeds_.find(key)) server.published(*feed);
  }

  bool give(std::string_view bytes, Random& random) {
    while (!bytes.empty()) {
      const ExactCopy piece(bytes.data(), std::min(bytes.size(), 1 + random.below(200)));
      bytes.remove_prefix(piece.length());
      const bool good = server.receive({piece.data(), piece.length()});
      check();
      if (!good) return false;
      if (random.oneIn(4)) pool_.answerReady();
    }
    return true;
  }

  void check() {
    const Counts& counts = pool_.counts();
    EXPECT(counts.thrown == counts.acked + counts.waiting + counts.lost);
    EXPECT(counts.lost == 0);
    const ArenaCounts& inputs = arena_.counts();
    EXPECT(inputs.inputs == inputs.reduced + inputs.superseded + inputs.waiting);
    EXPECT(inputs.players == kPlayers);
    uint32_t numbers[kPlayers];
    uint8_t fresh[kPlayers];
    double values[kPlayers * kInputFields];
    EXPECT(arena_.take(0, {kPlayers, numbers, fresh, values}) == kPlayers);
    EXPECT(values[0] == 0.5);
    Pool::View view;
    for (const Id& id : own) {
      // Nobody has acked for him, or made him leave.
      EXPECT(pool_.look(id, &view));
      EXPECT(view.waiting == view.sequence && !view.parked);
    }
  }

  void lose() {
    server.lost();
    while (!server.clear()) continue;
    EXPECT(server.over());
    EXPECT(pool_.counts().parked == 0);
    check();
    for (const char* key : {"a", "scores/1"}) EXPECT(feeds_.find(key)->elsewhere == 0);
  }

  uint64_t inputs() const { return arena_.counts().inputs; }

  Id own[kOwn];
  Id players[kPlayers];

 private:
  AddressLimits limits_{AddressLimitsOptions{}};
  Nobody nobody_;
  Pool pool_;
  Feeds feeds_;
  Arena arena_;

 public:
  RelayServer server;
};

/** A worker, and what its clients do. */
class Worker {
 public:
  Worker() : handler(kMaxSprite), feeds_(feedsOptions(true), now, microseconds) {
    handler.tell(&front, &front);
    handler.replicate(&feeds_);
    feeds_.setResponder(&nobody_);
    handler.takeInputs();
  }

  void act(Random& random) {
    const Ticket ticket = {static_cast<uint32_t>(random.below(kConnections)),
                           static_cast<uint32_t>(2 + random.below(3))};
    const Ticket script = {kScriptConnection, static_cast<uint32_t>(2 + random.below(9))};
    const Ticket& one = random.oneIn(3) ? script : ticket;
    const Id id = front.ids.empty() ? Id{} : front.ids[random.below(front.ids.size())];
    const Address address = {0, static_cast<uint32_t>(random.below(3))};
    switch (random.below(14)) {
      case 0:
        handler.join({ticket.connection, 1}, address, nullptr);
        break;
      case 1:
      case 2:
        handler.throwSprite(one, id, Edge{static_cast<uint8_t>(random.below(4))}, random.below(99),
                            R"({"x":[1,2,3]})");
        break;
      case 3:
        if (random.oneIn(4)) handler.leave(one, id);
        break;
      case 4:
      case 5:
        handler.poll(one, id, random.below(4), random.oneIn(2) ? kNoHold : 30);
        break;
      case 6:
        random.oneIn(2) ? handler.drop(0, one) : (void)handler.ended(one);
        break;
      case 7:
        random.oneIn(2) ? (void)handler.place(one, id, nullptr) : handler.counts(one);
        break;
      case 8:
        handler.opened(address, ticket.key());
        break;
      case 9:
        handler.closed(address);
        break;
      case 10:
      case 11:
        input(one, random);
        break;
      default:
        watch(random.oneIn(2) ? "a" : random.oneIn(2) ? "scores/1" : "no/body", random);
    }
    handler.feeds()->turn();
  }

  /** Versions are taken of what somebody has asked for. */
  void watch(const char* key, Random& random) {
    const Wanted wanted = {key, random.oneIn(2) ? "" : "e7-1"};
    uint32_t watcher;
    feeds_.watch(&wanted, 1,
                 {.hold = 30,
                  .delta = true,
                  .gzip = random.oneIn(2),
                  .stream = random.oneIn(3),
                  .many = false},
                 1, &watcher);
  }

  bool give(std::string_view bytes, Random& random) {
    while (!bytes.empty()) {
      const ExactCopy piece(bytes.data(), std::min(bytes.size(), 1 + random.below(200)));
      bytes.remove_prefix(piece.length());
      if (!handler.receive({piece.data(), piece.length()})) return false;
      feeds_.step(1000);
    }
    return true;
  }

  void input(Ticket ticket, Random& random) {
    HotRequest request = {};
    request.id = players[1 + random.below(kPlayers - 1)];
    request.hasNumber = random.oneIn(2);
    request.number = random.below(99);
    handler.input(ticket, request, random.oneIn(8) ? "yard" : "hall",
                  random.oneIn(8) ? R"({"y":2})" : R"({"y":0.25})");
  }

  Front front;
  RelayHandler handler;
  Id players[kPlayers] = {};  // as the main process knows them

 private:
  Nobody nobody_;
  Feeds feeds_;
};

/** What both have sent in a while that goes well. */
struct Talk {
  std::string asked;
  std::string said;
};

uint64_t taken = 0;  // inputs, in all talks

Talk talk(Random& random) {
  Main main;
  Worker worker;
  std::copy_n(main.players, kPlayers, worker.players);
  Talk all;
  for (uint64_t turn = 0; turn < 4 + random.below(12); ++turn) {
    for (size_t i = random.below(6); i > 0; --i) worker.act(random);
    const std::string asked = std::exchange(worker.handler.outgoing(), {});
    EXPECT(main.give(asked, random));
    if (random.oneIn(3)) main.publish("a", turn + 2);
    main.server.settle(random.oneIn(8) ? Settled::kUnknown : Settled::kHolds);
    const std::string said = std::exchange(main.server.outgoing(), {});
    EXPECT(worker.give(said, random));
    all.asked += asked;
    all.said += said;
  }
  taken += main.inputs();
  main.lose();
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t count = argc > 1 ? strtoull(argv[1], nullptr, 10) : 2000;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : std::random_device{}();
  printf("relay_fuzz: seed %" PRIu64 "\n", seed);
  Random random(seed);
  // Heads that are nearly right lead furthest.
  std::vector<std::string> words = {std::string(8, '\0'), std::string(8, '\xff'),
                                    std::string("\1\0\0\0", 4), std::string("\0\0\0\x80", 4)};
  std::deque<Talk> talks;
  uint64_t refused[2] = {};
  for (uint64_t i = 0; i < count; ++i) {
    if (talks.size() < 8 || random.oneIn(16)) talks.push_back(talk(random));
    if (talks.size() > 8) talks.pop_front();
    const Talk& one = talks[random.below(talks.size())];
    const std::vector<std::string> others = {talks.back().asked, talks.back().said};
    Main main;
    if (!main.give(mutate(random, one.asked, others, words), random)) ++refused[0];
    main.lose();
    Worker worker;
    for (const char* key : {"a", "scores/1"}) worker.watch(key, random);
    if (!worker.give(mutate(random, one.said, others, words), random)) ++refused[1];
  }
  printf("relay_fuzz: %" PRIu64 " rounds; the main process refused %" PRIu64
         " of them, the worker %" PRIu64 "\n",
         count, refused[0], refused[1]);
  if (count >= 1000) EXPECT(taken > count / 20);
  if (count >= 1000) EXPECT(refused[0] > count / 20 && refused[1] > count / 20);
  return 0;
}
