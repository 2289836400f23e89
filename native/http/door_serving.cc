// Serves hot requests: has them decided, and sends their answers.
#include <algorithm>
#include <optional>

#include "door.h"
#include "proxies.h"
#include "torus/torus.h"

namespace server {

namespace {

/** Path of the live counts. */
constexpr std::string_view kCountsPath = "/status";

}  // namespace

// ---- Requests -----------------------------------------------------------------------------------

Address Door::clientOf(const Connection& connection, std::string_view forwarded,
                       std::string_view forwardedFor) const {
  Address client = connection.clientAddress;
  if (options_.trust == Trust::kForwarded) readForwarded(forwarded, &client);
  if (options_.trust == Trust::kForwardedFor) readForwardedFor(forwardedFor, &client);
  return client;
}

Address Door::clientOf(const Connection& connection, const HotRequest& request,
                       const char* head) const {
  const auto spanText = [head](HeadSpan span) {
    return std::string_view(head + span.offset, span.length);
  };
  return clientOf(connection, spanText(request.forwarded), spanText(request.forwardedFor));
}

/** Whether an id may belong to a client of another server. */
bool Door::isOfOtherServer(const Id& id) const {
  const ServerTag tag = id.tag();
  return ownTag_ != kNoServerTag && tag != ownTag_ &&
         std::binary_search(otherServers_.begin(), otherServers_.end(), tag);
}

/**
 * Whether the live counts can be served here. If they don't come later, this call asks JavaScript
 * for them now.
 */
bool Door::hasCounts() { return parts_.countsComeLater || !liveCounts_.text().empty(); }

/** Whether a hot request is served here; otherwise JavaScript handles it. */
bool Door::servesHere(const Connection& connection, const HotRequest& request, const char* head) {
  if (connection.isTransient && request.route != Route::kJoin && request.route != Route::kThrow &&
      request.route != Route::kLeave) {
    return false;
  }
  switch (request.route) {
    case Route::kJoin:
      return !options_.privateJoin;
    case Route::kPoll:
    case Route::kPlace:
      return !isOfOtherServer(request.id);
    case Route::kFixed: {
      const std::string_view path(head + request.path.offset, request.path.length);
      return replies_.fixed(path) != nullptr || (path == kCountsPath && hasCounts());
    }
    case Route::kStatus:
      return !isOfOtherServer(request.id) && hasCounts();
    case Route::kInput:
      return parts_.requests->decidesInputs() && request.bodyLength <= maxHotBody(request) &&
             !isOfOtherServer(request.id);
    case Route::kThrow:
    case Route::kLeave:
      return request.bodyLength <= maxHotBody(request) && !isOfOtherServer(request.id);
    default:
      return request.bodyLength <= maxHotBody(request);
  }
}

/**
 * Serves the request whose head, followed by its body, is at `head`. Returns whether the next
 * request may be served: false while this one is open.
 */
bool Door::serve(Connection& connection, const HotRequest& request, const char* head) {
  const Ticket ticket = connections_.ticketOf(connection);
  Id id;
  std::optional<Outcome> outcome;
  switch (request.route) {
    case Route::kPoll:
      return servePoll(connection, request);
    case Route::kJoin:
      outcome = parts_.requests->join(ticket, clientOf(connection, request, head), &id);
      break;
    case Route::kThrow:
      outcome = parts_.requests->throwSprite(ticket, request,
                                             {head + request.headLength, request.bodyLength});
      break;
    case Route::kLeave:
      outcome = parts_.requests->leave(ticket, request.id);
      break;
    case Route::kInput:
      outcome =
          parts_.requests->input(ticket, request, {head + request.key.offset, request.key.length},
                                 {head + request.headLength, request.bodyLength});
      break;
    case Route::kFeed:
    case Route::kFeeds:
      return feeds_.serve(connection, request, clientOf(connection, request, head));
    case Route::kPlace:
      return servePlace(connection, request);
    case Route::kStatus:
      return serveCountsOf(connection, request.id);
    case Route::kFixed:
      return serveFixed(connection, {head + request.path.offset, request.path.length});
    case Route::kCold:
      break;
  }
  if (!outcome) return awaitDecision(connection, request.route);
  addDecidedAnswer(connection, {ticket, request.route, *outcome, id});
  return true;
}

/** Lets a request wait for a later decision. Returns false, as `serve` then does. */
bool Door::awaitDecision(Connection& connection, Route route) {
  connection.state = ConnectionState::kPending;
  connection.route = route;
  connection.mayStayUnanswered = false;
  connections_.disarm(connection);
  return false;
}

/** Adds a decided answer, which is sent at the end of the turn. */
void Door::addDecidedAnswer(Connection& connection, const DecidedAnswer& answer) {
  noteOutcome(connection, answer.route, answer.outcome);
  connection.hasDecidedAnswer = true;
  decidedAnswers_.push_back(answer);
}

/** Serves a poll, and returns as `serve` does. */
bool Door::servePoll(Connection& connection, const HotRequest& request) {
  const PollResult result = parts_.requests->poll(connections_.ticketOf(connection), request);
  if (result.outcome != Outcome::kOk) {
    addDecidedAnswer(connection,
                     {connections_.ticketOf(connection), Route::kPoll, result.outcome, {}});
    return true;
  }
  if (!result.answer.empty()) return answers_.send(connection, replies_.json(result.answer));
  connection.state = ConnectionState::kParked;
  connection.route = Route::kPoll;
  connection.record = result.record;
  connections_.disarm(connection);
  return false;
}

bool Door::servePlace(Connection& connection, const HotRequest& request) {
  Place place;
  switch (parts_.requests->findPlace(connections_.ticketOf(connection), request.id, &place)) {
    case LookupResult::kLater:
      return awaitDecision(connection, Route::kPlace);
    case LookupResult::kUnknown:
      return serveUnknownClient(connection, Route::kPlace);
    case LookupResult::kFound:
      break;
  }
  return answers_.send(connection, replies_.json(PlaceText(place).view()));
}

/** Serves the live counts to a client of this server. */
bool Door::serveCountsOf(Connection& connection, const Id& id) {
  const Ticket ticket = connections_.ticketOf(connection);
  if (parts_.countsComeLater) {
    parts_.requests->requestCountsOf(ticket, id);
    return awaitDecision(connection, Route::kStatus);
  }
  Place unused;
  const bool isKnown = parts_.requests->findPlace(ticket, id, &unused) == LookupResult::kFound;
  return isKnown ? serveCounts(connection) : serveUnknownClient(connection, Route::kStatus);
}

/** Answers that there is no such client. */
bool Door::serveUnknownClient(Connection& connection, Route route) {
  noteOutcome(connection, route, Outcome::kUnknownClient);
  return answers_.send(connection, textOf({{}, route, Outcome::kUnknownClient, {}}));
}

/** Serves the live counts that hasCounts has just asked for. */
bool Door::serveCounts(Connection& connection) {
  if (!parts_.countsComeLater)
    return answers_.send(connection, replies_.json(liveCounts_.lastText()));
  parts_.requests->requestCounts(connections_.ticketOf(connection));
  return awaitDecision(connection, Route::kFixed);
}

/** Serves a fixed answer, a file or the live counts. */
bool Door::serveFixed(Connection& connection, std::string_view path) {
  const Reply* reply = replies_.fixed(path);
  if (reply == nullptr) return serveCounts(connection);
  return answers_.send(connection, replies_.write(*reply));
}

void Door::logEvent(const Connection& connection, LogEventKind kind) {
  logEvents_.add({kind, Route::kCold, Outcome::kOk, connection.clientAddress});
}

void Door::noteOutcome(const Connection& connection, Route route, Outcome outcome) {
  const bool isJoin = route == Route::kJoin && outcome == Outcome::kOk;
  const bool isRefused = outcome > Outcome::kDuplicate;
  if (isRefused) ++counts_.refusals[static_cast<size_t>(outcome)];
  if (logEvents_.isEnabled() && (isJoin || isRefused)) {
    logEvents_.add({LogEventKind::kOutcome, route, outcome, connection.clientAddress});
  }
}

// ---- Answers ------------------------------------------------------------------------------------

/** The text of an answer, valid until the next call. */
std::string_view Door::textOf(const DecidedAnswer& answer) {
  const bool isJoin = answer.route == Route::kJoin && answer.outcome == Outcome::kOk;
  const auto& reply = replies_.reply(answer.outcome);
  return isJoin ? replies_.joined(answer.id) : replies_.write(reply);
}

void Door::sendAnswers() {
  for (size_t i = 0; i < decidedAnswers_.size();) {
    const Ticket ticket = decidedAnswers_[i].ticket;
    Connection* connection = connections_.find(ticket);
    std::string_view bytes = textOf(decidedAnswers_[i++]);
    const auto isNextOfSame = [&] {
      return i < decidedAnswers_.size() && decidedAnswers_[i].ticket == ticket;
    };
    const bool inputRefused = connection != nullptr && connection->inputRefused;
    if (inputRefused || isNextOfSame()) {
      // Several answers of requests sent ahead, with one system call.
      joinedAnswers_ = bytes;
      while (isNextOfSame()) joinedAnswers_ += textOf(decidedAnswers_[i++]);
      if (inputRefused) {
        noteOutcome(*connection, Route::kCold, Outcome::kTooMuchHeld);
        joinedAnswers_ += lastAnswer(Outcome::kTooMuchHeld, connection->inputIsHead);
      }
      bytes = joinedAnswers_;
    }
    if (connection == nullptr) continue;
    connection->hasDecidedAnswer = false;
    if (inputRefused) {
      answers_.sendLast(*connection, bytes);
    } else if (answers_.send(*connection, bytes)) {
      resumeLater(*connection);
    } else if (connections_.find(ticket) != nullptr &&
               connection->state == ConnectionState::kPending) {
      // The client does not read its answers, and its next request waits for a decision: the output
      // has no room for that answer.
      connections_.close(*connection);
    }
  }
  decidedAnswers_.clear();
}

void Door::dropAnswers() {
  for (const DecidedAnswer& answer : decidedAnswers_) {
    if (Connection* connection = connections_.find(answer.ticket)) connections_.close(*connection);
  }
  decidedAnswers_.clear();
}

/** The connection of a request that waits for a decision; nullptr: gone. */
Connection* Door::findAwaitingDecision(Ticket ticket) {
  Connection* const connection = connections_.find(ticket);
  const bool isAwaiting =
      connection != nullptr && (connection->state == ConnectionState::kPending ||
                                connection->state == ConnectionState::kParked);
  return isAwaiting ? connection : nullptr;
}

void Door::complete(Ticket ticket, std::optional<Outcome> outcome, const Id* id) {
  Connection* const connection = findAwaitingDecision(ticket);
  if (connection == nullptr) return;
  if (!outcome) return connections_.close(*connection);
  connection->state = ConnectionState::kReading;
  noteOutcome(*connection, connection->route, *outcome);
  const DecidedAnswer answer = {ticket, connection->route, *outcome, id == nullptr ? Id{} : *id};
  if (answers_.send(*connection, textOf(answer))) resumeLater(*connection);
}

void Door::answer(Ticket ticket, std::string_view body) {
  if (findAwaitingDecision(ticket) != nullptr) answer(ticket.connection, body);
}

void Door::closeParkedPoll(Ticket ticket) {
  Connection* const connection = connections_.find(ticket);
  if (connection != nullptr && connection->state == ConnectionState::kParked) {
    connections_.close(*connection);
  }
}

void Door::answer(uint32_t token, std::string_view body) {
  Connection& connection = connections_[token];
  connection.state = ConnectionState::kReading;
  if (answers_.send(connection, replies_.json(body))) resumeLater(connection);
}

}  // namespace server
