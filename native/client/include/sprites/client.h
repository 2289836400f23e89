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
// What it does by itself: joins; keeps one long poll parked; acknowledges what it has handed over;
// numbers its throws, and repeats one that got no answer under the same number, so that the server
// takes it once; waits as long as the server asks (Retry-After, "retry"), and otherwise backs off
// with jitter; keeps its place through broken connections and server restarts, and joins anew when
// the server no longer knows it.
//
//            joined                     contact lost, or told to wait
//   kConnecting ────▶ kOnline ─────────────────────▶ kOffline
//        ▲                                              │  wait, with jitter
//        └──────────────────────────────────────────────┘         leave(): ▶ kLeft, for good
//
// Two programs with one id (a copied process, say): the later poll wins the place, the other one
// goes back to kConnecting and joins anew. So none of the two gets what the other one got.
//
// Threads. Every member may be called from any thread, and from inside callbacks, except where it
// says otherwise. Callbacks run one at a time, with no lock held: on the client's own thread after
// start(), else inside perform(). A callback that takes long delays the next poll; one that takes
// longer than the server's lease (30 s) costs the place.
//
// Errors and exceptions. The network never throws: it changes the state (onState) and the results
// of throws. Constructing throws std::invalid_argument and std::runtime_error as noted. A call that
// runs out of memory throws std::bad_alloc: throwSprite() then has done nothing, perform() leaves a
// client that may only be destroyed, and the own thread ends the program. Callbacks must not throw:
// an exception that leaves one ends the program (std::terminate), as one leaving a thread does.
//
// Bounds. Throws under way, answers and all waits have bounds (Options). Nothing is kept for a
// caller that does not call perform(): the server keeps it, until the lease ends.
//
// The id the server gives is a capability: who has it can act as this client. It is never logged.
#ifndef SPRITES_CLIENT_H_
#define SPRITES_CLIENT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace sprites {

/** An edge of this desktop. A sprite thrown off kLeft enters the neighbor's desktop by kRight. */
enum class Edge : uint8_t { kLeft, kRight, kUp, kDown };

/** The edge's name on the wire: "left", "right", "up" or "down". */
const char* toString(Edge edge);

/** The edge by which a sprite thrown off `edge` enters. */
Edge opposite(Edge edge);

/** How it stands between this client and the server. */
enum class State : uint8_t {
  kConnecting,  ///< asking for a place, or asking for its place back
  kOnline,      ///< has a place, and the server said so
  kOffline,     ///< no contact, or told to wait; tries again by itself
  kLeft,        ///< leave() is done: nothing more happens
};

/** The state's name: "connecting", "online", "offline" or "left". */
const char* toString(State state);

/** What onState tells. */
struct StateChange {
  State state = State::kConnecting;
  bool newPlace = false;               ///< kOnline after a join: other neighbors than before
  std::string reason;                  ///< kOffline, and kConnecting after a loss: one line, why
  std::chrono::milliseconds retry{0};  ///< kOffline: until the next try
};

/** What became of a throw. */
enum class Outcome : uint8_t {
  kDelivered,  ///< written to the neighbor's parked poll
  kQueued,     ///< the server has it and answers for it; the neighbor gets it with its next poll
  kBusy,       ///< the neighbor can't take more now. The sprite stays the caller's
  kRefused,    ///< the server will never take this one (see problem). The sprite stays the caller's
  kLater,      ///< not now: see retry. The sprite stays the caller's
  kUnknown,    ///< it was sent, and nobody can say whether it arrived (see Client::throwSprite)
};

/** The outcome's name: "delivered", "queued", "busy", "refused", "later" or "unknown". */
const char* toString(Outcome outcome);

/** The result of one throw. */
struct ThrowResult {
  Outcome outcome = Outcome::kUnknown;
  bool repeated = false;  ///< kQueued: an earlier try of this throw had reached the server
  std::chrono::milliseconds retry{0};  ///< kBusy, kLater: when to try again; 0: no telling
  std::string problem;  ///< the server's problem type, such as "urn:sprites:neighbor-busy", or ""
  std::string detail;   ///< one line for people: what happened and what to do; may be ""

