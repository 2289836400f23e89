// Who drives an engine: a thread of its own, or the callers of perform(), one at a time.
#ifndef SPRITES_CLIENT_DRIVER_H_
#define SPRITES_CLIENT_DRIVER_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "transport.h"

namespace sprites {

/**
 * Engine has turn(timeout), which is false once nothing more happens, wake() for any thread, and
 * fd(). It lives longer than its driver.
 */
template <typename Engine>
class Driver {
 public:
  explicit Driver(Engine* engine) : engine_(engine) {}

  ~Driver() {
    if (!thread_.joinable()) return;
    stop_ = true;
    engine_->wake();
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
      const std::lock_guard<std::mutex> lock(mutex_);
      if (started_) throw std::logic_error("sprites: the client has a thread of its own");
      if (driver_ != std::thread::id()) throw std::logic_error("sprites: perform() is running");
      driver_ = std::this_thread::get_id();
      driven_ = true;
    }
    const struct Release {
      Driver* self;
      ~Release() {
        const std::lock_guard<std::mutex> lock(self->mutex_);
        self->driver_ = std::thread::id();
      }
    } release{this};
    return engine_->turn(timeout);
  }

  int fd() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (started_) throw std::logic_error("sprites: the client has a thread of its own");
    if (driven_ && !watched_) throw std::logic_error("sprites: fd() comes before perform()");
    watched_ = true;
    return engine_->fd();
  }

  /**
   * Waits until nothing more happens, and drives the engine where it has no thread of its own.
   *
   * @param isOver  what to answer from inside a callback, where there is no waiting
   * @return whether it came to its end within `patience`
   */
  template <typename IsOver>
  bool runUntil(IsOver isOver, Millis patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    std::unique_lock<std::mutex> lock(mutex_);
    if (driver_ == std::this_thread::get_id()) return isOver();
    if (started_) return ended_.wait_until(lock, deadline, [this] { return over_; });
    lock.unlock();
    for (;;) {
      const auto now = std::chrono::steady_clock::now();
      if (!perform(std::max(Millis(0), std::chrono::ceil<Millis>(deadline - now)))) return true;
      if (now >= deadline) return false;
    }
  }

 private:
  void run() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      driver_ = std::this_thread::get_id();
    }
    while (!stop_ && engine_->turn(std::chrono::minutes(1))) {
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    ended_.notify_all();
  }

  Engine* const engine_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::thread thread_;
  std::thread::id driver_;  // under mutex_: who is inside the engine
  bool started_ = false;    // under mutex_
  bool driven_ = false;     // under mutex_: by perform()
  bool watched_ = false;    // under mutex_: by fd()
  bool over_ = false;       // under mutex_
  std::atomic<bool> stop_{false};
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_DRIVER_H_
