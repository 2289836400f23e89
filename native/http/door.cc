#include "door.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "proxies.h"

namespace server {

namespace {

/** Bytes of a read, in addition to an incomplete head. */
constexpr size_t kReadBytes = 65536;
static_assert(kMaxPipelinedBytes < kReadBytes, "a read always has room");

/** Most requests of a connection in one turn. */
constexpr int kMaxRequestsATurn = 4;

/**
 * Microseconds of a turn for connections that go on with their input. It bounds the delay of a
 * request that comes meanwhile.
 */
constexpr uint64_t kResumeShare = 100;

/** Most connections accepted in one turn. */
constexpr int kMaxAcceptsATurn = 64;

/**
 * Most connections above the limit that are answered 503 in one tick. An answer costs 30 µs, so
 * that a thousand clients that connect again and again take 2% of a core.
 */
constexpr uint32_t kMaxRefusedPerTick = 50;

/** Whether bytes begin a HEAD request. Empty lines may come before it (RFC 9112, section 2.2). */
bool isHead(std::string_view request) {
  request.remove_prefix(std::min(request.find_first_not_of("\r\n"), request.size()));
  return request.starts_with("HEAD ");
}

}  // namespace

Door::Door(const DoorOptions& options, const DoorParts& parts, Replies replies,
           ScriptHandler scriptHandler, uint64_t now)
    : options_(options),
      parts_(parts),
      scriptHandler_(std::move(scriptHandler)),
      replies_(std::move(replies)),
      connections_(
          options.connections + kBeyondLimit, parts.events, parts.limits, parts.open,
          [this](Connection& connection) { beforeClose(connection); }, now),
      answers_(&connections_, options.idleTime, options.writeTime),
      feeds_(parts.feeds, &connections_, &answers_, &replies_,
             {.onAnswered = [this](Connection& connection) { resumeLater(connection); },
              .onRefused =
                  [this](const Connection& connection, Outcome problem) {
                    noteOutcome(connection, connection.route, problem);
                  }}),
      liveCounts_(parts.counts),
      readBytes_(options.headBytes + kReadBytes),
      readBuffer_(new char[readBytes_]) {}

Door::~Door() { closeAll(); }

// ---- Accepting ----------------------------------------------------------------------------------

void Door::adopt(int fd, PortKind kind) {
  ports_.push_back(std::make_unique<Port>(this, kind));
  ports_.back()->listener.adopt(fd);
  resumeListening();
}

void Door::stopListening() {
  // Removed from epoll first: other processes may have a copy of the socket.
  pauseListening();
  for (const auto& port : ports_) port->listener.close();
}

void Door::pausePort(Port& port) {
  if (!port.isListening) return;
  port.isListening = false;
  parts_.events->remove(port.listener.fd());
}

void Door::pauseListening() {
  for (const auto& port : ports_) pausePort(*port);
}

void Door::resumeListening() {
  for (const auto& port : ports_) {
    if (port->isListening || port->listener.fd() < 0) continue;
    port->isListening = parts_.events->add(port->listener.fd(), port.get(), EPOLLIN);
  }
}

bool Door::mayRefuse() const { return refusedThisTick_ < kMaxRefusedPerTick; }

/** Accepts some of the waiting connections. */
void Door::accept(Port& port) {
  for (int i = 0; i < kMaxAcceptsATurn && port.isListening; ++i) {
    if (*parts_.open >= options_.connections + kBeyondLimit || !mayRefuse()) {
      return pauseListening();
    }
    int fd;
    sockaddr_storage address;
    switch (port.listener.accept(&fd, &address)) {
      case Listener::Accepted::kConnection:
        if (Connection* connection = connections_.open(fd, port.kind.tls)) {
          connection->isTransient = port.kind.transient;
          admit(*connection, address);
        }
        break;
      case Listener::Accepted::kOutOfFiles:
        if (!refuseOnSpare(port)) return pauseListening();
        break;
      case Listener::Accepted::kNone:
        return;
    }
  }
}

/**
 * Answers 503 to a waiting connection when no file descriptor is left. Returns false if even that
 * fails.
 */
bool Door::refuseOnSpare(Port& port) {
  ++counts_.outOfFiles;
  const int fd = port.listener.acceptOnSpare();
  if (fd >= 0) {
    ++counts_.refusals[static_cast<size_t>(Outcome::kTooManyConnections)];
    ++refusedThisTick_;
    // A TLS client can't be answered before its handshake.
    const std::string_view words =
        port.kind.tls == nullptr ? replies_.writeLast(replies_.reply(Outcome::kTooManyConnections))
                                 : std::string_view();
    Answers::sendAndClose(fd, words);
  }
  port.listener.restoreSpare();
  return fd >= 0;
}

/** Counts a new connection, or refuses it. */
void Door::admit(Connection& connection, const sockaddr_storage& address) {
  if (*parts_.open > options_.connections) {
    ++refusedThisTick_;
    return refuseConnection(connection);
  }
  ++counts_.accepted;
  connections_.arm(connection, Deadline::kIdle, options_.headTime);
  connection.clientAddress = Address::from(address);
  // The PROXY protocol is used only on the port without TLS.
  const bool expectsProxyHeader = options_.trust == Trust::kProxy && !connection.isTls;
  connection.proxyHeaderRead = !expectsProxyHeader;
  const bool isAddressKnown = options_.trust == Trust::kNobody || options_.trust == Trust::kProxy;
  if (isAddressKnown && !expectsProxyHeader) countForAddress(connection, connection.clientAddress);
}

// ---- Handshakes ---------------------------------------------------------------------------------

/** Continues a connection's handshake, or queues it: addresses take turns. */
void Door::continueHandshake(Connection& connection, uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return connections_.close(connection);
  if (connection.willResume) return;
  if (queuedHandshakes_.empty() && handshakeShare_.hasTimeLeft())
    return continueHandshakeNow(connection);
  connection.willResume = true;
  connections_.setInterest(connection, Interest::kReset);
  queuedHandshakes_.add(connection.clientAddress, connections_.ticketOf(connection));
}

void Door::continueHandshakeNow(Connection& connection) {
  const uint64_t began = parts_.clock();
  const TlsSession::Handshake step = connections_.session(connection).handshake();
  handshakeShare_.addWork(began, parts_.clock(), queuedHandshakes_.addressCount());
  switch (step) {
    case TlsSession::Handshake::kWantsRead:
      return connections_.setInterest(connection, Interest::kRead);
    case TlsSession::Handshake::kWantsWrite:
      return connections_.setInterest(connection, Interest::kWrite);
    case TlsSession::Handshake::kFailed:
      return connections_.close(connection);
    case TlsSession::Handshake::kDone:
      break;
  }
  ++counts_.handshakes;
  if (connections_.session(connection).isResumed()) ++counts_.resumed;
  connection.state = ConnectionState::kReading;
  connections_.arm(connection, Deadline::kIdle, options_.headTime);
  connections_.setInterest(connection, Interest::kRead);
  // The request may have arrived with the end of the handshake.
  handleEvent(connection, EPOLLIN);
}

/** Continues the waiting handshakes, within the turn's share. */
void Door::continueQueuedHandshakes() {
  while (!queuedHandshakes_.empty() && handshakeShare_.hasTimeLeft()) {
    Connection* const connection = connections_.find(queuedHandshakes_.pop());
    if (connection == nullptr || connection->state != ConnectionState::kHandshaking) continue;
    connection->willResume = false;
    continueHandshakeNow(*connection);
  }
}

/**
 * Composes the last answer of a connection. The answer to HEAD has no content (RFC 9110,
 * section 9.3.2).
 */
std::string_view Door::lastAnswer(Outcome problem, bool isForHead) {
  const std::string_view answer = replies_.writeLast(replies_.reply(problem));
  return isForHead ? answer.substr(0, answer.find("\r\n\r\n") + 4) : answer;
}

/**
 * Sends a problem as the last answer of a connection: the start of its next request is unknown.
 * `request`: the bytes of the refused one, where they are known.
 */
void Door::refuse(Connection& connection, Outcome problem, std::string_view request) {
  noteOutcome(connection, Route::kCold, problem);
  answers_.sendLast(connection, lastAnswer(problem, isHead(request)));
}

/** Refuses a connection. A TLS client can't be answered before its handshake. */
void Door::refuseConnection(Connection& connection) {
  if (connection.state != ConnectionState::kHandshaking) {
    return refuse(connection, Outcome::kTooManyConnections);
  }
  noteOutcome(connection, Route::kCold, Outcome::kTooManyConnections);
  connections_.close(connection);
}

/**
 * Counts the connection for its client's address. Above the limit, refuses it and returns false.
 */
bool Door::countForAddress(Connection& connection, const Address& client) {
  connection.clientAddress = client;
  connection.isCounted = parts_.limits->addConnection(client);
  if (!connection.isCounted) refuseConnection(connection);
  return connection.isCounted;
}

/** Reads the PROXY header. Returns whether there may be more to read now. */
bool Door::acceptProxyHeader(Connection& connection, const char** data, size_t* length) {
  ProxyHeader header;
  switch (readProxyHeader(*data, *length, &header)) {
    case ProxyVerdict::kIncomplete:
      awaitRest(connection, *data, *length, 0);
      return false;
    case ProxyVerdict::kBad:
      logEvent(connection, LogEventKind::kNoProxyHeader);
      connections_.close(connection);
      return false;
    case ProxyVerdict::kComplete:
      break;
  }
  connection.proxyHeaderRead = true;
  // There may be no byte of a request yet.
  connection.deadline = Deadline::kIdle;
  *data += header.length;
  *length -= header.length;
  return countForAddress(connection, header.isKnown ? header.client : connection.clientAddress);
}

// ---- The turn -----------------------------------------------------------------------------------

void Door::turn() {
  const uint64_t now = parts_.clock();
  scriptShare_.begin(hotServed_, now);
  aheadShare_.begin(hotServed_, now);
  handshakeShare_.begin(hotServed_, now);
  parts_.events->dispatch([this](uint32_t index, uint32_t generation, uint32_t events) {
    // An event for a connection that an earlier event of this turn has closed is stale.
    if (Connection* connection = connections_.find({index, generation})) {
      handleEvent(*connection, events);
    }
  });
  if (mayResumeQueued()) resumeQueued();
  continueQueuedHandshakes();
  handleQueued();
  wakeAgain();
}

/** Asks for a further turn when there is work left. */
void Door::wakeAgain() {
  uint64_t delay = UINT64_MAX;
  if (mayResumeQueued()) delay = aheadShare_.restLeft();
  if (!queuedHandshakes_.empty()) delay = std::min(delay, handshakeShare_.restLeft());
  // If JavaScript may not be asked, an event of its own announces when it may.
  const bool mayAskScript =
      !queuedRequests_.empty() && (!scriptHandler_.mayHandle || scriptHandler_.mayHandle());
  if (mayAskScript) delay = std::min(delay, scriptShare_.restLeft());
  if (delay != UINT64_MAX) parts_.events->wakeIn(delay);
}

void Door::handleEvent(Connection& connection, uint32_t events) {
  if (connection.state == ConnectionState::kHandshaking)
    return continueHandshake(connection, events);
  const Ticket ticket = connections_.ticketOf(connection);
  if ((events & EPOLLOUT) != 0) {
    if (answers_.flush(connection)) {
      if (connection.state == ConnectionState::kStreaming) {
        feeds_.sendNextEvent(connection);
      } else {
        resume(connection);
        if (connections_.find(ticket) != nullptr) resumeIfBuffered(connection);
      }
    }
    if (connections_.find(ticket) == nullptr) return;
  }
  if (connection.interest == Interest::kRead) {
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
      readInput(connection);
      if (connections_.find(ticket) != nullptr) resumeIfBuffered(connection);
    }
  } else if (events == EPOLLRDHUP && awaitsAnswer(connection)) {
    // The end of the client's half is reported before its input is read to the end.
    connections_.setInterest(connection, Interest::kReset);
  } else if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    // The client is gone: its earlier requests need no answer.
    connections_.close(connection);
  }
}

