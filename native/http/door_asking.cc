// How JavaScript handles the requests that are not hot: one call with the complete request, and one
// call back with its answer.
//
//   cold ─▶ begin ─┬─ whole ──▶ handle ─┬─ share left ─▶ ask ─▶ … ─▶ respond, watch or abandon
//                  └─▶ arrive ──▶ ▲     └─ waiting ─▶ handleWaiting ─▲
#include <algorithm>
#include <utility>

#include "characters.h"
#include "door.h"
#include "proxies.h"

namespace server {

namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

/**
 * Returns the first segment of a target's path, in origin or absolute form (RFC 9112, section 3.2).
 */
std::string_view firstSegment(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!isWord(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find_first_of("/?#"), target.size()));
    break;
  }
  if (target.starts_with('/')) target.remove_prefix(1);
  return target.substr(0, target.find_first_of("/?#"));
}

}  // namespace

// ---- Reading ------------------------------------------------------------------------------------

/** Reads the head of a request that is not hot at the start of `data`. */
void Door::cold(Connection& connection, std::string_view data) {
  // Answers are sent in the order of their requests.
  if (connection.hasDecidedAnswer) {
    keep(connection, data.data(), data.size(), 0);
    return;
  }
  switch (readRequest(data, options_.headBytes, &head_)) {
    case ReadResult::kIncomplete:
      return awaitRest(connection, data.data(), data.size(), 0);
    case ReadResult::kBad:
      return broken(connection, LogEventKind::kBadRequest);
    case ReadResult::kTooLarge:
      return broken(connection, LogEventKind::kHeadTooLarge);
    case ReadResult::kExpectation:
      return broken(connection, LogEventKind::kExpectation);
    case ReadResult::kComplete:
      return begin(connection, data);
  }
}

/**
 * Refuses a request that can't be answered otherwise; the start of the next one is unknown, so the
 * connection closes.
 */
void Door::broken(Connection& connection, LogEventKind why) {
  note(connection, why);
  const Replies& replies = replies_.replies();
  const Reply& reply = why == LogEventKind::kBadRequest     ? replies.badRequest
                       : why == LogEventKind::kHeadTooLarge ? replies.headTooLarge
                                                            : replies.expectationFailed;
  answers_.sendLast(connection, replies_.writeLast(reply));
}

uint32_t Door::mostBodyOf(const RequestHead& head) const {
  const std::string_view segment = firstSegment(head.target);
  for (const auto& [name, most] : asker_.bodies.most) {
    if (name == segment) return most;
  }
  return asker_.bodies.other;
}

/** Settles the request whose head was read at the start of `data`, or waits for its body. */
void Door::begin(Connection& connection, std::string_view data) {
  ++counts_.requests;
  connection.closesAfterAnswer = !head_.keepsAlive;
  connection.isHttp10 = head_.isHttp10;
  const std::string_view head = data.substr(0, head_.headLength);
  const std::string_view rest = data.substr(head_.headLength);
  const uint32_t most = mostBodyOf(head_);
  if (head_.framing == Framing::kLength && head_.bodyLength > most) {
    return settle(connection, head, {Body::State::kTooLong}, {});
  }
  if (head_.framing != Framing::kChunked && head_.bodyLength <= rest.size()) {
    const std::string_view body = rest.substr(0, head_.bodyLength);
    return settle(connection, head, {Body::State::kWhole, body}, rest.substr(body.size()));
  }
  const uint64_t cost = head.size() + head_.bodyLength;
  if (!connections_.reserveMemory(connection, cost)) return refuseHeld(connection);
  ColdRequest& arrival = cold_.add(connections_.indexOf(connection));
  arrival.head = head;
  arrival.framing = head_.framing;
  arrival.bodyLength = head_.bodyLength;
  arrival.maxBodyBytes = most;
  arrival.countedBytes = cost;
  connection.hasColdRequest = true;
  // A client that has sent a part of the body does not wait (RFC 9110, section 10.1.1).
  if (head_.expectsContinue && rest.empty()) {
    return settle(connection, head, {Body::State::kAwaited}, {});
  }
  connections_.arm(connection, Deadline::kBody, options_.bodyTime);
  arrive(connection, rest);
}

