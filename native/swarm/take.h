// A sprite that has come to one of the clients: whose it is, whether it came before, whole, by the
// right side, and how long it flew.
#ifndef SPRITES_SWARM_TAKE_H_
#define SPRITES_SWARM_TAKE_H_

#include <cstdint>

#include "answers.h"
#include "core.h"

namespace swarm {

/** @param now nanoseconds of CLOCK_MONOTONIC, when its answer was read */
void takeSprite(Core* core, const Arrival& arrival, uint64_t now);

}  // namespace swarm

#endif  // SPRITES_SWARM_TAKE_H_
