// Registration: what the addon exports, and nothing else.
#include "wraps.h"

// The arguments are those that Node calls it with: NAN_MODULE_INIT's are fewer, of which clang
// warns.
void initialize(v8::Local<v8::Object> target, v8::Local<v8::Value>, void*) {
  server::initPool(target);
  server::initAddressLimits(target);
  server::initFeeds(target);
  server::initArena(target);
  server::initDoor(target);
  server::initLoopDelays(target);
  server::initSystem(target);
  server::initTls(target);
  server::initWorld(target);
}

NODE_MODULE(sprites, initialize)
