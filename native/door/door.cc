#include "door.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "proxy_protocol.h"

namespace server {

namespace {

constexpr size_t kReadBytes = 65536;

/** Input kept while a connection may not go on; what is more waits in the kernel. */
constexpr size_t kPipelinedBytes = 16384;
static_assert(kPipelinedBytes + kHotHeadBytes < kReadBytes, "a read always has room");

/** Events dealt with in one turn; the rest waits until the loop has looked at everything else. */
constexpr int kEvents = 256;

/** Connections accepted in one turn. */
constexpr int kAccepts = 64;

/** Connections above the limit that are told so at the same time, each for a second at most. */
constexpr uint32_t kRefusedAtOnce = 32;

/** And in one tick: refusing costs 30 µs, so that a thousand knocking take 2% of a core. */
constexpr uint32_t kRefusedPerTick = 50;

/** Milliseconds a connection may take to read a last answer and close. */
constexpr uint32_t kLinger = 1000;

/** Connections that may take it at the same time; further ones are closed at once. */
constexpr uint32_t kLingerers = 256;

/** Connections one tick looks at before it lets the loop turn. */
constexpr uint32_t kTickBudget = 8192;

// What epoll watches for, in the byte a connection has for it.
constexpr uint8_t kRead = 1;
constexpr uint8_t kWrite = 2;
constexpr uint8_t kEnded = 4;  // the peer's end has been read: only a reset is news

// The two descriptors that are no connection, as epoll knows them.
constexpr uint64_t kListenerKey = UINT64_MAX;
constexpr uint64_t kWakeKey = UINT64_MAX - 1;
constexpr uint64_t kPaceKey = UINT64_MAX - 2;

// A relay's descriptor, as epoll knows it: no connection has this generation and an index as high.
constexpr uint64_t kRelayKey = UINT64_MAX << 31;
constexpr uint64_t kRelayLast = kPaceKey - 1;

uint64_t microseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * uint64_t{1000000} + now.tv_nsec / 1000;
}

uint64_t keyOf(uint32_t index, uint32_t generation) { return uint64_t{generation} << 32 | index; }

}  // namespace

/** What a peer has not taken of an answer. */
struct Door::Output {
  uint32_t length;
  uint32_t sent;

  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};

Door::Door(const DoorOptions& options, Replies replies, RequestHandler* handler,
           AddressLimits* limits, HandOver handOver, uint64_t now)
    : options_(options),
      writer_(std::move(replies)),
      handler_(handler),
      limits_(limits),
      handOver_(std::move(handOver)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      pacer_(epoll_),
      pace_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      connections_(size_t{options.connections} + kRefusedAtOnce),
      wheel_(options.connections + kRefusedAtOnce),
      buffer_(new char[kReadBytes]),
      start_(now),
      now_(now) {
  if (epoll_ < 0 || pace_ < 0 || wake_ < 0) throw std::system_error(errno, std::generic_category());
  epoll_event event = {EPOLLIN, {.u64 = kWakeKey}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  event.data.u64 = kPaceKey;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, pace_, &event);
  wheel_.startAt(tickAt(now));
}

Door::~Door() {
  closeAll();
  ::close(wake_);
  ::close(pace_);
  ::close(epoll_);
}

// ---- Accepting ----------------------------------------------------------------------------------

int Door::listen(const char* address, uint16_t port, int backlog, Listener::Sharing sharing) {
  const int error =
      listener_.listen(address, port, backlog, static_cast<int>(options_.keepIdle), sharing);
  if (error == 0) resumeListening();
  return error;
}

void Door::stopListening() {
  listening_ = false;
  listener_.close();
}

void Door::pauseListening() {
  if (!listening_) return;
  listening_ = false;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_.fd(), nullptr);
}

void Door::resumeListening() {
  if (listening_ || listener_.fd() < 0) return;
  listening_ = true;
  epoll_event event = {EPOLLIN, {.u64 = kListenerKey}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_.fd(), &event);
}

