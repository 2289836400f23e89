// A pace: how often something may happen, batches to another process or turns.
//
//   asked, with pauses     │ │  │    │        each at once
//   asked without a pause  ││││││││  │  │  │  kAtOnce of them at once, then one every `pace`
//
// What is done all the time costs less in larger shares, which take a pause to gather; who comes
// alone should not wait for them. So a pace is owed only by who has not paused: each that happens
// is paid for by one pace of time, and up to kAtOnce may be owing. Rejected: a pause after each
// (a sprite alone crosses four times, and would wait for itself).
#ifndef SPRITES_PACE_H_
#define SPRITES_PACE_H_

#include <algorithm>
#include <cstdint>

namespace server {

class Pace {
 public:
  /** How many may happen without a pause between them, after one that is long enough. */
  static constexpr uint32_t kAtOnce = 8;

  /** `microseconds` between two; 0: none has to wait. */
  explicit Pace(uint32_t microseconds = 0) : pace_(microseconds) {}

  /**
   * Microseconds until it may happen, from `now`; 0: it happens now. `now` in microseconds of a
   * clock that never goes back.
   */
  uint64_t take(uint64_t now) {
    if (pace_ == 0) return 0;
    const uint64_t most = now + uint64_t{kAtOnce - 1} * pace_;
    if (paidAt_ > most && !hurried_) return paidAt_ - most;
    hurried_ = false;
    paidAt_ = std::min(std::max(paidAt_, now), most) + pace_;
    return 0;
  }

  /** The next one need not wait. */
  void hurry() { hurried_ = true; }

 private:
  uint32_t pace_;
  uint64_t paidAt_ = 0;  // when all that happened is paid for
  bool hurried_ = false;
};

}  // namespace server

#endif  // SPRITES_PACE_H_
