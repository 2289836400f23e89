#include "relay.h"

#include <algorithm>

namespace server {

namespace {

/** Of an ask that is about nobody. */
constexpr Id kNobody = {};

}  // namespace

std::optional<Outcome> RelayHandler::join(Ticket ticket, const Address& address, Id*) {
  static_assert(sizeof(Address) == sizeof(AskHead::who) && sizeof(Id) == sizeof(AskHead::who));
  ask(Ask::kJoin, ticket, address);
  return std::nullopt;
}

std::optional<Outcome> RelayHandler::leave(Ticket ticket, const Id& id) {
  ask(Ask::kLeave, ticket, id);
  return std::nullopt;
}

std::optional<Outcome> RelayHandler::throwSprite(Ticket ticket, const HotRequest& request,
                                                 std::string_view text) {
  return throwSprite(ticket, request.id, request.edge,
                     request.hasNumber ? request.number : kNoNumber, text);
}

std::optional<Outcome> RelayHandler::throwSprite(Ticket ticket, const Id& id, Edge edge,
                                                 uint64_t number, std::string_view text) {
  // Checked here: the main process does not check it again.
  const Outcome check = checkSprite(text, maxSprite_);
  if (check != Outcome::kOk) return refuse(check);
  AskHead head = {.length = static_cast<uint32_t>(text.size()),
                  .ask = Ask::kThrow,
                  .edge = edge,
                  .ticket = ticket,
                  .number = number};
  memcpy(head.who, &id, sizeof head.who);
  add(head, text);
  return std::nullopt;
}

std::optional<Outcome> RelayHandler::input(Ticket ticket, const HotRequest& request,
                                           std::string_view arena, std::string_view text) {
  // What is in it the main process checks: the game and its fields may change at any moment.
  AskHead head = {.length = static_cast<uint32_t>(arena.size() + 1 + text.size()),
                  .ask = Ask::kInput,
                  .ticket = ticket,
                  .number = request.hasNumber ? request.number : kNoNumber};
  memcpy(head.who, &request.id, sizeof head.who);
  add(head, arena);
  outgoing() += kEndOfName;
  outgoing() += text;
  return std::nullopt;
}

PollResult RelayHandler::poll(Ticket ticket, const HotRequest& request) {
  const uint32_t hold = request.hold == kNoHold ? kNotAHold : request.hold;
  poll(ticket, request.id, request.ack, request.hasHold ? hold : kNoHold);
  // Parked, for all that is known here.
  return {Outcome::kOk, 0, {}};
}

void RelayHandler::poll(Ticket ticket, const Id& id, uint64_t ack, uint32_t hold) {
  AskHead head = {.ask = Ask::kPoll,
                  .hold = static_cast<uint16_t>(std::min<uint32_t>(hold, kNotAHold)),
                  .ticket = ticket,
                  .number = ack};
  memcpy(head.who, &id, sizeof head.who);
  add(head, {});
}

void RelayHandler::drop(uint32_t, Ticket ticket) { ask(Ask::kDrop, ticket, kNobody); }

bool RelayHandler::ended(Ticket ticket) {
  ask(Ask::kEnded, ticket, kNobody);
  return false;
}

Found RelayHandler::place(Ticket ticket, const Id& id, Place*) {
  ask(Ask::kPlace, ticket, id);
  return Found::kLater;
}

void RelayHandler::counts(Ticket ticket) { ask(Ask::kCounts, ticket, kNobody); }

void RelayHandler::countsOf(Ticket ticket, const Id& id) { ask(Ask::kCountsOf, ticket, id); }

void RelayHandler::opened(const Address& address, uint64_t tag) {
  ask(Ask::kOpened, {static_cast<uint32_t>(tag), static_cast<uint32_t>(tag >> 32)}, address);
}

void RelayHandler::closed(const Address& address) { ask(Ask::kClosed, {}, address); }

void RelayHandler::replicate(Feeds* feeds) {
  feeds_ = std::make_unique<FeedReplica>(feeds, [this](AskHead head, std::string_view text) {
    head.length = static_cast<uint32_t>(text.size());
    add(head, text);
  });
}

bool RelayHandler::receive(std::string_view bytes) {
  return says_.feed(
      bytes,
      [](const SayHead& head) {
        return head.say <= Say::kFeedEnd && head.outcome < Outcome{kOutcomes} &&
               head.length <= kLongestSaid;
      },
      [this](const SayHead& head, std::string_view text) { return take(head, text); });
}

bool RelayHandler::take(const SayHead& head, std::string_view text) {
  LateAnswers* const to = head.ticket.connection == kScriptConnection ? script_ : door_;
  switch (head.say) {
    case Say::kOutcome: {
      Id id = {};
      if (text.size() == sizeof id) memcpy(&id, text.data(), sizeof id);
      to->complete(head.ticket, head.outcome, &id);
      return true;
    }
    case Say::kUnknown:
      to->complete(head.ticket, std::nullopt, nullptr);
      return true;
    case Say::kAnswer:
      to->answer(head.ticket, text);
      return true;
    case Say::kOver:
      to->over(head.ticket);
      return true;
    case Say::kTooMany:
      to->tooMany(head.ticket);
      return true;
    case Say::kFeed:
    case Say::kFeedGzip:
    case Say::kFeedEnd:
      return feeds_ != nullptr && feeds_->take(head, text);
  }
  return false;
}

void RelayHandler::lost() {
  if (lost_) lost_();
}

}  // namespace server
