// Watching feeds: the documents of an application, JSON, each under its key.
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
// A log (a chat, notifications, events) is followed: feeds.follow("chat", onItems) gives each item,
// in order and once.
//
// What it does by itself: keeps one long poll parked for all feeds that are watched; applies
// patches where the program wants them; waits as long as the server asks, and otherwise backs off
// with jitter; goes on after broken connections and server restarts with the version it holds. An
// older version never comes after a newer one; a slow program skips versions.
//
// All clients behave alike: lib/client/README.md says how, test/vectors/feeds.json holds them to
// it.
//
// Threads, errors and exceptions are as in sprites/client.h: every member may be called from any
// thread, and from inside callbacks, except where it says otherwise; callbacks run one at a time,
// with no lock held, and must not throw; the network never throws.
//
// Memory: the newest value of each feed that is watched, as text; of a log nothing.
#ifndef SPRITES_FEEDS_H_
#define SPRITES_FEEDS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sprites/connection.h"
#include "sprites/version.h"

namespace sprites {

/** A newer value of a feed, or why there is none. */
struct FeedChange {
  std::string key;
  std::string cursor;  ///< of the value; keep both to go on in another run, see FeedHeld
  std::string value;   ///< JSON in UTF-8 as the server wrote it (RFC 8785); empty with a problem
  /**
   * What led here from the value before: a JSON Patch (RFC 6902) of add, remove and replace. Empty
   * where the value came whole, as it always does without FeedsOptions::patches.
   */
  std::string patch;
  /**
   * Empty, or the name of why there is no value now: "unknown-feed", "upstream-failed" and what
   * else the server says, "other-kind" where the feed is a log, and the feed is asked for again; or
   * "bad-key", "too-many-keys" (more than kFeedsMost) or, where this Feeds follows it,
   * "other-kind", which end the watch.
   */
  std::string problem;
};

/** Takes what is new. */
using FeedCallback = std::function<void(const FeedChange&)>;

/** The next items of a log, or why there are none. */
struct LogNews {
  std::string key;
  std::string cursor;              ///< of the last item: keep it to go on behind it in another run
  std::vector<std::string> items;  ///< each JSON in UTF-8 as the server wrote it, the oldest first
  bool gap = false;  ///< items before these are gone; some of these may have come before
  /**
   * As in FeedChange; "other-kind" where the feed has a value and, which ends it, where this Feeds
   * has the key already. Empty with no items: the problem told last is over.
   */
  std::string problem;
};

/** Takes what is new of a log. */
using LogCallback = std::function<void(const LogNews&)>;

/** How it stands between this client and the server. */
enum class FeedsState : uint8_t {
  kIdle,     ///< nothing is watched
  kAsking,   ///< the first poll has no answer yet
  kOnline,   ///< the last poll was answered, or it was cut off after 10 s or more
  kOffline,  ///< no contact, or the server refuses service; tries again by itself
};

/** The state's name: "idle", "asking", "online" or "offline". */
const char* toString(FeedsState state);

/** What onState tells. */
struct FeedsStateChange {
  FeedsState state = FeedsState::kIdle;
  /** As in StateChange: a problem's name, "network", "slow", "garbage", "no-grant". */
  std::string why;
  std::string reason;  ///< the same as one line for people
};

/** What an earlier run held of a feed, as FeedChange told it. */
struct FeedHeld {
  std::string cursor;
  std::string value;
};

constexpr size_t kFeedsMost = 32;  ///< keys that one Feeds may watch

/** How to watch. Copied by the client; changes after that have no effect. */
struct FeedsOptions : ConnectionOptions {
  /**
   * Takes patches from the server where they are shorter than the value, and tells them. The value
   * is whole all the same.
   */
  bool patches = false;

  /**
   * There is a cache before the server (its --feed-cache): feeds are asked for so that the cache
   * can answer.
   */
  bool cached = false;

  /** The state has changed, or why it is so. */
  std::function<void(const FeedsStateChange& change)> onState;

  /** An answer of the server longer than this many bytes is dropped, and counts as no answer. */
  size_t maxAnswerBytes = size_t{64} << 20;
};

/** All feeds of one server that a program watches. Neither copied nor moved. */
class Feeds {
 public:
  /** Names one watch: never 0, never used twice. */
  using WatchId = uint64_t;

  /**
   * Makes a client; it does nothing before start() or perform().
   *
   * @param grant  gives the grant to send, where feeds are private (the server's --private).
   *               Nothing is asked of a cache then
   * @throws std::invalid_argument for options out of their bounds or a server that is no http URL
   * @throws std::runtime_error when libcurl can't be set up
   */
  explicit Feeds(FeedsOptions options, GrantCallback grant = nullptr);

  /** Ends everything at once. No callback runs any more. Not from inside a callback. */
  ~Feeds();

  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;

  /** Starts the client's own thread: as Client::start(). */
  void start();

  /**
   * Drives a client that was not started, as Client::perform() does.
   *
   * @throws std::logic_error on a started client, or from inside a callback
   */
  void perform(std::chrono::milliseconds timeout);

  /** Makes a perform() that waits, now or next, return at once. */
  void wake();

  /** Something happened that makes trying now worthwhile: as Client::tryNow(). */
  void tryNow();

  /** For an event loop of another kind: as Client::fd(). */
  int fd();

  /** How long the loop may wait for fd() before it calls perform() with 0. */
  std::chrono::milliseconds timeout();

  /**
   * Watches a feed; one that is not yet published as well: its first value comes as any other.
   *
   * @param onChange  called with each new value, and once for each problem
   * @param held      what an earlier run held, to hear only of what is newer; what is none is not
   *                  taken
   */
  WatchId watch(std::string key, FeedCallback onChange, FeedHeld held = {});

  /**
   * Follows a log; one that is not yet published as well.
   *
   * @param onItems  called with the next items, each once and in order: first with all that the log
   *                 keeps, or with those behind `after`; and once for each problem
   * @param after    the cursor of an earlier run; what is none is not taken
   */
  WatchId follow(std::string key, LogCallback onItems, std::string after = {});

  /** Ends a watch(), or a follow(): no call of it begins any more. Unknown ones are ignored. */
  void unwatch(WatchId watch);

  /** Ends every watch. A later watch() begins anew. */
  void close();

  /** How it stands now. */
  FeedsState state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sprites

#endif  // SPRITES_FEEDS_H_
