#include "engine.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace sprites {

namespace {

constexpr unsigned kShortestHold = 5;  // seconds; the server's lower bound
constexpr unsigned kUsualHold = 120;   // seconds, where the server did not tell
constexpr uint64_t kNumberWindow =
    60;  // the server remembers 64; some room for what is on the wire
constexpr Millis kBackoffFirst{1000};
constexpr Millis kBackoffLeast{50};
constexpr Millis kQuick{1000};  // an empty poll answered sooner than this counts as a failure
constexpr Millis kJitterMost{5000};
constexpr Millis kLeavePatience{5000};
constexpr Millis kLeaveReserve{1500};  // of which this is kept for telling the server
constexpr Millis kLeaveRetry{200};
constexpr char kProblem[] = "urn:sprites:";

bool isProblem(const Problem& problem, const char* name) {
  return problem.type == std::string(kProblem) + name;
}

Options checked(Options options) {
  const auto demand = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("sprites: ") + what);
  };
  demand(options.hold == 0 || options.hold >= kShortestHold, "hold is 0 or at least 5 seconds");
  demand(options.maxPendingThrows >= 1 && options.maxPendingThrows <= 1024,
         "maxPendingThrows is 1 to 1024");
  demand(options.maxParallelThrows >= 1 && options.maxParallelThrows <= 32,
         "maxParallelThrows is 1 to 32");
  demand(options.maxAnswerBytes >= 1024, "maxAnswerBytes is at least 1024");
  demand(options.throwAttempts >= 1, "throwAttempts is at least 1");
  demand(options.maxBackoff >= Millis(100), "maxBackoff is at least 100 ms");
  for (const Millis time : {options.connectTimeout, options.answerTimeout, options.throwPatience}) {
    demand(time > Millis(0) && time <= std::chrono::hours(24), "a timeout is over 0 up to a day");
  }
  return options;
}

TransportOptions transportOptions(const Options& options) {
  return {options.server, options.caFile, options.connectTimeout, options.maxAnswerBytes};
}

ThrowResult later(Millis retry, std::string detail) {
  ThrowResult result;
  result.outcome = Outcome::kLater;
  result.retry = retry;
  result.detail = std::move(detail);
  return result;
}

ThrowResult unknown(std::string detail) {
  ThrowResult result;
  result.detail = std::move(detail);
  return result;
}

/** Whether a sprites server wrote it, rather than a proxy or a captive portal on the way. */
bool isFromServer(const Problem& problem) {
  return problem.type.compare(0, sizeof(kProblem) - 1, kProblem) == 0;
}

/** One line on an answer that is not the wanted one. */
std::string describe(const Reply& reply, const Problem& problem) {
  if (!reply.answered) return reply.error;
  if (!problem.detail.empty()) return problem.detail;
  return "the server answered with status " + std::to_string(reply.status);
}

}  // namespace

Engine::Engine(Options options)
    : options_(checked(std::move(options))),
      transport_(transportOptions(options_)),
      random_(std::random_device{}()) {}

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

void Engine::wake() { transport_.wake(); }

State Engine::state() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

Counts Engine::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

bool Engine::leaveAsked() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return leaveAsked_;
}

template <typename Change>
void Engine::count(Change change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  change(&counts_);
}

// ---- the turn

bool Engine::turn(Millis timeout) {
  if (state() == State::kLeft && events_.empty()) return false;
  Time now = Clock::now();
  takeInbox(now);
  startDue(now);
  readReplies(now);
  if (events_.empty()) {
    transport_.wait(std::min(timeout, untilNext(now)));
    now = Clock::now();
    takeInbox(now);
    startDue(now);
    readReplies(now);
  }
  callBack();
  // What was handed over is acked at once, not with the caller's next frame.
  now = Clock::now();
  startDue(now);
  readReplies(now);
  return state() != State::kLeft || !events_.empty();
}

void Engine::takeInbox(Time now) {
  std::vector<Throw> fresh;
  std::vector<Look> looks;
  bool leave = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    fresh.swap(inbox_);
    looks.swap(lookInbox_);
    leave = leaveAsked_;
  }
  for (Throw& each : fresh) throws_.push_back(std::move(each));
  for (Look& each : looks) looks_.push_back(std::move(each));
  if (leave && leaving_ == Leaving::kNo) {
    leaving_ = Leaving::kThrows;
    leaveDeadline_ = now + kLeavePatience;
    transport_.cancel(std::exchange(join_, 0));
    settleWaiting(later(Millis(0), "the client is leaving"));
  }
}

