// Watches feeds: JSON documents of an application, each under a key.
//
//   #include <sprites/feeds.h>
//
//   sprites::FeedsOptions options;
//   options.server = "http://127.0.0.1:8080";
//   sprites::Feeds feeds(options);
//   feeds.watch("scores", [](const sprites::FeedChange& change) {
//     if (change.problem.empty()) show(change.value); else explain(change.problem);
//   });
//   feeds.start();                                           // a thread of its own, or:
//   // while (running) { feeds.perform(std::chrono::milliseconds(16)); ...its own loop... }
//
// A log (a chat, notifications, events) is followed: feeds.follow("chat", onItems) passes on each
// item, in order and once.
//
// The client by itself: keeps one long poll parked for all watched feeds; applies patches if the
// program wants them; waits as long as the server asks, and otherwise backs off with jitter;
// continues from its version after broken connections and server restarts. An older version never
// comes after a newer one; a slow program skips versions.
//
// All clients behave as lib/client/README.md says; test/vectors/feeds.json tests it.
//
// Threads, errors and exceptions are as in sprites/client.h: every member may be called from any
// thread, and from inside callbacks, except where its comment says otherwise; callbacks run one at
// a time, with no lock held, and must not throw; the network never throws.
//
// Memory: the newest value of each watched feed, as text; of a log no items.
#ifndef SPRITES_FEEDS_H_
#define SPRITES_FEEDS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sprites/connection.h"
#include "sprites/version.h"

namespace sprites {

/** A newer value of a feed, or a problem. */
struct FeedChange {
  std::string key;
  std::string cursor;  ///< of the value; keep both to continue in another run: FeedHeld
  std::string value;   ///< JSON in UTF-8 as the server wrote it (RFC 8785); empty with a problem
  /**
   * JSON Patch (RFC 6902) from the previous value to this one, of add, remove and replace. Empty if
   * the value came whole, as always without FeedsOptions::patches.
   */
  std::string patch;
  /**
   * Name of the problem, or empty. After "unknown-feed", "upstream-failed", other problems from the
   * server, and "other-kind" (the feed is a log) the client asks for the feed again. "bad-key",
   * "too-many-keys" (more than kMaxFeeds), and "other-kind" if this Feeds follows the key, end the
   * watch.
   */
  std::string problem;
};

/** Receives changes of a feed. */
using FeedCallback = std::function<void(const FeedChange&)>;

/** The next items of a log, or a problem. */
struct LogNews {
  std::string key;
  std::string cursor;  ///< of the last item: keep it to continue after it in another run
  std::vector<std::string> items;  ///< JSON in UTF-8 as the server wrote it, the oldest first
  bool gap = false;                ///< earlier items are gone; some of these may be repeated
  /**
   * As in FeedChange. "other-kind" means that the feed has a value; it also ends a follow() of a
   * key that this Feeds has already. Empty without items: the last reported problem is over.
   */
  std::string problem;
};

/** Receives news of a log. */
using LogCallback = std::function<void(const LogNews&)>;

/** The state of a client of feeds towards the server. */
enum class FeedsState : uint8_t {
  kIdle,     ///< no feed is watched
  kAsking,   ///< the first poll has no answer yet
  kOnline,   ///< the last poll was answered, or cut off after 10 s or more
  kOffline,  ///< no contact, or the server refuses service; retries by itself
};

/** Returns the state's name: "idle", "asking", "online" or "offline". */
const char* toString(FeedsState state);

/** The argument of onState. */
struct FeedsStateChange {
  FeedsState state = FeedsState::kIdle;
  /** As in StateChange: a problem's name, "network", "slow", "garbage", "no-grant". */
  std::string why;
  std::string reason;  ///< `why` as one line for people
};

/** Cursor and value of a feed from a FeedChange of an earlier run. */
struct FeedHeld {
  std::string cursor;
  std::string value;
};

constexpr size_t kMaxFeeds = 32;  ///< most keys that a Feeds may watch

/** Options of a Feeds. The client copies them: later changes have no effect. */
struct FeedsOptions : ConnectionOptions {
  /**
   * Accepts patches from the server where they are shorter than the value, and reports them. The
   * reported value is whole all the same.
   */
  bool patches = false;

  /**
   * A cache is in front of the server (its --feed-cache): the client asks so that the cache can
   * answer.
   */
  bool cached = false;

  /** Called when the state or its reason has changed. */
  std::function<void(const FeedsStateChange& change)> onState;

  /** Longest answer, in bytes. A longer one is dropped and counts as no answer. */
  size_t maxAnswerBytes = size_t{64} << 20;
};

/** A client that watches feeds of one server. Neither copied nor moved. */
class Feeds {
 public:
  /** Names one watch: never 0, never used twice. */
  using WatchId = uint64_t;

  /**
   * Makes a client; it does nothing before start() or perform().
   *
   * @param grant  returns the grant to send, where feeds are private (the server's --private). The
   *               client asks no cache then
   * @throws std::invalid_argument for options out of their bounds or a server that is no http URL
   * @throws std::runtime_error when libcurl can't be set up
   */
  explicit Feeds(FeedsOptions options, GrantCallback grant = nullptr);

  /** Stops at once. No callback runs any more. Must not be called from inside a callback. */
  ~Feeds();

  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;

  /** Starts the client's own thread, as Client::start() does. */
  void start();

  /**
   * Drives a client that was not started, as Client::perform() does.
   *
   * @throws std::logic_error on a started client, or from inside a callback
   */
  void perform(std::chrono::milliseconds timeout);

  /** Makes the current or the next waiting perform() return at once. */
  void wake();

  /** Retries now, as Client::tryNow() does. */
  void tryNow();

  /** Returns a descriptor for the program's own event loop, as Client::fd() does. */
  int fd();

  /** Returns how long the loop may wait for fd() before it calls perform() with 0. */
  std::chrono::milliseconds timeout();

  /**
   * Watches a feed. The feed need not be published yet: its first value comes like any other.
   *
   * @param onChange  called with each new value, and once for each problem
   * @param held      cursor and value of an earlier run, to get only newer values; ignored if
   *                  malformed
   */
  WatchId watch(std::string key, FeedCallback onChange, FeedHeld held = {});

  /**
   * Follows a log. The log need not be published yet.
   *
   * @param onItems  called with the next items, each once and in order, and once for each problem.
   *                 Its first items are all that the log keeps, or those after `after`
   * @param after    the cursor of an earlier run; ignored if malformed
   */
  WatchId follow(std::string key, LogCallback onItems, std::string after = {});

  /** Ends a watch() or follow(): its callback is not called again. Ignores unknown ids. */
  void unwatch(WatchId watch);

  /** Ends every watch. A later watch() begins again. */
  void close();

  /** Returns the current state. */
  FeedsState state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sprites

#endif  // SPRITES_FEEDS_H_