void Door::proceed(Ticket ticket) {
  Connection* const connection = asked(ticket);
  if (connection == nullptr) return;
  connection->state = ConnectionState::kReading;
  if (!answers_.sendInterim(*connection, kContinue)) return;
  connections_.arm(*connection, Deadline::kBody, options_.bodyTime);
  // Processes a body that the client has sent without waiting.
  const size_t length = connection->inputLength;
  const Input input = connections_.detachInput(*connection);
  arrive(*connection, {input.get(), length});
  if (connections_.find(ticket) != nullptr) resumeMore(*connection);
}

/** Reads more of a request's body. */
void Door::arrive(Connection& connection, std::string_view data) {
  ColdRequest& arrival = *cold_.find(connections_.indexOf(connection));
  const ChunkDecoder::State state = arrival.readBody(&data);
  if (state == ChunkDecoder::State::kBad) return broken(connection, LogEventKind::kBadRequest);
  const uint64_t cost = arrival.head.size() + std::max(arrival.bodyLength, arrival.body.size());
  if (cost > arrival.countedBytes) {
    if (!connections_.reserveMemory(connection, cost - arrival.countedBytes))
      return refuseHeld(connection);
    arrival.countedBytes = cost;
  }
  if (state == ChunkDecoder::State::kIncomplete) return connections_.updateInterest(connection);
  const ColdRequest whole = endArrival(connection);
  if (state == ChunkDecoder::State::kTooLong) {
    return settle(connection, whole.head, {Body::State::kTooLong}, {});
  }
  settle(connection, whole.head, {Body::State::kWhole, whole.body}, data);
}

/** Removes and returns a connection's request from ColdRequests. */
ColdRequest Door::endArrival(Connection& connection) {
  connection.hasColdRequest = false;
  ColdRequest arrival = cold_.remove(connections_.indexOf(connection));
  connections_.releaseMemory(connection, arrival.countedBytes);
  return arrival;
}

/** Sends a 503 as the last answer: too much is held for the connection's address. */
void Door::refuseHeld(Connection& connection) {
  answers_.sendLast(connection, replies_.writeLast(replies_.replies().tooMuchHeld));
}

// ---- Asking -------------------------------------------------------------------------------------

/**
 * Asks for the answer of a complete request, or queues it. `behind`: bytes that were sent ahead.
 */
void Door::settle(Connection& connection, std::string_view head, Body body,
                  std::string_view behind) {
  connection.state = ConnectionState::kPending;
  connection.route = Route::kCold;
  connection.mayStayUnanswered = false;
  // After an unread body the next request can't be found.
  connection.closesAfterAnswer =
      connection.closesAfterAnswer || body.state == Body::State::kTooLong;
  connections_.disarm(connection);
  if (!behind.empty() && !connection.closesAfterAnswer) {
    if (!keep(connection, behind.data(), behind.size(), 0)) return;
  }
  connections_.updateInterest(connection);
  if (cold_.queue().empty() && mayAsk()) return ask(connection, head, body);
  // A request with an awaited body is in ColdRequests already.
  if (!connection.hasColdRequest) {
    const uint64_t cost = head.size() + body.bytes.size();
    if (!connections_.reserveMemory(connection, cost)) return refuseHeld(connection);
    connection.hasColdRequest = true;
    ColdRequest& arrival = cold_.add(connections_.indexOf(connection));
    arrival.head = head;
    arrival.body = body.bytes;
    arrival.countedBytes = cost;
  }
  cold_.find(connections_.indexOf(connection))->bodyState = body.state;
  // The call may come from JavaScript, outside a turn.
  if (cold_.queue().empty()) parts_.events->wake();
  cold_.queue().add(connection.clientAddress, connections_.ticketOf(connection));
}

bool Door::mayAsk() const { return script_.hasTimeLeft() && (!asker_.mayAsk || asker_.mayAsk()); }

