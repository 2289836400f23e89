#include "outbox.h"

namespace server {

namespace {

/** Most busy ends of rows that are remembered: sprites to any further ones are just tried. */
constexpr size_t kMaxBusy = 4096;

}  // namespace

void Outbox::push(const Crosser& crosser) {
  waiting_.push_back(crosser);
  bytes_ += Sprite::cost(crosser.sprite->length);
}

// ---- Sending ------------------------------------------------------------------------------------

uint64_t Outbox::dueAt() const {
  if (peerLeft_) return maybeSent_ > 0 ? resendAt_ : kNeverDue;
  uint64_t at = kNeverDue;
  if (unsettled_) {
    if (!waiting_.empty()) at = resendAt_;
  } else {
    if (hasMore()) at = 0;
    if (nextToSend_ > 0) at = std::min(at, resendAt_);
    if (!busyEnds_.empty()) at = std::min(at, askBusyAt_);
  }
  return std::max(at, pauseEnd_);
}

bool Outbox::nextFrame(uint64_t now, const Identity& self, std::string* frame) {
  if (now < dueAt()) return false;
  // The outbox must ask before it sends sprites.
  const bool asksSettle = peerLeft_ || unsettled_;
  const bool isResend = !peerLeft_ && now >= resendAt_ && (nextToSend_ > 0 || unsettled_);
  if (isResend) {
    restartSending();
    resendDelay_ = std::min(2 * resendDelay_, kLastResend);
    window_ = 1;
  }
  const bool hasSprites = !asksSettle && hasMore();
  const bool asksBusy = !asksSettle && !busyEnds_.empty() && now >= askBusyAt_;
  ++serial_;
  if (peerLeft_) {
    fence_ = serial_;
    if (questionSerial_ == 0) questionSerial_ = serial_;
  }
  FrameWriter writer({.life = self.life,
                      .peerLife = peerLife_,
                      .serial = serial_,
                      .number = base_ + nextToSend_,
                      .base = base_,
                      .fence = fence_,
                      .memory = self.memory},
                     frame);
  if (asksSettle || (hasSprites && nextToSend_ == 0)) resendAt_ = now + resendDelay_;
  if (asksBusy) {
    writeQuestions(&writer);
    askBusyAt_ = now + kAskBusy;
  }
  if (hasSprites) writeSprites(&writer);
  const bool isTimed = timedSerial_ == 0 && now >= timedAt_ + kTimeEvery;
  if (asksSettle || asksBusy || isTimed || 2 * bytesInFlight_ >= window_) {
    writer.wantAnswer();
    if (timedSerial_ == 0) {
      timedSerial_ = serial_;
      timedAt_ = now;
    }
  }
  writer.finish();
  return true;
}

/** Asks about busy ends, at most half a frame of them. */
void Outbox::writeQuestions(FrameWriter* writer) const {
  for (const uint64_t key : busyEnds_) {
    if (writer->count() == kMaxInFrame / 2) break;
    writer->add({.row = static_cast<uint32_t>(key >> 1), .exitEdge = Edge(key & 1)}, {});
  }
}

/** Adds sprites, as far as the frame and the window reach. */
void Outbox::writeSprites(FrameWriter* writer) {
  while (nextToSend_ < waiting_.size() && bytesInFlight_ < window_ &&
         writer->count() < kMaxInFrame && writer->bytes() < kFrameBytes) {
    const Crosser& one = waiting_[nextToSend_++];
    const uint64_t length = one.sprite->length;
    writer->add({.length = static_cast<uint32_t>(length),
                 .row = one.row,
                 .from = one.sprite->from,
                 .exitEdge = one.exitEdge,
                 .round = one.round,
                 .hops = one.hops},
                one.sprite->text());
    bytesInFlight_ += Sprite::cost(length);
  }
  maybeSent_ = std::max(maybeSent_, nextToSend_);
}

void Outbox::restartSending() {
  nextToSend_ = 0;
  bytesInFlight_ = 0;
}

void Outbox::pauseSending(uint64_t now) {
  restartSending();
  pauseEnd_ = now + resendDelay_;
  resendDelay_ = std::min(2 * resendDelay_, kLastResend);
}

// ---- Acks ---------------------------------------------------------------------------------------

/**
 * Measures the round trip, only by the ack of a timed frame. When it grows, more is in flight than
 * the line carries.
 */
void Outbox::measureTrip(uint64_t serial, uint64_t now) {
  if (timedSerial_ == 0 || serial < timedSerial_) return;
  // An ack that was stuck somewhere says nothing about the round trip.
  if (serial == timedSerial_ && now - timedAt_ <= kLastResend) {
    const uint64_t trip = now - timedAt_;
    roundTrip_ = trip > roundTrip_ ? trip : (7 * roundTrip_ + trip) / 8;
    // The line itself may have become longer: the shortest time is forgotten little by little.
    shortestTrip_ = std::min(trip, shortestTrip_ + 1);
    if (trip - shortestTrip_ > kLongQueue) window_ = std::max(window_ / 2, kLeastWindow);
    windowGrows_ = trip - shortestTrip_ <= kLongQueue / 2;
  }
  timedSerial_ = 0;
}

/**
 * Learns which process the peer is. Returns false for an ack that says nothing of what was taken.
 */
bool Outbox::followPeerLife(const FrameHead& ack, uint64_t now) {
  if (ack.life < peerLife_ || ack.serial > serial_) return false;
  measureTrip(ack.serial, now);
  if (ack.life == peerLife_) return true;
  const bool hasOtherMemory = !unsettled_ && ack.memory != peerMemory_;
  peerLife_ = ack.life;
  peerMemory_ = ack.memory;
  restartSending();
  busyEnds_.clear();
  resetResend(now);
  // The sprites that the earlier process has taken are gone with it.
  if (hasOtherMemory) resolveDoubt();
  return !hasOtherMemory;
}

/** Learns what an ack says besides its number. */
void Outbox::applyRemarks(const FrameHead& ack, std::string_view ends, uint64_t now) {
  // An ack that refuses a frame for another life has not seen its fence.
  const bool fenced = ack.refusal != FrameRefusal::kOtherLife && ack.serial >= questionSerial_;
  if (peerLeft_ && questionSerial_ != 0 && fenced) resolveDoubt();
  if (ack.refusal == FrameRefusal::kNotInRing || ack.refusal == FrameRefusal::kFull)
    pauseSending(now);
  for (uint32_t i = 0; i < ack.count; ++i) {
    const RowEnd end = readEnd(&ends);
    const uint64_t key = keyOf(end.row, end.exitEdge);
    if (!end.busy) {
      busyEnds_.erase(key);
    } else if (busyEnds_.size() < kMaxBusy && busyEnds_.insert(key).second) {
      askBusyAt_ = now + kAskBusy;
    }
  }
}

Sprite* Outbox::removeOldest() {
  Sprite* const sprite = removeAt(0).sprite;
  ++base_;
  if (windowGrows_) window_ = std::min(window_ + Sprite::cost(sprite->length), kWindowBytes);
  return sprite;
}

Crosser Outbox::removeAt(size_t place) {
  const auto at = waiting_.begin() + static_cast<ptrdiff_t>(place);
  const Crosser one = *at;
  waiting_.erase(at);
  const uint64_t cost = Sprite::cost(one.sprite->length);
  bytes_ -= cost;
  if (place < maybeSent_) --maybeSent_;
  if (place < nextToSend_) {
    --nextToSend_;
    bytesInFlight_ -= cost;
  }
  return one;
}

/** Sets the first resend time again, after progress. */
void Outbox::resetResend(uint64_t now) {
  resendDelay_ = firstResend();
  resendAt_ = now + resendDelay_;
}

// ---- A peer that has left the ring --------------------------------------------------------------

void Outbox::onPeerLeft(uint64_t now, uint64_t doubt) {
  peerLeft_ = true;
  questionSerial_ = 0;
  resendNow();
  doubtEnd_ = now + doubt;
  restartSending();
  busyEnds_.clear();
}

void Outbox::onPeerReturned() {
  peerLeft_ = false;
  restartSending();
  resendNow();
}

/** Ends the doubt: what the peer has taken is known, and no earlier frame counts any more. */
void Outbox::resolveDoubt() { maybeSent_ = 0; }

size_t Outbox::endDoubt() {
  const size_t doubted = maybeSent_;
  // If the peer comes back, it gets other numbers.
  base_ += doubted;
  if (doubted > 0) fence_ = serial_ + 1;
  resolveDoubt();
  return doubted;
}

}  // namespace server
