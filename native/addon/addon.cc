// Registration: what the addon exports, and nothing else.
#include "wraps.h"

// A worker thread gets only the exports that need no event loop.
NAN_MODULE_INIT(initialize) {
  server::initCanonical(target);
  if (Nan::GetCurrentEventLoop() != uv_default_loop()) return;
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

NAN_MODULE_WORKER_ENABLED(sprites, initialize)
