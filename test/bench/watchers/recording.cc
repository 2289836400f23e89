#include "recording.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "stamp.h"

namespace watchers {

namespace {

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

}  // namespace

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

}  // namespace watchers
