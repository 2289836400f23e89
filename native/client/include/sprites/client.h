// A client of a Sprites server: a place in the torus, with four neighbors to throw sprites to.
//
//   #include <sprites/client.h>
//
//   sprites::Options options;
//   options.server = "http://127.0.0.1:8080";
//   options.onSprite = [](sprites::Edge edge, const std::string& json) { /* it enters by edge */ };
//   sprites::Client client(options);
//   client.start();                                          // a thread of its own, or:
//   // while (client.perform(std::chrono::milliseconds(16))) { ...the caller's own loop... }
//   client.throwSprite(sprites::Edge::kLeft, json, [](const sprites::ThrowResult& result) {
//     if (result.yours()) { /* it did not leave: let it bounce */ }
//   });
//   client.close(std::chrono::seconds(5));
//
// The client by itself: joins; keeps one long poll parked; acknowledges the sprites that onSprite
// has received; numbers its throws, and repeats a throw without an answer under the same number, so
// that the server accepts it once; waits as long as the server asks (Retry-After, "retry"), and
// otherwise backs off with jitter; keeps its place through broken connections and server restarts,
// and joins again when the server no longer knows the place.
//
//   kLeft ──start()──▶ kJoining ──▶ kOnline ⇄ kOffline     no contact: retries by itself
//     ▲                   ▲  ▲─────────┴─────────┘            the place is forgotten: joins again
//     └── leave()         └──── kSuperseded                   another program has the place
//
// All clients behave as lib/client/README.md says; test/vectors/client.json tests it.
//
// Threads. Every member may be called from any thread, and from inside callbacks, except where its
// comment says otherwise. Callbacks run one at a time, with no lock held: on the client's own
// thread after start(), else inside perform(). A slow callback delays the next poll; a callback
// that takes longer than the server's lease (30 s) costs the place.
//
// Errors and exceptions. The network never throws: it changes the state (onState) and the results
// of throws. Constructing throws std::invalid_argument and std::runtime_error as noted. A call that
// runs out of memory throws std::bad_alloc: throwSprite() then has done nothing, perform() leaves a
// client that may only be destroyed, and the client's own thread ends the program. Callbacks must
// not throw: an exception that leaves a callback ends the program (std::terminate), as an exception
// that leaves a thread does.
//
// Bounds. Pending throws, answers and all waits have bounds (Options). While the caller does not
// call perform(), the client stores no sprites: the server keeps them until the lease ends.
//
// The id from the server is a capability: a program that has it can act as this client. The client
// never logs it.
#ifndef SPRITES_CLIENT_H_
#define SPRITES_CLIENT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sprites/connection.h"
#include "sprites/version.h"

namespace sprites {

/** An edge of this desktop. A sprite thrown off kLeft enters the neighbor's desktop by kRight. */
enum class Edge : uint8_t { kLeft, kRight, kUp, kDown };

/** Returns the edge's name on the wire: "left", "right", "up" or "down". */
const char* toString(Edge edge);

/** Returns the edge by which a sprite thrown off `edge` enters. */
Edge opposite(Edge edge);

/** The state of a client towards the server. */
enum class State : uint8_t {
  kLeft,        ///< not started, or leave() is done: nothing more happens
  kJoining,     ///< asks for a place, or whether the place to resume is still there
  kOnline,      ///< has a place, confirmed by the server
  kOffline,     ///< no contact, or the server refuses service; retries by itself
  kSuperseded,  ///< another program polls with the same id; joins again by itself
};

/** Returns the state's name: "left", "joining", "online", "offline" or "superseded". */
const char* toString(State state);

/** The argument of onState. */
struct StateChange {
  State state = State::kLeft;
  bool newPlace = false;  ///< kOnline after a join: the neighbors are others than before
  /**
   * The problem's name ("draining", "unknown-client"), or "network", "slow", "garbage",
   * "superseded" or "no-grant"; empty in a state that needs no reason.
   */
  std::string why;
  std::string reason;                  ///< `why` as one line for people
  std::chrono::milliseconds retry{0};  ///< kOffline: time until the next try
};

/** The outcome of a throw. */
enum class Outcome : uint8_t {
  kDelivered,   ///< written to the neighbor's parked poll
  kQueued,      ///< the server has stored it for the neighbor's next poll
  kDuplicate,   ///< the server has it already, from an earlier attempt
  kBusy,        ///< refused for now: see retry. The sprite stays the caller's
  kRefused,     ///< the server never accepts it (see problem). It stays the caller's
  kOffline,     ///< no contact, no place, or leaving: see retry. The sprite stays the caller's
  kUnanswered,  ///< sent, no answer: unknown (see Client::throwSprite)
  kForgotten,   ///< sent, no answer, and the server lost its place or number: unknown
};

/** Returns the outcome's name: "delivered", "queued", "duplicate", "busy" and so on. */
const char* toString(Outcome outcome);

/** The result of one throw. */
struct ThrowResult {
  Outcome outcome = Outcome::kUnanswered;
  std::chrono::milliseconds retry{0};  ///< kBusy, kOffline: time until a retry; 0: not known
  std::string problem;  ///< the server's problem type, such as "urn:sprites:neighbor-busy", or ""
  std::string detail;   ///< one line for people: the cause and what to do; may be ""

