// An outbox: the sprites that wait to cross to one other server, oldest first.
//
//   first ─▶ [41][42][43] ─▶ [44][45] ─▶ [46][47] ◀─ pushed
//            └ on their way, └ to be sent └ never
//              not acked       again        sent            base = 41, next = 3, touched = 5
//
// A sprite stays until the peer acks its number; what is not acked in time is sent again, with all
// behind it. The numbers go up by one and are not stored. What may be on its way at once is
// bounded, and so is the waiting: see Seams.
//
// ACKS WAIT for each other, or ride on what goes the other way, as one by one they would cost as
// much as sprites do: kAckDelay at most (Crossings). A frame says where its sender wants the answer
// at once: it asks something, it is sent again, half of what may be on its way is, or its way is to
// be timed, as that of an ack that waits says nothing. So waiting delays no sprite.
//
// When the peer leaves the ring, what was never sent is the pool's again at once. What was sent is
// in doubt: the peer may have taken it. So the outbox asks by a frame with a fence, which voids
// every frame before it: the answer says for certain what was taken, and the rest is the pool's
// again. A peer that comes back with another memory has taken nothing. Without an answer within
// the doubt, the rest is the pool's too, and is counted: each of these may arrive twice, if the
// peer was cut off for longer than that and goes on.
//
// A RESTART. With a state an outbox outlives its process: the sprites and the number of the oldest
// are in the journal before a frame has them, and that the peer has taken some is there before its
// ack counts. The next process has the same memory and a new life. So:
//
// - It has sent nothing yet, and may have sent anything before. Frames of the life before are void
//   as soon as the peer has heard of the new one. Therefore each outbox begins `unsettled`: it asks
//   first, by a frame without sprites, and the answer says what the peer has taken from this
//   memory. That is acked; the rest is sent, under the numbers that follow. Where the peer has
//   taken more than is known here (a power cut has taken the last second), the numbers go on
//   behind. That it has answered is in the journal, too: what is pushed before was never sent,
//   and no number that the peer has taken is of one of these, whatever process starts next.
// - A peer that was restarted refuses frames for its life before, and says what its memory has
//   taken: these are all, as no frame that is still on its way counts any more.
//
// Rejected: the same life for the next process (a frame of the one before, late, would count: the
// serials and fences of both would have to be in the journal, frame by frame).
#ifndef SPRITES_OUTBOX_H_
#define SPRITES_OUTBOX_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "mailbox.h"
#include "world_frames.h"

namespace server {

/** Milliseconds until what is not acked is sent again: first, where the peer is near, and at most.
 * Where it is far it is twice as long as an ack has taken of late. */
constexpr uint64_t kFirstResend = 300;
constexpr uint64_t kLastResend = 2000;

/** Of a time: it does not come. */
constexpr uint64_t kNeverDue = UINT64_MAX;

/** By so many numbers a peer may have taken more than its sender knows of, after a power cut or
 * with an older file: a million a second in twelve days. */
constexpr uint64_t kNumbersAhead = uint64_t{1} << 40;

/** Milliseconds that an ack may wait for something to ride on. It is in the times above: an ack
 * that waits is there before anything is sent again. Where a peer dies that keeps no state, what it
 * has taken for so long and not acked arrives twice. */
constexpr uint64_t kAckDelay = 100;

/** Milliseconds after which one more frame is timed. */
constexpr uint64_t kTimeEvery = 1000;

/** Milliseconds between questions for the ends of rows that are busy. */
constexpr uint64_t kAskBusy = 200;

/** Bytes of sprites in a frame, and on their way to a peer at once: at first, and at most. It grows
 * by what is acked, and one sprite always goes: what waits on a narrow line keeps the renewals of
 * this server's lease waiting, too. */
constexpr uint64_t kFrameBytes = 128 << 10;
constexpr uint64_t kFirstWindow = 64 << 10;
constexpr uint64_t kWindowBytes = 1 << 20;

/** Where acks take so many milliseconds longer than they need to, half as much is sent at once,
 * down to that; where it is more than half of it, no more than before. */
constexpr uint64_t kLongQueue = 500;
constexpr uint64_t kLeastWindow = 4 << 10;

/**
 * A sprite that crosses. Its hops are the servers it may still pass that don't have its row. The
 * first round of the ring looks for the row, the second for any client; then no client is left
 * to fly to.
 */
struct Crosser {
  Sprite* sprite;
  uint32_t row;
  Edge over;  // kLeft or kRight
  uint8_t round;
  uint16_t hops;
};

/** What is sent has numbers and serials above these: they were used. */
struct Used {
  uint64_t number = 0;
  uint64_t serial = 0;
};

class Outbox {
 public:
  Outbox() = default;
  explicit Outbox(const Used& used) : base_(used.number + 1), serial_(used.serial) {}
  ~Outbox() {
    for (const Crosser& one : waiting_) Sprite::free(one.sprite);
  }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  /** Takes the place of one in which nothing waits. */
  Outbox& operator=(Outbox&&) = default;