void Engine::startDue(Time now) {
  if (state() == State::kLeft) return;
  if (leaving_ != Leaving::kNo) {
    startLeaving(now);
  } else if (join_ == 0 && poll_ == 0 && now >= nextContact_ && events_.empty()) {
    // Not before what has come is handed over: until then the poll could not ack it.
    if (state() != State::kOnline) setState({State::kConnecting, false, "", Millis(0)});
    if (id_.empty()) {
      startJoin();
    } else {
      poll_ = startPoll(pollHold());
      pollStarted_ = now;
    }
  }
  startThrows(now);
  startLooks();
}

void Engine::startJoin() {
  Request request;
  request.method = Method::kPost;
  request.path = "/join";
  request.timeout = options_.answerTimeout;
  join_ = transport_.start(request);
}

/** Out of contact the shortest hold: an empty answer then says soon that the place is still ours.
 */
unsigned Engine::pollHold() const {
  if (holdRefused_ || serverHold_ < kShortestHold) return 0;
  if (state() != State::kOnline) return kShortestHold;
  return std::min(options_.hold, serverHold_);
}

RequestId Engine::startPoll(unsigned hold) {
  Request request;
  request.path = "/poll/" + id_ + "?ack=" + std::to_string(lastSeq_);
  if (hold > 0) request.path += "&hold=" + std::to_string(hold);
  const std::chrono::seconds held(hold > 0 ? hold : std::max(serverHold_, kUsualHold));
  request.timeout = Millis(held) + Millis(held) / 4 + options_.answerTimeout;
  return transport_.start(request);
}

// ---- throws

/** The next number is free to use when no throw that may still be repeated is too far behind it. */
bool Engine::mayNumber() const {
  return std::none_of(throws_.begin(), throws_.end(), [this](const Throw& each) {
    return each.place == id_ && (each.maybeTaken || each.request != 0) &&
           each.n + kNumberWindow <= lastNumber_;
  });
}

void Engine::startThrows(Time now) {
  auto onWire = static_cast<size_t>(std::count_if(
      throws_.begin(), throws_.end(), [](const Throw& each) { return each.request != 0; }));
  for (auto each = throws_.begin(); each != throws_.end();) {
    const auto pending = each++;
    if (pending->request != 0) continue;
    if (now >= pending->deadline) {
      settle(pending, pending->maybeTaken ? unknown("no answer came in time")
                                          : later(Millis(0), "there was no contact in time"));
      continue;
    }
    if (pending->maybeTaken) {
      // It waits for contact rather than knock on a door that is shut. One that is leaving tries.
      if (state() == State::kOffline && leaving_ == Leaving::kNo) continue;
    } else {
      if (leaving_ != Leaving::kNo) {
        settle(pending, later(Millis(0), "the client is leaving"));
        continue;
      }
      if (state() == State::kOffline) {
        settle(pending, later(std::max(Millis(0), std::chrono::ceil<Millis>(nextContact_ - now)),
                              "there is no contact with the server"));
        continue;
      }
      if (now < throwsOpen_) {
        settle(pending,
               later(std::chrono::ceil<Millis>(throwsOpen_ - now), "the server asked to wait"));
        continue;
      }
      if (id_.empty()) continue;  // on its way
      if (maxSprite_ > 0 && pending->json.size() > maxSprite_) {
        ThrowResult result;
        result.outcome = Outcome::kRefused;
        result.problem = std::string(kProblem) + "sprite-too-large";
        result.detail = "the server takes at most " + std::to_string(maxSprite_) + " bytes";
        settle(pending, result);
        continue;
      }
    }
    if (onWire >= options_.maxParallelThrows || now < pending->due) continue;
    if (sendThrow(&*pending, now)) onWire++;
  }
}

bool Engine::sendThrow(Throw* pending, Time now) {
  if (!pending->maybeTaken) {
    if (!mayNumber()) return false;
    pending->place = id_;
    pending->n = ++lastNumber_;
  }
  Request request;
  request.method = Method::kPost;
  request.path = "/throw/" + pending->place + "/" + toString(pending->edge) +
                 "?n=" + std::to_string(pending->n);
  request.body = pending->json;
  request.timeout = options_.answerTimeout;
  pending->request = transport_.start(request);
  pending->due = now;
  if (pending->tries++ > 0) count([](Counts* counts) { counts->resent++; });
  return true;
}

