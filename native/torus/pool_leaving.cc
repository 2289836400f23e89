// Leaving clients, and how the sprites that waited for them fly on.
#include <algorithm>
#include <optional>

#include "base/journal.h"
#include "pool.h"
#include "seams.h"

namespace server {

struct Pool::Stop {
  uint32_t record = Torus::kNone;
  std::optional<Seam> seam;
};

namespace {

/** What a search for a sprite's next stop takes from the kFlyBudget of a tick. */
constexpr uint32_t kFindBudget = 8;

/** Why a sprite is lost, in the journal: no client was left to fly to. */
constexpr uint8_t kLostAlone = 0;

/**
 * Most leavers in sequence that a sprite passes by. With more of them ahead it waits until they are
 * gone.
 */
constexpr int kMaxPassedLeavers = 64;

/** Sprites that have flown into a mailbox may take 1 / kFlownPart of it. */
constexpr uint32_t kFlownPart = 2;

}  // namespace

// ---- Leaving ------------------------------------------------------------------------------------

Outcome Pool::leave(const Id& id) {
  Client* client = lookUp(id);
  if (client == nullptr) return Outcome::kOk;
  if (!hasJournalRoom()) return Outcome::kStateUnwritable;
  ++counts_.left;
  if (journal_ != nullptr) journal_->leave(recordOf(client));
  remove(client);
  return Outcome::kOk;
}

void Pool::remove(Client* client) {
  // The client is marked as leaving first: from here on no request finds it, and no sprite is
  // thrown to it.
  startLeaving(client);
  if (client->holder != PollHolder::kNobody) endPoll(client, Remark::kNothing);
  wheel_.disarm(recordOf(client));
  freeLeaving();
}

/** Makes `client` unknown, and its sprites fly on from now on. */
void Pool::startLeaving(Client* client) {
  client->live = false;
  --counts_.clients;
  leaving_.push_back(recordOf(client));
}

/**
 * Empties the mailboxes of leaving clients, as far as the budget reaches, and frees the clients
 * that are empty. While too much waits to be written, they wait, too. The oldest leaver comes
 * first. Its sprites may fly into the mailbox of another leaver, whose turn comes later; no sprites
 * fly into the mailbox of the first. So this ends.
 */
void Pool::freeLeaving() {
  while (!leaving_.empty() && hasJournalRoom()) {
    const uint32_t record = leaving_.front();
    Client& client = clients_[record];
    flyOn(&client);
    if (client.mailbox.waiting > 0 || client.hasBacklog) return;
    leaving_.pop_front();
    torus_.leave(record);
    limits_->removeClient(client.source);
    if (journal_ != nullptr) journal_->removeClient(record);
    client.token = freeRecord_;
    freeRecord_ = record + 1;
  }
}

void Pool::freeAllLeaving() {
  while (!leaving_.empty() && hasJournalRoom()) {
    flyBudget_ = kFlyBudget;
    freeLeaving();
  }
}

// ---- Where to -----------------------------------------------------------------------------------

/**
 * Returns the first live client beyond an edge of `record`, perhaps `record` itself; kNone when too
 * many in sequence are leaving. So when a crowd leaves together, its sprites fly once, and not from
 * each client to the next.
 */
uint32_t Pool::nextLive(uint32_t record, Edge edge) const {
  uint32_t next = record;
  for (int passed = 0; passed <= kMaxPassedLeavers; ++passed) {
    next = torus_.neighbor(next, edge);
    if (clients_[next].live) return next;
    if (next == record) break;
  }
  return Torus::kNone;
}

/**
 * Decides where a sprite that came into `record` by its edge `from` goes when `record` has left:
 * straight on; aside where its own row or column has no other client; to a leaving neighbor where
 * all near it are leaving, too; nowhere when there is no client at all.
 */
Pool::Stop Pool::nextStop(uint32_t record, Edge from) const {
  if (counts_.clients == 0 && activeSeams_ == nullptr) return {};
  const Edge onward = opposite(from);
  const Edge aside = onward == Edge::kLeft || onward == Edge::kRight ? Edge::kUp : Edge::kLeft;
  for (const Edge edge : {onward, aside}) {
    Seam seam;
    if (seamForFlight(record, edge, &seam)) return {Torus::kNone, seam};
    const uint32_t next = nextLive(record, edge);
    if (next != Torus::kNone) return {next, {}};
  }
  for (const Edge edge : {onward, aside}) {
    const uint32_t next = torus_.neighbor(record, edge);
    if (next != record) return {next, {}};
  }
  return {};
}

// ---- Flying -------------------------------------------------------------------------------------

/** Room that a flown sprite takes of a mailbox, in bytes: a small sprite takes a whole place. */
uint32_t Pool::roomOf(const Sprite& sprite) const {
  return std::max(Sprite::cost(sprite.length), options_.mailboxBytes / options_.mailboxSprites);
}

/** Returns whether a flying sprite may enter a mailbox now. It may always enter an empty one. */
bool Pool::hasRoom(const Mailbox& mailbox, const Sprite& sprite) const {
  if (mailbox.waiting == 0) return true;
  if (!fits(mailbox, Sprite::cost(sprite.length))) return false;
  return mailbox.flown == 0 || mailbox.flown + roomOf(sprite) <= options_.mailboxBytes / kFlownPart;
}

/** Puts a sprite that has flown into `client`'s mailbox. */
void Pool::putFlown(Client* client, Sprite* sprite) {
  sprite->flown = 1;
  client->mailbox.flown += roomOf(*sprite);
  client->mailbox.push(sprite);
}

/** Moves the oldest sprite of a client's backlog into its mailbox. */
void Pool::moveUpOldest(Client* client) {
  const uint32_t record = recordOf(client);
  putFlown(client, backlogs_.pop(record));
  client->hasBacklog = backlogs_.front(record) != nullptr;
}

/** Moves sprites from a client's backlog into its mailbox, as many as there is room for. */
void Pool::catchUp(Client* client) {
  const uint32_t record = recordOf(client);
  while (client->hasBacklog && hasRoom(client->mailbox, *backlogs_.front(record))) {
    moveUpOldest(client);
    if (journal_ != nullptr) journal_->moveUp(record);
    if (!promising_) holdBackSprites(record);
  }
}

/**
 * Lets the sprites of a leaver fly on. None is refused: the server has accepted these sprites
 * already, and has the memory for them. Sprites that find no room wait in a backlog.
 */
void Pool::flyOn(Client* client) {
  const uint32_t record = recordOf(client);
  // Each stop is found for the first sprite that needs it: most leaving clients have no sprites.
  std::optional<Stop> stops[4];
  std::optional<uint64_t> now;
  while (Sprite* sprite = oldestSprite(*client)) {
    if (flyBudget_ == 0) break;
    std::optional<Stop>& next = stops[static_cast<size_t>(sprite->from)];
    flyBudget_ -= std::min(flyBudget_, next ? 1u : kFindBudget);
    if (!next) next = nextStop(record, sprite->from);
    if (next->seam) {
      const CrossText route = routeOver(*next->seam);
      flyOldestOver(client, route);
      if (journal_ != nullptr) {
        journal_->cross({.step = JournalStep::kFlyOver, .record = record, .other = route.peer},
                        route, {});
      }
      continue;
    }
    if (next->record == Torus::kNone) {
      loseOldest(client);
      if (journal_ != nullptr) journal_->lose(record, kLostAlone);
      continue;
    }
    Client* to = &clients_[next->record];
    const Stay stay =
        !to->hasBacklog && hasRoom(to->mailbox, *sprite) ? Stay::kMailbox : Stay::kBacklog;
    if (!now) now = turnTime();
    sprite->stamp = deliveryTimes_.flownStamp(sprite->stamp, *now);
    flyOldest(client, to, stay);
    if (!promising_) holdBackSprites(next->record);
    if (journal_ != nullptr) journal_->fly(record, next->record, stay == Stay::kBacklog);
  }
  for (const std::optional<Stop>& next : stops) {
    if (!next || next->record == Torus::kNone) continue;
    Client& neighbor = clients_[next->record];
    if (neighbor.holder != PollHolder::kNobody && neighbor.mailbox.waiting > 0) {
      answerSoon(&neighbor);
    }
  }
}

/**
 * Moves the oldest sprite of `from` to `to`, into the mailbox or the backlog as `stay` says. The
 * sprite is charged to the address of `from`, which has left it. Else hostile clients could use up
 * the share of an honest address, by passing its sprites on to one another.
 */
void Pool::flyOldest(Client* from, Client* to, Stay stay) {
  Sprite* sprite = popOldest(from);
  chargeTo(from->source, sprite);
  ++counts_.flown;
  if (stay == Stay::kMailbox) return putFlown(to, sprite);
  backlogs_.push(recordOf(to), sprite);
  to->hasBacklog = true;
}

/** Charges a sprite to `source` from now on, if the source is known. */
void Pool::chargeTo(Source source, Sprite* sprite) {
  if (source == kNoSource || source == sprite->source) return;
  const uint32_t charge = Sprite::charge(sprite->length);
  limits_->discharge(sprite->source, charge);
  limits_->chargeAnyway(source, charge);
  sprite->source = source;
}

/** Loses the oldest sprite of `from`, which has nowhere to fly to. */
void Pool::loseOldest(Client* from) {
  ++counts_.lost;
  endSprite(popOldest(from));
}

}  // namespace server