void Door::acceptSome() {
  for (int i = 0; i < kAccepts && listening_; ++i) {
    if (counts_.open + elsewhere_ >= options_.connections + kRefusedAtOnce ||
        refusedThisTick_ >= kRefusedPerTick) {
      return pauseListening();
    }
    int fd;
    sockaddr_storage peer;
    switch (listener_.accept(&fd, &peer)) {
      case Listener::Accepted::kConnection:
        open(fd, peer);
        break;
      case Listener::Accepted::kOutOfFiles:
        if (!refuseOnSpare()) return pauseListening();
        break;
      case Listener::Accepted::kNone:
        return;
    }
  }
}

/** No file is left: tells one of the waiting. Returns false when not even that can be done. */
bool Door::refuseOnSpare() {
  ++counts_.outOfFiles;
  const int fd = listener_.acceptOnSpare();
  if (fd >= 0) {
    ++counts_.refused;
    ++refusedThisTick_;
    const std::string_view text = writer_.write(writer_.replies().refused);
    // One try: there is no file to wait on it with. Reading first keeps the close from resetting
    // the connection before the peer has read.
    (void)!recv(fd, buffer_.get(), kReadBytes, MSG_DONTWAIT);
    (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    ::close(fd);
  }
  listener_.restoreSpare();
  return fd >= 0;
}

void Door::open(int fd, const sockaddr_storage& peer) {
  uint32_t index;
  if (freeConnection_ != 0) {
    index = freeConnection_ - 1;
    freeConnection_ = connections_[index].record;
  } else {
    index = used_++;
  }
  Connection& connection = connections_[index];
  connection.fd = fd;
  connection.state = State::kReading;
  connection.interest = kRead;
  ++counts_.open;
  epoll_event event = {EPOLLIN | EPOLLRDHUP, {.u64 = keyOf(index, connection.generation)}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return close(connection);
  if (counts_.open + elsewhere_ > options_.connections) {
    ++counts_.refused;
    ++refusedThisTick_;
    return finish(connection, writer_.replies().refused);
  }
  ++counts_.accepted;
  arm(connection, Deadline::kIdle, options_.headTime);
  connection.client = Address::of(peer);
  connection.greeted = options_.trust != Trust::kProxy;
  if (options_.trust == Trust::kNobody) count(connection, connection.client);
}

/** Counts the connection at its source; when that has enough, says so and returns false. */
bool Door::count(Connection& connection, const Address& client) {
  connection.client = client;
  connection.counted = limits_->open(client);
  if (connection.counted) return true;
  ++counts_.refused;
  finish(connection, writer_.replies().refused);
  return false;
}

/** Reads what the proxy says of the client first. Returns whether there is more to read now. */
bool Door::greet(Connection& connection, const char** data, size_t* length) {
  ProxyHeader header;
  switch (readProxyHeader(*data, *length, &header)) {
    case ProxyVerdict::kIncomplete:
      // Armed once: bytes that drip in do not lengthen it.
      if (keep(connection, *data, *length, 0) && connection.deadline != Deadline::kHead) {
        arm(connection, Deadline::kHead, options_.headTime);
      }
      return false;
    case ProxyVerdict::kBad:
      close(connection);
      return false;
    case ProxyVerdict::kRead:
      break;
  }
  connection.greeted = true;
  *data += header.length;
  *length -= header.length;
  return count(connection, header.known ? header.client : connection.client);
}

// ---- The turn -----------------------------------------------------------------------------------

void Door::turn() {
  if (!pacer_.pass(microseconds())) return;
  epoll_event events[kEvents];
  const int count = epoll_wait(epoll_, events, kEvents, 0);
  if (count == kEvents) pacer_.hurry();
  for (int i = 0; i < count; ++i) {
    const uint64_t key = events[i].data.u64;
    if (key == kListenerKey) {
      acceptSome();
    } else if (key == kWakeKey || key == kPaceKey) {
      // What they are there for is done at the end of every turn.
      uint64_t times;
      (void)!::read(key == kWakeKey ? wake_ : pace_, &times, sizeof times);
    } else if (key >= kRelayKey && key <= kRelayLast) {
      relayEvent(static_cast<int>(key - kRelayKey), events[i].events);
    } else {
      Connection& connection = connections_[static_cast<uint32_t>(key)];
      // An event for a connection that an earlier event of this turn has closed is stale.
      if (connection.state != State::kFree && connection.generation == key >> 32) {
        event(connection, events[i].events);
      }
    }
  }
  // Resuming one may make others ready: those wait for the next turn.
  std::vector<Ticket> ready;
  ready.swap(ready_);
  for (const Ticket& ticket : ready) {
    Connection& connection = connections_[ticket.connection];
    if (connection.state == State::kReading && connection.generation == ticket.generation) {
      resume(connection);
    }
  }
  flushRelays();
}

// ---- Relays -------------------------------------------------------------------------------------

void Door::attach(int fd, RelayEnd* end, uint32_t pace) {
  relays_.push_back({fd, end, false, false, pace, 0});
  epoll_event event = {EPOLLIN, {.u64 = kRelayKey + fd}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

bool Door::attached(const RelayEnd* end) const {
  return std::any_of(relays_.begin(), relays_.end(),
                     [end](const Relay& one) { return one.end == end; });
}

void Door::relayEvent(int fd, uint32_t events) {
  const auto relay =
      std::find_if(relays_.begin(), relays_.end(), [fd](const Relay& one) { return one.fd == fd; });
  if (relay == relays_.end()) return;
  if ((events & EPOLLOUT) != 0) relay->blocked = false;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  const ssize_t got = recv(fd, buffer_.get(), kReadBytes, MSG_DONTWAIT);
  if (got > 0) {
    relay->end->receive({buffer_.get(), static_cast<size_t>(got)});
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    ::close(fd);
    relays_.erase(relay);
  }
}

void Door::flushLater(uint64_t microseconds) { alarm(pace_, microseconds); }

void Door::flushRelays() {
  for (Relay& relay : relays_) flushRelay(&relay);
}

void Door::flushRelay(Relay* relay) {
  std::string& outgoing = relay->end->outgoing();
  if (outgoing.empty() || relay->blocked) return;
  if (relay->pace > 0) {
    const uint64_t now = microseconds();
    if (now < relay->sentAt + relay->pace) return flushLater(relay->sentAt + relay->pace - now);
    relay->sentAt = now;
  }
  const ssize_t sent =
      ::send(relay->fd, outgoing.data(), outgoing.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) outgoing.erase(0, sent);
  // A broken pipe is noticed, and tidied up, where it is read.
  relay->blocked = !outgoing.empty();
  epoll_event event = {EPOLLIN, {.u64 = kRelayKey + relay->fd}};
  if (relay->blocked) event.events |= EPOLLOUT;
  if (relay->blocked != relay->watched) epoll_ctl(epoll_, EPOLL_CTL_MOD, relay->fd, &event);
  relay->watched = relay->blocked;
}

void Door::event(Connection& connection, uint32_t events) {
  const uint32_t generation = connection.generation;
  if ((events & EPOLLOUT) != 0) {
    flush(connection);
    if (connection.generation != generation) return;
  }
  if ((connection.interest & kRead) != 0) {
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read(connection);
  } else if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    // Gone, whatever it sent before. While an answer is being written an end of the peer's own half
    // is not watched for: it may well be reading.
    close(connection);
  }
}

// ---- Reading ------------------------------------------------------------------------------------

void Door::read(Connection& connection) {
  char* to = buffer_.get();
  size_t room = kReadBytes;
  const bool awaitsRest = connection.needed > connection.inputLength;
  if (awaitsRest) {
    // The length of the request is known and its memory taken: straight to its place.
    to = connection.input + connection.inputLength;
    room = connection.needed - connection.inputLength;
  } else {
    to += connection.inputLength;
    room -= connection.inputLength;
  }
  const ssize_t got = recv(connection.fd, to, room, 0);
  // Who has sent all it will may still read the outcome of what it sent.
  if (got == 0 && connection.state == State::kPending) return watch(connection, kEnded);
  if (got == 0 && connection.state == State::kReading && connection.greeted &&
      connection.inputLength > 0) {
    return handOverInput(connection);
  }
  if (got <= 0) {
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) close(connection);
    return;
  }
  if (connection.state == State::kClosing) return;
  if (awaitsRest) {
    connection.inputLength += got;
    if (connection.needed > connection.inputLength) return;
    return resume(connection);
  }
  const size_t length = connection.inputLength + got;
  if (connection.inputLength > 0) {
    memcpy(buffer_.get(), connection.input, connection.inputLength);
    takeInput(connection);
  }
  if (connection.state == State::kReading) return process(connection, buffer_.get(), length);
  // Pipelined behind a poll.
  keep(connection, buffer_.get(), length, 0);
}

/** Takes what a connection has kept out of it. */
Door::Input Door::takeInput(Connection& connection) {
  counts_.heldBytes -= std::max(connection.needed, connection.inputLength);
  connection.inputLength = connection.needed = 0;
  return Input(std::exchange(connection.input, nullptr));
}

/** Deals with the input that a connection has kept, now that it may be dealt with. */
void Door::resume(Connection& connection) {
  if (connection.inputLength == 0) return;
  // Taken from the connection first: what is left of it is kept anew.
  const uint32_t generation = connection.generation;
  const size_t length = connection.inputLength;
  const Input input = takeInput(connection);
  process(connection, input.get(), length);
  if (connection.generation == generation) watchWhatIsWanted(connection);
}

/** Serves every whole request in `data` that may be served now, and keeps the rest. */
void Door::process(Connection& connection, const char* data, size_t length) {
  const uint32_t generation = connection.generation;
  if (!connection.greeted && !greet(connection, &data, &length)) return;
  while (length > 0) {
    HotRequest request;
    switch (readHead(data, length, &request)) {
      case Verdict::kIncomplete:
        if (keep(connection, data, length, 0) && connection.deadline != Deadline::kHead) {
          arm(connection, Deadline::kHead, options_.headTime);
        }
        return;
      case Verdict::kHandOver:
        return handOver(connection, data, length);
      case Verdict::kHot:
        break;
    }
    if (request.bodyLength > options_.maxSprite ||
        (request.route == Route::kPoll && !handler_->takesPolls())) {
      return handOver(connection, data, length);
    }
    const size_t whole = size_t{request.headLength} + request.bodyLength;
    if (length < whole) {
      if (keep(connection, data, length, whole) && connection.deadline != Deadline::kBody) {
        arm(connection, Deadline::kBody, options_.bodyTime);
      }
      return;
    }
    ++counts_.requests;
    const bool goOn = serve(connection, request, data);
    data += whole;
    length -= whole;
    if (connection.generation != generation) return;
    if (!goOn) {
      if (length > 0) keep(connection, data, length, 0);
      return;
    }
  }
}

/** Keeps `data` as the connection's input, which is empty, in what the request will need. */
bool Door::keep(Connection& connection, const char* data, size_t length, size_t needed) {
  const size_t room = std::max(length, needed);
  connection.input = static_cast<char*>(malloc(room));
  if (connection.input == nullptr) {
    close(connection);
    return false;
  }
  memcpy(connection.input, data, length);
  connection.inputLength = length;
  connection.needed = needed;
  counts_.heldBytes += room;
  watchWhatIsWanted(connection);
  return true;
}

/** Hands the connection over to Node, with the bytes it is to read first. */
void Door::handOver(Connection& connection, const char* data, size_t length) {
  const int fd = connection.fd;
  ++counts_.handedOver;
  const Address client = connection.client;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  connection.counted = false;
  forget(connection);
  handOver_(fd, {data, length}, client);
}

/** The same with what it has kept: a request that has ended before it was whole. */
void Door::handOverInput(Connection& connection) {
  const size_t length = connection.inputLength;
  const Input input = takeInput(connection);
  handOver(connection, input.get(), length);
}

// ---- Serving ------------------------------------------------------------------------------------

Address Door::clientOf(const Connection& connection, const HotRequest& request,
                       const char* head) const {
  Address client = connection.client;
  if (options_.trust == Trust::kForwarded) {
    const auto of = [head](HeadSpan span) {
      return std::string_view(head + span.offset, span.length);
    };
    forwardedAddress(of(request.forwardedFor), of(request.forwarded), &client);
  }
  return client;
}

/**
 * Serves the request whose head, and body behind it, are at `head`. Returns whether the next may be
 * served: not while this one is open.
 */
bool Door::serve(Connection& connection, const HotRequest& request, const char* head) {
  const uint32_t index = indexOf(connection);
  const Ticket ticket = {index, connection.generation};
  Id id;
  std::optional<Outcome> outcome;
  switch (request.route) {
    case Route::kPoll: {
      // Parked before it is asked for: the pool may answer while it is being asked.
      connection.state = State::kParked;
      wheel_.disarm(index);
      uint32_t record;
      const Outcome parked = handler_->poll(index, request, &record);
      if (parked != Outcome::kOk) {
        connection.state = State::kReading;
        return conclude(connection, Route::kPoll, parked, nullptr);
      }
      if (connection.generation != ticket.generation) return false;
      if (connection.state == State::kParked) {
        connection.record = record;
        return false;
      }
      return connection.output == nullptr;
    }
    case Route::kJoin:
      outcome = handler_->join(ticket, clientOf(connection, request, head), &id);
      break;
    case Route::kThrow:
      outcome =
          handler_->throwSprite(ticket, request, {head + request.headLength, request.bodyLength});
      break;
    case Route::kLeave:
      outcome = handler_->leave(ticket, request.id);
      break;
  }
  // A throw to oneself, alone, may have closed this very connection.
  if (connection.generation != ticket.generation) return false;
  if (!outcome) {
    connection.state = State::kPending;
    connection.route = request.route;
    wheel_.disarm(index);
    return false;
  }
  return conclude(connection, request.route, *outcome, &id);
}

/** Writes the outcome of a request. Returns whether the next may be served. */
bool Door::conclude(Connection& connection, Route route, Outcome outcome, const Id* id) {
  const bool joined = route == Route::kJoin && outcome == Outcome::kOk;
  const auto& reply = writer_.replies().outcomes[static_cast<size_t>(outcome)];
  return send(connection, joined ? writer_.joined(*id) : writer_.write(reply));
}

void Door::settle(Ticket ticket, Outcome outcome, const Id* id) {
  Connection& connection = connections_[ticket.connection];
  if (connection.generation != ticket.generation || connection.state != State::kPending) return;
  connection.state = State::kReading;
  if (conclude(connection, connection.route, outcome, id)) awaitRequest(connection);
}

void Door::answer(uint32_t token, std::string_view body) {
  Connection& connection = connections_[token];
  connection.state = State::kReading;
  if (send(connection, writer_.poll(body))) awaitRequest(connection);
}

/** After an answer outside the connection's own turn: on to what it has sent meanwhile. */
void Door::awaitRequest(Connection& connection) {
  if (connection.inputLength == 0) return;
  if (ready_.empty()) {
    const uint64_t once = 1;
    (void)!::write(wake_, &once, sizeof once);
  }
  ready_.push_back({indexOf(connection), connection.generation});
}

// ---- Writing ------------------------------------------------------------------------------------

/**
 * Writes an answer. What the peer's kernel does not take at once is kept, and the next request
 * waits for it. Returns whether the connection is there and may go on.
 */
bool Door::send(Connection& connection, std::string_view bytes) {
  ssize_t sent = ::send(connection.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno != EAGAIN && errno != EINTR) {
      close(connection);
      return false;
    }
    sent = 0;
  }
  if (static_cast<size_t>(sent) == bytes.size()) {
    watchWhatIsWanted(connection);
    arm(connection, Deadline::kIdle, options_.idleTime);
    return true;
  }
  bytes.remove_prefix(sent);
  auto* output = static_cast<Output*>(malloc(sizeof(Output) + bytes.size()));
  if (output == nullptr) {
    close(connection);
    return false;
  }
  *output = {static_cast<uint32_t>(bytes.size()), 0};
  memcpy(output->bytes(), bytes.data(), bytes.size());
  connection.output = output;
  counts_.heldBytes += output->length;
  watchWhatIsWanted(connection);
  arm(connection, Deadline::kWrite, options_.writeTime);
  return false;
}

/** Writes on where the peer has read. */
void Door::flush(Connection& connection) {
  Output* const output = connection.output;
  if (output == nullptr) return;
  const ssize_t sent = ::send(connection.fd, output->bytes() + output->sent,
                              output->length - output->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno != EAGAIN && errno != EINTR) close(connection);
    return;
  }
  output->sent += sent;
  if (output->sent < output->length) {
    return arm(connection, Deadline::kWrite, options_.writeTime);
  }
  counts_.heldBytes -= output->length;
  free(output);
  connection.output = nullptr;
  watchWhatIsWanted(connection);
  if (connection.state == State::kClosing) {
    shutdown(connection.fd, SHUT_WR);
    return arm(connection, Deadline::kIdle, kLinger);
  }
  arm(connection, Deadline::kIdle, options_.idleTime);
  resume(connection);
}

