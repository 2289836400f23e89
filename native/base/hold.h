// The hold of polls, of the torus and of feeds.
#ifndef SPRITES_BASE_HOLD_H_
#define SPRITES_BASE_HOLD_H_

#include <algorithm>
#include <cstdint>

namespace server {

/** Shortest hold that a client may ask for, in seconds. */
constexpr uint32_t kShortestHold = 5;

/** Whether a client may ask for `hold` when the server's longest hold is `longest`; in seconds. */
inline bool isValidHold(uint32_t hold, uint32_t longest) {
  return hold <= longest && hold >= std::min(kShortestHold, longest);
}

// The end of held polls, of clients and of feeds.

/** Most timers that a tick looks at before Node's loop goes on: at most some 5 ms of work. */
constexpr uint32_t kTickBudget = 8192;

/**
 * Divisor: a hold is lengthened at random by up to 1/16, so that polls that came together do not
 * end together.
 */
constexpr uint32_t kJitterShare = 16;

}  // namespace server

#endif  // SPRITES_BASE_HOLD_H_