  /** True when the sprite surely did not leave and is still the caller's: kBusy, kRefused, kLater.
   */
  bool yours() const {
    return outcome == Outcome::kBusy || outcome == Outcome::kRefused || outcome == Outcome::kLater;
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

/** Called with nothing where there was no answer, or none that could be read. */
using PlaceCallback = std::function<void(const std::optional<Place>&)>;

/** The server's live counts. */
struct Status {
  uint64_t clients = 0;  ///< in the torus
  uint64_t thrown = 0;   ///< sprites taken: acked + waiting + lost
  uint64_t acked = 0;
  uint64_t waiting = 0;
  uint64_t lost = 0;
  std::string json;  ///< all that the server said
};

/** Called with nothing where there was no answer, or none that could be read. */
using StatusCallback = std::function<void(const std::optional<Status>&)>;

/** How a client is to behave. Copied by the client; changes after that have no effect. */
struct Options {
  /** The server: http or https, host, port and perhaps a path before the routes. */
  std::string server = "http://127.0.0.1:8080";

  /**
   * A sprite has entered by `edge`. `json` is the sprite as its thrower wrote it: one JSON object
   * in UTF-8 that a stranger made; readSprite() of sprites/sprite.h checks it. The reference is
   * good for the call. Each sprite is handed over once, in the order the server has them; it is
   * acknowledged only after the callback has returned.
   */
  std::function<void(Edge edge, const std::string& json)> onSprite;

  /** The state has changed. Not called for kConnecting at the very start. */
  std::function<void(const StateChange& change)> onState;

  /** Seconds the server may hold a poll: 5 up to what it allows (more counts as that); 0: its own.
   */
  unsigned hold = 0;

  /** Throws accepted and not yet settled; above it throwSprite() says false. 1 to 1024. */
  size_t maxPendingThrows = 64;

  /** Throws on the wire at once. With more than one they may arrive in another order. 1 to 32. */
  size_t maxParallelThrows = 4;

  /** An answer of the server longer than this many bytes is dropped, and counts as no answer. */
  size_t maxAnswerBytes = size_t{8} << 20;

  /** For a connection to be made, name look-up and TLS included. */
  std::chrono::milliseconds connectTimeout{10000};

  /** For each answer, a poll's apart (that has its hold, a fourth of it and this much more). */
  std::chrono::milliseconds answerTimeout{15000};

  /** How long a throw may wait for an answer, or for contact, before it is kUnknown or kLater... */
  std::chrono::milliseconds throwPatience{60000};

  /** ...and how many times it may fail while there is contact. At least 1. */
  unsigned throwAttempts = 8;

  /** The longest wait between two tries for contact; the first are shorter. At least 100 ms. */
  std::chrono::milliseconds maxBackoff{15000};

  /** PEM file of the authorities to trust for https; empty: the system's. */
  std::string caFile;
};

/** What a client has counted since it was made. */
struct Counts {
  uint64_t received = 0;  ///< sprites handed to onSprite
  uint64_t repeats = 0;   ///< sprites that came again and were not handed over again
  uint64_t thrown = 0;    ///< throws settled kDelivered or kQueued
  uint64_t unknown = 0;   ///< throws settled kUnknown
  uint64_t resent = 0;    ///< tries after the first of a throw
  uint64_t joins = 0;     ///< places it was given
  uint64_t polls = 0;     ///< polls answered
  uint64_t failures = 0;  ///< times contact was lost or refused
};

/** One client with one place in the torus. Neither copied nor moved. */
class Client {
 public:
  /**
   * Makes a client; it does nothing before start() or perform().
   *
   * @throws std::invalid_argument for options out of their bounds or a server that is no http URL
   * @throws std::runtime_error when libcurl can't be set up
   *
   * The first client calls curl_global_init(). With a libcurl before 7.84 a program that uses curl
   * elsewhere, too, calls that itself before its threads start.
   */
  explicit Client(Options options);

  /**
   * Ends everything at once: stops and joins the own thread, drops what is under way. No callback
   * runs any more, results still missing included, and the server learns nothing (it notices by
   * the lease). close() is the kind way. Not from inside a callback.
   */
  ~Client();

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /**
   * Starts the client's own thread. Once, and not together with perform().
   *
   * @throws std::logic_error when started already
   * @throws std::system_error when there is no thread to be had
   */
  void start();

  /**
   * Drives a client that was not started: does what is to do, waits at most `timeout` for something
   * to happen (0: not at all), calls the callbacks. Call it over and over, from one thread at a
   * time; a program with frames calls it each frame with 0. It may return early.
   *
   * @return false once the client has left: there is nothing left to drive
   * @throws std::logic_error on a started client, or from inside a callback
   */
  bool perform(std::chrono::milliseconds timeout);

  /** Makes a perform() that waits, now or next, return at once. */
  void wake();

  /**
   * Throws a sprite off an edge.
   *
   * @param json    the sprite: one JSON object in UTF-8, at most as long as the server takes
   *                (16384 bytes unless it was set otherwise); writeSprite() makes one
   * @param result  called with what became of it, on the thread of the callbacks; may be empty
   * @return true: accepted, `result` will be called. False: too many throws are under way, or the
   *         client has left or is leaving; the sprite is still the caller's, and `result` is
   *         dropped uncalled.
   *
   * A throw that was sent and got no answer is sent again under its number, so the server takes it
   * once. Where no answer can be had within throwPatience and throwAttempts, or the server has
   * forgotten this client meanwhile, the outcome is kUnknown: to keep the sprite may double it, to
   * drop it may lose it. A program that shows sprites does well to keep it.
   *
   * While offline a throw is settled kLater at once, with the time until the next try.
   */
  bool throwSprite(Edge edge, std::string json, ThrowCallback result);

  /**
   * Begins to leave: throws not yet sent are kLater, those on the wire get their answer (for at
   * most 5 s in all), the last sprites are acknowledged, and the server is told. Then onState says
   * kLeft. From the call on no sprite is handed over: what still comes flies on to the next
   * neighbor. Again, or after kLeft: does nothing.
   */
  void leave();

  /**
   * leave(), and waits for it: drives the client if it has no thread of its own.
   *
   * @return true when it has left within `patience`; false if not, and always from inside a
   * callback (it goes on leaving then)
   */
  bool close(std::chrono::milliseconds patience);

  /**
   * Asks the server where this client is in the torus.
   *
   * @param result  called once with the answer, on the thread of the callbacks, unless the client
   *                is destroyed or has left before; with nothing at once while there is no place
   * @return false, and `result` dropped uncalled, when 16 questions are under way or it is leaving
   */
  bool place(PlaceCallback result);

  /** Asks for the server's live counts, likewise. */
  bool status(StatusCallback result);

  /** How it stands now. */
  State state() const;

  /** What it has counted up to now. */
  Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/** The library's version, such as "0.1.0". */
const char* version();

}  // namespace sprites

#endif  // SPRITES_CLIENT_H_
