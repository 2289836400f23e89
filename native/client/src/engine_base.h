// The engines' common parts: the waits between requests, which are the same for every client (see
// lib/client/README.md), the driver of an engine, and the engines' base.
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

constexpr Millis kMaxFirstBackoff{500};     // longest wait after the first failure
constexpr Millis kMaxBackoff{15000};        // longest backoff: below a lease, to keep the place
constexpr Millis kMaxServerWait{600000};    // longest wait that a server may ask for
constexpr Millis kSmallTorusBackoff{1000};  // least bound of the backoff by the number of clients

constexpr unsigned kShortestHold = 5;  // seconds; the server's lower bound
constexpr unsigned kUsualHold = 120;   // seconds, if the server has not told its own
constexpr Millis kPollSlack{15000};
constexpr Millis kEarlyAnswer{1000};  // an empty answer and its "retry" in less are a failure
constexpr Millis kLongPark{10000};  // a poll parked so long shows that the network lets polls park
constexpr unsigned kMaxPollFailures = 3;  // after them only an answered poll proves contact
constexpr unsigned kMaxCutOffPolls = 2;   // cut-off polls in a row that shorten the hold
constexpr Millis kMaxPatience{86400000};  // longest wait of perform() and close()
constexpr Millis kLeaveReserve{1500};     // part of the time to leave that POST /leave has

/**
 * Returns the longest backoff after so many failures in a row, counted from 1. If the number of
 * clients is known, a millisecond per client, at least 1 s, is its bound: a small torus finds its
 * server within a second.
 */
inline Millis longestWait(uint64_t failures, std::optional<uint64_t> clients, Millis cap) {
  const uint64_t doublings = std::min<uint64_t>(failures > 0 ? failures - 1 : 0, 16);
  if (clients) {
    const Millis each(static_cast<Millis::rep>(std::min<uint64_t>(*clients, 1U << 30)));
    cap = std::min(cap, std::max(each, kSmallTorusBackoff));
  }
  return std::min(kMaxFirstBackoff * (1U << doublings), cap);
}

/** Returns the time limit of a poll with that hold, in seconds. */
inline Millis pollTimeout(unsigned hold) {
  const Millis held = std::chrono::seconds(hold);
  return held + held / 4 + kPollSlack;
}

/** Returns the hold to ask for, in seconds, if polls are cut off after `parked`. */
template <typename Duration>
unsigned shorterHold(Duration parked) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(parked).count();
  return std::max(kShortestHold, static_cast<unsigned>(seconds * 3 / 4));
}

/**
 * Drives an engine: in a thread of its own, or in the callers of perform(), one at a time. An
 * Engine has turn(timeout), which returns false once nothing more happens, timeout(), fd(), and
 * wake() for any thread.
 */
template <typename Engine>
class Driver {
 public:
  template <typename Options>
  Driver(Options options, GrantCallback grant) : engine(std::move(options), std::move(grant)) {}

  ~Driver() {
    if (!thread_.joinable()) return;
    stopRequested_ = true;
    engine.wake();
    thread_.join();
  }

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  void start() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (isStarted_) throw std::logic_error("sprites: the client was started already");
    if (drivingThread_ != std::thread::id())
      throw std::logic_error("sprites: perform() is running");
    thread_ = std::thread([this] { run(); });
    isStarted_ = true;
  }

  bool perform(Millis timeout) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (drivingThread_ == std::this_thread::get_id())
        throw std::logic_error("sprites: perform() is running");
      const auto isFree = [this] { return isStarted_ || drivingThread_ == std::thread::id(); };
      if (!driverChanged_.wait_for(lock, std::clamp(timeout, Millis(0), kMaxPatience), isFree))
        return true;
      if (isStarted_) throw std::logic_error("sprites: the client has a thread of its own");
      drivingThread_ = std::this_thread::get_id();
      wasDriven_ = true;
    }
    const struct Release {
      Driver* self;
      ~Release() {
        const std::lock_guard<std::mutex> lock(self->mutex_);
        self->drivingThread_ = std::thread::id();
        self->driverChanged_.notify_all();
      }
    } release{this};
    return engine.turn(timeout);
  }

  int fd() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (isStarted_) throw std::logic_error("sprites: the client has a thread of its own");
    if (wasDriven_ && !hasFd_) throw std::logic_error("sprites: fd() comes before perform()");
    hasFd_ = true;
    return engine.fd();
  }

  /** Returns how long a loop may wait; a minute where another thread runs the turns. */
  Millis timeout() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool isDrivenElsewhere =
        drivingThread_ != std::thread::id() && drivingThread_ != std::this_thread::get_id();
    return isStarted_ || isDrivenElsewhere ? Millis(60000) : engine.timeout();
  }

  /**
   * Waits until the engine has ended, and drives it if it has no thread of its own.
   *
   * @return whether the engine has ended within `patience`; false from inside a callback, which
   *         can't wait for it
   */
  bool runToEnd(Millis patience) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::clamp(patience, Millis(0), kMaxPatience);
    std::unique_lock<std::mutex> lock(mutex_);
    if (drivingThread_ == std::this_thread::get_id()) return false;
    if (isStarted_) return driverChanged_.wait_until(lock, deadline, [this] { return hasEnded_; });
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
      drivingThread_ = std::this_thread::get_id();
    }
    while (!stopRequested_ && engine.turn(std::chrono::minutes(1))) {
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    hasEnded_ = true;
    driverChanged_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable driverChanged_;
  std::thread thread_;
  std::thread::id drivingThread_;  // under mutex_: the thread inside the engine
  bool isStarted_ = false;         // under mutex_
  bool wasDriven_ = false;         // under mutex_: perform() was called
  bool hasFd_ = false;             // under mutex_: fd() was called
  bool hasEnded_ = false;          // under mutex_: the thread's last turn is over
  std::atomic<bool> stopRequested_{false};
};

