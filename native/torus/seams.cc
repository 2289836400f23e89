#include "seams.h"

#include <algorithm>

namespace server {

bool isPeerName(std::string_view name) {
  constexpr size_t kLongestName = 32;
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

void Seams::live(uint64_t life) {
  self_.life = life;
  begin();
}

void Seams::begin() {
  for (Peer& peer : peers_) peer.outbox.begin();
}

void Seams::open(const SeamsOptions& options, std::function<void()> wake) {
  options_ = options;
  wake_ = std::move(wake);
}

void Seams::close() {
  ring_ = {};
  wake_ = [] {};
}

PeerNumber Seams::add(std::string_view name) {
  peers_.emplace_back().name = name;
  return static_cast<PeerNumber>(peers_.size() - 1);
}

bool Seams::replace(PeerNumber number, std::string_view name) {
  Peer& peer = peers_[number];
  if (peer.outbox.size() > 0 || find(name) != kNoPeer) return false;
  // The highest of all servers: this includes forgotten ones, since later servers counted on from
  // theirs.
  Used used;
  for (const Peer& one : peers_) {
    const Used its = one.outbox.used();
    used = {std::max(used.number, its.number), std::max(used.serial, its.serial)};
  }
  peer = {};
  peer.name = name;
  peer.outbox = Outbox(used);
  return true;
}

PeerNumber Seams::find(std::string_view name) const {
  const auto found = std::ranges::find(peers_, name, &Peer::name);
  return found == peers_.end() ? kNoPeer : static_cast<PeerNumber>(found - peers_.begin());
}

void Seams::set(Ring ring, uint64_t now) {
  const bool opens = ring.open && !ring_.open;
  ring_ = std::move(ring);
  for (size_t number = 0; number < peers_.size(); ++number) {
    Peer& peer = peers_[number];
    const bool inRing = std::ranges::find(ring_.peers, number) != ring_.peers.end();
    if (inRing != peer.inRing || !peer.placed) {
      inRing ? peer.outbox.rejoin() : peer.outbox.part(now, options_.doubt);
    }
    if (inRing && opens) peer.outbox.hurry();
    peer.placed = true;
    peer.inRing = inRing;
    peer.accepted = std::ranges::find(ring_.accepted, number) != ring_.accepted.end();
  }
  for (const auto& [number, epoch] : ring_.told) peers_[number].epoch = epoch;
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