  /** Returns whether the server has the sprite and is responsible for it. */
  bool taken() const {
    return outcome == Outcome::kDelivered || outcome == Outcome::kQueued ||
           outcome == Outcome::kDuplicate;
  }

  /** Returns whether the sprite certainly did not leave and is still the caller's. */
  bool yours() const {
    return outcome == Outcome::kBusy || outcome == Outcome::kRefused ||
           outcome == Outcome::kOffline;
  }
};

/** Called once for each throw that throwSprite() accepted, unless the client is destroyed first. */
using ThrowCallback = std::function<void(const ThrowResult&)>;

/** Where a client is in the torus; row and column count from 0. */
struct Place {
  uint32_t row = 0;
  uint32_t column = 0;
  uint32_t rows = 0;
  uint32_t columns = 0;
};

/** Called with std::nullopt if there was no readable answer. */
using PlaceCallback = std::function<void(const std::optional<Place>&)>;

/** The server's live counts. */
struct Status {
  uint64_t clients = 0;  ///< in the torus; in a world of several servers: of all of them
  uint64_t thrown = 0;   ///< sprites accepted: acked + waiting + lost
  uint64_t acked = 0;
  uint64_t waiting = 0;
  uint64_t lost = 0;
  std::string json;  ///< the server's whole answer
};

/** Called with std::nullopt if there was no readable answer. */
using StatusCallback = std::function<void(const std::optional<Status>&)>;

/**
 * The data for returning to a place, also from another process. As secret as the id. On disk it is
 * the JSON of writeResume(), which every client reads.
 */
struct Resume {
  std::string id;
  uint64_t ack = 0;        ///< the last sequence number passed to onSprite
  uint64_t n = 0;          ///< the last number given to a throw
  unsigned hold = 0;       ///< seconds; 0: not known
  unsigned lease = 0;      ///< seconds; 0: not known
  size_t maxSprite = 0;    ///< bytes; 0: not known
  unsigned transient = 0;  ///< a port for throws; 0: none. This client does not use it
};

/** Writes a Resume as plain JSON. */
std::string writeResume(const Resume& resume);

/** Reads a Resume; std::nullopt for any other text, since a file may contain anything. */
std::optional<Resume> readResume(std::string_view json);

/** Called when the data for returning has changed; with std::nullopt when the place is gone. */
using ResumeCallback = std::function<void(const std::optional<Resume>&)>;

/**
 * Receives a sprite. A callable that returns bool returns false when it has no room: the sprite and
 * later ones then come again. A callable that returns nothing always has room.
 */
class SpriteCallback {
 public:
  SpriteCallback() = default;
  SpriteCallback(std::nullptr_t) {}  // NOLINT: an option that is not set
  template <typename Call,
            typename = std::enable_if_t<std::is_invocable_v<Call&, Edge, const std::string&> &&
                                        !std::is_same_v<std::decay_t<Call>, SpriteCallback>>>
  SpriteCallback(Call call) {  // NOLINT: from a lambda, as std::function is
    if constexpr (std::is_convertible_v<std::invoke_result_t<Call&, Edge, const std::string&>,
                                        bool>) {
      call_ = std::move(call);
    } else if (std::function<void(Edge, const std::string&)> plain = std::move(call)) {
      call_ = [plain = std::move(plain)](Edge edge, const std::string& json) {
        plain(edge, json);
        return true;
      };
    }
  }
  explicit operator bool() const { return static_cast<bool>(call_); }
  bool operator()(Edge edge, const std::string& json) const { return call_(edge, json); }

