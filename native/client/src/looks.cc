// What a program may ask beside throwing and catching: where it is, and the server's counts.
#include <algorithm>
#include <utility>

#include "engine.h"

namespace sprites {

namespace {

constexpr size_t kLooksMost = 16;  // under way at once

}  // namespace

bool Engine::place(PlaceCallback result) { return look({std::move(result), nullptr, 0}); }

bool Engine::status(StatusCallback result) { return look({nullptr, std::move(result), 0}); }

bool Engine::look(Look look) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (leaveAsked_ || looking_ >= kLooksMost) return false;
    lookInbox_.push_back(std::move(look));
    looking_++;
  }
  wake();
  return true;
}

void Engine::startLooks() {
  std::vector<Look> waiting;
  waiting.swap(looks_);
  for (Look& each : waiting) {
    if (each.request == 0 && each.place && place_.id.empty()) {
      onLook(std::move(each), Reply());
      continue;
    }
    if (each.request == 0) {
      Request request;
      // By its id: of several servers behind one address its own is to answer.
      const bool any = !each.place && place_.id.empty();
      request.path = any ? "/status" : (each.place ? "/place/" : "/status/") + place_.id;
      request.ofPlace = each.place != nullptr;
      request.timeout = options_.answerTimeout;
      each.request = transport_.start(request);
    }
    looks_.push_back(std::move(each));
  }
}

void Engine::onLook(Look look, const Reply& reply) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    looking_--;
  }
  const bool good = reply.answered && reply.status == 200;
  // A parked poll may hang on the same dead connection.
  if (look.request != 0 && !reply.answered && state() == State::kOnline) doubt_ = true;
  if (look.place) {
    events_.emplace_back([call = std::move(look.place),
                          place = good ? readPlace(reply.body) : std::nullopt] { call(place); });
  } else if (look.status) {
    events_.emplace_back([call = std::move(look.status),
                          status = good ? readStatus(reply.body) : std::nullopt] { call(status); });
  }
}

}  // namespace sprites
