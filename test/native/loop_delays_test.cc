// How late a loop is, worked out from its turns: held against a timer that really fires every 10
// ms, moment by moment, and against the sorted list of its delays.
//
//   loop_delays_test [SEED]
#include "base/loop_delays.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "expect.h"

namespace {

using base::LoopDelays;

constexpr uint64_t kStart = 123456789;  // microseconds
constexpr uint64_t kMilli = 1000;

/** A loop that sleeps and works as it is told, and the timer. */
class Loop {
 public:
  void sleep(uint64_t microseconds) {
    for (; due_ < now_ + microseconds; due_ += LoopDelays::kEvery) told_.push_back(0);
    now_ += microseconds;
    slept_ += microseconds;
  }

  /** Works, and ends the turn. */
  void work(uint64_t microseconds) {
    now_ += microseconds;
    longest_ = std::max(longest_, microseconds);
    if (due_ <= now_) {
      told_.push_back(now_ - due_);
      due_ = now_ + LoopDelays::kEvery;
    }
    delays_.turn(now_, slept_);
  }

  /** Is woken so many microseconds late, having been told so or not. */
  void sleepTooLong(uint64_t microseconds, bool noticed) {
    if (noticed) {
      delays_.late(now_);
      now_ += microseconds;
      slept_ += microseconds;
      work(0);
    } else {
      sleep(microseconds);
      work(0);
    }
  }

  LoopDelays& delays() { return delays_; }
  std::vector<uint64_t>& told() { return told_; }
  uint64_t longest() const { return longest_; }

 private:
  uint64_t now_ = kStart;
  uint64_t slept_ = 77;
  uint64_t due_ = kStart + LoopDelays::kEvery;
  uint64_t longest_ = 0;
  std::vector<uint64_t> told_;
  LoopDelays delays_{kStart, 77};
};

uint64_t countOf(const LoopDelays& delays) {
  return std::accumulate(delays.counts().begin(), delays.counts().end(), uint64_t{0});
}

void idle() {
  Loop loop;
  loop.sleep(1000 * kMilli);
  loop.work(0);
  EXPECT(countOf(loop.delays()) == 100);
  EXPECT(loop.delays().counts()[0] == 100);
  EXPECT(loop.delays().sum() == 0);
  EXPECT(loop.delays().longest() == 0);
}

/** A stall counts once, from the moment it was asked, and whole as the longest. */
void stall() {
  Loop loop;
  loop.sleep(5 * kMilli);
  loop.work(120 * kMilli);
  EXPECT(countOf(loop.delays()) == 1);
  EXPECT(loop.delays().sum() == 115 * kMilli);
  EXPECT(loop.delays().longest() == 120 * kMilli);
  loop.delays().forgetLongest();
  EXPECT(loop.delays().longest() == 0);
}

void stopped() {
  Loop seen;
  seen.sleepTooLong(500 * kMilli, true);
  EXPECT(seen.delays().longest() == 500 * kMilli);
  EXPECT(seen.delays().sum() == 490 * kMilli);
  // The longest delay is of this turn alone.
  seen.sleep(500 * kMilli);
  seen.delays().forgetLongest();
  seen.work(1);
  EXPECT(seen.delays().longest() == 1);
  Loop unseen;
  unseen.sleepTooLong(500 * kMilli, false);
  EXPECT(unseen.delays().longest() == 0);
}

/** A clock of sleep that runs ahead of the other, by its rounding, makes no turn of ages. */
void rounding() {
  LoopDelays delays(kStart, 0);
  delays.turn(kStart + 1000, 1001);
  delays.late(kStart - 5000);
  delays.turn(kStart + 2000, 1001);
  EXPECT(delays.longest() == 1000);
}

/** The smallest of `sorted` that a share of all is not above. */
uint64_t quantile(const std::vector<uint64_t>& sorted, double share) {
  const auto wanted = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[wanted == 0 ? 0 : wanted - 1];
}

void compare(Loop& loop) {
  std::vector<uint64_t>& told = loop.told();
  const LoopDelays::Interval taken = loop.delays().takeInterval();
  EXPECT(taken.count == told.size());
  if (told.empty()) return;
  std::sort(told.begin(), told.end());
  EXPECT(taken.min == told.front());
  EXPECT(taken.max == told.back());
  const double mean =
      static_cast<double>(std::accumulate(told.begin(), told.end(), uint64_t{0})) / told.size();
  EXPECT(std::abs(taken.mean - mean) <= 1e-6 * (1 + mean));
  const auto near = [&](uint64_t value, double share) {
    const uint64_t exact = quantile(told, share);
    return value >= exact && value <= exact + exact / 64;
  };
  EXPECT(near(taken.p50, 0.5));
  EXPECT(near(taken.p90, 0.9));
  EXPECT(near(taken.p99, 0.99));
  told.clear();
}

void histories(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t most) { return random() % most; };
  for (int round = 0; round < 50; ++round) {
    Loop loop;
    uint64_t told = 0;
    uint64_t sum = 0;
    LoopDelays::Counts counts = {};
    for (int interval = 0; interval < 10; ++interval) {
      for (int turn = 0; turn < 300; ++turn) {
        if (below(3) > 0) loop.sleep(below(50) * (below(2) == 0 ? 1 : kMilli));
        loop.work(below(10) == 0 ? below(1u << below(24)) : below(2000));
      }
      told += loop.told().size();
      for (const uint64_t delay : loop.told()) {
        sum += delay;
        size_t bound = 0;
        while (bound < LoopDelays::kBounds.size() && delay > LoopDelays::kBounds[bound]) ++bound;
        ++counts[bound];
      }
      compare(loop);
    }
    EXPECT(countOf(loop.delays()) == told);
    EXPECT(loop.delays().counts() == counts);
    EXPECT(loop.delays().sum() == sum);
    EXPECT(loop.delays().longest() == loop.longest());
    EXPECT(loop.delays().takeInterval().count == 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto seed = static_cast<uint32_t>(argc > 1 ? strtoul(argv[1], nullptr, 10) : 1);
  idle();
  stall();
  stopped();
  rounding();
  histories(seed);
  printf("loop delays: 50 histories of 3000 turns, seed %u\n", seed);
  return 0;
}
