// A log-linear histogram, like HdrHistogram with three significant digits.
//
//   value    0 .. 2047   one bucket each
//         2048 .. 4095   1,024 buckets, 2 wide
//         4096 .. 8191   1,024 buckets, 4 wide           ... and so on up to 2^43 ns, 146 minutes
//
// A bucket is at most a thousandth of its value wide, so any percentile is right to three digits.
// Recording is a count-leading-zeros and an increment. The histogram holds one interval, and the
// parent adds the intervals up: no count is sent twice, and a lost engine loses one interval.
//
// All recorded indices lie between low_ and high_, so that printing an interval visits a few
// hundred of the 34,816 counters (272 KB).
#ifndef SPRITES_SWARM_HISTOGRAM_H_
#define SPRITES_SWARM_HISTOGRAM_H_

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace swarm {

class Histogram {
 public:
  Histogram() : counts_(kBuckets) {}

  /** Records a value `times` times. @param nanoseconds a value above 2^43 counts as 2^43 */
  void record(uint64_t nanoseconds, uint64_t times = 1) {
    const uint32_t index = indexOf(nanoseconds);
    counts_[index] += times;
    if (index < low_) low_ = index;
    if (index >= high_) high_ = index + 1;
  }

  /** Appends `[[bucket,count],…]` and clears the interval. */
  void takeInterval(std::string* json) {
    json->push_back('[');
    bool first = true;
    for (uint32_t i = low_; i < high_; i++) {
      if (counts_[i] == 0) continue;
      if (!first) json->push_back(',');
      first = false;
      json->push_back('[');
      json->append(std::to_string(i));
      json->push_back(',');
      json->append(std::to_string(counts_[i]));
      json->push_back(']');
      counts_[i] = 0;
    }
    json->push_back(']');
    low_ = kBuckets;
    high_ = 0;
  }

  /** @return the bucket of a value; lib/swarm/histogram.js has the inverse */
  static uint32_t indexOf(uint64_t value) {
    if (value >= kLargest) value = kLargest - 1;
    if (value < 2 * kHalf) return static_cast<uint32_t>(value);
    const uint32_t shift = 63 - std::countl_zero(value) - 10;
    return shift * kHalf + static_cast<uint32_t>(value >> shift);
  }

 private:
  static constexpr uint32_t kHalf = 1024;
  static constexpr uint64_t kLargest = uint64_t{1} << 43;
  static constexpr uint32_t kBuckets = 34 * kHalf;

  std::vector<uint64_t> counts_;
  uint32_t low_ = kBuckets;
  uint32_t high_ = 0;
};

}  // namespace swarm

#endif  // SPRITES_SWARM_HISTOGRAM_H_
