// The steps of a world on a pool, without frames: sprites cross, are taken, come from other
// servers, and go elsewhere, while the ring changes.
#ifndef SPRITES_TEST_WORLD_STEPS_H_
#define SPRITES_TEST_WORLD_STEPS_H_

#include <string>

#include "torus/pool.h"
#include "torus/seams.h"
#include "torus/world_frames.h"

namespace server::test {

class WorldSteps {
 public:
  /** Puts `pool` into a world of three servers, with a life of its own. */
  explicit WorldSteps(Pool* pool) : pool_(*pool), seams_(*pool->enterWorld()) {
    pool_.openSeams({.outboxBytes = 2000, .doubt = 0}, [] {});
    pool_.setLife(seams_.self().life + 1);
    for (const char* name : {"b", "c"}) pool_.findOrAddPeer(name);
    setRing(3);
  }

  /**
   * Takes a step; `below(n)` is a random number below n. Crossing stands still while nothing is
   * promised.
   */
  template <typename Below>
  void step(Below&& below) {
    if (!pool_.promising()) return;
    const auto number = static_cast<PeerNumber>(below(2));
    Peer& peer = seams_.peer(number);
    switch (below(8)) {
      case 0:
        setRing(below(4));
        if (below(4) == 0) {
          (void)pool_.replacePeer(number, std::string(1, static_cast<char>('b' + below(4))), true);
        }
        break;
      case 1:
        if (below(4) == 0) {
          pool_.setSender(number, {.life = peer.sender.life + 1, .memory = below(3) + 1}, below(9));
        }
        break;
      case 2:
      case 3:
        for (uint64_t count = below(3); count > 0 && peer.outbox.size() > 0; --count) {
          pool_.crossOut(peer.outbox.removeOldest());
          pool_.recordCrossedUpTo(number, peer.outbox.base() - 1);
        }
        break;
      case 4:
        rerouteStranded(below(2) == 0);
        break;
      case 5:
        if (!peer.outbox.isSettled()) {
          peer.outbox.setBase(peer.outbox.base() + below(3));
          peer.outbox.setSettled();
          pool_.renumberAfter(number, peer.outbox.base() - 1);
        }
        break;
      default:
        const CrosserHead head = {.row = static_cast<uint32_t>(below(8)),
                                  .from = Edge{static_cast<uint8_t>(below(4))},
                                  .exitEdge = Edge{static_cast<uint8_t>(below(2))},
                                  .round = static_cast<uint8_t>(below(2)),
                                  .hops = static_cast<uint16_t>(below(3))};
        (void)pool_.crossIn(number, peer.lastTaken + 1 + below(2), head,
                            "{\"crossed\":" + std::to_string(below(1000)) + "}");
    }
  }

 private:
  /** Puts the servers of the bits in `in` into the ring with this server. */
  void setRing(uint64_t in) {
    Ring ring;
    ring.isOpen = true;
    for (PeerNumber peer = 0; peer < 2; ++peer) {
      if ((in >> peer & 1) != 0) ring.peers.push_back(peer);
    }
    if (!ring.peers.empty()) {
      ring.neighbors = {{ring.peers.front(), ring.peers.back()}};
      ring.rows.assign(6, ring.neighbors);
    }
    seams_.setRing(std::move(ring), 0);
  }

  /**
   * Sorts out the sprites for servers outside the ring: the servers have those that may have been
   * sent, or these are given up.
   */
  void rerouteStranded(bool sent) {
    if (sent) pool_.setLife(seams_.self().life + 1);
    for (size_t number = 0; number < seams_.size(); ++number) {
      const auto from = static_cast<PeerNumber>(number);
      Peer& peer = seams_.peer(from);
      if (peer.inRing) continue;
      if (const size_t doubted = peer.outbox.endDoubt()) pool_.recordGivenUp(from, doubted);
      peer.outbox.returnUnsent([&](const Crosser& one) { pool_.turnBack(from, 0, one); });
    }
  }

  Pool& pool_;
  Seams& seams_;
};

}  // namespace server::test

#endif  // SPRITES_TEST_WORLD_STEPS_H_
