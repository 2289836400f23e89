// Tests the room base: the timer wheel, the known addresses, the delays of a loop, the clock of
// deadlines.
//
//   base_test [steps of the wheel] [seed]
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/address_limits.h"
#include "base/deadline_clock.h"
#include "base/loop_delays.h"
#include "base/wheel.h"
#include "expect.h"
#include "http/send_costs.h"

/** The timer wheel compared with a plain table: random arming, disarming and sweeping, also in
 * callbacks. */
namespace wheel {

constexpr uint32_t kEntries = 40;
constexpr uint32_t kTick = 5;

class Run {
 public:
  explicit Run(uint64_t seed)
      : random_(seed), start_(below(3000)), now_(start_), wheel_(kEntries, now_) {}

  void step() {
    if (below(3) > 0) {
      change();
    } else {
      sweep();
    }
    for (uint32_t entry = 0; entry < kEntries; ++entry) {
      EXPECT(wheel_.isArmed(entry) == (due_.count(entry) == 1));
    }
  }

  uint64_t fired() const { return fired_; }
  uint64_t quiet() const { return quiet_; }

 private:
  uint32_t below(uint64_t bound) { return static_cast<uint32_t>(random_() % bound); }

  /**
   * Disarms an entry, or arms it: soon, in some turns of the wheel, or with a time that is over.
   */
  void change() {
    const uint32_t entry = below(kEntries);
    if (below(4) == 0) {
      wheel_.disarm(entry);
      due_.erase(entry);
      return;
    }
    const uint32_t ahead[] = {1 + below(30), below(1024 * 4), 1023 + below(3)};
    uint32_t time = now_ + kTick * ahead[below(3)] + below(kTick);
    if (below(8) == 0) time = now_ - std::min(now_ - start_, below(2000));
    wheel_.arm(entry, time);
    due_[entry] = time;
  }

  void sweep() {
    const uint32_t ahead[] = {0, 1, below(20), below(3000)};
    now_ += kTick * ahead[below(4)] + below(kTick);
    for (;;) {
      const uint32_t budget = below(2) == 0 ? 1 + below(5) : 100000;
      uint32_t left = budget;
      const bool done = wheel_.sweep(now_, budget, [&](uint32_t entry) {
        EXPECT(left-- > 0);
        EXPECT(due_.count(entry) == 1 && isDue(due_[entry]) && !wheel_.isArmed(entry));
        due_.erase(entry);
        ++fired_;
        // A firing entry may change any entry, even itself.
        for (uint32_t i = below(3); i > 0; --i) change();
      });
      if (done) break;
    }
    // An entry that a callback armed with a past time fires in the next sweep.
    now_ += kTick;
    while (!wheel_.sweep(now_, 100000, [&](uint32_t entry) {
      EXPECT(due_.count(entry) == 1 && isDue(due_[entry]));
      due_.erase(entry);
      ++fired_;
    })) {
    }
    for (const auto& [entry, due] : due_) EXPECT(!isDue(due));
    // If the slots are empty, no entry is due by the time of the last one.
    const uint32_t ticks = below(30);
    if (!wheel_.isQuiet(ticks)) return;
    ++quiet_;
    for (const auto& [entry, due] : due_) EXPECT(!isDue(due, now_ + kTick * ticks));
  }

  /** Whether an entry is due: not before its time, and at most a tick later. */
  bool isDue(uint32_t time, uint32_t now) const {
    return (now - start_) / kTick > (time - start_) / kTick;
  }
  bool isDue(uint32_t time) const { return isDue(time, now_); }

  std::mt19937_64 random_;
  const uint32_t start_;
  uint32_t now_;
  base::Wheel<kTick> wheel_;
  std::map<uint32_t, uint32_t> due_;
  uint64_t fired_ = 0;
  uint64_t quiet_ = 0;
};

void test(uint64_t steps, uint64_t seed) {
  uint64_t fired = 0, quiet = 0;
  for (uint64_t done = 0, run = 0; done < steps; ++run) {
    Run wheel(seed + run);
    for (int i = 0; i < 5000 && done < steps; ++i, ++done) wheel.step();
    fired += wheel.fired();
    quiet += wheel.quiet();
  }
  printf("wheel: %" PRIu64 " steps, %" PRIu64 " fired, %" PRIu64 " quiet\n", steps, fired, quiet);
  EXPECT(steps < 300000 || (fired > 10000 && quiet > 100));  // the run was long enough
}

}  // namespace wheel

