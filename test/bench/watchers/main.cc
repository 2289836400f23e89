// watchers: watches one server by one protocol, publishes, and reports how late the documents were.
//
//   watchers --port=8080 --protocol=sprites-poll --connections=120 --bytes=165000
//   watchers --protocol=sprites-poll --read=1460 <recording
//
// Crowd (crowd.h) does the work; test/bench/contenders.js starts this program.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "crowd.h"
#include "protocol.h"

namespace {

using watchers::Connection;
using watchers::Listener;
using watchers::Options;
using watchers::Protocol;
using watchers::Stamp;

[[noreturn]] void refuse(const std::string& why) {
  fprintf(stderr, "watchers: %s (it is started by test/bench/contenders.js)\n", why.c_str());
  exit(2);
}

std::unique_ptr<Protocol> protocolOf(const std::string& name, const std::string& token) {
  auto protocol = watchers::makeProtocol(name, token);
  if (!protocol) refuse("there is no protocol " + name);
  return protocol;
}

Options readOptions(int argc, char** argv) {
  using swarm::number;
  Options options;
  std::string error;
  const swarm::Setters setters = {
      {"port", number(&options.port)},
      {"protocol", swarm::text(&options.protocol)},
      {"then", swarm::text(&options.secondProtocol)},
      {"connections", number(&options.connections)},
      {"stalled", number(&options.stalledShare)},
      {"addresses", number(&options.addresses)},
      {"bytes", number(&options.bytes)},
      {"every", number(&options.every)},
      {"seconds", number(&options.seconds)},
      {"warmup", number(&options.warmup)},
      {"warmup-every", number(&options.warmupEvery)},
      {"grow", number(&options.newPerSecond)},
      {"changing", number(&options.changingShare)},
      {"cut", number(&options.cutSeconds)},
      {"again", number(&options.reopenAfter)},
      {"awake", swarm::flag(&options.staysAwake)},
      {"read", number(&options.pieceBytes)},
      {"token", swarm::text(&options.token)},
  };
  if (!swarm::readArguments(argc, argv, setters, &error)) refuse(error);
  const bool isComplete = options.port > 0 && options.connections > 0 && options.addresses > 0 &&
                          options.every > 0 && options.seconds > 0;
  if (options.pieceBytes == 0 && !isComplete) {
    refuse("port, connections, addresses, every and seconds must be above 0");
  }
  return options;
}

// Reads a recording of a real server's bytes to one watcher, to test the protocols' readers.
class RecordingReader : public Listener {
 public:
  void onMessage(Connection&, std::string_view sample) override {
    const Stamp stamp = Stamp::in(sample);
    if (stamp.version > 0) versions_.push_back(stamp.version);
  }

  void send(Connection&, std::string_view) override { ++sends_; }

  [[noreturn]] void fail(const std::string& why) override {
    fprintf(stderr, "watchers: %s\n", why.c_str());
    exit(1);
  }

  void print() const {
    std::string list;
    for (const uint64_t version : versions_)
      list += (list.empty() ? "" : ",") + std::to_string(version);
    printf("{\"event\":\"read\",\"versions\":[%s],\"sends\":%zu}\n", list.c_str(), sends_);
  }

 private:
  std::vector<uint64_t> versions_;
  size_t sends_ = 0;  // requests, pongs
};

/**
 * Reads stdin to its end like a connection, `piece` bytes at a time, and prints one object: the
 * versions of the messages, and the number of sends.
 */
void readRecording(Protocol& protocol, size_t piece) {
  std::string bytes;
  char buffer[65536];
  for (ssize_t got; (got = ::read(STDIN_FILENO, buffer, sizeof buffer)) > 0;) {
    bytes.append(buffer, static_cast<size_t>(got));
  }
  RecordingReader reader;
  Connection connection;
  std::string request;
  protocol.makeOpenRequest(connection, &request);
  for (size_t at = 0; at < bytes.size(); at += piece) {
    protocol.read(connection, std::string_view(bytes).substr(at, piece), &reader);
  }
  reader.print();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = readOptions(argc, argv);
  swarm::raiseFileLimit();
  auto protocol = protocolOf(options.protocol, options.token);
  auto secondProtocol =
      options.secondProtocol.empty() ? nullptr : protocolOf(options.secondProtocol, options.token);
  if (options.pieceBytes > 0) {
    readRecording(*protocol, options.pieceBytes);
  } else {
    watchers::runCrowd(options, std::move(protocol), std::move(secondProtocol));
  }
}
