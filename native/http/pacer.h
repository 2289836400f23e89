// A pacer before an epoll set: decides how often the set's turns come.
//
//   loop ── watches ──▶ pacer ──┬── set     while open: readable when the set is
//                              └── timer   while shut: readable when the pace is over
//
// A process that is not busy wakes for every request, and under load waking costs more than the
// request does. With a pace (pace.h) the pacer stays shut from a turn that comes too soon until the
// pace is over, so that what arrives meanwhile is one turn's work; after a pause turns go at once.
// Rejected: sleeping, which would hold up everything else on the loop, and the loop's own timers,
// which know milliseconds only.
#ifndef SPRITES_PACER_H_
#define SPRITES_PACER_H_

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "pace.h"

namespace server {

/** Arms `timer`, a timerfd, to be readable once in `microseconds`, above 0. */
inline void alarm(int timer, uint64_t microseconds) {
  const itimerspec in = {{0, 0},
                         {static_cast<time_t>(microseconds / 1000000),
                          static_cast<long>(microseconds % 1000000 * 1000)}};
  timerfd_settime(timer, 0, &in, nullptr);
}

class Pacer {
 public:
  /** `set` is an epoll descriptor and the caller's. Throws std::system_error. */
  explicit Pacer(int set)
      : set_(set),
        pacer_(epoll_create1(EPOLL_CLOEXEC)),
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    if (pacer_ < 0 || timer_ < 0) throw std::system_error(errno, std::generic_category());
    epoll_event event = {EPOLLIN, {.fd = set_}};
    epoll_ctl(pacer_, EPOLL_CTL_ADD, set_, &event);
    event.data.fd = timer_;
    epoll_ctl(pacer_, EPOLL_CTL_ADD, timer_, &event);
  }

  ~Pacer() {
    ::close(timer_);
    ::close(pacer_);
  }

  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  /** Readable when a turn is due. */
  int fd() const { return pacer_; }

  /** Turns come no more often than every `microseconds`; 0: whenever there is something to do. */
  void pace(uint32_t microseconds) { pace_ = Pace(microseconds); }

  /** Whether a turn may begin at `now`, microseconds; if not, the pacer is shut until it may. */
  bool pass(uint64_t now) {
    const uint64_t wait = pace_.take(now);
    if (wait > 0) {
      if (!shut_) shut(wait);
      return false;
    }
    if (shut_) open();
    return true;
  }

  /** The turn just done has left something over: the next one need not wait. */
  void hurry() { pace_.hurry(); }

 private:
  void shut(uint64_t microseconds) {
    watch(0);
    alarm(timer_, microseconds);
  }

  void open() {
    uint64_t times;
    (void)!::read(timer_, &times, sizeof times);
    watch(EPOLLIN);
  }

  void watch(uint32_t events) {
    epoll_event event = {events, {.fd = set_}};
    epoll_ctl(pacer_, EPOLL_CTL_MOD, set_, &event);
    shut_ = events == 0;
  }

  const int set_;
  const int pacer_;
  const int timer_;
  Pace pace_;
  bool shut_ = false;
};

}  // namespace server

#endif  // SPRITES_PACER_H_
