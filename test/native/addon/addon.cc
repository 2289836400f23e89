// The tests' own addon: makes parts of the server callable from JavaScript that only tests and
// benchmarks need. test/support/addon.js builds it on first use.
#include <dlfcn.h>

#include "addon/convert.h"

namespace server {

// Each *_wrap.cc adds its exports.
void initTorus(v8::Local<v8::Object> target);
void initReaders(v8::Local<v8::Object> target);

namespace {

/**
 * takeTurns() → {wall, cpu}, milliseconds: the longest turns of this process's event loop since the
 * last call. test/bench/turns.c, which must be preloaded, measures them.
 */
NAN_METHOD(takeTurns) {
  using Take = void(double* wall, double* cpu);
  auto* const take = reinterpret_cast<Take*>(dlsym(RTLD_DEFAULT, "take_turns"));
  if (take == nullptr) return Nan::ThrowError("test/bench/turns.c is not preloaded");
  double wall;
  double cpu;
  take(&wall, &cpu);
  info.GetReturnValue().Set(makeObject({{"wall", wall}, {"cpu", cpu}}));
}

void initialize(v8::Local<v8::Object> target, v8::Local<v8::Value>, void*) {
  initTorus(target);
  initReaders(target);
  Nan::SetMethod(target, "takeTurns", takeTurns);
}

}  // namespace

NODE_MODULE(tests, initialize)

}  // namespace server