 private:
  std::function<bool(Edge, const std::string&)> call_;
};

/** Options of a client. The client copies them: later changes have no effect. */
struct Options : ConnectionOptions {
  /**
   * Called when a sprite has entered by `edge`: once for each sprite, in the server's order. `json`
   * is the sprite as its thrower, a stranger, wrote it: one JSON object in UTF-8; readSprite() of
   * sprites/sprite.h checks it. The reference is valid during the call. The sprite is acknowledged
   * only after the callback has returned. The callback may return false: see SpriteCallback.
   */
  SpriteCallback onSprite;

  /** Called when the state or its reason has changed. */
  std::function<void(const StateChange& change)> onState;

  /** Called when the data for returning has changed: before a throw, and after sprites came. */
  ResumeCallback onResume;

  /** The last argument of onResume: the client returns to that place if the server has it. */
  std::optional<Resume> resume;

  /** Longest hold of a poll, in seconds: 5 up to the server's limit (more counts as the limit);
   * 0: the server's limit. */
  unsigned hold = 0;

  /** Most unsettled throws: with so many, throwSprite() returns false. 1 to 1024. */
  size_t maxPendingThrows = 64;

  /** Most throws sent at once. With more than one they may arrive in another order. 1 to 32. */
  size_t maxParallelThrows = 4;

  /** Longest answer, in bytes. A longer one is dropped and counts as no answer. */
  size_t maxAnswerBytes = size_t{8} << 20;

  /** Time limit of a request other than a poll (a poll's is 1.25 times its hold and 15 s); a throw
   * has 1 s more for each 16 kB. */
  std::chrono::milliseconds answerTimeout{10000};

  /** Longest time that a throw waits for an answer or for contact before it is settled. */
  std::chrono::milliseconds throwPatience{60000};

  /** Most failed attempts of a throw with contact, or on lost places. At least 1. */
  unsigned throwAttempts = 5;
};

/** A client's counts since its construction. */
struct Counts {
  uint64_t received = 0;  ///< sprites passed to onSprite
  uint64_t repeats = 0;   ///< sprites that came again, and were not passed on again
  uint64_t thrown = 0;    ///< throws that the server accepted
  uint64_t unknown = 0;   ///< throws settled kUnanswered or kForgotten
  uint64_t resent = 0;    ///< attempts of throws after the first
  uint64_t joins = 0;     ///< places that the server gave
  uint64_t polls = 0;     ///< polls answered
  uint64_t failures = 0;  ///< times contact was lost or refused
};

/** One client with one place in the torus. Neither copied nor moved. */
class Client {
 public:
  /**
   * Makes a client; it does nothing before start() or perform().
   *
   * @param grant  returns the grant to join with, for a server with --private-join
   * @throws std::invalid_argument for options out of their bounds or a server that is no http URL
   * @throws std::runtime_error when libcurl can't be set up
   *
   * The first client calls curl_global_init(). With a libcurl before 7.84 a program that also uses
   * curl elsewhere must call curl_global_init() itself before its threads start.
   */
  explicit Client(Options options, GrantCallback grant = nullptr);

