// The table of open connections: the state, input, output and deadline of each.
//
//   connections   [ 64 bytes ][ 64 bytes ] …       one array, by index
//                    │ input ─▶ [ bytes of an incomplete request, or sent ahead ]
//                    │ output ▶ [ bytes of an answer the client has not read (answers.h) ]
//   wheel         [ 12 bytes ][ 12 bytes ] …       one deadline for each
//   sessions      [ 8 bytes ] …                    of TLS connections only (tls.h)
//
// Lifecycle of a connection:
//
//   open ─▶ (handshaking) ─▶ reading
//           reading ──poll──▶ parked ──answer──▶ reading …
//             │ ├──feed──▶ watching ──answer──▶ reading …
//             │ │             └──event──▶ streaming, until one of the two closes
//             │ └──JavaScript or the main thread decides──▶ pending ──its answer──▶ reading …
//             ├──last answer──▶ closing, at most a second ──▶ closed
//             └──close: the client is gone, or the deadline is over
//
// Reading has a deadline for the next request, its head, its body and its answer. Streaming has one
// while the client is slow. Parked, watching and pending have none: TCP keepalive and the hold
// bound them. A place in the table is reused: the generation marks an event, a deadline or an
// answer of the previous connection as stale.
//
// Bytes that a client sends ahead, behind a parked poll or an unread answer, are kept as input up
// to a bound; more stays in the kernel. So a connection holds at most one request, that bound, and
// one answer.
//
// Cost: 64 bytes here and 12 in the wheel. Rejected: a uv_tcp_t per connection (248 bytes and a
// callback with its buffer each); an object per connection (a pointer, the allocator's own word,
// and no order in memory).
#ifndef SPRITES_CONNECTIONS_H_
#define SPRITES_CONNECTIONS_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>

#include "base/address.h"
#include "base/address_limits.h"
#include "base/message.h"
#include "base/reserve.h"
#include "base/wheel.h"
#include "events.h"
#include "http_reader.h"
#include "request_handler.h"
#include "send_costs.h"
#include "tls.h"

namespace server {

/** Most bytes of input kept while a connection must wait; more waits in the kernel. */
constexpr size_t kMaxPipelinedBytes = 16384;

enum class ConnectionState : uint8_t {
  kFree,
  kHandshaking,  // in its TLS handshake
  kReading,
  kParked,
  kWatching,   // feeds, by a poll, or by a stream whose head was not sent yet
  kStreaming,  // a feed, by an event stream
  kPending,
  kClosing,
};

/** The event that a connection's deadline waits for. */
enum class Deadline : uint8_t {
  kIdle,   // the next request, or the client's close
  kHead,   // the rest of a head
  kBody,   // the rest of a body
  kWrite,  // the client reads more of its answer
};

/** The events that epoll watches for on a connection. */
enum class Interest : uint8_t {
  kRead,    // input
  kWrite,   // room for output
  kHangUp,  // the client closes, or ends its half
  kReset,   // the client closes; it has ended its half already, and may still read
};

/** The bytes of an answer that the kernel has not accepted; see answers.h. */
struct Output;

struct Connection {
  char* input;     // bytes read, not processed yet
  Output* output;  // bytes not yet sent
  int32_t fd;
  uint32_t generation;
  uint32_t record;  // of the parked client, or the watcher; in a free place: the next free one + 1
  uint32_t inputLength;
  uint32_t requestLength;  // bytes of the whole request; 0: not known
  ConnectionState state;
  Deadline deadline;
  Interest interest;
  Route route;                 // of a pending request; kCold: JavaScript answers it
  bool proxyHeaderRead;        // false until the PROXY header was read, if the port expects one
  bool isCounted;              // in AddressLimits
  bool hasDecidedAnswer : 1;   // an answer waits for the end of the turn
  bool willResume : 1;         // its input, or its handshake, goes on in a later turn
  bool inputRefused : 1;       // the input behind a decided request was not kept: a 503 is the last
                               // answer
  bool inputIsHead : 1;        // the refused input begins with a HEAD request
  bool closesAfterAnswer : 1;  // the connection closes after the next answer
  bool isHttp10 : 1;           // HTTP/1.0: the client reads no chunks
  bool isTls : 1;              // TLS
  bool partialRecordCounted : 1;  // memory is counted for an incomplete TLS record
  bool hasColdRequest : 1;        // its request is kept: incomplete, or waiting for its turn
  bool mayStayUnanswered : 1;     // its request is parked by JavaScript or watches feeds: an answer
                                  // may never come
  bool isTransient : 1;           // its port serves only joins, throws and leaves
  Address clientAddress;
};
static_assert(sizeof(Connection) == 64, "the memory figures in README count on it");

/** Frees a connection's input that was taken out of the table. */
struct InputDeleter {
  void operator()(char* input) const { ::free(input); }
};
using Input = std::unique_ptr<char, InputDeleter>;

class Connections {
 public:
  /** Called before a connection closes. */
  using CloseCallback = std::function<void(Connection& connection)>;