/**
 * Writes a last answer, then closes once the peer has, or a second later. Where many are being told
 * so at once (one address that connects and connects), there is no waiting: their places are
 * others'.
 */
void Door::finish(Connection& connection, const Reply& reply) {
  connection.state = State::kClosing;
  ++lingering_;
  const uint32_t generation = connection.generation;
  const bool whole = send(connection, writer_.write(reply));
  if (connection.generation != generation) return;
  if (lingering_ > kLingerers) return close(connection);
  if (!whole) return;
  shutdown(connection.fd, SHUT_WR);
  arm(connection, Deadline::kIdle, kLinger);
}

// ---- Deadlines ----------------------------------------------------------------------------------

uint32_t Door::tickAt(uint64_t milliseconds) const {
  return static_cast<uint32_t>((milliseconds - start_) / kTickMilliseconds) + 1;
}

void Door::arm(Connection& connection, Deadline deadline, uint32_t milliseconds) {
  connection.deadline = deadline;
  wheel_.arm(indexOf(connection), tickAt(now_ + milliseconds) + 1);
}

void Door::tick(uint64_t now) {
  now_ = now;
  writer_.setDate(time(nullptr));
  refusedThisTick_ = 0;
  listener_.restoreSpare();
  resumeListening();
  limits_->tick(now);
  // What is left over waits for the next tick: nobody minds a deadline that is late by one.
  wheel_.sweep(tickAt(now), kTickBudget, [this](uint32_t index) { fire(connections_[index]); });
}

