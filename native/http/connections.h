// The connections: a table of all that are open, with what each has sent, and until when it may.
//
//   connections   [ 64 bytes ][ 64 bytes ] …       one array, an index a connection
//                    │ input ─▶ [ bytes of a request that is not whole, or sent ahead ]
//                    │ output ▶ [ bytes of an answer the client has not read (answers.h) ]
//   wheel         [ 12 bytes ][ 12 bytes ] …       the one deadline of each
//   sessions      [ 8 bytes ] …                    of those by TLS alone (tls.h)
//
// Lifecycle of a connection:
//
//   open ─▶ (shaking: its handshake) ─▶ reading
//           reading ──poll──▶ parked ──answer──▶ reading …
//             │ ├──feed──▶ watching ──answer──▶ reading …
//             │ │             └──event──▶ streaming, until one of the two closes
//             │ └──JavaScript or the main thread decides──▶ pending ──its answer──▶ reading …
//             ├──last answer──▶ closing, a second at most ──▶ closed
//             └──close: the client is gone, or its time is up
//
// Reading has a deadline for the next request, its head, its body and its answer; streaming, while
// the client is slow. Parked, watching and pending have none: keepalive and the hold see to it. A
// place is used again; the generation then tells an event, a deadline or an answer of the
// connection before.
//
// What a client sends ahead, behind a parked poll or an unread answer, is kept as input up to a
// bound, and then stays in the kernel. So one connection holds at most one request, that bound, and
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

/** Input kept while a connection may not go on; what is more waits in the kernel. */
constexpr size_t kPipelinedBytes = 16384;

enum class ConnectionState : uint8_t {
  kFree,
  kShaking,  // the handshake of TLS is under way
  kReading,
  kParked,
  kWatching,   // feeds, by a poll or a stream whose head has not gone out
  kStreaming,  // a feed, by an event stream
  kPending,
  kClosing,
};

/** What a connection's deadline is for. */
enum class Deadline : uint8_t {
  kIdle,   // the next request, or the client's close
  kHead,   // the rest of a head
  kBody,   // the rest of a body
  kWrite,  // the client reads on in its answer
};

/** What epoll watches a connection for. */
enum class Interest : uint8_t {
  kRead,    // input
  kWrite,   // that output can go on
  kHangUp,  // that the client has closed, or ended its half
  kReset,   // that the client has closed: it has ended its half already, and may still read
};

/** The bytes of an answer that the client's kernel has not taken; see answers.h. */
struct Output;

struct Connection {
  char* input;     // bytes read and not dealt with
  Output* output;  // bytes not yet sent
  int32_t fd;
  uint32_t generation;
  uint32_t
      record;  // of the parked client, or the watcher; of a free connection: the next free one + 1
  uint32_t inputLength;
  uint32_t needed;  // bytes of input that make the request whole; 0 when not known
  ConnectionState state;
  Deadline deadline;
  Interest interest;
  Route route;       // of a pending request; kCold: JavaScript decides it
  bool greeted;      // the client's address is known; false until a proxy has told it
  bool counted;      // by AddressLimits
  bool decided : 1;  // an answer of it goes out at the end of the turn
  bool resumes : 1;  // it goes on with what it has sent ahead in the next turn
  bool full : 1;     // what it sent behind `decided` could not be kept: that one is its last answer
  bool last : 1;     // the answer that is due is its last one
  bool plain : 1;    // of HTTP/1.0: it takes no chunks
  bool secure : 1;   // by TLS
  bool halfRecord : 1;  // memory is held for a record that has not come whole
  bool arriving : 1;    // a request that is not hot is coming: see cold_requests.h
  bool waits : 1;       // JavaScript has parked its request, or a feed: nothing may ever answer it
  bool transient : 1;   // its port is for joins, throws and leaves alone
  Address client;
};
static_assert(sizeof(Connection) == 64, "the memory figures in README count on it");

/** A connection's input, in its new owner's hands; gives the memory back. */
struct FreeInput {
  void operator()(char* input) const { ::free(input); }
};
using Input = std::unique_ptr<char, FreeInput>;

class Connections {
 public:
  /** Told of a connection that is about to close. */
  using Closing = std::function<void(Connection& connection)>;

  /**
   * Room for `capacity` connections. `events`, `limits` and `openInAll`, the count of connections
   * of all threads, outlive them; `now` in milliseconds. Throws std::bad_alloc.
   */
  Connections(uint32_t capacity, EventSet* events, AddressLimits* limits,
              std::atomic<uint32_t>* openInAll, Closing closing, uint64_t now);

  /** Closes all of them. */
  ~Connections() { closeAll(); }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  Connection& operator[](uint32_t index) { return connections_[index]; }

  /** The connection of that index and generation, or nullptr when it is closed. */
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

  /** How many are open. */
  uint32_t count() const { return count_; }

  /** How many are by TLS. */
  uint32_t secure() const { return secure_; }

