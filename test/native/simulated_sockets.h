// Simulates the kernel's sockets: connections, event sets and wake-ups.
//
//   client ─ send ─▶ [ sent ] ─ pieces, later ─▶ [ in ] ─ recv ─▶ server
//   client ◀─ pieces, later ─ [ out, as far as the window goes ] ◀─ send ─ server
//
// The network splits the bytes at random, and delays them. A stopped reader lets the window fill.
// An event set reports like epoll, level-triggered or by edges (EPOLLET), in any order.
#ifndef TEST_NATIVE_SIMULATED_SOCKETS_H_
#define TEST_NATIVE_SIMULATED_SOCKETS_H_

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulated_machine.h"

namespace sim {

/** The client's end of a connection. */
class ClientEnd {
 public:
  virtual ~ClientEnd() = default;
  virtual void onBytes(std::string_view bytes) = 0;
  /** The server has ended its half, or the connection is gone. */
  virtual void onEnd() = 0;
};

/** Properties of the network. */
struct NetworkOdds {
  uint64_t latency = 300;     // most microseconds of a piece
  uint64_t splits = 0;        // split pieces, of a million
  uint64_t shortCalls = 0;    // short reads and writes, of a million calls
  uint64_t refusedSends = 0;  // sends that fail by EAGAIN, of a million
  size_t window = 65536;      // most bytes that wait for a client
};

using StreamNumber = uint32_t;
constexpr StreamNumber kNoStream = UINT32_MAX;

class Network : public Actor {
 public:
  static constexpr int kFirstDescriptor = 1 << 20;  // descriptor

  NetworkOdds odds;

  static bool owns(int fd) { return fd >= kFirstDescriptor && fd < kFirstDescriptor * 2; }

  // ---- Called by clients

  /** @return kNoStream: no program listens there */
  StreamNumber connect(uint16_t port, uint32_t address, ClientEnd* peer) {
    std::vector<int> listening;
    for (const int fd : listeners_) {
      if (at(fd).isListening && at(fd).port == port) listening.push_back(fd);
    }
    if (listening.empty()) return kNoStream;
    if (free_.empty()) {
      free_.push_back(static_cast<StreamNumber>(streams_.size()));
      streams_.emplace_back();
    }
    const StreamNumber number = free_.back();
    free_.pop_back();
    Stream& stream = streams_[number];
    const uint32_t generation = stream.generation + 1;
    stream = Stream{};
    stream.generation = generation;
    stream.isUsed = true;
    stream.peer = peer;
    stream.address = address;
    const int fd = listening[machine->below(listening.size())];
    at(fd).backlog.push_back(number);
    markReady(fd);
    return number;
  }

  void send(StreamNumber number, std::string_view bytes) {
    Stream& stream = streams_[number];
    stream.sent += bytes;
    scheduleArrival(number);
  }

  /** Ends the client's half, behind its sent bytes. */
  void endClientHalf(StreamNumber number) {
    streams_[number].clientHasEnded = true;
    scheduleArrival(number);
  }

  /** Closes the client's end: by a reset, or by an end behind its sent bytes. */
  void closeClient(StreamNumber number, bool reset) {
    Stream& stream = streams_[number];
    stream.peer = nullptr;
    // With unread bytes a close is a reset.
    if (!std::exchange(stream.out, {}).empty() || reset) {
      stream.isReset = true;
      if (stream.fd >= 0) markReady(stream.fd);
    } else {
      endClientHalf(number);
    }
    release(number);
  }

  /** Sets whether the client reads. */
  void setReading(StreamNumber number, bool whether) {
    streams_[number].isPaused = !whether;
    if (whether) scheduleDelivery(number);
  }

  /** Returns the number of bytes that wait for the client. */
  size_t unreadBytes(StreamNumber number) const { return streams_[number].out.size(); }

  // ---- Descriptors

  int open() {
    size_t index = 0;
    if (freeFds_.empty()) {
      index = fds_.size();
      fds_.emplace_back();
    } else {
      index = freeFds_.back();
      freeFds_.pop_back();
    }
    const uint32_t serial = fds_[index].serial + 1;
    fds_[index] = {};
    fds_[index].serial = serial;
    fds_[index].isUsed = true;
    ++open_[machine->server];
    return kFirstDescriptor + static_cast<int>(index);
  }

  uint32_t openDescriptors() const { return open_[machine->server]; }

