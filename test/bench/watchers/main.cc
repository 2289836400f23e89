// watchers: watches one server by one protocol, publishes, and says how late what came was.
//
//   watchers --port 8080 --protocol sprites-poll --connections 120 --bytes 165000
//
// Crowd (crowd.h) does it; test/bench/feeds.js and transports/run.js are who runs it.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "crowd.h"
#include "measure.h"
#include "protocol.h"

namespace {

using watchers::Connection;
using watchers::Listener;
using watchers::Options;
using watchers::Protocol;
using watchers::Stamp;

[[noreturn]] void usage(const std::string& wrong) {
  fprintf(stderr,
          "watchers: %s\n"
          "watchers --port P --protocol NAME [--connections N] [--stalled SHARE] [--ramp N]\n"
          "         [--addresses N] [--bytes N] [--patch N] [--every S] [--seconds S]\n"
          "         [--warmup N] [--warmup-every S] [--pids P,P] [--token T] [--grow N]\n"
          "         [--changing SHARE] [--cut S] [--again S] [--awake 1] [--then NAME]\n"
          "watchers --protocol NAME --read BYTES <recording\n"
          "protocols: sprites-poll, sprites-stream, sprites-cached, also with -grant, -delta;\n"
          "           sprites-once; ws; sse;\n"
          "           nchan-stream, nchan-ws, nchan-poll; engine.io, socket.io, primus, sockjs\n",
          wrong.c_str());
  exit(2);
}

std::unique_ptr<Protocol> protocolOf(const std::string& name, const std::string& token) {
  auto protocol = watchers::makeProtocol(name, token);
  if (!protocol) usage("there is no protocol " + name);
  return protocol;
}

struct Option {
  const char* name;
  std::variant<uint16_t Options::*, uint32_t Options::*, size_t Options::*, double Options::*,
               std::string Options::*>
      to;
};

const Option kOptions[] = {
    {"--port", &Options::port},
    {"--protocol", &Options::protocol},
    {"--then", &Options::then},
    {"--connections", &Options::connections},
    {"--stalled", &Options::stalled},
    {"--ramp", &Options::ramp},
    {"--addresses", &Options::addresses},
    {"--bytes", &Options::bytes},
    {"--patch", &Options::patch},
    {"--every", &Options::every},
    {"--seconds", &Options::seconds},
    {"--warmup", &Options::warmup},
    {"--warmup-every", &Options::warmupEvery},
    {"--grow", &Options::grow},
    {"--changing", &Options::changing},
    {"--cut", &Options::cut},
    {"--again", &Options::again},
    {"--awake", &Options::awake},
    {"--read", &Options::read},
    {"--token", &Options::token},
};

/** Sets an option whose value is a number of that type. */
template <typename Number>
void setNumber(Options* options, const Option& option, const std::string& text) {
  const auto* const to = std::get_if<Number Options::*>(&option.to);
  if (to != nullptr) options->** to = static_cast<Number>(atof(text.c_str()));
}

/** Sets an option to what its text says. */
void set(Options* options, const Option& option, const std::string& text) {
  const auto* const to = std::get_if<std::string Options::*>(&option.to);
  if (to != nullptr) options->** to = text;
  setNumber<uint16_t>(options, option, text);
  setNumber<uint32_t>(options, option, text);
  setNumber<size_t>(options, option, text);
  setNumber<double>(options, option, text);
}

Options readOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) usage(name + " wants a value");
    if (name == "--pids") {
      if (!watchers::readPids(argv[i + 1], &options.pids)) usage("--pids wants numbers");
      continue;
    }
    const auto* const option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                            [&](const Option& one) { return one.name == name; });
    if (option == std::end(kOptions)) usage("unknown option " + name);
    set(&options, *option, argv[i + 1]);
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

// What a real server once sent to one watcher, read again without it: the readers are held to it.
class Reader : public Listener {
 public:
  void message(Connection&, std::string_view sample) override {
    const Stamp stamp = Stamp::in(sample);
    if (stamp.version > 0) versions_.push_back(stamp.version);
  }

  void send(Connection&, std::string_view bytes) override {
    ++sends_;
    sent_ += bytes.size();
  }

  [[noreturn]] void broken(const std::string& why) override {
    fprintf(stderr, "watchers: %s\n", why.c_str());
    exit(1);
  }

  void print() const {
    printf("{\"event\":\"read\",\"versions\":[");
    for (size_t i = 0; i < versions_.size(); ++i) {
      printf("%s%" PRIu64, i > 0 ? "," : "", versions_[i]);
    }
    printf("],\"sends\":%zu,\"sent\":%zu}\n", sends_, sent_);
  }

 private:
  std::vector<uint64_t> versions_;
  size_t sends_ = 0;  // requests, pongs
  size_t sent_ = 0;   // bytes of them
};

/**
 * Reads stdin to its end as if it came over a connection, so many bytes at a time, and prints one
 * object: the versions of the messages in it, and what would have been sent.
 */
void readRecording(Protocol& protocol, size_t piece) {
  std::string bytes;
  char buffer[65536];
  for (ssize_t got; (got = ::read(STDIN_FILENO, buffer, sizeof buffer)) > 0;) {
    bytes.append(buffer, static_cast<size_t>(got));
  }
  Reader reader;
  Connection connection;
  std::string request;
  protocol.open(connection, &request);
  for (size_t at = 0; at < bytes.size(); at += piece) {
    protocol.read(connection, std::string_view(bytes).substr(at, piece), &reader);
  }
  reader.print();
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
  auto protocol = protocolOf(options.protocol, options.token);
  auto then = options.then.empty() ? nullptr : protocolOf(options.then, options.token);
  if (options.read > 0) {
    readRecording(*protocol, options.read);
  } else {
    watchers::Crowd(options, std::move(protocol), std::move(then)).run();
  }
}