  /**
   * Creates a table with room for `capacity` connections. `events`, `limits` and `openInAll`, the
   * number of connections of all threads, outlive it; `now` in milliseconds. Throws std::bad_alloc.
   */
  Connections(uint32_t capacity, EventSet* events, AddressLimits* limits,
              std::atomic<uint32_t>* openInAll, CloseCallback beforeClose, uint64_t now);

  /** Closes all connections. */
  ~Connections() { closeAll(); }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  Connection& operator[](uint32_t index) { return connections_[index]; }

  /** The connection with that index and generation; nullptr: it is closed. */
  Connection* find(const Ticket& ticket) {
    Connection& connection = connections_[ticket.connection];
    const bool open = connection.state != ConnectionState::kFree;
    return open && connection.generation == ticket.generation ? &connection : nullptr;
  }

  /** Prefetches a connection, and its deadline. */
  void prefetch(uint32_t index) const {
    __builtin_prefetch(&connections_[index]);
    wheel_.prefetch(index);
  }

  uint32_t indexOf(const Connection& connection) const { return &connection - connections_.data(); }

  Ticket ticketOf(const Connection& connection) const {
    return {indexOf(connection), connection.generation};
  }

  /** Number of open connections. */
  uint32_t count() const { return count_; }

  /** Number of TLS connections. */
  uint32_t tlsCount() const { return tlsCount_; }

  /** Number of connections that are closing after their last answer. */
  uint32_t closingCount() const { return closingCount_; }

  /** Bytes of input and output held for all connections. */
  uint64_t heldBytes() const { return heldBytes_; }

  /**
   * Counts the memory of a connection's new output. When its address holds too much, drops the
   * output and returns false.
   */
  bool countOutput(Connection& connection);

  /** Drops a connection's output. */
  void discardOutput(Connection& connection);

  // ---- Lifecycle

  /**
   * Adds the socket `fd`. Its state is reading, or handshaking with `tls`. Returns nullptr when
   * epoll or TLS fails, and closes the socket.
   */
  Connection* open(int fd, TlsContext* tls);

  /**
   * Sets the state to closing: the last answer is being written, and no further request is served.
   */
  void beginClosing(Connection& connection);

  /** Closes a connection; its index is free for another one. */
  void close(Connection& connection);

  void closeAll();

  /** Calls `each(connection)` for every open connection. */
  template <typename Each>
  void forEach(Each&& each) {
    for (uint32_t index = 0; index < usedPlaces_; ++index) {
      if (connections_[index].state != ConnectionState::kFree) each(connections_[index]);
    }
  }

  // ---- Bytes, with or without TLS

  /** Reads as recv(2) does. */
  ssize_t receive(const Connection& connection, char* to, size_t room);

  /**
   * Sends as send(2) does, but returns 0 when the kernel has no room. The next call must begin with
   * the bytes that were not accepted.
   */
  ssize_t send(const Connection& connection, const char* bytes, size_t length);

