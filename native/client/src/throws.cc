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
constexpr size_t kThrowSpeed = 16;  // bytes per millisecond that a throw's time limit grows by
constexpr const char* kLate = "no answer came in time";

}  // namespace

/** Returns whether a throw may have the next number: no throw that may be repeated is too far
 * behind it. */
bool Engine::mayNumber() const {
  return std::none_of(throws_.begin(), throws_.end(), [this](const Throw& each) {
    return each.place == place_.id && (each.maybeTaken || each.request != 0) &&
           each.n + kNumberWindow <= place_.n;
  });
}

/** Returns the earliest time for a throw over an edge. */
Engine::Time Engine::opens(Edge edge) const {
  return std::max(throwsOpen_, edgeOpen_[static_cast<size_t>(edge)]);
}

void Engine::startThrows(Time now) {
  const bool leaving = leaving_ != Leaving::kNo;
  auto onWire = static_cast<size_t>(std::count_if(
      throws_.begin(), throws_.end(), [](const Throw& each) { return each.request != 0; }));
  for (auto each = throws_.begin(); each != throws_.end();) {
    const auto pending = each++;
    if (pending->request != 0) continue;
    if (!pending->maybeTaken) {
      if (settleUnsent(pending, now)) continue;
      if (place_.id.empty()) continue;  // the client is joining
    } else if (pending->place != place_.id) {
      settle(pending, {Outcome::kForgotten, {}, {}, "the place it was thrown from is gone"});
      continue;
    } else if (now >= pending->deadline) {
      settle(pending, {Outcome::kUnanswered, {}, {}, kLate});
      continue;
    } else if (state() == State::kOffline && !leaving) {
      continue;  // it waits for contact
    }
    const bool due = leaving || now >= std::max(pending->due, opens(pending->edge));
    if (onWire >= options_.maxParallelThrows || !due) continue;
    if (sendThrow(&*pending, now)) onWire++;
  }
}

