// Throws: the decision whether a sprite is accepted, and to which client it goes.
#include <algorithm>

#include "base/journal.h"
#include "base/json_reader.h"
#include "pool.h"
#include "seams.h"

namespace server {

namespace {

/** How many times its bounds a mailbox may hold, by throws from several source addresses. */
constexpr uint32_t kOverfull = 2;

/** How many sprites of a full mailbox, from the oldest, are checked for their source. */
constexpr uint32_t kSourcesChecked = 256;

}  // namespace

// ---- A throw ------------------------------------------------------------------------------------

Outcome checkSprite(std::string_view text, uint32_t maxSprite) {
  if (text.size() > maxSprite) return Outcome::kSpriteTooLarge;
  return base::isJsonObject(text.data(), text.size()) ? Outcome::kOk : Outcome::kBadSprite;
}

Outcome Pool::throwSprite(const Id& id, Edge edge, uint64_t number, std::string_view text,
                          uint64_t now) {
  // The text is checked before the thrower is looked up, as it is when a worker checks it.
  const Outcome check = checkSprite(text, options_.maxSprite);
  return check == Outcome::kOk ? throwChecked(id, edge, number, text, now) : check;
}

Outcome Pool::throwChecked(const Id& id, Edge edge, uint64_t number, std::string_view text,
                           uint64_t now) {
  Client* client = lookUp(id);
  if (client == nullptr) return Outcome::kUnknownClient;
  const Outcome outcome = tryThrow(client, edge, number, text, now);
  counts_.delivered += outcome == Outcome::kDelivered;
  counts_.queued += outcome == Outcome::kQueued;
  counts_.duplicates += outcome == Outcome::kDuplicate;
  return outcome;
}

/** Returns whether a mailbox has room for a sprite of `cost` bytes. */
bool Pool::fits(const Mailbox& mailbox, uint32_t cost) const {
  return mailbox.waiting < options_.mailboxSprites &&
         uint64_t{mailbox.bytes} + cost <= options_.mailboxBytes;
}

/**
 * Returns whether a sprite of `cost` bytes from `source` may be thrown into a mailbox. A full
 * mailbox has as much room again for a source that less than half of its sprites come from. So no
 * source keeps the others' throws out by its own.
 */
bool Pool::mayEnter(const Mailbox& mailbox, Source source, uint32_t cost) const {
  if (fits(mailbox, cost)) return true;
  const uint64_t bytes = uint64_t{mailbox.bytes} + cost;
  if (mailbox.waiting >= kOverfull * uint64_t{options_.mailboxSprites} ||
      bytes > kOverfull * uint64_t{options_.mailboxBytes}) {
    return false;
  }
  uint32_t all = 0;
  uint32_t own = 0;
  for (const Sprite* sprite = mailbox.first; sprite != nullptr && all < kSourcesChecked;
       sprite = sprite->next) {
    ++all;
    own += sprite->source == source;
  }
  return own < all - own;
}

Outcome Pool::tryThrow(Client* client, Edge edge, uint64_t number, std::string_view text,
                       uint64_t now) {
  if (!promising_) return Outcome::kStateUnwritable;
  if (number != kNoNumber) {
    if (hasSeenNumber(*client, number)) return Outcome::kDuplicate;
    if (number + kNumberWindow <= client->newestNumber) return Outcome::kStaleNumber;
  }
  if (!allowedToThrow(client, now)) return Outcome::kTooManyThrows;
  // A throw at a busy neighbor spends the allowance too: it costs the server as much.
  spendThrow(client, now);
  turnTime_ = now;

  Seam seam;
  if (activeSeams_ != nullptr && seamBeyond(recordOf(client), edge, &seam)) {
    return throwOver(client, seam, number, text);
  }
  uint32_t target = torus_.neighbor(recordOf(client), edge);
  // A leaving client accepts nothing new: its sprites are just flying on.
  if (!clients_[target].live) target = nextLive(target, edge);
  if (target == Torus::kNone) return Outcome::kNeighborBusy;
  Client& neighbor = clients_[target];
  const uint32_t cost = Sprite::cost(text.size());
  if (!mayEnter(neighbor.mailbox, client->source, cost)) return Outcome::kNeighborBusy;
  if (counts_.mailboxBytes + cost > options_.mailboxMemory) return Outcome::kMailboxesFull;
  if (!limits_->charge(client->source, Sprite::charge(text.size()))) {
    return Outcome::kTooManySprites;
  }

  applyThrow(client, &neighbor, number, opposite(edge), text);
  if (journal_ != nullptr) {
    journal_->throwSprite(recordOf(client), recordOf(&neighbor), number,
                          static_cast<uint8_t>(opposite(edge)), text);
  }
  if (neighbor.holder == PollHolder::kNobody) return Outcome::kQueued;
  answerSoon(&neighbor);
  // A sprite that does not fit into the answer waits for the next poll.
  const bool fits = neighbor.mailbox.waiting == 1 || neighbor.mailbox.bytes <= options_.answerBytes;
  return fits ? Outcome::kDelivered : Outcome::kQueued;
}

/** Applies a throw: `receiver` gets the sprite, which enters by its edge `from`. */
void Pool::applyThrow(Client* thrower, Client* receiver, uint64_t number, Edge from,
                      std::string_view text) {
  receiver->mailbox.push(
      Sprite::make(text, from, thrower->source, deliveryTimes_.stamp(turnTime())));
  if (number != kNoNumber) rememberNumber(thrower, number);
  counts_.mailboxBytes += Sprite::cost(text.size());
  ++counts_.waiting;
  ++counts_.thrown;
}

// ---- Allowance and numbers ----------------------------------------------------------------------

// The allowance is a token bucket kept as one number (GCRA: ITU-T I.371, annex A): the time at
// which the bucket would be full again. A throw moves it by 1/rate, and is refused while it lies
// further ahead than a burst.

bool Pool::allowedToThrow(Client* client, uint64_t now) const {
  if (options_.throwRate == 0) return true;
  const uint64_t interval = 1000000 / options_.throwRate;
  return client->nextThrow <= now + (options_.throwBurst - 1) * interval;
}

void Pool::spendThrow(Client* client, uint64_t now) {
  if (options_.throwRate == 0) return;
  client->nextThrow = std::max(client->nextThrow, now) + 1000000 / options_.throwRate;
}

// Throw numbers: the newest accepted one, and a bit for each of the 64 up to it.

bool Pool::hasSeenNumber(const Client& client, uint64_t number) const {
  if (number > client.newestNumber) return false;
  const uint64_t age = client.newestNumber - number;
  return age < kNumberWindow && (client.seenNumbers >> age & 1) != 0;
}

void Pool::rememberNumber(Client* client, uint64_t number) {
  if (number > client->newestNumber) {
    const uint64_t step = number - client->newestNumber;
    client->seenNumbers = step < kNumberWindow ? client->seenNumbers << step : 0;
    client->newestNumber = number;
  }
  client->seenNumbers |= uint64_t{1} << (client->newestNumber - number);
}

}  // namespace server