  /** How many are closing: a last answer is on its way to them. */
  uint32_t closing() const { return closing_; }

  /** Bytes of input and output held for all of them. */
  uint64_t heldBytes() const { return heldBytes_; }

  /**
   * Counts a connection's output, which has been given to it. When too much is held for its address
   * the output is dropped, and false returned.
   */
  bool countOutput(Connection& connection);

  /** Takes a connection's output from it. */
  void dropOutput(Connection& connection);

  // ---- Lifecycle

  /**
   * Takes the socket `fd`: reading from now on, or shaking where it is by TLS. nullptr when it
   * can't be watched, and is closed.
   */
  Connection* open(int fd, TlsContext* tls);

  /** The last answer is being written: nothing more is served. */
  void beginClosing(Connection& connection);

  /** Closes it; its index is free for another one. */
  void close(Connection& connection);

  void closeAll();

  /** Calls `each(connection)` with every open one. */
  template <typename Each>
  void forEach(Each&& each) {
    for (uint32_t index = 0; index < used_; ++index) {
      if (connections_[index].state != ConnectionState::kFree) each(connections_[index]);
    }
  }

  // ---- Bytes, by TLS or not

  /** As recv(2). */
  ssize_t receive(const Connection& connection, char* to, size_t room);

  /** As send(2), but 0 when the kernel has no room. What it did not take is to be given next. */
  ssize_t give(const Connection& connection, const char* bytes, size_t length);

  /** The same with what is left of a message behind `sent` bytes of it. */
  ssize_t give(const Connection& connection, const base::Message& message, uint64_t sent);

  /** What long messages have taken. */
  SendCosts& sendCosts() { return costs_; }

  /** Whether there is more to receive that no event tells of. */
  bool hasMore(const Connection& connection) {
    return connection.secure && sessions_[indexOf(connection)].session->pending();
  }

  /** The session of a connection by TLS. */
  TlsSession& session(const Connection& connection) {
    return *sessions_[indexOf(connection)].session;
  }

  /** Counts what a record holds that has not come whole; false: its address has enough. */
  bool countRecord(Connection& connection);

  /** Nothing more comes from here. */
  void endOurHalf(const Connection& connection);

  // ---- Input

  /** Counts memory that is held for a connection; false, and not counted: its address has enough.
   */
  bool hold(const Connection& connection, uint64_t bytes);

  /** Counts it no more. */
  void release(const Connection& connection, uint64_t bytes);

  /**
   * Keeps `data` as the input of a connection that has none, in memory for the `needed` bytes of
   * the whole request, or 0 where that is not known. Returns false, and keeps nothing, when there
   * is no memory, or too much is held for its address.
   */
  bool keepInput(Connection& connection, const char* data, size_t length, size_t needed);

  /** Takes the input out of a connection. */
  Input takeInput(Connection& connection);

  // ---- What epoll watches for

  /**
   * While output is pending, watches for writability only. Stops reading at kPipelinedBytes of
   * input sent ahead: then it watches for the client's end only.
   */
  void watch(Connection& connection);
  void watchFor(Connection& connection, Interest interest);

  // ---- Deadlines

  /** The connection's one deadline: `deadline`, `milliseconds` from now. */
  void arm(Connection& connection, Deadline deadline, uint32_t milliseconds);

  /** The connection has no deadline. */
  void disarm(const Connection& connection) { wheel_.disarm(indexOf(connection)); }

  /** Calls `fire(connection)` with those whose deadline is over at `now`, a bounded number. */
  template <typename Fire>
  void tick(uint64_t now, Fire&& fire) {
    now_ = now;
    // What is left over waits for the next tick: a deadline may be late by one.
    wheel_.sweep(now, kTickBudget, [&](uint32_t index) { fire(connections_[index]); });
  }

  /** Whether no deadline is over in the next `ticks`. */
  bool isQuiet(uint32_t ticks) const { return wheel_.isQuiet(ticks); }

 private:
  /** Deadlines one tick looks at before it lets Node's loop go on. */
  static constexpr uint32_t kTickBudget = 8192;

  void forget(Connection& connection);
  ssize_t giveRest(const Connection& connection, const base::Message& message, uint64_t sent);

  EventSet* const events_;
  AddressLimits* const limits_;
  std::atomic<uint32_t>* const openInAll_;
  const Closing onClosing_;
  base::Reserved<Connection> connections_;
  /** A place for a session. */
  struct Place {
    TlsSession* session;
  };
  base::Reserved<Place> sessions_;
  SendCosts costs_;
  base::Wheel<kTickMilliseconds> wheel_;
  uint64_t now_;  // milliseconds, of the last tick
  uint64_t heldBytes_ = 0;
  uint32_t count_ = 0;
  uint32_t secure_ = 0;
  uint32_t closing_ = 0;
  uint32_t used_ = 0;            // connections ever open at once
  uint32_t freeConnection_ = 0;  // the first free one among them + 1
};

}  // namespace server

#endif  // SPRITES_CONNECTIONS_H_
