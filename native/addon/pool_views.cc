#include "pool_views.h"

namespace server {

Local<Object> objectOf(const Pool::View& view) {
  Local<Object> result = Nan::New<Object>();
  set(result, "row", view.place.row);
  set(result, "column", view.place.column);
  set(result, "parked", Nan::New(view.parked));
  set(result, "waiting", view.waiting);
  set(result, "unsent", view.unsent);
  set(result, "bytes", static_cast<double>(view.bytes));
  set(result, "sequence", static_cast<double>(view.sequence));
  set(result, "address", Nan::Null());
  if (view.hasAddress) set(result, "address", Nan::New(view.address.text()).ToLocalChecked());
  return result;
}

Local<Object> objectOf(const DeliveryTimes& times) {
  Local<Object> result = Nan::New<Object>();
  setList(result, "bounds", DeliveryTimes::kBounds);
  setList(result, "counts", times.counts());
  set(result, "sum", static_cast<double>(times.sum()));
  return result;
}

Local<Object> countsOf(const Pool& pool) {
  const PoolCounts& counts = pool.counts();
  Local<Object> result = Nan::New<Object>();
  set(result, "clients", counts.clients);
  set(result, "parked", counts.parked);
  set(result, "capacity", pool.options().capacity);
  set(result, "rows", pool.torus().rows());
  set(result, "columns", pool.torus().columns());
  set(result, "thrown", counts.thrown);
  set(result, "acked", counts.acked);
  set(result, "waiting", counts.waiting);
  set(result, "lost", counts.lost);
  set(result, "delivered", counts.delivered);
  set(result, "queued", counts.queued);
  set(result, "duplicates", counts.duplicates);
  set(result, "flown", counts.flown);
  set(result, "crossedIn", counts.crossedIn);
  set(result, "crossedOut", counts.crossedOut);
  set(result, "crossedInDoubt", counts.crossedInDoubt);
  set(result, "mailboxBytes", counts.mailboxBytes);
  set(result, "joined", counts.joined);
  set(result, "left", counts.left);
  set(result, "expired", counts.expired);
  set(result, "polls", counts.polls);
  set(result, "pings", counts.pings);
  Local<Object> lostReasons = Nan::New<Object>();
  set(lostReasons, "alone", counts.lost);
  set(result, "lostReasons", lostReasons);
  return result;
}

Local<Object> outboxesOf(const Seams* seams) {
  Local<Object> result = Nan::New<Object>();
  set(result, "sprites", seams == nullptr ? 0 : static_cast<double>(seams->waitingSprites()));
  set(result, "bytes", seams == nullptr ? 0 : static_cast<double>(seams->waitingBytes()));
  Local<Array> servers = Nan::New<Array>();
  for (size_t i = 0; seams != nullptr && i < seams->size(); ++i) {
    const Peer& peer = seams->peer(static_cast<PeerNumber>(i));
    Local<Object> server = Nan::New<Object>();
    set(server, "name", Nan::New(peer.name).ToLocalChecked());
    set(server, "waiting", static_cast<double>(peer.outbox.size()));
    Nan::Set(servers, static_cast<uint32_t>(i), server).Check();
  }
  set(result, "servers", servers);
  return result;
}

Local<Object> countsOf(const StateStore& store) {
  const StateStoreCounts counts = store.counts();
  Local<Object> result = Nan::New<Object>();
  set(result, "blocked", store.blocked());
  set(result, "lost", store.filesLost() ? 1 : 0);
  set(result, "journalBytes", counts.journalBytes);
  set(result, "unsyncedBytes", counts.unsyncedBytes);
  set(result, "backlogBytes", counts.backlogBytes);
  set(result, "unsafe", counts.unsafe);
  set(result, "snapshots", counts.snapshots);
  set(result, "snapshotsFailed", counts.snapshotsFailed);
  set(result, "longestWrite", counts.longestWrite);
  set(result, "problem", Nan::New(store.snapshotProblem()).ToLocalChecked());
  return result;
}

}  // namespace server
