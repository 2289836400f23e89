// How long to wait before asking again; the same for every client, see lib/client/README.md.
#ifndef SPRITES_CLIENT_ENGINE_BASE_H_
#define SPRITES_CLIENT_ENGINE_BASE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "answers.h"
#include "sprites/connection.h"
#include "transport.h"

namespace sprites {

constexpr Millis kWaitFirst{500};        // the longest wait after the first failure
constexpr Millis kWaitMost{15000};       // of any: below a lease, to be back in time for the place
constexpr Millis kWaitServer{600000};    // of what a server may ask for
constexpr Millis kWaitSmallTorus{1000};  // the least bound where it is known how many clients are

constexpr unsigned kShortestHold = 5;  // seconds; the server's lower bound
constexpr unsigned kUsualHold = 120;   // seconds, where the server did not tell
constexpr Millis kPollSlack{15000};
constexpr Millis kQuick{1000};  // an empty answer sooner than this counts as a failure for the wait
constexpr Millis kLong{10000};  // a poll parked so long tells whether the network lets it park
constexpr unsigned kCutsMost = 2;  // polls in a row that were cut off: then the hold is shortened
constexpr Millis kPatienceMost{86400000};  // of a caller that waits for the end
constexpr Millis kLeaveReserve{1500};  // of the time to leave this is kept for telling the server

/**
 * The longest wait after so many failures in a row, from 1. Where it is known how many clients
 * there are it is bounded by a millisecond for each: a small torus finds its server within a
 * second.
 */
inline Millis longestWait(uint64_t failures, std::optional<uint64_t> clients, Millis most) {
  const uint64_t doublings = std::min<uint64_t>(failures > 0 ? failures - 1 : 0, 16);
  if (clients) {
    const Millis each(static_cast<Millis::rep>(std::min<uint64_t>(*clients, 1U << 30)));
    most = std::min(most, std::max(each, kWaitSmallTorus));
  }
  return std::min(kWaitFirst * (1U << doublings), most);
}

/** How long the answer to a poll of so many seconds may take. */
inline Millis pollTimeout(unsigned hold) {
  const Millis held = std::chrono::seconds(hold);
  return held + held / 4 + kPollSlack;
}

/** The hold to ask for, in seconds, where polls are cut off that were parked for so long. */
template <typename Duration>
unsigned shorterHold(Duration parked) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(parked).count();
  return std::max(kShortestHold, static_cast<unsigned>(seconds * 3 / 4));
}

// What drives an engine: a thread of its own, or the callers of perform(), one at a time.

/**
 * Engine has turn(timeout), which is false once nothing more happens, wake() for any thread, and
 * fd().
 */
template <typename Engine>
class Driver {
 public:
  template <typename Options>
  Driver(Options options, GrantCallback grant) : engine(std::move(options), std::move(grant)) {}

  ~Driver() {
    if (!thread_.joinable()) return;
    stop_ = true;
    engine.wake();
    thread_.join();
  }

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  void start() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (started_) throw std::logic_error("sprites: the client was started already");
    if (driver_ != std::thread::id()) throw std::logic_error("sprites: perform() is running");
    thread_ = std::thread([this] { run(); });
    started_ = true;
  }

  bool perform(Millis timeout) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (driver_ == std::this_thread::get_id())
        throw std::logic_error("sprites: perform() is running");
      const auto isFree = [this] { return started_ || driver_ == std::thread::id(); };
      if (!changed_.wait_for(lock, std::clamp(timeout, Millis(0), kPatienceMost), isFree))
        return true;
      if (started_) throw std::logic_error("sprites: the client has a thread of its own");
      driver_ = std::this_thread::get_id();
      driven_ = true;
    }
    const struct Release {
      Driver* self;
      ~Release() {
        const std::lock_guard<std::mutex> lock(self->mutex_);
        self->driver_ = std::thread::id();
        self->changed_.notify_all();
      }
    } release{this};
    return engine.turn(timeout);
  }

  int fd() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (started_) throw std::logic_error("sprites: the client has a thread of its own");
    if (driven_ && !watched_) throw std::logic_error("sprites: fd() comes before perform()");
    watched_ = true;
    return engine.fd();
  }

  /** Where another thread takes the turns there is nothing to wait for. */
  Millis timeout() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool other = driver_ != std::thread::id() && driver_ != std::this_thread::get_id();
    return started_ || other ? Millis(60000) : engine.timeout();
  }

  /**
   * Waits until nothing more happens, and drives the engine where it has no thread of its own.
   *
   * @return whether it came to its end within `patience`; false from inside a callback, where there
   *         is no waiting
   */
  bool runToEnd(Millis patience) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::clamp(patience, Millis(0), kPatienceMost);
    std::unique_lock<std::mutex> lock(mutex_);
    if (driver_ == std::this_thread::get_id()) return false;
    if (started_) return changed_.wait_until(lock, deadline, [this] { return over_; });
    lock.unlock();
    for (;;) {
      const auto now = std::chrono::steady_clock::now();
      if (!perform(std::max(Millis(0), std::chrono::ceil<Millis>(deadline - now)))) return true;
      if (now >= deadline) return false;
    }
  }

  Engine engine;

 private:
  void run() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      driver_ = std::this_thread::get_id();
    }
    while (!stop_ && engine.turn(std::chrono::minutes(1))) {
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  std::thread::id driver_;  // under mutex_: the thread inside the engine
  bool started_ = false;    // under mutex_
  bool driven_ = false;     // under mutex_: by perform()
  bool watched_ = false;    // under mutex_: by fd()
  bool over_ = false;       // under mutex_
  std::atomic<bool> stop_{false};
};

