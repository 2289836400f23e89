// load: the clients and throwers of npm run bench, as a program; test/bench/run.js runs it.
//
//   load --port 8080 --clients 5000 --throwers 64 --seconds 5
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "../watchers/measure.h"
#include "answer.h"
#include "load.h"

namespace {

using load::Options;
using std::string;

[[noreturn]] void usage(const string& wrong) {
  std::fprintf(stderr,
               "load: %s\n"
               "load --port P [--contract sprites|nchan] [--clients N] [--throwers T]\n"
               "     [--warmup S] [--seconds S] [--pids P,P] [--leave yes]\n",
               wrong.c_str());
  std::exit(2);
}

Options readOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const string name = argv[i];
    if (i + 1 == argc) usage(name + " wants a value");
    const string value = argv[i + 1];
    const double number = std::atof(value.c_str());
    if (name == "--port") {
      options.port = static_cast<uint16_t>(number);
    } else if (name == "--contract") {
      options.contract = value;
    } else if (name == "--clients") {
      options.clients = static_cast<size_t>(number);
    } else if (name == "--throwers") {
      options.throwers = static_cast<size_t>(number);
    } else if (name == "--warmup") {
      options.warmup = number;
    } else if (name == "--seconds") {
      options.seconds = number;
    } else if (name == "--leave") {
      options.leave = value == "yes";
    } else if (name == "--pids") {
      if (!watchers::readPids(value, &options.pids)) usage("--pids wants numbers");
    } else {
      usage("unknown option " + name);
    }
  }
  if (options.port == 0) usage("--port is wanted");
  if (options.clients == 0 || options.throwers == 0) usage("at least one client and one thrower");
  return options;
}

void raiseFiles(const Options& options) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const size_t wanted = options.clients + options.throwers + 16;
  if (files.rlim_max < wanted) {
    load::fail("ulimit -n is " + std::to_string(files.rlim_max) + ", and " +
               std::to_string(wanted) + " files are wanted");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = readOptions(argc, argv);
  raiseFiles(options);
  return load::runLoad(options);
}
