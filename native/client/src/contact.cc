// Gets and keeps a place: join, the proof that the place is still there, and the poll.
#include <algorithm>
#include <utility>

#include "engine.h"
#include "engine_base.h"

namespace sprites {

namespace {

constexpr Millis kProofTimeout{5000};
constexpr unsigned kMaxNotFound = 3;

}  // namespace

void Engine::startContact(Time now) {
  // Callbacks run first: until onSprite has the sprites, a poll could not ack them.
  if (!callbacks_.empty() || now < nextContact_ || join_ != 0) return;
  isServerWait_ = false;
  if (place_.id.empty()) {
    startJoin();
    return;
  }
  if (needsProof_) {
    if (proof_ == 0) startProof();
    if (poll_ == 0) return;  // the next poll waits for the proof
  }
  if (poll_ == 0 && now >= earliestPoll_) {
    poll_ = startPoll(pollHold());
    pollStarted_ = now;
  }
}

void Engine::startJoin() {
  const std::optional<std::string> header = grant_.header();
  if (!header) {
    const Time now = Clock::now();  // the program's callback may have been slow
    scheduleRetry(Reply(), now);
    goOffline(noGrantReason(), now);
    return;
  }
  join_ = transport_.start({Method::kPost, "/join", "", options_.answerTimeout, false}, *header);
}

void Engine::startProof() {
  proof_ = startPlaceRequest(Method::kGet, "/place/" + place_.id,
                             std::min(kProofTimeout, options_.answerTimeout));
}

/** Returns the hold to ask for, in seconds. */
unsigned Engine::pollHold() const {
  if (pollFailures_ >= kMaxPollFailures) return kShortestHold;
  unsigned hold = options_.hold > 0 ? std::min(options_.hold, place_.hold) : place_.hold;
  return std::min(hold, holdMost_);
}

RequestId Engine::startPoll(unsigned hold) {
  if (place_.hold < kShortestHold) hold = 0;  // the server chooses
  std::string path = "/poll/" + place_.id + "?ack=" + std::to_string(place_.ack);
  if (hold > 0) path += "&hold=" + std::to_string(hold);
  return startPlaceRequest(Method::kGet, path, pollTimeout(hold > 0 ? hold : kUsualHold));
}

void Engine::onJoin(const Reply& reply, Time now) {
  std::optional<JoinAnswer> answer;
  if (reply.status == 201) answer = readJoin(reply.body);
  if (!answer) {
    const Problem problem = readProblem(reply.body);
    if (grant_.dropIfRefused(problem)) return;  // a new grant is asked for at once
    scheduleRetry(reply, now);
    goOffline(reasonOf(reply, problem), now);
    return;
  }
  grant_.markAccepted();
  place_ = answer->place;
  needsProof_ = false;
  cutOffPolls_ = pollFailures_ = notFoundAnswers_ = 0;
  holdMost_ = kMaxHold;
  confirmedAck_ = 0;
  earliestPoll_ = now + answer->retry;
  updateCounts([](Counts* counts) { counts->joins++; });
  setState(State::kOnline, {}, Millis(0), true);
  reportResume();
}

void Engine::onProof(const Reply& reply, Time now) {
  const Problem problem = readProblem(reply.body);
  if (losePlaceIfUnknown(reply, problem, now)) return;
  if (reply.status == 200 && readPlace(reply.body)) {
    needsProof_ = false;
    if (pollFailures_ < kMaxPollFailures) setState(State::kOnline);
  } else {
    transport_.cancel(std::exchange(poll_, 0));
    scheduleRetry(reply, now);
    goOffline(reasonOf(reply, problem), now);
  }
}

void Engine::onPoll(const Reply& reply, Time now) {
  const std::optional<PollAnswer> answer =
      reply.status == 200 ? readPoll(reply.body) : std::nullopt;
  recordPollEnd(reply, now - pollStarted_);
  if (!answer) {
    onPollFailed(reply, now);
    return;
  }
  confirmedAck_ = place_.ack;
  updateCounts([](Counts* counts) { counts->polls++; });
  pollFailures_ = notFoundAnswers_ = 0;
  needsProof_ = false;
  if (answer->superseded) {
    // The later poll has the place now and gets the unacked sprites, which must not arrive twice.
    failures_ = 0;
    losePlace(State::kSuperseded, {"superseded", "another program polls with the same id"}, now);
    return;
  }
  setState(State::kOnline);
  earliestPoll_ = now + answer->retry;
  const bool isEarly = now - pollStarted_ + answer->retry < kEarlyAnswer;
  callbacks_.emplace_back([this, arrivals = answer->arrivals, placeNumber = placeNumber_, isEarly] {
    passToProgram(arrivals, placeNumber, isEarly);
  });
}

/** Passes sprites to onSprite and raises place_.ack, as nothing else does. Runs as a callback. */
void Engine::passToProgram(const std::vector<Arrival>& arrivals, uint64_t placeNumber,
                           bool isEarly) {
  bool anyAccepted = false;
  for (const Arrival& arrival : arrivals) {
    if (isLeaveRequested()) break;  // the sprite is not acked: it flies on to the next neighbor
    const bool isSamePlace = placeNumber == placeNumber_;
    if (isSamePlace && arrival.seq <= place_.ack) {
      updateCounts([](Counts* counts) { counts->repeats++; });
      continue;
    }
    if (options_.onSprite && !options_.onSprite(arrival.edge, arrival.sprite)) break;  // no room
    anyAccepted = true;
    if (isSamePlace) place_.ack = arrival.seq;
    updateCounts([](Counts* counts) { counts->received++; });
  }
  if (placeNumber != placeNumber_) return;
  if (anyAccepted) reportResume();
  if (isEarly && !anyAccepted) {
    // An empty answer should come at the end of the hold. A sender of early ones is not hammered.
    nextContact_ = Clock::now() + nextBackoff();
  } else {
    failures_ = 0;
    nextContact_ = Clock::now();
  }
}

/** Handles a failed poll. It does not prove that contact is lost: the place is asked for. */
void Engine::onPollFailed(const Reply& reply, Time now) {
  const Problem problem = readProblem(reply.body);
  if (losePlaceIfUnknown(reply, problem, now)) return;
  if (isProblem(problem, "ack-ahead")) {
    // The server was restored to an older state than this client's, and would give out sequence
    // numbers again. When the client leaves, the server's sprites for this place fly on.
    startPlaceRequest(Method::kPost, "/leave/" + place_.id, options_.answerTimeout);
    losePlace(State::kJoining, reasonOf(reply, problem), now);
    return;
  }
  if (isProblem(problem, "bad-hold")) {
    place_.hold = 0;  // the answer came at once: there is contact
    nextContact_ = now + nextBackoff();
    return;
  }
  pollFailures_++;
  needsProof_ = true;
  scheduleRetry(reply, now);
  if (pollFailures_ >= kMaxPollFailures) goOffline(reasonOf(reply, problem), now);
}

/** Counts 404 answers; true, the place is lost, when the server does not know it any more. */
bool Engine::losePlaceIfUnknown(const Reply& reply, const Problem& problem, Time now) {
  if (reply.status == 0) return false;
  const bool isForeign = !isProblem(problem, "unknown-client");
  notFoundAnswers_ = reply.status == 404 ? notFoundAnswers_ + 1 : 0;
  if (notFoundAnswers_ == 0 || (isForeign && notFoundAnswers_ < kMaxNotFound)) return false;
  onUnknownPlace(place_.id, now);
  return true;
}

/** Loses the place with that id, unknown to the server. A leaving client needs no other place. */
void Engine::onUnknownPlace(const std::string& id, Time now) {
  if (id.empty() || id != place_.id || leaveStep_ != LeaveStep::kNotLeaving) return;
  losePlace(State::kJoining, {"unknown-client", "the server has forgotten this place"}, now);
}

/** Ends the client's own wait, drops a parked poll, which may hang on a dead connection, and has
 * the place proven. */
void Engine::retryContact(Time now) {
  if (leaveStep_ != LeaveStep::kNotLeaving) return;
  if (!isServerWait_) nextContact_ = now;
  if (poll_ != 0 && now - pollStarted_ > kEarlyAnswer) transport_.cancel(std::exchange(poll_, 0));
  needsProof_ = true;
}

/** Sets the wait after a failure: the server's if the reply has one, else a backoff. */
void Engine::scheduleRetry(const Reply& reply, Time now) {
  failures_++;
  updateCounts([](Counts* counts) { counts->failures++; });
  const bool isServerWait = reply.retryAfter > Millis(0);
  isServerWait_ = isServerWait;
  nextContact_ =
      now + (isServerWait ? serverWait(reply.retryAfter, failures_) : backoff(failures_));
}

void Engine::goOffline(const Reason& reason, Time now) {
  const Millis retry = std::max(Millis(0), std::chrono::ceil<Millis>(nextContact_ - now));
  needsProof_ = !place_.id.empty();
  setState(State::kOffline, reason, retry);
  settleWaiting(reason.line, retry);
}

void Engine::losePlace(State state, const Reason& reason, Time now) {
  place_ = Resume();
  placeNumber_++;
  transport_.resetPlaceServer();
  transport_.cancel(std::exchange(poll_, 0));
  transport_.cancel(std::exchange(proof_, 0));
  updateCounts([](Counts* counts) { counts->failures++; });
  isServerWait_ = false;
  nextContact_ = now + nextBackoff();
  needsProof_ = false;
  setState(state, reason);
  reportResume();
}

}  // namespace sprites
