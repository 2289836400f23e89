// A pool as an operator sees it: its counts, its clients, its state on disk.
#ifndef SPRITES_POOL_VIEWS_H_
#define SPRITES_POOL_VIEWS_H_

#include "convert.h"
#include "store/state_store.h"
#include "torus/pool.h"
#include "torus/seams.h"

namespace server {

/** One client, for an operator. */
inline Local<Object> objectOf(const Pool::View& view) {
  return makeObject({
      {"row", view.place.row},
      {"column", view.place.column},
      {"parked", view.parked},
      {"waiting", view.waiting},
      {"unsent", view.unsent},
      {"bytes", view.bytes},
      {"sequence", view.sequence},
      {"address", view.hasAddress ? valueOf(view.address.text()) : Nan::Null().As<Value>()},
  });
}

/** How long sprites have waited. */
inline Local<Object> objectOf(const DeliveryTimes& times) {
  return makeObject({
      {"bounds", DeliveryTimes::kBounds},
      {"counts", times.counts()},
      {"sum", times.sum()},
  });
}

/** The live counts. */
inline Local<Object> countsOf(const Pool& pool) {
  const PoolCounts& counts = pool.counts();
  return makeObject({
      {"clients", counts.clients},
      {"parked", counts.parked},
      {"capacity", pool.options().capacity},
      {"rows", pool.torus().rows()},
      {"columns", pool.torus().columns()},
      {"thrown", counts.thrown},
      {"acked", counts.acked},
      {"waiting", counts.waiting},
      {"lost", counts.lost},
      {"delivered", counts.delivered},
      {"queued", counts.queued},
      {"duplicates", counts.duplicates},
      {"flown", counts.flown},
      {"crossedIn", counts.crossedIn},
      {"crossedOut", counts.crossedOut},
      {"crossedInDoubt", counts.crossedInDoubt},
      {"mailboxBytes", counts.mailboxBytes},
      {"joined", counts.joined},
      {"left", counts.left},
      {"expired", counts.expired},
      {"polls", counts.polls},
      {"pings", counts.pings},
      {"lostReasons", makeObject({{"alone", counts.lost}})},
  });
}

/**
 * The sprites that wait to cross to other servers; `seams` is nullptr if there never was a world.
 */
inline Local<Object> outboxesOf(const Seams* seams) {
  Local<Array> servers = Nan::New<Array>();
  for (uint32_t i = 0; seams != nullptr && i < seams->size(); ++i) {
    const Peer& peer = seams->peer(static_cast<PeerNumber>(i));
    Nan::Set(servers, i, makeObject({{"name", peer.name}, {"waiting", peer.outbox.size()}}))
        .Check();
  }
  return makeObject({
      {"sprites", seams == nullptr ? 0 : seams->waitingSprites()},
      {"bytes", seams == nullptr ? 0 : seams->waitingBytes()},
      {"servers", servers},
  });
}

/** The counts of the state on disk. */
inline Local<Object> countsOf(const StateStore& store) {
  const StateStoreCounts counts = store.counts();
  return makeObject({
      {"blocked", store.blocked()},
      {"lost", store.filesLost() ? 1 : 0},
      {"journalBytes", counts.journalBytes},
      {"journalRoom", kJournalRoom},
      {"unsyncedBytes", counts.unsyncedBytes},
      {"backlogBytes", counts.backlogBytes},
      {"unsafe", counts.unsafe},
      {"snapshots", counts.snapshots},
      {"snapshotsFailed", counts.snapshotsFailed},
      {"longestWrite", counts.longestWrite},
      {"problem", store.snapshotProblem()},
  });
}

}  // namespace server

#endif  // SPRITES_POOL_VIEWS_H_