// ---- Reading ------------------------------------------------------------------------------------

void Door::readInput(Connection& connection) {
  if (!parts_.requests->hasRoom()) return;
  char* to = readBuffer_.get();
  size_t room = readBytes_;
  const bool awaitsRest = connection.requestLength > connection.inputLength;
  if (awaitsRest) {
    // The length of the request is known and its memory allocated: reads straight into it.
    to = connection.input + connection.inputLength;
    room = connection.requestLength - connection.inputLength;
  } else {
    to += connection.inputLength;
    room -= connection.inputLength;
  }
  const ssize_t got = connections_.receive(connection, to, room);
  if (!connections_.countPartialRecord(connection)) return connections_.close(connection);
  if (got == 0 && awaitsAnswer(connection)) {
    return connections_.setInterest(connection, Interest::kReset);
  }
  if (got == 0 && connection.state == ConnectionState::kReading && connection.proxyHeaderRead &&
      (connection.inputLength > 0 || connection.hasColdRequest)) {
    // The input has ended in the middle of a request.
    return refuse(connection, Outcome::kBadRequest, unfinishedRequest(connection));
  }
  if (got <= 0) {
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) connections_.close(connection);
    return;
  }
  if (connection.state == ConnectionState::kClosing) return;
  if (awaitsRest) {
    connection.inputLength += got;
    if (connection.requestLength > connection.inputLength) return;
    return resume(connection);
  }
  const size_t length = connection.inputLength + got;
  if (connection.inputLength > 0) {
    memcpy(readBuffer_.get(), connection.input, connection.inputLength);
    connections_.detachInput(connection);
  }
  if (connection.hasColdRequest && connection.state == ConnectionState::kReading) {
    return readColdBody(connection, {readBuffer_.get(), length});
  }
  if (connection.state == ConnectionState::kReading) {
    return serveInput(connection, readBuffer_.get(), length);
  }
  // Sent ahead, behind a poll that waits.
  storeOrRefuse(connection, readBuffer_.get(), length, 0);
}

