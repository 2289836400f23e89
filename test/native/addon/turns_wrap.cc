// The turns of a Node process's event loop, as test/bench/turns.c keeps them where it is preloaded.
#include <dlfcn.h>

#include "addon.h"
#include "addon/convert.h"

namespace server {

namespace {

/** takeTurns() → {wall, cpu}, milliseconds: the longest since the last call. */
NAN_METHOD(takeTurns) {
  using Take = void(double* wall, double* cpu);
  auto* const take = reinterpret_cast<Take*>(dlsym(RTLD_DEFAULT, "take_turns"));
  if (take == nullptr) return Nan::ThrowError("test/bench/turns.c is not preloaded");
  double wall;
  double cpu;
  take(&wall, &cpu);
  v8::Local<v8::Object> taken = Nan::New<v8::Object>();
  set(taken, "wall", wall);
  set(taken, "cpu", cpu);
  info.GetReturnValue().Set(taken);
}

}  // namespace

void initTurns(v8::Local<v8::Object> target) { Nan::SetMethod(target, "takeTurns", takeTurns); }

}  // namespace server