  int close(int fd) {
    Descriptor& one = at(fd);
    expect(one.isUsed, "a descriptor is closed that is not open");
    if (one.stream != kNoStream) {
      Stream& stream = streams_[one.stream];
      stream.fd = -1;
      stream.isClosed = stream.outEnded = true;
      if (machine->isDead) stream.out.clear();
      // With unread bytes a close is a reset.
      if (!stream.in.empty()) stream.wasReset = true, stream.out.clear();
      scheduleDelivery(one.stream);
      release(one.stream);
    }
    std::erase(listeners_, fd);
    // Connections in the backlog are reset.
    for (const StreamNumber number : std::exchange(one.backlog, {})) {
      streams_[number].isClosed = streams_[number].wasReset = true;
      scheduleDelivery(number);
      release(number);
    }
    one.isUsed = false;
    --open_[machine->server];
    freeFds_.push_back(static_cast<size_t>(fd - kFirstDescriptor));
    return 0;
  }

  int listen(int fd) {
    at(fd).isListening = true;
    listeners_.push_back(fd);
    return 0;
  }

  void bind(int fd, uint16_t port) { at(fd).port = port == 0 ? ++lastPort_ : port; }
  uint16_t port(int fd) { return at(fd).port; }

  int accept(int fd, sockaddr* name) {
    Descriptor& one = at(fd);
    if (one.backlog.empty() || machine->isDead) return errno = EAGAIN, -1;
    const StreamNumber number = one.backlog.front();
    one.backlog.pop_front();
    const int taken = open();
    at(taken).stream = number;
    streams_[number].fd = taken;
    if (name != nullptr) {
      sockaddr_in from = {};
      from.sin_family = AF_INET;
      from.sin_addr.s_addr = htonl(streams_[number].address);
      memcpy(name, &from, sizeof from);
    }
    return taken;
  }

  ssize_t recv(int fd, char* to, size_t room, bool drops) {
    Stream& stream = streams_[at(fd).stream];
    if (machine->isDead || stream.isReset) return errno = ECONNRESET, -1;
    if (stream.in.empty()) {
      if (stream.inEnded) return 0;
      return errno = EAGAIN, -1;
    }
    size_t length = std::min(room, stream.in.size());
    if (length > 1 && machine->happens(odds.shortCalls)) length = 1 + machine->below(length - 1);
    if (!drops) memcpy(to, stream.in.data(), length);
    traceWorker("worker %" PRIu64 " reads %" PRIu64 " bytes of connection %" PRIu64, length,
                at(fd).stream);
    stream.in.erase(0, length);
    return static_cast<ssize_t>(length);
  }

  ssize_t send(int fd, const char* bytes, size_t length) {
    const StreamNumber number = at(fd).stream;
    Stream& stream = streams_[number];
    if (machine->isDead || stream.isReset) return errno = ECONNRESET, -1;
    if (stream.outEnded) return errno = EPIPE, -1;
    if (stream.peer == nullptr) {
      // The reset of the client's kernel comes later.
      stream.isReset = true;
      markReady(fd);
      return static_cast<ssize_t>(length);
    }
    const size_t room = roomOf(stream);
    if (room == 0 || machine->happens(odds.refusedSends)) {
      // The socket is writable soon.
      markReady(fd);
      return errno = EAGAIN, -1;
    }
    size_t taken = std::min(room, length);
    if (taken > 1 && machine->happens(odds.shortCalls)) taken = 1 + machine->below(taken - 1);
    stream.out.append(bytes, taken);
    traceWorker("worker %" PRIu64 " sends %" PRIu64 " bytes to connection %" PRIu64, taken, number);
    scheduleDelivery(number);
    return static_cast<ssize_t>(taken);
  }

  int shutdown(int fd) {
    Stream& stream = streams_[at(fd).stream];
    stream.outEnded = true;
    scheduleDelivery(at(fd).stream);
    markReady(fd);
    return 0;
  }

  // ---- Event sets

  int control(int set, int operation, int fd, const epoll_event* event) {
    if (machine->isDead) return errno = EBADF, -1;
    Descriptor& one = at(fd);
    if (operation == EPOLL_CTL_DEL) {
      one.set = -1;
      return 0;
    }
    one.set = set;
    one.interest = event->events;
    one.data = event->data;
    markReady(fd);
    return 0;
  }

  /**
   * Returns whether a descriptor or an event set is ready. Removes descriptors from a set's list
   * that are not ready any more.
   */
  bool isReady(int set) {
    if (at(set).set >= 0) return eventsOf(set) != 0;
    auto& list = at(set).readyList;
    while (!list.empty()) {
      const auto [fd, serial] = list.front();
      Descriptor& one = at(fd);
      if (one.serial == serial && one.isUsed && one.set == set && (eventsOf(fd) != 0)) return true;
      if (one.serial == serial) one.isListed = false;
      list.pop_front();
    }
    return false;
  }

