// Registration: what the addon exports, and nothing else.
#include "wraps.h"

NAN_MODULE_INIT(initialize) {
  server::initPool(target);
  server::initAddressLimits(target);
  server::initRelay(target);
  server::initFeeds(target);
  server::initArena(target);
  server::initDoor(target);
  server::initLoopDelays(target);
  server::initSystem(target);
  server::initTls(target);
  server::initWorld(target);
}

NODE_MODULE(sprites, initialize)
