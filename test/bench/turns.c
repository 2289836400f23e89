// Preloaded into a server under measurement (LD_PRELOAD=turns.so, and perhaps TURNS=FILE): what the
// turns of its main thread's loop take, on the clock and of the processor. Whichever set it sleeps
// in: a turn is what comes between two waits.
//
//   epoll_wait ──wakes──▶ ready to run ──▶ runs ⇄ waits for a processor ⇄ sleeps ──▶ epoll_wait
//                         └── woken late ─┘└────────────── one turn ──────────────┘
//
// The longest on the clock, and of CPU, are kept for take_turns (probe.js). In FILE there is a line
// for each turn of at least LEAST milliseconds, all in milliseconds: the turn from when it was to
// begin, of that its own CPU, and of that what the thread was ready to run and did not, since
// others had the processors (the kernel's own account: /proc/thread-self/schedstat). What is left
// is sleep: a page that the disk has, another thread's lock.
//
// Cost: 0.05 µs a turn, with FILE some 3 µs. CPU time is a system call: without FILE it is asked
// for once in LEAST milliseconds of turns, so a turn's may be that much too high. Rejected:
// perf_hooks' monitorEventLoopDelay, whose timer wakes the process a hundred times a second;
// libuv's own turns, of which a door that sleeps in its own set makes few.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LEAST 1.0

typedef int Wait(int, struct epoll_event*, int, int, const sigset_t*);

static int out = -1;
static int account = -1;
static double began, cpu, waited;
static double longest, longest_cpu;
static double unasked; /* of turns since the CPU was asked for */

static double read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/** Milliseconds for which this thread was ready to run and did not, in all; 0 without FILE. */
static double read_waited(void) {
  if (out < 0) return 0;
  char text[128];
  const ssize_t length = pread(account, text, sizeof text - 1, 0);
  if (length <= 0) return 0;
  text[length] = 0;
  unsigned long long ran, queued;
  return sscanf(text, "%llu %llu", &ran, &queued) == 2 ? (double)queued / 1e6 : 0;
}

static int is_measured(void) {
  static __thread int known = -1;
  if (known >= 0) return known;
  known = syscall(SYS_gettid) == getpid();
  if (known && getenv("TURNS") != NULL) {
    out = open(getenv("TURNS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    account = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (out < 0 || account < 0) abort();
  }
  return known;
}

/** The thread uses no CPU in its sleep: that of the last turn's end is that of this one's begin. */
static void end_turn(void) {
  const double took = read_clock(CLOCK_MONOTONIC) - began;
  if (began == 0) return;
  if (took > longest) longest = took;
  unasked += took;
  if (out < 0 && unasked < LEAST) return;
  unasked = 0;
  const double used = read_clock(CLOCK_THREAD_CPUTIME_ID);
  const double own = used - cpu;
  cpu = used;
  if (own > longest_cpu) longest_cpu = own;
  if (out < 0 || took < LEAST) return;
  dprintf(out, "%.1f %.3f %.3f %.3f\n", began, took, own, read_waited() - waited);
}

/** The longest since the last call, in milliseconds. */
void take_turns(double* wall, double* own) {
  *wall = longest;
  *own = longest_cpu;
  longest = longest_cpu = 0;
}

/** The account goes on when the thread runs: what it shows after a wait is how late it was woken.
 */
static void begin_turn(double waited_before) {
  waited = waited_before;
  began = read_clock(CLOCK_MONOTONIC) - (read_waited() - waited_before);
}

static int measure(int set, struct epoll_event* events, int most, int timeout,
                   const sigset_t* signals) {
  static Wait* real;
  if (real == NULL) real = (Wait*)dlsym(RTLD_NEXT, "epoll_pwait");
  if (!is_measured()) return real(set, events, most, timeout, signals);
  end_turn();
  const double waited_before = read_waited();
  const int ready = real(set, events, most, timeout, signals);
  const int error = errno;
  begin_turn(waited_before);
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
