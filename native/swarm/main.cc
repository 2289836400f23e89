// The swarm's engine: thousands of clients of the wire contract in one process, on plain epoll. It
// is started by bin/sprites-swarm, which tells it what to do on stdin and adds up what it says on
// stdout.
//
//   lib/swarm ── commands ─▶ Engine ──▶ Clients   joins and parked polls, one connection each
//             ◀── ticks ───    │   └──▶ Lanes     throws, leaves: a few connections
//                              Core: wheel, histograms, account, counters
//
// Costs: one epoll_pwait2 for up to 256 events; a sprite is a send and a recv at its thrower and a
// recv and a send at its receiver; no allocation from throw to ack. 88 bytes a parked client,
// besides its socket. Not a thread per core: the server under test shares the machine, and a
// process per core does the same without a lock. Not io_uring: many hosts forbid it.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <exception>
#include <string>

#include "engine.h"
#include "options.h"

namespace {

/** The soft limit of files is for the careless; this program needs what the hard one allows. */
void raiseFileLimit() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int main(int argc, char** argv) {
  swarm::Options options;
  std::string error;
  if (!swarm::readOptions(argc, argv, &options, &error)) {
    fprintf(stderr, "swarm: %s (this program is started by bin/sprites-swarm)\n", error.c_str());
    return 2;
  }
  // A terminal's Ctrl-C reaches the whole group: the parent asks for the account first.
  signal(SIGINT, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_TIMERSLACK, 1);
  raiseFileLimit();
  try {
    swarm::Engine engine(options);
    engine.run();
  } catch (const std::exception& failure) {
    fprintf(stderr, "swarm: %s\n", failure.what());
    return 2;
  }
  return 0;
}
