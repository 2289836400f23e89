#include "crossings.h"

#include <algorithm>

namespace server {

bool Crossings::next(PeerNumber peer, uint64_t now, std::string* frame) {
  return pool_->promising() && seams_->peer(peer).outbox.next(now, seams_->self(), frame);
}

Refusal Crossings::receive(PeerNumber from, std::string_view frame, uint64_t now,
                           std::string* answer) {
  FrameHead head;
  std::string_view body;
  Refusal refusal = readFrame(frame, &head, &body);
  Peer& peer = seams_->peer(from);
  if (refusal == Refusal::kMalformed) return count(refusal);
  if (!pool_->promising()) return Refusal::kNone;
  if (head.kind == FrameKind::kAck) {
    if (refusal == Refusal::kNone) return acked(from, head, body, now);
    peer.outbox.pause(now);
    return count(refusal);
  }
  FrameHead ack = {.kind = FrameKind::kAck,
                   .life = life_,
                   .peerLife = head.life,
                   .serial = head.serial,
                   .memory = seams_->self().memory};
  ends_.clear();
  if (refusal == Refusal::kNone) {
    refusal = judge(from, head);
    if (refusal == Refusal::kNone && head.serial >= peer.fence && !take(from, head, body)) {
      refusal = Refusal::kFull;
    }
    // Also for one that takes nothing: what it has is certain.
    if (head.life == peer.sender.life) ack.number = peer.taken;
  }
  ack.refusal = refusal;
  FrameWriter writer(ack, answer);
  for (const auto& [row, over] : ends_) writer.add({row, over, pool_->endBusy(row, over)});
  writer.finish();
  return refusal == Refusal::kNone ? refusal : count(refusal);
}

/** Whether a frame's sprites may be taken. Notes who sends it, and its fence. */
Refusal Crossings::judge(PeerNumber from, const FrameHead& head) {
  Peer& peer = seams_->peer(from);
  if (head.life < peer.sender.life) return Refusal::kOlderLife;
  if (head.life > peer.sender.life) {
    // From here on no frame of the life before counts, and what was taken from it is certain.
    const bool goesOn = head.memory == peer.sender.memory;
    pool_->meet(from, {.life = head.life, .memory = head.memory}, goesOn ? peer.taken : 0);
    peer.fence = 0;
  }
  if (head.peerLife != life_) return Refusal::kOtherLife;
  if (head.fence <= head.serial) peer.fence = std::max(peer.fence, head.fence);
  // What is below has been acked to it, or it has given it up.
  if (head.serial >= peer.fence && head.base > peer.taken + 1) {
    pool_->meet(from, peer.sender, head.base - 1);
  }
  return peer.accepted ? Refusal::kNone : Refusal::kNotInRing;
}

/** Takes what is new; false when there is no memory for it. */
bool Crossings::take(PeerNumber from, const FrameHead& head, std::string_view body) {
  const uint64_t& taken = seams_->peer(from).taken;
  uint64_t number = head.number;
  for (uint32_t i = 0; i < head.count; ++i) {
    std::string_view text;
    const CrosserHead one = takeCrosser(&body, &text);
    ends_.insert({one.row, one.over});
    if (text.empty()) continue;
    if (number > taken + 1) break;
    if (number++ <= taken) continue;
    if (!pool_->crossIn(from, number - 1, one, text)) return false;
  }
  return true;
}

/** Takes an ack. */
Refusal Crossings::acked(PeerNumber from, const FrameHead& head, std::string_view body,
                         uint64_t now) {
  if (head.peerLife != life_) return Refusal::kNone;
  Outbox& outbox = seams_->peer(from).outbox;
  const uint64_t before = outbox.base();
  const bool good =
      outbox.acknowledge(head, body, now, [this](Sprite* sprite) { pool_->crossOut(sprite); });
  if (outbox.base() > before) pool_->crossedUpTo(from, outbox.base() - 1);
  if (!good) return count(Refusal::kMalformed);
  return head.refusal == Refusal::kNone ? Refusal::kNone : count(head.refusal);
}

void Crossings::sortOut(uint64_t now) {
  if (!pool_->promising()) return;
  for (size_t number = 0; number < seams_->size(); ++number) {
    const auto from = static_cast<PeerNumber>(number);
    Peer& peer = seams_->peer(from);
    if (peer.inRing) continue;
    if (const size_t doubted = peer.outbox.giveUp(now)) pool_->giveUp(from, doubted);
    const size_t place = peer.outbox.touched();
    peer.outbox.giveBack([&](const Crosser& crosser) { pool_->turnBack(from, place, crosser); });
  }
}

}  // namespace server
