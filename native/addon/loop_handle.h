// A handle of Node's loop that its owner holds.
#ifndef SPRITES_LOOP_HANDLE_H_
#define SPRITES_LOOP_HANDLE_H_

#include <nan.h>
#include <uv.h>

#include <memory>

namespace server {

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

#endif  // SPRITES_LOOP_HANDLE_H_
