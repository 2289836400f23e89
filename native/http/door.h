// The front door: reads the hot requests of every connection, has them decided, and answers.
//
//   events ─▶ connections ─▶ reading ──hot request──▶ handler ──outcome──▶ answers ─▶ reading
//                              │  ▲                      └─poll─▶ parked ──answer──▲
//                              │  └─ input: only while a request is in pieces      │
//                              └──any other──▶ one call of JavaScript: handle ─────┘
//
// Its parts, each in a file of its own:
//   events.h           what epoll says, in turns
//   listener.h         new connections, even when no file is left for them
//   connections.h      the table of those that are open: state, input, deadline
//   http_reader.h      the grammar of a hot request
//   door_serving.cc    what is done with one, and when its answer goes out
//   request_reader.h   the grammar of every other
//   door_asking.cc     how JavaScript is asked, and answers
//   cold_requests.h    what has come of those requests, and whose turn it is
//   turn_share.h       how much of the time they have, and handshakes
//   request_handler.h  what decides: the pool, or the main thread that a worker asks
//   replies.h          what is answered, in words
//   live_counts.h      what /status says
//   answers.h          how it is sent
//   feed_handler.h        the watchers of feeds
//
// A turn has three steps. Decide: events are taken; a readable connection is read once, and every
// whole request in what it has sent is decided; connections that were answered outside their own
// event go on with what they had sent ahead. Write: what was decided goes into the journal, where
// there is one (the caller of `turn` does that). Send: `sendAnswers`; several answers of one
// connection go out together.
//
// One request at a time: what a client pipelines behind a parked poll or an unread answer waits in
// its input, bounded, and then in the kernel. So an answer never waits behind another.
//
// Cost of a parked poll: a connection's and a client's record, nothing else. A throw is one read,
// one write to the neighbor, one to the thrower: no allocation but the sprite's. Rejected: Node's
// own sockets for the hot requests (some 10,000 bytes of JavaScript objects a parked poll).
#ifndef SPRITES_DOOR_H_
#define SPRITES_DOOR_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

/** Whose word is taken for a client's address. */
enum class Trust : uint8_t {
  kNobody,        // it is the connection's own
  kProxy,         // a proxy says it by the PROXY protocol, at the start of every connection
  kForwarded,     // a proxy says it in every request, by Forwarded (RFC 7239)
  kForwardedFor,  // the same by X-Forwarded-For
};

struct DoorOptions {
  uint32_t connections;  // at most; one more is answered 503
  uint32_t maxSprite;    // bytes; a throw with more is JavaScript's to refuse
  uint32_t headBytes;    // of a head, at most
  // Milliseconds a head may take, from its first byte or the accept; one that has not sent a byte
  // is closed without a word: browsers connect ahead, and would take a 408 for an answer.
  uint32_t headTime;
  uint32_t bodyTime;   // milliseconds a body may take, from the end of the head
  uint32_t idleTime;   // milliseconds between requests
  uint32_t writeTime;  // milliseconds in which a client that does not read must read something
  uint32_t keepIdle;   // seconds of silence after which a client is probed: longer than any hold
  Trust trust;
  bool privateJoin = false;  // a join is JavaScript's, which asks for a grant
};

struct DoorCounts {
  uint64_t accepted, refused, requests;
  uint64_t handled;      // requests of them that JavaScript has decided
  uint64_t timedOut;     // heads and bodies that came too slowly
  uint64_t slowReaders;  // closed because they did not read their answer
  uint64_t outOfFiles;   // times accept found no file left
  uint64_t heldBytes;    // input and output held for connections, now
  uint32_t open;         // connections, now
  uint32_t arriving;     // requests for JavaScript that are not whole, or wait for their turn, now
  uint32_t secure;       // of them by TLS
  uint64_t handshakes;   // that were done
  uint64_t resumed;      // of them by a ticket
  uint64_t failedHandshakes;  // connections by TLS that closed before theirs was done
};

/** What a front door works with; all of them outlive it. */
struct DoorParts {
  EventSet* events;
  AddressLimits* limits;
  std::atomic<uint32_t>* open;  // connections of all doors together
  RequestHandler* requests;
  Feeds* feeds;  // nullptr: requests to watch are JavaScript's to refuse
  LiveCounts::Ask counts;
  bool countsLater = false;             // `polls` has the live counts, and answers later
  uint64_t (*clock)() = EventSet::now;  // microseconds, for the shares of a turn
};

/** What JavaScript is asked for. The views live for the call only. */
struct Question {
  Ticket ticket;
  const RequestHead& head;
  std::string_view text;  // of the head
  Body body;
  const Address& client;
  bool secure;     // it has come by TLS
  bool transient;  // its port is for joins, throws and leaves alone
};

