// The turns of a Node process's event loop, for the benchmarks: the longest by the wall's clock,
// and the longest by the thread's own CPU clock.
//
//   loop ──sleeps──┬███ a turn ███┬──sleeps──┬█┬──sleeps──▶
//                  └─ wall, CPU ──┘          └─┘
//
// The two differ by what other programs, and the machine's owner, have taken of the processor.
//
// Cost: one system call a turn. Rejected: perf_hooks' monitorEventLoopDelay, whose timer wakes the
// process a hundred times a second: 2 to 5 ms of CPU a second, in the figures of every server that
// is measured by it.
#include <uv.h>

#include <algorithm>
#include <ctime>

#include "addon.h"
#include "addon/convert.h"

namespace server {

namespace {

using v8::Local;
using v8::Object;
using v8::Value;

constexpr double kMicroseconds = 1e3;  // a millisecond

/** The times of turns, in microseconds. */
struct Turns {
  uint64_t ended = 0;  // when the last turn ended
  uint64_t slept = 0;  // what the loop has slept in all, by then
  uint64_t used = 0;   // CPU that the thread has used, by then
  uint64_t wall = 0;   // the longest
  uint64_t cpu = 0;

  void turn(uv_loop_t* loop) {
    const uint64_t now = uv_hrtime() / 1000;
    const uint64_t sleptNow = uv_metrics_idle_time(loop) / 1000;
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    const uint64_t usedNow = time.tv_sec * uint64_t{1000000} + time.tv_nsec / 1000;
    if (ended > 0) {
      const uint64_t passed = now - ended;
      wall = std::max(wall, passed - std::min(passed, sleptNow - slept));
      cpu = std::max(cpu, usedNow - used);
    }
    ended = now;
    slept = sleptNow;
    used = usedNow;
  }
};

/** Of the loop that this addon was first asked by: one of a process. */
Turns turns;

/** watchTurns(): from now on. */
NAN_METHOD(watchTurns) {
  // As long as the process lives.
  static uv_prepare_t end;
  uv_prepare_init(Nan::GetCurrentEventLoop(), &end);
  uv_prepare_start(&end, [](uv_prepare_t* handle) { turns.turn(handle->loop); });
  uv_unref(reinterpret_cast<uv_handle_t*>(&end));
}

/** takeTurns() → {wall, cpu}, milliseconds: the longest since the last call. */
NAN_METHOD(takeTurns) {
  Local<Object> taken = Nan::New<Object>();
  set(taken, "wall", turns.wall / kMicroseconds);
  set(taken, "cpu", turns.cpu / kMicroseconds);
  turns.wall = turns.cpu = 0;
  info.GetReturnValue().Set(taken);
}

}  // namespace

void initTurns(Local<Object> target) {
  Nan::SetMethod(target, "watchTurns", watchTurns);
  Nan::SetMethod(target, "takeTurns", takeTurns);
}

}  // namespace server
