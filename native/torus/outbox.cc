#include "outbox.h"

namespace server {

namespace {

/** Most busy ends of rows that are remembered: sprites to any further ones are just tried. */
constexpr size_t kMostBusy = 4096;

}  // namespace

void Outbox::push(const Crosser& crosser) {
  waiting_.push_back(crosser);
  bytes_ += Sprite::cost(crosser.sprite->length);
}

// ---- Sending ------------------------------------------------------------------------------------

uint64_t Outbox::dueAt() const {
  if (parted_) return touched_ > 0 ? resendAt_ : kNeverDue;
  uint64_t at = kNeverDue;
  if (unsettled_) {
    if (!waiting_.empty()) at = resendAt_;
  } else {
    if (hasMore()) at = 0;
    if (next_ > 0) at = std::min(at, resendAt_);
    if (!busy_.empty()) at = std::min(at, askAt_);
  }
  return std::max(at, pauseEnd_);
}

bool Outbox::next(uint64_t now, const Identity& self, std::string* frame) {
  if (now < dueAt()) return false;
  // The outbox must ask before it sends sprites.
  const bool settles = parted_ || unsettled_;
  const bool again = !parted_ && now >= resendAt_ && (next_ > 0 || unsettled_);
  if (again) {
    sendAgain();
    resend_ = std::min(2 * resend_, kLastResend);
    window_ = 1;
  }
  const bool sends = !settles && hasMore();
  const bool asks = !settles && !busy_.empty() && now >= askAt_;
  ++serial_;
  if (parted_) {
    fence_ = serial_;
    if (asked_ == 0) asked_ = serial_;
  }
  FrameWriter writer({.life = self.life,
                      .peerLife = peerLife_,
                      .serial = serial_,
                      .number = base_ + next_,
                      .base = base_,
                      .fence = fence_,
                      .memory = self.memory},
                     frame);
  if (settles || (sends && next_ == 0)) resendAt_ = now + resend_;
  if (asks) {
    ask(&writer);
    askAt_ = now + kAskBusy;
  }
  if (sends) fill(&writer);
  const bool times = timed_ == 0 && now >= timedAt_ + kTimeEvery;
  if (settles || asks || times || 2 * flight_ >= window_) {
    writer.wantAnswer();
    if (timed_ == 0) {
      timed_ = serial_;
      timedAt_ = now;
    }
  }
  writer.finish();
  return true;
}

/** Asks about busy ends, at most half a frame of them. */
void Outbox::ask(FrameWriter* writer) const {
  for (const uint64_t key : busy_) {
    if (writer->count() == kMostInFrame / 2) break;
    writer->add({.row = static_cast<uint32_t>(key >> 1), .over = Edge(key & 1)}, {});
  }
}

/** Adds sprites, as far as the frame and the window reach. */
void Outbox::fill(FrameWriter* writer) {
  while (next_ < waiting_.size() && flight_ < window_ && writer->count() < kMostInFrame &&
         writer->bytes() < kFrameBytes) {
    const Crosser& one = waiting_[next_++];
    const uint64_t length = one.sprite->length;
    writer->add({.length = static_cast<uint32_t>(length),
                 .row = one.row,
                 .from = one.sprite->from,
                 .over = one.over,
                 .round = one.round,
                 .hops = one.hops},
                one.sprite->text());
    flight_ += Sprite::cost(length);
  }
  touched_ = std::max(touched_, next_);
}

void Outbox::sendAgain() {
  next_ = 0;
  flight_ = 0;
}

void Outbox::pause(uint64_t now) {
  sendAgain();
  pauseEnd_ = now + resend_;
  resend_ = std::min(2 * resend_, kLastResend);
}

// ---- Acks ---------------------------------------------------------------------------------------

/**
 * Measures the round trip, only by the ack of a timed frame. When it grows, more is in flight than
 * the line carries.
 */
void Outbox::measure(uint64_t serial, uint64_t now) {
  if (timed_ == 0 || serial < timed_) return;
  // An ack that was stuck somewhere says nothing about the round trip.
  if (serial == timed_ && now - timedAt_ <= kLastResend) {
    const uint64_t took = now - timedAt_;
    roundTrip_ = took > roundTrip_ ? took : (7 * roundTrip_ + took) / 8;
    // The line itself may have become longer: the shortest time is forgotten little by little.
    leastTrip_ = std::min(took, leastTrip_ + 1);
    if (took - leastTrip_ > kLongQueue) window_ = std::max(window_ / 2, kLeastWindow);
    grows_ = took - leastTrip_ <= kLongQueue / 2;
  }
  timed_ = 0;
}

/**
 * Learns which process the peer is. Returns false for an ack that says nothing of what was taken.
 */
bool Outbox::follow(const FrameHead& ack, uint64_t now) {
  if (ack.life < peerLife_ || ack.serial > serial_) return false;
  measure(ack.serial, now);
  if (ack.life == peerLife_) return true;
  const bool forgets = !unsettled_ && ack.memory != peerMemory_;
  peerLife_ = ack.life;
  peerMemory_ = ack.memory;
  sendAgain();
  busy_.clear();
  calm(now);
  // The sprites that the earlier process has taken are gone with it.
  if (forgets) resolve();
  return !forgets;
}

/** Learns what an ack says besides its number. */
void Outbox::learn(const FrameHead& ack, std::string_view ends, uint64_t now) {
  // An ack that refuses a frame for another life has not seen its fence.
  const bool fenced = ack.refusal != FrameRefusal::kOtherLife && ack.serial >= asked_;
  if (parted_ && asked_ != 0 && fenced) resolve();
  if (ack.refusal == FrameRefusal::kNotInRing || ack.refusal == FrameRefusal::kFull) pause(now);
  for (uint32_t i = 0; i < ack.count; ++i) {
    const RowEnd end = takeEnd(&ends);
    const uint64_t key = keyOf(end.row, end.over);
    if (!end.busy) {
      busy_.erase(key);
    } else if (busy_.size() < kMostBusy && busy_.insert(key).second) {
      askAt_ = now + kAskBusy;
    }
  }
}

Sprite* Outbox::takeFirst() {
  Sprite* const sprite = takeAt(0).sprite;
  ++base_;
  if (grows_) window_ = std::min(window_ + Sprite::cost(sprite->length), kWindowBytes);
  return sprite;
}

Crosser Outbox::takeAt(size_t place) {
  const auto at = waiting_.begin() + static_cast<ptrdiff_t>(place);
  const Crosser one = *at;
  waiting_.erase(at);
  const uint64_t cost = Sprite::cost(one.sprite->length);
  bytes_ -= cost;
  if (place < touched_) --touched_;
  if (place < next_) {
    --next_;
    flight_ -= cost;
  }
  return one;
}

/** Sets the first resend time again, after progress. */
void Outbox::calm(uint64_t now) {
  resend_ = firstResend();
  resendAt_ = now + resend_;
}

// ---- A peer that has left the ring --------------------------------------------------------------

void Outbox::part(uint64_t now, uint64_t doubt) {
  parted_ = true;
  asked_ = 0;
  hurry();
  doubtEnd_ = now + doubt;
  sendAgain();
  busy_.clear();
}

void Outbox::rejoin() {
  parted_ = false;
  sendAgain();
  hurry();
}

/** Ends the doubt: what the peer has taken is known, and no earlier frame counts any more. */
void Outbox::resolve() { touched_ = 0; }

size_t Outbox::giveUp() {
  const size_t doubted = touched_;
  // If the peer comes back, it gets other numbers.
  base_ += doubted;
  if (doubted > 0) fence_ = serial_ + 1;
  resolve();
  return doubted;
}

}  // namespace server