/** The bytes of a request that is not complete, as far as they have come. */
std::string_view Door::unfinishedRequest(const Connection& connection) {
  if (connection.hasColdRequest) return coldRequests_.at(connections_.indexOf(connection)).head;
  return {connection.input, connection.inputLength};
}

/** Whether a client that has ended its half still gets an answer. */
bool Door::awaitsAnswer(const Connection& connection) {
  const bool isAsking = connection.state == ConnectionState::kPending ||
                        connection.state == ConnectionState::kWatching;
  return connection.willResume || connection.hasDecidedAnswer ||
         (isAsking && !connection.mayStayUnanswered) ||
         (connection.state == ConnectionState::kParked &&
          !parts_.requests->mayDropEndedPoll(connections_.ticketOf(connection)));
}

/** Processes the kept input of a connection that may go on. */
void Door::resume(Connection& connection) {
  // Watches for the end of the client's half again: it may have come meanwhile.
  if (connection.inputLength == 0) return connections_.updateInterest(connection);
  // Removed from the connection first: the unprocessed rest is kept again.
  const Ticket ticket = connections_.ticketOf(connection);
  const size_t length = connection.inputLength;
  const Input input = connections_.detachInput(connection);
  serveInput(connection, input.get(), length);
  if (connections_.find(ticket) != nullptr) connections_.updateInterest(connection);
}

