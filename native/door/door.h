// The front door: every connection to the server, on one epoll descriptor of its own.
//
//   listener ─▶ reading ──hot request──▶ handler ──outcome──▶ answer ─▶ reading
//                 │  ▲                    └─poll─▶ parked ──answer──▲
//                 │  └─ input: only while a request is in pieces
//                 │     output: only while the peer reads slowly
//                 └──anything unusual──▶ handed over, descriptor and bytes, to Node
//
//   connections   [ 64 bytes ][ 64 bytes ] …      one array, an index a connection
//
// Lifecycle of a connection: accepted; reading, with a deadline for the next request's head and one
// for its body; parked while its poll waits, with no deadline of its own (keepalive and the hold
// see to it); pending while a worker's request is under way; closing, for a second, after a last
// answer that must arrive. Its place is reused; the generation tells an event of the one before.
//
// One request at a time: what a peer pipelines behind a parked poll or an unread answer waits in
// its input, bounded, and then in the kernel. So an answer never waits behind another, and the
// memory a peer can take is one request and one answer.
//
// Cost of a parked poll: 64 bytes here, 12 in the wheel, and the client's record. A throw is one
// read, one write to the neighbor, one to the thrower: no allocation but the sprite's.
// Rejected: a uv_tcp_t per connection (248 bytes and a callback with its buffer each),
// edge-triggered epoll (every read would have to run into EAGAIN: one system call more a request).
#ifndef SPRITES_DOOR_H_
#define SPRITES_DOOR_H_

#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "listener.h"
#include "pacer.h"
#include "pool/address.h"
#include "pool/address_limits.h"
#include "pool/reserve.h"
#include "pool/wheel.h"
#include "relay/relay.h"
#include "replies.h"
#include "request_handler.h"

struct epoll_event;

namespace server {

/** Whose word is taken for a client's address. */
enum class Trust : uint8_t {
  kNobody,     // it is the connection's own
  kProxy,      // a proxy says it by the PROXY protocol, at the start of every connection
  kForwarded,  // a proxy says it in every request, by X-Forwarded-For or Forwarded
};

struct DoorOptions {
  uint32_t connections;  // at most, those elsewhere counted; one more is answered 503
  uint32_t maxSprite;    // bytes; a throw with more is Node's to refuse
  // Milliseconds a head may take, from its first byte or the accept; one that has not sent a byte
  // is closed without a word: browsers connect ahead, and would take a 408 for an answer.
  uint32_t headTime;
  uint32_t bodyTime;   // milliseconds a body may take, from the end of the head
  uint32_t idleTime;   // milliseconds between requests
  uint32_t writeTime;  // milliseconds in which a peer that does not read must read something
  uint32_t keepIdle;   // seconds of silence after which a peer is probed: longer than any hold
  Trust trust;
};

struct DoorCounts {
  uint64_t accepted, refused, handedOver, requests;
  uint64_t timedOut;     // heads and bodies that came too slowly
  uint64_t slowReaders;  // closed because they did not read their answer
  uint64_t outOfFiles;   // times accept found no file left
  uint64_t heldBytes;    // input and output held for connections, now
  uint32_t open;         // connections, now
};

class Door : public PollResponder {
 public:
  /**
   * Takes a connection the front door does not serve: the descriptor is the callee's, and so is the
   * connection's count in AddressLimits, which the callee closes unless trust is kForwarded.
   */
  using HandOver = std::function<void(int fd, std::string_view bytes, const Address& client)>;

  /** `handler` and `limits` outlive the front door; `now` in milliseconds. Throws
   * std::system_error.
   */
  Door(const DoorOptions& options, Replies replies, RequestHandler* handler, AddressLimits* limits,
       HandOver handOver, uint64_t now);
  ~Door() override;
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /** Listens: see Listener::listen. */
  int listen(const char* address, uint16_t port, int backlog, Listener::Sharing sharing);
  uint16_t port() const { return listener_.port(); }

  /** Readable when there is something to do: call turn. */
  int fd() const { return pacer_.fd(); }

  /** Does what there is to do, a bounded share of it. */
  void turn();

  /**
   * Turns come no more often than every `microseconds`: with many requests a second each then costs
   * less, and waits that long at the most. A lone request still goes at once. 0, the default: none
   * waits.
   */
  void pace(uint32_t microseconds) { pacer_.pace(microseconds); }

  /** Ends what is due at `now`, milliseconds. To be called every kTickMilliseconds. */
  void tick(uint64_t now);

  /** Accepts no more connections. */
  void stopListening();

  /** Connections that others of this process hold: they take places of the front door's. */
  void elsewhere(uint32_t connections) { elsewhere_ = connections; }

  /** Closes the connections that nothing is owed to; returns how many are left. */
  uint32_t closeIdle();

  /** Closes every connection. */
  void closeAll();

