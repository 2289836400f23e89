// What wrapped objects need of Node's loop: handles of it, and the scope of its callbacks, in which
// native code may call JavaScript.
//
//   loop ─▶ LoopScope { sweep ─▶ answer ─▶ JavaScript ─▶ sweep goes on … } ─▶ deferred JavaScript
//
// Deferred JavaScript is what process.nextTick and promises run later. Without this scope Node
// would run it as soon as the first call to JavaScript returns: a request could then be served in
// the middle of the sweep, while the pool is in the middle of a step.
#ifndef SPRITES_LOOP_H_
#define SPRITES_LOOP_H_

#include <nan.h>
#include <uv.h>

#include <cstdint>
#include <memory>

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

/** The handle outlives its owner: the loop gives it back when it has closed it. */
template <typename Handle>
struct CloseHandle {
  void operator()(Handle* handle) const {
    uv_close(reinterpret_cast<uv_handle_t*>(handle),
             [](uv_handle_t* closed) { delete reinterpret_cast<Handle*>(closed); });
  }
};

template <typename Handle>
using LoopHandle = std::unique_ptr<Handle, CloseHandle<Handle>>;

/** A handle of `owner`, made by `init(loop, handle, more…)`. */
template <typename Handle, typename Init, typename... More>
LoopHandle<Handle> makeHandle(void* owner, Init init, More... more) {
  auto* const handle = new Handle;
  handle->data = owner;
  init(Nan::GetCurrentEventLoop(), handle, more...);
  return LoopHandle<Handle>(handle);
}

/** The same; it does not keep the process alive. */
template <typename Handle, typename Init, typename... More>
LoopHandle<Handle> makeQuietHandle(void* owner, Init init, More... more) {
  LoopHandle<Handle> handle = makeHandle<Handle>(owner, init, more...);
  uv_unref(reinterpret_cast<uv_handle_t*>(handle.get()));
  return handle;
}

}  // namespace server

#endif  // SPRITES_LOOP_H_