/** Asks for the answers of queued requests, within the turn's share. */
void Door::handleWaiting() {
  while (!cold_.queue().empty() && mayAsk()) {
    Connection* const connection = asked(cold_.queue().pop());
    if (connection == nullptr) continue;
    ColdRequest* const waiting = cold_.find(connections_.indexOf(*connection));
    if (waiting->bodyState == Body::State::kAwaited) {
      const std::string head = waiting->head;
      ask(*connection, head, {Body::State::kAwaited});
    } else {
      const ColdRequest whole = endArrival(*connection);
      ask(*connection, whole.head, {whole.bodyState, whole.body});
    }
  }
}

void Door::ask(Connection& connection, std::string_view head, Body body) {
  const uint64_t began = parts_.clock();
  if (body.state != Body::State::kAwaited) ++counts_.handled;
  // Reads the head again: its views must point into these bytes.
  readRequest(head, options_.headBytes, &head_);
  const Address client =
      clientOf(connection, head_.lastValue("forwarded"), head_.lastValue("x-forwarded-for"));
  asker_.ask({.ticket = connections_.ticketOf(connection),
              .head = head_,
              .text = head,
              .body = body,
              .client = client,
              .secure = connection.isTls,
              .transient = connection.isTransient});
  script_.addWork(began, parts_.clock(), cold_.queue().addresses());
}

// ---- Answers ------------------------------------------------------------------------------------

/** The connection of a request that JavaScript was asked to handle; nullptr: gone. */
Connection* Door::asked(Ticket ticket) {
  Connection* const connection = connections_.find(ticket);
  const bool waits = connection != nullptr && connection->state == ConnectionState::kPending &&
                     connection->route == Route::kCold;
  return waits ? connection : nullptr;
}

/** Ends the state of a request that JavaScript answers now. */
void Door::endAsking(Connection& connection) {
  connection.mayStayUnanswered = false;
  if (!connection.hasColdRequest) return;
  // The client was not asked for the body, and may send it or not.
  ++counts_.handled;
  endArrival(connection);
  connection.closesAfterAnswer = true;
}

void Door::respond(Ticket ticket, std::string_view statusLine, std::string_view fields,
                   std::string_view body) {
  Connection* const connection = asked(ticket);
  if (connection == nullptr) return;
  connection->state = ConnectionState::kReading;
  endAsking(*connection);
  const std::string_view text =
      replies_.compose(statusLine, connection->closesAfterAnswer, fields, body);
  if (answers_.send(*connection, text)) resumeLater(*connection);
}

void Door::watch(Ticket ticket, const FeedRequest* wanted, uint32_t count, WatchOptions how) {
  Connection* const connection = asked(ticket);
  if (connection == nullptr) return;
  connection->state = ConnectionState::kReading;
  endAsking(*connection);
  // Without chunks the end of the connection ends a stream.
  connection->closesAfterAnswer =
      connection->closesAfterAnswer || (how.stream && connection->isHttp10);
  Outcome outcome = Outcome::kOk;
  if (how.verifiedGrant != nullptr && !feeds_.takeGrant(*how.verifiedGrant, &how)) {
    outcome = Outcome::kTooManyWatchers;
  }
  if (outcome == Outcome::kOk) outcome = feeds_.watch(*connection, wanted, count, how);
  if (outcome == Outcome::kOk) {
    // The client may have ended its half meanwhile: then no client waits for news.
    const bool parked =
        connection->state == ConnectionState::kWatching && connection->mayStayUnanswered;
    if (parked && connection->interest == Interest::kReset) connections_.close(*connection);
    return;
  }
  noteOutcome(*connection, how.hasManyFeeds ? Route::kFeeds : Route::kFeed, outcome);
  const Reply& reply = replies_.replies().outcomes[static_cast<size_t>(outcome)];
  if (answers_.send(*connection, replies_.write(reply, connection->closesAfterAnswer))) {
    resumeLater(*connection);
  }
}

void Door::abandon(Ticket ticket) {
  if (Connection* const connection = asked(ticket)) connections_.close(*connection);
}

bool Door::park(Ticket ticket) {
  Connection* const connection = asked(ticket);
  if (connection == nullptr) return false;
  // The client may have ended its half meanwhile.
  connection->mayStayUnanswered = connection->interest != Interest::kReset;
  if (!connection->mayStayUnanswered) connections_.close(*connection);
  return connection->mayStayUnanswered;
}

}  // namespace server
