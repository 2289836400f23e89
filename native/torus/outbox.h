// An outbox: the sprites that wait to cross to one other server, oldest first.
//
//   first ─▶ [41][42][43] ─▶ [44][45] ─▶ [46][47] ◀─ pushed
//            └ on their way, └ to be sent └ never
//              not acked       again        sent            base = 41
//
// A sprite stays until the peer acks its number. A sprite without an ack in time is sent again,
// with all sprites behind it. The numbers go up by one and are not stored. The bytes in flight are
// bounded (the window), and so are the waiting bytes: see Seams.
//
// ACKS WAIT for each other, or ride on frames that go the other way, for at most kAckDelay
// (Crossings): one by one they would cost as much as sprites. A frame says when its sender wants
// the answer at once: the frame asks something, is sent again, fills half of the window, or is
// timed (a delayed ack would say nothing about the round trip). So the delay of acks holds up no
// sprite.
//
// When the peer leaves the ring, sprites that were never sent go back to the pool at once. Sent
// sprites are in doubt: the peer may have taken them. So the outbox asks by a frame with a fence,
// which voids every earlier frame. The answer says for certain what was taken, and the rest goes
// back to the pool. A peer that comes back with another memory has taken nothing. Without an answer
// before the doubt ends, the rest goes back to the pool as well, and is counted: each of these
// sprites may arrive twice, if the peer was cut off for longer than the doubt and goes on.
//
// A RESTART. With a state an outbox outlives its process. The journal has the sprites and the
// number of the oldest before a frame carries them, and it has what the peer has taken before an
// ack counts. The next process has the same memory and a new life. So:
//
// - The new process has sent nothing yet; the earlier one may have sent anything. Frames of the
//   earlier life are void as soon as the peer has heard of the new one. Therefore each outbox
//   begins `unsettled`: it first asks, by a frame without sprites, what the peer has taken from
//   this memory. These sprites are acked; the rest is sent under the numbers that follow. Where the
//   peer has taken more than this process knows of (a power cut lost the last second), the numbers
//   go on after those. The journal notes the answer, too: sprites that were pushed before it were
//   never sent, so no number that the peer has taken is of one of them, whatever process is next.
// - A restarted peer refuses frames for its earlier life, and says what its memory has taken. That
//   is final: no frame that is still in flight counts any more.
//
// Rejected: the same life for the next process (a late frame of the earlier process would count, so
// the journal would need the serials and fences of both, frame by frame).
#ifndef SPRITES_OUTBOX_H_
#define SPRITES_OUTBOX_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "mailbox.h"
#include "world_frames.h"

namespace server {

/**
 * Milliseconds until sprites without an ack are sent again: the first time, for a near peer, and at
 * most. For a far peer the first time is twice the recent round trip and kAckDelay.
 */
constexpr uint64_t kFirstResend = 300;
constexpr uint64_t kLastResend = 2000;

/** A time that does not come. */
constexpr uint64_t kNeverDue = UINT64_MAX;

/**
 * Most numbers that a peer may have taken without its sender's knowledge, after a power cut or with
 * an older file: a million a second for twelve days.
 */
constexpr uint64_t kNumbersAhead = uint64_t{1} << 40;

/**
 * Longest time that an ack waits for a frame to ride on, in milliseconds. The times above include
 * it: a delayed ack arrives before anything is sent again. When a peer without a state dies, the
 * sprites that it took in this time without an ack arrive twice.
 */
constexpr uint64_t kAckDelay = 100;

/** Longest time without a timed frame, in milliseconds, while frames are sent. */
constexpr uint64_t kTimeEvery = 1000;

/** Milliseconds between two questions about the busy ends of rows. */
constexpr uint64_t kAskBusy = 200;

/**
 * Bytes of sprites in a frame; and in flight to a peer (the window): at first, and at most. The
 * window grows by the acked bytes, and lets at least one sprite go. It begins small: sprites that
 * queue on a narrow line also delay the renewals of this server's lease.
 */
constexpr uint64_t kFrameBytes = 128 << 10;
constexpr uint64_t kFirstWindow = 64 << 10;
constexpr uint64_t kWindowBytes = 1 << 20;

/**
 * Where acks take kLongQueue milliseconds longer than the shortest ones, the window is halved, down
 * to kLeastWindow bytes. Above half of kLongQueue the window no longer grows.
 */
constexpr uint64_t kLongQueue = 500;
constexpr uint64_t kLeastWindow = 4 << 10;

/**
 * A sprite that crosses. `hops` is how many servers without its row it may still pass. The first
 * round of the ring looks for the row, the second one for any client. After that no client is left
 * to fly to.
 */
struct Crosser {
  Sprite* sprite;
  uint32_t row;
  Edge exitEdge;  // kLeft or kRight
  uint8_t round;
  uint16_t hops;
};

/** The highest used number and serial: new ones are above these. */
struct UsedNumbers {
  uint64_t number = 0;
  uint64_t serial = 0;
};

class Outbox {
 public:
  Outbox() = default;
  explicit Outbox(const UsedNumbers& used) : base_(used.number + 1), serial_(used.serial) {}
  ~Outbox() {
    for (const Crosser& one : waiting_) Sprite::free(one.sprite);
  }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  /** Replaces an outbox in which nothing waits. */
  Outbox& operator=(Outbox&&) = default;

