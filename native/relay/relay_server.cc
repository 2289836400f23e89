#include "relay_server.h"

#include <algorithm>
#include <utility>

#include "feed_frames.h"
#include "torus/place_text.h"

namespace server {

namespace {

/** The bit that marks a token as that of a request which the worker's JavaScript handles. */
constexpr uint32_t kOfScript = kScriptNumbers;

/** Polls of a worker that is gone which are dropped in one step: some 5 ms of it. */
constexpr uint32_t kClearedAtOnce = 16384;

/** The longest text of an input, with the arena's name before it. */
constexpr uint32_t kLongestInput = kArenaNameBytes + 1 + kInputBytes;

template <typename What>
What whoOf(const AskHead& head) {
  What what;
  static_assert(sizeof what == sizeof head.who);
  memcpy(&what, head.who, sizeof what);
  return what;
}

}  // namespace

RelayServer::RelayServer(const RelayParts& parts, PollHolder holder, uint32_t connections)
    : parts_(parts), holder_(holder), parked_(connections) {
  parts_.pool->setResponder(holder_, this);
}

RelayServer::~RelayServer() { parts_.pool->setResponder(holder_, nullptr); }

// ---- What is asked ------------------------------------------------------------------------------

bool RelayServer::receive(std::string_view bytes) {
  return asks_.feed(
      bytes, [this](const AskHead& head) { return mayBe(head); },
      [this](const AskHead& head, std::string_view text) { return serve(head, text); });
}

/** Whether there is such a message: its names exist, and its text is not too long. */
bool RelayServer::mayBe(const AskHead& head) const {
  const Ticket& ticket = head.ticket;
  const bool ofFeeds = head.ask >= Ask::kFeedWant;
  const bool somebodys =
      head.ask == Ask::kOpened || head.ask == Ask::kClosed || ofFeeds ||
      (ticket.connection == kScriptConnection ? ticket.generation < kScriptNumbers
                                              : ticket.connection < parked_.size());
  const uint32_t most = head.ask == Ask::kThrow   ? parts_.pool->options().maxSprite
                        : head.ask == Ask::kInput ? kLongestInput
                        : ofFeeds                 ? kKeyLength
                                                  : 0;
  return head.ask <= Ask::kFeedCounts && head.length <= most && head.edge <= Edge::kDown &&
         somebodys;
}

bool RelayServer::serve(const AskHead& head, std::string_view text) {
  Pool& pool = *parts_.pool;
  switch (head.ask) {
    case Ask::kJoin: {
      Id id;
      const Outcome outcome = pool.join(whoOf<Address>(head), parts_.clock(), &id);
      const std::string_view bytes(reinterpret_cast<const char*>(&id), sizeof id);
      say(Say::kOutcome, head.ticket, outcome,
          outcome == Outcome::kOk ? bytes : std::string_view());
      return true;
    }
    case Ask::kThrow:
      say(Say::kOutcome, head.ticket,
          pool.throwChecked(whoOf<Id>(head), head.edge, head.number, text, parts_.clock()), {});
      return true;
    case Ask::kLeave:
      say(Say::kOutcome, head.ticket, pool.leave(whoOf<Id>(head)), {});
      return true;
    case Ask::kPoll:
      poll(head);
      return true;
    case Ask::kPlace:
      place(head);
      return true;
    case Ask::kCountsOf:
      if (Place any; !pool.place(whoOf<Id>(head), &any)) {
        say(Say::kOutcome, head.ticket, Outcome::kUnknownClient, {});
        return true;
      }
      [[fallthrough]];
    case Ask::kCounts:
      say(Say::kAnswer, head.ticket, Outcome::kOk, parts_.counts());
      return true;
    case Ask::kDrop:
      drop(head.ticket);
      return true;
    case Ask::kEnded:
      drop(head.ticket);
      say(Say::kOver, head.ticket, Outcome::kOk, {});
      return true;
    case Ask::kOpened:
      opened(head);
      return true;
    case Ask::kClosed:
      closed(head);
      return true;
    case Ask::kInput:
      return input(head, text);
    case Ask::kFeedWant:
    case Ask::kFeedGzip:
    case Ask::kFeedWatched:
    case Ask::kFeedLeft:
      return parts_.feeds != nullptr && isFeedKey(text) && serveFeed(head, text);
    case Ask::kFeedCounts:
      if (text.size() != sizeof tally_) return false;
      memcpy(&tally_, text.data(), sizeof tally_);
      return true;
  }
  return false;
}

void RelayServer::poll(const AskHead& head) {
  Pool& pool = *parts_.pool;
  // A connection has one poll at most: a second one is no message of a worker.
  drop(head.ticket);
  const uint32_t token = tokenOf(head.ticket);
  const PollResult result =
      head.hold == kNotAHold ? PollResult{pool.count(Outcome::kBadHold), 0, {}}
                             : pool.poll(whoOf<Id>(head), head.number, head.hold, holder_, token);
  if (result.outcome != Outcome::kOk) {
    return say(Say::kOutcome, head.ticket, result.outcome, {});
  }
  if (!result.answer.empty()) return say(Say::kAnswer, head.ticket, Outcome::kOk, result.answer);
  const Parked parked = {result.record + 1, head.ticket.generation};
  if ((token & kOfScript) != 0) {
    script_[token] = parked;
  } else {
    parked_[token] = parked;
    used_ = std::max(used_, token + 1);
  }
}

/** A player's input; false: it is none that a worker sends. */
bool RelayServer::input(const AskHead& head, std::string_view text) {
  const size_t end = text.find(kEndOfName);
  if (parts_.arena == nullptr || end == text.npos) return false;
  say(Say::kOutcome, head.ticket,
      parts_.arena->input(text.substr(0, end), whoOf<Id>(head), head.number, text.substr(end + 1),
                          parts_.clock()),
      {});
  return true;
}

void RelayServer::place(const AskHead& head) {
  Place place;
  if (!parts_.pool->place(whoOf<Id>(head), &place)) {
    return say(Say::kOutcome, head.ticket, Outcome::kUnknownClient, {});
  }
  say(Say::kAnswer, head.ticket, Outcome::kOk, PlaceText(place).view());
}

// ---- Parked polls -------------------------------------------------------------------------------

uint32_t RelayServer::tokenOf(Ticket ticket) const {
  return ticket.connection == kScriptConnection ? ticket.generation | kOfScript : ticket.connection;
}

/** The poll parked under a token, or nullptr. */
RelayServer::Parked* RelayServer::find(uint32_t token) {
  if ((token & kOfScript) != 0) {
    const auto found = script_.find(token);
    return found == script_.end() ? nullptr : &found->second;
  }
  return parked_[token].record == 0 ? nullptr : &parked_[token];
}

/** A poll's connection is gone; false when none is parked there. */
bool RelayServer::drop(Ticket ticket) {
  const uint32_t token = tokenOf(ticket);
  Parked* const parked = find(token);
  if (parked == nullptr) return false;
  parts_.pool->drop(parked->record - 1, holder_, token);
  parked->record = 0;
  if ((token & kOfScript) != 0) script_.erase(token);
  return true;
}

void RelayServer::answer(uint32_t token, std::string_view body) {
  Parked* const parked = find(token);
  if (parked == nullptr) return;
  parked->record = 0;
  if (lost_) return;
  const bool ofScript = (token & kOfScript) != 0;
  const Ticket ticket =
      ofScript ? Ticket{kScriptConnection, token & ~kOfScript} : Ticket{token, parked->generation};
  if (ofScript) script_.erase(token);
  say(Say::kAnswer, ticket, Outcome::kOk, body);
}

void RelayServer::say(Say say, Ticket ticket, Outcome outcome, std::string_view text) {
  const SayHead head = {.length = static_cast<uint32_t>(text.size()),
                        .say = say,
                        .outcome = outcome,
                        .ticket = ticket};
  if (say != Say::kOutcome) return add(head, text);
  decided_.append(reinterpret_cast<const char*>(&head), sizeof head);
  decided_.append(text);
}

void RelayServer::settle(Settled settled) {
  if (settled == Settled::kUnknown) {
    for (size_t at = 0; at < decided_.size();) {
      SayHead head;
      memcpy(&head, decided_.data() + at, sizeof head);
      const size_t length = sizeof head + head.length;
      head.say = Say::kUnknown;
      memcpy(decided_.data() + at, &head, sizeof head);
      at += length;
    }
  }
  outgoing() += decided_;
  decided_.clear();
}

// ---- Connections of one source, of all workers together -----------------------------------------

void RelayServer::opened(const AskHead& head) {
  bool fits;
  const Source source = parts_.limits->openElsewhere(whoOf<Address>(head), &fits);
  ++sources_[source];
  // Counted all the same, until the worker says that it is closed.
  if (!fits) say(Say::kTooMany, head.ticket, Outcome::kOk, {});
}

void RelayServer::closed(const AskHead& head) {
  const auto found = sources_.find(parts_.limits->sourceOf(whoOf<Address>(head)));
  if (found == sources_.end()) return;
  parts_.limits->closeElsewhere(found->first, 1);
  if (--found->second == 0) sources_.erase(found);
}

// ---- Feeds --------------------------------------------------------------------------------------

bool RelayServer::serveFeed(const AskHead& head, std::string_view key) {
  if (head.ask == Ask::kFeedWant) {
    want(key, whoOf<Address>(head));
    return true;
  }
  // The feed may have ended before this came: only who wants one makes an entry.
  const auto found = feeds_.find(std::string(key));
  if (found == feeds_.end()) return true;
  Replica& replica = found->second;
  if (head.ask == Ask::kFeedGzip) {
    replica.gzip = true;
    const Feed* const feed = parts_.feeds->find(key);
    if (feed != nullptr && feed->gzip) {
      owe(&replica, key, Say::kFeedGzip);
    } else {
      parts_.feeds->wantCompressed(key);
    }
  } else if (head.ask == Ask::kFeedWatched) {
    watched(&replica, key, static_cast<uint32_t>(std::min<uint64_t>(head.number, UINT32_MAX)));
  } else {
    watched(&replica, key, 0);
    feeds_.erase(found);
  }
  return true;
}

/** The worker is told of the feed's versions from now on, or that there is none. */
void RelayServer::want(std::string_view key, const Address& from) {
  Replica& replica = feeds_[std::string(key)];
  const Feed* const feed = parts_.feeds->find(key);
  if (feed != nullptr && feed->value) return owe(&replica, key, Say::kFeed);
  const Outcome outcome = parts_.feeds->askElsewhere(key, from);
  if (outcome != Outcome::kOk) ended(key, outcome);
}

/** The number of the worker's watchers of a feed, now. */
void RelayServer::watched(Replica* replica, std::string_view key, uint32_t watching) {
  parts_.feeds->watchedElsewhere(key, int64_t{watching} - int64_t{replica->watching});
  replica->watching = watching;
}

void RelayServer::published(const Feed& feed) {
  const auto found = feeds_.find(feed.key);
  if (lost_ || found == feeds_.end()) return;
  if (found->second.gzip) parts_.feeds->askCompressed(feed.key);
  owe(&found->second, feed.key, Say::kFeed);
}

void RelayServer::compressed(const Feed& feed) {
  const auto found = feeds_.find(feed.key);
  if (lost_ || found == feeds_.end() || !found->second.gzip) return;
  owe(&found->second, feed.key, Say::kFeedGzip);
}

/** Says it now, or when there is room. */
void RelayServer::owe(Replica* replica, std::string_view key, Say what) {
  bool& owes = what == Say::kFeed ? replica->owesVersion : replica->owesCompressed;
  if (owes) return;
  owes = true;
  owed_.push_back({std::string(key), what});
  fill();
}

void RelayServer::fill() {
  while (!owed_.empty() && outgoing().size() < kMostAhead) {
    const Owed owed = std::move(owed_.front());
    owed_.pop_front();
    const auto found = feeds_.find(owed.key);
    const Feed* const feed = parts_.feeds->find(owed.key);
    if (found == feeds_.end() || feed == nullptr) continue;
    // Of an entry that has gone and come back, what it owes now is further behind.
    Replica& replica = found->second;
    if (owed.what == Say::kFeed && std::exchange(replica.owesVersion, false)) {
      sayVersion(&replica, *feed);
    } else if (owed.what == Say::kFeedGzip && std::exchange(replica.owesCompressed, false)) {
      sayCompressed(*feed);
    }
  }
}

void RelayServer::sayVersion(Replica* replica, const Feed& feed) {
  const bool next = replica->has.version > 0 && replica->has.epoch == feed.cursor.epoch &&
                    replica->has.version + 1 == feed.cursor.version;
  text_.clear();
  writeFeed(feed, next, &text_);
  say(Say::kFeed, {}, Outcome::kOk, text_);
  replica->has = feed.cursor;
}

void RelayServer::sayCompressed(const Feed& feed) {
  text_.clear();
  writeCompressed(feed, &text_);
  say(Say::kFeedGzip, {}, Outcome::kOk, text_);
}

void RelayServer::ended(std::string_view key, Outcome why) {
  const auto found = feeds_.find(std::string(key));
  if (lost_ || found == feeds_.end()) return;
  const SayHead head = {
      .length = static_cast<uint32_t>(key.size()), .say = Say::kFeedEnd, .feedOutcome = why};
  add(head, key);
  watched(&found->second, key, 0);
  feeds_.erase(found);
}

// ---- The end ------------------------------------------------------------------------------------

void RelayServer::lost() {
  if (lost_) return;
  lost_ = true;
  decided_.clear();
  outgoing().clear();
  outgoing().shrink_to_fit();
  for (const auto& [source, count] : sources_) parts_.limits->closeElsewhere(source, count);
  sources_.clear();
  for (auto& [key, replica] : feeds_) watched(&replica, key, 0);
  feeds_.clear();
  owed_.clear();
  tally_.held = tally_.watching = tally_.streams = 0;
  clear();
}

bool RelayServer::clear() {
  if (over_ || !lost_) return true;
  for (auto& [token, parked] : script_) parts_.pool->drop(parked.record - 1, holder_, token);
  script_.clear();
  const uint32_t end = std::min(used_, cleared_ + kClearedAtOnce);
  for (; cleared_ < end; ++cleared_) {
    const uint32_t record = std::exchange(parked_[cleared_].record, 0);
    if (record != 0) parts_.pool->drop(record - 1, holder_, cleared_);
  }
  over_ = cleared_ == used_;
  return over_;
}

}  // namespace server
