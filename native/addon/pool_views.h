// A pool and its state as JavaScript objects: pool_wrap.cc lists the properties of each.
#ifndef SPRITES_POOL_VIEWS_H_
#define SPRITES_POOL_VIEWS_H_

#include "convert.h"
#include "store/state_store.h"
#include "torus/pool.h"
#include "torus/seams.h"

namespace server {

/** One client, for an operator. */
Local<Object> objectOf(const Pool::View& view);

/** How long sprites have waited. */
Local<Object> objectOf(const DeliveryTimes& times);

/** The live counts. */
Local<Object> countsOf(const Pool& pool);

/**
 * The sprites that wait to cross to other servers; `seams` is nullptr if there never was a world.
 */
Local<Object> outboxesOf(const Seams* seams);

/** The counts of the state on disk. */
Local<Object> countsOf(const StateStore& store);

}  // namespace server

#endif  // SPRITES_POOL_VIEWS_H_
