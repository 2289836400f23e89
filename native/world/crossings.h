// What one server of a world sends to the others, and what it takes from them.
//
//   Pool ─throw─▶ Seams: outbox ─frame─▶ (a message) ─▶ receive ─▶ Pool of the other server
//                          ▲──────────ack◀─ (a message) ◀────┘
//
// It makes frames and reads them; how they travel is no business of this file. They may be dropped,
// doubled, late, and out of order: each sprite arrives once all the same (outbox.h says what that
// costs where a server dies). Nothing in a frame is trusted: one that makes no sense changes
// nothing.
//
// A frame is taken if it is for this very process, of the newest process of its sender, of which
// the store has told, from a server of the ring, and not voided by a fence. Its sprites are taken
// in the order of their numbers, up to the first one that is missing or finds no memory; the ack
// says how far.
//
// An ack goes at once where the frame wants it (outbox.h says when), where it refuses, and where it
// says that a row's end is busy. Any other waits up to kAckDelay for sprites that go the same way,
// and is for all frames that have come by then; a server that has left the ring lets none wait.
//
// With a state: frames and answers are to be sent when the pool's turn is written, and not at all
// if it can't be, as an ack promises what a 202 does. While nothing is promised, crossing stands
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
  /** `life`: of this process, from 1; larger than that of the one before it under the same name.
   * `pool`, which is in the world, is not owned. */
  Crossings(Pool* pool, uint64_t life) : pool_(pool), seams_(pool->enterWorld()), life_(life) {
    pool->live(life);
  }

  /**
   * Writes the next message for a peer behind what is in `message`; false when none is due. To be
   * called until it returns false: when the seams wake, after `receive`, and at `dueAt`. `now`:
   * milliseconds.
   */
  bool next(PeerNumber peer, uint64_t now, std::string* message);

  /**
   * Takes a message that has come from a peer, at `now`, and writes the answer that it is to have
   * at once behind what is in `answer`, if there is one. Returns why one of its frames is refused,
   * or an ack says that ours was.
   */
  FrameRefusal receive(PeerNumber peer, std::string_view message, uint64_t now,
                       std::string* answer);

  /** A message of an unknown server has come. */
  FrameRefusal strange() { return count(FrameRefusal::kNotInRing); }

  /** Takes what waits for peers that are in the ring no more to where it is to go now. To be called
   * as often as `next`. */
  void sortOut(uint64_t now);

  /** When both are to be called, if nothing happens before; kNeverDue: only then. */
  uint64_t dueAt() const;

  /** Frames refused here or there, by the reason. */
  const uint64_t* refused() const { return refused_; }

 private:
  FrameRefusal count(FrameRefusal refusal) {
    ++refused_[static_cast<size_t>(refusal)];
    return refusal;
  }
  FrameRefusal sprites(PeerNumber from, FrameRefusal refusal, const Frame& frame, uint64_t now,
                       std::string* answer);
  bool endsBusy() const;
  FrameRefusal acked(PeerNumber from, const FrameHead& head, std::string_view body, uint64_t now);
  FrameRefusal judge(PeerNumber from, const FrameHead& head);
  bool take(PeerNumber from, const FrameHead& head, std::string_view body);

  Pool* const pool_;
  Seams* const seams_;
  const uint64_t life_;
  Frames frames_;
  std::set<std::pair<uint32_t, Edge>> ends_;  // rows and sides that the frame being taken names
  uint64_t refused_[kRefusals] = {};
};

}  // namespace server

#endif  // SPRITES_CROSSINGS_H_
