// The cost of one sprite in the main thread, without sockets: a throw, the answer of the receiver's
// parked poll, and the next poll with its ack. Measured twice: for the pool alone, and with a
// worker, whose asks are read and answered.
//
//   pool_bench [clients] [milliseconds a round]
//
// Every client is parked. Each turn has kTurn throws of random clients, then the answers, then the
// polls of the clients that were answered. Only the main thread's part is timed, by the CPU clock
// of the thread: a worker has a core of its own. The output is the median of kRounds rounds, with
// the fastest and the slowest.
#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "expect.h"
#include "server/worker_asks.h"
#include "server/worker_service.h"
#include "sprite_text.h"
#include "torus/pool.h"

namespace {

using namespace server;

constexpr int kRounds = 7;
/**
 * Throws in a turn: as many as in a worker's batch under load (8,000 sprites a second, a turn every
 * 2 ms).
 */
constexpr uint32_t kTurn = 16;

uint64_t cpu() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

PoolOptions options(uint32_t clients) {
  return {.capacity = clients,
          .hold = 3600,
          .lease = 3600,
          .maxSprite = 65536,
          .mailboxSprites = 64,
          .mailboxBytes = 1 << 20,
          .mailboxMemory = uint64_t{1} << 32,
          .answerBytes = 65536};
}

/** The clients that were answered, each with its last sequence number. */
using Answered = std::vector<std::pair<uint32_t, uint64_t>>;

/** Returns the number that acks an answer: `{"seq":42,…`. */
uint64_t sequenceOf(std::string_view body) {
  constexpr std::string_view kBefore = "{\"seq\":";
  EXPECT(body.substr(0, kBefore.size()) == kBefore);
  uint64_t sequence = 0;
  std::from_chars(body.data() + kBefore.size(), body.data() + body.size(), sequence);
  return sequence;
}

/** The clients by number; makes throws of random clients. */
class Crowd {
 public:
  Crowd(Pool* pool, uint32_t count) : ids_(count), numbers_(count) {
    for (Id& id : ids_) EXPECT(pool->join({0, 1}, 0, &id) == Outcome::kOk);
  }

  const Id& id(uint32_t client) const { return ids_[client]; }
  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }
  uint32_t pickClient() { return std::uniform_int_distribution<uint32_t>(0, size() - 1)(random_); }
  uint64_t nextNumber(uint32_t client) { return ++numbers_[client]; }

 private:
  std::vector<Id> ids_;
  std::vector<uint64_t> numbers_;
  std::mt19937 random_{7};
};

Edge edgeOf(uint32_t client) { return Edge{static_cast<uint8_t>(client % 4)}; }

/** The pool alone, called as by the main thread's front door. */
class PoolAlone : PollResponder {
 public:
  explicit PoolAlone(uint32_t clients)
      : pool_(options(clients), nullptr, 0), crowd_(&pool_, clients) {
    pool_.setResponder(PollHolder::kDoor, this);
    for (uint32_t at = 0; at < clients; ++at) park(at, 0);
  }

  const PoolCounts& counts() const { return pool_.counts(); }

  /** Takes a turn. Returns its nanoseconds. */
  uint64_t turn() {
    uint32_t throwers[kTurn];
    for (uint32_t& one : throwers) one = crowd_.pickClient();
    const uint64_t before = cpu();
    for (const uint32_t one : throwers) {
      pool_.throwSprite(crowd_.id(one), edgeOf(one), crowd_.nextNumber(one), kSprite,
                        before / 1000);
    }
    pool_.answerPolls();
    for (const auto& [client, sequence] : answered_) park(client, sequence);
    const uint64_t nanoseconds = cpu() - before;
    answered_.clear();
    return nanoseconds;
  }

 private:
  void park(uint32_t client, uint64_t ack) {
    const PollResult result =
        pool_.poll(crowd_.id(client), ack, kNoHold, PollHolder::kDoor, client);
    EXPECT(result.outcome == Outcome::kOk && result.answer.empty());
  }

  void answer(uint32_t token, std::string_view body) override {
    answered_.emplace_back(token, sequenceOf(body));
  }

  Pool pool_;
  Crowd crowd_;
  Answered answered_;
};

