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
constexpr int kMaxPassedToEnd = 64;

/** Returns a number that no other memory has: never 0, and exact in JavaScript. */
uint64_t newMemory() {
  uint64_t number;
  do {
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
    number &= kMaxCounted;
  } while (number == 0);
  return number;
}

CrossText routeOf(const CrosserHead& head) {
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
  if (ownedSeams_ == nullptr) {
    ownedSeams_ = std::make_unique<Seams>(newMemory());
    if (journal_ != nullptr) journal_->memory(ownedSeams_->self().memory);
  }
  return ownedSeams_.get();
}

void Pool::openSeams(const SeamsOptions& options, std::function<void()> wake) {
  activeSeams_ = enterWorld();
  activeSeams_->open(options, std::move(wake));
}

void Pool::closeSeams() {
  if (activeSeams_ != nullptr) activeSeams_->close();
  activeSeams_ = nullptr;
}

void Pool::setLife(uint64_t life) {
  ownedSeams_->setLife(life);
  if (journal_ != nullptr) journal_->life(life);
}

PeerNumber Pool::findOrAddPeer(std::string_view name) {
  const PeerNumber known = ownedSeams_->findPeer(name);
  if (known != kNoPeer || ownedSeams_->size() == kMaxPeers) return known;
  const PeerNumber peer = ownedSeams_->addPeer(name);
  if (journal_ != nullptr) journal_->peer(peer, name);
  return peer;
}

bool Pool::replacePeer(PeerNumber number, std::string_view name, bool isEmptied) {
  const Peer& peer = ownedSeams_->peer(number);
  if (peer.inRing || peer.accepted || (peer.lastTaken > 0 && !isEmptied)) return false;
  if (!ownedSeams_->replacePeer(number, name)) return false;
  if (journal_ != nullptr) journal_->peer(number, name);
  return true;
}

void Pool::setSender(PeerNumber number, const Identity& sender, uint64_t lastTaken) {
  Peer& peer = ownedSeams_->peer(number);
  peer.sender = sender;
  peer.lastTaken = lastTaken;
  if (journal_ != nullptr) journal_->meet(number, sender.life, {sender.memory, lastTaken});
}

// ---- Out ----------------------------------------------------------------------------------------

/**
 * Returns whether a sprite that `record` sends over an edge comes to the end of its row, past
 * leaving clients only, and the row goes on at another server.
 */
