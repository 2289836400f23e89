// The front door: reads the requests of every connection, has them decided, and answers.
//
//   events ─▶ connections ─▶ reading ──hot request──▶ handler ──outcome──▶ answers ─▶ reading
//                              │  ▲                      └─poll─▶ parked ──answer──▲
//                              │  └─ input: only while a request is in pieces      │
//                              └──any other──▶ one call of JavaScript: handle ─────┘
//
// Its parts, each in a file of its own:
//   events.h           events of epoll, in turns
//   listener.h         new connections, even without a free file descriptor
//   connections.h      the table of open connections: state, input, deadline
//   http_reader.h      the grammar of hot requests
//   door_serving.cc    serves hot requests, and sends their answers
//   request_reader.h   the grammar of all other requests
//   door_asking.cc     asks JavaScript, and sends its answers
//   cold_requests.h    requests for JavaScript
//   turn_share.h       JavaScript, handshakes, input sent ahead: shares of a turn, queues
//   request_handler.h  decides: the pool, or in a worker asks to the main thread
//   replies.h          texts of the answers
//   live_counts.h      the counts of /status
//   answers.h          sends answers
//   feed_handler.h     the watchers of feeds
//
// A turn has three steps. Decide: the door takes events, reads each readable connection once, and
// has every whole request decided; connections that were answered outside their own event go on
// with their input. Write: the caller of `turn` writes the decisions to the journal, if there is
// one. Send: `sendAnswers` sends several answers of one connection together.
//
// One request at a time: bytes that a client pipelines behind a parked poll or an unread answer
// wait in its input, bounded, and then in the kernel. So an answer never waits behind another.
//
// Cost of a parked poll: the records of a connection and of a client. A throw is one read, one
// write to the neighbor and one to the thrower; only the sprite is allocated. Rejected: Node's own
// sockets for the hot requests (some 10,000 bytes of JavaScript objects for each parked poll).
#ifndef SPRITES_DOOR_H_
#define SPRITES_DOOR_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "answers.h"
#include "base/address.h"
#include "base/address_limits.h"
#include "cold_requests.h"
#include "connections.h"
#include "events.h"
#include "feed_handler.h"
#include "listener.h"
#include "live_counts.h"
#include "log_events.h"
#include "replies.h"
#include "request_handler.h"
#include "request_reader.h"
#include "turn_share.h"

namespace server {

/** The source of a client's address. */
enum class Trust : uint8_t {
  kNobody,        // the connection itself
  kProxy,         // the PROXY protocol, at the start of every connection
  kForwarded,     // the header Forwarded of every request (RFC 7239)
  kForwardedFor,  // the header X-Forwarded-For of every request
};

struct DoorOptions {
  uint32_t connections;  // most at a time; further ones are answered 503
  uint32_t maxSprite;    // most bytes of a sprite; JavaScript refuses longer ones
  uint32_t headBytes;    // most bytes of a head
  // Milliseconds for a head, from its first byte or the accept. A connection without a byte is
  // closed without an answer: browsers connect ahead, and would take a 408 for the answer of a
  // request.
  uint32_t headTime;
  uint32_t bodyTime;   // milliseconds for a body, from the end of the head
  uint32_t idleTime;   // milliseconds between requests
  uint32_t writeTime;  // milliseconds in which a slow client must read some bytes
  uint32_t keepIdle;   // seconds of silence until a client is probed: longer than any hold
  Trust trust;
  bool privateJoin = false;  // JavaScript handles joins, since they need a grant
};

struct DoorCounts {
  uint64_t accepted, requests;
  uint64_t handled;              // requests that JavaScript has decided
  uint64_t slowReaders;          // connections closed because the client did not read
  uint64_t outOfFiles;           // times that accept found no free file descriptor
  uint64_t heldBytes;            // input and output held for connections now
  uint32_t open;                 // connections now
  uint32_t arriving;             // requests for JavaScript now: incomplete, or in the queue
  uint32_t secure;               // TLS connections now
  uint64_t handshakes;           // completed handshakes
  uint64_t resumed;              // handshakes with a ticket
  uint64_t failedHandshakes;     // TLS connections that closed before their handshake was done
  uint64_t refusals[kOutcomes];  // by outcome; 0 for successes

