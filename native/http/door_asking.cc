// How the front door has JavaScript handle the requests that are not hot: one call each, with all
// of the request, and one back with its answer.
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

/** The first segment of a target's path, in origin or absolute form (RFC 9112, section 3.2). */
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
  // Answers go out in the order of their requests.
  if (connection.decided) {
    keep(connection, data.data(), data.size(), 0);
    return;
  }
  switch (readRequest(data, options_.headBytes, &head_)) {
    case Reading::kIncomplete:
      return awaitRest(connection, data.data(), data.size(), 0);
    case Reading::kBad:
      return broken(connection, LogEventKind::kBadRequest);
    case Reading::kTooLarge:
      return broken(connection, LogEventKind::kHeadTooLarge);
    case Reading::kExpectation:
      return broken(connection, LogEventKind::kExpectation);
    case Reading::kRead:
      return begin(connection, data);
  }
}

/** The connection's request can't be answered otherwise, and it is unknown where the next begins.
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

/** The head at the start of `data` is read: settles its request, or waits for the rest of it. */
void Door::begin(Connection& connection, std::string_view data) {
  ++counts_.requests;
  connection.last = !head_.stays;
  connection.plain = head_.http10;
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
  if (!connections_.hold(connection, cost)) return refuseHeld(connection);
  Arrival& arrival = cold_.begin(connections_.indexOf(connection));
  arrival.head = head;
  arrival.framing = head_.framing;
  arrival.length = head_.bodyLength;
  arrival.most = most;
  arrival.held = cost;
  connection.arriving = true;
  // A client that has sent some of the body already does not wait (RFC 9110, section 10.1.1).
  if (head_.expects && rest.empty()) {
    return settle(connection, head, {Body::State::kAwaited}, {});
  }
  connections_.arm(connection, Deadline::kBody, options_.bodyTime);
  arrive(connection, rest);
}

void Door::proceed(Ticket ticket) {
  Connection* const connection = asked(ticket);
  if (connection == nullptr) return;
  connection->state = ConnectionState::kReading;
  if (!answers_.announce(*connection, kContinue)) return;
  connections_.arm(*connection, Deadline::kBody, options_.bodyTime);
  // What has come unasked.
  const size_t length = connection->inputLength;
  const Input input = connections_.takeInput(*connection);
  arrive(*connection, {input.get(), length});
  if (connections_.find(ticket) != nullptr) resumeMore(*connection);
}

/** More of a request's body has come. */
void Door::arrive(Connection& connection, std::string_view data) {
  Arrival& arrival = *cold_.find(connections_.indexOf(connection));
  const Chunks::State state = arrival.take(&data);
  if (state == Chunks::State::kBad) return broken(connection, LogEventKind::kBadRequest);
  const uint64_t cost = arrival.head.size() + std::max(arrival.length, arrival.body.size());
  if (cost > arrival.held) {
    if (!connections_.hold(connection, cost - arrival.held)) return refuseHeld(connection);
    arrival.held = cost;
  }
  if (state == Chunks::State::kMore) return connections_.watch(connection);
  const Arrival whole = endArrival(connection);
  if (state == Chunks::State::kTooMuch) {
    return settle(connection, whole.head, {Body::State::kTooLong}, {});
  }
  settle(connection, whole.head, {Body::State::kWhole, whole.body}, data);
}

/** Forgets what has come of a connection's request, and gives it. */
Arrival Door::endArrival(Connection& connection) {
  connection.arriving = false;
  Arrival arrival = cold_.take(connections_.indexOf(connection));
  connections_.release(connection, arrival.held);
  return arrival;
}

/** Too much is held for the connection's address: its last answer says so. */
void Door::refuseHeld(Connection& connection) {
  answers_.sendLast(connection, replies_.writeLast(replies_.replies().tooMuchHeld));
}

// ---- Asking -------------------------------------------------------------------------------------

/**
 * A request is read, and `behind` it is what was sent ahead: asks for its answer, or has it wait
 * for its turn.
 */
void Door::settle(Connection& connection, std::string_view head, Body body,
                  std::string_view behind) {
  connection.state = ConnectionState::kPending;
  connection.route = Route::kCold;
  connection.waits = false;
  // The next request behind a body that is not read is not looked for.
  connection.last = connection.last || body.state == Body::State::kTooLong;
  connections_.disarm(connection);
  if (!behind.empty() && !connection.last) {
    if (!keep(connection, behind.data(), behind.size(), 0)) return;
  }
  connections_.watch(connection);
  if (cold_.waiting().empty() && mayAsk()) return ask(connection, head, body);
  // What is awaited has its place already.
  if (!connection.arriving) {
    const uint64_t cost = head.size() + body.bytes.size();
    if (!connections_.hold(connection, cost)) return refuseHeld(connection);
    connection.arriving = true;
    Arrival& arrival = cold_.begin(connections_.indexOf(connection));
    arrival.head = head;
    arrival.body = body.bytes;
    arrival.held = cost;
  }
  cold_.find(connections_.indexOf(connection))->state = body.state;
  // JavaScript may have said so outside a turn.
  if (cold_.waiting().empty()) parts_.events->wake();
  cold_.waiting().add(connection.client, connections_.ticketOf(connection));
}

