#include "sprites/client.h"

#include <utility>

#include "driver.h"
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

class Client::Impl {
 public:
  explicit Impl(Options options) : engine(std::move(options)) {}

  bool close(Millis patience) {
    engine.leave();
    return driver.runUntil([this] { return engine.finished(); }, patience);
  }

  Engine engine;
  Driver<Engine> driver{&engine};
};

Client::Client(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Client::~Client() = default;

void Client::start() { impl_->driver.start(); }

bool Client::perform(std::chrono::milliseconds timeout) { return impl_->driver.perform(timeout); }

void Client::wake() { impl_->engine.wake(); }

void Client::tryNow() { impl_->engine.tryNow(); }

int Client::fd() { return impl_->driver.fd(); }

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
