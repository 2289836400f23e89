#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <exception>
#include <string>

#include "engine.h"
#include "options.h"

namespace swarm {

namespace {

/** The soft limit of files is for the careless; this program needs what the hard one allows. */
void raiseFileLimit() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int run(int argc, char** argv, const OpenTls& openTls) {
  Options options;
  std::string error;
  if (!readOptions(argc, argv, &options, &error)) {
    fprintf(stderr, "swarm: %s (this program is started by bin/sprites-swarm)\n", error.c_str());
    return 2;
  }
  // A terminal's Ctrl-C reaches the whole group, and SIGTERM the whole unit of systemd: the parent
  // asks for the account first.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_TIMERSLACK, 1);
  raiseFileLimit();
  try {
    const std::unique_ptr<Tls> tls = openTls ? openTls(options.serverName) : nullptr;
    Engine engine(options, tls.get());
    engine.run();
  } catch (const std::exception& failure) {
    fprintf(stderr, "swarm: %s\n", failure.what());
    return 2;
  }
  return 0;
}

}  // namespace swarm