/**
 * The number of known addresses is bounded: a further one is refused everything until another is
 * forgotten. (contract/shares tests the limits of one address with the server.)
 */
namespace addresses {

using namespace server;

Address addressOf(int last) {
  Address address;
  EXPECT(Address::parse("192.0.2." + std::to_string(last), &address));
  return address;
}

void test() {
  AddressLimits limits(AddressLimitsOptions{.connections = 10,
                                            .clients = 10,
                                            .joinRate = 1,
                                            .joinBurst = 10,
                                            .spriteBytes = 10,
                                            .heldBytes = 10,
                                            .feeds = 1},
                       2);
  EXPECT(limits.addConnection(addressOf(1)));
  EXPECT(limits.addClient(addressOf(2)) != kNoSource);
  EXPECT(limits.size() == 2);

  const Address third = addressOf(3);
  EXPECT(!limits.addConnection(third));
  EXPECT(!limits.addHeldBytes(third, 1));
  EXPECT(!limits.tryJoin(third, 1000));
  EXPECT(limits.addClient(third) == kNoSource);
  EXPECT(limits.addFeed(third) == kNoSource);
  EXPECT(limits.size() == 2);
  // The known addresses are still served.
  EXPECT(limits.addConnection(addressOf(2)));
  EXPECT(limits.tryJoin(addressOf(1), 1000));
  const Source fetched = limits.addFeed(addressOf(2));
  EXPECT(fetched != kNoSource && limits.addFeed(addressOf(2)) == kNoSource);
  limits.removeFeed(fetched);
  limits.removeFeed(limits.addFeed(addressOf(2)));
  limits.removeConnection(third);
  EXPECT(limits.size() == 2);

  // An address is forgotten when its counts are 0 and its allowance is full again.
  limits.removeConnection(addressOf(1));
  limits.tick(1000000);
  EXPECT(limits.size() == 1);
  EXPECT(limits.addConnection(third));
  EXPECT(!limits.addConnection(addressOf(4)));

  // An address rests once, also when its limit recovered before a tick noticed.
  for (uint64_t now = 2000000; now <= 2100000; now += 2000) {
    EXPECT(limits.tryJoin(addressOf(2), now) && limits.recoveringCount() == 1);
  }
  limits.tick(3000000);
  EXPECT(limits.recoveringCount() == 0 && limits.size() == 2);
}

/** Counts for many addresses, of which some share a bucket, compared with a plain table. */
void count(uint64_t steps, uint64_t seed) {
  constexpr uint32_t kMost = 3;
  AddressLimits limits(AddressLimitsOptions{.connections = kMost, .heldBytes = kMost});
  std::mt19937_64 random(seed);
  std::map<uint64_t, uint32_t> connections;  // by address
  for (uint64_t step = 0; step < steps; ++step) {
    const uint64_t network = random() % 20000;
    const Address address = {.network = network};
    uint32_t& known = connections[network];
    EXPECT(!limits.addHeldBytes(address, kMost + 1));
    if (random() % 2 == 0) {
      EXPECT(limits.addConnection(address) == (known < kMost));
      known = std::min(known + 1, kMost);
    } else {
      limits.removeConnection(address);
      known -= known > 0;
    }
    if (known == 0) connections.erase(network);
    EXPECT(limits.size() == connections.size());
  }
}

}  // namespace addresses

/**
 * The delays of a loop, computed from its turns: compared with a timer that really fires every 10
 * ms, moment by moment, and with the sorted list of its delays.
 */
namespace delays {

using base::LoopDelays;

constexpr uint64_t kStart = 123456789;  // microseconds
constexpr uint64_t kMilli = 1000;

/** A simulated loop with a timer. */
class Loop {
 public:
  void sleep(uint64_t microseconds) {
    for (; due_ < now_ + microseconds; due_ += LoopDelays::kPeriod) expectedDelays_.push_back(0);
    now_ += microseconds;
    slept_ += microseconds;
  }

