// The event set: everything one thread waits for on its sockets, behind one descriptor.
//
//   Node's loop, or a worker ── watches ──▶ epoll ──┬── a connection   key: its number, odd
//                                                   ├── a watcher      key: its pointer, even
//                                                   └── wake           an eventfd and a timerfd: a
//                                                                      turn is asked for
//
// Lifecycle: Node's loop sees the descriptor become readable and starts a turn, or sleeps in it
// (addon/loop_turns.h), as a worker's thread does. `look` takes a bounded share of the events,
// `dispatch` gives each to what it concerns. What is left makes the next turn. A descriptor is
// watched from `add` to `remove`, or to its close.
//
// A connection is known by index and generation and not by a pointer, because its place is reused:
// an event of the one before carries an old generation. The few other descriptors (the listening
// sockets) are each watched by an object.
//
// Cost: one epoll_wait a turn. Eventfd and timerfd are edge-triggered: each write is one event, and
// no turn reads them. Rejected: a uv_poll_t a descriptor (160 bytes and a callback each),
// edge-triggered sockets (every read would have to run into EAGAIN: one system call more a
// request).
#ifndef SPRITES_EVENTS_H_
#define SPRITES_EVENTS_H_

#include <sys/epoll.h>

#include <cstdint>
#include <utility>

namespace server {

/** Watches a descriptor that is no connection's. */
class Watcher {
 public:
  virtual ~Watcher() = default;

  /**
   * Told of `events` (epoll's bits) on its descriptor. It may remove and delete itself here, or
   * between turns; it must not delete another watcher.
   */
  virtual void onEvents(uint32_t events) = 0;
};

class EventSet {
 public:
  /** Names one connection among all that ever had its place. */
  static uint64_t connectionKey(uint32_t index, uint32_t generation) {
    return uint64_t{generation} << 32 | uint64_t{index} << 1 | 1;
  }

  /** Throws std::system_error. */
  EventSet();
  ~EventSet();
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;

  /** Readable when a turn is due. */
  int fd() const { return set_; }

  /** Watches `fd` for `events`. Returns false when the kernel has no memory for it. */
  bool add(int fd, uint64_t connectionKey, uint32_t events);
  bool add(int fd, Watcher* watcher, uint32_t events);

  /** Watches `fd`, which was added with the same key, for other events. */
  void change(int fd, uint64_t connectionKey, uint32_t events);

  /** Watches `fd` no more. To be called before `fd` is closed where another process has it too. */
  void remove(int fd);

  /** Asks for a turn soon; from any thread. */
  void wake();

  /** Asks for a turn in so many microseconds; of several that are asked for the earliest comes. */
  void wakeIn(uint64_t microseconds);

  /** The next look may wait so many milliseconds for an event: where a thread has no other loop. */
  void sleep(int milliseconds) { sleep_ = milliseconds; }

  /**
   * Waits so many microseconds until it is woken, whatever events there are. The first of several
   * waits may end at once, by a wake that an earlier look has seen.
   */
  void sleepUntilWoken(uint64_t microseconds);

  /**
   * Takes the events there are, at most kEvents, for the next dispatch. Those that another look
   * replaces come again: a descriptor stays ready.
   */
  void look();

  /** Whether the last look has found any. */
  bool found() const { return count_ > 0; }

  /**
   * Gives the events of the last look, or of one that it takes now: tells the watchers, and calls
   * `onConnection(index, generation, events)` for the connections. An event may be stale: its
   * connection closed by an earlier one, its place taken by another.
   */
  template <typename OnConnection>
  void dispatch(OnConnection&& onConnection) {
    if (!looked_) look();
    looked_ = false;
    for (int i = 0; i < count_; ++i) {
      const uint64_t key = found_[i].data.u64;
      if ((key & 1) != 0) {
        onConnection(static_cast<uint32_t>(key) >> 1, static_cast<uint32_t>(key >> 32),
                     found_[i].events);
      } else if (key != kWake) {
        static_cast<Watcher*>(found_[i].data.ptr)->onEvents(found_[i].events);
      }
    }
  }

  /** Microseconds of a clock that never goes back. */
  static uint64_t now();

 private:
  /** Events of one turn; the rest waits until Node's loop has looked at everything else. */
  static constexpr int kEvents = 256;

  /** The key of the set's own descriptor: even, as a pointer, and no pointer. */
  static constexpr uint64_t kWake = 0;

  bool control(int operation, int fd, epoll_data key, uint32_t events);

  const int set_;
  const int wake_;
  const int timer_;
  uint64_t wakesAt_ = 0;  // by `now`: when the timer does, or did last
  int sleep_ = 0;         // milliseconds
  bool clears_ = false;   // the next look takes the wakes back, as `sleepUntilWoken` counts on it
  bool looked_ = false;   // what was found is not given yet
  int count_ = 0;
  epoll_event found_[kEvents];
};

}  // namespace server

#endif  // SPRITES_EVENTS_H_
