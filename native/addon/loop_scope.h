// A turn: native code that the loop has called, and that may call JavaScript on its way.
//
//   loop ─▶ LoopScope { sweep ─▶ answer ─▶ JavaScript ─▶ sweep on … } ─▶ what JavaScript has put
//   off
//
// Without it Node would run everything that is put off (process.nextTick, promises) as soon as the
// first such call returns: a request that a stranger has sent could be served in the middle of the
// sweep, and find, or leave, the pool in mid-step.
#ifndef SPRITES_LOOP_SCOPE_H_
#define SPRITES_LOOP_SCOPE_H_

#include <nan.h>

namespace server {

/** Lives on the stack of a callback of the loop; opens the handles its calls need. */
class LoopScope {
 public:
  LoopScope() : scope_(v8::Isolate::GetCurrent(), Nan::New<v8::Object>(), {0, 0}) {}

 private:
  Nan::HandleScope handles_;
  node::CallbackScope scope_;
};

}  // namespace server

#endif  // SPRITES_LOOP_SCOPE_H_