  /** Works, and ends the turn. */
  void work(uint64_t microseconds) {
    now_ += microseconds;
    longest_ = std::max(longest_, microseconds);
    if (due_ <= now_) {
      expectedDelays_.push_back(now_ - due_);
      due_ = now_ + LoopDelays::kPeriod;
    }
    delays_.turn(now_, slept_);
  }

  /** Wakes so many microseconds late; `isNoticed`: the loop calls `setPlannedTime`. */
  void wakeLate(uint64_t microseconds, bool isNoticed) {
    if (isNoticed) {
      delays_.setPlannedTime(now_);
      now_ += microseconds;
      slept_ += microseconds;
      work(0);
    } else {
      sleep(microseconds);
      work(0);
    }
  }

  LoopDelays& delays() { return delays_; }
  std::vector<uint64_t>& expectedDelays() { return expectedDelays_; }
  uint64_t longest() const { return longest_; }

 private:
  uint64_t now_ = kStart;
  uint64_t slept_ = 77;
  uint64_t due_ = kStart + LoopDelays::kPeriod;
  uint64_t longest_ = 0;
  std::vector<uint64_t> expectedDelays_;
  LoopDelays delays_{kStart, 77};
};

uint64_t countOf(const LoopDelays& delays) {
  return std::accumulate(delays.counts().begin(), delays.counts().end(), uint64_t{0});
}

void stopped() {
  Loop seen;
  seen.wakeLate(500 * kMilli, true);
  EXPECT(seen.delays().longest() == 500 * kMilli);
  EXPECT(seen.delays().sum() == 490 * kMilli);
  // The longest turn is the last one only.
  seen.sleep(500 * kMilli);
  seen.delays().resetLongest();
  seen.work(1);
  EXPECT(seen.delays().longest() == 1);
  Loop unseen;
  unseen.wakeLate(500 * kMilli, false);
  EXPECT(unseen.delays().longest() == 0);
}

/** A sleep clock that runs ahead of the other by its rounding causes no huge turn. */
void rounding() {
  LoopDelays delays(kStart, 0);
  delays.turn(kStart + 1000, 1001);
  delays.setPlannedTime(kStart - 5000);
  delays.turn(kStart + 2000, 1001);
  EXPECT(delays.longest() == 1000);
}

/** Returns the smallest element of `sorted` that is not below the given share of them. */
uint64_t quantile(const std::vector<uint64_t>& sorted, double share) {
  const auto wanted = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[wanted == 0 ? 0 : wanted - 1];
}

void compare(Loop& loop) {
  std::vector<uint64_t>& expected = loop.expectedDelays();
  const LoopDelays::Interval interval = loop.delays().takeInterval();
  EXPECT(interval.count == expected.size());
  if (expected.empty()) return;
  std::sort(expected.begin(), expected.end());
  EXPECT(interval.min == expected.front());
  EXPECT(interval.max == expected.back());
  const double mean =
      static_cast<double>(std::accumulate(expected.begin(), expected.end(), uint64_t{0})) /
      expected.size();
  EXPECT(std::abs(interval.mean - mean) <= 1e-6 * (1 + mean));
  const auto near = [&](uint64_t value, double share) {
    const uint64_t exact = quantile(expected, share);
    return value >= exact && value <= exact + exact / 64;
  };
  EXPECT(near(interval.p50, 0.5));
  EXPECT(near(interval.p90, 0.9));
  EXPECT(near(interval.p99, 0.99));
  expected.clear();
}

void histories(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t most) { return random() % most; };
  for (int round = 0; round < 50; ++round) {
    Loop loop;
    uint64_t expectedCount = 0;
    uint64_t sum = 0;
    LoopDelays::Counts counts = {};
    for (int interval = 0; interval < 10; ++interval) {
      for (int turn = 0; turn < 300; ++turn) {
        if (below(3) > 0) loop.sleep(below(50) * (below(2) == 0 ? 1 : kMilli));
        loop.work(below(10) == 0 ? below(1u << below(24)) : below(2000));
      }
      expectedCount += loop.expectedDelays().size();
      for (const uint64_t delay : loop.expectedDelays()) {
        sum += delay;
        size_t bound = 0;
        while (bound < LoopDelays::kBounds.size() && delay > LoopDelays::kBounds[bound]) ++bound;
        ++counts[bound];
      }
      compare(loop);
    }
    EXPECT(countOf(loop.delays()) == expectedCount);
    EXPECT(loop.delays().counts() == counts);
    EXPECT(loop.delays().sum() == sum);
    EXPECT(loop.delays().longest() == loop.longest());
    EXPECT(loop.delays().takeInterval().count == 0);
  }
}