  uint64_t refused(Outcome outcome) const { return refusals[static_cast<size_t>(outcome)]; }
};

/** Parts of a front door; all of them outlive it. */
struct DoorParts {
  EventSet* events;
  AddressLimits* limits;
  std::atomic<uint32_t>* open;  // number of connections of all doors
  RequestHandler* requests;
  Feeds* feeds;
  LiveCounts::MakeText counts;
  bool countsComeLater = false;         // `requests` has the live counts, and answers later
  uint64_t (*clock)() = EventSet::now;  // microseconds, for the shares of a turn
};

/** A request for JavaScript. The views live for the call only. */
struct ScriptRequest {
  Ticket ticket;
  const RequestHead& head;
  std::string_view text;  // the bytes of the head
  Body body;
  const Address& client;
  bool secure;     // came by TLS
  bool transient;  // its port serves only joins, throws and leaves
};

/** Most bytes of a body. */
struct BodyBounds {
  std::vector<std::pair<std::string, uint32_t>> most = {};  // by the first segment of its path
  uint32_t other = 16384;                                   // for any other path
};

/** Asks JavaScript to handle the requests that are not hot. */
struct ScriptHandler {
  /** Handles a request. `respond`, `watch`, `abandon` or `proceed` follows, now or later. */
  std::function<void(const ScriptRequest&)> handle;
  /** Whether JavaScript may be asked now. If not, the request waits for a later turn. */
  std::function<bool()> mayHandle = {};
  /** Called when the connection of a parked request is gone. */
  std::function<void(Ticket)> onParkedClosed;
  BodyBounds bodies = {};
};

/** The kind of a port. */
struct PortKind {
  TlsContext* tls = nullptr;  // outlives the door; nullptr: without TLS
  bool transient = false;     // serves only joins, throws and leaves
};

class Door : public PollResponder {
 public:
  /**
   * Connections above the limit that are answered 503 at the same time, each for at most a second.
   */
  static constexpr uint32_t kBeyondLimit = 32;

  /** `now` in milliseconds. Throws std::bad_alloc. */
  Door(const DoorOptions& options, const DoorParts& parts, Replies replies,
       ScriptHandler scriptHandler, uint64_t now);
  ~Door() override;
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /** Accepts from a listening socket, which the door owns from now on. */
  void adopt(int fd, PortKind kind);

  /** Does the pending work, a bounded share of it. To be called when events are due. */
  void turn();

  /** See TurnShare::addDeferred. */
  void countDeferred(uint64_t microseconds) { scriptShare_.addDeferred(microseconds); }

  /** Sends the answers decided since the last call. */
  void sendAnswers();

  /**
   * Closes the connections of the decided answers: the journal could not be written, so it is
   * unknown whether the decisions hold. Clients repeat their requests, throws with their numbers.
   */
  void dropAnswers();

  /**
   * Ends the deadlines that are over at `now`, in milliseconds. To be called every
   * kTickMilliseconds.
   */
  void tick(uint64_t now);

  /** Whether the next `ticks` have nothing to do, unless an event comes. */
  bool isQuiet(uint32_t ticks) const;

  /** Stops accepting connections. */
  void stopListening();

  /**
   * Sets the tag of this server's ids, and those of the other servers of the world, ascending.
   * Requests of other servers' clients go to JavaScript, which redirects them.
   */
  void setOtherServers(ServerTag own, std::vector<ServerTag> tags) {
    ownTag_ = own;
    otherServers_ = std::move(tags);
  }

