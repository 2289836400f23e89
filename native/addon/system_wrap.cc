// System calls that JavaScript needs and Node does not offer. Conversion only.
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "convert.h"
#include "http/listener.h"
#include "wraps.h"

namespace server {

namespace {

// writeNow(fd, bytes: Buffer) → bytes written, or -errno
void writeNowCall(const Info& info) {
  info.GetReturnValue().Set(
      valueOf(base::writeWithoutWaiting(static_cast<int>(uint32Of(info[0])), bytesOf(info[1]))));
}

// takeFileLock(path) → the descriptor that holds it, or undefined when another process has it;
// throws with code
void takeFileLockCall(const Info& info) {
  const int fd = base::acquireFileLock(textOf(info[0]));
  if (fd >= 0) {
    info.GetReturnValue().Set(fd);
  } else if (fd != -EWOULDBLOCK) {
    Nan::ThrowError(Nan::ErrnoException(-fd, "flock"));
  }
}

// holdsFileLock(fd, path) → whether the file is still there
void holdsFileLockCall(const Info& info) {
  info.GetReturnValue().Set(
      base::isFileLockInPlace(static_cast<int>(uint32Of(info[0])), textOf(info[1])));
}

// releaseFileLock(fd, path)
void releaseFileLockCall(const Info& info) {
  base::releaseFileLock(static_cast<int>(uint32Of(info[0])), textOf(info[1]));
}

// reservePort(address, port) → [port, descriptor]: bound, but not listening; throws with code
void reservePortCall(const Info& info) {
  Listener listener;
  const int error =
      listener.reserve(textOf(info[0]).c_str(), static_cast<uint16_t>(uint32Of(info[1])));
  if (error != 0) return Nan::ThrowError(Nan::ErrnoException(error, "bind"));
  const uint16_t port = listener.port();
  info.GetReturnValue().Set(pairOf(port, listener.release()));
}

// endNow(code): ends the process, and waits for nothing. Node's own exits wait for every thread of
// its pool.
void endNowCall(const Info& info) { _exit(static_cast<int>(uint32Of(info[0]))); }

// giveBackHeap(): collects all garbage, and returns its memory to the system: 20 ms, 4 MB.
void giveBackHeapCall(const Nan::FunctionCallbackInfo<Value>&) { Nan::LowMemoryNotification(); }

// release(bytes): frees the memory of `bytes`, which must share it with nothing; `bytes` is empty
// then
void releaseCall(const Info& info) {
  info[0].As<v8::Uint8Array>()->Buffer()->Detach(Local<Value>()).Check();
}

}  // namespace

void initSystem(Local<Object> target) {
  Nan::SetMethod(target, "endNow", endNowCall);
  Nan::SetMethod(target, "giveBackHeap", giveBackHeapCall);
  Nan::SetMethod(target, "release", releaseCall);
  Nan::SetMethod(target, "reservePort", reservePortCall);
  Nan::SetMethod(target, "writeNow", writeNowCall);
  Nan::SetMethod(target, "takeFileLock", takeFileLockCall);
  Nan::SetMethod(target, "holdsFileLock", holdsFileLockCall);
  Nan::SetMethod(target, "releaseFileLock", releaseFileLockCall);
}

}  // namespace server
