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
// The torus knows nothing of it. Which of its links is a row's end follows from where two neighbors
// sit (Torus::closesRow), so a join or a leave has no more to do than without a world, and a parked
// poll is no larger. Only a throw over the left or right edge asks, and only where there is a world
// at all: `Pool` has no seams without one.
//
// A row here is a cycle of the torus: a row that hangs on the one before it is part of that.
//
//   rows_[2]  [ to the left: server b │ to the right: server c ]   of each row that another has
//   peers_[1] [ outbox │ what was taken from it ]
//
// A RESTART. With a state the outboxes and what was taken outlive the process (Pool has them from
// the journal before there is a ring), and so does the memory: the number by which the others know
// that this process goes on from that one. A sprite that was taken is in the journal before it is
// acked, in the same step as the number; so one that is sent again, as its ack was lost with the
// process, is known by its number. Fences need not outlive it: every frame that was on its way is
// for a life that is no more.
//
// THE BOOKS. A sprite is the sender's until the receiver has acked it: it waits in the outbox, and
// is counted there. So for each server, at every moment, in `Counts`,
//
//     thrown + crossedIn = acked + waiting + lost + crossedOut
//
// and summed over all servers crossedIn = crossedOut when no ack is on its way.
//
// WHERE IT GOES WRONG. A peer that is closed (not reachable) or whose outbox is full refuses throws
// as a full mailbox does. A sprite that flies on because its receiver has left is refused by
// no server: it goes over an open seam into the outbox, however full that is, and passes a closed
// one by, as if the row ended here; the server has the memory for it already. A server that has the
// row no more passes the sprite on around the ring; at the one it comes from it lands on the row's
// other end.
//
// FORGETTING. Names may change for ever, and numbers are few. So a server that is out of the ring
// gives its number to another one when there is none left, if nothing waits for it, and nothing can
// come from it that was taken before: none was, or it has left with nothing in its outboxes
// (lib/world/crossing.js). What it has taken itself is not forgotten: should it come back, its
// outbox asks first, and what is sent then has numbers and serials that were never used.
//
// Rejected: a link of the torus that names a peer (every step at a row's end would have to keep it,
// and each throw test for it), a table of ends by node (a million entries for two thousand).
#ifndef SPRITES_SEAMS_H_
#define SPRITES_SEAMS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "outbox.h"
#include "torus.h"

namespace server {

/** Names a server of the world: numbers from 0, in the order in which they came to be known. */
using PeerNumber = uint16_t;

/** There is no such server: the row, or the ring, closes on itself. */
constexpr PeerNumber kNoPeer = UINT16_MAX;

/** Servers that may be known, with those that are in the ring no more. */
constexpr size_t kMostPeers = 4096;

/** The servers to the left and to the right, by Edge. */
struct Sides {
  PeerNumber at[2] = {kNoPeer, kNoPeer};
};

/** The last epoch of a server that the store tells: no process of it has a higher life. */
struct Told {
  PeerNumber peer;
  uint64_t epoch;
};

/** The ring as this server is to see it. */
struct Ring {
  std::vector<PeerNumber> peers;     // the others, to which sprites are sent
  std::vector<PeerNumber> accepted;  // from which they are taken: also leaving ones
  std::vector<Told> told;            // of them, and of servers in no ring
  std::vector<Sides> rows;           // of each row that another server has
  Sides next;                        // the neighbors in the ring, whatever rows they have
  bool open = false;                 // whether throws may cross
};

struct SeamsOptions {
  uint64_t outboxBytes;  // that throws may fill of one peer's outbox
  uint64_t doubt;        // milliseconds: see Outbox::part
};

/** A seam that a sprite comes to. */
struct Seam {
  PeerNumber peer;
  uint32_t row;
  Edge over;
};

/** A server of the world. */
struct Peer {
  std::string name;
  Outbox outbox;
  bool placed = false;  // a ring has said since whether it is in it
  bool inRing = false;
  bool accepted = false;
  uint64_t epoch = 0;  // the last one that the store has told
  // What was taken from it:
  Identity sender;      // the process that sends, and its memory; 0: none yet
  uint64_t taken = 0;   // the last number from that memory
  uint64_t fence = 0;   // frames of a lower serial are void
  uint64_t owed = 0;    // serial of the newest frame whose ack waits; 0: none does
  uint64_t owedAt = 0;  // milliseconds: when it waits no more
};

/** Whether that may be the name of a server: 1 to 32 of a-z, 0-9 and -. */
bool isPeerName(std::string_view name);

class Seams {
 public:
  /** `memory`: what this process and those before have in common, or a number no other process has.
   */
  explicit Seams(uint64_t memory) : self_{.life = 0, .memory = memory} {}

  /** From now on sprites cross. `wake` is called when there is something to be sent that was not
   * asked for yet. */
  void open(const SeamsOptions& options, std::function<void()> wake);

  /** None do any more; what waits stays. */
  void close();

  /** The identity of this process: its life is 0, or that of the one before, until it has a life of
   * its own.
   */
  const Identity& self() const { return self_; }
  void live(uint64_t life);

  /** A process begins: what is there was left by those before. */
  void begin();

  /** Makes one more server known; its number is the next one. There must be room. */
  PeerNumber add(std::string_view name);

  /** Forgets a server for another one, which gets its number; false: something waits for it, or the
   * other one is known. */
  bool replace(PeerNumber number, std::string_view name);

  /** The server of that name; kNoPeer: it is not known. */
  PeerNumber find(std::string_view name) const;

  size_t size() const { return peers_.size(); }
  Peer& peer(PeerNumber number) { return peers_[number]; }
  const Peer& peer(PeerNumber number) const { return peers_[number]; }

  /** Takes `ring` from now on; `now`: milliseconds. A server that is in it no more is parted with.
   */
  void set(Ring ring, uint64_t now);

  /** The server beyond the end of a row by its left or right edge; kNoPeer: the row closes. */
  PeerNumber beyond(uint32_t row, Edge over) const {
    return row < ring_.rows.size() ? ring_.rows[row].at[static_cast<uint8_t>(over)] : kNoPeer;
  }

  /** The next server of the ring by that edge, or kNoPeer. */
  PeerNumber next(Edge over) const { return ring_.next.at[static_cast<uint8_t>(over)]; }

  /** Servers in the ring, this one too. */
  uint16_t members() const { return static_cast<uint16_t>(ring_.peers.size() + 1); }

  /** Whether sprites that fly on may cross. */
  bool open() const { return ring_.open; }

  /** Whether a throw of a sprite of `cost` bytes may go over `seam`. */
  bool takes(const Seam& seam, uint64_t cost) const;

  /** Puts `sprite`, from now on the outbox's, behind what waits for that peer. */
  void push(PeerNumber peer, const Crosser& crosser);

  /** Bytes of all outboxes, and the sprites in them. */
  uint64_t bytes() const;
  uint64_t sprites() const;

 private:
  Identity self_;
  SeamsOptions options_ = {};
  std::function<void()> wake_ = [] {};
  std::deque<Peer> peers_;
  Ring ring_;
};

}  // namespace server

#endif  // SPRITES_SEAMS_H_
