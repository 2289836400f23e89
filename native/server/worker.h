// A worker: a thread with an epoll set, connections and a door of its own, on the ports that all
// workers share.
//
//   port ─┬─ socket 1 ─▶ worker 1: door ─▶ asks ─ring─▶ ┐ main thread: pool, arena, feeds, store,
//         └─ socket N ─▶ worker N: door ─▶ asks ─ring─▶ ┘ JavaScript
//                                  door ◀────── ring ── says
//
// It accepts, reads, checks, answers and parks; it decides nothing. Each worker has a listening
// socket of its own, over which the kernel spreads newcomers evenly (SO_REUSEPORT, socket(7)).
//
// Threads: everything here belongs to the worker's own thread from `start` to `stop`,
// but the rings (batch_ring.h), the waker, `stops_`, and what `counts_` has under its lock. What
// all threads share is AddressLimits, under its lock; FeedsShared, references to bytes and the
// count of connections, which are atomic. The main thread has a command done by saying kRun.
//
// Rejected: processes (frames, replicas of feeds, heartbeats, shares of every limit), one listening
// socket for all (the thread that is quickest to wake takes nearly all).
#ifndef SPRITES_WORKER_H_
#define SPRITES_WORKER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "asks.h"
#include "base/address_limits.h"
#include "base/deadline_clock.h"
#include "batch_ring.h"
#include "http/door.h"
#include "http/tls.h"
#include "worker_asks.h"
#include "worker_feeds.h"

namespace server {

/** What the feeds of a worker have counted. */
struct FeedTally {
  uint64_t polls = 0, pings = 0;
  uint64_t documents = 0, patches = 0, skipped = 0;
  uint64_t watching = 0;  // now
  uint64_t streams = 0;   // now
};

/** What a worker has counted, as of the end of its last turn. */
struct WorkerCounts {
  DoorCounts door = {};
  FeedTally feeds;
  std::array<uint64_t, kOutcomes> refused = {};
};

/** What a worker works with; all of them outlive it. */
struct WorkerParts {
  DoorOptions door;
  AddressLimits* limits;
  std::atomic<uint32_t>* open;  // connections, of all threads
  Replies replies;
  BodyBounds bodies;
  std::optional<FeedsOptions> feeds;
  bool inputs;  // there are arenas
  Waker* main;  // wakes the main thread
};

class Worker {
 public:
  /** `number` from 1 on; `now` in milliseconds. Throws std::bad_alloc, std::system_error. */
  Worker(uint32_t number, const WorkerParts& parts, uint64_t now);
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // By the main thread.

  /** Throws std::system_error where there is no thread for it. */
  void start();

  /** Ends the thread; its connections close with the worker. */
  void stop();

  /** What it asks, and what it is told. */
  BatchRing& asks() { return asksRing_; }
  BatchRing& says() { return saysRing_; }

  /** Has it look at what it is told. */
  void wake() { waker_.wake(); }

  WorkerCounts counts();

  /** What it has to say of those it refused since the last call, and how many were left out. */
  std::pair<std::vector<LogEvent>, uint64_t> takeLogEvents();

  // By its own thread: each turn, and what a Command does.

  void turn();

  /** To be called every kTickMilliseconds. */
  void tick(uint64_t now);

  Door& door() { return door_; }
  TlsContext& tls() { return tls_; }
  WorkerFeeds* feeds() { return feeds_.get(); }

 private:
  void run();
  void tickInTime();
  void takeSays();
  void take(const SayHead& head, std::string_view text);
  void respond(Ticket ticket, std::string_view text);
  void park(Ticket ticket);
  void send();
  void tell();
  DoorParts doorParts(const WorkerParts& parts);

  const uint32_t number_;
  EventSet events_;
  Waker waker_;
  Waker* const main_;
  BatchRing asksRing_;
  BatchRing saysRing_;
  WorkerAsks asks_;
  std::unique_ptr<WorkerFeeds> feeds_;  // there may be none
  TlsContext tls_;
  Door door_;
  base::DeadlineClock clock_;
  uint64_t tickedAt_ = 0;  // milliseconds
  std::string batch_;      // that is being read
  bool busy_ = false;      // watchers are left that are due, or may be
  bool behind_ = false;    // the main thread owes it something
  bool quiet_ = false;     // nothing is due in the next ticks, and nothing has come
  bool rests_ = false;     // ticks are left out
  bool asked_ = false;     // something is in the ring for which the main thread was not woken yet
  std::atomic<bool> stops_{false};
  std::mutex mutex_;
  WorkerCounts counts_;  // under the lock
  LogEvents logEvents_;  // under the lock
  std::thread thread_;
};

}  // namespace server

#endif  // SPRITES_WORKER_H_