  /** Sends the rest of a message after its first `sent` bytes, in the same way. */
  ssize_t send(const Connection& connection, const base::Message& message, uint64_t sent);

  /** The measured costs of sending long messages. */
  SendCosts& sendCosts() { return costs_; }

  /** Whether there are bytes to receive that no event will announce. */
  bool hasBufferedInput(const Connection& connection) {
    return connection.isTls && sessions_[indexOf(connection)].session->hasPending();
  }

  /** The session of a TLS connection. */
  TlsSession& session(const Connection& connection) {
    return *sessions_[indexOf(connection)].session;
  }

  /**
   * Counts the memory of an incomplete TLS record. Returns false when its address holds too much.
   */
  bool countPartialRecord(Connection& connection);

  /** Ends the server's half of the connection. */
  void endOurHalf(const Connection& connection);

  // ---- Input

  /**
   * Counts memory held for a connection. Returns false, and counts nothing, when its address holds
   * too much.
   */
  bool reserveMemory(const Connection& connection, uint64_t bytes);

  /** Takes memory off the count. */
  void releaseMemory(const Connection& connection, uint64_t bytes);

  /**
   * Keeps `data` as the input of a connection that has none. Allocates `requestLength` bytes, the
   * length of the whole request, or 0 if it is not known. Returns false, and keeps nothing, without
   * memory or when the address holds too much.
   */
  bool storeInput(Connection& connection, const char* data, size_t length, size_t requestLength);

  /** Removes and returns the input of a connection. */
  Input detachInput(Connection& connection);

  // ---- What epoll watches for

  /**
   * Sets the events that epoll watches for. With pending output: room for output only. With
   * kMaxPipelinedBytes of input sent ahead: only the client's end, so that no more is read.
   */
  void updateInterest(Connection& connection);
  void setInterest(Connection& connection, Interest interest);

  // ---- Deadlines

  /** Sets the connection's only deadline to `milliseconds` from now. */
  void arm(Connection& connection, Deadline deadline, uint32_t milliseconds);

  /** Removes the connection's deadline. */
  void disarm(const Connection& connection) { wheel_.disarm(indexOf(connection)); }

  /**
   * Calls `fire(connection)` for connections whose deadline is over at `now`, for a bounded number
   * of them.
   */
  template <typename Fire>
  void tick(uint64_t now, Fire&& fire) {
    now_ = now;
    // The rest waits for the next tick: a deadline may be late by one.
    wheel_.sweep(now, kTickBudget, [&](uint32_t index) { fire(connections_[index]); });
  }

  /** Whether no deadline ends in the next `ticks`. */
  bool isQuiet(uint32_t ticks) const { return wheel_.isQuiet(ticks); }

 private:
  /** Most deadlines that a tick looks at before Node's loop goes on. */
  static constexpr uint32_t kTickBudget = 8192;

  void freePlace(Connection& connection);
  ssize_t sendRest(const Connection& connection, const base::Message& message, uint64_t sent);

  EventSet* const events_;
  AddressLimits* const limits_;
  std::atomic<uint32_t>* const openInAll_;
  const CloseCallback beforeClose_;
  base::Reserved<Connection> connections_;
  struct SessionSlot {
    TlsSession* session;
  };
  base::Reserved<SessionSlot> sessions_;
  SendCosts costs_;
  base::Wheel<kTickMilliseconds> wheel_;
  uint64_t now_;  // milliseconds: time of the last tick
  uint64_t heldBytes_ = 0;
  uint32_t count_ = 0;
  uint32_t tlsCount_ = 0;
  uint32_t closingCount_ = 0;
  uint32_t usedPlaces_ = 0;  // most connections ever open at once
  uint32_t firstFree_ = 0;   // the first free place among them + 1; 0: none
};

}  // namespace server

#endif  // SPRITES_CONNECTIONS_H_