bool Door::mayAsk() const { return script_.left() && (!asker_.mayAsk || asker_.mayAsk()); }

/** Asks for the answers of those that wait, as far as the turn's share goes. */
void Door::handleWaiting() {
  while (!cold_.waiting().empty() && mayAsk()) {
    Connection* const connection = asked(cold_.waiting().take());
    if (connection == nullptr) continue;
    Arrival* const waiting = cold_.find(connections_.indexOf(*connection));
    if (waiting->state == Body::State::kAwaited) {
      const std::string head = waiting->head;
      ask(*connection, head, {Body::State::kAwaited});
    } else {
      const Arrival whole = endArrival(*connection);
      ask(*connection, whole.head, {whole.state, whole.body});
    }
  }
}

void Door::ask(Connection& connection, std::string_view head, Body body) {
  const uint64_t began = parts_.clock();
  if (body.state != Body::State::kAwaited) ++counts_.handled;
  // Its views are of these bytes, wherever it was read first.
  readRequest(head, options_.headBytes, &head_);
  const Address client =
      clientOf(connection, head_.last("forwarded"), head_.last("x-forwarded-for"));
  asker_.ask({.ticket = connections_.ticketOf(connection),
              .head = head_,
              .text = head,
              .body = body,
              .client = client,
              .secure = connection.secure,
              .transient = connection.transient});
  script_.use(began, parts_.clock(), cold_.waiting().addresses());
}

// ---- Answers ------------------------------------------------------------------------------------

/** The connection of a request that JavaScript was asked to handle, or nullptr. */
Connection* Door::asked(Ticket ticket) {
  Connection* const connection = connections_.find(ticket);
  const bool waits = connection != nullptr && connection->state == ConnectionState::kPending &&
                     connection->route == Route::kCold;
  return waits ? connection : nullptr;
}

/** A request that JavaScript was asked to handle is answered now, whatever it was asked before. */
void Door::endAsking(Connection& connection) {
  connection.waits = false;
  if (!connection.arriving) return;
  // Its body was not asked for, and may come or not.
  ++counts_.handled;
  endArrival(connection);
  connection.last = true;
}

void Door::respond(Ticket ticket, std::string_view statusLine, std::string_view fields,
                   std::string_view body) {
  Connection* const connection = asked(ticket);
  if (connection == nullptr) return;
  connection->state = ConnectionState::kReading;
  endAsking(*connection);
  const std::string_view text = replies_.compose(statusLine, connection->last, fields, body);
  if (answers_.send(*connection, text)) resumeLater(*connection);
}

void Door::watch(Ticket ticket, const Wanted* wanted, uint32_t count, WatchHow how) {
  Connection* const connection = asked(ticket);
  if (connection == nullptr) return;
  connection->state = ConnectionState::kReading;
  endAsking(*connection);
  // Without chunks the end of a stream is that of its connection.
  connection->last = connection->last || (how.stream && connection->plain);
  Outcome outcome = Outcome::kOk;
  if (how.verified != nullptr && !feeds_.takeGrant(*how.verified, &how)) {
    outcome = Outcome::kTooManyWatchers;
  }
  if (outcome == Outcome::kOk) outcome = feeds_.watch(*connection, wanted, count, how);
  if (outcome == Outcome::kOk) {
    // Its client may have ended its half meanwhile: then no client waits for news.
    const bool parked = connection->state == ConnectionState::kWatching && connection->waits;
    if (parked && connection->interest == Interest::kReset) connections_.close(*connection);
    return;
  }
  noteOutcome(*connection, how.many ? Route::kFeeds : Route::kFeed, outcome);
  const Reply& reply = replies_.replies().outcomes[static_cast<size_t>(outcome)];
  if (answers_.send(*connection, replies_.write(reply, connection->last))) {
    resumeLater(*connection);
  }
}

void Door::abandon(Ticket ticket) {
  if (Connection* const connection = asked(ticket)) connections_.close(*connection);
}

bool Door::park(Ticket ticket) {
  Connection* const connection = asked(ticket);
  if (connection == nullptr) return false;
  // Its client may have ended its half meanwhile.
  connection->waits = connection->interest != Interest::kReset;
  if (!connection->waits) connections_.close(*connection);
  return connection->waits;
}

}  // namespace server
