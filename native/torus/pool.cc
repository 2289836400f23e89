#include "pool.h"

#include <algorithm>

#include "base/digits.h"
#include "base/hold.h"
#include "base/journal.h"
#include "seams.h"

namespace server {

namespace {

constexpr std::string_view kFromNames[] = {"left", "right", "up", "down"};

}  // namespace

Pool::Pool(const PoolOptions& options, AddressLimits* limits, uint64_t now)
    : options_(options),
      unbounded_(limits == nullptr ? std::make_unique<AddressLimits>(AddressLimitsOptions{})
                                   : nullptr),
      limits_(limits == nullptr ? unbounded_.get() : limits),
      clients_(options.capacity),
      torus_(options.capacity),
      wheel_(options.capacity, now),
      ids_(options.tag),
      random_(std::random_device{}()),
      deliveryTimes_(options.lease),
      flyBudget_(kFlyBudget),
      now_(now) {
  body_.reserve(2 * size_t{options.answerBytes});
}

Pool::~Pool() {
  for (uint32_t record = 0; record < usedRecords_; ++record) {
    Mailbox& mailbox = clients_[record].mailbox;
    while (mailbox.first != nullptr) Sprite::free(mailbox.pop());
  }
}

void Pool::setResponder(PollHolder holder, PollResponder* responder) {
  responders_[static_cast<size_t>(holder)] = responder;
}

// ---- Finding and timing -------------------------------------------------------------------------

Pool::Client* Pool::lookUp(const Id& id) {
  const uint32_t record = find(id);
  return record == kNoRecord ? nullptr : &clients_[record];
}

uint32_t Pool::find(const Id& id) const {
  const uint32_t record = id.record();
  if (record >= usedRecords_) return kNoRecord;
  const Client& client = clients_[record];
  return client.live && client.id == id ? record : kNoRecord;
}

void Pool::prefetchClient(uint32_t record) const {
  const auto* const begin = reinterpret_cast<const char*>(&clients_[record]);
  __builtin_prefetch(begin);
  __builtin_prefetch(begin + sizeof(Client) - 1);
}

void Pool::prefetch(PrefetchStep step, const Id& id, const Edge* edge) const {
  const uint32_t record = id.record();
  if (record >= usedRecords_) return;
  if (step == PrefetchStep::kClient) {
    edge != nullptr ? torus_.prefetch(record) : wheel_.prefetch(record);
    return prefetchClient(record);
  }
  if (edge == nullptr) return __builtin_prefetch(clients_[record].mailbox.first);
  const uint32_t neighbor = torus_.neighbor(record, *edge);
  if (neighbor == Torus::kNone) return;
  prefetchClient(neighbor);
  wheel_.prefetch(neighbor);
}

void Pool::armTimer(uint32_t record, uint64_t milliseconds) {
  // The timer is never early: one tick is for the lag of now_ behind the clock, one for a late
  // tick.
  wheel_.arm(record, now_ + milliseconds + 2 * kTickMilliseconds);
}

uint32_t Pool::randomBelow(uint32_t below) {
  return below == 0 ? 0 : std::uniform_int_distribution<uint32_t>(0, below - 1)(random_);
}

// ---- Joining ------------------------------------------------------------------------------------

Outcome Pool::join(const Address& address, uint64_t now, Id* id) {
  if (!limits_->tryJoin(address, now / 1000)) return Outcome::kTooManyJoins;
  const Source source = limits_->addClient(address);
  if (source == kNoSource) return Outcome::kTooManyClients;
  const Outcome outcome = joinFrom(source, id);
  if (outcome != Outcome::kOk) limits_->removeClient(source);
  return outcome;
}

/** Gives a newcomer a place; its source counts it already. */
Outcome Pool::joinFrom(Source source, Id* id) {
  if (draining()) return Outcome::kDraining;
  if (!promising_) return Outcome::kStateUnwritable;
  uint32_t record;
  if (freeRecord_ != 0) {
    record = freeRecord_ - 1;
    freeRecord_ = clients_[record].token;
  } else if (usedRecords_ < options_.capacity) {
    record = usedRecords_++;
  } else {
    return Outcome::kTorusFull;
  }
  *id = ids_.make(record);
  occupyRecord(record, *id);
  clients_[record].source = source;
  armTimer(record, options_.lease * uint64_t{1000});
  if (journal_ != nullptr) journal_->join(record, *id, limits_->addressOf(source));
  return Outcome::kOk;
}

/** Gives a free record to a newcomer. */
void Pool::occupyRecord(uint32_t record, const Id& id) {
  Client& client = clients_[record];
  client = Client{};
  client.id = id;
  client.nextPoll = static_cast<uint32_t>(now_);
  client.live = true;
  torus_.join(record);
  ++counts_.clients;
  ++counts_.joined;
}

// ---- Polling ------------------------------------------------------------------------------------

PollResult Pool::poll(const Id& id, uint64_t ack, uint32_t hold, PollHolder holder,
                      uint32_t token) {
  if (hold == kNoHold) hold = options_.hold;
  if (!isValidHold(hold, options_.hold)) return {Outcome::kBadHold, kNoRecord, {}};
  Client* client = lookUp(id);
  if (client == nullptr) return {Outcome::kUnknownClient, kNoRecord, {}};
  const uint32_t record = recordOf(client);
  if (ack > client->mailbox.sent()) return {Outcome::kAckAhead, record, {}};
  const bool acksNew = ack > client->mailbox.acked();
  if (acksNew && !hasJournalRoom()) return {Outcome::kStateUnwritable, record, {}};
  if (!mayPoll(client, ack)) return {Outcome::kTooManyPolls, record, {}};
  if (client->holder != PollHolder::kNobody) endPoll(client, Remark::kSuperseded);
  if (journal_ != nullptr && acksNew) journal_->ack(record, ack);
  acknowledge(client, ack);
  if (client->hasBacklog && hasJournalRoom()) catchUp(client);
  // The client catches up when all is written.
  if (client->hasBacklog && !hasJournalRoom()) holdBackSprites(record);
  ++counts_.polls;
  // With a journal the answer waits for the end of the turn: the ack has to be written first.
  const bool answersNow = client->mailbox.waiting > 0 || draining();
  if (answersNow && journal_ == nullptr) {
    renewLease(client);
    return {Outcome::kOk, record, composeAnswer(client, Remark::kNone)};
  }
  client->holder = holder;
  client->token = token;
  ++counts_.parked;
  if (answersNow) {
    renewLease(client);
    answerSoon(client);
  } else {
    const uint32_t milliseconds = hold * 1000;
    armTimer(record, milliseconds + randomBelow(milliseconds / kJitterShare));
  }
  return {Outcome::kOk, record, {}};
}

void Pool::drop(const Id& id, PollHolder holder, uint32_t token) { drop(find(id), holder, token); }

void Pool::drop(uint32_t record, PollHolder holder, uint32_t token) {
  if (endedPolls_.erase({holder, token}) > 0 || record == kNoRecord) return;
  Client& client = clients_[record];
  if (client.live && client.holder == holder && client.token == token) unpark(&client);
}

/** Ends the poll of `client` without an answer. */
void Pool::unpark(Client* client) {
  client->holder = PollHolder::kNobody;
  --counts_.parked;
  renewLease(client);
}

/** Renews the lease, unless answers have carried sprites that the client has not acked. */
void Pool::renewLease(Client* client) {
  const uint32_t record = recordOf(client);
  if (client->mailbox.hasUnacked() && wheel_.isArmed(record)) return;
  armTimer(record, options_.lease * uint64_t{1000});
}

/** Returns the oldest waiting sprite of a client, or nullptr. */
Sprite* Pool::oldestSprite(const Client& client) const {
  if (client.mailbox.first != nullptr || !client.hasBacklog) return client.mailbox.first;
  return backlogs_.front(recordOf(&client));
}

/** Removes the oldest waiting sprite of a client. */
Sprite* Pool::popOldest(Client* client) {
  if (client->mailbox.waiting > 0) {
    Sprite* sprite = client->mailbox.pop();
    if (sprite->flown) client->mailbox.flown -= roomOf(*sprite);
    sprite->flown = 0;
    return sprite;
  }
  const uint32_t record = recordOf(client);
  Sprite* sprite = backlogs_.pop(record);
  client->hasBacklog = backlogs_.front(record) != nullptr;
  return sprite;
}

/** Frees a sprite that no longer waits, and takes it off all counts. */
void Pool::endSprite(Sprite* sprite) {
  counts_.mailboxBytes -= Sprite::cost(sprite->length);
  --counts_.waiting;
  limits_->discharge(sprite->source, Sprite::charge(sprite->length));
  Sprite::free(sprite);
}

void Pool::acknowledge(Client* client, uint64_t ack) {
  Mailbox& mailbox = client->mailbox;
  while (mailbox.waiting > 0 && mailbox.acked() < ack) {
    ++counts_.acked;
    endSprite(popOldest(client));
  }
}

/**
 * Returns whether a client may poll now. A poll with a new ack always may: a client has as many of
 * these as it gets sprites. Any other poll asks for known sprites again, and has an allowance, as
 * throws do.
 */
bool Pool::mayPoll(Client* client, uint64_t ack) {
  const auto now = static_cast<uint32_t>(now_);
  // The difference is compared: the milliseconds wrap around after seven weeks, and a client polls
  // more often.
  if (static_cast<int32_t>(client->nextPoll - now) < 0) client->nextPoll = now;
  if (options_.pollRate == 0 || ack > client->mailbox.acked()) return true;
  const uint32_t interval = 1000 / options_.pollRate;
  if (client->nextPoll - now > (options_.pollBurst - 1) * interval) return false;
  client->nextPoll += interval;
  return true;
}

/** Writes the answer to a poll: every sprite in the mailbox, up to the byte bound, or none. */
std::string_view Pool::composeAnswer(Client* client, Remark remark) {
  const Mailbox& mailbox = client->mailbox;
  const uint64_t now = mailbox.unsent > 0 ? turnTime() : 0;
  uint64_t sequence = mailbox.acked();
  const Sprite* end = mailbox.first;
  // The sprites go to the poll that has superseded this one.
  const bool hasSprites = remark == Remark::kNone;
  for (size_t bytes = 0; end != nullptr && hasSprites; end = end->next) {
    bytes += end->length;
    if (bytes > options_.answerBytes && end != mailbox.first) break;
    ++sequence;
  }
  body_ = "{\"seq\":";
  base::appendDigits(&body_, sequence);
  body_ += ",\"sprites\":[";
  sequence = mailbox.acked();
  for (const Sprite* sprite = mailbox.first; sprite != end && hasSprites; sprite = sprite->next) {
    if (sprite != mailbox.first) body_ += ',';
    body_ += "{\"seq\":";
    base::appendDigits(&body_, ++sequence);
    if (sequence > mailbox.sent()) deliveryTimes_.count(sprite->stamp, now);
    body_ += ",\"from\":\"";
    body_ += kFromNames[static_cast<size_t>(sprite->from)];
    body_ += "\",\"sprite\":";
    body_ += sprite->text();
    body_ += '}';
  }
  body_ += ']';
  if (remark == Remark::kSuperseded) body_ += ",\"superseded\":true";
  if (draining()) {
    body_ += ",\"retry\":";
    base::appendDigits(&body_,
                       (drainEnd_ > now_ ? drainEnd_ - now_ : 0) + randomBelow(drainWindow_ + 1));
  }
  body_ += '}';
  client->mailbox.unsent = std::min<uint64_t>(mailbox.unsent, mailbox.sequence - sequence);
  return body_;
}

/** Answers the parked poll of `client`. The client is away from now on. */
void Pool::answer(Client* client, Remark remark) {
  const PollHolder holder = client->holder;
  unpark(client);
  responders_[static_cast<size_t>(holder)]->answer(client->token, composeAnswer(client, remark));
}

/**
 * Answers a parked poll that a request has ended. With a journal the answer waits for the end of
 * the turn: it says what is acked, which this turn may have freed.
 */
void Pool::endPoll(Client* client, Remark remark) {
  if (journal_ == nullptr) return answer(client, remark);
  const EndedPoll poll = {client->holder, client->token};
  unpark(client);
  endedPolls_.emplace(poll, composeAnswer(client, remark));
}

/** Lets the parked poll of `client` be answered at the end of the turn. */
void Pool::answerSoon(Client* client) {
  if (client->awaitsAnswer) return;
  client->awaitsAnswer = true;
  awaitingAnswer_.push_back(recordOf(client));
}

void Pool::answerPolls() {
  if (!awaitingAnswer_.empty()) turnTime_ = turnTime();
  for (const uint32_t record : awaitingAnswer_) {
    const Client& client = clients_[record];
    if (const PollResponder* const responder = responders_[static_cast<size_t>(client.holder)]) {
      responder->prefetch(client.token);
    }
  }
  // awaitingAnswer_ does not grow while these polls are answered: responders must not call the
  // pool.
  for (const uint32_t record : awaitingAnswer_) {
    Client& client = clients_[record];
    client.awaitsAnswer = false;
    // The poll may have been answered, dropped or superseded since.
    const bool parked = client.live && client.holder != PollHolder::kNobody && !client.heldBack;
    if (parked && (client.mailbox.waiting > 0 || draining())) answer(&client, Remark::kNone);
  }
  awaitingAnswer_.clear();
  for (const auto& [poll, body] : std::exchange(endedPolls_, {})) {
    responders_[static_cast<size_t>(poll.first)]->answer(poll.second, body);
  }
  clearTurnTime();
}

// ---- While the journal can't be written ---------------------------------------------------------

/** Returns whether the journal has room for a step. */
bool Pool::hasJournalRoom() const { return journal_ == nullptr || journal_->hasRoom(); }

void Pool::holdBackSprites(uint32_t record) {
  if (clients_[record].heldBack) return;
  clients_[record].heldBack = true;
  heldBack_.push_back(record);
}

void Pool::releaseHeldBack() {
  for (const uint32_t record : std::exchange(heldBack_, {})) {
    Client& client = clients_[record];
    client.heldBack = false;
    if (!client.live) continue;
    if (client.hasBacklog) catchUp(&client);
    if (client.holder != PollHolder::kNobody && client.mailbox.waiting > 0) answerSoon(&client);
  }
}

// ---- Time ---------------------------------------------------------------------------------------

bool Pool::tick(uint64_t now) {
  now_ = now;
  flyBudget_ = kFlyBudget;
  freeLeaving();
  const bool isSwept = wheel_.sweep(now, kTickBudget, [this](uint32_t record) { onTimer(record); });
  return isSwept && leaving_.empty();
}

void Pool::onTimer(uint32_t record) {
  Client& client = clients_[record];
  // A parked client that owes an ack waits for the disk, and its lease is over. The lease does not
  // end while nothing can be written: that is not the client's fault.
  const bool owesAck = client.mailbox.hasUnacked() && !client.heldBack && promising_;
  const bool isPing = client.holder != PollHolder::kNobody && !owesAck;
  if (isPing || (client.holder != PollHolder::kNobody && draining())) {
    ++counts_.pings;
    answer(&client, Remark::kNothing);
  } else if (!hasJournalRoom()) {
    armTimer(record, options_.lease * uint64_t{1000});
  } else {
    ++counts_.expired;
    if (journal_ != nullptr) journal_->expire(record);
    remove(&client);
  }
}

void Pool::drain(uint32_t window) {
  drainWindow_ = window;
  drainEnd_ = now_ + window + 1;
  for (uint32_t record = 0; record < usedRecords_; ++record) {
    if (clients_[record].holder != PollHolder::kNobody) armTimer(record, randomBelow(window));
  }
}

bool Pool::readView(const Id& id, View* view) const {
  const uint32_t record = find(id);
  if (record == kNoRecord) return false;
  const Client& client = clients_[record];
  *view = {.place = torus_.place(record),
           .parked = client.holder != PollHolder::kNobody,
           .waiting = client.mailbox.waiting,
           .unsent = client.mailbox.unsent,
           .bytes = client.mailbox.bytes,
           .sequence = client.mailbox.sequence,
           .hasAddress = client.source != kNoSource,
           .address = limits_->addressOf(client.source)};
  return true;
}

bool Pool::place(const Id& id, Place* place) const {
  const uint32_t record = find(id);
  if (record == kNoRecord) return false;
  *place = torus_.place(record);
  return true;
}

}  // namespace server