  UsedNumbers usedNumbers() const { return {base_ - 1, serial_}; }

  /** Appends the sprite, and owns it until it is acked or given back. */
  void push(const Crosser& crosser);

  size_t size() const { return waiting_.size(); }
  /** Sprite::cost of all of them. */
  uint64_t bytes() const { return bytes_; }

  /** Returns whether the peer has reported the node as busy on which a sprite over `exitEdge`
   * lands. */
  bool isBusy(uint32_t row, Edge exitEdge) const {
    return busyEnds_.contains(keyOf(row, exitEdge));
  }

  /** The number of the oldest sprite, or of the next one in an empty outbox: all below are done. */
  uint64_t base() const { return base_; }

  /**
   * Returns when the next frame is due, in milliseconds of a monotonic clock; kNeverDue: not before
   * something else happens.
   */
  uint64_t dueAt() const;

  /** Appends the next frame to `frame`. Returns false when none is due at `now`. */
  bool nextFrame(uint64_t now, const Identity& self, std::string* frame);

  /**
   * Applies an ack of the peer. Calls `release(sprite)` with each sprite that has crossed; it owns
   * the sprite then. Returns false for an ack that makes no sense.
   */
  template <typename Release>
  bool acknowledge(const FrameHead& ack, std::string_view ends, uint64_t now, Release&& release) {
    const uint64_t knownLife = peerLife_;
    if (ack.refusal == FrameRefusal::kOlderLife || !followPeerLife(ack, now)) return true;
    const uint64_t mostAcked = unsettled_ ? kNumbersAhead : maybeSent_;
    if (ack.number >= base_ + mostAcked) return false;
    while (maybeSent_ > 0 && base_ <= ack.number) {
      release(removeOldest());
      resetResend(now);
    }
    if (base_ <= ack.number) base_ = ack.number + 1;
    if (unsettled_ || knownLife != peerLife_) resolveDoubt();
    unsettled_ = false;
    applyRemarks(ack, ends, now);
    return true;
  }

  /** The life of the peer's process, from its newest ack; 0: no ack has come. */
  uint64_t peerLife() const { return peerLife_; }

  /** Pauses sending after a refusal of the peer. */
  void pauseSending(uint64_t now);

  /** Makes a resend due at once: the connection has just been restored. */
  void resendNow() {
    resendDelay_ = firstResend();
    resendAt_ = 0;
    pauseEnd_ = 0;
  }

  /**
   * Notes that the peer has left the ring, or is in it again. Sent sprites are in doubt for at most
   * `doubt` milliseconds.
   */
  void onPeerLeft(uint64_t now, uint64_t doubt);
  void onPeerReturned();

  /** While the peer is gone: the time for endDoubt and returnUnsent; kNeverDue: nothing waits. */
  uint64_t sortOutAt() const {
    if (!peerLeft_ || waiting_.empty()) return kNeverDue;
    return maybeSent_ < waiting_.size() ? 0 : doubtEnd_;
  }

  /** While the peer is gone: ends the doubt if its time is over. Returns how many sprites were in
   * doubt. */
  size_t endDoubt(uint64_t now) { return !peerLeft_ || now < doubtEnd_ ? 0 : endDoubt(); }

  /** Ends the doubt at once. Returns how many sprites were in doubt. */
  size_t endDoubt();

