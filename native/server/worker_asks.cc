#include "worker_asks.h"

#include <algorithm>

namespace server {

namespace {

/** The `who` of an ask that names no client or address. */
constexpr Id kNobody = {};

}  // namespace

std::optional<Outcome> WorkerAsks::join(Ticket ticket, const Address& address, Id*) {
  addAsk(askBy(Ask::kJoin, ticket, address), {});
  return std::nullopt;
}

std::optional<Outcome> WorkerAsks::leave(Ticket ticket, const Id& id) {
  addAsk(askBy(Ask::kLeave, ticket, id), {});
  return std::nullopt;
}

std::optional<Outcome> WorkerAsks::throwSprite(Ticket ticket, const HotRequest& request,
                                               std::string_view text) {
  // Checked here, in this thread: the main thread does not check it again.
  const Outcome check = checkSprite(text, options_.maxSprite);
  if (check != Outcome::kOk) return check;
  AskHead head = askBy(Ask::kThrow, ticket, request.id);
  head.edge = request.edge;
  head.number = request.hasNumber ? request.number : kNoNumber;
  addAsk(head, text);
  return std::nullopt;
}

std::optional<Outcome> WorkerAsks::input(Ticket ticket, const HotRequest& request,
                                         std::string_view arena, std::string_view text) {
  // The main thread checks the text: the game and its fields may change at any moment.
  AskHead head = askBy(Ask::kInput, ticket, request.id);
  head.number = request.hasNumber ? request.number : kNoNumber;
  head.length = static_cast<uint32_t>(arena.size() + 1 + text.size());
  addMessage(&gathered_, head, arena);
  gathered_ += kEndOfName;
  gathered_ += text;
  return std::nullopt;
}

PollResult WorkerAsks::poll(Ticket ticket, const HotRequest& request) {
  AskHead head = askBy(Ask::kPoll, ticket, request.id);
  // A hold that does not fit into 16 bits is refused anyway.
  head.hold = static_cast<uint16_t>(std::min<uint32_t>(holdOf(request), UINT16_MAX));
  head.number = request.ack;
  addAsk(head, {});
  // Parked, as far as this thread knows.
  return {Outcome::kOk, 0, {}};
}

void WorkerAsks::dropPoll(uint32_t, Ticket ticket) {
  addAsk(askBy(Ask::kDrop, ticket, kNobody), {});
}

bool WorkerAsks::mayDropEndedPoll(Ticket ticket) {
  addAsk(askBy(Ask::kEnded, ticket, kNobody), {});
  return false;
}

LookupResult WorkerAsks::findPlace(Ticket ticket, const Id& id, Place*) {
  addAsk(askBy(Ask::kPlace, ticket, id), {});
  return LookupResult::kLater;
}

void WorkerAsks::requestCounts(Ticket ticket) { addAsk(askBy(Ask::kCounts, ticket, kNobody), {}); }

void WorkerAsks::requestCountsOf(Ticket ticket, const Id& id) {
  addAsk(askBy(Ask::kCountsOf, ticket, id), {});
}

void WorkerAsks::ask(const ScriptRequest& question) {
  ++waitingRequests_;
  AskHead head = askBy(Ask::kRequest, question.ticket, question.client);
  const RequestFlags flags = {question.body.state, question.secure, question.transient, {}};
  memcpy(&head.number, &flags, sizeof flags);
  head.length = static_cast<uint32_t>(question.text.size() + question.body.bytes.size());
  addMessage(&gathered_, head, question.text);
  gathered_ += question.body.bytes;
}

void WorkerAsks::gone(Ticket ticket) { addAsk(askBy(Ask::kGone, ticket, kNobody), {}); }

}  // namespace server