bool Pool::seamBeyond(uint32_t record, Edge edge, Seam* seam) const {
  if (edge == Edge::kUp || edge == Edge::kDown) return false;
  for (int passed = 0; passed <= kMaxPassedToEnd; ++passed) {
    if (torus_.closesRow(record, edge)) {
      const uint32_t row = torus_.cycleOf(record);
      *seam = {activeSeams_->peerBeyond(row, edge), row, edge};
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
  if (activeSeams_ == nullptr || (!activeSeams_->isOpen() && counts_.clients > 0)) return false;
  return seamBeyond(record, edge, seam);
}

/** Returns the route of a sprite that starts at `seam`, with a whole round of the ring before it.
 */
CrossText Pool::routeOver(const Seam& seam) const {
  return {.row = seam.row,
          .hops = activeSeams_->memberCount(),
          .exitEdge = static_cast<uint8_t>(seam.exitEdge),
          .round = 0,
          .peer = seam.peer,
          .stay = Stay::kOutbox,
          .unused = {}};
}

/** Throws a sprite over a seam. `client` may throw. */
Outcome Pool::throwOver(Client* client, const Seam& seam, uint64_t number, std::string_view text) {
  const uint32_t cost = Sprite::cost(text.size());
  if (!activeSeams_->accepts(seam, cost)) return Outcome::kNeighborBusy;
  if (counts_.mailboxBytes + cost > options_.mailboxMemory) return Outcome::kMailboxesFull;
  if (!limits_->charge(client->source, Sprite::charge(text.size()))) {
    return Outcome::kTooManySprites;
  }
  const CrossText route = routeOver(seam);
  const JournalRecord step = {.step = JournalStep::kThrowOver,
                              .from = static_cast<uint8_t>(opposite(seam.exitEdge)),
                              .record = recordOf(client),
                              .other = seam.peer,
                              .number = number};
  applyThrowOver(step, route, text);
  if (journal_ != nullptr) journal_->cross(step, route, text);
  return Outcome::kQueued;
}

/** Applies a throw over a seam. */
void Pool::applyThrowOver(const JournalRecord& step, const CrossText& route,
                          std::string_view text) {
  Client* thrower = &clients_[step.record];
  if (step.number != kNoNumber) rememberNumber(thrower, step.number);
  counts_.mailboxBytes += Sprite::cost(text.size());
  ++counts_.waiting;
  ++counts_.thrown;
  const auto stamp = deliveryTimes_.stamp(turnTime());
  placeSprite(Sprite::make(text, Edge{step.from}, thrower->source, stamp), route, kNoLanding);
}

/** Lets the oldest sprite of the leaving client `from` fly on over a seam. */
void Pool::flyOldestOver(Client* from, const CrossText& route) {
  Sprite* sprite = popOldest(from);
  chargeTo(from->source, sprite);
  ++counts_.flown;
  placeSprite(sprite, route, kNoLanding);
}

void Pool::crossOut(Sprite* sprite) {
  ++counts_.crossedOut;
  endSprite(sprite);
}

void Pool::recordCrossedUpTo(PeerNumber peer, uint64_t number) {
  if (journal_ != nullptr) journal_->crossOut(peer, number);
}

void Pool::renumberAfter(PeerNumber peer, uint64_t number) {
  if (journal_ != nullptr) journal_->numberAfter(peer, number);
}

void Pool::recordGivenUp(PeerNumber peer, uint64_t count) {
  counts_.crossedInDoubt += count;
  if (journal_ != nullptr) journal_->giveUp(peer, count);
}

// ---- In -----------------------------------------------------------------------------------------

/**
 * Returns whether there is memory for `cost` more bytes from another server. Sprites in outboxes do
 * not count: else two servers full of sprites for each other would never take any of them. So
 * sprites from other servers may take at most as much memory again.
 */
bool Pool::hasMemoryFor(uint32_t cost) const {
  const uint64_t all = counts_.mailboxBytes + cost;
  const uint64_t memory = options_.mailboxMemory;
  return all <= memory || (all <= 2 * memory && all - activeSeams_->waitingBytes() <= memory);
}

bool Pool::crossIn(PeerNumber peer, uint64_t number, const CrosserHead& head,
                   std::string_view text) {
  const uint32_t cost = Sprite::cost(text.size());
  if (!hasMemoryFor(cost)) return false;
  CrossText route = routeOf(head);
  const uint32_t record = chooseRoute(&route, cost);
  const JournalRecord step = {.step = JournalStep::kCrossIn,
                              .from = static_cast<uint8_t>(head.from),
                              .record = record,
                              .other = peer,
                              .number = number};
  applyCrossIn(step, route, text);
  if (journal_ != nullptr) journal_->cross(step, route, text);
  return true;
}

/** Applies the arrival of a sprite from another server. */
void Pool::applyCrossIn(const JournalRecord& step, const CrossText& route, std::string_view text) {
  ownedSeams_->peer(step.other).lastTaken = step.number;
  counts_.mailboxBytes += Sprite::cost(text.size());
  ++counts_.waiting;
  ++counts_.crossedIn;
  const auto stamp = deliveryTimes_.stamp(turnTime());
  placeSprite(Sprite::make(text, Edge{step.from}, kNoSource, stamp), route, step.record);
}

void Pool::turnBack(PeerNumber peer, uint64_t place, const Crosser& crosser) {
  const PeerNumber next =
      activeSeams_ == nullptr ? kNoPeer : activeSeams_->peerBeyond(crosser.row, crosser.exitEdge);
  CrossText route =
      next == kNoPeer ? routeOf({.length = 0,
                                 .row = crosser.row,
                                 .exitEdge = crosser.exitEdge,
                                 .round = crosser.round,
                                 .hops = crosser.hops})
                      : routeOver({.peer = next, .row = crosser.row, .exitEdge = crosser.exitEdge});
  const uint32_t record =
      next == kNoPeer ? chooseRoute(&route, Sprite::cost(crosser.sprite->length)) : kNoLanding;
  placeSprite(crosser.sprite, route, record);
  if (journal_ != nullptr) {
    journal_->cross(
        {.step = JournalStep::kTurnBack, .record = record, .other = peer, .number = place}, route,
        {});
  }
}

uint64_t Pool::endWorld() {
  uint64_t sprites = 0;
  if (ownedSeams_ != nullptr) ownedSeams_->beginProcess();
  for (size_t number = 0; ownedSeams_ != nullptr && number < ownedSeams_->size(); ++number) {
    const auto peer = static_cast<PeerNumber>(number);
    Outbox& outbox = ownedSeams_->peer(peer).outbox;
    sprites += outbox.size();
    if (const size_t doubted = outbox.endDoubt()) recordGivenUp(peer, doubted);
    outbox.returnUnsent([&](const Crosser& crosser) { turnBack(peer, 0, crosser); });
  }
  return sprites;
}

/** Number of rows with clients. */
uint32_t Pool::landingRows() const { return counts_.clients == 0 ? 0 : torus_.cycles(); }

/**
 * Decides where a sprite goes that has come from another server, or that found no server to go to.
 * It lands in its row. Without that row here it goes on around the ring. With no more hops it lands
 * on any client. With no client in the whole ring it is lost. Fills in the rest of `route`. Returns
 * the record that it lands on, or kNoLanding.
 */
uint32_t Pool::chooseRoute(CrossText* route, uint32_t cost) const {
  const uint32_t rows = landingRows();
  const Edge exitEdge{route->exitEdge};
  // A frame may claim more hops, but a world has no more servers.
  route->hops = std::min<uint16_t>(route->hops, kMaxPeers);
  route->peer = activeSeams_ == nullptr ? kNoPeer : activeSeams_->ringNeighbor(exitEdge);
  const bool mayLandAnywhere = route->round > 0 || route->hops == 0 || route->peer == kNoPeer;
  if (route->row < rows || (mayLandAnywhere && rows > 0)) {
    const uint32_t record = landingRecord(std::min(route->row, rows - 1), exitEdge);
    route->stay = isFull(clients_[record], cost) ? Stay::kBacklog : Stay::kMailbox;
    return record;
  }
  route->stay = Stay::kOutbox;
  if (route->peer == kNoPeer || (route->round > 0 && route->hops == 0)) {
    route->stay = Stay::kNowhere;
  } else if (route->hops > 0) {
    --route->hops;
  } else {
    route->round = 1;
    route->hops = activeSeams_->memberCount();
  }
  return kNoLanding;
}

/**
 * Puts a sprite where `route` says. A sprite for a full mailbox waits behind it, since it is
 * promised already.
 */
void Pool::placeSprite(Sprite* sprite, const CrossText& route, uint32_t record) {
  switch (route.stay) {
    case Stay::kNowhere:
      ++counts_.lost;
      return endSprite(sprite);
    case Stay::kOutbox:
      return ownedSeams_->push(route.peer,
                               {sprite, route.row, Edge{route.exitEdge}, route.round, route.hops});
    case Stay::kMailbox:
    case Stay::kBacklog:
      break;
  }
  Client& to = clients_[record];
  if (route.stay == Stay::kMailbox) {
    to.mailbox.push(sprite);
  } else {
    backlogs_.push(record, sprite);
    to.hasBacklog = true;
  }
  if (to.holder != PollHolder::kNobody) answerSoon(&to);
}

/**
 * Returns the record on which a sprite lands that crosses over `exitEdge` into `row`, a row of this
 * server.
 */
uint32_t Pool::landingRecord(uint32_t row, Edge exitEdge) const {
  const uint32_t end =
      exitEdge == Edge::kRight ? torus_.firstOfCycle(row) : torus_.lastOfCycle(row);
  if (clients_[end].live) return end;
  const uint32_t next = nextLive(end, exitEdge);
  return next == Torus::kNone ? end : next;
}

/** Returns whether a mailbox has no room for a crossed sprite of `cost` bytes. */
bool Pool::isFull(const Client& client, uint32_t cost) const {
  return client.hasBacklog || (client.mailbox.waiting > 0 && !fits(client.mailbox, cost));
}

bool Pool::isRowEndBusy(uint32_t row, Edge exitEdge) const {
  return row < landingRows() && isFull(clients_[landingRecord(row, exitEdge)], Sprite::cost(0));
}

}  // namespace server
