// Sprites that cross to other servers of the world, and sprites that come from there: see seams.h.
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "base/journal.h"
#include "pool.h"
#include "seams.h"

namespace server {

namespace {

/** Most leavers in sequence that are passed by on the way to a row's end. */
constexpr int kPassedToEnd = 64;

/** Returns a number that no other memory has: never 0, and exact in JavaScript. */
uint64_t newMemory() {
  uint64_t number;
  do {
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
    number &= kMostCounted;
  } while (number == 0);
  return number;
}

CrossText wayOf(const CrosserHead& head) {
  return {.row = head.row,
          .hops = head.hops,
          .exitEdge = static_cast<uint8_t>(head.exitEdge),
          .round = head.round,
          .peer = kNoPeer,
          .stay = Stay::kNowhere,
          .unused = {}};
}

}  // namespace

// ---- What outlives the process ------------------------------------------------------------------

Seams* Pool::enterWorld() {
  if (keptSeams_ == nullptr) {
    keptSeams_ = std::make_unique<Seams>(newMemory());
    if (journal_ != nullptr) journal_->memory(keptSeams_->self().memory);
  }
  return keptSeams_.get();
}

void Pool::openSeams(const SeamsOptions& options, std::function<void()> wake) {
  seams_ = enterWorld();
  seams_->open(options, std::move(wake));
}

void Pool::closeSeams() {
  if (seams_ != nullptr) seams_->close();
  seams_ = nullptr;
}

void Pool::setLife(uint64_t life) {
  keptSeams_->setLife(life);
  if (journal_ != nullptr) journal_->life(life);
}

PeerNumber Pool::know(std::string_view name) {
  const PeerNumber known = keptSeams_->find(name);
  if (known != kNoPeer || keptSeams_->size() == kMostPeers) return known;
  const PeerNumber peer = keptSeams_->add(name);
  if (journal_ != nullptr) journal_->peer(peer, name);
  return peer;
}

bool Pool::replace(PeerNumber number, std::string_view name, bool emptied) {
  const Peer& peer = keptSeams_->peer(number);
  if (peer.inRing || peer.accepted || (peer.lastTaken > 0 && !emptied)) return false;
  if (!keptSeams_->replace(number, name)) return false;
  if (journal_ != nullptr) journal_->peer(number, name);
  return true;
}

void Pool::meet(PeerNumber number, const Identity& sender, uint64_t taken) {
  Peer& peer = keptSeams_->peer(number);
  peer.sender = sender;
  peer.lastTaken = taken;
  if (journal_ != nullptr) journal_->meet(number, sender.life, {sender.memory, taken});
}

// ---- Out ----------------------------------------------------------------------------------------

/**
 * Returns whether a sprite that `record` sends over an edge comes to the end of its row, past
 * leaving clients only, and the row goes on at another server.
 */
bool Pool::seamBeyond(uint32_t record, Edge edge, Seam* seam) const {
  if (edge == Edge::kUp || edge == Edge::kDown) return false;
  for (int passed = 0; passed <= kPassedToEnd; ++passed) {
    if (torus_.closesRow(record, edge)) {
      const uint32_t row = torus_.cycleOf(record);
      *seam = {seams_->peerBeyond(row, edge), row, edge};
      return seam->peer != kNoPeer;
    }
    record = torus_.neighbor(record, edge);
    if (clients_[record].live) break;
  }
  return false;
}

/**
 * Returns whether a sprite that flies on from `record` comes to a seam. It passes a closed seam by,
 * unless there is nowhere else to fly.
 */
bool Pool::seamForFlight(uint32_t record, Edge edge, Seam* seam) const {
  if (seams_ == nullptr || (!seams_->isOpen() && counts_.clients > 0)) return false;
  return seamBeyond(record, edge, seam);
}

/** Returns the way of a sprite that starts at `seam`, with a whole round of the ring before it. */
CrossText Pool::setOut(const Seam& seam) const {
  return {.row = seam.row,
          .hops = seams_->memberCount(),
          .exitEdge = static_cast<uint8_t>(seam.exitEdge),
          .round = 0,
          .peer = seam.peer,
          .stay = Stay::kOutbox,
          .unused = {}};
}

/** Throws a sprite over a seam. `client` may throw. */
Outcome Pool::throwOver(Client* client, const Seam& seam, uint64_t number, std::string_view text,
                        uint64_t now) {
  const uint32_t cost = Sprite::cost(text.size());
  if (!seams_->accepts(seam, cost)) return Outcome::kNeighborBusy;
  if (counts_.mailboxBytes + cost > options_.mailboxMemory) return Outcome::kMailboxesFull;
  if (!limits_->charge(client->source, Sprite::charge(text.size()))) {
    return Outcome::kTooManySprites;
  }
  const CrossText way = setOut(seam);
  const Edge from = opposite(seam.exitEdge);
  takeThrown(client, number, from, text, now, way);
  if (journal_ != nullptr) {
    journal_->cross({.step = JournalStep::kThrowOver,
                     .from = static_cast<uint8_t>(from),
                     .record = numberOf(client),
                     .other = seam.peer,
                     .number = number},
                    way, text);
  }
  return Outcome::kQueued;
}

/** Applies a throw over a seam. */
void Pool::takeThrown(Client* thrower, uint64_t number, Edge from, std::string_view text,
                      uint64_t now, const CrossText& way) {
  if (number != kNoNumber) remember(thrower, number);
  counts_.mailboxBytes += Sprite::cost(text.size());
  ++counts_.waiting;
  ++counts_.thrown;
  put(Sprite::make(text, from, thrower->source, deliveryTimes_.stamp(now)), way, kNoLanding);
}

/** Lets the oldest sprite of the leaving client `from` fly on over a seam. */
void Pool::flyOver(Client* from, const CrossText& way) {
  Sprite* sprite = takeOldest(from);
  chargeTo(from->source, sprite);
  ++counts_.flown;
  put(sprite, way, kNoLanding);
}

void Pool::crossOut(Sprite* sprite) {
  ++counts_.crossedOut;
  forget(sprite);
}

void Pool::crossedUpTo(PeerNumber peer, uint64_t number) {
  if (journal_ != nullptr) journal_->crossOut(peer, number);
}

void Pool::goOnBehind(PeerNumber peer, uint64_t number) {
  if (journal_ != nullptr) journal_->numberAfter(peer, number);
}

void Pool::giveUp(PeerNumber peer, uint64_t count) {
  counts_.doubted += count;
  if (journal_ != nullptr) journal_->giveUp(peer, count);
}

// ---- In -----------------------------------------------------------------------------------------

/**
 * Returns whether there is memory for `cost` more bytes from another server. Sprites in outboxes do
 * not count: else two servers full of sprites for each other would never take any of them. So
 * sprites from other servers may take at most as much memory again.
 */
bool Pool::hasRoomFor(uint32_t cost) const {
  const uint64_t all = counts_.mailboxBytes + cost;
  const uint64_t memory = options_.mailboxMemory;
  return all <= memory || (all <= 2 * memory && all - seams_->bytes() <= memory);
}

bool Pool::crossIn(PeerNumber peer, uint64_t number, const CrosserHead& head,
                   std::string_view text) {
  const uint32_t cost = Sprite::cost(text.size());
  if (!hasRoomFor(cost)) return false;
  CrossText way = wayOf(head);
  const uint32_t record = chart(&way, cost);
  takeCrossed(&keptSeams_->peer(peer), number, head.from, text, way, record);
  if (journal_ != nullptr) {
    journal_->cross({.step = JournalStep::kCrossIn,
                     .from = static_cast<uint8_t>(head.from),
                     .record = record,
                     .other = peer,
                     .number = number},
                    way, text);
  }
  return true;
}

/** Applies the arrival of a sprite from another server. */
void Pool::takeCrossed(Peer* from, uint64_t number, Edge enters, std::string_view text,
                       const CrossText& way, uint32_t record) {
  from->lastTaken = number;
  counts_.mailboxBytes += Sprite::cost(text.size());
  ++counts_.waiting;
  ++counts_.crossedIn;
  put(Sprite::make(text, enters, kNoSource, deliveryTimes_.stamp(time())), way, record);
}

void Pool::turnBack(PeerNumber peer, uint64_t place, const Crosser& crosser) {
  const PeerNumber next =
      seams_ == nullptr ? kNoPeer : seams_->peerBeyond(crosser.row, crosser.exitEdge);
  CrossText way = next == kNoPeer
                      ? wayOf({.length = 0,
                               .row = crosser.row,
                               .exitEdge = crosser.exitEdge,
                               .round = crosser.round,
                               .hops = crosser.hops})
                      : setOut({.peer = next, .row = crosser.row, .exitEdge = crosser.exitEdge});
  const uint32_t record =
      next == kNoPeer ? chart(&way, Sprite::cost(crosser.sprite->length)) : kNoLanding;
  put(crosser.sprite, way, record);
  if (journal_ != nullptr) {
    journal_->cross(
        {.step = JournalStep::kTurnBack, .record = record, .other = peer, .number = place}, way,
        {});
  }
}

uint64_t Pool::endWorld() {
  uint64_t sprites = 0;
  if (keptSeams_ != nullptr) keptSeams_->beginProcess();
  for (size_t number = 0; keptSeams_ != nullptr && number < keptSeams_->size(); ++number) {
    const auto peer = static_cast<PeerNumber>(number);
    Outbox& outbox = keptSeams_->peer(peer).outbox;
    sprites += outbox.size();
    if (const size_t doubted = outbox.endDoubt()) giveUp(peer, doubted);
    outbox.returnUnsent([&](const Crosser& crosser) { turnBack(peer, 0, crosser); });
  }
  return sprites;
}

/** Number of rows with clients. */
uint32_t Pool::rowsToLand() const { return counts_.clients == 0 ? 0 : torus_.cycles(); }

/**
 * Decides where a sprite goes that has come from another server, or that found no server to go to.
 * It lands in its row. Without that row here it goes on around the ring. With no more hops it lands
 * on any client. With no client in the whole ring it is lost. Fills in the rest of `way`. Returns
 * the record that it lands on, or kNoLanding.
 */
uint32_t Pool::chart(CrossText* way, uint32_t cost) const {
  const uint32_t rows = rowsToLand();
  const Edge exitEdge{way->exitEdge};
  // A frame may claim more hops, but a world has no more servers.
  way->hops = std::min<uint16_t>(way->hops, kMostPeers);
  way->peer = seams_ == nullptr ? kNoPeer : seams_->ringNeighbor(exitEdge);
  const bool anywhere = way->round > 0 || way->hops == 0 || way->peer == kNoPeer;
  if (way->row < rows || (anywhere && rows > 0)) {
    const uint32_t record = endOf(std::min(way->row, rows - 1), exitEdge);
    way->stay = isFull(clients_[record], cost) ? Stay::kBacklog : Stay::kMailbox;
    return record;
  }
  way->stay = Stay::kOutbox;
  if (way->peer == kNoPeer || (way->round > 0 && way->hops == 0)) {
    way->stay = Stay::kNowhere;
  } else if (way->hops > 0) {
    --way->hops;
  } else {
    way->round = 1;
    way->hops = seams_->memberCount();
  }
  return kNoLanding;
}

/**
 * Puts a sprite where `way` says. A sprite for a full mailbox waits behind it, since it is promised
 * already.
 */
void Pool::put(Sprite* sprite, const CrossText& way, uint32_t record) {
  switch (way.stay) {
    case Stay::kNowhere:
      ++counts_.lost;
      return forget(sprite);
    case Stay::kOutbox:
      return keptSeams_->push(way.peer, {sprite, way.row, Edge{way.exitEdge}, way.round, way.hops});
    case Stay::kMailbox:
    case Stay::kBacklog:
      break;
  }
  Client& to = clients_[record];
  if (way.stay == Stay::kMailbox) {
    to.mailbox.push(sprite);
  } else {
    backlogs_.push(record, sprite);
    to.behind = true;
  }
  if (to.holder != PollHolder::kNobody) answerSoon(&to);
}

/**
 * Returns the record on which a sprite lands that crosses over `exitEdge` into `row`, a row of this
 * server.
 */
uint32_t Pool::endOf(uint32_t row, Edge exitEdge) const {
  const uint32_t end =
      exitEdge == Edge::kRight ? torus_.firstOfCycle(row) : torus_.lastOfCycle(row);
  if (clients_[end].live) return end;
  const uint32_t next = nextLive(end, exitEdge);
  return next == Torus::kNone ? end : next;
}

/** Returns whether a mailbox has no room for a crossed sprite of `cost` bytes. */
bool Pool::isFull(const Client& client, uint32_t cost) const {
  return client.behind || (client.mailbox.waiting > 0 && !fits(client.mailbox, cost));
}

bool Pool::endBusy(uint32_t row, Edge exitEdge) const {
  return row < rowsToLand() && isFull(clients_[endOf(row, exitEdge)], Sprite::cost(0));
}

}  // namespace server
