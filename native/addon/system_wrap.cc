// What JavaScript needs of the system and Node does not give. Conversion only.
#include "convert.h"
#include "door/write_now.h"
#include "wraps.h"

namespace server {

namespace {

using v8::Local;
using v8::Object;
using v8::Value;

// writeNow(fd, bytes: Buffer) → bytes written, or -errno
void writeNowCall(const Nan::FunctionCallbackInfo<Value>& info) {
  info.GetReturnValue().Set(
      static_cast<double>(writeNow(static_cast<int>(uint32Of(info[0])), bytesOf(info[1]))));
}

}  // namespace

void initSystem(Local<Object> target) { Nan::SetMethod(target, "writeNow", writeNowCall); }

}  // namespace server
