#include "sprites/feeds.h"

#include <utility>

#include "driver.h"
#include "feeds_engine.h"

namespace sprites {

const char* toString(FeedsState state) {
  constexpr const char* kStates[] = {"idle", "asking", "online", "offline"};
  return kStates[static_cast<size_t>(state)];
}

class Feeds::Impl {
 public:
  explicit Impl(FeedsOptions options) : engine(std::move(options)) {}

  FeedsEngine engine;
  Driver<FeedsEngine> driver{&engine};
};

Feeds::Feeds(FeedsOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Feeds::~Feeds() = default;

void Feeds::start() { impl_->driver.start(); }

void Feeds::perform(std::chrono::milliseconds timeout) { impl_->driver.perform(timeout); }

void Feeds::wake() { impl_->engine.wake(); }

void Feeds::tryNow() { impl_->engine.tryNow(); }

int Feeds::fd() { return impl_->driver.fd(); }

std::chrono::milliseconds Feeds::timeout() { return impl_->engine.timeout(); }

Feeds::WatchId Feeds::watch(std::string key, FeedCallback onChange, FeedHeld held) {
  return impl_->engine.watch(std::move(key), std::move(onChange), std::move(held));
}

void Feeds::unwatch(WatchId watch) { impl_->engine.unwatch(watch); }

void Feeds::close() { impl_->engine.close(); }

FeedsState Feeds::state() const { return impl_->engine.state(); }

}  // namespace sprites
