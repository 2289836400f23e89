// Gets and keeps a place: join, the proof that the place is still there, and the poll.
#include <algorithm>
#include <utility>

#include "engine.h"
#include "engine_base.h"

namespace sprites {

namespace {

constexpr Millis kProofTimeout{5000};
constexpr unsigned kPollFailuresMost = 3;
constexpr unsigned kStraysMost = 3;

}  // namespace

void Engine::startContact(Time now) {
  // Callbacks run first: until onSprite has the sprites, a poll could not ack them.
  if (!events_.empty() || now < nextContact_ || join_ != 0) return;
  firm_ = false;
  if (place_.id.empty()) {
    startJoin();
    return;
  }
  if (doubt_) {
    if (proof_ == 0) startProof();
    if (poll_ == 0) return;  // the next poll waits for the proof
  }
  if (poll_ == 0 && now >= pollOpen_) {
    poll_ = startPoll(pollHold());
    pollStarted_ = now;
  }
}

void Engine::startJoin() {
  const std::optional<std::string> header = grant_.header();
  if (!header) {
    const Time now = Clock::now();  // the program's callback may have been slow
    wait(Reply(), now);
    goOffline(noGrant(), now);
    return;
  }
  join_ = transport_.start({Method::kPost, "/join", "", options_.answerTimeout, false}, *header);
}

void Engine::startProof() {
  proof_ =
      ask(Method::kGet, "/place/" + place_.id, std::min(kProofTimeout, options_.answerTimeout));
}

/** Returns the hold to ask for, in seconds. */
unsigned Engine::pollHold() const {
  if (pollFailures_ >= kPollFailuresMost) return kShortestHold;
  unsigned hold = options_.hold > 0 ? std::min(options_.hold, place_.hold) : place_.hold;
  return std::min(hold, holdMost_);
}

RequestId Engine::startPoll(unsigned hold) {
  if (place_.hold < kShortestHold) hold = 0;  // the server chooses
  std::string path = "/poll/" + place_.id + "?ack=" + std::to_string(place_.ack);
  if (hold > 0) path += "&hold=" + std::to_string(hold);
  return ask(Method::kGet, path, pollTimeout(hold > 0 ? hold : kUsualHold));
}

void Engine::onJoin(const Reply& reply, Time now) {
  std::optional<JoinAnswer> answer;
  if (reply.status == 201) answer = readJoin(reply.body);
  if (!answer) {
    const Problem problem = readProblem(reply.body);
    if (grant_.refused(problem)) return;  // a new grant is asked for at once
    wait(reply, now);
    goOffline(whyOf(reply, problem), now);
    return;
  }
  grant_.accepted();
  place_ = answer->place;
  doubt_ = false;
  cuts_ = pollFailures_ = strays_ = 0;
  holdMost_ = kHoldMost;
  ackTaken_ = 0;
  pollOpen_ = now + answer->retry;
  count([](Counts* counts) { counts->joins++; });
  setState(State::kOnline, {}, Millis(0), true);
  tellResume();
}

void Engine::onProof(const Reply& reply, Time now) {
  const Problem problem = readProblem(reply.body);
  if (loseForgotten(reply, problem, now)) return;
  if (reply.status == 200 && readPlace(reply.body)) {
    doubt_ = false;
    if (pollFailures_ < kPollFailuresMost) setState(State::kOnline);
  } else {
    transport_.cancel(std::exchange(poll_, 0));
    wait(reply, now);
    goOffline(whyOf(reply, problem), now);
  }
}

void Engine::onPoll(const Reply& reply, Time now) {
  const std::optional<PollAnswer> answer =
      reply.status == 200 ? readPoll(reply.body) : std::nullopt;
  endsCut(reply, now - pollStarted_);
  if (!answer) {
    onPollFailed(reply, now);
    return;
  }
  ackTaken_ = place_.ack;
  count([](Counts* counts) { counts->polls++; });
  pollFailures_ = strays_ = 0;
  doubt_ = false;
  if (answer->superseded) {
    // The later poll has the place now and gets the unacked sprites, which must not arrive twice.
    failures_ = 0;
    losePlace(State::kSuperseded, {"superseded", "another program polls with the same id"}, now);
    return;
  }
  setState(State::kOnline);
  pollOpen_ = now + answer->retry;
  const bool quick = answer->retry == Millis(0) && now - pollStarted_ < kQuick;
  events_.emplace_back([this, arrivals = answer->arrivals, place = placeNumber_, quick] {
    handOver(arrivals, place, quick);
  });
}

/** Passes sprites to onSprite and raises place_.ack, which nothing else does. Runs as an event. */
void Engine::handOver(const std::vector<Arrival>& arrivals, uint64_t place, bool quick) {
  bool taken = false;
  for (const Arrival& arrival : arrivals) {
    if (leaveAsked()) break;  // the sprite is not acked: it flies on to the next neighbor
    const bool here = place == placeNumber_;
    if (here && arrival.seq <= place_.ack) {
      count([](Counts* counts) { counts->repeats++; });
      continue;
    }
    if (options_.onSprite && !options_.onSprite(arrival.edge, arrival.sprite)) break;  // no room
    taken = true;
    if (here) place_.ack = arrival.seq;
    count([](Counts* counts) { counts->received++; });
  }
  if (place != placeNumber_) return;
  if (taken) tellResume();
  if (quick && !taken) {
    // An empty answer should come at the end of the hold. A sender of early ones is not hammered.
    nextContact_ = Clock::now() + failed();
  } else {
    failures_ = 0;
    nextContact_ = Clock::now();
  }
}

/** Handles a failed poll. It does not prove that contact is lost: the place is asked for. */
void Engine::onPollFailed(const Reply& reply, Time now) {
  const Problem problem = readProblem(reply.body);
  if (loseForgotten(reply, problem, now)) return;
  if (isProblem(problem, "ack-ahead")) {
    // The server was restored to an older state than this client's, and would give out sequence
    // numbers again. When the client leaves, the server's sprites for this place fly on.
    ask(Method::kPost, "/leave/" + place_.id, options_.answerTimeout);
    losePlace(State::kJoining, whyOf(reply, problem), now);
    return;
  }
  if (isProblem(problem, "bad-hold")) {
    place_.hold = 0;  // the answer came at once: there is contact
    nextContact_ = now + failed();
    return;
  }
  pollFailures_++;
  doubt_ = true;
  wait(reply, now);
  if (pollFailures_ >= kPollFailuresMost) goOffline(whyOf(reply, problem), now);
}

/** Counts 404 answers; true, the place is lost, when the server does not know it any more. */
bool Engine::loseForgotten(const Reply& reply, const Problem& problem, Time now) {
  if (reply.status == 0) return false;
  const bool stray = !isProblem(problem, "unknown-client");
  strays_ = reply.status == 404 ? strays_ + 1 : 0;
  if (strays_ == 0 || (stray && strays_ < kStraysMost)) return false;
  forget(place_.id, now);
  return true;
}

/** Loses the place with that id, unknown to the server. A leaving client needs no other place. */
void Engine::forget(const std::string& id, Time now) {
  if (id.empty() || id != place_.id || leaving_ != Leaving::kNo) return;
  losePlace(State::kJoining, {"unknown-client", "the server has forgotten this place"}, now);
}

/** Ends the client's own wait, drops a parked poll, which may hang on a dead connection, and has
 * the place proven. */
void Engine::tryContact(Time now) {
  if (leaving_ != Leaving::kNo) return;
  if (!firm_) nextContact_ = now;
  if (poll_ != 0 && now - pollStarted_ > kQuick) transport_.cancel(std::exchange(poll_, 0));
  doubt_ = true;
}

/** Sets the wait after a failure: the server's if the reply has one, else a backoff. */
void Engine::wait(const Reply& reply, Time now) {
  failures_++;
  count([](Counts* counts) { counts->failures++; });
  const bool asked = reply.retryAfter > Millis(0);
  firm_ = asked;
  nextContact_ = now + (asked ? serverWait(reply.retryAfter, failures_) : backoff(failures_));
}

void Engine::goOffline(const Why& why, Time now) {
  const Millis retry = std::max(Millis(0), std::chrono::ceil<Millis>(nextContact_ - now));
  doubt_ = !place_.id.empty();
  setState(State::kOffline, why, retry);
  settleWaiting(why.line, retry);
}

void Engine::losePlace(State state, const Why& why, Time now) {
  place_ = Resume();
  placeNumber_++;
  transport_.resetPlaceServer();
  transport_.cancel(std::exchange(poll_, 0));
  transport_.cancel(std::exchange(proof_, 0));
  count([](Counts* counts) { counts->failures++; });
  firm_ = false;
  nextContact_ = now + failed();
  doubt_ = false;
  setState(state, why);
  tellResume();
}

}  // namespace sprites
