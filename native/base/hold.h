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

}  // namespace server

#endif  // SPRITES_BASE_HOLD_H_
