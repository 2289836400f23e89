#include "seams.h"

#include <algorithm>

namespace server {

PeerNumber Seams::add() {
  peers_.emplace_back();
  return static_cast<PeerNumber>(peers_.size() - 1);
}

void Seams::set(Ring ring, uint64_t now) {
  const bool opens = ring.open && !ring_.open;
  ring_ = std::move(ring);
  for (size_t number = 0; number < peers_.size(); ++number) {
    Peer& peer = peers_[number];
    const bool inRing = std::ranges::find(ring_.peers, number) != ring_.peers.end();
    if (inRing && !peer.inRing) peer.outbox.rejoin();
    if (inRing && opens) peer.outbox.hurry();
    if (!inRing && peer.inRing) peer.outbox.part(now, options_.doubt);
    peer.inRing = inRing;
    peer.accepted = std::ranges::find(ring_.accepted, number) != ring_.accepted.end();
  }
  wake_();
}

bool Seams::takes(const Seam& seam, uint64_t cost) const {
  const Outbox& outbox = peers_[seam.peer].outbox;
  return ring_.open && outbox.bytes() + cost <= options_.outboxBytes &&
         !outbox.busy(seam.row, seam.over);
}

void Seams::push(PeerNumber peer, const Crosser& crosser) {
  peers_[peer].outbox.push(crosser);
  wake_();
}

uint64_t Seams::bytes() const {
  uint64_t all = 0;
  for (const Peer& peer : peers_) all += peer.outbox.bytes();
  return all;
}

uint64_t Seams::sprites() const {
  uint64_t all = 0;
  for (const Peer& peer : peers_) all += peer.outbox.size();
  return all;
}

}  // namespace server
