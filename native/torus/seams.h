// The seams: links of the torus that lead to another server.
//
//     server a             server b             server c
//   ┌ x ─ x ─ x ┐  seam  ┌ x ─ x ─ x ┐  seam  ┌ x ─ x ┐
//   │           └───────▶┘           └───────▶┘       └─▶ to a   row 2 of all three
//   └ x ─ x ─ x ─▶ to itself: no other server has a row 3
//
// Servers form a ring. A row of the world is that row of every server that has one, end to end: a
// throw off the right edge of a row's last node lands on the first node of that row at the next
// server that has it, and the other way round. Columns stay within a server.
//
// The torus knows nothing of seams. The places of two neighbors tell whether the link between them
// is a row's end (Torus::closesRow). So a join or a leave costs no more than without a world, and a
// parked poll is no larger. Only a throw over the left or right edge asks, and only in a world:
// without one `Pool` has no seams.
//
// A row here is a cycle of the torus: a row that hangs on the row before it is part of that row.
//
//   ring_.rows[2]  [ to the left: server b │ to the right: server c ]  of each row another has
//   peers_[1]      [ outbox │ what was taken from it ]
//
// A RESTART. With a state the outboxes, the numbers of taken sprites and the memory outlive the
// process. The memory is the number by which the others know that this process continues an earlier
// one. Pool has all these from the journal before there is a ring. A taken sprite is in the journal
// before it is acked, in one step with its number. So a sprite that is sent again, since its ack
// was lost with the process, is recognized by its number. Fences need not outlive the process:
// every frame in flight is for a life that is over.
//
// THE BOOKS. A sprite belongs to its sender until the receiver has acked it: it waits in the outbox
// and is counted there. So for each server, at every moment, in `PoolCounts`,
//
//     thrown + crossedIn = acked + waiting + lost + crossedOut
//
// and summed over all servers crossedIn = crossedOut when no ack is on its way.
//
// FAILURES. A closed seam (its peer is not reachable) and a full outbox refuse throws, as a full
// mailbox does. A sprite that flies on because its receiver has left is never refused: the server
// has the memory for it already. It goes over an open seam into the outbox, however full that is.
// It passes a closed seam by, as if the row ended here. A server that no longer has the row passes
// the sprite on around the ring; back at its first server the sprite lands on the row's other end.
//
// FORGETTING. Names may change without end, and numbers are few. When no number is left, a server
// outside the ring is forgotten for a new one, which gets its number. This is allowed if nothing
// waits for that server, and nothing can come from it that was taken before: nothing was taken, or
// it has left with empty outboxes (lib/world/crossing.js). What that server has taken is not
// forgotten: if it comes back, its new outbox asks first, and sends under numbers and serials that
// were never used.
//
// Rejected: a link of the torus that names a peer (every step at a row's end would have to keep it,
// and each throw test for it), a table of ends by node (a million entries for two thousand).
#ifndef SPRITES_SEAMS_H_
#define SPRITES_SEAMS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "outbox.h"
#include "torus.h"

