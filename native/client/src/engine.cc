#include "engine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine_base.h"

namespace sprites {

namespace {

constexpr Millis kLeavePatience{5000};

Options checked(Options options) {
  const auto demand = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("sprites: ") + what);
  };
  demand(options.hold == 0 || options.hold >= 5, "hold is 0 or at least 5 seconds");
  demand(options.maxPendingThrows >= 1 && options.maxPendingThrows <= 1024,
         "maxPendingThrows is 1 to 1024");
  demand(options.maxParallelThrows >= 1 && options.maxParallelThrows <= 32,
         "maxParallelThrows is 1 to 32");
  demand(options.throwAttempts >= 1, "throwAttempts is at least 1");
  for (const Millis time : {options.answerTimeout, options.throwPatience}) {
    demand(time > Millis(0) && time <= std::chrono::hours(24), "a timeout is over 0 up to a day");
  }
  if (options.resume) {
    demand(readResume(writeResume(*options.resume)).has_value(),
           "resume is what onResume said: an id, ack and n");
  }
  return options;
}

}  // namespace

Engine::Engine(Options options, GrantCallback grant)
    : EngineBase(options, options.maxAnswerBytes),
      options_(checked(std::move(options))),
      grant_(std::move(grant)) {
  if (!options_.resume) return;
  place_ = *options_.resume;
  resume_ = options_.resume;
  doubt_ = true;
}

// ---- for any thread

bool Engine::throwSprite(Edge edge, std::string json, ThrowCallback result) {
  Throw fresh;
  fresh.edge = edge;
  fresh.json = std::move(json);
  fresh.result = std::move(result);
  fresh.deadline = Clock::now() + options_.throwPatience;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (leaveAsked_ || pending_ >= options_.maxPendingThrows) return false;
    inbox_.push_back(std::move(fresh));
    pending_++;
  }
  wake();
  return true;
}

void Engine::leave() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    leaveAsked_ = true;
  }
  wake();
}

// ---- the turn

bool Engine::turn(Millis timeout) {
  if (finished() && events_.empty()) return false;
  takeTurn(timeout);
  return !finished() || !events_.empty();
}

Millis Engine::timeout() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!inbox_.empty() || !lookInbox_.empty() || tryNow_) return Millis(0);
    if (leaveAsked_ && leaving_ == Leaving::kNo) return Millis(0);
  }
  if (!begun_ || !events_.empty()) return Millis(0);
  if (finished()) return std::chrono::minutes(1);
  return std::min(untilNext(Clock::now()), transport_.timeout());
}

void Engine::takeInbox(Time now) {
  std::vector<Throw> fresh;
  std::vector<Look> looks;
  bool leave = false;
  bool tryNow = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    fresh.swap(inbox_);
    looks.swap(lookInbox_);
    leave = leaveAsked_;
    tryNow = std::exchange(tryNow_, false);
  }
  for (Throw& each : fresh) throws_.push_back(std::move(each));
  for (Look& each : looks) looks_.push_back(std::move(each));
  if (!begun_) {
    begun_ = true;
    setState(State::kJoining);
  }
  if (leave && leaving_ == Leaving::kNo) {
    leaving_ = Leaving::kThrows;
    leaveDeadline_ = now + kLeavePatience;
    transport_.cancel(std::exchange(join_, 0));
    transport_.cancel(std::exchange(proof_, 0));
    settleWaiting("the client is leaving", Millis(0));
  } else if (tryNow) {
    tryContact(now);
  }
}

void Engine::startDue(Time now) {
  if (finished()) return;
  if (leaving_ != Leaving::kNo) {
    startLeaving(now);
  } else {
    startContact(now);
  }
  startThrows(now);
  startLooks(now);
}

void Engine::readReplies(Time now) {
  for (const Reply& reply : transport_.takeReplies()) {
    say(reply);
    if (reply.id == join_) {
      join_ = 0;
      onJoin(reply, now);
    } else if (reply.id == proof_) {
      proof_ = 0;
      onProof(reply, now);
    } else if (reply.id == poll_ || reply.id == ackPoll_) {
      (reply.id == poll_ ? poll_ : ackPoll_) = 0;
      leaving_ == Leaving::kNo ? onPoll(reply, now) : onAckPoll(reply, now);
    } else if (reply.id == leave_) {
      leave_ = 0;
      onLeave(reply, now);
    } else {
      const auto pending =
          std::find_if(throws_.begin(), throws_.end(),
                       [&reply](const Throw& each) { return each.request == reply.id; });
      if (pending != throws_.end()) {
        onThrow(pending, reply, now);
        continue;
      }
      const auto looked = std::find_if(looks_.begin(), looks_.end(), [&reply](const Look& each) {
        return each.request == reply.id;
      });
      if (looked == looks_.end()) continue;
      Look look = std::move(*looked);
      looks_.erase(looked);
      onLook(std::move(look), reply, now);
    }
  }
}

/** Asks the server that has the place, by a path with its id. */
RequestId Engine::ask(Method method, const std::string& path, Millis timeout) {
  return transport_.start({method, path, "", timeout, true});
}

void Engine::setState(State state, const Why& why, Millis retry, bool newPlace) {
  if (!enter(&state_, state, why) || !options_.onState) return;
  events_.emplace_back([this, told = StateChange{state, newPlace, why.name, why.line, retry}] {
    options_.onState(told);
  });
}

void Engine::tellResume() {
  const std::optional<Resume> told =
      place_.id.empty() ? std::nullopt : std::optional<Resume>(place_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!told && !resume_) return;
    resume_ = told;
  }
  // noexcept, as callBack() is.
  const auto tell = [this, &told]() noexcept { options_.onResume(told); };
  if (options_.onResume) tell();
}

