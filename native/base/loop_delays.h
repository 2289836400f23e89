// Loop delays: the delays of an event loop for a client that asks every 10 ms, and again after each
// answer. The delays are computed from the loop's turns, without such a client, so an idle loop is
// not woken a hundred times a second.
//
//   asked      │         │         │                   │         │
//   loop   ────┴─sleeps──┴─sleeps──┴███ one turn ██████┴─sleeps──┴──▶
//   delay      0         0         └── until its end ──┘         0
//
// A sleeping loop would answer at once. A loop that is woken late, because the process was stopped
// or starved, counts as working since the planned time: the owner has a timer and calls
// `setPlannedTime`. The longest turn is counted in full, wherever in it a question would have come.
//
// Cost: some additions for each turn, 9 kB. Rejected: a timer every 10 ms (5 ms of CPU a second in
// JavaScript, 2 ms in C++).
#ifndef SPRITES_BASE_LOOP_DELAYS_H_
#define SPRITES_BASE_LOOP_DELAYS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace base {

class LoopDelays {
 public:
  /** Time between two questions. All times here are microseconds. */
  static constexpr uint64_t kPeriod = 10000;

  /** Upper bounds of the counts; a last count has longer delays. */
  static constexpr std::array<uint32_t, 11> kBounds = {
      1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 5000000};

  using Counts = std::array<uint64_t, kBounds.size() + 1>;

  /** The delays since the last `takeInterval`. */
  struct Interval {
    uint64_t count;
    uint64_t min;
    uint64_t max;
    double mean;
    double deviation;
    uint64_t p50;  // exact to 1/64, like p90 and p99
    uint64_t p90;
    uint64_t p99;
  };

  /** `now`: of a clock that never goes back; `slept`: total time asleep until then. */
  LoopDelays(uint64_t now, uint64_t slept)
      : turnEnd_(now), slept_(slept), nextQuestionAt_(now + kPeriod) {}

  /** Ends a turn at `now`, when the loop goes to sleep; `slept`: total time asleep until then. */
  void turn(uint64_t now, uint64_t slept) {
    const uint64_t passed = now - turnEnd_;
    const uint64_t worked = passed - std::min(passed, slept - slept_);
    const uint64_t began = std::max(std::min(now - worked, plannedTime_), turnEnd_);
    plannedTime_ = kNever;
    turnEnd_ = now;
    slept_ = slept;
    longest_ = std::max(longest_, now - began);
    if (nextQuestionAt_ < began) {
      const uint64_t times = (began - nextQuestionAt_ - 1) / kPeriod + 1;
      addDelays(0, times);
      nextQuestionAt_ += times * kPeriod;
    }
    if (nextQuestionAt_ > now) return;
    addDelays(now - nextQuestionAt_, 1);
    nextQuestionAt_ = now + kPeriod;
  }

  /** Notes that the current turn was planned for `time`. */
  void setPlannedTime(uint64_t time) { plannedTime_ = std::min(plannedTime_, time); }

  /** Number of delays up to each bound and above the previous one; then of those above the last. */
  const Counts& counts() const { return counts_; }

  /** Sum of all delays. */
  uint64_t sum() const { return sum_; }

  /** The longest turn since `resetLongest`. */
  uint64_t longest() const { return longest_; }
  void resetLongest() { longest_ = 0; }

  /** Returns the delays since the last call. */
  Interval takeInterval() {
    Interval interval = {};
    interval.count = intervalCount_;
    if (intervalCount_ > 0) {
      interval.min = intervalMin_;
      interval.max = intervalMax_;
      interval.mean = intervalSum_ / intervalCount_;
      const double variance = intervalSquares_ / intervalCount_ - interval.mean * interval.mean;
      interval.deviation = std::sqrt(std::max(0.0, variance));
      interval.p50 = quantile(0.5);
      interval.p90 = quantile(0.9);
      interval.p99 = quantile(0.99);
    }
    buckets_ = {};
    intervalCount_ = 0;
    intervalSum_ = intervalSquares_ = 0;
    intervalMin_ = kNever;
    intervalMax_ = 0;
    return interval;
  }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  // Buckets of an interval: one for each delay up to 127, then 64 for each doubling, up to 19
  // hours.
  static constexpr uint32_t kBucketsPerDoubling = 64;
  static constexpr uint64_t kMaxDelay = (uint64_t{1} << 36) - 1;
  static constexpr uint32_t kBuckets = 31 * kBucketsPerDoubling;

  static uint32_t indexOf(uint64_t delay) {
    delay = std::min(delay, kMaxDelay);
    if (delay < 2 * kBucketsPerDoubling) return static_cast<uint32_t>(delay);
    const uint32_t shift = 63 - std::countl_zero(delay) - 6;
    return shift * kBucketsPerDoubling + static_cast<uint32_t>(delay >> shift);
  }

  /** The largest delay of a bucket. */
  static uint64_t upperBoundOf(uint32_t index) {
    if (index < 2 * kBucketsPerDoubling) return index;
    const uint32_t shift = index / kBucketsPerDoubling - 1;
    return ((uint64_t{index % kBucketsPerDoubling} + kBucketsPerDoubling + 1) << shift) - 1;
  }

  void addDelays(uint64_t delay, uint64_t times) {
    size_t bound = 0;
    while (bound < kBounds.size() && delay > kBounds[bound]) ++bound;
    counts_[bound] += times;
    sum_ += delay * times;
    buckets_[indexOf(delay)] += times;
    intervalCount_ += times;
    intervalSum_ += static_cast<double>(delay) * static_cast<double>(times);
    intervalSquares_ +=
        static_cast<double>(delay) * static_cast<double>(delay) * static_cast<double>(times);
    intervalMin_ = std::min(intervalMin_, delay);
    intervalMax_ = std::max(intervalMax_, delay);
  }

  uint64_t quantile(double share) const {
    const auto wanted =
        static_cast<uint64_t>(std::ceil(share * static_cast<double>(intervalCount_)));
    uint64_t cumulative = 0;
    uint32_t index = 0;
    while (index < kBuckets - 1 && (cumulative += buckets_[index]) < wanted) ++index;
    return std::min(upperBoundOf(index), intervalMax_);
  }

  uint64_t turnEnd_;         // end of the last turn
  uint64_t slept_;           // total time asleep until then
  uint64_t nextQuestionAt_;  // time of the next question
  uint64_t plannedTime_ = kNever;
  uint64_t longest_ = 0;
  Counts counts_ = {};
  uint64_t sum_ = 0;

  std::array<uint32_t, kBuckets> buckets_ = {};
  uint64_t intervalCount_ = 0;
  double intervalSum_ = 0;
  double intervalSquares_ = 0;
  uint64_t intervalMin_ = kNever;
  uint64_t intervalMax_ = 0;
};

}  // namespace base

#endif  // SPRITES_BASE_LOOP_DELAYS_H_