void test(uint64_t seed) {
  stopped();
  rounding();
  histories(static_cast<uint32_t>(seed));
}

}  // namespace delays

/** The clock of leases: it counts planned time, and no time in which the process was stopped. */
namespace deadlines {

constexpr uint64_t kTick = 100;
constexpr uint64_t kRest = 1000;

void test() {
  uint64_t now = 5000;
  base::DeadlineClock clock(now, kTick);
  uint64_t shown = now;
  const auto passes = [&](uint64_t milliseconds, uint64_t planned, uint64_t counted) {
    now += milliseconds;
    shown += counted;
    EXPECT(clock.advance(now, planned) == shown);
  };
  // In time, early, and up to two ticks late.
  passes(kTick, kTick, kTick);
  passes(kRest, kRest, kRest);
  passes(1, kRest, 1);
  passes(kRest + 2 * kTick, kRest, kRest + 2 * kTick);
  // Stopped for a moment, in a tick and in a rest.
  passes(301, kTick, kTick);
  passes(kRest + 201, kRest, kRest);
  // Stopped for long: the clock stands still while the input is read, at most kMaxStandstill.
  passes(4000, kRest, kRest);
  for (int i = 0; i < 4; ++i) passes(kRest, kRest, 0);
  passes(kTick, kTick, kTick);
  passes(3600000, kTick, kTick);
  for (int i = 0; i < 50; ++i) passes(kTick, kTick, 0);
  passes(kTick, kTick, kTick);
}

}  // namespace deadlines

/** The way of long messages: the cheaper one, and now and then the other. */
namespace costs {

using server::SendCosts;
using server::SendMethod;

constexpr uint64_t kBytes = 165000;

uint32_t filesOf(SendCosts* costs, uint32_t messages) {
  uint32_t files = 0;
  for (uint32_t i = 0; i < messages; ++i) files += costs->wantsFile() ? 1 : 0;
  return files;
}

void test() {
  SendCosts costs;
  EXPECT(filesOf(&costs, 100) == 100);
  costs.addMeasurement(SendMethod::kCopy, 24, kBytes);
  EXPECT(filesOf(&costs, 100) == 100);
  costs.addMeasurement(SendMethod::kFile, 43, kBytes);
  EXPECT(filesOf(&costs, 100 * SendCosts::kProbeEvery) == 100);
  // A single outlier, because another process had the core, changes little.
  costs.addMeasurement(SendMethod::kCopy, 12000, kBytes);
  EXPECT(filesOf(&costs, SendCosts::kProbeEvery) == 1);
  for (int i = 0; i < 100; ++i) costs.addMeasurement(SendMethod::kCopy, 85, kBytes);
  EXPECT(filesOf(&costs, 100) == 100);
  // Costs are for each byte.
  for (int i = 0; i < 100; ++i) costs.addMeasurement(SendMethod::kFile, 200, 10 * kBytes);
  for (int i = 0; i < 100; ++i) costs.addMeasurement(SendMethod::kCopy, 25, kBytes);
  EXPECT(filesOf(&costs, 100) == 100);
}

}  // namespace costs

int main(int argc, char** argv) {
  const auto [steps, seed] = readArguments(argc, argv, 300000);
  wheel::test(steps, seed);
  addresses::test();
  addresses::count(steps, seed);
  delays::test(seed);
  deadlines::test();
  costs::test();
}
