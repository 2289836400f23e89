// Delivery times: how long sprites wait, from the moment a throw is taken to the answer that first
// carries the sprite.
//
//   throw taken ──▶ stamp in the sprite ──▶ … mailbox, backlog, next mailbox … ──▶ count
//
// A stamp has 16 bits, so that it fits into the head of a waiting sprite. It counts milliseconds
// and wraps around after 65 seconds. No sprite waits half as long in one mailbox, since a client
// has left after its lease of 30 seconds; a longer lease has a longer unit. A sprite that flies on
// keeps its stamp, or gets one that is half a wrap-around old, which counts as "longer than the
// last bound". Only the sprites of a client that polls again and again and never acks can be
// counted wrong.
//
// Cost: no clock is read for a throw; some 2 ns a sprite. Rejected: a wider stamp (it makes one
// waiting sprite in five 16 bytes larger), a table beside the mailboxes (a cache miss a sprite).
#ifndef SPRITES_DELIVERY_TIMES_H_
#define SPRITES_DELIVERY_TIMES_H_

#include <array>
#include <cstdint>

namespace server {

class DeliveryTimes {
 public:
  /** Time of a throw, in units; it wraps around. */
  using Stamp = uint16_t;

  /** Upper bounds of the counts, in milliseconds; longer times are counted after the last one. */
  static constexpr std::array<uint32_t, 15> kBounds = {
      1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 30000};

  /** `lease` in seconds: the longest that a sprite waits in one mailbox. */
  explicit DeliveryTimes(uint32_t lease) {
    while ((uint64_t{lease} * 1000 >> shift_) >= kHalf) ++shift_;
  }

  /** The stamp of a throw that is taken at `now`, microseconds of a clock that never goes back. */
  Stamp stamp(uint64_t now) const { return static_cast<Stamp>(now / 1000 >> shift_); }

  /** The stamp with which a sprite flies on at `now`. */
  Stamp flownStamp(Stamp stamp, uint64_t now) const {
    const Stamp at = this->stamp(now);
    return static_cast<Stamp>(at - stamp) > kHalf ? static_cast<Stamp>(at - kHalf) : stamp;
  }

  /** Counts a sprite that an answer carries for the first time, at `now`. */
  void count(Stamp stamp, uint64_t now) {
    const auto units = static_cast<Stamp>(this->stamp(now) - stamp);
    const uint64_t milliseconds = uint64_t{units} << shift_;
    size_t bound = 0;
    while (bound < kBounds.size() && milliseconds > kBounds[bound]) ++bound;
    ++counts_[bound];
    sum_ += milliseconds;
  }

  /**
   * The number of sprites between each bound and the one before, then of the sprites beyond the
   * last.
   */
  const std::array<uint64_t, kBounds.size() + 1>& counts() const { return counts_; }

  /** Sum of all counted times, in milliseconds. */
  uint64_t sum() const { return sum_; }

 private:
  static constexpr Stamp kHalf = 1 << 15;

  std::array<uint64_t, kBounds.size() + 1> counts_ = {};
  uint64_t sum_ = 0;
  uint32_t shift_ = 0;  // a unit is 1 << shift_ milliseconds
};

}  // namespace server

#endif  // SPRITES_DELIVERY_TIMES_H_
