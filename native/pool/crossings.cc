#include "crossings.h"

#include <algorithm>

namespace server {

bool Crossings::next(PeerNumber peer, uint64_t now, std::string* frame) {
  return seams_->peer(peer).outbox.next(now, life_, frame);
}

Refusal Crossings::receive(PeerNumber from, std::string_view frame, uint64_t now,
                           std::string* answer) {
  FrameHead head;
  std::string_view body;
  Refusal refusal = readFrame(frame, &head, &body);
  Peer& peer = seams_->peer(from);
  if (refusal == Refusal::kMalformed) return count(refusal);
  if (head.kind == FrameKind::kAck) {
    if (refusal == Refusal::kNone) return acked(from, head, body, now);
    peer.outbox.pause(now);
    return count(refusal);
  }
  FrameHead ack = {
      .kind = FrameKind::kAck, .life = life_, .peerLife = head.life, .serial = head.serial};
  ends_.clear();
  if (refusal == Refusal::kNone) {
    refusal = judge(&peer, head);
    // Also for one that takes nothing: what it has is certain.
    ack.number = head.life == peer.life ? peer.taken : 0;
    if (refusal == Refusal::kNone && head.serial >= peer.fence) {
      if (!take(&peer, head, body)) refusal = Refusal::kFull;
      ack.number = peer.taken;
    }
  }
  ack.refusal = refusal;
  FrameWriter writer(ack, answer);
  for (const auto& [row, over] : ends_) writer.add({row, over, pool_->endBusy(row, over)});
  writer.finish();
  return refusal == Refusal::kNone ? refusal : count(refusal);
}

/** Whether a frame's sprites may be taken. Notes the sender's life and its fence. */
Refusal Crossings::judge(Peer* peer, const FrameHead& head) {
  if (head.life < peer->life) return Refusal::kOlderLife;
  if (head.peerLife != life_) return Refusal::kOtherLife;
  if (head.life > peer->life) {
    peer->life = head.life;
    peer->taken = 0;
    peer->fence = 0;
  }
  if (head.fence <= head.serial) peer->fence = std::max(peer->fence, head.fence);
  // What is below has been acked to it, or it has given it up.
  if (head.serial >= peer->fence && head.base > 0) {
    peer->taken = std::max(peer->taken, head.base - 1);
  }
  return peer->accepted ? Refusal::kNone : Refusal::kNotInRing;
}

/** Takes what is new; false when there is no memory for it. */
bool Crossings::take(Peer* peer, const FrameHead& head, std::string_view body) {
  uint64_t number = head.number;
  for (uint32_t i = 0; i < head.count; ++i) {
    std::string_view text;
    const CrosserHead one = takeCrosser(&body, &text);
    ends_.insert({one.row, one.over});
    if (text.empty()) continue;
    if (number > peer->taken + 1) break;
    if (number++ <= peer->taken) continue;
    if (!pool_->crossIn(one, text)) return false;
    ++peer->taken;
  }
  return true;
}

/** Takes an ack. */
Refusal Crossings::acked(PeerNumber from, const FrameHead& head, std::string_view body,
                         uint64_t now) {
  if (head.peerLife != life_) return Refusal::kNone;
  const bool good = seams_->peer(from).outbox.acknowledge(
      head, body, now, [this](Sprite* sprite) { pool_->crossOut(sprite); });
  if (!good) return count(Refusal::kMalformed);
  return head.refusal == Refusal::kNone ? Refusal::kNone : count(head.refusal);
}

void Crossings::sortOut(uint64_t now) {
  for (size_t number = 0; number < seams_->size(); ++number) {
    Peer& peer = seams_->peer(static_cast<PeerNumber>(number));
    if (peer.inRing) continue;
    peer.outbox.giveBack(now, [this](const Crosser& crosser) { pool_->reroute(crosser); });
  }
}

}  // namespace server
