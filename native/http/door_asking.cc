// How JavaScript handles the requests that are not hot: one call with the complete request, and one
// call back with its answer.
//
//   readColdHead ─▶ beginColdRequest ─┬─ whole ──▶ handleOrQueue ─┬─ share left ─▶ callScript ─▶ …
//                                     └─▶ readColdBody ──▶ ▲      └─ queue ─▶ handleQueued ─▲
//
//   … ─▶ respond, watch or abandon
#include <algorithm>

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
void Door::readColdHead(Connection& connection, std::string_view data) {
  // Answers are sent in the order of their requests.
  if (connection.hasDecidedAnswer) {
    storeOrRefuse(connection, data.data(), data.size(), 0);
    return;
  }
  switch (readRequest(data, options_.headBytes, &coldHead_)) {
    case ReadResult::kIncomplete:
      return awaitRest(connection, data.data(), data.size(), 0);
    case ReadResult::kBad:
      return refuse(connection, Outcome::kBadRequest, data);
    case ReadResult::kTooLarge:
      return refuse(connection, Outcome::kHeadTooLarge, data);
    case ReadResult::kExpectation:
      return refuse(connection, Outcome::kExpectationFailed, data);
    case ReadResult::kComplete:
      return beginColdRequest(connection, data);
  }
}

uint32_t Door::maxColdBody(const RequestHead& head) const {
  const std::string_view segment = firstSegment(head.target);
  for (const auto& [name, most] : scriptHandler_.bodies.most) {
    if (name == segment) return most;
  }
  return scriptHandler_.bodies.other;
}

/** Settles the request whose head was read at the start of `data`, or waits for its body. */
void Door::beginColdRequest(Connection& connection, std::string_view data) {
  ++counts_.requests;
  connection.closesAfterAnswer = !coldHead_.keepsAlive;
  connection.isHttp10 = coldHead_.isHttp10;
  const std::string_view head = data.substr(0, coldHead_.headLength);
  const std::string_view rest = data.substr(coldHead_.headLength);
  const uint32_t maxBodyBytes = maxColdBody(coldHead_);
  if (coldHead_.framing == Framing::kLength && coldHead_.bodyLength > maxBodyBytes) {
    return handleOrQueue(connection, head, {Body::State::kTooLong}, {});
  }
  if (coldHead_.framing != Framing::kChunked && coldHead_.bodyLength <= rest.size()) {
    const std::string_view body = rest.substr(0, coldHead_.bodyLength);
    return handleOrQueue(connection, head, {Body::State::kWhole, body}, rest.substr(body.size()));
  }
  const uint64_t cost = head.size() + coldHead_.bodyLength;
  if (!connections_.reserveMemory(connection, cost))
    return refuse(connection, Outcome::kTooMuchHeld, head);
  ColdRequest& request = coldRequests_[connections_.indexOf(connection)];
  request.head = head;
  request.framing = coldHead_.framing;
  request.bodyLength = coldHead_.bodyLength;
  request.maxBodyBytes = maxBodyBytes;
  request.countedBytes = cost;
  connection.hasColdRequest = true;
  // A client that has sent a part of the body does not wait (RFC 9110, section 10.1.1).
  if (coldHead_.expectsContinue && rest.empty()) {
    return handleOrQueue(connection, head, {Body::State::kAwaited}, {});
  }
  connections_.arm(connection, Deadline::kBody, options_.bodyTime);
  readColdBody(connection, rest);
}

void Door::proceed(Ticket ticket) {
  Connection* const connection = findAwaitingScript(ticket);
  if (connection == nullptr) return;
  connection->state = ConnectionState::kReading;
  if (!answers_.sendInterim(*connection, kContinue)) return;
  connections_.arm(*connection, Deadline::kBody, options_.bodyTime);
  // Processes a body that the client has sent without waiting.
  const size_t length = connection->inputLength;
  const Input input = connections_.detachInput(*connection);
  readColdBody(*connection, {input.get(), length});
  if (connections_.find(ticket) != nullptr) resumeIfBuffered(*connection);
}

/** Reads more of a request's body. */
void Door::readColdBody(Connection& connection, std::string_view data) {
  ColdRequest& request = coldRequests_.at(connections_.indexOf(connection));
  const ChunkDecoder::State state = request.readBody(&data);
  if (state == ChunkDecoder::State::kBad) {
    return refuse(connection, Outcome::kBadRequest, request.head);
  }
  const uint64_t cost = request.head.size() + std::max(request.bodyLength, request.body.size());
  if (cost > request.countedBytes) {
    if (!connections_.reserveMemory(connection, cost - request.countedBytes))
      return refuse(connection, Outcome::kTooMuchHeld, request.head);
    request.countedBytes = cost;
  }
  if (state == ChunkDecoder::State::kIncomplete) return connections_.updateInterest(connection);
  const ColdRequest complete = removeColdRequest(connection);
  if (state == ChunkDecoder::State::kTooLong) {
    return handleOrQueue(connection, complete.head, {Body::State::kTooLong}, {});
  }
  handleOrQueue(connection, complete.head, {Body::State::kWhole, complete.body}, data);
}

/** Removes and returns a connection's request. */
ColdRequest Door::removeColdRequest(Connection& connection) {
  connection.hasColdRequest = false;
  ColdRequest request = std::move(coldRequests_.extract(connections_.indexOf(connection)).mapped());
  connections_.releaseMemory(connection, request.countedBytes);
  return request;
}

// ---- Asking -------------------------------------------------------------------------------------

/**
 * Asks for the answer of a complete request, or queues it. `sentAhead`: bytes that were sent ahead.
 */
