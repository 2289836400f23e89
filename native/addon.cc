// Registration: what the addon exports, and nothing else.
#include "wraps.h"

NAN_MODULE_INIT(initialize) {
  sprites::initTorus(target);
  sprites::initReaders(target);
  sprites::initPool(target);
  sprites::initSources(target);
  sprites::initRelay(target);
  sprites::initFront(target);
}

NODE_MODULE(sprites, initialize)