  Used used() const { return {base_ - 1, serial_}; }

  /** Takes the sprite, and owns it until it is acked or given back. */
  void push(const Crosser& crosser);

  size_t size() const { return waiting_.size(); }
  /** Sprite::cost of all of them. */
  uint64_t bytes() const { return bytes_; }

  /** Whether the peer has said that the node is busy that a sprite over `over` lands on. */
  bool busy(uint32_t row, Edge over) const { return busy_.contains(keyOf(row, over)); }

  /** The number of the oldest sprite, or of the next one: all below are done with. */
  uint64_t base() const { return base_; }

  /** When there is something to be sent, if nothing happens before; kNeverDue: only then.
   * Milliseconds of a clock that never goes back. */
  uint64_t dueAt() const;

  /** Writes the next frame behind what is in `frame`; false when none is due at `now`. */
  bool next(uint64_t now, const Identity& self, std::string* frame);

  /**
   * Takes an ack of the peer. Calls `release(sprite)`, which owns it then, with each that has
   * crossed. Returns false when it makes no sense.
   */
  template <typename Release>
  bool acknowledge(const FrameHead& ack, std::string_view ends, uint64_t now, Release&& release) {
    const uint64_t life = peerLife_;
    if (ack.refusal == FrameRefusal::kOlderLife || !follow(ack, now)) return true;
    const uint64_t most = unsettled_ ? kNumbersAhead : touched_;
    if (ack.number >= base_ + most) return false;
    while (touched_ > 0 && base_ <= ack.number) {
      release(takeFirst());
      calm(now);
    }
    if (base_ <= ack.number) base_ = ack.number + 1;
    if (unsettled_ || life != peerLife_) resolve();
    unsettled_ = false;
    learn(ack, ends, now);
    return true;
  }

  /** The peer's process by its newest ack; 0: none has come. */
  uint64_t peerLife() const { return peerLife_; }

  /** Sends nothing for a while: the peer has refused. */
  void pause(uint64_t now);

  /** Sends without delay what would be sent again: the way there was mended just now. */
  void hurry() {
    resend_ = firstResend();
    resendAt_ = 0;
    pauseEnd_ = 0;
  }

  /** The peer is not in the ring from now on; or it is again. What is in doubt may be for
   * `doubt` milliseconds. */
  void part(uint64_t now, uint64_t doubt);
  void rejoin();

  /** While parted: when what waits is to be given up, or back; kNeverDue: nothing waits. */
  uint64_t sortedAt() const {
    if (!parted_ || waiting_.empty()) return kNeverDue;
    return touched_ < waiting_.size() ? 0 : doubtEnd_;
  }

  /** While parted: ends the doubt if its time is over; how many sprites were in it. */
  size_t giveUp(uint64_t now) { return !parted_ || now < doubtEnd_ ? 0 : giveUp(); }

  /** Does so at once. */
  size_t giveUp();