// ---- waits

Millis Engine::untilNext(Time now) const {
  if (finished()) return Millis(0);
  Time next = now + std::chrono::minutes(1);
  // Work that was due before seen_ waits for an answer or for room on the wire, not for the clock.
  const auto at = [&next, this](Time time) {
    if (time >= seen_) next = std::min(next, time);
  };
  if (leaving_ != Leaving::kNo) {
    at(leaveDeadline_);
    at(leaveDeadline_ - kLeaveReserve);
    at(leaveDeadline_ - kLeaveReserve / 2);
    if (leave_ == 0) at(leaveDue_);
  } else {
    if (join_ == 0 && proof_ == 0) at(nextContact_);
    if (poll_ == 0) at(pollOpen_);
  }
  for (const Throw& each : throws_) {
    if (each.request != 0) continue;
    at(each.deadline);
    at(each.due);
    at(opens(each.edge));
  }
  return std::max(Millis(0), std::chrono::ceil<Millis>(next - now));
}

// Leaving: the throws on the wire get their answer, the last ack is proven, then POST /leave.

namespace {

constexpr Millis kLeaveRetry{200};

/** Returns whether the server certainly refused the request. */
bool isRefusal(const Reply& reply) {
  return reply.status != 429 && reply.status < 500 &&
         readProblem(reply.body).type.find(kProblemPrefix) == 0;
}

}  // namespace

void Engine::startLeaving(Time now) {
  if (leaving_ == Leaving::kThrows) {
    if (!throws_.empty() && now < leaveDeadline_ - kLeaveReserve) return;
    while (!throws_.empty()) {
      transport_.cancel(throws_.front().request);
      settle(throws_.begin(),
             {Outcome::kUnanswered, {}, {}, "the client left before an answer came"});
    }
    if (place_.id.empty()) {
      finish();
      return;
    }
    leaving_ = Leaving::kAck;
  }
  if (leaving_ == Leaving::kAck) {
    // No answer has proved yet that the server has the last ack. Sprites without an ack would fly
    // on from here and exist twice. Of two polls the server answers the earlier one at once.
    if (place_.ack > ackTaken_ && now < leaveDeadline_ - kLeaveReserve / 2) {
      for (RequestId* poll : {&poll_, &ackPoll_}) {
        if (*poll == 0 && now >= leaveDue_) *poll = startPoll(kShortestHold);
      }
      return;
    }
    leaving_ = Leaving::kTelling;
    leaveDue_ = now;
  }
  tellLeaving(now);
}

void Engine::tellLeaving(Time now) {
  if (now >= leaveDeadline_) {
    finish();
  } else if (leave_ == 0 && now >= leaveDue_) {
    leave_ = ask(Method::kPost, "/leave/" + place_.id, options_.answerTimeout);
  }
}

/** Handles the end of a poll while leaving. */
void Engine::onAckPoll(const Reply& reply, Time now) {
  if ((reply.status == 200 && readPoll(reply.body)) || isRefusal(reply)) {
    ackTaken_ = place_.ack;
  } else if (leaving_ == Leaving::kAck) {
    leaveDue_ = now + std::max(kLeaveRetry, reply.retryAfter);
  }
}

void Engine::onLeave(const Reply& reply, Time now) {
  if (reply.status == 204 || isRefusal(reply)) {
    finish();
  } else {
    leaveDue_ = now + std::max(kLeaveRetry, reply.retryAfter);
  }
}

void Engine::finish() {
  for (RequestId* request : {&join_, &proof_, &poll_, &ackPoll_, &leave_}) {
    transport_.cancel(std::exchange(*request, 0));
  }
  place_ = Resume();
  tellResume();
  setState(State::kLeft);
  const std::lock_guard<std::mutex> lock(mutex_);
  finished_ = true;
}

// The program's questions: its place, and the server's counts.

namespace {

constexpr size_t kLooksMost = 16;  // most questions at once

}  // namespace

bool Engine::place(PlaceCallback result) { return look({std::move(result), nullptr, 0, {}}); }

bool Engine::status(StatusCallback result) { return look({nullptr, std::move(result), 0, {}}); }

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

void Engine::startLooks(Time now) {
  std::vector<Look> waiting;
  waiting.swap(looks_);
  for (Look& each : waiting) {
    if (each.request == 0 && each.place && place_.id.empty()) {
      onLook(std::move(each), Reply(), now);
      continue;
    }
    if (each.request == 0) {
      // With the id: of several servers behind one address the client's own answers.
      const bool any = !each.place && place_.id.empty();
      const std::string path = any ? "/status" : (each.place ? "/place/" : "/status/") + place_.id;
      each.request = transport_.start({Method::kGet, path, "", options_.answerTimeout, !any});
      each.id = place_.id;
    }
    looks_.push_back(std::move(each));
  }
}

void Engine::onLook(Look look, const Reply& reply, Time now) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    looking_--;
  }
  const bool good = reply.status == 200;
  const std::optional<Place> place = good ? readPlace(reply.body) : std::nullopt;
  const std::optional<Status> status = good ? readStatus(reply.body) : std::nullopt;
  const bool unanswered = look.request != 0 && reply.status == 0;
  if (unanswered && state() == State::kOnline) tryContact(now);
  if ((place || status) && state() == State::kOffline && !firm_) nextContact_ = now;
  if (isProblem(readProblem(reply.body), "unknown-client")) forget(look.id, now);
  if (status && status->clients > 0) people_ = status->clients;
  if (look.place) events_.emplace_back([call = std::move(look.place), place] { call(place); });
  if (look.status) events_.emplace_back([call = std::move(look.status), status] { call(status); });
}

}  // namespace sprites
