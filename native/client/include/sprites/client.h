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
//   kLeft ──start()──▶ kJoining ──▶ kOnline ⇄ kOffline     no contact: tries again by itself
//     ▲                   ▲  ▲─────────┴─────────┘            the place is forgotten: joins anew
//     └── leave()         └──── kSuperseded                   another program has the place
//
// All clients behave alike: lib/client/README.md says how, test/vectors/client.json holds them to
// it.
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
// The id the server gives is a capability: a program that has it can act as this client. It is
// never logged.
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
#include <vector>

#include "sprites/connection.h"
#include "sprites/version.h"

namespace sprites {

/** An edge of this desktop. A sprite thrown off kLeft enters the neighbor's desktop by kRight. */
enum class Edge : uint8_t { kLeft, kRight, kUp, kDown };

/** The edge's name on the wire: "left", "right", "up" or "down". */
const char* toString(Edge edge);

/** The edge by which a sprite thrown off `edge` enters. */
Edge opposite(Edge edge);

/** How it stands between this client and the server. */
enum class State : uint8_t {
  kLeft,        ///< not started; or leave() is done, and nothing more happens
  kJoining,     ///< asks for a place, or whether the place it was given is still its own
  kOnline,      ///< has a place, and the server has said so
  kOffline,     ///< no contact, or the server refuses service; tries again by itself
  kSuperseded,  ///< another program polls with the same id; joins anew by itself
};

/** The state's name: "left", "joining", "online", "offline" or "superseded". */
const char* toString(State state);

/** What onState tells. */
struct StateChange {
  State state = State::kLeft;
  bool newPlace = false;  ///< kOnline after a join: other neighbors than before
  /**
   * The problem's name ("draining", "unknown-client"), or "network", "slow", "garbage",
   * "superseded" or "no-grant"; empty where there is nothing to say.
   */
  std::string why;
  std::string reason;                  ///< the same as one line for people
  std::chrono::milliseconds retry{0};  ///< kOffline: until the next try
};

/** What became of a throw. */
enum class Outcome : uint8_t {
  kDelivered,   ///< written to the neighbor's parked poll
  kQueued,      ///< the server has it and answers for it; the neighbor gets it with its next poll
  kDuplicate,   ///< an earlier try of this throw had reached the server: it has it
  kBusy,        ///< not now: see retry. The sprite stays the caller's
  kRefused,     ///< the server will never take this one (see problem). It stays the caller's
  kOffline,     ///< no contact, no place, or leaving: see retry. The sprite stays the caller's
  kUnanswered,  ///< it was sent, and no answer came: unknown (see Client::throwSprite)
  kForgotten,   ///< sent without an answer, and now its place or number is gone: unknown
};

/** The outcome's name: "delivered", "queued", "duplicate", "busy" and so on. */
const char* toString(Outcome outcome);

/** The result of one throw. */
struct ThrowResult {
  Outcome outcome = Outcome::kUnanswered;
  std::chrono::milliseconds retry{0};  ///< kBusy, kOffline: when to try again; 0: no telling
  std::string problem;  ///< the server's problem type, such as "urn:sprites:neighbor-busy", or ""
  std::string detail;   ///< one line for people: what happened and what to do; may be ""

  /** True when the server has the sprite and answers for it. */
  bool taken() const {
    return outcome == Outcome::kDelivered || outcome == Outcome::kQueued ||
           outcome == Outcome::kDuplicate;
  }

  /** True when the sprite surely did not leave and is still the caller's. */
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

/** Called with nothing where there was no answer, or none that could be read. */
using PlaceCallback = std::function<void(const std::optional<Place>&)>;

/** The server's live counts. */
struct Status {
  uint64_t clients = 0;  ///< in the torus: where several servers are one world, of all of them
  uint64_t thrown = 0;   ///< sprites taken: acked + waiting + lost
  uint64_t acked = 0;
  uint64_t waiting = 0;
  uint64_t lost = 0;
  std::string json;  ///< all that the server said
};

/** Called with nothing where there was no answer, or none that could be read. */
using StatusCallback = std::function<void(const std::optional<Status>&)>;

/**
 * What is needed to come back to a place, by another process, too. As secret as the id. On disk it
 * is the JSON of writeResume(), which every client reads.
 */
struct Resume {
  std::string id;
  uint64_t ack = 0;        ///< the last sequence number handed over
  uint64_t n = 0;          ///< the last number given to a throw
  unsigned hold = 0;       ///< seconds; 0: not known
  unsigned lease = 0;      ///< seconds; 0: not known
  size_t maxSprite = 0;    ///< bytes; 0: not known
  unsigned transient = 0;  ///< a port for throws; 0: none. This client does not use it
};

/** Writes it as plain JSON. */
std::string writeResume(const Resume& resume);

/** Reads it; nothing when it is none: a file may hold anything. */
std::optional<Resume> readResume(std::string_view json);

/** Called when what is needed to come back has changed; with nothing when the place is gone. */
using ResumeCallback = std::function<void(const std::optional<Resume>&)>;

/**
 * Takes a sprite. A callable that returns bool may answer false: there is no room, and the sprite
 * and those after it come again later. One that returns nothing has always room.
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

/** How a client is to behave. Copied by the client; changes after that have no effect. */
struct Options : ConnectionOptions {
  /**
   * A sprite has entered by `edge`. `json` is the sprite as its thrower wrote it: one JSON object
   * in UTF-8 that a stranger made; readSprite() of sprites/sprite.h checks it. The reference is
   * good for the call. Each sprite is handed over once, in the order the server has them; it is
   * acknowledged only after the callback has returned. It may return false: see SpriteCallback.
   */
  SpriteCallback onSprite;

