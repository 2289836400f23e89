// What the engines of Client and of Feeds have in common: requests, what is told to the program,
// waits.
#ifndef SPRITES_CLIENT_ENGINE_BASE_H_
#define SPRITES_CLIENT_ENGINE_BASE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "answers.h"
#include "transport.h"
#include "waits.h"

namespace sprites {

class EngineBase {
 public:
  // For any thread.
  void wake() { transport_.wake(); }
  void tryNow() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tryNow_ = true;
    }
    wake();
  }

  /** For the thread that takes the turns. */
  int fd() { return transport_.fd(); }

 protected:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /** @param options  of the engine, which keeps them for as long as it lives */
  template <typename Options>
  explicit EngineBase(const Options& options)
      : transport_({options.server, options.caFile, options.connectTimeout, options.maxAnswerBytes,
                    options.proxy, options.headers}),
        onLog_(options.onLog),
        maxBackoff_(std::min(kWaitMost, options.maxBackoff)) {}

  void say(const std::string& line) {
    if (onLog_) events_.emplace_back([this, line] { onLog_(line); });
  }
  void say(const Reply& reply) {
    say(reply.line + ": " + (reply.answered ? std::to_string(reply.status) : reply.error));
  }
  void say(const char* state, const Why& why) {
    say(state + (why.line.empty() ? "" : ": " + why.line));
  }

  /** noexcept is the promise of client.h: an exception out of a callback ends the program. */
  void callBack() noexcept {
    for (const auto& event : std::exchange(events_, {})) event();
  }

  /** Full jitter under a ceiling that doubles, so that a crowd that lost contact at once spreads.
   */
  Millis backoff(uint64_t failures) {
    const Millis most = longestWait(failures, people_, maxBackoff_);
    return Millis(std::uniform_int_distribution<Millis::rep>(0, most.count())(random_));
  }

  /** What the server asked for and up to half of it on top, at least as long as the wait above. */
  Millis serverWait(Millis asked, uint64_t failures) {
    std::uniform_int_distribution<Millis::rep> spread(0, asked.count() / 2);
    return std::min(kWaitServer, std::max(backoff(failures), asked + Millis(spread(random_))));
  }

  Transport transport_;
  mutable std::mutex mutex_;
  bool tryNow_ = false;  // under mutex_

  // The engine's thread only.
  std::vector<std::function<void()>> events_;
  std::optional<uint64_t> people_;  // how many clients there are, as the server has said last

 private:
  const std::function<void(const std::string& line)> onLog_;
  const Millis maxBackoff_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_ENGINE_BASE_H_
