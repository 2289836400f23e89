// The tests' own addon: parts of the server that only tests and benchmarks reach from JavaScript.
// test/support/addon.js builds it when it is first asked for.
#include "addon.h"

void initialize(v8::Local<v8::Object> target, v8::Local<v8::Value>, void*) {
  server::initTorus(target);
  server::initReaders(target);
  server::initTurns(target);
}

NODE_MODULE(tests, initialize)