  /** While parted: gives what is not in doubt, oldest first, to `give(crosser)`, which owns it
   * then.
   */
  template <typename Give>
  void giveBack(Give&& give) {
    const std::vector<Crosser> back(waiting_.begin() + static_cast<ptrdiff_t>(touched_),
                                    waiting_.end());
    waiting_.resize(touched_);
    for (const Crosser& one : back) {
      bytes_ -= Sprite::cost(one.sprite->length);
      give(one);
    }
  }

  /** The sprite at a place, counted from the oldest, is the caller's. */
  Crosser takeAt(size_t place);

  /** The same for the oldest, which the peer has taken. */
  Sprite* takeFirst();

  /** How many may have been sent. */
  size_t touched() const { return touched_; }

  /** The oldest has that number from now on, which is above all that were used. */
  void number(uint64_t base) { base_ = base; }

  /** Whether it is known what the peer has taken from the processes before. */
  bool settled() const { return !unsettled_; }

  /** How many, from the oldest, a process that begins now must take for sent: all, where this one
   * knows what the peer has taken, and may have sent more; else those that were left to it. */
  size_t mayBeSent() const { return unsettled_ ? touched_ : waiting_.size(); }

  /** A process begins. */
  void begin() {
    touched_ = mayBeSent();
    unsettled_ = true;
  }

  // What a process before has left, as it is read: how many are to be taken for sent, and that the
  // peer has answered.
  void sent(size_t count) { touched_ = count; }
  void settle() { unsettled_ = false; }

  /** Calls `see(crosser)` with each that waits, oldest first. */
  template <typename See>
  void each(See&& see) const {
    for (const Crosser& one : waiting_) see(one);
  }

 private:
  static uint64_t keyOf(uint32_t row, Edge over) {
    return uint64_t{row} << 1 | static_cast<uint64_t>(over);
  }

  uint64_t firstResend() const {
    return std::clamp(2 * roundTrip_ + kAckDelay, kFirstResend, kLastResend);
  }
  void measure(uint64_t serial, uint64_t now);
  bool follow(const FrameHead& ack, uint64_t now);
  void learn(const FrameHead& ack, std::string_view ends, uint64_t now);
  bool hasMore() const { return next_ < waiting_.size() && flight_ < window_; }
  void calm(uint64_t now);
  void sendAgain();
  void resolve();
  void ask(FrameWriter* writer) const;
  void fill(FrameWriter* writer);

  std::deque<Crosser> waiting_;
  uint64_t bytes_ = 0;
  uint64_t base_ = 1;      // number of the oldest
  size_t next_ = 0;        // the first of them that is not on its way
  size_t touched_ = 0;     // the first of them that was never sent
  uint64_t flight_ = 0;    // Sprite::cost of those before next_
  uint64_t peerLife_ = 0;  // 0: not known
  uint64_t peerMemory_ = 0;
  uint64_t serial_ = 0;  // of the last frame
  uint64_t fence_ = 0;
  uint64_t asked_ = 0;  // serial of the first frame that asked for what is in doubt; 0: none has
  uint64_t window_ = kFirstWindow;    // what may be on its way: one sprite while no ack comes
  uint64_t roundTrip_ = 0;            // milliseconds from a frame to its ack, of late
  uint64_t leastTrip_ = kLastResend;  // the same, where nothing was in the way
  bool grows_ = true;                 // what may be on its way: the last ack was soon there
  uint64_t timed_ = 0;                // serial of the frame whose ack is timed; 0: none is
  uint64_t timedAt_ = 0;              // when it was sent
  uint64_t resend_ = kFirstResend;
  uint64_t resendAt_ = 0;  // when what is on its way, or a question, is sent again
  uint64_t pauseEnd_ = 0;
  uint64_t askAt_ = 0;  // when busy ends are asked for
  uint64_t doubtEnd_ = 0;
  bool parted_ = false;
  bool unsettled_ = true;  // what the peer has taken from the processes before is not known
  std::unordered_set<uint64_t> busy_;
};

}  // namespace server

#endif  // SPRITES_OUTBOX_H_