/** The pool with one worker: all polls are parked there. */
class PoolWithWorker {
 public:
  explicit PoolWithWorker(uint32_t clients)
      : pool_(options(clients), nullptr, 0),
        crowd_(&pool_, clients),
        service_({.pool = &pool_, .feeds = &feeds_, .clock = EventSet::now},
                 PollHolder::kFirstWorker, clients + kTurn) {
    for (uint32_t at = 0; at < clients; ++at) {
      park(at, 0);
      if (at % 1000 == 999 || at + 1 == clients) exchange();
    }
  }

  const PoolCounts& counts() const { return pool_.counts(); }

  uint64_t turn() {
    for (uint32_t at = 0; at < kTurn; ++at) {
      const uint32_t one = crowd_.pickClient();
      HotRequest request = {};
      request.id = crowd_.id(one);
      request.edge = edgeOf(one);
      request.hasNumber = true;
      request.number = crowd_.nextNumber(one);
      asks_.throwSprite({crowd_.size() + at, 1}, request, kSprite);
    }
    const uint64_t throwing = exchange();
    for (const auto& [client, sequence] : std::exchange(answered_, {})) park(client, sequence);
    return throwing + exchange();
  }

 private:
  void park(uint32_t client, uint64_t ack) {
    HotRequest request = {};
    request.id = crowd_.id(client);
    request.ack = ack;
    asks_.poll({client, 1}, request);
  }

  /**
   * Exchanges the worker's asks and their answers. Returns the nanoseconds of the main thread's
   * part.
   */
  uint64_t exchange() {
    asks_.send(&asksRing_);
    const uint64_t before = cpu();
    while (asksRing_.take(&batch_)) service_.serve(batch_);
    pool_.answerPolls();
    service_.settleTurn(DecisionState::kHolds);
    service_.send(&noticesRing_);
    const uint64_t nanoseconds = cpu() - before;
    while (noticesRing_.take(&batch_)) {
      eachMessage<NoticeHead>(batch_, [this](const NoticeHead& head, std::string_view text) {
        if (head.notice == Notice::kAnswer) {
          answered_.emplace_back(head.ticket.connection, sequenceOf(text));
        } else {
          EXPECT(head.outcome == Outcome::kDelivered || head.outcome == Outcome::kQueued);
        }
      });
    }
    return nanoseconds;
  }

  Pool pool_;
  Crowd crowd_;
  Feeds feeds_{{.hold = 30, .feeds = 1, .memory = 1 << 20, .watchers = 1}, 0, EventSet::now};
  WorkerService service_;
  WorkerAsks asks_{{.maxSprite = 65536, .inputs = false}};
  EventSet events_;
  Waker waker_{&events_};
  BatchRing asksRing_{&waker_};
  BatchRing noticesRing_{&waker_};
  std::string batch_;
  Answered answered_;
};

/** Prints the cost of one sprite, over rounds of `round` nanoseconds. */
template <typename Scene>
void measure(const char* name, Scene* scene, uint64_t round) {
  std::vector<double> costs;
  for (int i = 0; i < kRounds; ++i) {
    const uint64_t before = scene->counts().acked;
    uint64_t nanoseconds = 0;
    while (nanoseconds < round) nanoseconds += scene->turn();
    costs.push_back(static_cast<double>(nanoseconds) /
                    static_cast<double>(scene->counts().acked - before));
  }
  std::sort(costs.begin(), costs.end());
  const double median = costs[costs.size() / 2];
  printf("%-30s %6.0f ns a sprite (%.0f to %.0f): %9.0f sprites/s on one core\n", name, median,
         costs.front(), costs.back(), 1e9 / median);
  const PoolCounts& counts = scene->counts();
  EXPECT(counts.thrown == counts.acked + counts.waiting && counts.lost == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const auto clients = static_cast<uint32_t>(argc > 1 ? strtoul(argv[1], nullptr, 10) : 1'000'000);
  const uint64_t round = (argc > 2 ? strtoull(argv[2], nullptr, 10) : 1000) * 1'000'000;
  printf("%" PRIu32 " clients, all parked, %zu bytes a sprite, %" PRIu32 " throws a turn\n",
         clients, kSprite.size(), kTurn);
  {
    PoolAlone alone(clients);
    measure("the pool alone", &alone, round);
  }
  PoolWithWorker asked(clients);
  measure("with a worker that asks", &asked, round);
  return 0;
}