/** The bytes that a body may have. */
struct BodyBounds {
  std::vector<std::pair<std::string, uint32_t>> most = {};  // by the first segment of its path
  uint32_t other = 16384;                                   // of any other path
};

/** What decides the requests that are not hot. */
struct Asker {
  /** Handles a request: `respond`, `watch`, `abandon` or `proceed` is to follow, now or later. */
  std::function<void(const Question&)> ask;
  /** Whether it may be asked now; a request that has to wait is asked for in a later turn. */
  std::function<bool()> mayAsk = {};
  /** The connection of a parked request is gone. */
  std::function<void(Ticket)> gone;
  BodyBounds bodies = {};
};

/** What the connections of a port are. */
struct PortKind {
  TlsContext* tls = nullptr;  // outlives the door; nullptr: without TLS
  bool transient = false;     // for joins, throws and leaves alone
};

class Door : public PollResponder {
 public:
  /** Connections above the limit that are told so at the same time, each for a second at most. */
  static constexpr uint32_t kBeyond = 32;

  /** `now` in milliseconds. Throws std::bad_alloc. */
  Door(const DoorOptions& options, const DoorParts& parts, Replies replies, Asker asker,
       uint64_t now);
  ~Door() override;
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /** Accepts from a socket that listens already, which is the front door's from now on. */
  void adopt(int fd, PortKind kind);

  /** Does what there is to do, a bounded share of it; to be called when the events are due. */
  void turn();

  /** See TurnShare::defer. */
  void countDeferred(uint64_t microseconds) { script_.defer(microseconds); }

  /** Sends the answers that were decided since the last call. */
  void sendAnswers();

  /**
   * Closes the connections whose answers can't be given, since what was decided could not be
   * written: it is unknown whether it holds. Clients repeat their requests, throws with their
   * numbers.
   */
  void dropAnswers();

  /** Ends what is due at `now`, milliseconds. To be called every kTickMilliseconds. */
  void tick(uint64_t now);

  /** Whether the next `ticks` have nothing to do, if nothing else comes. */
  bool isQuiet(uint32_t ticks) const;

  /** Accepts no more connections. */
  void stopListening();

  /**
   * The other servers of the world, by the tags of their ids, ascending, and this one's: what the
   * others' clients ask here is JavaScript's to answer, which says where to go.
   */
  void setOtherServers(ServerTag own, std::vector<ServerTag> tags) {
    ownTag_ = own;
    otherServers_ = std::move(tags);
  }

  /** Closes the connections that nothing is owed to, as where a head is not whole; returns how many
   * are left. */
  uint32_t closeIdle();

  /** Closes every connection. */
  void closeAll();

  /** A poll's answer, from the pool. */
  void answer(uint32_t token, std::string_view body) override;

  // ---- What is said later of requests that a handler left open, by their tickets.

  /**
   * The outcome of a request; `id` of a join that was kOk. Without an outcome it is unknown whether
   * what was decided holds: it may not be answered, and the connection is closed.
   */
  void complete(Ticket ticket, std::optional<Outcome> outcome, const Id* id);

  /** The JSON text that answers a poll, or a question; lives for the call only. */
  void answer(Ticket ticket, std::string_view body);

  /** Nothing comes for a poll any more, as RequestHandler::ended asked. */
  void over(Ticket ticket);

  // ---- What JavaScript says of a request that it was asked to handle. Where its connection is
  // gone meanwhile, nothing happens.

  /** The answer: a status line with its CRLF, the other fields with the empty line, and the body.
   */
  void respond(Ticket ticket, std::string_view statusLine, std::string_view fields,
               std::string_view body);

  /**
   * The answer is what these feeds have: now, when there is news, or when the hold is over; or the
   * problem that there is with them.
   */
  void watch(Ticket ticket, const Wanted* wanted, uint32_t count, WatchHow how);

  /** The body that is awaited is wanted: the request is handled again when it has come. */
  void proceed(Ticket ticket);

  /** Nothing may be answered: the connection closes. */
  void abandon(Ticket ticket);

  /**
   * The answer waits for what may never come: a client that has ended its half is then taken for
   * gone, and Asker::gone tells of it. Any other answer it may still read. False: it is gone
   * already.
   */
  bool park(Ticket ticket);

  DoorCounts counts() const;

  /** The live counts as JavaScript says them; valid until the next call. */
  std::string_view liveCounts() { return liveCounts_.text(); }

  /** What it has to say of those it refused; off unless it is wanted. */
  LogEvents& logEvents() { return logEvents_; }

 private:
  /** An answer that waits for the end of the turn. */
  struct Decided {
    Ticket ticket;
    Route route;
    Outcome outcome;
    Id id;  // of a join that was kOk
  };

