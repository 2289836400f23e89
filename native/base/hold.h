// How long a poll may be held, of the torus and of feeds alike.
#ifndef SPRITES_BASE_HOLD_H_
#define SPRITES_BASE_HOLD_H_

#include <algorithm>
#include <cstdint>

namespace server {

/** The shortest hold a client may ask for, in seconds. */
constexpr uint32_t kShortestHold = 5;

/** Whether a client may ask for `hold` where the server holds for `most` at the longest; seconds.
 */
inline bool isHold(uint32_t hold, uint32_t most) {
  return hold <= most && hold >= std::min(kShortestHold, most);
}

// How polls that are held, a client's and a feed's, are ended.

/** Timers one tick looks at before Node's loop goes on: some 5 ms of work at the most. */
constexpr uint32_t kTickBudget = 8192;

/** A hold is lengthened by up to a sixteenth: polls that came together do not end together. */
constexpr uint32_t kJitterShare = 16;

}  // namespace server

#endif  // SPRITES_BASE_HOLD_H_