namespace server {

/** Number of a server of the world, from 0, in the order in which the servers became known. */
using PeerNumber = uint16_t;

/** No server: the row, or the ring, closes on itself. */
constexpr PeerNumber kNoPeer = UINT16_MAX;

/** Most known servers, including those that have left the ring. */
constexpr size_t kMaxPeers = 4096;

/** The servers to the left and to the right, by Edge. */
struct Sides {
  PeerNumber peer[2] = {kNoPeer, kNoPeer};
};

/** The newest epoch of a server in the store: no process of that server has a higher life. */
struct PeerEpoch {
  PeerNumber peer;
  uint64_t epoch;
};

/** The ring as this server sees it. */
struct Ring {
  std::vector<PeerNumber> peers;     // the others, to which sprites are sent
  std::vector<PeerNumber> accepted;  // servers from which sprites are taken: leaving ones, too
  std::vector<PeerEpoch> epochs;     // epochs of these, and of servers in no ring
  std::vector<Sides> rows;           // by row, as far as another server has rows
  Sides neighbors;                   // the neighbors in the ring, whatever rows they have
  bool isOpen = false;               // whether throws may cross
};

struct SeamsOptions {
  uint64_t outboxBytes;  // most bytes of one peer's outbox that throws may fill
  uint64_t doubt;        // milliseconds: see Outbox::onPeerLeft
};

/** A seam that a sprite comes to. */
struct Seam {
  PeerNumber peer;
  uint32_t row;
  Edge exitEdge;
};

/** A server of the world. */
struct Peer {
  std::string name;
  Outbox outbox;
  bool hasRingState = false;  // `setRing` has been called since the peer became known
  bool inRing = false;
  bool accepted = false;
  uint64_t epoch = 0;  // the newest one in the store
  // What was taken from the peer:
  Identity sender;         // the process that sends, and its memory; 0: none yet
  uint64_t lastTaken = 0;  // the last number taken from that memory
  uint64_t fence = 0;      // frames of a lower serial are void
  uint64_t ackSerial = 0;  // serial of the newest frame whose ack waits; 0: none
  uint64_t ackDueAt = 0;   // milliseconds: deadline of that ack
};

/** Returns whether `name` may be a server's name: 1 to 32 of a-z, 0-9 and -. */
bool isPeerName(std::string_view name);

class Seams {
 public:
  /**
   * `memory`: the number that this process shares with earlier ones of its state, or a new number.
   */
  explicit Seams(uint64_t memory) : self_{.life = 0, .memory = memory} {}

  /** Lets sprites cross. `wake` is called when a frame may be due that was not due before. */
  void open(const SeamsOptions& options, std::function<void()> wake);

  /** Lets no more sprites cross; waiting ones stay. */
  void close();

  /** The identity of this process. Its life is 0, or that of an earlier process, until `setLife`.
   */
  const Identity& self() const { return self_; }
  void setLife(uint64_t life);

  /** Begins a new process: all that is there was left by earlier ones. */
  void beginProcess();

  /** Makes a further server known, under the next number. There must be room. */
  PeerNumber addPeer(std::string_view name);

  /**
   * Forgets a server and gives its number to `name`. Returns false when something waits for that
   * server, or `name` is known.
   */
  bool replacePeer(PeerNumber number, std::string_view name);

  /** Returns the server of that name; kNoPeer: it is not known. */
  PeerNumber findPeer(std::string_view name) const;

  size_t size() const { return peers_.size(); }
  Peer& peer(PeerNumber number) { return peers_[number]; }
  const Peer& peer(PeerNumber number) const { return peers_[number]; }

  /** Sets the ring; `now`: milliseconds. Outboxes of servers outside the ring learn of it. */
  void setRing(Ring ring, uint64_t now);

  /** The server beyond the end of a row by its left or right edge; kNoPeer: the row closes. */
  PeerNumber peerBeyond(uint32_t row, Edge exitEdge) const {
    return row < ring_.rows.size() ? ring_.rows[row].peer[static_cast<uint8_t>(exitEdge)] : kNoPeer;
  }

  /** The next server of the ring by that edge, or kNoPeer. */
  PeerNumber ringNeighbor(Edge exitEdge) const {
    return ring_.neighbors.peer[static_cast<uint8_t>(exitEdge)];
  }

  /** Servers in the ring, including this one. */
  uint16_t memberCount() const { return static_cast<uint16_t>(ring_.peers.size() + 1); }

  /** Whether sprites that fly on may cross. */
  bool isOpen() const { return ring_.isOpen; }

  /** Whether a throw of a sprite of `cost` bytes may go over `seam`. */
  bool accepts(const Seam& seam, uint64_t cost) const;

  /** Appends a sprite to the peer's outbox, which owns it then. */
  void push(PeerNumber peer, const Crosser& crosser);

  /** Bytes and sprites in all outboxes. */
  uint64_t waitingBytes() const;
  uint64_t waitingSprites() const;

 private:
  Identity self_;
  SeamsOptions options_ = {};
  std::function<void()> wake_ = [] {};
  std::deque<Peer> peers_;
  Ring ring_;
};

}  // namespace server

#endif  // SPRITES_SEAMS_H_