/**
 * Tries a throw again after a while, or ends it where it was tried often enough. What fails while
 * there is no contact says nothing of the throw: then only its patience ends it.
 */
void Engine::postpone(Throws::iterator pending, Millis least, Time now) {
  if (state() == State::kOnline) pending->attempts++;
  if (pending->attempts >= options_.throwAttempts || leaving_ != Leaving::kNo) {
    settle(pending, unknown("no answer came, in " + std::to_string(pending->tries) + " tries"));
    return;
  }
  pending->due = now + std::max(least, backoff(pending->tries));
}

Engine::Throws::iterator Engine::settle(Throws::iterator pending, ThrowResult result) {
  const bool taken = result.outcome == Outcome::kDelivered || result.outcome == Outcome::kQueued;
  const bool lost = result.outcome == Outcome::kUnknown;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_--;
    if (taken) counts_.thrown++;
    if (lost) counts_.unknown++;
  }
  if (pending->result) {
    events_.emplace_back(
        [call = std::move(pending->result), told = std::move(result)] { call(told); });
  }
  return throws_.erase(pending);
}

/** Settles what was not sent, or surely not taken. */
void Engine::settleWaiting(const ThrowResult& result) {
  for (auto each = throws_.begin(); each != throws_.end();) {
    if (each->request == 0 && !each->maybeTaken) {
      each = settle(each, result);
    } else {
      ++each;
    }
  }
}

void Engine::onThrow(Throws::iterator pending, const Reply& reply, Time now) {
  pending->request = 0;
  if (!reply.answered) {
    onThrowUnanswered(pending, reply, now);
    return;
  }
  if (reply.status != 202) {
    onThrowRefused(pending, reply, now);
    return;
  }
  const ThrowAnswer answer = readThrow(reply.body);
  if (answer.retry > Millis(0)) throwsOpen_ = now + answer.retry;
  if (pending->place == id_ && state() == State::kConnecting) {
    setState({State::kOnline, std::exchange(newPlace_, false), "", Millis(0)});
  }
  ThrowResult result;
  result.outcome = answer.outcome;
  result.repeated = answer.duplicate;
  settle(pending, result);
}

void Engine::onThrowUnanswered(Throws::iterator pending, const Reply& reply, Time now) {
  if (reply.sent || pending->maybeTaken) {
    pending->maybeTaken = true;
    postpone(pending, Millis(0), now);
  } else {
    settle(pending, later(backoff(1), reply.error));
  }
}

void Engine::onThrowRefused(Throws::iterator pending, const Reply& reply, Time now) {
  const Problem problem = readProblem(reply.body);
  ThrowResult result;
  result.problem = problem.type;
  result.detail = describe(reply, problem);
  result.retry = reply.retryAfter;

  if (isProblem(problem, "unknown-client")) {
    if (pending->place == id_) losePlace(result.detail, now);
    if (pending->maybeTaken) {
      settle(pending, unknown("the server has forgotten this client and its throws"));
    } else {
      pending->place.clear();  // it flies from the new place
    }
    return;
  }
  if (isProblem(problem, "neighbor-busy")) {
    // Said only after the server has looked for the number among those it took: a clear no.
    result.outcome = Outcome::kBusy;
  } else if (reply.status == 429 || reply.status == 503) {
    const Millis wait = std::max(reply.retryAfter, kBackoffLeast);
    throwsOpen_ = std::max(throwsOpen_, now + wait);
    if (pending->maybeTaken) {  // this try was turned away; of the one before it that says nothing
      postpone(pending, wait, now);
      return;
    }
    result.outcome = Outcome::kLater;
    result.retry = wait;
  } else if (reply.status >= 500 || reply.status == 408 || !isFromServer(problem)) {
    // It says nothing of the sprite: a proxy's 502 or 504, a captive portal's 404, a request that
    // was cut off on the way.
    pending->maybeTaken = true;
    postpone(pending, reply.retryAfter, now);
    return;
  } else if (pending->maybeTaken && isProblem(problem, "stale-number")) {
    result.outcome = Outcome::kUnknown;
  } else {
    result.outcome = Outcome::kRefused;
  }
  settle(pending, result);
}

// ---- the place

void Engine::readReplies(Time now) {
  for (const Reply& reply : transport_.takeReplies()) {
    if (reply.id == join_) {
      join_ = 0;
      onJoin(reply, now);
    } else if (reply.id == poll_ || reply.id == ackPoll_) {
      (reply.id == poll_ ? poll_ : ackPoll_) = 0;
      onPoll(reply, now);
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
      onLook(std::move(look), reply);
    }
  }
}