  /**
   * While the peer is gone: hands each sprite that is not in doubt, oldest first, to
   * `accept(crosser)`, which owns it then.
   */
  template <typename Accept>
  void returnUnsent(Accept&& accept) {
    const std::vector<Crosser> unsent(waiting_.begin() + static_cast<ptrdiff_t>(maybeSent_),
                                      waiting_.end());
    waiting_.resize(maybeSent_);
    for (const Crosser& one : unsent) {
      bytes_ -= Sprite::cost(one.sprite->length);
      accept(one);
    }
  }

  /** Removes the sprite at a place, counted from the oldest. The caller owns it then. */
  Crosser removeAt(size_t place);

  /** Removes the oldest sprite, which the peer has taken. The caller owns it then. */
  Sprite* removeOldest();

  /** How many sprites, from the oldest, may have been sent. */
  size_t maybeSent() const { return maybeSent_; }

  /** Sets the number of the oldest sprite, which must be above all used numbers. */
  void setBase(uint64_t base) { base_ = base; }

  /** Whether this process knows what the peer has taken from earlier processes. */
  bool isSettled() const { return !unsettled_; }

  /**
   * How many sprites, from the oldest, a process that starts now must regard as sent. A settled
   * outbox may have sent all of them. An unsettled one has sent none itself.
   */
  size_t maybeSentAtRestart() const { return unsettled_ ? maybeSent_ : waiting_.size(); }

  /** Begins a new process. */
  void beginProcess() {
    maybeSent_ = maybeSentAtRestart();
    unsettled_ = true;
  }

  // Restore what an earlier process has left: how many sprites may have been sent, and that the
  // peer has answered.
  void setMaybeSent(size_t count) { maybeSent_ = count; }
  void setSettled() { unsettled_ = false; }

  /** Calls `visit(crosser)` with each waiting sprite, oldest first. */
  template <typename Visit>
  void each(Visit&& visit) const {
    for (const Crosser& one : waiting_) visit(one);
  }

 private:
  static uint64_t keyOf(uint32_t row, Edge exitEdge) {
    return uint64_t{row} << 1 | static_cast<uint64_t>(exitEdge);
  }

  uint64_t firstResend() const {
    return std::clamp(2 * roundTrip_ + kAckDelay, kFirstResend, kLastResend);
  }
  void measureTrip(uint64_t serial, uint64_t now);
  bool followPeerLife(const FrameHead& ack, uint64_t now);
  void applyRemarks(const FrameHead& ack, std::string_view ends, uint64_t now);
  bool hasMore() const { return nextToSend_ < waiting_.size() && bytesInFlight_ < window_; }
  void resetResend(uint64_t now);
  void restartSending();
  void resolveDoubt();
  void writeQuestions(FrameWriter* writer) const;
  void writeSprites(FrameWriter* writer);

  std::deque<Crosser> waiting_;
  uint64_t bytes_ = 0;
  uint64_t base_ = 1;           // number of the oldest
  size_t nextToSend_ = 0;       // index of the first sprite that is not in flight
  size_t maybeSent_ = 0;        // index of the first sprite that was never sent
  uint64_t bytesInFlight_ = 0;  // Sprite::cost of the sprites before nextToSend_
  uint64_t peerLife_ = 0;       // 0: not known
  uint64_t peerMemory_ = 0;
  uint64_t serial_ = 0;  // of the last frame
  uint64_t fence_ = 0;
  uint64_t questionSerial_ = 0;     // serial of the first frame that asked about the doubt; 0: none
  uint64_t window_ = kFirstWindow;  // bytes that may be in flight; after a resend one sprite
  uint64_t roundTrip_ = 0;          // recent time from a frame to its ack, milliseconds
  uint64_t shortestTrip_ = kLastResend;  // the shortest such time; it slowly grows
  bool windowGrows_ = true;              // whether the window grows: the last timed ack came soon
  uint64_t timedSerial_ = 0;             // serial of the frame whose ack is timed; 0: none
  uint64_t timedAt_ = 0;                 // time of the last timed frame
  uint64_t resendDelay_ = kFirstResend;
  uint64_t resendAt_ = 0;  // time when sprites in flight, or a question, are sent again
  uint64_t pauseEnd_ = 0;
  uint64_t askBusyAt_ = 0;  // time of the next question about busy ends
  uint64_t doubtEnd_ = 0;
  bool peerLeft_ = false;
  bool unsettled_ = true;  // not known what the peer has taken from earlier processes
  std::unordered_set<uint64_t> busyEnds_;
};

}  // namespace server

#endif  // SPRITES_OUTBOX_H_