/** Queues a connection to go on with its input, after an answer outside its own event. */
void Door::resumeLater(Connection& connection) {
  // Only once: a connection has one share of a turn.
  if (connection.willResume ||
      (connection.inputLength == 0 && !connections_.hasBufferedInput(connection))) {
    return;
  }
  connection.willResume = true;
  if (queuedToResume_.empty()) parts_.events->wake();
  queuedToResume_.add(connection.clientAddress, connections_.ticketOf(connection));
}

/** Whether queued connections may go on. If the handler has no room, a turn follows when it has. */
bool Door::mayResumeQueued() const {
  return !queuedToResume_.empty() && parts_.requests->hasRoom();
}

/** Goes on with queued connections, within the turn's share. */
void Door::resumeQueued() {
  uint64_t now = parts_.clock();
  const uint64_t end = now + kResumeShare;
  while (!queuedToResume_.empty() && aheadShare_.hasTimeLeft() && now < end) {
    const uint64_t hotBefore = hotServed_;
    resumeNext(queuedToResume_.pop());
    const uint64_t began = std::exchange(now, parts_.clock());
    if (hotServed_ == hotBefore) aheadShare_.addWork(began, now, queuedToResume_.addressCount());
  }
}

void Door::resumeNext(Ticket ticket) {
  Connection* connection = connections_.find(ticket);
  if (connection == nullptr) return;
  connection->willResume = false;
  // If the kernel has not accepted all earlier answers, the connection goes on when it has (event):
  // an answer written now would come in the middle of another.
  if (connection->state != ConnectionState::kReading || connection->output != nullptr) {
    // Watches for the end of the client's half again: it may have come already.
    return connections_.updateInterest(*connection);
  }
  // Answers of a connection are sent together only if they are adjacent (sendAnswers). Otherwise
  // the kernel may not accept all of the first one: the connection goes on in the next turn.
  if (connection->hasDecidedAnswer && decidedAnswers_.back().ticket != ticket) return;
  resume(*connection);
  // The rest of an incomplete request may have arrived already.
  if (connections_.find(ticket) != nullptr && mayReadMore(*connection)) readInput(*connection);
  if (connections_.find(ticket) != nullptr) resumeIfBuffered(*connection);
}

