// What work that is not hot has of a turn, and of the time: JavaScript's requests, handshakes, and
// what clients send ahead.
//
//   alone        │████████│████████│████████│      turns of `alone` microseconds, one after another
//   beside hot   │██│·····▲·│██│······▲·│██│···    `besideHot`, and a rest; ▲ a hot request, which
//                                                  finds the thread free
//
// A hot request waits for the rest of a turn, so that the share is smaller while hot ones come, and
// a rest follows: kRest times as long as the work took, divided by the addresses that wait. So one
// address that sends all it can has a tenth of the thread, and hot requests find it free; a hundred
// that come at once, as after a restart, have nearly all of it.
//
// Cost: further turns and rests; nothing where no hot request comes. Rejected: a fourth of the
// thread, with which the median of a hot request is what was the 70th percentile.
#ifndef SPRITES_TURN_SHARE_H_
#define SPRITES_TURN_SHARE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace server {

/** Microseconds throughout, by a clock that never goes back. */
class TurnShare {
 public:
  /** A rest's length, in the times of what it follows, where one address waits. */
  static constexpr uint64_t kRest = 9;

  /** Turns without a hot request after which the share is whole again. */
  static constexpr uint32_t kTurnsBesideHot = 64;

  /** JavaScript's, for requests that are not hot. */
  static TurnShare ofScript() { return {250, 50}; }

  static TurnShare ofHandshakes() { return {250, 250}; }

  /** Of requests that were sent ahead of an answer: those that are not hot. */
  static TurnShare ofSentAhead() { return {100, 50}; }

  /** The share of a turn, and the one while hot requests come. */
  TurnShare(uint64_t alone, uint64_t besideHot) : alone_(alone), besideHot_(besideHot) {}

  /** A turn begins at `now`; so many hot requests have been served so far. */
  void begin(uint64_t hot, uint64_t now) {
    now_ = now;
    used_ = times_ = 0;
    if (hot != hot_) {
      turnsBesideHot_ = kTurnsBesideHot;
    } else if (turnsBesideHot_ > 0) {
      --turnsBesideHot_;
    }
    hot_ = hot;
  }

  /** Whether some is left in this turn: enough for one piece of work, however long it takes. */
  bool left() const { return rest() == 0 && used_ < (turnsBesideHot_ > 0 ? besideHot_ : alone_); }

  /** How long the rest is that the turn has begun in; 0 where it is over. */
  uint64_t rest() const { return restsUntil_ > now_ ? restsUntil_ - now_ : 0; }

  /** A piece of work took from `began` to `ended`; so many addresses wait for theirs. */
  void use(uint64_t began, uint64_t ended, size_t addresses) {
    const uint64_t took = ended - began + deferred_;
    used_ += took;
    ++times_;
    if (turnsBesideHot_ == 0 || used_ < besideHot_) return;
    // One that takes long is no rule for the others.
    const uint64_t rest = kRest * std::min(used_, alone_) / std::max<size_t>(addresses, 1);
    restsUntil_ = ended + deferred_ + rest;
  }

  /**
   * What the work of the last turn has left to promises has taken so long. The next turns have as
   * many pieces as have their share with that.
   */
  void defer(uint64_t took) {
    if (times_ == 0) return;
    deferred_ = (3 * deferred_ + std::min(took / times_, alone_)) / 4;
  }

 private:
  const uint64_t alone_;
  const uint64_t besideHot_;
  uint64_t now_ = 0;  // when the turn began
  uint64_t restsUntil_ = 0;
  uint64_t used_ = 0;            // of this turn, or will be
  uint32_t times_ = 0;           // pieces of work in this turn
  uint64_t deferred_ = 0;        // what promises take for one, on an average
  uint64_t hot_ = 0;             // requests served when the turn began
  uint32_t turnsBesideHot_ = 0;  // turns for which the share is the smaller one
};

}  // namespace server

#endif  // SPRITES_TURN_SHARE_H_