// What the engines of Client and of Feeds have in common: requests, what is told to the program,
// waits.

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

  EngineBase(const ConnectionOptions& options, size_t maxAnswerBytes)
      : transport_(options, maxAnswerBytes),
        onLog_(options.onLog),
        maxBackoff_(std::min(kWaitMost, options.maxBackoff)) {
    if (maxBackoff_ < Millis(100)) {
      throw std::invalid_argument("sprites: maxBackoff is at least 100 ms");
    }
  }

  /** What is under mutex_, as it is now. */
  template <typename Value>
  Value locked(const Value& value) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return value;
  }

  // What one turn does of it; the time until something is due.
  virtual void takeInbox(Time now) = 0;
  virtual void startDue(Time now) = 0;
  virtual void readReplies(Time now) = 0;
  virtual Millis untilNext(Time now) const = 0;

  void takeTurn(Millis timeout) {
    transport_.settleFd();
    move();
    if (events_.empty()) {
      transport_.wait(std::min(timeout, untilNext(Clock::now())));
      move();
    }
    callBack();
    // The program has what came: the next poll, which acks it, goes out at once, not with its next
    // frame.
    move();
  }

  void say(const std::string& line) {
    if (onLog_) events_.emplace_back([this, line] { onLog_(line); });
  }
  void say(const Reply& reply) {
    say(reply.line + ": " + (reply.status > 0 ? std::to_string(reply.status) : reply.error));
  }

  /** Takes another state, or the same for another reason; false where it is neither. */
  template <typename State>
  bool enter(State* state, State next, const Why& why) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (*state == next && why_ == why.name) return false;
      *state = next;
      why_ = why.name;
    }
    say(toString(next) + (why.line.empty() ? "" : ": " + why.line));
    return true;
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

  /** How long to wait after one more failure. */
  Millis failed() { return backoff(++failures_); }

  /** What the server asked for and up to half of it on top, at least as long as the wait above. */
  Millis serverWait(Millis asked, uint64_t failures) {
    std::uniform_int_distribution<Millis::rep> spread(0, asked.count() / 2);
    return std::min(kWaitServer, std::max(backoff(failures), asked + Millis(spread(random_))));
  }

  /** A poll has ended that was parked for so long. @return whether it was long and cut off */
  bool endsCut(const Reply& reply, Clock::duration parked) {
    if (parked < kLong) return false;
    failures_ = 0;  // the network did let it park
    const bool isCutOff = isCut(reply);
    cuts_ = isCutOff ? cuts_ + 1 : 0;
    if (cuts_ >= kCutsMost) holdMost_ = std::min(holdMost_, shorterHold(parked));
    return isCutOff;
  }

  Transport transport_;
  mutable std::mutex mutex_;
  bool tryNow_ = false;  // under mutex_
  std::string why_;      // under mutex_: it is in its state

  // The engine's thread only.
  std::vector<std::function<void()>> events_;
  Time seen_;                       // when it has looked last what is due
  uint64_t failures_ = 0;           // in a row
  unsigned cuts_ = 0;               // long polls in a row that were cut off
  unsigned holdMost_ = kHoldMost;   // seconds, as the network between seems to allow
  std::optional<uint64_t> people_;  // how many clients there are, as the server has said last

 private:
  void move() {
    seen_ = Clock::now();
    takeInbox(seen_);
    startDue(seen_);
    readReplies(seen_);
  }

  const std::function<void(const std::string& line)> onLog_;
  const Millis maxBackoff_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_ENGINE_BASE_H_
