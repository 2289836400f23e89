// Sprites out: one throw from its acceptance to its result.
#include <algorithm>
#include <utility>

#include "engine.h"
#include "engine_base.h"

namespace sprites {

namespace {

constexpr uint64_t kNumberWindow = 60;  // the server remembers 64; the rest is for throws under way
constexpr Millis kBusyUsual{1000};      // wait after a 429 or 503 without Retry-After
constexpr Millis kBusyLeast{250};
constexpr size_t kThrowBytesPerMilli = 16;  // for so many a throw has a millisecond more
constexpr const char* kNoAnswerInTime = "no answer came in time";

}  // namespace

/** Returns whether a throw may have the next number: no throw that may be repeated is too far
 * behind it. */
bool Engine::canUseNextNumber() const {
  return std::none_of(throws_.begin(), throws_.end(), [this](const Throw& each) {
    return each.placeId == place_.id && (each.mayBeAccepted || each.request != 0) &&
           each.n + kNumberWindow <= place_.n;
  });
}

/** Returns the earliest time for a throw over an edge. */
Engine::Time Engine::earliestThrowOver(Edge edge) const {
  return std::max(earliestThrow_, earliestThrowByEdge_[static_cast<size_t>(edge)]);
}

void Engine::startThrows(Time now) {
  const bool isLeaving = leaveStep_ != LeaveStep::kNotLeaving;
  auto onWire = static_cast<size_t>(std::count_if(
      throws_.begin(), throws_.end(), [](const Throw& each) { return each.request != 0; }));
  for (auto each = throws_.begin(); each != throws_.end();) {
    const auto pending = each++;
    if (pending->request != 0) continue;
    if (!pending->mayBeAccepted) {
      if (settleUnsent(pending, now)) continue;
      if (place_.id.empty()) continue;  // the client is joining
    } else if (pending->placeId != place_.id) {
      settle(pending, {Outcome::kForgotten, {}, {}, "the place it was thrown from is gone"});
      continue;
    } else if (now >= pending->deadline) {
      settle(pending, {Outcome::kUnanswered, {}, {}, kNoAnswerInTime});
      continue;
    } else if (state() == State::kOffline && !isLeaving) {
      continue;  // it waits for contact
    }
    const bool isDue = isLeaving || now >= std::max(pending->due, earliestThrowOver(pending->edge));
    if (onWire >= options_.maxParallelThrows || !isDue) continue;
    if (sendThrow(&*pending, now)) onWire++;
  }
}

/** Settles a throw that was never sent, if it can't be sent now; else returns false. */
bool Engine::settleUnsent(Throws::iterator pending, Time now) {
  if (leaveStep_ != LeaveStep::kNotLeaving) {
    settle(pending, {Outcome::kOffline, {}, {}, "the client is leaving"});
  } else if (state() == State::kOffline) {
    const Millis retry = std::max(Millis(0), std::chrono::ceil<Millis>(nextContact_ - now));
    settle(pending, {Outcome::kOffline, retry, {}, "there is no contact with the server"});
  } else if (now >= pending->deadline) {
    settle(pending, {Outcome::kOffline, {}, {}, "there was no contact in time"});
  } else if (now < earliestThrowOver(pending->edge)) {
    const Millis retry = std::chrono::ceil<Millis>(earliestThrowOver(pending->edge) - now);
    settle(pending, {Outcome::kBusy, retry, {}, "there was no room a moment ago"});
  } else if (!place_.id.empty() && place_.maxSprite > 0 &&
             pending->json.size() > place_.maxSprite) {
    settle(pending, {Outcome::kRefused,
                     {},
                     kProblemPrefix + std::string("sprite-too-large"),
                     "the server takes at most " + std::to_string(place_.maxSprite) + " bytes"});
  } else {
    return false;
  }
  return true;
}

bool Engine::sendThrow(Throw* pending, Time now) {
  if (!pending->mayBeAccepted) {
    if (!canUseNextNumber()) return false;
    pending->placeId = place_.id;
    pending->n = ++place_.n;
    reportResume();
  }
  const std::string path = "/throw/" + pending->placeId + "/" + toString(pending->edge) +
                           "?n=" + std::to_string(pending->n);
  const Millis time = options_.answerTimeout + Millis(pending->json.size() / kThrowBytesPerMilli);
  pending->request = transport_.start({Method::kPost, path, pending->json, time, true});
  pending->due = now;
  pending->isSentWhileLeaving = leaveStep_ != LeaveStep::kNotLeaving;
  if (pending->timesSent++ > 0) updateCounts([](Counts* counts) { counts->resent++; });
  return true;
}

void Engine::onThrow(Throws::iterator pending, const Reply& reply, Time now) {
  pending->request = 0;
  pending->mayBeAccepted |= reply.isResent;
  const Problem problem = readProblem(reply.body);
  const Reason reason = reasonOf(reply, problem);
  const std::optional<ThrowAnswer> answer =
      reply.status == 202 ? readThrow(reply.body) : std::nullopt;
  if (answer) {
    if (answer->retry > Millis(0)) earliestThrow_ = now + answer->retry;
    settle(pending, {answer->outcome, {}, {}, {}});
  } else if (isProblem(problem, "unknown-client")) {
    onThrowForgotten(pending, now);
  } else if (reply.status == 429 || reply.status == 503) {
    onThrowBusy(pending, reply, problem, now);
  } else if (reply.status < 500 && reply.status != 408 && problem.type.find(kProblemPrefix) == 0) {
    // A certain refusal, but for a number below the server's window that was sent before: the
    // server may have accepted that throw.
    const bool isStale = pending->mayBeAccepted && isProblem(problem, "stale-number");
    settle(pending,
           {isStale ? Outcome::kForgotten : Outcome::kRefused, {}, problem.type, reason.line});
  } else {
    onThrowUnanswered(pending, reply, reason, now);
  }
}

/** Schedules the throw again under its number, or settles it after its last attempt. */
void Engine::onThrowUnanswered(Throws::iterator pending, const Reply& reply, const Reason& reason,
                               Time now) {
  const bool isOnline = state() == State::kOnline;
  if (isOnline) retryContact(now);
  if (!reply.maybeSent && !pending->mayBeAccepted) {
    settle(pending, {Outcome::kOffline, backoff(1), {}, reason.line});
    return;
  }
  pending->mayBeAccepted = true;
  // A failure without contact says nothing about the throw: only throwPatience ends it then.
  if (isOnline) pending->failedAttempts++;
  if (pending->failedAttempts >= options_.throwAttempts || pending->isSentWhileLeaving) {
    settle(pending, {Outcome::kUnanswered,
                     {},
                     {},
                     "no answer came, in " + std::to_string(pending->timesSent) + " tries"});
    return;
  }
  pending->due = now + backoff(pending->timesSent);
}

void Engine::onThrowBusy(Throws::iterator pending, const Reply& reply, const Problem& problem,
                         Time now) {
  const bool isNeighborBusy = isProblem(problem, "neighbor-busy");
  const Millis requestedWait = reply.retryAfter > Millis(0) ? reply.retryAfter : kBusyUsual;
  const Millis wait = std::max(kBusyLeast, serverWait(requestedWait, 0));
  (isNeighborBusy ? earliestThrowByEdge_[static_cast<size_t>(pending->edge)] : earliestThrow_) =
      now + wait;
  // The server sends these two only after looking for the number among its accepted ones: a
  // certain refusal.
  const bool isCertain = isNeighborBusy || isProblem(problem, "mailboxes-full");
  if (pending->mayBeAccepted && !isCertain) {  // the answer says nothing about the earlier try
    if (pending->isSentWhileLeaving)
      settle(pending, {Outcome::kUnanswered, {}, {}, kNoAnswerInTime});
    return;
  }
  settle(pending, {Outcome::kBusy, wait, problem.type, reasonOf(reply, problem).line});
}

void Engine::onThrowForgotten(Throws::iterator pending, Time now) {
  onUnknownPlace(pending->placeId, now);
  if (pending->mayBeAccepted) {
    settle(pending,
           {Outcome::kForgotten, {}, {}, "the server has forgotten this client and its throws"});
  } else if (++pending->failedAttempts >= options_.throwAttempts) {
    settle(pending, {Outcome::kOffline,
                     {},
                     kProblemPrefix + std::string("unknown-client"),
                     "the server forgets every place it is thrown from"});
  } else {
    pending->placeId.clear();  // it will be sent from the new place
  }
}

Engine::Throws::iterator Engine::settle(Throws::iterator pending, ThrowResult result) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pendingThrows_--;
    if (result.taken()) counts_.thrown++;
    if (!result.taken() && !result.yours()) counts_.unknown++;
  }
  if (pending->onResult) {
    callbacks_.emplace_back([onResult = std::move(pending->onResult), result = std::move(result)] {
      onResult(result);
    });
  }
  return throws_.erase(pending);
}

/** Settles the throws that are not on the wire and that the server certainly has not accepted. */
void Engine::settleWaiting(const std::string& detail, Millis retry) {
  for (auto each = throws_.begin(); each != throws_.end();) {
    if (each->request == 0 && !each->mayBeAccepted) {
      each = settle(each, {Outcome::kOffline, retry, {}, detail});
    } else {
      ++each;
    }
  }
}

}  // namespace sprites
