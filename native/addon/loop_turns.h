// Where Node's loop sleeps, and takes the turns of the door.
//
//   polled     Node's set ∋ the door's set:  a wake-up is three system calls and a turn of the loop
//   sleeping   the door's set ∋ Node's set:  a wake-up is one, of which the loop knows nothing
//
//   sleeping:  the loop looks at its set, and does not wait ─▶ sleep ─▶ turn ─┐
//                 ▲                                              ▲            │
//                 └── Node's set is ready, a timer is due, ──────┴────────────┘
//                     or JavaScript was called
//
// Cost: perf_hooks.eventLoopUtilization takes a loop that sleeps here for busy, so only a process
// that is the server's own does, in the one door that it has. It saves an eighth of the CPU of a
// watcher's poll. Rejected: several turns in one callback (as many sleeps, no less CPU); turning
// the sets round for each sleep (the kernel looks for circles among all connections).
#ifndef SPRITES_LOOP_TURNS_H_
#define SPRITES_LOOP_TURNS_H_

#include <nan.h>

#include <memory>

#include "server/front.h"

namespace server {

class LoopTurns {
 public:
  /** `object` has the front; both outlive it. */
  static std::unique_ptr<LoopTurns> polled(Nan::ObjectWrap* object, Front* front);

  /** One of a process. Throws std::system_error. */
  static std::unique_ptr<LoopTurns> sleeping(Nan::ObjectWrap* object, Front* front);

  virtual ~LoopTurns() = default;

  /** While `whether`, no turn is taken. */
  virtual void pause(bool whether) = 0;

  /** Takes no more turns; it may be called in one. */
  virtual void close() = 0;
};

/** Is told of the turns that Node's loop does not know of. */
class SleepListener {
 public:
  SleepListener();
  virtual ~SleepListener();
  SleepListener(const SleepListener&) = delete;
  SleepListener& operator=(const SleepListener&) = delete;

  /** A turn is over; `now` of uv_hrtime, in microseconds. */
  virtual void onSleep(uint64_t now) = 0;

  /** Microseconds that Node's loop has slept in all, by itself and here. */
  static uint64_t slept();
};

}  // namespace server

#endif  // SPRITES_LOOP_TURNS_H_
