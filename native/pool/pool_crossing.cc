// Sprites that cross to another server of the world, and those that come from one: see seams.h.
#include <algorithm>

#include "pool.h"
#include "seams.h"

namespace server {

namespace {

/** Leavers in a row that are passed by on the way to a row's end. */
constexpr int kPassedToEnd = 64;

}  // namespace

// ---- Out ----------------------------------------------------------------------------------------

/**
 * Whether a sprite that `record` sends over an edge comes to the end of its row, past nobody but
 * leavers, and another server's row goes on there.
 */
bool Pool::seamBeyond(uint32_t record, Edge edge, Seam* seam) const {
  if (edge == Edge::kUp || edge == Edge::kDown) return false;
  for (int passed = 0; passed <= kPassedToEnd; ++passed) {
    if (torus_.closesRow(record, edge)) {
      const uint32_t row = torus_.cycleOf(record);
      *seam = {seams_->beyond(row, edge), row, edge};
      return seam->peer != kNoPeer;
    }
    record = torus_.neighbor(record, edge);
    if (clients_[record].live) break;
  }
  return false;
}

/** The same for one that flies on: it passes a closed seam by, unless there is nowhere else. */
bool Pool::seamForFlight(uint32_t record, Edge edge, Seam* seam) const {
  if (seams_ == nullptr || (!seams_->open() && counts_.clients > 0)) return false;
  return seamBeyond(record, edge, seam);
}

/** A throw of `client`, which may throw, over a seam. */
Outcome Pool::throwOver(Client* client, const Seam& seam, uint64_t number, std::string_view text,
                        uint64_t now) {
  const uint32_t cost = Sprite::cost(text.size());
  if (!seams_->takes(seam, cost)) return Outcome::kNeighborBusy;
  if (counts_.mailboxBytes + cost > options_.mailboxMemory) return Outcome::kMailboxesFull;
  if (!limits_->charge(client->source, Sprite::charge(text.size()))) {
    return Outcome::kTooManySprites;
  }
  Sprite* sprite =
      Sprite::make(text, opposite(seam.over), client->source, deliveryTimes_.stamp(now));
  if (number != kNoNumber) remember(client, number);
  counts_.mailboxBytes += cost;
  ++counts_.waiting;
  ++counts_.thrown;
  send(seam.peer, {sprite, seam.row, seam.over, 0, 0});
  return Outcome::kQueued;
}

/** The oldest sprite of `from`, which leaves, flies on over a seam. */
void Pool::flyOver(Client* from, const Seam& seam) {
  Sprite* sprite = takeOldest(from);
  chargeTo(from->source, sprite);
  ++counts_.flown;
  send(seam.peer, {sprite, seam.row, seam.over, 0, 0});
}

/** A sprite sets out for `peer`, with a whole round of the ring before it. */
void Pool::send(PeerNumber peer, Crosser crosser) {
  crosser.round = 0;
  crosser.hops = seams_->members();
  seams_->push(peer, crosser);
}

void Pool::crossOut(Sprite* sprite) {
  ++counts_.crossedOut;
  forget(sprite);
}

// ---- In -----------------------------------------------------------------------------------------

/**
 * Whether there is memory for `cost` more bytes from another server. What waits in outboxes does
 * not count: two servers full of what they have for each other would never take any of it. So what
 * comes may take as much memory again, at most.
 */
bool Pool::hasRoomFor(uint32_t cost) const {
  const uint64_t all = counts_.mailboxBytes + cost;
  const uint64_t memory = options_.mailboxMemory;
  return all <= memory || (all <= 2 * memory && all - seams_->bytes() <= memory);
}

bool Pool::crossIn(const CrosserHead& head, std::string_view text) {
  const uint32_t cost = Sprite::cost(text.size());
  if (!hasRoomFor(cost)) return false;
  counts_.mailboxBytes += cost;
  ++counts_.waiting;
  ++counts_.crossedIn;
  Sprite* sprite = Sprite::make(text, head.from, kNoSource, deliveryTimes_.stamp(time()));
  arrive({sprite, head.row, head.over, head.round, head.hops});
  return true;
}

void Pool::reroute(const Crosser& crosser) {
  const PeerNumber peer = seams_->beyond(crosser.row, crosser.over);
  if (peer == kNoPeer) return arrive(crosser);
  send(peer, crosser);
}

/** Rows that somebody lives in. */
uint32_t Pool::rowsToLand() const { return counts_.clients == 0 ? 0 : torus_.cycles(); }

/**
 * A sprite has come from another server, or found none: it lands in its row; without that row here
 * it goes on around the ring; with no more hops it lands wherever somebody is; and with nobody in
 * the whole ring it is lost.
 */
void Pool::arrive(Crosser crosser) {
  const uint32_t rows = rowsToLand();
  const PeerNumber next = seams_->next(crosser.over);
  const bool anywhere = crosser.round > 0 || crosser.hops == 0 || next == kNoPeer;
  if (crosser.row < rows || (anywhere && rows > 0)) {
    return land(crosser.sprite, endOf(std::min(crosser.row, rows - 1), crosser.over));
  }
  if (next == kNoPeer || (crosser.round > 0 && crosser.hops == 0)) {
    ++counts_.lost;
    return forget(crosser.sprite);
  }
  if (crosser.hops > 0) {
    --crosser.hops;
  } else {
    crosser.round = 1;
    crosser.hops = seams_->members();
  }
  seams_->push(next, crosser);
}

/** The record that a sprite lands on which crosses over `over` into `row`, one of this server's. */
uint32_t Pool::endOf(uint32_t row, Edge over) const {
  const uint32_t end = over == Edge::kRight ? torus_.firstOfCycle(row) : torus_.lastOfCycle(row);
  if (clients_[end].live) return end;
  const uint32_t next = nextLive(end, over);
  return next == Torus::kNone ? end : next;
}

/** Whether a mailbox has no room for `cost` more bytes of a sprite that has crossed. */
bool Pool::isFull(const Client& client, uint32_t cost) const {
  return client.behind || (client.mailbox.waiting > 0 && !fits(client.mailbox, cost));
}

/** Puts a sprite into a mailbox, or where that is full behind it: it is promised already. */
void Pool::land(Sprite* sprite, uint32_t record) {
  Client& to = clients_[record];
  if (isFull(to, Sprite::cost(sprite->length))) {
    backlogs_.push(record, sprite);
    to.behind = true;
  } else {
    to.mailbox.push(sprite);
  }
  if (to.holder != PollHolder::kNobody) makeReady(&to);
}

bool Pool::endBusy(uint32_t row, Edge over) const {
  return row < rowsToLand() && isFull(clients_[endOf(row, over)], Sprite::cost(0));
}

}  // namespace server
