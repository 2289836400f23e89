// The pacer before an epoll set: when it is readable, and when a turn may begin. Times are given to
// it, so that nothing here waits but for the one alarm that is to ring.
//
//   pacer_test
#include "http/pacer.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "expect.h"

namespace {

using server::Pace;
using server::Pacer;

constexpr uint64_t kStart = 1000000;
constexpr uint32_t kHour = 3600000000;  // in microseconds: longer than any test
constexpr uint32_t kSoon = 2000;

/** An epoll set in which something is always to be done. */
class BusySet {
 public:
  BusySet() : set_(epoll_create1(EPOLL_CLOEXEC)), busy_(eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)) {
    epoll_event event = {EPOLLIN, {.fd = busy_}};
    epoll_ctl(set_, EPOLL_CTL_ADD, busy_, &event);
  }
  ~BusySet() {
    close(busy_);
    close(set_);
  }
  BusySet(const BusySet&) = delete;
  BusySet& operator=(const BusySet&) = delete;

  int fd() const { return set_; }
  void rest() const {
    uint64_t times;
    (void)!read(busy_, &times, sizeof times);
  }

 private:
  int set_;
  int busy_;
};

bool readable(const Pacer& pacer, int milliseconds = 0) {
  pollfd one = {pacer.fd(), POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1;
}

void withoutPace() {
  BusySet set;
  Pacer pacer(set.fd());
  for (int i = 0; i < 3; ++i) EXPECT(readable(pacer) && pacer.pass(kStart));
  set.rest();
  EXPECT(!readable(pacer));
}

/** After a pause so many go at once; then each waits for what it owes, whatever hurried before. */
void owedByTheBusy() {
  Pace pace(kSoon);
  uint64_t now = kStart;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < Pace::kAtOnce; ++i) EXPECT(pace.take(now) == 0);
    EXPECT(pace.take(now) == kSoon && pace.take(now + 1) == kSoon - 1);
    for (int i = 0; i < 3; ++i) {
      now += kSoon;
      EXPECT(pace.take(now) == 0 && pace.take(now) == kSoon);
    }
    now += uint64_t{Pace::kAtOnce} * kSoon;
  }
  for (int i = 0; i < 100; ++i) {
    pace.hurry();
    EXPECT(pace.take(now) == 0);
  }
  EXPECT(pace.take(now) == kSoon);
  // One that comes as seldom as the pace asks for never waits.
  Pace seldom(kSoon);
  for (uint64_t at = kStart; at < kStart + 100 * kSoon; at += kSoon) EXPECT(seldom.take(at) == 0);
  Pace none;
  for (int i = 0; i < 100; ++i) EXPECT(none.take(kStart) == 0);
}

/** Takes the turns that a pacer lets through at once. */
void useUp(Pacer* pacer, uint64_t now) {
  for (uint32_t i = 0; i < Pace::kAtOnce; ++i) EXPECT(pacer->pass(now));
}

void tooSoon() {
  BusySet set;
  Pacer pacer(set.fd());
  pacer.pace(kHour);
  useUp(&pacer, kStart + kHour);
  EXPECT(readable(pacer));
  EXPECT(!pacer.pass(kStart + kHour + 1));
  EXPECT(!readable(pacer));  // shut: the loop is not woken
  EXPECT(!pacer.pass(kStart + 2 * uint64_t{kHour} - 1));
  EXPECT(pacer.pass(kStart + 2 * uint64_t{kHour}));
  EXPECT(readable(pacer));  // and open again
  EXPECT(!pacer.pass(kStart + 2 * uint64_t{kHour} + 1));
}

void whatIsLeftOver() {
  BusySet set;
  Pacer pacer(set.fd());
  pacer.pace(kHour);
  useUp(&pacer, kStart + kHour);
  pacer.hurry();
  EXPECT(pacer.pass(kStart + kHour + 1));
  EXPECT(!pacer.pass(kStart + kHour + 2));
}

/** Shut, with something to do: the alarm wakes the loop by itself. */
void alarmRings() {
  BusySet set;
  Pacer pacer(set.fd());
  pacer.pace(kSoon);
  useUp(&pacer, kStart);
  EXPECT(!pacer.pass(kStart + 1));
  EXPECT(readable(pacer, -1));
  EXPECT(pacer.pass(kStart + kSoon));
  set.rest();
  EXPECT(!readable(pacer));  // it rings once
}

}  // namespace

int main() try {
  owedByTheBusy();
  withoutPace();
  tooSoon();
  whatIsLeftOver();
  alarmRings();
  puts("pacer: open, shut, and open again");
} catch (const std::exception& error) {
  fail(error.what(), __FILE__, __LINE__);
}
