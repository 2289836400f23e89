// watchers: watches one server by one protocol, publishes, and says how late what came was.
//
//   watchers --port 8080 --protocol sprites-poll --connections 120 --bytes 165000
//
// Crowd (crowd.h) does it; test/bench/feeds.js and transports/run.js are who runs it.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "crowd.h"
#include "measure.h"
#include "recording.h"

namespace {

using watchers::Options;
using watchers::Protocol;

[[noreturn]] void usage(const std::string& wrong) {
  fprintf(stderr,
          "watchers: %s\n"
          "watchers --port P --protocol NAME [--connections N] [--stalled SHARE] [--ramp N]\n"
          "         [--addresses N] [--bytes N] [--patch N] [--every S] [--seconds S]\n"
          "         [--warmup N] [--warmup-every S] [--pids P,P] [--token T] [--grow N]\n"
          "         [--changing SHARE] [--cut S] [--again S] [--awake 1] [--then NAME]\n"
          "watchers --protocol NAME --read BYTES <recording\n"
          "protocols: sprites-poll, sprites-stream, both also with -delta; sprites-once; ws; sse;\n"
          "           nchan-stream, nchan-ws, nchan-poll; engine.io, socket.io, primus, sockjs\n",
          wrong.c_str());
  exit(2);
}

std::unique_ptr<Protocol> makeProtocol(const std::string& name, const std::string& token) {
  auto protocol = watchers::makeSprites(name, token);
  if (!protocol) protocol = watchers::makeWs(name);
  if (!protocol) protocol = watchers::makeFramed(name);
  if (!protocol) protocol = watchers::makeSse(name);
  if (!protocol) protocol = watchers::makeNchan(name);
  if (!protocol) usage("there is no protocol " + name);
  return protocol;
}

Options readOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) usage(name + " wants a value");
    const std::string value = argv[i + 1];
    const double number = atof(value.c_str());
    if (name == "--port") {
      options.port = static_cast<uint16_t>(number);
    } else if (name == "--protocol") {
      options.protocol = value;
    } else if (name == "--then") {
      options.then = value;
    } else if (name == "--connections") {
      options.connections = static_cast<uint32_t>(number);
    } else if (name == "--stalled") {
      options.stalled = number;
    } else if (name == "--ramp") {
      options.ramp = number;
    } else if (name == "--addresses") {
      options.addresses = static_cast<uint32_t>(number);
    } else if (name == "--bytes") {
      options.bytes = static_cast<size_t>(number);
    } else if (name == "--patch") {
      options.patch = static_cast<size_t>(number);
    } else if (name == "--every") {
      options.every = number;
    } else if (name == "--seconds") {
      options.seconds = number;
    } else if (name == "--warmup") {
      options.warmup = static_cast<uint32_t>(number);
    } else if (name == "--warmup-every") {
      options.warmupEvery = number;
    } else if (name == "--pids") {
      if (!watchers::readPids(value, &options.pids)) usage("--pids wants numbers");
    } else if (name == "--grow") {
      options.grow = number;
    } else if (name == "--changing") {
      options.changing = number;
    } else if (name == "--cut") {
      options.cut = number;
    } else if (name == "--again") {
      options.again = number;
    } else if (name == "--awake") {
      options.awake = number;
    } else if (name == "--read") {
      options.read = static_cast<size_t>(number);
    } else if (name == "--token") {
      options.token = value;
    } else {
      usage("unknown option " + name);
    }
  }
  if (options.read > 0) return options;
  if (options.port == 0) usage("--port is wanted");
  if (options.connections == 0 || options.addresses == 0) usage("at least one of each");
  if (options.every <= 0 || options.seconds <= 0) usage("some time is wanted");
  if (options.stalled < 0 || options.stalled >= 1) usage("--stalled is a share");
  if (options.changing < 0 || options.changing > 1) usage("--changing is a share");
  if (options.grow < 0 || options.cut < 0 || options.again < 0) usage("none is below 0");
  return options;
}

void raiseFiles() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = readOptions(argc, argv);
  raiseFiles();
  auto protocol = makeProtocol(options.protocol, options.token);
  auto then = options.then.empty() ? nullptr : makeProtocol(options.then, options.token);
  if (options.read > 0) {
    watchers::readRecording(*protocol, options.read);
  } else {
    watchers::Crowd(options, std::move(protocol), std::move(then)).run();
  }
}