void Door::handleOrQueue(Connection& connection, std::string_view head, Body body,
                         std::string_view sentAhead) {
  connection.state = ConnectionState::kPending;
  connection.route = Route::kCold;
  connection.mayStayUnanswered = false;
  // After an unread body the next request can't be found.
  connection.closesAfterAnswer =
      connection.closesAfterAnswer || body.state == Body::State::kTooLong;
  connections_.disarm(connection);
  if (!sentAhead.empty() && !connection.closesAfterAnswer) {
    if (!storeOrRefuse(connection, sentAhead.data(), sentAhead.size(), 0)) return;
  }
  connections_.updateInterest(connection);
  if (queuedRequests_.empty() && mayCallScript()) return callScript(connection, head, body);
  // A request with an awaited body is kept already.
  if (!connection.hasColdRequest) {
    const uint64_t cost = head.size() + body.bytes.size();
    if (!connections_.reserveMemory(connection, cost))
      return refuse(connection, Outcome::kTooMuchHeld, head);
    connection.hasColdRequest = true;
    ColdRequest& request = coldRequests_[connections_.indexOf(connection)];
    request.head = head;
    request.body = body.bytes;
    request.countedBytes = cost;
  }
  coldRequests_.at(connections_.indexOf(connection)).bodyState = body.state;
  // The call may come from JavaScript, outside a turn.
  if (queuedRequests_.empty()) parts_.events->wake();
  queuedRequests_.add(connection.clientAddress, connections_.ticketOf(connection));
}

bool Door::mayCallScript() const {
  return scriptShare_.hasTimeLeft() && (!scriptHandler_.mayHandle || scriptHandler_.mayHandle());
}

/** Asks for the answers of queued requests, within the turn's share. */
void Door::handleQueued() {
  while (!queuedRequests_.empty() && mayCallScript()) {
    Connection* const connection = findAwaitingScript(queuedRequests_.pop());
    if (connection == nullptr) continue;
    const ColdRequest& request = coldRequests_.at(connections_.indexOf(*connection));
    if (request.bodyState == Body::State::kAwaited) {
      const std::string head = request.head;
      callScript(*connection, head, {Body::State::kAwaited});
    } else {
      const ColdRequest complete = removeColdRequest(*connection);
      callScript(*connection, complete.head, {complete.bodyState, complete.body});
    }
  }
}

void Door::callScript(Connection& connection, std::string_view head, Body body) {
  const uint64_t began = parts_.clock();
  if (body.state != Body::State::kAwaited) ++counts_.handled;
  // Reads the head again: its views must point into these bytes.
  readRequest(head, options_.headBytes, &coldHead_);
  const Address client = clientOf(connection, coldHead_.lastValue("forwarded"),
                                  coldHead_.lastValue("x-forwarded-for"));
  scriptHandler_.handle({.ticket = connections_.ticketOf(connection),
                         .head = coldHead_,
                         .text = head,
                         .body = body,
                         .client = client,
                         .secure = connection.isTls,
                         .transient = connection.isTransient});
  scriptShare_.addWork(began, parts_.clock(), queuedRequests_.addressCount());
}

// ---- Answers ------------------------------------------------------------------------------------

/** The connection of a request that JavaScript was asked to handle; nullptr: gone. */
Connection* Door::findAwaitingScript(Ticket ticket) {
  Connection* const connection = connections_.find(ticket);
  const bool isAwaiting = connection != nullptr && connection->state == ConnectionState::kPending &&
                          connection->route == Route::kCold;
  return isAwaiting ? connection : nullptr;
}

/** Ends the state of a request that JavaScript answers now. */
void Door::endScriptRequest(Connection& connection) {
  connection.mayStayUnanswered = false;
  if (!connection.hasColdRequest) return;
  // The client was not asked for the body, and may send it or not.
  ++counts_.handled;
  removeColdRequest(connection);
  connection.closesAfterAnswer = true;
}

void Door::respond(Ticket ticket, std::string_view statusLine, std::string_view fields,
                   std::string_view body) {
  Connection* const connection = findAwaitingScript(ticket);
  if (connection == nullptr) return;
  connection->state = ConnectionState::kReading;
  endScriptRequest(*connection);
  const std::string_view text =
      replies_.compose(statusLine, connection->closesAfterAnswer, fields, body);
  if (answers_.send(*connection, text)) resumeLater(*connection);
}

void Door::watch(Ticket ticket, const FeedRequest* wanted, uint32_t count, WatchOptions how) {
  Connection* const connection = findAwaitingScript(ticket);
  if (connection == nullptr) return;
  connection->state = ConnectionState::kReading;
  endScriptRequest(*connection);
  // Without chunks the end of the connection ends a stream.
  connection->closesAfterAnswer =
      connection->closesAfterAnswer || (how.stream && connection->isHttp10);
  Outcome outcome = Outcome::kOk;
  if (how.verifiedGrant != nullptr && !feeds_.storeVerifiedGrant(*how.verifiedGrant, &how)) {
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
  const Reply& reply = replies_.reply(outcome);
  if (answers_.send(*connection, replies_.write(reply, connection->closesAfterAnswer))) {
    resumeLater(*connection);
  }
}

void Door::abandon(Ticket ticket) {
  if (Connection* const connection = findAwaitingScript(ticket)) connections_.close(*connection);
}

bool Door::park(Ticket ticket) {
  Connection* const connection = findAwaitingScript(ticket);
  if (connection == nullptr) return false;
  // The client may have ended its half meanwhile.
  connection->mayStayUnanswered = connection->interest != Interest::kReset;
  if (!connection->mayStayUnanswered) connections_.close(*connection);
  return connection->mayStayUnanswered;
}

}  // namespace server
