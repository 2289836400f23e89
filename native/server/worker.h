// A worker: a thread with its own epoll set, connections and door, on the ports that all workers
// share.
//
//   port ─┬─ socket 1 ─▶ worker 1: door ─▶ asks ─ring─▶ ┐ main thread: pool, arena, feeds, store,
//         └─ socket N ─▶ worker N: door ─▶ asks ─ring─▶ ┘ JavaScript
//                                  door ◀────── ring ── notices
//
// It accepts, reads, checks, answers and parks; the main thread decides. Each worker has its own
// listening socket; the kernel spreads new connections evenly over them (SO_REUSEPORT, socket(7)).
//
// Threads: from `start` to `stop` the worker's own thread owns everything here, except the rings
// (batch_ring.h), the waker, `isStopping_`, and `counts_` and `logEvents_`, which have a lock. All
// threads share AddressLimits, under its lock; and SharedFeedCounts, references to bytes and the
// number of connections, which are atomic. The main thread sends a kRun to have a command done
// here.
//
// Rejected: processes (frames, replicas of feeds, heartbeats, shares of every limit), one listening
// socket for all workers (the thread that wakes first takes nearly all connections).
#ifndef SPRITES_WORKER_H_
#define SPRITES_WORKER_H_

#include <atomic>
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

/** Counts of a worker's feeds. */
struct FeedTally {
  uint64_t polls = 0, pings = 0;
  uint64_t documents = 0, patches = 0, skipped = 0;
  uint64_t watching = 0;  // now
  uint64_t streams = 0;   // now
};

/** Counts of a worker at the end of its last turn. */
struct WorkerCounts {
  DoorCounts door = {};
  FeedTally feeds;
};

/** The parts of a worker; all of them outlive it. */
struct WorkerParts {
  DoorOptions door;
  AddressLimits* limits;
  std::atomic<uint32_t>* open;  // number of connections of all threads
  Replies replies;
  BodyBounds bodies;
  FeedsOptions feeds;
  bool inputs;       // there are arenas
  Waker* mainWaker;  // wakes the main thread
};

class Worker {
 public:
  /** `number` counts from 1; `now` in milliseconds. Throws std::bad_alloc, std::system_error. */
  Worker(uint32_t number, const WorkerParts& parts, uint64_t now);
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // By the main thread.

  /** Starts the thread. Throws std::system_error without one. */
  void start();

  /** Ends the thread; the destructor closes its connections. */
  void stop();

  /** Its messages to the main thread, and those of the main thread. */
  BatchRing& asks() { return asksRing_; }
  BatchRing& notices() { return noticesRing_; }

  /** Wakes the thread to read its messages. */
  void wake() { waker_.wake(); }

  WorkerCounts counts();

  /** Refusals and joins since the last call, and the number of those left out. */
  std::pair<std::vector<LogEvent>, uint64_t> takeLogEvents();

  // By its own thread: turns, and the functions for a Command.

  void turn();

  /** To be called every kTickMilliseconds. */
  void tick(uint64_t now);

  Door& door() { return door_; }
  TlsContext& tls() { return tls_; }
  WorkerFeeds& feeds() { return feeds_; }

 private:
  void run();
  void tickInTime();
  void readNotices();
  void handle(const NoticeHead& head, std::string_view text);
  void respond(Ticket ticket, std::string_view text);
  void park(Ticket ticket);
  void send();
  void publishCounts();
  DoorParts doorParts(const WorkerParts& parts);

  const uint32_t number_;
  EventSet events_;
  Waker waker_;
  Waker* const mainWaker_;
  BatchRing asksRing_;
  BatchRing noticesRing_;
  WorkerAsks asks_;
  WorkerFeeds feeds_;
  TlsContext tls_;
  Door door_;
  base::DeadlineClock clock_;
  uint64_t tickedAt_ = 0;        // milliseconds
  std::string batch_;            // the batch being read
  bool hasDueWatchers_ = false;  // due watchers are left, or may be
  bool mainHasUnsent_ = false;   // the main thread has messages that the ring does not have yet
  bool isQuiet_ = false;         // nothing is due in the next ticks, and no event has come
  bool isResting_ = false;       // the thread sleeps over several ticks
  bool mainWakePending_ =
      false;  // the ring has messages for which the main thread was not woken yet
  std::atomic<bool> isStopping_{false};
  std::mutex mutex_;
  WorkerCounts counts_;  // under the lock
  LogEvents logEvents_;  // under the lock
  std::thread thread_;
};

}  // namespace server

#endif  // SPRITES_WORKER_H_