void Engine::onJoin(const Reply& reply, Time now) {
  std::optional<JoinAnswer> answer;
  if (reply.answered && reply.status == 201) answer = readJoin(reply.body);
  if (!answer) {
    const bool unreadable = reply.answered && reply.status == 201;
    loseContact(unreadable ? "the server's answer to a join can't be read"
                           : describe(reply, readProblem(reply.body)),
                reply.retryAfter, now);
    return;
  }
  id_ = answer->id;
  serverHold_ = answer->hold > 0 ? answer->hold : kUsualHold;
  maxSprite_ = answer->maxSprite;
  holdRefused_ = false;
  lastSeq_ = 0;
  ackTaken_ = 0;
  nextContact_ = now + answer->retry;
  count([](Counts* counts) { counts->joins++; });
  newPlace_ = false;
  setState({State::kOnline, true, "", Millis(0)});
}

void Engine::onPoll(const Reply& reply, Time now) {
  if (!reply.answered || reply.status != 200) {
    onPollRefused(reply, now);
    return;
  }
  const std::optional<PollAnswer> answer = readPoll(reply.body);
  if (leaving_ != Leaving::kNo) {
    ackTaken_ = lastSeq_;
    return;
  }
  if (!answer) {
    loseContact("the server's answer to a poll can't be read", Millis(0), now);
    return;
  }
  ackTaken_ = lastSeq_;
  count([](Counts* counts) { counts->polls++; });
  setState({State::kOnline, false, "", Millis(0)});
  if (answer->superseded) {
    // The later poll has the place now, and gets what was not acked; both would get it twice.
    losePlace("another program polls with the same id", now);
    return;
  }
  const bool news = std::any_of(answer->arrivals.begin(), answer->arrivals.end(),
                                [this](const Arrival& arrival) { return arrival.seq > lastSeq_; });
  const bool quick = !news && answer->retry == Millis(0) && now - pollStarted_ < kQuick;
  if (quick) {
    // An empty answer should have taken its hold. Whatever sends these must not be hammered.
    failures_++;
    nextContact_ = now + backoff(failures_);
  } else {
    failures_ = 0;
    nextContact_ = now + answer->retry;
  }
  for (const Arrival& arrival : answer->arrivals) {
    events_.emplace_back([this, arrival, place = place_] { handOver(arrival, place); });
  }
}

void Engine::onPollRefused(const Reply& reply, Time now) {
  if (leaving_ != Leaving::kNo) return;
  const Problem problem = readProblem(reply.body);
  const std::string why = describe(reply, problem);
  if (reply.answered && isProblem(problem, "unknown-client")) {
    losePlace(why, now);
    return;
  }
  if (reply.answered && isProblem(problem, "ack-ahead")) {
    // The server has come back with an older memory than ours: sequence numbers would meet twice.
    // What it has for this place flies on when the place is given up.
    Request request;
    request.method = Method::kPost;
    request.path = "/leave/" + id_;
    request.timeout = options_.answerTimeout;
    transport_.start(request);
    losePlace(why, now);
    return;
  }
  if (reply.answered && isProblem(problem, "bad-hold")) holdRefused_ = true;
  loseContact(why, reply.retryAfter, now);
}

/** Inside a callback's turn: the one place where a sprite counts as handed over. */
void Engine::handOver(const Arrival& arrival, uint64_t place) {
  if (leaveAsked()) return;  // not acked: it flies on to the next neighbor
  if (place == place_) {
    if (arrival.seq <= lastSeq_) {
      count([](Counts* counts) { counts->repeats++; });
      return;
    }
    lastSeq_ = arrival.seq;
  }
  count([](Counts* counts) { counts->received++; });
  if (options_.onSprite) options_.onSprite(arrival.edge, arrival.sprite);
}

void Engine::loseContact(const std::string& why, Millis least, Time now) {
  failures_++;
  count([](Counts* counts) { counts->failures++; });
  Millis wait = backoff(failures_);
  if (least > Millis(0)) {
    const auto spread = static_cast<double>(std::min(least / 4, kJitterMost).count());
    const Millis jitter(
        std::uniform_int_distribution<Millis::rep>(0, static_cast<Millis::rep>(spread))(random_));
    wait = std::max(wait, least + jitter);
  }
  nextContact_ = now + wait;
  setState({State::kOffline, false, why, wait});
  settleWaiting(later(wait, why));
}

