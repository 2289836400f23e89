// The sleep of Node's loop, and the turns of the door within the loop. Each of the two has an epoll
// set.
//
//   polled     Node's set ∋ the door's set:  a wake-up is three system calls and a turn of the loop
//   sleeping   the door's set ∋ Node's set:  a wake-up is one, of which the loop knows nothing
//
//   sleeping:  the loop looks at its set, and does not wait ─▶ sleep ─▶ turn ─┐
//                 ▲                                              ▲            │
//                 └── Node's set is ready, a timer is due, ──────┴────────────┘
//                     or JavaScript was called
//
// Cost: perf_hooks.eventLoopUtilization counts a loop that sleeps here as busy. So only the
// server's own process sleeps here, and only in its one door. This saves an eighth of the CPU time
// of a watcher's poll. Rejected: several turns in one callback (as many sleeps, no less CPU);
// swapping the sets for each sleep (the kernel looks for cycles among all connections).
#ifndef SPRITES_LOOP_TURNS_H_
#define SPRITES_LOOP_TURNS_H_

#include <nan.h>

#include <memory>

#include "server/front.h"

namespace server {

class LoopTurns {
 public:
  /**
   * Returns turns as callbacks of Node's loop. `object` has the front; both must outlive the turns.
   */
  static std::unique_ptr<LoopTurns> makePolled(Nan::ObjectWrap* object, Front* front);

  /** Returns turns that sleep by themselves, at most one in a process. Throws std::system_error. */
  static std::unique_ptr<LoopTurns> makeSleeping(Nan::ObjectWrap* object, Front* front);

  virtual ~LoopTurns() = default;

  /** Pauses the turns, or lets them go on. */
  virtual void setPaused(bool isPaused) = 0;

  /** Ends the turns. May be called in a turn. */
  virtual void close() = 0;
};

/** Is notified of the turns that Node's loop does not know of. */
class SleepListener {
 public:
  SleepListener();
  virtual ~SleepListener();
  SleepListener(const SleepListener&) = delete;
  SleepListener& operator=(const SleepListener&) = delete;

  /** Called at the end of a turn; `now`: of uv_hrtime, in microseconds. */
  virtual void onSleep(uint64_t now) = 0;

  /** Microseconds that Node's loop has slept in all, by itself and here. */
  static uint64_t totalSleep();
};

}  // namespace server

#endif  // SPRITES_LOOP_TURNS_H_