  /** A socket that listens. */
  struct Port : Watcher {
    Port(Door* itsDoor, PortKind itsKind) : door(itsDoor), kind(itsKind) {}
    void onEvents(uint32_t) override { door->accept(*this); }

    Door* const door;
    const PortKind kind;
    Listener listener;
    bool listening = false;
  };

  // Accepting.
  void accept(Port& port);
  void pause(Port& port);
  void pauseListening();
  void resumeListening();
  bool mayRefuse() const;
  bool mayAsk() const;
  bool refuseOnSpare(Port& port);
  void admit(Connection& connection, const sockaddr_storage& address);
  void shake(Connection& connection, uint32_t events);
  void shakeNow(Connection& connection);
  void shakeWaiting();
  void wakeAgain();
  void refuse(Connection& connection);
  bool count(Connection& connection, const Address& client);
  bool greet(Connection& connection, const char** data, size_t* length);

  // Reading.
  void event(Connection& connection, uint32_t events);
  void read(Connection& connection);
  bool awaitsAnswer(const Connection& connection);
  void process(Connection& connection, const char* data, size_t length);
  uint32_t mostBody(const HotRequest& request) const;
  bool keep(Connection& connection, const char* data, size_t length, size_t needed);
  void awaitRest(Connection& connection, const char* data, size_t length, size_t needed);
  void resume(Connection& connection);
  void resumeLater(Connection& connection);
  bool mayReadMore(const Connection& connection);
  void resumeMore(Connection& connection);
  void resumeUnserved();
  bool goesOn() const;
  void resumeNext(Ticket ticket);
  void decide(Connection& connection, const Decided& answer);
  std::string_view wordsOf(const Decided& answer);

  // Asking JavaScript.
  void cold(Connection& connection, std::string_view data);
  void begin(Connection& connection, std::string_view data);
  void arrive(Connection& connection, std::string_view data);
  Arrival endArrival(Connection& connection);
  void settle(Connection& connection, std::string_view head, Body body, std::string_view behind);
  void handleWaiting();
  void ask(Connection& connection, std::string_view head, Body body);
  Connection* asked(Ticket ticket);
  void endAsking(Connection& connection);
  uint32_t mostBodyOf(const RequestHead& head) const;
  void broken(Connection& connection, LogEventKind why);
  void refuseHeld(Connection& connection);

  // Serving.
  Address clientOf(const Connection& connection, const HotRequest& request, const char* head) const;
  Address clientOf(const Connection& connection, std::string_view forwarded,
                   std::string_view forwardedFor) const;
  bool serve(Connection& connection, const HotRequest& request, const char* head);
  bool isOfOther(const Id& id) const;
  bool servesHere(const Connection& connection, const HotRequest& request, const char* head);
  bool servePoll(Connection& connection, const HotRequest& request);
  bool servePlace(Connection& connection, const HotRequest& request);
  bool serveFixed(Connection& connection, std::string_view path);
  bool serveCounts(Connection& connection);
  bool serveCountsOf(Connection& connection, const Id& id);
  bool serveUnknown(Connection& connection, Route route);
  bool hasCounts();
  bool await(Connection& connection, Route route);
  Connection* awaiting(Ticket ticket);
  void note(const Connection& connection, LogEventKind kind);
  void noteOutcome(const Connection& connection, Route route, Outcome outcome);

  // Closing.
  void expire(Connection& connection);
  void beforeClose(Connection& connection);

  const DoorOptions options_;
  const DoorParts parts_;
  const Asker asker_;
  ReplyWriter replies_;
  std::vector<std::unique_ptr<Port>> ports_;
  Connections connections_;
  Answers answers_;
  FeedHandler feeds_;
  LiveCounts liveCounts_;
  ColdRequests cold_;
  RequestHead head_;  // of the request that is not hot and was read last
  TurnShare script_ = TurnShare::ofScript();
  uint64_t hot_ = 0;      // requests that the door has served by itself, but pages
  FairTickets unserved_;  // of connections with more to serve in a later turn
  FairTickets shaking_;   // of connections whose handshake goes on in a later turn
  TurnShare handshakes_ = TurnShare::ofHandshakes();
  TurnShare ahead_ = TurnShare::ofSentAhead();
  const size_t readBytes_;
  std::unique_ptr<char[]> buffer_;  // of one read
  std::vector<Decided> decided_;
  std::string answersOfOne_;  // of one connection, being put together; its capacity stays
  DoorCounts counts_ = {};
  LogEvents logEvents_;
  uint32_t refusedThisTick_ = 0;
  ServerTag ownTag_ = kNoServerTag;      // of the ids that this server makes
  std::vector<ServerTag> otherServers_;  // empty: there is no world
};

}  // namespace server

#endif  // SPRITES_DOOR_H_
