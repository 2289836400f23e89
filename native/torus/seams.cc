#include "seams.h"

#include <algorithm>

namespace server {

bool isPeerName(std::string_view name) {
  constexpr size_t kLongestName = 32;
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

void Seams::setLife(uint64_t life) {
  self_.life = life;
  beginProcess();
}

void Seams::beginProcess() {
  for (Peer& peer : peers_) peer.outbox.beginProcess();
}

void Seams::open(const SeamsOptions& options, std::function<void()> wake) {
  options_ = options;
  wake_ = std::move(wake);
}

void Seams::close() {
  ring_ = {};
  wake_ = [] {};
}

PeerNumber Seams::addPeer(std::string_view name) {
  peers_.emplace_back().name = name;
  return static_cast<PeerNumber>(peers_.size() - 1);
}

bool Seams::replacePeer(PeerNumber number, std::string_view name) {
  Peer& peer = peers_[number];
  if (peer.outbox.size() > 0 || findPeer(name) != kNoPeer) return false;
  // The highest of all servers: this includes forgotten ones, since later servers counted on from
  // theirs.
  UsedNumbers used;
  for (const Peer& one : peers_) {
    const UsedNumbers those = one.outbox.usedNumbers();
    used = {std::max(used.number, those.number), std::max(used.serial, those.serial)};
  }
  peer = {};
  peer.name = name;
  peer.outbox = Outbox(used);
  return true;
}

PeerNumber Seams::findPeer(std::string_view name) const {
  const auto found = std::ranges::find(peers_, name, &Peer::name);
  return found == peers_.end() ? kNoPeer : static_cast<PeerNumber>(found - peers_.begin());
}

void Seams::setRing(Ring ring, uint64_t now) {
  const bool isOpening = ring.isOpen && !ring_.isOpen;
  ring_ = std::move(ring);
  for (size_t number = 0; number < peers_.size(); ++number) {
    Peer& peer = peers_[number];
    const bool inRing = std::ranges::find(ring_.peers, number) != ring_.peers.end();
    if (inRing != peer.inRing || !peer.hasRingState) {
      inRing ? peer.outbox.onPeerReturned() : peer.outbox.onPeerLeft(now, options_.doubt);
    }
    if (inRing && isOpening) peer.outbox.resendNow();
    peer.hasRingState = true;
    peer.inRing = inRing;
    peer.accepted = std::ranges::find(ring_.accepted, number) != ring_.accepted.end();
  }
  for (const auto& [number, epoch] : ring_.epochs) peers_[number].epoch = epoch;
  wake_();
}

bool Seams::accepts(const Seam& seam, uint64_t cost) const {
  const Outbox& outbox = peers_[seam.peer].outbox;
  return ring_.isOpen && outbox.bytes() + cost <= options_.outboxBytes &&
         !outbox.isBusy(seam.row, seam.exitEdge);
}

void Seams::push(PeerNumber peer, const Crosser& crosser) {
  peers_[peer].outbox.push(crosser);
  wake_();
}

uint64_t Seams::waitingBytes() const {
  uint64_t all = 0;
  for (const Peer& peer : peers_) all += peer.outbox.bytes();
  return all;
}

uint64_t Seams::waitingSprites() const {
  uint64_t all = 0;
  for (const Peer& peer : peers_) all += peer.outbox.size();
  return all;
}

}  // namespace server
