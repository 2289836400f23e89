// Handles of Node's loop for wrapped objects, and the scope of the loop's callbacks, in which
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

/** Microseconds of a monotonic clock. */
inline uint64_t microseconds() { return uv_hrtime() / 1000; }

/**
 * The scope of a callback of the loop, to be made on its stack. It opens the handles that the
 * callback's calls need, and keeps `object`, whose callback it is, alive. A new resource object for
 * each turn would cost a tenth of the turn.
 */
class LoopScope {
 public:
  explicit LoopScope(Nan::ObjectWrap* object)
      : scope_(v8::Isolate::GetCurrent(), object->handle(), {0, 0}) {}

 private:
  Nan::HandleScope handles_;
  node::CallbackScope scope_;
};

/**
 * The async_hooks resource for calls of an object's JavaScript functions: a Nan::AsyncResource that
 * is never destroyed. It has no memory of its own, and its destructor calls Node. An object that
 * JavaScript no longer references is destroyed while V8 collects garbage. There may be no context
 * then, and Node would crash.
 */
class CallbackResource {
 public:
  explicit CallbackResource(const char* name) : resource_(name) {}
  ~CallbackResource() {}

  CallbackResource(const CallbackResource&) = delete;
  CallbackResource& operator=(const CallbackResource&) = delete;

  Nan::AsyncResource* get() { return &resource_; }

 private:
  // A member of a union is not destroyed with it.
  union {
    Nan::AsyncResource resource_;
  };
};

/** Closes a handle. The handle outlives its owner: it is freed when the loop has closed it. */
template <typename Handle>
struct CloseHandle {
  void operator()(Handle* handle) const {
    uv_close(reinterpret_cast<uv_handle_t*>(handle),
             [](uv_handle_t* closed) { delete reinterpret_cast<Handle*>(closed); });
  }
};

template <typename Handle>
using LoopHandle = std::unique_ptr<Handle, CloseHandle<Handle>>;

/** Makes a handle of `owner` by `init(loop, handle, more…)`. */
template <typename Handle, typename Init, typename... More>
LoopHandle<Handle> makeHandle(void* owner, Init init, More... more) {
  auto* const handle = new Handle;
  handle->data = owner;
  init(Nan::GetCurrentEventLoop(), handle, more...);
  return LoopHandle<Handle>(handle);
}

/** Makes a handle of `owner` that does not keep the process alive. */
template <typename Handle, typename Init, typename... More>
LoopHandle<Handle> makeQuietHandle(void* owner, Init init, More... more) {
  LoopHandle<Handle> handle = makeHandle<Handle>(owner, init, more...);
  uv_unref(reinterpret_cast<uv_handle_t*>(handle.get()));
  return handle;
}

}  // namespace server

#endif  // SPRITES_LOOP_H_
