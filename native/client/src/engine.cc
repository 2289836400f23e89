#include "engine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine_base.h"

namespace sprites {

namespace {

constexpr Millis kLeavePatience{5000};

Options validated(Options options) {
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
      options_(validated(std::move(options))),
      grant_(std::move(grant)) {
  if (!options_.resume) return;
  place_ = *options_.resume;
  resume_ = options_.resume;
  needsProof_ = true;
}

// ---- for any thread

bool Engine::throwSprite(Edge edge, std::string json, ThrowCallback result) {
  Throw newThrow;
  newThrow.edge = edge;
  newThrow.json = std::move(json);
  newThrow.onResult = std::move(result);
  newThrow.deadline = Clock::now() + options_.throwPatience;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (leaveRequested_ || pendingThrows_ >= options_.maxPendingThrows) return false;
    throwInbox_.push_back(std::move(newThrow));
    pendingThrows_++;
  }
  wake();
  return true;
}

void Engine::leave() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    leaveRequested_ = true;
  }
  wake();
}

// ---- the turn

bool Engine::turn(Millis timeout) {
  if (isFinished() && callbacks_.empty()) return false;
  runTurn(timeout);
  return !isFinished() || !callbacks_.empty();
}

Millis Engine::timeout() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!throwInbox_.empty() || !queryInbox_.empty() || tryNowRequested_) return Millis(0);
    if (leaveRequested_ && leaveStep_ == LeaveStep::kNotLeaving) return Millis(0);
  }
  if (!hasBegun_ || !callbacks_.empty()) return Millis(0);
  if (isFinished()) return std::chrono::minutes(1);
  return std::min(timeUntilDue(Clock::now()), transport_.timeout());
}

void Engine::readInbox(Time now) {
  std::vector<Throw> newThrows;
  std::vector<Query> newQueries;
  bool leaveRequested = false;
  bool tryNow = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    newThrows.swap(throwInbox_);
    newQueries.swap(queryInbox_);
    leaveRequested = leaveRequested_;
    tryNow = std::exchange(tryNowRequested_, false);
  }
  for (Throw& each : newThrows) throws_.push_back(std::move(each));
  for (Query& each : newQueries) queries_.push_back(std::move(each));
  if (!hasBegun_) {
    hasBegun_ = true;
    setState(State::kJoining);
  }
  if (leaveRequested && leaveStep_ == LeaveStep::kNotLeaving) {
    leaveStep_ = LeaveStep::kThrows;
    leaveDeadline_ = now + kLeavePatience;
    transport_.cancel(std::exchange(join_, 0));
    transport_.cancel(std::exchange(proof_, 0));
    settleWaiting("the client is leaving", Millis(0));
  } else if (tryNow) {
    retryContact(now);
  }
}

void Engine::startDueRequests(Time now) {
  if (isFinished()) return;
  if (leaveStep_ != LeaveStep::kNotLeaving) {
    startLeaving(now);
  } else {
    startContact(now);
  }
  startThrows(now);
  startQueries(now);
}

void Engine::readReplies(Time now) {
  for (const Reply& reply : transport_.takeReplies()) {
    log(reply);
    if (reply.id == join_) {
      join_ = 0;
      onJoin(reply, now);
    } else if (reply.id == proof_) {
      proof_ = 0;
      onProof(reply, now);
    } else if (reply.id == poll_ || reply.id == ackPoll_) {
      (reply.id == poll_ ? poll_ : ackPoll_) = 0;
      leaveStep_ == LeaveStep::kNotLeaving ? onPoll(reply, now) : onAckPoll(reply, now);
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
      const auto found =
          std::find_if(queries_.begin(), queries_.end(),
                       [&reply](const Query& each) { return each.request == reply.id; });
      if (found == queries_.end()) continue;
      Query query = std::move(*found);
      queries_.erase(found);
      onQueryReply(std::move(query), reply, now);
    }
  }
}

/** Asks the server that has the place, by a path with its id. */
RequestId Engine::startPlaceRequest(Method method, const std::string& path, Millis timeout) {
  return transport_.start({method, path, "", timeout, true});
}

void Engine::setState(State state, const Reason& reason, Millis retry, bool newPlace) {
  if (!changeState(&state_, state, reason) || !options_.onState) return;
  callbacks_.emplace_back([this, change = StateChange{state, newPlace, reason.name, reason.line,
                                                      retry}] { options_.onState(change); });
}

void Engine::reportResume() {
  const std::optional<Resume> resume =
      place_.id.empty() ? std::nullopt : std::optional<Resume>(place_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!resume && !resume_) return;
    resume_ = resume;
  }
  // noexcept, as runCallbacks() is.
  const auto report = [this, &resume]() noexcept { options_.onResume(resume); };
  if (options_.onResume) report();
}

// ---- waits

