// How polls that are held, a client's and a feed's, are ended.
#ifndef SPRITES_SWEEPING_H_
#define SPRITES_SWEEPING_H_

#include <cstdint>

namespace server {

/** Timers one tick looks at before Node's loop goes on: some 5 ms of work at the most. */
constexpr uint32_t kTickBudget = 8192;

/** A hold is lengthened by up to a sixteenth: polls that came together do not end together. */
constexpr uint32_t kJitterShare = 16;

}  // namespace server

#endif  // SPRITES_SWEEPING_H_