  /**
   * Closes idle connections: those without a complete head, and those in a handshake. Returns how
   * many are left.
   */
  uint32_t closeIdle();

  /** Closes every connection. */
  void closeAll();

  /** Sends the answer of a poll, from the pool. */
  void answer(uint32_t token, std::string_view body) override;

  // ---- Late answers of the request handler, by tickets.

  /**
   * Answers a request with its outcome; `id`: of a join that was kOk. Without an outcome it is
   * unknown whether the decision holds: the connection is closed without an answer.
   */
  void complete(Ticket ticket, std::optional<Outcome> outcome, const Id* id);

  /** Answers a poll, or a question, with a JSON text that lives for the call only. */
  void answer(Ticket ticket, std::string_view body);

  /**
   * Closes the connection of a poll without an answer: the late result of
   * RequestHandler::mayDropEndedPoll.
   */
  void closeParkedPoll(Ticket ticket);

  // ---- Answers of JavaScript. Nothing happens if the connection is gone.

  /**
   * Sends an answer: a status line with its CRLF, the other fields with the empty line, and the
   * body.
   */
  void respond(Ticket ticket, std::string_view statusLine, std::string_view fields,
               std::string_view body);

  /**
   * Has the request watch these feeds. The answer comes now, with the first news, or when the hold
   * is over; or it is the problem of the feeds.
   */
  void watch(Ticket ticket, const FeedRequest* wanted, uint32_t count, WatchOptions how);

  /**
   * Asks the client for the awaited body. JavaScript handles the request again when the body is
   * complete.
   */
  void proceed(Ticket ticket);

  /** Closes the connection without an answer. */
  void abandon(Ticket ticket);

  /**
   * Parks a request whose answer may never come: a client that ends its half counts as gone, and
   * ScriptHandler::onParkedClosed is called. With any other request such a client may still read
   * the answer. Returns false when the client is gone already.
   */
  bool park(Ticket ticket);

  DoorCounts counts() const;

  /** The live counts from JavaScript; valid until the next call. */
  std::string_view liveCounts() { return liveCounts_.text(); }

  /** Refusals and joins, for the log; off unless the log wants them. */
  LogEvents& logEvents() { return logEvents_; }

 private:
  /** A decided answer that waits for the end of the turn. */
  struct DecidedAnswer {
    Ticket ticket;
    Route route;
    Outcome outcome;
    Id id;  // of a join that was kOk
  };

  /** A listening socket. */
  struct Port : Watcher {
    Port(Door* itsDoor, PortKind itsKind) : door(itsDoor), kind(itsKind) {}
    void onEvents(uint32_t) override { door->accept(*this); }

    Door* const door;
    const PortKind kind;
    Listener listener;
    bool isListening = false;
  };

  // Accepting.
  void accept(Port& port);
  void pausePort(Port& port);
  void pauseListening();
  void resumeListening();
  bool mayRefuse() const;
  bool mayCallScript() const;
  bool refuseOnSpare(Port& port);
  void admit(Connection& connection, const sockaddr_storage& address);
  void continueHandshake(Connection& connection, uint32_t events);
  void continueHandshakeNow(Connection& connection);
  void continueQueuedHandshakes();
  void wakeAgain();
  std::string_view lastAnswer(Outcome problem, bool isForHead);
  void refuse(Connection& connection, Outcome problem, std::string_view request = {});
  void refuseConnection(Connection& connection);
  bool countForAddress(Connection& connection, const Address& client);
  bool acceptProxyHeader(Connection& connection, const char** data, size_t* length);