void Door::fire(Connection& connection) {
  const bool halfway =
      connection.deadline == Deadline::kHead || connection.deadline == Deadline::kBody;
  if (connection.state == State::kReading && halfway) {
    ++counts_.timedOut;
    return finish(connection, writer_.replies().timedOut);
  }
  if (connection.deadline == Deadline::kWrite) ++counts_.slowReaders;
  close(connection);
}

// ---- Closing ------------------------------------------------------------------------------------

/** Writing comes first; and who has sent enough ahead is not read from. */
void Door::watchWhatIsWanted(Connection& connection) {
  const bool enough = connection.needed == 0 && connection.inputLength >= kPipelinedBytes;
  watch(connection, connection.output != nullptr ? kWrite : enough ? 0 : kRead);
}

void Door::watch(Connection& connection, uint8_t interest) {
  if (connection.interest == interest) return;
  connection.interest = interest;
  epoll_event event = {0, {.u64 = keyOf(indexOf(connection), connection.generation)}};
  if (interest != kEnded && interest != kWrite) event.events |= EPOLLRDHUP;
  if ((interest & kRead) != 0) event.events |= EPOLLIN;
  if ((interest & kWrite) != 0) event.events |= EPOLLOUT;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
}

void Door::close(Connection& connection) {
  if (connection.state == State::kParked) handler_->drop(connection.record, indexOf(connection));
  ::close(connection.fd);
  forget(connection);
}

