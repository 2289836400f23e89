#include "sprites/client.h"

#include <utility>

#include "engine.h"
#include "engine_base.h"
#include "feeds_engine.h"
#include "sprites/feeds.h"

namespace sprites {

namespace {

/** Names of the enumerations' values, in their order. */
constexpr const char* kEdges[] = {"left", "right", "up", "down"};
constexpr const char* kStates[] = {"left", "joining", "online", "offline", "superseded"};
constexpr const char* kOutcomes[] = {"delivered", "queued",  "duplicate",  "busy",
                                     "refused",   "offline", "unanswered", "forgotten"};

}  // namespace

const char* toString(Edge edge) { return kEdges[static_cast<size_t>(edge)]; }

Edge opposite(Edge edge) {
  constexpr Edge kOpposites[] = {Edge::kRight, Edge::kLeft, Edge::kDown, Edge::kUp};
  return kOpposites[static_cast<size_t>(edge)];
}

const char* toString(State state) { return kStates[static_cast<size_t>(state)]; }

const char* toString(Outcome outcome) { return kOutcomes[static_cast<size_t>(outcome)]; }

const char* version() { return SPRITES_VERSION; }

struct Client::Impl : Driver<Engine> {
  using Driver::Driver;
};

Client::Client(Options options, GrantCallback grant)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(grant))) {}

Client::~Client() = default;

void Client::start() { impl_->start(); }

bool Client::perform(std::chrono::milliseconds timeout) { return impl_->perform(timeout); }

void Client::wake() { impl_->engine.wake(); }

void Client::tryNow() { impl_->engine.tryNow(); }

int Client::fd() { return impl_->fd(); }

std::chrono::milliseconds Client::timeout() { return impl_->timeout(); }

std::optional<Resume> Client::resume() const { return impl_->engine.resume(); }

bool Client::throwSprite(Edge edge, std::string json, ThrowCallback result) {
  return impl_->engine.throwSprite(edge, std::move(json), std::move(result));
}

bool Client::place(PlaceCallback result) { return impl_->engine.place(std::move(result)); }

bool Client::status(StatusCallback result) { return impl_->engine.status(std::move(result)); }

void Client::leave() { impl_->engine.leave(); }

bool Client::close(std::chrono::milliseconds patience) {
  leave();
  return impl_->runToEnd(patience);
}

State Client::state() const { return impl_->engine.state(); }

Counts Client::counts() const { return impl_->engine.counts(); }

const char* toString(FeedsState state) {
  constexpr const char* kFeedsStates[] = {"idle", "asking", "online", "offline"};
  return kFeedsStates[static_cast<size_t>(state)];
}

struct Feeds::Impl : Driver<FeedsEngine> {
  using Driver::Driver;
};

Feeds::Feeds(FeedsOptions options, GrantCallback grant)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(grant))) {}

Feeds::~Feeds() = default;

void Feeds::start() { impl_->start(); }

void Feeds::perform(std::chrono::milliseconds timeout) { impl_->perform(timeout); }

void Feeds::wake() { impl_->engine.wake(); }

void Feeds::tryNow() { impl_->engine.tryNow(); }

int Feeds::fd() { return impl_->fd(); }

std::chrono::milliseconds Feeds::timeout() { return impl_->timeout(); }

Feeds::WatchId Feeds::watch(std::string key, FeedCallback onChange, FeedHeld held) {
  return impl_->engine.watch(std::move(key), FeedKind::kValue, std::move(held),
                             [onChange = std::move(onChange)](const FeedNews& news) {
                               if (onChange) onChange(news.change);
                             });
}

Feeds::WatchId Feeds::follow(std::string key, LogCallback onItems, std::string after) {
  return impl_->engine.watch(
      std::move(key), FeedKind::kLog, {std::move(after), {}},
      [onItems = std::move(onItems)](const FeedNews& news) {
        const FeedChange& change = news.change;
        if (onItems) onItems({change.key, change.cursor, news.items, news.gap, change.problem});
      });
}

void Feeds::unwatch(WatchId watch) { impl_->engine.unwatch(watch); }

void Feeds::close() { impl_->engine.close(); }

FeedsState Feeds::state() const { return impl_->engine.state(); }

}  // namespace sprites
