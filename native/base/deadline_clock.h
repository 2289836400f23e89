// The clock by which deadlines of others are judged: it does not count time in which this process
// could not hear its clients.
//
//   time    ─────┬────── stopped, or starved ──────┬─── catching up ───┬──────▶
//   clock   ─────┴─────────── stands ──────────────┴───── stands ──────┴──────▶
//
// A process that was stopped (SIGSTOP, a frozen container, a machine that was put to sleep) finds
// its timers due before it has read what has arrived meanwhile. By the real time it would end
// leases whose polls lie in its sockets. So a late tick counts as what was planned. After a long
// one the clock stands for a while longer, as long as the process was deaf or kCatchUp, so that
// what has arrived is read first. It always goes on: a server that is late all the time is slower
// with its deadlines, and does not forget them.
#ifndef BASE_DEADLINE_CLOCK_H_
#define BASE_DEADLINE_CLOCK_H_

#include <algorithm>
#include <cstdint>

namespace base {

class DeadlineClock {
 public:
  /** `now` and `tick` in milliseconds. */
  DeadlineClock(uint64_t now, uint64_t tick) : tick_(tick), real_(now), shown_(now) {}

  /** The clock's time when the real time is `now`; it is asked every `tick`. */
  uint64_t advance(uint64_t now) { return advance(now, tick_); }

  /** The same, where it was to be asked at most `planned` milliseconds after the last time. */
  uint64_t advance(uint64_t now, uint64_t planned) {
    const uint64_t elapsed = now - real_;
    real_ = now;
    if (elapsed > planned + kLateTicks * tick_) {
      if (elapsed > planned + kLong) catchUp_ = std::min(elapsed, kCatchUp);
      shown_ += planned;
    } else {
      const uint64_t stands = std::min(elapsed, catchUp_);
      catchUp_ -= stands;
      shown_ += elapsed - stands;
    }
    return shown_;
  }

 private:
  /** Ticks after its time when one is late: no more than deadlines are late by anyway. */
  static constexpr uint64_t kLateTicks = 2;

  /** Milliseconds after which the clock stands a while longer, and how long at most. */
  static constexpr uint64_t kLong = 1000;
  static constexpr uint64_t kCatchUp = 5000;

  const uint64_t tick_;
  uint64_t real_;
  uint64_t shown_;
  uint64_t catchUp_ = 0;
};

}  // namespace base

#endif  // BASE_DEADLINE_CLOCK_H_