  /**
   * Stops at once: joins the client's own thread and drops all requests. No callback runs any more,
   * also not for missing results. The server is not notified: the place ends with its lease;
   * close() leaves properly. Must not be called from inside a callback.
   */
  ~Client();

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /**
   * Starts the client's own thread. May be called once, and not together with perform().
   *
   * @throws std::logic_error when started already
   * @throws std::system_error when the thread can't be created
   */
  void start();

  /**
   * Drives a client that was not started: does the due work, waits at most `timeout` for events (0:
   * not at all), and calls the callbacks. Call it in a loop, from one thread at a time; a program
   * with frames calls it each frame with 0. It may return early.
   *
   * @return false once the client has left: there is nothing left to drive
   * @throws std::logic_error on a started client, or from inside a callback
   */
  bool perform(std::chrono::milliseconds timeout);

  /** Makes the current or the next waiting perform() return at once. */
  void wake();

  /**
   * Retries now: for a program that learns that the network came back or the machine woke up. Ends
   * a wait that the client chose itself (not a wait that the server asked for), and asks the server
   * again, since a parked poll may hang on a dead connection.
   */
  void tryNow();

  /**
   * Returns a descriptor for the program's own event loop: it is readable when perform() with 0 has
   * work to do. The client owns the descriptor. Wait on it for reading, level-triggered, and no
   * longer than timeout(). Linux only: elsewhere -1, and the program calls perform() regularly.
   *
   * @throws std::runtime_error when the system has no descriptor left
   * @throws std::logic_error when called after start(), or first called after perform()
   */
  int fd();

  /** Returns how long the loop may wait for fd() before it calls perform() with 0. */
  std::chrono::milliseconds timeout();

  /** Returns the data for returning to this place; std::nullopt without a place. */
  std::optional<Resume> resume() const;

  /**
   * Throws a sprite off an edge.
   *
   * @param json    the sprite: one JSON object in UTF-8, no longer than the server's limit (16384
   *                bytes by default); writeSprite() makes one
   * @param result  called with the result, on the thread of the callbacks; may be empty
   * @return true: accepted, `result` will be called. False: too many throws are pending, or the
   *         client has left or is leaving; the sprite is still the caller's, and `result` is
   *         dropped uncalled.
   *
   * A throw that was sent and got no answer is sent again under its number, so the server accepts
   * it once. Without an answer within throwPatience and throwAttempts, or when the server has
   * forgotten this client meanwhile, the outcome is kUnanswered or kForgotten: keeping the sprite
   * may double it, dropping it may lose it. A program that shows sprites should keep it.
   *
   * While the client is offline, a throw is settled kOffline at once, with the time until the next
   * try. A throw is kOffline, too, when the server has forgotten its place throwAttempts times. A
   * throw over an edge whose neighbor was busy a moment ago is kBusy at once.
   */
  bool throwSprite(Edge edge, std::string json, ThrowCallback result);

  /**
   * Begins to leave. Throws not yet sent are kOffline, sent ones get their answer (for at most 5 s
   * in all), the last sprites are acknowledged, and the server is notified. Then onState reports
   * kLeft. After the call onSprite gets no sprites: those that still come fly on to the next
   * neighbor. A second call does nothing.
   */
  void leave();

  /**
   * Calls leave() and waits for the end: drives the client if it has no thread of its own.
   *
   * @return whether the client has left within `patience`; always false from inside a callback (the
   *         client goes on leaving then)
   */
  bool close(std::chrono::milliseconds patience);

  /**
   * Asks the server where this client is in the torus.
   *
   * @param result  called once with the answer, on the thread of the callbacks, unless the client
   *                is destroyed or has left before; at once with std::nullopt without a place
   * @return false, and `result` dropped uncalled, when 16 questions are pending or the client is
   *         leaving
   */
  bool place(PlaceCallback result);

  /** Asks for the server's live counts, like place(). */
  bool status(StatusCallback result);

  /** Returns the current state. */
  State state() const;

  /** Returns the current counts. */
  Counts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/** Returns the version of the linked library, such as "0.1.0"; see SPRITES_VERSION. */
const char* version();

}  // namespace sprites

#endif  // SPRITES_CLIENT_H_