  int takeEvents(int set, epoll_event* events, int most) {
    auto& list = at(set).readyList;
    int count = 0;
    for (size_t looks = list.size(); looks > 0 && count < most; --looks) {
      const auto [fd, serial] = list.front();
      list.pop_front();
      Descriptor& one = at(fd);
      if (one.serial != serial || !one.isUsed || one.set != set) continue;
      const uint32_t now = eventsOf(fd);
      if (now == 0) {
        one.isListed = false;
        continue;
      }
      events[count].events = now;
      events[count++].data = one.data;
      // An edge-triggered descriptor comes again after its next change.
      one.isListed = (one.interest & EPOLLET) == 0;
      if (one.isListed) list.emplace_back(fd, serial);
    }
    if (count > 1 && machine->below(4) == 0) std::swap(events[0], events[machine->below(count)]);
    return count;
  }

  /** Set the receiver of a wake-up: a sleeping thread, or for a set the main thread's actor. */
  void setSleeper(int fd, Thread* thread) { at(fd).sleeper = thread; }
  void setReadyActor(int set, Actor* actor, uint64_t what) {
    at(set).readyActor = actor;
    at(set).readyEvent = what;
  }

  void addCount(int fd, uint64_t more) {
    at(fd).counter += more;
    at(fd).isCounter = true;
    markReady(fd);
  }
  /** Sets the timer `fd`. An earlier setting may still expire, too. */
  void setTimer(int fd, uint64_t microseconds) {
    const uint64_t what = uint64_t{at(fd).serial} << 32 | static_cast<uint32_t>(fd);
    machine->schedule(microseconds, &timers_, what);
  }
  uint64_t takeCount(int fd) { return std::exchange(at(fd).counter, 0); }

  // ---- Bytes under way

  void act(uint64_t what) override {
    const auto number = static_cast<StreamNumber>(what >> 33);
    const auto generation = static_cast<uint32_t>(what >> 1) & 0xffffffff;
    Stream& stream = streams_[number];
    if (stream.generation != generation || !stream.isUsed) return;
    (what & 1) != 0 ? arrive(number) : deliver(number);
  }

 private:
  /** The timers of the server. */
  struct Timers : Actor {
    explicit Timers(Network* of) : network(of) {}
    void act(uint64_t what) override {
      const int fd = static_cast<int>(what & UINT32_MAX);
      const Descriptor& one = network->at(fd);
      if (one.isUsed && one.serial == what >> 32) network->addCount(fd, 1);
    }
    Network* network;
  };

  struct Stream {
    uint32_t generation = 0;
    bool isUsed = false;
    ClientEnd* peer = nullptr;
    uint32_t address = 0;
    int fd = -1;
    std::string sent, in, out;
    bool clientHasEnded = false;  // the client has ended its half, behind `sent`
    bool inEnded = false;         // that end has arrived
    bool isReset = false;         // by the client, or the network
    bool outEnded = false;        // the server has ended its half
    bool isClosed = false;        // by the server
    bool wasReset = false;        // by the server
    bool isPaused = false;        // the client does not read
    bool isArriving = false, isDelivering = false;
  };

  struct Descriptor {
    uint32_t serial = 0;
    bool isUsed = false;
    StreamNumber stream = kNoStream;
    // For a listening socket.
    bool isListening = false;
    uint16_t port = 0;
    std::deque<StreamNumber> backlog;
    // For an eventfd or timer.
    bool isCounter = false;
    uint64_t counter = 0;
    // The event set that watches it.
    int set = -1;
    uint32_t interest = 0;
    epoll_data data = {};
    bool isListed = false;
    Thread* sleeper = nullptr;
    // For an event set.
    std::deque<std::pair<int, uint32_t>> readyList;
    Actor* readyActor = nullptr;
    uint64_t readyEvent = 0;
  };

  /** Describes a worker's step. The main thread's steps are its turns. */
  static void traceWorker(const char* what, size_t bytes, StreamNumber number) {
    const Thread* const thread = machine->running;
    if (thread != nullptr && thread->worker != 0)
      machine->trace(what, thread->worker, bytes, number);
  }

  Descriptor& at(int fd) { return fds_[static_cast<size_t>(fd - kFirstDescriptor)]; }