/** Settles a throw that was never sent, if it can't be sent now; else returns false. */
bool Engine::settleUnsent(Throws::iterator pending, Time now) {
  if (leaving_ != Leaving::kNo) {
    settle(pending, {Outcome::kOffline, {}, {}, "the client is leaving"});
  } else if (state() == State::kOffline) {
    const Millis retry = std::max(Millis(0), std::chrono::ceil<Millis>(nextContact_ - now));
    settle(pending, {Outcome::kOffline, retry, {}, "there is no contact with the server"});
  } else if (now >= pending->deadline) {
    settle(pending, {Outcome::kOffline, {}, {}, "there was no contact in time"});
  } else if (now < opens(pending->edge)) {
    const Millis retry = std::chrono::ceil<Millis>(opens(pending->edge) - now);
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
  if (!pending->maybeTaken) {
    if (!mayNumber()) return false;
    pending->place = place_.id;
    pending->n = ++place_.n;
    tellResume();
  }
  const std::string path = "/throw/" + pending->place + "/" + toString(pending->edge) +
                           "?n=" + std::to_string(pending->n);
  const Millis time = options_.answerTimeout + Millis(pending->json.size() / kThrowSpeed);
  pending->request = transport_.start({Method::kPost, path, pending->json, time, true});
  pending->due = now;
  pending->isLast = leaving_ != Leaving::kNo;
  if (pending->tries++ > 0) count([](Counts* counts) { counts->resent++; });
  return true;
}

void Engine::onThrow(Throws::iterator pending, const Reply& reply, Time now) {
  pending->request = 0;
  pending->maybeTaken |= reply.isResent;
  const Problem problem = readProblem(reply.body);
  const Why why = whyOf(reply, problem);
  const std::optional<ThrowAnswer> answer =
      reply.status == 202 ? readThrow(reply.body) : std::nullopt;
  if (answer) {
    if (answer->retry > Millis(0)) throwsOpen_ = now + answer->retry;
    settle(pending, {answer->outcome, {}, {}, {}});
  } else if (isProblem(problem, "unknown-client")) {
    onThrowForgotten(pending, now);
  } else if (reply.status == 429 || reply.status == 503) {
    onThrowBusy(pending, reply, problem, now);
  } else if (reply.status < 500 && reply.status != 408 && problem.type.find(kProblemPrefix) == 0) {
    // A certain refusal, but for a number below the server's window that was sent before: the
    // server may have accepted that throw.
    const bool stale = pending->maybeTaken && isProblem(problem, "stale-number");
    settle(pending, {stale ? Outcome::kForgotten : Outcome::kRefused, {}, problem.type, why.line});
  } else {
    onThrowUnanswered(pending, reply, why, now);
  }
}

/** Schedules the throw again under its number, or settles it after its last attempt. */
void Engine::onThrowUnanswered(Throws::iterator pending, const Reply& reply, const Why& why,
                               Time now) {
  const bool online = state() == State::kOnline;
  if (online) tryContact(now);
  if (!reply.maybeSent && !pending->maybeTaken) {
    settle(pending, {Outcome::kOffline, backoff(1), {}, why.line});
    return;
  }
  pending->maybeTaken = true;
  // A failure without contact says nothing about the throw: only throwPatience ends it then.
  if (online) pending->attempts++;
  if (pending->attempts >= options_.throwAttempts || pending->isLast) {
    settle(pending, {Outcome::kUnanswered,
                     {},
                     {},
                     "no answer came, in " + std::to_string(pending->tries) + " tries"});
    return;
  }
  pending->due = now + backoff(pending->tries);
}

void Engine::onThrowBusy(Throws::iterator pending, const Reply& reply, const Problem& problem,
                         Time now) {
  const bool neighbor = isProblem(problem, "neighbor-busy");
  const Millis asked = reply.retryAfter > Millis(0) ? reply.retryAfter : kBusyUsual;
  const Millis rest = std::max(kBusyLeast, serverWait(asked, 0));
  (neighbor ? edgeOpen_[static_cast<size_t>(pending->edge)] : throwsOpen_) = now + rest;
  // The server sends these two only after looking for the number among its accepted ones: a
  // certain refusal.
  const bool sure = neighbor || isProblem(problem, "mailboxes-full");
  if (pending->maybeTaken && !sure) {  // the answer says nothing about the earlier try
    if (pending->isLast) settle(pending, {Outcome::kUnanswered, {}, {}, kLate});
    return;
  }
  settle(pending, {Outcome::kBusy, rest, problem.type, whyOf(reply, problem).line});
}

void Engine::onThrowForgotten(Throws::iterator pending, Time now) {
  forget(pending->place, now);
  if (pending->maybeTaken) {
    settle(pending,
           {Outcome::kForgotten, {}, {}, "the server has forgotten this client and its throws"});
  } else if (++pending->attempts >= options_.throwAttempts) {
    settle(pending, {Outcome::kOffline,
                     {},
                     kProblemPrefix + std::string("unknown-client"),
                     "the server forgets every place it is thrown from"});
  } else {
    pending->place.clear();  // it will be sent from the new place
  }
}

Engine::Throws::iterator Engine::settle(Throws::iterator pending, ThrowResult result) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_--;
    if (result.taken()) counts_.thrown++;
    if (!result.taken() && !result.yours()) counts_.unknown++;
  }
  if (pending->result) {
    events_.emplace_back(
        [call = std::move(pending->result), told = std::move(result)] { call(told); });
  }
  return throws_.erase(pending);
}

/** Settles the throws that are not on the wire and that the server certainly has not accepted. */
void Engine::settleWaiting(const std::string& detail, Millis retry) {
  for (auto each = throws_.begin(); each != throws_.end();) {
    if (each->request == 0 && !each->maybeTaken) {
      each = settle(each, {Outcome::kOffline, retry, {}, detail});
    } else {
      ++each;
    }
  }
}

}  // namespace sprites