/** Whether a connection may be read further although no event announces it. */
bool Door::mayReadMore(const Connection& connection) {
  return connection.state == ConnectionState::kReading && connection.output == nullptr &&
         !connection.willResume && !connection.inputRefused &&
         connections_.hasBufferedInput(connection);
}

/** Queues a connection whose TLS session has more input. */
void Door::resumeIfBuffered(Connection& connection) {
  if (mayReadMore(connection)) resumeLater(connection);
}

/**
 * Serves the complete requests in `data` that may be served now, and keeps the rest. Requests
 * beyond a connection's share of a turn are served in the next turns.
 */
void Door::serveInput(Connection& connection, const char* data, size_t length) {
  const Ticket ticket = connections_.ticketOf(connection);
  if (!connection.proxyHeaderRead && !acceptProxyHeader(connection, &data, &length)) return;
  for (int served = 0; length > 0; ++served) {
    if (served == kMaxRequestsATurn) {
      if (storeOrRefuse(connection, data, length, 0)) resumeLater(connection);
      return;
    }
    HotRequest request;
    switch (readHead(data, length, &request)) {
      case Verdict::kIncomplete:
        return awaitRest(connection, data, length, 0);
      case Verdict::kNotHot:
        return readColdHead(connection, {data, length});
      case Verdict::kHot:
        break;
    }
    // Answers are sent in the order of their requests, and only these wait for the end of the turn.
    const bool waitsForTurnEnd = request.route == Route::kJoin || request.route == Route::kThrow ||
                                 request.route == Route::kLeave || request.route == Route::kInput;
    if (connection.hasDecidedAnswer && !waitsForTurnEnd) {
      storeOrRefuse(connection, data, length, 0);
      return;
    }
    if (!servesHere(connection, request, data)) return readColdHead(connection, {data, length});
    const size_t requestLength = size_t{request.headLength} + request.bodyLength;
    if (length < requestLength) return awaitRest(connection, data, length, requestLength);
    const bool isForFeeds = request.route == Route::kFeed || request.route == Route::kFeeds;
    if (isForFeeds &&
        !feeds_.canServe(request, data, {data + request.headLength, request.bodyLength})) {
      return readColdHead(connection, {data, length});
    }
    ++counts_.requests;
    // A page is large: its time is limited like that of JavaScript's answers (TurnShare).
    if (request.route != Route::kFixed) ++hotServed_;
    const bool mayServeNext = serve(connection, request, data);
    data += requestLength;
    length -= requestLength;
    if (connections_.find(ticket) == nullptr) return;
    if (!mayServeNext) {
      if (length > 0) storeOrRefuse(connection, data, length, 0);
      return;
    }
  }
}

/**
 * Keeps input, as Connections::storeInput. If that fails, returns false: the client is answered
 * 503, unless an answer is being written, and the connection closes. Decided answers are sent
 * before.
 */
bool Door::storeOrRefuse(Connection& connection, const char* data, size_t length,
                         size_t requestLength) {
  if (connections_.storeInput(connection, data, length, requestLength)) return true;
  const ConnectionState state = connection.state;
  if (connection.output != nullptr || state == ConnectionState::kPending ||
      state == ConnectionState::kStreaming) {
    connections_.close(connection);
    return false;
  }
  if (connection.hasDecidedAnswer) {
    connection.inputRefused = true;
    connection.inputIsHead = isHead({data, length});
    return false;
  }
  // The 503 also answers a parked poll.
  const bool isForInput = state == ConnectionState::kReading;
  beforeClose(connection);
  refuse(connection, Outcome::kTooMuchHeld,
         isForInput ? std::string_view(data, length) : std::string_view());
  return false;
}

