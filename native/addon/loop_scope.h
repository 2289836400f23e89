// The scope of a callback of Node's loop: native code that may call JavaScript while it runs.
//
//   loop ─▶ LoopScope { sweep ─▶ answer ─▶ JavaScript ─▶ sweep goes on … } ─▶ deferred JavaScript
//
// Deferred JavaScript is what process.nextTick and promises run later. Without this scope Node
// would run it as soon as the first call to JavaScript returns: a request could then be served in
// the middle of the sweep, while the pool is in the middle of a step.
#ifndef SPRITES_LOOP_SCOPE_H_
#define SPRITES_LOOP_SCOPE_H_

#include <nan.h>
#include <uv.h>

#include <cstdint>

namespace server {

/** Microseconds of a clock that never goes back. */
inline uint64_t microseconds() { return uv_hrtime() / 1000; }

/**
 * To be made on the stack of each callback of the loop; opens the handles its calls need. `object`,
 * whose callback it is, stays alive for as long: a new one a turn would be a tenth of a turn.
 */
class LoopScope {
 public:
  explicit LoopScope(Nan::ObjectWrap* object)
      : scope_(v8::Isolate::GetCurrent(), object->handle(), {0, 0}) {}

 private:
  Nan::HandleScope handles_;
  node::CallbackScope scope_;
};

}  // namespace server

#endif  // SPRITES_LOOP_SCOPE_H_
