#include "crossings.h"

#include <algorithm>

namespace server {

namespace {

/**
 * Returns the deadline of a waiting ack; 0: at once, since the peer is in no ring with this server.
 */
uint64_t ackDueAt(const Peer& peer) { return peer.accepted ? peer.ackDueAt : 0; }

/**
 * Returns whether the store, or an accepted frame, names the peer's process or a later one: every
 * client of NATS can publish frames.
 */
bool isKnownLife(uint64_t life, uint64_t acceptedLife, const Peer& peer) {
  return life <= std::max(acceptedLife, peer.epoch);
}

}  // namespace

bool Crossings::nextMessage(PeerNumber number, uint64_t now, std::string* message) {
  if (!pool_->promising()) return false;
  Peer& peer = seams_->peer(number);
  const bool isFrameDue = now >= peer.outbox.dueAt();
  if (peer.ackSerial != 0 && (isFrameDue || now >= ackDueAt(peer))) {
    FrameWriter({.kind = FrameKind::kAck,
                 .life = life_,
                 .peerLife = peer.sender.life,
                 .serial = peer.ackSerial,
                 .number = peer.lastTaken,
                 .memory = seams_->self().memory},
                message)
        .finish();
    peer.ackSerial = 0;
    if (!isFrameDue) return true;
  }
  return peer.outbox.nextFrame(now, seams_->self(), message);
}

uint64_t Crossings::dueAt() const {
  uint64_t at = kNeverDue;
  for (size_t number = 0; number < seams_->size(); ++number) {
    const Peer& peer = seams_->peer(static_cast<PeerNumber>(number));
    at = std::min({at, peer.outbox.dueAt(), peer.outbox.sortOutAt()});
    if (peer.ackSerial != 0) at = std::min(at, ackDueAt(peer));
  }
  return at;
}

FrameRefusal Crossings::receive(PeerNumber from, std::string_view message, uint64_t now,
                                std::string* answer) {
  const FrameRefusal refusal = readMessage(message, &frames_);
  if (refusal == FrameRefusal::kMalformed) return countRefused(refusal);
  if (!pool_->promising()) return FrameRefusal::kNone;
  const auto& [head, body] = frames_.at[0];
  if (head.kind == FrameKind::kSprites)
    return receiveSprites(from, refusal, frames_.at[0], now, answer);
  if (refusal != FrameRefusal::kNone) {
    seams_->peer(from).outbox.pauseSending(now);
    return countRefused(refusal);
  }
  const FrameRefusal ackRefusal = receiveAck(from, head, body, now);
  // Sprites that ride on a refused ack are not taken, either.
  if (ackRefusal != FrameRefusal::kNone || frames_.count == 1) return ackRefusal;
  return receiveSprites(from, FrameRefusal::kNone, frames_.at[1], now, answer);
}

/** Takes a frame of sprites, and writes or notes its ack. */
FrameRefusal Crossings::receiveSprites(PeerNumber from, FrameRefusal refusal, const Frame& frame,
                                       uint64_t now, std::string* answer) {
  const auto& [head, body] = frame;
  Peer& peer = seams_->peer(from);
  FrameHead ack = {.kind = FrameKind::kAck,
                   .life = life_,
                   .peerLife = head.life,
                   .serial = head.serial,
                   .memory = seams_->self().memory};
  rowEnds_.clear();
  if (refusal == FrameRefusal::kNone) {
    // There is no answer, which would say that nothing was taken.
    if (!isKnownLife(head.life, peer.sender.life, peer))
      return countRefused(FrameRefusal::kNotInRing);
    refusal = checkSender(from, head);
    if (refusal == FrameRefusal::kNone && head.serial >= peer.fence &&
        !acceptSprites(from, head, body)) {
      refusal = FrameRefusal::kFull;
    }
    if (refusal == FrameRefusal::kNone && !head.answerWanted && !isAnyEndBusy()) {
      if (peer.ackSerial == 0) peer.ackDueAt = now + kAckDelay;
      peer.ackSerial = std::max(peer.ackSerial, head.serial);
      return refusal;
    }
    // An ack of a frame that is not taken has the number, too: that much is certain.
    if (head.life == peer.sender.life) ack.number = peer.lastTaken;
  }
  ack.refusal = refusal;
  FrameWriter writer(ack, answer);
  for (const auto& [row, exitEdge] : rowEnds_)
    writer.add({row, exitEdge, pool_->isRowEndBusy(row, exitEdge)});
  writer.finish();
  if (refusal != FrameRefusal::kNone) return countRefused(refusal);
  if (head.serial >= peer.ackSerial) peer.ackSerial = 0;
  return refusal;
}

/** Returns whether a row's end that the frame names has no room for more. */
bool Crossings::isAnyEndBusy() const {
  return std::ranges::any_of(
      rowEnds_, [this](const auto& end) { return pool_->isRowEndBusy(end.first, end.second); });
}

/** Decides whether a frame's sprites may be taken. Notes its sender and its fence. */
FrameRefusal Crossings::checkSender(PeerNumber from, const FrameHead& head) {
  Peer& peer = seams_->peer(from);
  if (head.life < peer.sender.life) return FrameRefusal::kOlderLife;
  if (head.life > peer.sender.life) {
    // From here on no frame of the earlier life counts, and what was taken from it is certain.
    const bool hasSameMemory = head.memory == peer.sender.memory;
    pool_->setSender(from, {.life = head.life, .memory = head.memory},
                     hasSameMemory ? peer.lastTaken : 0);
    peer.fence = 0;
    peer.ackSerial = 0;
  }
  if (head.peerLife != life_) return FrameRefusal::kOtherLife;
  if (head.fence <= head.serial) peer.fence = std::max(peer.fence, head.fence);
  // Numbers below the base are acked, or the sender has given them up. Numbers so far ahead were
  // never sent.
  const bool isFarAhead = peer.lastTaken >= head.base + kNumbersAhead;
  if (head.serial >= peer.fence && head.base > 0 &&
      (head.base > peer.lastTaken + 1 || isFarAhead)) {
    pool_->setSender(from, peer.sender, head.base - 1);
  }
  return peer.accepted ? FrameRefusal::kNone : FrameRefusal::kNotInRing;
}

/** Takes the new sprites of a frame. Returns false when there is no memory for one. */
bool Crossings::acceptSprites(PeerNumber from, const FrameHead& head, std::string_view body) {
  const uint64_t& taken = seams_->peer(from).lastTaken;
  uint64_t number = head.number;
  for (uint32_t i = 0; i < head.count; ++i) {
    std::string_view text;
    const CrosserHead crosser = readCrosser(&body, &text);
    rowEnds_.insert({crosser.row, crosser.exitEdge});
    if (text.empty()) continue;
    if (number > taken + 1) break;
    if (number++ <= taken) continue;
    if (!pool_->crossIn(from, number - 1, crosser, text)) return false;
  }
  return true;
}

/** Applies an ack. */
FrameRefusal Crossings::receiveAck(PeerNumber from, const FrameHead& head, std::string_view body,
                                   uint64_t now) {
  if (head.peerLife != life_) return FrameRefusal::kNone;
  Peer& peer = seams_->peer(from);
  Outbox& outbox = peer.outbox;
  if (!isKnownLife(head.life, outbox.peerLife(), peer))
    return countRefused(FrameRefusal::kNotInRing);
  const uint64_t before = outbox.base();
  const bool wasUnsettled = !outbox.isSettled();
  uint64_t crossed = before;
  const bool isWellFormed = outbox.acknowledge(head, body, now, [&](Sprite* sprite) {
    pool_->crossOut(sprite);
    ++crossed;
  });
  if (crossed > before) pool_->recordCrossedUpTo(from, crossed - 1);
  // After a power cut the peer may have taken more numbers: none of these is of a waiting sprite.
  if (wasUnsettled && outbox.isSettled()) pool_->renumberAfter(from, outbox.base() - 1);
  if (!isWellFormed) return countRefused(FrameRefusal::kMalformed);
  return head.refusal == FrameRefusal::kNone ? FrameRefusal::kNone : countRefused(head.refusal);
}

void Crossings::rerouteStranded(uint64_t now) {
  if (!pool_->promising()) return;
  for (size_t number = 0; number < seams_->size(); ++number) {
    const auto from = static_cast<PeerNumber>(number);
    Peer& peer = seams_->peer(from);
    if (peer.inRing) continue;
    if (const size_t uncertainCount = peer.outbox.endDoubt(now))
      pool_->recordGivenUp(from, uncertainCount);
    const size_t place = peer.outbox.maybeSent();
    peer.outbox.returnUnsent(
        [&](const Crosser& crosser) { pool_->turnBack(from, place, crosser); });
  }
}

}  // namespace server