/** Most bytes of a hot request's body; JavaScript refuses longer ones. */
uint32_t Door::maxHotBody(const HotRequest& request) const {
  if (request.route == Route::kInput) return kInputBytes;
  return request.route == Route::kFeeds ? kWatchBytes : options_.maxSprite;
}

/**
 * Keeps an incomplete request until the rest comes: a head of unknown length (`requestLength` 0),
 * or a request of `requestLength` bytes. Its deadline is armed once: slow bytes do not extend it.
 */
void Door::awaitRest(Connection& connection, const char* data, size_t length,
                     size_t requestLength) {
  const Deadline deadline = requestLength == 0 ? Deadline::kHead : Deadline::kBody;
  if (connection.deadline != deadline) {
    connections_.arm(connection, deadline,
                     requestLength == 0 ? options_.headTime : options_.bodyTime);
  }
  storeOrRefuse(connection, data, length, requestLength);
}

// ---- Deadlines and closing ----------------------------------------------------------------------

void Door::tick(uint64_t now) {
  replies_.setDate(time(nullptr));
  refusedThisTick_ = 0;
  for (const auto& port : ports_) port->listener.restoreSpare();
  resumeListening();
  counts_.slowReaders += feeds_.tick();
  liveCounts_.tick();
  const auto isGone = [this](const Ticket& ticket) { return connections_.find(ticket) == nullptr; };
  queuedRequests_.removeIf(isGone);
  queuedHandshakes_.removeIf(isGone);
  queuedToResume_.removeIf(isGone);
  connections_.tick(now, [this](Connection& connection) { handleDeadline(connection); });
}

bool Door::isQuiet(uint32_t ticks) const {
  const auto isPaused = [](const auto& port) {
    return !port->isListening && port->listener.fd() >= 0;
  };
  return std::none_of(ports_.begin(), ports_.end(), isPaused) && connections_.isQuiet(ticks);
}

/** Handles the end of a connection's deadline. */
void Door::handleDeadline(Connection& connection) {
  // The decided answer gets its own deadline when it is sent.
  if (connection.hasDecidedAnswer) return;
  const bool isMidRequest =
      connection.deadline == Deadline::kHead || connection.deadline == Deadline::kBody;
  if (connection.state == ConnectionState::kReading && isMidRequest) {
    return refuse(connection, Outcome::kRequestTimeout, unfinishedRequest(connection));
  }
  if (connection.deadline == Deadline::kWrite) {
    ++counts_.slowReaders;
    logEvent(connection, LogEventKind::kSlowReader);
  }
  connections_.close(connection);
}

void Door::beforeClose(Connection& connection) {
  if (connection.state == ConnectionState::kHandshaking) ++counts_.failedHandshakes;
  if (connection.state == ConnectionState::kParked) {
    parts_.requests->dropPoll(connection.record, connections_.ticketOf(connection));
  }
  if (connection.state == ConnectionState::kWatching ||
      connection.state == ConnectionState::kStreaming) {
    feeds_.endWatch(connection);
  }
  if (connection.hasColdRequest) removeColdRequest(connection);
  if (connection.state == ConnectionState::kPending && connection.mayStayUnanswered) {
    // Not pending any more, so that a late answer is dropped.
    connection.state = ConnectionState::kReading;
    scriptHandler_.onParkedClosed(connections_.ticketOf(connection));
  }
  // Its place is free for a waiting connection: accepts again at once, not at the next tick.
  if (mayRefuse()) resumeListening();
}

uint32_t Door::closeIdle() {
  connections_.forEach([this](Connection& connection) {
    const bool idle = connection.state == ConnectionState::kReading &&
                      connection.output == nullptr && !connection.hasDecidedAnswer &&
                      !connection.hasColdRequest && !connection.willResume &&
                      connection.requestLength == 0;
    if (idle || connection.state == ConnectionState::kHandshaking) connections_.close(connection);
  });
  return connections_.count();
}

void Door::closeAll() {
  stopListening();
  connections_.closeAll();
}

DoorCounts Door::counts() const {
  DoorCounts counts = counts_;
  counts.heldBytes = connections_.heldBytes();
  counts.open = connections_.count();
  counts.arriving = static_cast<uint32_t>(coldRequests_.size());
  counts.secure = connections_.tlsCount();
  return counts;
}

}  // namespace server