/** The common base of the engines of Client and Feeds: requests, callbacks, waits. */
class EngineBase {
 public:
  // For any thread.
  void wake() { transport_.wake(); }
  void tryNow() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tryNowRequested_ = true;
    }
    wake();
  }

  /** For the thread that runs the turns. */
  int fd() { return transport_.fd(); }

 protected:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  EngineBase(const ConnectionOptions& options, size_t maxAnswerBytes)
      : transport_(options, maxAnswerBytes),
        onLog_(options.onLog),
        maxBackoff_(std::min(kMaxBackoff, options.maxBackoff)) {
    if (maxBackoff_ < Millis(100)) {
      throw std::invalid_argument("sprites: maxBackoff is at least 100 ms");
    }
  }

  /** Returns the current value of a member that mutex_ guards. */
  template <typename Value>
  Value readLocked(const Value& value) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return value;
  }

  // The steps of a turn, and the time until the next due work.
  virtual void readInbox(Time now) = 0;
  virtual void startDueRequests(Time now) = 0;
  virtual void readReplies(Time now) = 0;
  virtual Millis timeUntilDue(Time now) const = 0;

  void runTurn(Millis timeout) {
    transport_.clearFd();
    runSteps();
    if (callbacks_.empty()) {
      transport_.wait(std::min(timeout, timeUntilDue(Clock::now())));
      runSteps();
    }
    runCallbacks();
    // The program has the sprites: the next poll, which acks them, goes out at once, not with the
    // program's next frame.
    runSteps();
  }

  void log(const std::string& line) {
    if (onLog_) callbacks_.emplace_back([this, line] { onLog_(line); });
  }
  void log(const Reply& reply) {
    log(reply.logLine + ": " + (reply.status > 0 ? std::to_string(reply.status) : reply.error));
  }

  /** Sets the state and its reason; returns false if neither has changed. */
  template <typename State>
  bool changeState(State* state, State next, const Reason& reason) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (*state == next && reasonName_ == reason.name) return false;
      *state = next;
      reasonName_ = reason.name;
    }
    log(toString(next) + (reason.line.empty() ? "" : ": " + reason.line));
    return true;
  }

  /** Runs the callbacks. noexcept, as client.h promises that their exceptions end the program. */
  void runCallbacks() noexcept {
    for (const auto& callback : std::exchange(callbacks_, {})) callback();
  }

  /** Returns a wait: full jitter under a ceiling that doubles, to spread a crowd that lost contact
   * at once. */
  Millis backoff(uint64_t failures) {
    const Millis longest = longestWait(failures, clientCount_, maxBackoff_);
    return Millis(std::uniform_int_distribution<Millis::rep>(0, longest.count())(random_));
  }

  /** Counts a failure, and returns the wait after it. */
  Millis nextBackoff() { return backoff(++failures_); }

  /** Returns the wait that the server asked for and up to half on top; at least the backoff. */
  Millis serverWait(Millis asked, uint64_t failures) {
    std::uniform_int_distribution<Millis::rep> spread(0, asked.count() / 2);
    return std::min(kMaxServerWait, std::max(backoff(failures), asked + Millis(spread(random_))));
  }

  /** Notes how a poll ended that was parked so long. @return whether it was long and cut off */
  bool recordPollEnd(const Reply& reply, Clock::duration parked) {
    if (parked < kLongPark) return false;
    failures_ = 0;  // the network let it park
    const bool wasCutOff = isCutOff(reply);
    cutOffPolls_ = wasCutOff ? cutOffPolls_ + 1 : 0;
    if (cutOffPolls_ >= kMaxCutOffPolls) holdMost_ = std::min(holdMost_, shorterHold(parked));
    return wasCutOff;
  }

  Transport transport_;
  mutable std::mutex mutex_;
  bool tryNowRequested_ = false;  // under mutex_
  std::string reasonName_;        // under mutex_: the name of the state's reason

  // The engine's thread only.
  std::vector<std::function<void()>> callbacks_;
  Time lastTurnAt_;               // when the last turn looked for due work
  uint64_t failures_ = 0;         // in a row
  unsigned cutOffPolls_ = 0;      // long polls in a row that were cut off
  unsigned holdMost_ = kMaxHold;  // seconds: the longest hold that the network seems to allow
  std::optional<uint64_t> clientCount_;  // number of clients in the last GET /status

 private:
  void runSteps() {
    lastTurnAt_ = Clock::now();
    readInbox(lastTurnAt_);
    startDueRequests(lastTurnAt_);
    readReplies(lastTurnAt_);
  }

  const std::function<void(const std::string& line)> onLog_;
  const Millis maxBackoff_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_ENGINE_BASE_H_