  // Reading.
  void handleEvent(Connection& connection, uint32_t events);
  void readInput(Connection& connection);
  bool awaitsAnswer(const Connection& connection);
  std::string_view unfinishedRequest(const Connection& connection);
  void serveInput(Connection& connection, const char* data, size_t length);
  uint32_t maxHotBody(const HotRequest& request) const;
  bool storeOrRefuse(Connection& connection, const char* data, size_t length, size_t requestLength);
  void awaitRest(Connection& connection, const char* data, size_t length, size_t requestLength);
  void resume(Connection& connection);
  void resumeLater(Connection& connection);
  bool mayReadMore(const Connection& connection);
  void resumeIfBuffered(Connection& connection);
  void resumeQueued();
  bool mayResumeQueued() const;
  void resumeNext(Ticket ticket);
  void addDecidedAnswer(Connection& connection, const DecidedAnswer& answer);
  std::string_view textOf(const DecidedAnswer& answer);

  // Asking JavaScript.
  void readColdHead(Connection& connection, std::string_view data);
  void beginColdRequest(Connection& connection, std::string_view data);
  void readColdBody(Connection& connection, std::string_view data);
  ColdRequest removeColdRequest(Connection& connection);
  void handleOrQueue(Connection& connection, std::string_view head, Body body,
                     std::string_view sentAhead);
  void handleQueued();
  void callScript(Connection& connection, std::string_view head, Body body);
  Connection* findAwaitingScript(Ticket ticket);
  void endScriptRequest(Connection& connection);
  uint32_t maxColdBody(const RequestHead& head) const;

  // Serving.
  Address clientOf(const Connection& connection, const HotRequest& request, const char* head) const;
  Address clientOf(const Connection& connection, std::string_view forwarded,
                   std::string_view forwardedFor) const;
  bool serve(Connection& connection, const HotRequest& request, const char* head);
  bool isOfOtherServer(const Id& id) const;
  bool servesHere(const Connection& connection, const HotRequest& request, const char* head);
  bool servePoll(Connection& connection, const HotRequest& request);
  bool servePlace(Connection& connection, const HotRequest& request);
  bool serveFixed(Connection& connection, std::string_view path);
  bool serveCounts(Connection& connection);
  bool serveCountsOf(Connection& connection, const Id& id);
  bool serveUnknownClient(Connection& connection, Route route);
  bool hasCounts();
  bool awaitDecision(Connection& connection, Route route);
  Connection* findAwaitingDecision(Ticket ticket);
  void logEvent(const Connection& connection, LogEventKind kind);
  void noteOutcome(const Connection& connection, Route route, Outcome outcome);

  // Closing.
  void handleDeadline(Connection& connection);
  void beforeClose(Connection& connection);

  const DoorOptions options_;
  const DoorParts parts_;
  const ScriptHandler scriptHandler_;
  ReplyWriter replies_;
  std::vector<std::unique_ptr<Port>> ports_;
  Connections connections_;
  Answers answers_;
  FeedHandler feeds_;
  LiveCounts liveCounts_;
  std::unordered_map<uint32_t, ColdRequest> coldRequests_;  // by connection
  FairTickets queuedRequests_;  // connections whose request waits for JavaScript
  RequestHead coldHead_;        // of the last request that was not hot
  TurnShare scriptShare_ = TurnShare::forScript();
  uint64_t hotServed_ = 0;        // hot requests served, without pages
  FairTickets queuedToResume_;    // connections with more input for a later turn
  FairTickets queuedHandshakes_;  // connections whose handshake goes on in a later turn
  TurnShare handshakeShare_ = TurnShare::forHandshakes();
  TurnShare aheadShare_ = TurnShare::forSentAhead();
  const size_t readBytes_;
  std::unique_ptr<char[]> readBuffer_;  // buffer of a read
  std::vector<DecidedAnswer> decidedAnswers_;
  std::string joinedAnswers_;  // several answers of one connection; keeps its capacity
  DoorCounts counts_ = {};
  LogEvents logEvents_;
  uint32_t refusedThisTick_ = 0;
  ServerTag ownTag_ = kNoServerTag;      // tag of this server's ids
  std::vector<ServerTag> otherServers_;  // empty: there is no world
};

}  // namespace server

#endif  // SPRITES_DOOR_H_