  /**
   * Watches one end of a relay; the descriptor is the front door's, `end` the caller's. What the
   * end gathers is sent after each turn, but not more often than every `pace` microseconds: under
   * load a batch then is large enough for its system calls to cost little, and a lone request still
   * goes at once.
   */
  void attach(int fd, RelayEnd* end, uint32_t pace);

  /** Sends what the ends of relays have gathered. */
  void flushRelays();

  /** Whether the relay of `end` still has its other end. */
  bool attached(const RelayEnd* end) const;

  /** A poll's answer, from the pool. */
  void answer(uint32_t token, std::string_view body) override;

  /** The outcome of a request that the handler left open; `id` of a join that was kOk. */
  void settle(Ticket ticket, Outcome outcome, const Id* id);

  const DoorCounts& counts() const { return counts_; }

 private:
  enum class State : uint8_t { kFree, kReading, kParked, kPending, kClosing };

  /** What a deadline in the wheel means for a reading connection. */
  enum class Deadline : uint8_t { kIdle, kHead, kBody, kWrite };

  struct Output;

  /** A connection's input, in its new owner's hands; gives the memory back. */
  struct FreeInput {
    void operator()(char* input) const { ::free(input); }
  };
  using Input = std::unique_ptr<char, FreeInput>;

  struct Connection {
    char* input;     // bytes read and not dealt with
    Output* output;  // bytes the peer's kernel has not taken
    int32_t fd;
    uint32_t generation;
    uint32_t record;  // of the parked client; of a free one: the next free one + 1
    uint32_t inputLength;
    uint32_t needed;  // bytes of input that make the request whole; 0 when not known
    State state;
    Deadline deadline;
    uint8_t interest;  // what epoll watches for
    Route route;       // of a pending request
    bool greeted;      // the client's address is known; false until a proxy has told it
    bool counted;      // by AddressLimits
    Address client;
  };
  static_assert(sizeof(Connection) == 64, "the memory figures in README count on it");

  uint32_t indexOf(const Connection& connection) const { return &connection - connections_.data(); }

  /** One end of a relay, and what the kernel has not taken yet of what it said. */
  struct Relay {
    int fd;
    RelayEnd* end;
    bool blocked;     // the kernel takes no more for now
    bool watched;     // epoll tells when it does
    uint32_t pace;    // microseconds
    uint64_t sentAt;  // microseconds, of the last batch
  };

  void acceptSome();
  bool refuseOnSpare();
  void open(int fd, const sockaddr_storage& peer);
  bool greet(Connection& connection, const char** data, size_t* length);
  bool count(Connection& connection, const Address& client);
  Address clientOf(const Connection& connection, const HotRequest& request, const char* head) const;
  void event(Connection& connection, uint32_t events);
  void relayEvent(int fd, uint32_t events);
  void flushRelay(Relay* relay);
  void flushLater(uint64_t microseconds);
  void read(Connection& connection);
  void process(Connection& connection, const char* data, size_t length);
  bool serve(Connection& connection, const HotRequest& request, const char* head);
  bool conclude(Connection& connection, Route route, Outcome outcome, const Id* id);
  bool keep(Connection& connection, const char* data, size_t length, size_t needed);
  Input takeInput(Connection& connection);
  void resume(Connection& connection);
  void handOver(Connection& connection, const char* data, size_t length);
  void handOverInput(Connection& connection);
  bool send(Connection& connection, std::string_view bytes);
  void flush(Connection& connection);
  void finish(Connection& connection, const Reply& reply);
  void fire(Connection& connection);
  void close(Connection& connection);
  void forget(Connection& connection);
  void watchWhatIsWanted(Connection& connection);
  void watch(Connection& connection, uint8_t interest);
  void arm(Connection& connection, Deadline deadline, uint32_t milliseconds);
  void awaitRequest(Connection& connection);
  uint32_t tickAt(uint64_t milliseconds) const;
  void pauseListening();
  void resumeListening();

  const DoorOptions options_;
  ReplyWriter writer_;
  RequestHandler* const handler_;
  AddressLimits* const limits_;
  const HandOver handOver_;
  Listener listener_;
  int epoll_;
  Pacer pacer_;  // what the loop watches
  int pace_;     // a timerfd: a batch of a relay is due
  int wake_;     // an eventfd: some connection is ready to be resumed
  Reserved<Connection> connections_;
  Wheel wheel_;
  std::unique_ptr<char[]> buffer_;
  std::vector<Relay> relays_;  // a handful: one for each worker
  std::vector<Ticket> ready_;  // answered outside their turn, with input left to deal with
  DoorCounts counts_ = {};
  const uint64_t start_;  // milliseconds
  uint64_t now_;
  uint32_t used_ = 0;            // connections ever used at once
  uint32_t freeConnection_ = 0;  // the first free one among them + 1
  uint32_t refusedThisTick_ = 0;
  uint32_t lingering_ = 0;  // connections that are closing
  uint32_t elsewhere_ = 0;  // connections that others hold
  bool listening_ = false;
};

}  // namespace server

#endif  // SPRITES_DOOR_H_