void Engine::losePlace(const std::string& why, Time now) {
  id_.clear();
  place_++;
  transport_.cancel(std::exchange(poll_, 0));
  failures_++;
  count([](Counts* counts) { counts->failures++; });
  nextContact_ = now + backoff(failures_);
  setState({State::kConnecting, false, why, Millis(0)});
}

// ---- leaving

void Engine::startLeaving(Time now) {
  if (leaving_ == Leaving::kThrows) {
    if (!throws_.empty() && now < leaveDeadline_ - kLeaveReserve) return;
    while (!throws_.empty()) {
      transport_.cancel(throws_.front().request);
      settle(throws_.begin(), unknown("the client left before an answer came"));
    }
    if (id_.empty()) {
      finish();
      return;
    }
    leaving_ = Leaving::kAck;
    if (lastSeq_ > ackTaken_) {
      // No answer has proved yet that the last ack was taken, and what is not acked would fly on
      // from here and be there twice. Of two polls the server answers the earlier one at once.
      const unsigned hold = holdRefused_ || serverHold_ < kShortestHold ? 0 : kShortestHold;
      if (poll_ == 0) poll_ = startPoll(hold);
      ackPoll_ = startPoll(hold);
    }
  }
  if (leaving_ == Leaving::kAck) {
    const bool asking = poll_ != 0 && ackPoll_ != 0;
    if (lastSeq_ > ackTaken_ && asking && now < leaveDeadline_ - kLeaveReserve / 2) return;
    leaving_ = Leaving::kTelling;
    leaveDue_ = now;
  }
  tellLeaving(now);
}

void Engine::tellLeaving(Time now) {
  if (now >= leaveDeadline_) {
    finish();
  } else if (leave_ == 0 && now >= leaveDue_) {
    Request request;
    request.method = Method::kPost;
    request.path = "/leave/" + id_;
    request.timeout = options_.answerTimeout;
    leave_ = transport_.start(request);
  }
}

void Engine::onLeave(const Reply& reply, Time now) {
  const bool again = !reply.answered || reply.status == 429 || reply.status >= 500;
  if (again) {
    leaveDue_ = now + std::max(kLeaveRetry, reply.retryAfter);
  } else {
    finish();
  }
}

void Engine::finish() {
  for (RequestId* request : {&join_, &poll_, &ackPoll_, &leave_}) {
    transport_.cancel(std::exchange(*request, 0));
  }
  id_.clear();
  setState({State::kLeft, false, "", Millis(0)});
}

// ---- the rest

void Engine::setState(StateChange change) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_ == change.state && !change.newPlace) return;
    state_ = change.state;
  }
  if (!options_.onState) return;
  events_.emplace_back([this, told = std::move(change)] { options_.onState(told); });
}

/** noexcept is the promise of client.h: an exception out of a callback ends the program. */
void Engine::callBack() noexcept {
  std::vector<std::function<void()>> events;
  events.swap(events_);
  for (const auto& event : events) event();
}

/** Full jitter under a ceiling that doubles, so that a crowd that lost contact at once spreads. */
Millis Engine::backoff(unsigned failures) {
  const unsigned doublings = std::min(failures > 0 ? failures - 1 : 0U, 16U);
  const Millis ceiling = std::min(kBackoffFirst * (1U << doublings), options_.maxBackoff);
  std::uniform_int_distribution<Millis::rep> spread(0, ceiling.count());
  return kBackoffLeast + Millis(spread(random_));
}

Millis Engine::untilNext(Time now) const {
  if (state() == State::kLeft) return Millis(0);
  Time next = now + std::chrono::minutes(1);
  // What lies behind waits for something else (an answer, room on the wire), not for the clock.
  const auto at = [&next, now](Time time) {
    if (time > now) next = std::min(next, time);
  };
  if (leaving_ != Leaving::kNo) {
    at(leaveDeadline_);
    at(leaveDeadline_ - kLeaveReserve);
    at(leaveDeadline_ - kLeaveReserve / 2);
    if (leave_ == 0) at(leaveDue_);
  } else if (join_ == 0 && poll_ == 0) {
    at(nextContact_);
  }
  for (const Throw& each : throws_) {
    if (each.request != 0) continue;
    at(each.deadline);
    at(each.due);
  }
  return std::chrono::ceil<Millis>(next - now);
}

}  // namespace sprites