/** Gives a connection's place back; its descriptor is closed, or somebody else's. */
void Door::forget(Connection& connection) {
  const uint32_t index = indexOf(connection);
  takeInput(connection);
  if (connection.state == State::kClosing) --lingering_;
  if (connection.counted) limits_->close(connection.client);
  if (connection.output != nullptr) counts_.heldBytes -= connection.output->length;
  free(connection.output);
  wheel_.disarm(index);
  const uint32_t generation = connection.generation + 1;
  connection = Connection{};
  connection.generation = generation;
  connection.record = freeConnection_;
  freeConnection_ = index + 1;
  --counts_.open;
  // Places are free again: the door need not wait for the tick.
  if (refusedThisTick_ < kRefusedPerTick) resumeListening();
}

uint32_t Door::closeIdle() {
  for (uint32_t index = 0; index < used_; ++index) {
    Connection& connection = connections_[index];
    if (connection.state == State::kReading && connection.output == nullptr &&
        connection.inputLength == 0) {
      close(connection);
    }
  }
  return counts_.open;
}

void Door::closeAll() {
  stopListening();
  for (const Relay& relay : relays_) ::close(relay.fd);
  relays_.clear();
  for (uint32_t index = 0; index < used_; ++index) {
    if (connections_[index].state != State::kFree) close(connections_[index]);
  }
}

}  // namespace server
