#include "events.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

namespace server {

EventSet::EventSet()
    : epollFd_(epoll_create1(EPOLL_CLOEXEC)),
      wakeFd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      timerFd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (epollFd_ < 0 || wakeFd_ < 0 || timerFd_ < 0) {
    throw std::system_error(errno, std::generic_category());
  }
  control(EPOLL_CTL_ADD, wakeFd_, {.u64 = kWake}, EPOLLIN | EPOLLET);
  control(EPOLL_CTL_ADD, timerFd_, {.u64 = kWake}, EPOLLIN | EPOLLET);
}

EventSet::~EventSet() {
  ::close(timerFd_);
  ::close(wakeFd_);
  ::close(epollFd_);
}

bool EventSet::control(int operation, int fd, epoll_data key, uint32_t events) {
  epoll_event event = {events, key};
  return epoll_ctl(epollFd_, operation, fd, &event) == 0;
}

bool EventSet::add(int fd, uint64_t connectionKey, uint32_t events) {
  return control(EPOLL_CTL_ADD, fd, {.u64 = connectionKey}, events);
}

bool EventSet::add(int fd, Watcher* watcher, uint32_t events) {
  return control(EPOLL_CTL_ADD, fd, {.ptr = watcher}, events);
}

void EventSet::change(int fd, uint64_t connectionKey, uint32_t events) {
  control(EPOLL_CTL_MOD, fd, {.u64 = connectionKey}, events);
}

void EventSet::remove(int fd) { epoll_ctl(epollFd_, EPOLL_CTL_DEL, fd, nullptr); }

void EventSet::wake() {
  const uint64_t once = 1;
  (void)!::write(wakeFd_, &once, sizeof once);
}

void EventSet::wakeIn(uint64_t microseconds) {
  if (microseconds == 0) return wake();
  const uint64_t time = now();
  if (timerFiresAt_ > time && timerFiresAt_ <= time + microseconds) return;
  timerFiresAt_ = time + microseconds;
  const itimerspec once = {{},
                           {static_cast<time_t>(microseconds / 1000000),
                            static_cast<long>(microseconds % 1000000 * 1000)}};
  timerfd_settime(timerFd_, 0, &once, nullptr);
}

void EventSet::sleepUntilWoken(uint64_t microseconds) {
  mustClearWakes_ = true;
  const timespec time = {static_cast<time_t>(microseconds / 1000000),
                         static_cast<long>(microseconds % 1000000 * 1000)};
  pollfd wake = {.fd = wakeFd_, .events = POLLIN, .revents = 0};
  ppoll(&wake, 1, &time, nullptr);
}

void EventSet::collect() {
  uint64_t times;
  if (std::exchange(mustClearWakes_, false)) (void)!::read(wakeFd_, &times, sizeof times);
  count_ = epoll_wait(epollFd_, events_, kMaxEvents, std::exchange(nextWait_, 0));
  isCollected_ = true;
}

uint64_t EventSet::now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * uint64_t{1000000} + time.tv_nsec / 1000;
}

}  // namespace server
