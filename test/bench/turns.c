// Preloaded into a measured server (LD_PRELOAD=turns.so): measures the turns of its main thread's
// loop, by the wall clock and in CPU time. A turn is the time between two epoll waits, on any epoll
// set. The longest turns are kept for take_turns (probe.js).
//
// Cost: 0.05 µs a turn. Reading CPU time is a system call, so it is read once in LEAST_MS
// milliseconds of turns: a turn's CPU time may be that much too high. Rejected: perf_hooks'
// monitorEventLoopDelay, whose timer wakes the process a hundred times a second; libuv's own turns,
// which are few in a server that sleeps in an epoll set of its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LEAST_MS 1.0

typedef int Wait(int, struct epoll_event*, int, int, const sigset_t*);

static double turn_began, last_cpu;
static double longest, longest_cpu;
static double wall_since_cpu_read; /* length of the turns since CPU time was last read */

static double read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int is_main_thread(void) {
  static __thread int is_main = -1;
  if (is_main < 0) is_main = syscall(SYS_gettid) == getpid();
  return is_main;
}

/** Ends a turn. A sleeping thread uses no CPU: the count at the last end is that at this begin. */
static void end_turn(void) {
  if (turn_began == 0) return;
  const double wall = read_clock(CLOCK_MONOTONIC) - turn_began;
  if (wall > longest) longest = wall;
  wall_since_cpu_read += wall;
  if (wall_since_cpu_read < LEAST_MS) return;
  wall_since_cpu_read = 0;
  const double used = read_clock(CLOCK_THREAD_CPUTIME_ID);
  if (used - last_cpu > longest_cpu) longest_cpu = used - last_cpu;
  last_cpu = used;
}

/** Returns the longest turns since the last call, in milliseconds. */
void take_turns(double* longest_wall, double* longest_own) {
  *longest_wall = longest;
  *longest_own = longest_cpu;
  longest = longest_cpu = 0;
}

static int measure(int set, struct epoll_event* events, int most, int timeout,
                   const sigset_t* signals) {
  static Wait* real_wait;
  if (real_wait == NULL) real_wait = (Wait*)dlsym(RTLD_NEXT, "epoll_pwait");
  if (!is_main_thread()) return real_wait(set, events, most, timeout, signals);
  end_turn();
  const int ready = real_wait(set, events, most, timeout, signals);
  const int error = errno;
  turn_began = read_clock(CLOCK_MONOTONIC);
  errno = error;
  return ready;
}

int epoll_pwait(int set, struct epoll_event* events, int most, int timeout,
                const sigset_t* signals) {
  return measure(set, events, most, timeout, signals);
}

int epoll_wait(int set, struct epoll_event* events, int most, int timeout) {
  return measure(set, events, most, timeout, NULL);
}
