// A client of a simulated world that watches how many watch a feed, at all servers together.
#ifndef TEST_NATIVE_SIMULATED_HEADCOUNTS_H_
#define TEST_NATIVE_SIMULATED_HEADCOUNTS_H_

#include <string>
#include <string_view>

#include "simulated_clients.h"
#include "simulated_http.h"

namespace sim {

class Headcount : public Client, private Asking {
 public:
  /** In the end `watching` watch the feed. */
  Headcount(std::string key, uint64_t watching, uint32_t server)
      : key_(std::move(key)), all_(watching), server_(server), wire_(this, 0, 0x11000000, server) {
    machine->after(machine->below(2 * kSecond), this, 0);
  }

  void expectInTime() const override { wire_.expectInTime(); }
  void close() override { wire_.cut(false); }

  /** Of a feed that was never published nothing is told. */
  bool isUpToDate() const override {
    const Life* const life = hosts[server_]->life();
    return life != nullptr && (watching_ == all_ || life->newest(key_).version == 0);
  }

  void act(uint64_t) override {
    if (!crowd->calm && machine->chance(crowd->odds.resets)) wire_.cut(machine->below(2) == 0);
    if (!wire_.asks()) {
      wire_.ask("GET /feed/presence/" + key_ + "?after=" + cursor_ + " HTTP/1.1\r\nHost: s\r\n\r\n",
                kHold * kSecond + kAnswerTime);
    }
    machine->after(1 + machine->below(kSecond), this, 0);
  }

 private:
  void answered(uint32_t, int status, std::string_view reason, std::string_view body) override {
    if (status == 503) return;
    if (status != 200) {
      cursor_ = kNone;
      return expect(reason == "unknown-feed", "watchers: refused for no reason");
    }
    size_t at = 0;
    const uint64_t watching = numberIn(body, "\"watching\":", &at);
    if (watching == UINT64_MAX) return;
    watching_ = watching;
    machine->say("%" PRIu64 " are told to watch in all the world", watching_);
    const size_t begin = body.find("\"cursor\":\"") + 10;
    cursor_ = body.substr(begin, body.find('"', begin) - begin);
  }

  void lost(uint32_t) override {}

  inline static const std::string kNone = "none";

  const std::string key_;
  const uint64_t all_;
  const uint32_t server_;
  Wire wire_;
  std::string cursor_ = kNone;
  uint64_t watching_ = 0;  // that it was told of last
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_HEADCOUNTS_H_