  /** The state has changed. */
  std::function<void(const StateChange& change)> onState;

  /** What is needed to come back has changed: before a throw is sent, after sprites came. */
  ResumeCallback onResume;

  /** What onResume said last: the client takes up that place, if the server still knows it. */
  std::optional<Resume> resume;

  /** Seconds the server may hold a poll: 5 up to what it allows (more counts as that); 0: its own.
   */
  unsigned hold = 0;

  /** Throws accepted and not yet settled; above it throwSprite() says false. 1 to 1024. */
  size_t maxPendingThrows = 64;

  /** Throws on the wire at once. With more than one they may arrive in another order. 1 to 32. */
  size_t maxParallelThrows = 4;

  /** An answer of the server longer than this many bytes is dropped, and counts as no answer. */
  size_t maxAnswerBytes = size_t{8} << 20;

  /** For each answer, a poll's apart (that has its hold, a fourth of it and 15 s more); a throw has
   * 1 s more for each 16 kB. */
  std::chrono::milliseconds answerTimeout{10000};

  /** How long a throw may wait for an answer, or for contact, before it is settled... */
  std::chrono::milliseconds throwPatience{60000};

  /** ...and how often it may fail, or find its place gone, while there is contact. At least 1. */
  unsigned throwAttempts = 5;
};

/** What a client has counted since it was made. */
struct Counts {
  uint64_t received = 0;  ///< sprites handed to onSprite
  uint64_t repeats = 0;   ///< sprites that came again and were not handed over again
  uint64_t thrown = 0;    ///< throws the server took
  uint64_t unknown = 0;   ///< throws settled kUnanswered or kForgotten
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
   * @param grant  gives the grant to join with, where the server takes only clients with one (its
   *               --private-join)
   * @throws std::invalid_argument for options out of their bounds or a server that is no http URL
   * @throws std::runtime_error when libcurl can't be set up
   *
   * The first client calls curl_global_init(). With a libcurl before 7.84 a program that uses curl
   * elsewhere, too, calls that itself before its threads start.
   */
  explicit Client(Options options, GrantCallback grant = nullptr);

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
   * Something happened that makes trying now worthwhile: the network came back, the machine woke
   * up. Ends a wait the client chose itself (none the server asked for), and asks the server anew
   * where a parked poll may hang on a dead connection.
   */
  void tryNow();

  /**
   * For an event loop of another kind: a descriptor that is readable when
   * perform() with 0 has something to do. It is the client's; wait on it for
   * reading, level-triggered, and no longer than timeout(). Linux only:
   * elsewhere -1, and perform() is to be called every so often.
   *
   * @throws std::runtime_error when the system gives none
   * @throws std::logic_error when called after start(), or first called after
   * perform()
   */
  int fd();

  /** How long the loop may wait for fd() before it calls perform() with 0. */
  std::chrono::milliseconds timeout();

  /** What is needed to come back to this place; nothing without one. */
  std::optional<Resume> resume() const;

  /**
   * Throws a sprite off an edge.
   *
   * @param json    the sprite: one JSON object in UTF-8, at most as long as the
   * server takes (16384 bytes unless it was set otherwise); writeSprite() makes
   * one
   * @param result  called with what became of it, on the thread of the
   * callbacks; may be empty
   * @return true: accepted, `result` will be called. False: too many throws are
   * under way, or the client has left or is leaving; the sprite is still the
   * caller's, and `result` is dropped uncalled.
   *
   * A throw that was sent and got no answer is sent again under its number, so
   * the server takes it once. Where no answer can be had within throwPatience
   * and throwAttempts, or the server has forgotten this client meanwhile, the
   * outcome is kUnanswered or kForgotten: to keep the sprite may double it, to
   * drop it may lose it. A program that shows sprites does well to keep it.
   *
   * While offline a throw is settled kOffline at once, with the time until the
   * next try; so is one whose place the server forgets each time, throwAttempts
   * times. Over an edge whose neighbor was busy a moment ago it is kBusy at
   * once.
   */
  bool throwSprite(Edge edge, std::string json, ThrowCallback result);

  /**
   * Begins to leave: throws not yet sent are kOffline, sent ones get their answer (for at most 5 s
   * in all), the last sprites are acknowledged, and the server is told. Then onState says kLeft.
   * From the call on no sprite is handed over: what still comes flies on to the next neighbor.
   * Again, or after kLeft: does nothing.
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
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/** The version of the library that is linked, such as "0.1.0"; see SPRITES_VERSION. */
const char* version();

}  // namespace sprites

#endif  // SPRITES_CLIENT_H_
