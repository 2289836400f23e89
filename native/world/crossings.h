// The exchange of sprites between one server of a world and the others.
//
//   Pool ─throw─▶ Seams: outbox ─frame─▶ (a message) ─▶ receive ─▶ Pool of the other server
//                          ▲──────────ack◀─ (a message) ◀────┘
//
// Crossings makes and reads frames; it does not transport them. Frames may be dropped, duplicated,
// delayed and reordered, and each sprite still arrives once (outbox.h says what happens when a
// server dies). Nothing in a frame is trusted: a frame that makes no sense changes nothing.
//
// A frame is accepted if it is for this very process, from the newest process of its sender, known
// to the store, from a server of the ring, and not voided by a fence. Its sprites are taken in the
// order of their numbers, up to the first sprite that is missing or finds no memory. The ack says
// how far.
//
// An ack is sent at once if the frame wants it (outbox.h says when), if it refuses, or if it
// reports a row's end as busy. Any other ack waits up to kAckDelay for sprites that go the same
// way, and is for all frames that have come by then. Acks to a server that has left the ring do not
// wait.
//
// With a state, frames and answers are sent after the pool's turn is written, and not at all if it
// can't be written: an ack is a promise, as a 202 is. While nothing is promised, crossing stands
// still: nothing is sent, taken or answered, and every sender sends again.
#ifndef SPRITES_CROSSINGS_H_
#define SPRITES_CROSSINGS_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "torus/pool.h"
#include "torus/seams.h"
#include "torus/world_frames.h"

namespace server {

class Crossings {
 public:
  /**
   * `life`: of this process, from 1; larger than that of the earlier process of its name. `pool`,
   * which is in the world, is not owned.
   */
  Crossings(Pool* pool, uint64_t life) : pool_(pool), seams_(pool->enterWorld()), life_(life) {
    pool->setLife(life);
  }

  /**
   * Appends the next message for a peer to `message`. Returns false when none is due. Call it until
   * it returns false: when the seams wake, after `receive`, and at `dueAt`. `now`: milliseconds.
   */
  bool nextMessage(PeerNumber peer, uint64_t now, std::string* message);

  /**
   * Takes a message of a peer, at `now`, and appends its answer to `answer` if the answer must go
   * at once. Returns why one of its frames is refused, or why an ack says that ours was.
   */
  FrameRefusal receive(PeerNumber peer, std::string_view message, uint64_t now,
                       std::string* answer);

  /** Counts a message of an unknown server, which is refused. */
  FrameRefusal refuseUnknownServer() { return countRefused(FrameRefusal::kNotInRing); }

  /**
   * Sends sprites that wait for peers outside the ring to where they go now. Call it as often as
   * `nextMessage`.
   */
  void rerouteStranded(uint64_t now);

  /** Returns the time to call `nextMessage` and `rerouteStranded`; kNeverDue: not before something
   * happens. */
  uint64_t dueAt() const;

  /** Frames refused by this server or by a peer, by the reason. */
  const uint64_t* refused() const { return refused_; }

 private:
  FrameRefusal countRefused(FrameRefusal refusal) {
    ++refused_[static_cast<size_t>(refusal)];
    return refusal;
  }
  FrameRefusal receiveSprites(PeerNumber from, FrameRefusal refusal, const Frame& frame,
                              uint64_t now, std::string* answer);
  bool isAnyEndBusy() const;
  FrameRefusal receiveAck(PeerNumber from, const FrameHead& head, std::string_view body,
                          uint64_t now);
  FrameRefusal checkSender(PeerNumber from, const FrameHead& head);
  bool acceptSprites(PeerNumber from, const FrameHead& head, std::string_view body);

  Pool* const pool_;
  Seams* const seams_;
  const uint64_t life_;
  Frames frames_;
  std::set<std::pair<uint32_t, Edge>> rowEnds_;  // rows and sides in the frame being taken
  uint64_t refused_[kRefusals] = {};
};

}  // namespace server

#endif  // SPRITES_CROSSINGS_H_
