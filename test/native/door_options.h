// A door's options where no bound of it is tested.
#ifndef SPRITES_TEST_NATIVE_DOOR_OPTIONS_H_
#define SPRITES_TEST_NATIVE_DOOR_OPTIONS_H_

#include "http/door.h"

namespace server::test {

inline DoorOptions doorOptions(uint32_t connections, uint32_t maxSprite) {
  return {.connections = connections,
          .maxSprite = maxSprite,
          .headBytes = 16384,
          .headTime = 10000,
          .bodyTime = 10000,
          .idleTime = 60000,
          .writeTime = 10000,
          .keepIdle = 60,
          .trust = Trust::kNobody};
}

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_DOOR_OPTIONS_H_
