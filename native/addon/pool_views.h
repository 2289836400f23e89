// What a pool and its state tell of themselves, as JavaScript objects: pool_wrap.cc says for each
// what is in it.
#ifndef SPRITES_POOL_VIEWS_H_
#define SPRITES_POOL_VIEWS_H_

#include "convert.h"
#include "store/state_store.h"
#include "torus/pool.h"
#include "torus/seams.h"

namespace server {

/** One client, as an operator looks at it. */
Local<Object> objectOf(const Pool::View& view);

/** How long sprites have waited. */
Local<Object> objectOf(const DeliveryTimes& times);

/** The live counts. */
Local<Object> countsOf(const Pool& pool);

/** What waits to cross to other servers; `memory` is nullptr where there never was a world. */
Local<Object> outboxesOf(const Seams* seams);

/** How the writing of the state fares. */
Local<Object> countsOf(const StateStore& store);

}  // namespace server

#endif  // SPRITES_POOL_VIEWS_H_
