// The event set: all sockets that one thread waits for, behind one descriptor.
//
//   Node's loop, or a worker ── watches ──▶ epoll ──┬── a connection   key: its number, odd
//                                                   ├── a watcher      key: its pointer, even
//                                                   └── wake           an eventfd and a timerfd: a
//                                                                      turn is asked for
//
// Lifecycle: Node's loop sees the descriptor become readable and starts a turn, or sleeps in it
// (addon/loop_turns.h), as a worker's thread does. `collect` takes a bounded share of the events;
// `dispatch` passes each to its connection or watcher. The rest comes in the next turn. A
// descriptor is watched from `add` until `remove`, or until it is closed.
//
// A connection is known by index and generation, not by a pointer, because its place is reused: an
// event of an earlier connection has an old generation. The few other descriptors (the listening
// sockets) each have an object.
//
// Cost: one epoll_wait for each turn. Eventfd and timerfd are edge-triggered: each write is one
// event, and no turn reads them. Rejected: a uv_poll_t for each descriptor (160 bytes and a
// callback each), edge-triggered sockets (every read would have to go on until EAGAIN: one system
// call more for each request).
#ifndef SPRITES_EVENTS_H_
#define SPRITES_EVENTS_H_

#include <sys/epoll.h>

#include <cstdint>

namespace server {

/** Handles the events of a descriptor that is no connection. */
class Watcher {
 public:
  virtual ~Watcher() = default;

  /**
   * Called with `events` (epoll's bits) of its descriptor. It may remove and delete itself here, or
   * between turns; it must not delete another watcher.
   */
  virtual void onEvents(uint32_t events) = 0;
};

class EventSet {
 public:
  /** The key of a connection, unique among all that ever had its place. */
  static uint64_t connectionKey(uint32_t index, uint32_t generation) {
    return uint64_t{generation} << 32 | uint64_t{index} << 1 | 1;
  }

  /** Throws std::system_error. */
  EventSet();
  ~EventSet();
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;

  /** Readable when a turn is due. */
  int fd() const { return epollFd_; }

  /** Watches `fd` for `events`. Returns false when the kernel has no memory for it. */
  bool add(int fd, uint64_t connectionKey, uint32_t events);
  bool add(int fd, Watcher* watcher, uint32_t events);

  /** Watches `fd`, which was added with the same key, for other events. */
  void change(int fd, uint64_t connectionKey, uint32_t events);

  /** Stops watching `fd`. To be called before `fd` is closed if another process has it too. */
  void remove(int fd);

  /** Asks for a turn soon; from any thread. */
  void wake();

  /** Asks for a turn in so many microseconds; of several calls the earliest time counts. */
  void wakeIn(uint64_t microseconds);

  /**
   * Lets the next `collect` wait so many milliseconds for an event: for a thread without another
   * loop.
   */
  void waitAtNextCollect(int milliseconds) { nextWait_ = milliseconds; }

  /**
   * Waits for a wake, at most so many microseconds, and ignores other events. The first of several
   * waits may end at once, by a wake that an earlier `collect` has seen.
   */
  void sleepUntilWoken(uint64_t microseconds);

  /**
   * Takes the pending events, at most kMaxEvents, for the next dispatch. Events that a second call
   * replaces come again, since a descriptor stays ready.
   */
  void collect();

  /** Whether the last `collect` has found events. */
  bool hasEvents() const { return count_ > 0; }

  /**
   * Dispatches the events of the last `collect`, or collects now: calls the watchers, and
   * `onConnection(index, generation, events)` for connections. An event may be stale: an earlier
   * one closed its connection, and another connection has the place.
   */
  template <typename OnConnection>
  void dispatch(OnConnection&& onConnection) {
    if (!isCollected_) collect();
    isCollected_ = false;
    for (int i = 0; i < count_; ++i) {
      const uint64_t key = events_[i].data.u64;
      if ((key & 1) != 0) {
        onConnection(static_cast<uint32_t>(key) >> 1, static_cast<uint32_t>(key >> 32),
                     events_[i].events);
      } else if (key != kWake) {
        static_cast<Watcher*>(events_[i].data.ptr)->onEvents(events_[i].events);
      }
    }
  }

  /** Microseconds of a clock that never goes back. */
  static uint64_t now();

 private:
  /** Most events of a turn; the rest waits until Node's loop has run its other work. */
  static constexpr int kMaxEvents = 256;

  /** The key of the set's own descriptors: even like a pointer, but no pointer. */
  static constexpr uint64_t kWake = 0;

  bool control(int operation, int fd, epoll_data key, uint32_t events);

  const int epollFd_;
  const int wakeFd_;
  const int timerFd_;
  uint64_t timerFiresAt_ = 0;  // time of `now` at which the timer fires, or fired last
  int nextWait_ = 0;           // milliseconds
  bool mustClearWakes_ =
      false;                  // the next `collect` clears the wakes: `sleepUntilWoken` needs that
  bool isCollected_ = false;  // the found events are not dispatched yet
  int count_ = 0;
  epoll_event events_[kMaxEvents];
};

}  // namespace server

#endif  // SPRITES_EVENTS_H_
