// The clock for the deadlines of clients: it does not count time in which this process could not
// hear its clients.
//
//   time    ─────┬────── stopped, or starved ──────┬─── catching up ───┬──────▶
//   clock   ─────┴─────────── stands ──────────────┴───── stands ──────┴──────▶
//
// A process that was stopped (SIGSTOP, a frozen container, a suspended machine) finds its timers
// due before it has read the input that has arrived meanwhile. By the real time it would end leases
// whose polls are in its sockets. So a late tick counts as its planned length. After a long one the
// clock stands still for a while, as long as the process was deaf but at most kMaxStandstill, so
// that the input is read first. It always goes on: a server that is late all the time has slower
// deadlines, and does not forget them.
#ifndef BASE_DEADLINE_CLOCK_H_
#define BASE_DEADLINE_CLOCK_H_

#include <algorithm>
#include <cstdint>

namespace base {

class DeadlineClock {
 public:
  /** `now` and `tick` in milliseconds. */
  DeadlineClock(uint64_t now, uint64_t tick) : tick_(tick), realTime_(now), clockTime_(now) {}

  /** Returns the clock's time when the real time is `now`; to be called every `tick`. */
  uint64_t advance(uint64_t now) { return advance(now, tick_); }

  /**
   * Returns the same, if the call was planned at most `planned` milliseconds after the last one.
   */
  uint64_t advance(uint64_t now, uint64_t planned) {
    const uint64_t elapsed = now - realTime_;
    realTime_ = now;
    if (elapsed > planned + kLateTicks * tick_) {
      if (elapsed > planned + kLongDelay) standstillLeft_ = std::min(elapsed, kMaxStandstill);
      clockTime_ += planned;
    } else {
      const uint64_t stands = std::min(elapsed, standstillLeft_);
      standstillLeft_ -= stands;
      clockTime_ += elapsed - stands;
    }
    return clockTime_;
  }

 private:
  /** Ticks of delay from which on a tick is late: deadlines are late by as much anyway. */
  static constexpr uint64_t kLateTicks = 2;

  /** Milliseconds of delay after which the clock stands still, and how long at most. */
  static constexpr uint64_t kLongDelay = 1000;
  static constexpr uint64_t kMaxStandstill = 5000;

  const uint64_t tick_;
  uint64_t realTime_;
  uint64_t clockTime_;
  uint64_t standstillLeft_ = 0;
};

}  // namespace base

#endif  // BASE_DEADLINE_CLOCK_H_
