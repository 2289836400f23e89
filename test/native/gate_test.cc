// The gate before an epoll set: when it is readable, and when a turn may begin. Times are given to
// it, so that nothing here waits but for the one alarm that is to ring.
//
//   gate_test
#include "../../native/gate.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

using sprites::Gate;

[[noreturn]] void fail(const char* what, int line) {
  fprintf(stderr, "gate_test.cc:%d: %s\n", line, what);
  abort();
}
#define EXPECT(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

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

bool readable(const Gate& gate, int milliseconds = 0) {
  pollfd one = {gate.fd(), POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1;
}

void withoutPace() {
  BusySet set;
  Gate gate(set.fd());
  for (int i = 0; i < 3; ++i) EXPECT(readable(gate) && gate.pass(kStart));
  set.rest();
  EXPECT(!readable(gate));
}

void tooSoon() {
  BusySet set;
  Gate gate(set.fd());
  gate.pace(kHour);
  EXPECT(gate.pass(kStart + kHour));
  EXPECT(readable(gate));
  EXPECT(!gate.pass(kStart + kHour + 1));
  EXPECT(!readable(gate));  // shut: the loop is not woken
  EXPECT(!gate.pass(kStart + 2 * uint64_t{kHour} - 1));
  EXPECT(gate.pass(kStart + 2 * uint64_t{kHour}));
  EXPECT(readable(gate));  // and open again
  EXPECT(!gate.pass(kStart + 2 * uint64_t{kHour} + 1));
}

void whatIsLeftOver() {
  BusySet set;
  Gate gate(set.fd());
  gate.pace(kHour);
  EXPECT(gate.pass(kStart + kHour));
  gate.hurry();
  EXPECT(gate.pass(kStart + kHour + 1));
  EXPECT(!gate.pass(kStart + kHour + 2));
}

/** Shut, with something to do: the alarm wakes the loop by itself. */
void alarmRings() {
  BusySet set;
  Gate gate(set.fd());
  gate.pace(kSoon);
  EXPECT(gate.pass(kStart));
  EXPECT(!gate.pass(kStart + 1));
  EXPECT(readable(gate, -1));
  EXPECT(gate.pass(kStart + kSoon));
  set.rest();
  EXPECT(!readable(gate));  // it rings once
}

}  // namespace

int main() try {
  withoutPace();
  tooSoon();
  whatIsLeftOver();
  alarmRings();
  puts("gate: open, shut, and open again");
} catch (const std::exception& error) {
  fail(error.what(), __LINE__);
}
