#include "sprites/client.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "engine.h"

namespace sprites {

const char* toString(Edge edge) {
  switch (edge) {
    case Edge::kLeft:
      return "left";
    case Edge::kRight:
      return "right";
    case Edge::kUp:
      return "up";
    case Edge::kDown:
      return "down";
  }
  return "";
}

Edge opposite(Edge edge) {
  switch (edge) {
    case Edge::kLeft:
      return Edge::kRight;
    case Edge::kRight:
      return Edge::kLeft;
    case Edge::kUp:
      return Edge::kDown;
    case Edge::kDown:
      break;
  }
  return Edge::kUp;
}

const char* toString(State state) {
  switch (state) {
    case State::kJoining:
      return "joining";
    case State::kOnline:
      return "online";
    case State::kOffline:
      return "offline";
    case State::kSuperseded:
      return "superseded";
    case State::kLeft:
      return "left";
  }
  return "";
}

const char* toString(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDelivered:
      return "delivered";
    case Outcome::kQueued:
      return "queued";
    case Outcome::kBusy:
      return "busy";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kDuplicate:
      return "duplicate";
    case Outcome::kOffline:
      return "offline";
    case Outcome::kUnanswered:
      return "unanswered";
    case Outcome::kForgotten:
      return "forgotten";
  }
  return "";
}

const char* version() { return SPRITES_VERSION; }

/** Who drives the engine: the thread started here, or the callers of perform(), one at a time. */
class Client::Impl {
 public:
  explicit Impl(Options options) : engine(std::move(options)) {}

  ~Impl() {
    if (!thread_.joinable()) return;
    stop_ = true;
    engine.wake();
    thread_.join();
  }

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
      Impl* self;
      ~Release() {
        const std::lock_guard<std::mutex> lock(self->mutex_);
        self->driver_ = std::thread::id();
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

  bool close(Millis patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    engine.leave();
    std::unique_lock<std::mutex> lock(mutex_);
    if (driver_ == std::this_thread::get_id()) return engine.finished();
    if (started_) return left_.wait_until(lock, deadline, [this] { return ended_; });
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
    ended_ = true;
    left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  std::thread thread_;
  std::thread::id driver_;  // under mutex_: who is inside the engine
  bool started_ = false;    // under mutex_
  bool driven_ = false;     // under mutex_: by perform()
  bool watched_ = false;    // under mutex_: by fd()
  bool ended_ = false;      // under mutex_
  std::atomic<bool> stop_{false};
};

Client::Client(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Client::~Client() = default;

void Client::start() { impl_->start(); }

bool Client::perform(std::chrono::milliseconds timeout) { return impl_->perform(timeout); }

void Client::wake() { impl_->engine.wake(); }

void Client::tryNow() { impl_->engine.tryNow(); }

int Client::fd() { return impl_->fd(); }

std::chrono::milliseconds Client::timeout() { return impl_->engine.timeout(); }

std::optional<Resume> Client::resume() const { return impl_->engine.resume(); }

bool Client::throwSprite(Edge edge, std::string json, ThrowCallback result) {
  return impl_->engine.throwSprite(edge, std::move(json), std::move(result));
}

bool Client::place(PlaceCallback result) { return impl_->engine.place(std::move(result)); }

bool Client::status(StatusCallback result) { return impl_->engine.status(std::move(result)); }

void Client::leave() { impl_->engine.leave(); }

bool Client::close(std::chrono::milliseconds patience) { return impl_->close(patience); }

State Client::state() const { return impl_->engine.state(); }

Counts Client::counts() const { return impl_->engine.counts(); }

}  // namespace sprites