Millis Engine::timeUntilDue(Time now) const {
  if (isFinished()) return Millis(0);
  Time next = now + std::chrono::minutes(1);
  // Work that was due before lastTurnAt_ waits for an answer or for room on the wire, not for the
  // clock.
  const auto wakeAt = [&next, this](Time time) {
    if (time >= lastTurnAt_) next = std::min(next, time);
  };
  if (leaveStep_ != LeaveStep::kNotLeaving) {
    wakeAt(leaveDeadline_);
    wakeAt(leaveDeadline_ - kLeaveReserve);
    wakeAt(leaveDeadline_ - kLeaveReserve / 2);
    if (leave_ == 0) wakeAt(leaveDue_);
  } else {
    if (join_ == 0 && proof_ == 0) wakeAt(nextContact_);
    if (poll_ == 0) wakeAt(earliestPoll_);
  }
  for (const Throw& each : throws_) {
    if (each.request != 0) continue;
    wakeAt(each.deadline);
    wakeAt(each.due);
    wakeAt(earliestThrowOver(each.edge));
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
  if (leaveStep_ == LeaveStep::kThrows) {
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
    leaveStep_ = LeaveStep::kAck;
  }
  if (leaveStep_ == LeaveStep::kAck) {
    // No answer has proved yet that the server has the last ack. Sprites without an ack would fly
    // on from here and exist twice. Of two polls the server answers the earlier one at once.
    if (place_.ack > confirmedAck_ && now < leaveDeadline_ - kLeaveReserve / 2) {
      for (RequestId* poll : {&poll_, &ackPoll_}) {
        if (*poll == 0 && now >= leaveDue_) *poll = startPoll(kShortestHold);
      }
      return;
    }
    leaveStep_ = LeaveStep::kRequest;
    leaveDue_ = now;
  }
  sendLeave(now);
}

void Engine::sendLeave(Time now) {
  if (now >= leaveDeadline_) {
    finish();
  } else if (leave_ == 0 && now >= leaveDue_) {
    leave_ = startPlaceRequest(Method::kPost, "/leave/" + place_.id, options_.answerTimeout);
  }
}

/** Handles the end of a poll while leaving. */
void Engine::onAckPoll(const Reply& reply, Time now) {
  if ((reply.status == 200 && readPoll(reply.body)) || isRefusal(reply)) {
    confirmedAck_ = place_.ack;
  } else if (leaveStep_ == LeaveStep::kAck) {
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
  reportResume();
  setState(State::kLeft);
  const std::lock_guard<std::mutex> lock(mutex_);
  isFinished_ = true;
}

// The program's queries: its place, and the server's counts.

namespace {

constexpr size_t kMaxQueries = 16;  // most queries at once

}  // namespace

bool Engine::place(PlaceCallback result) { return addQuery({std::move(result), nullptr, 0, {}}); }

bool Engine::status(StatusCallback result) { return addQuery({nullptr, std::move(result), 0, {}}); }

bool Engine::addQuery(Query query) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (leaveRequested_ || openQueries_ >= kMaxQueries) return false;
    queryInbox_.push_back(std::move(query));
    openQueries_++;
  }
  wake();
  return true;
}

void Engine::startQueries(Time now) {
  std::vector<Query> waiting;
  waiting.swap(queries_);
  for (Query& each : waiting) {
    if (each.request == 0 && each.onPlace && place_.id.empty()) {
      onQueryReply(std::move(each), Reply(), now);
      continue;
    }
    if (each.request == 0) {
      // With the id: of several servers behind one address the client's own answers.
      const bool hasNoPlace = !each.onPlace && place_.id.empty();
      const std::string path =
          hasNoPlace ? "/status" : (each.onPlace ? "/place/" : "/status/") + place_.id;
      each.request =
          transport_.start({Method::kGet, path, "", options_.answerTimeout, !hasNoPlace});
      each.placeId = place_.id;
    }
    queries_.push_back(std::move(each));
  }
}

void Engine::onQueryReply(Query query, const Reply& reply, Time now) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    openQueries_--;
  }
  const bool isOk = reply.status == 200;
  const std::optional<Place> place = isOk ? readPlace(reply.body) : std::nullopt;
  const std::optional<Status> status = isOk ? readStatus(reply.body) : std::nullopt;
  const bool isUnanswered = query.request != 0 && reply.status == 0;
  if (isUnanswered && state() == State::kOnline) retryContact(now);
  if ((place || status) && state() == State::kOffline && !isServerWait_) nextContact_ = now;
  if (isProblem(readProblem(reply.body), "unknown-client")) onUnknownPlace(query.placeId, now);
  if (status && status->clients > 0) clientCount_ = status->clients;
  if (query.onPlace)
    callbacks_.emplace_back([onPlace = std::move(query.onPlace), place] { onPlace(place); });
  if (query.onStatus)
    callbacks_.emplace_back([onStatus = std::move(query.onStatus), status] { onStatus(status); });
}

}  // namespace sprites