  size_t roomOf(const Stream& stream) const {
    return stream.out.size() >= odds.window ? 0 : odds.window - stream.out.size();
  }

  uint32_t eventsOf(int fd) {
    const Descriptor& one = at(fd);
    uint32_t now = 0;
    if (one.isListening && !one.backlog.empty()) now |= EPOLLIN;
    if (one.counter > 0) now |= EPOLLIN;
    if (one.stream != kNoStream) {
      const Stream& stream = streams_[one.stream];
      if (!stream.in.empty()) now |= EPOLLIN;
      if (stream.inEnded) now |= EPOLLIN | EPOLLRDHUP;
      if (stream.inEnded && stream.outEnded) now |= EPOLLHUP;
      if (stream.isReset) now |= EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP;
      if (roomOf(stream) > 0) now |= EPOLLOUT;
    }
    return now & (one.interest | EPOLLERR | EPOLLHUP);
  }

  /** Marks a descriptor that may be ready. The next wait checks it. */
  void markReady(int fd) {
    Descriptor& one = at(fd);
    if (one.set < 0 || eventsOf(fd) == 0) return;
    Descriptor& set = at(one.set);
    if (!one.isListed) {
      one.isListed = true;
      set.readyList.emplace_back(fd, one.serial);
    }
    for (Descriptor* const awaited : {&one, &set}) {
      Thread* const sleeper = std::exchange(awaited->sleeper, nullptr);
      if (sleeper != nullptr) sleeper->wake(machine->below(100));
    }
    if (set.readyActor != nullptr) set.readyActor->act(set.readyEvent);
  }

  uint64_t eventOf(StreamNumber number, bool arrives) const {
    return uint64_t{number} << 33 | uint64_t{streams_[number].generation} << 1 | (arrives ? 1 : 0);
  }

  uint64_t delay() { return 1 + machine->below(odds.latency); }

  void scheduleArrival(StreamNumber number) {
    Stream& stream = streams_[number];
    if (std::exchange(stream.isArriving, true)) return;
    machine->schedule(delay(), this, eventOf(number, true));
  }

  void scheduleDelivery(StreamNumber number) {
    Stream& stream = streams_[number];
    if (std::exchange(stream.isDelivering, true)) return;
    machine->schedule(delay(), this, eventOf(number, false));
  }

  /** Delivers a client's bytes, or a piece of them, to the server. */
  void arrive(StreamNumber number) {
    Stream& stream = streams_[number];
    stream.isArriving = false;
    if (stream.isClosed) {
      stream.sent.clear();
      return release(number);
    }
    size_t length = stream.sent.size();
    if (length > 1 && machine->happens(odds.splits)) length = 1 + machine->below(length - 1);
    stream.in.append(stream.sent, 0, length);
    stream.sent.erase(0, length);
    if (!stream.sent.empty()) {
      scheduleArrival(number);
    } else if (stream.clientHasEnded) {
      stream.inEnded = true;
    }
    if (stream.fd >= 0) markReady(stream.fd);
  }

  /** Delivers the server's bytes, or a piece of them, to the client. */
  void deliver(StreamNumber number) {
    Stream& stream = streams_[number];
    stream.isDelivering = false;
    if (stream.peer == nullptr || stream.isPaused) return;
    size_t length = stream.out.size();
    if (length > 1 && machine->happens(odds.splits)) length = 1 + machine->below(length - 1);
    const std::string piece = stream.out.substr(0, length);
    stream.out.erase(0, length);
    if (stream.fd >= 0) markReady(stream.fd);
    const bool ends = stream.outEnded || stream.wasReset;
    if (ends && piece.empty()) {
      return std::exchange(stream.peer, nullptr)->onEnd(), release(number);
    }
    if (ends || !stream.out.empty()) scheduleDelivery(number);
    if (!piece.empty()) stream.peer->onBytes(piece);
  }

  /** Frees a connection that both ends have closed. */
  void release(StreamNumber number) {
    Stream& stream = streams_[number];
    if (!stream.isUsed || !stream.isClosed || stream.peer != nullptr) return;
    stream.isUsed = false;
    stream.sent = stream.in = stream.out = std::string();
    free_.push_back(number);
  }

  std::deque<Stream> streams_;
  std::vector<StreamNumber> free_;
  std::deque<Descriptor> fds_;
  Timers timers_{this};
  std::vector<size_t> freeFds_;
  std::vector<int> listeners_;
  uint32_t open_[kMaxServers] = {};
  uint16_t lastPort_ = 1000;
};

inline Network* network = nullptr;

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_SOCKETS_H_
