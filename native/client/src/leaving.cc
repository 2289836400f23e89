// Leaving: the throws on the wire get their answer, the last ack is proven, the server is told.
#include <algorithm>
#include <utility>

#include "engine.h"
#include "waits.h"

namespace sprites {

namespace {

constexpr Millis kLeaveRetry{200};

}  // namespace

void Engine::startLeaving(Time now) {
  if (leaving_ == Leaving::kThrows) {
    if (!throws_.empty() && now < leaveDeadline_ - kLeaveReserve) return;
    while (!throws_.empty()) {
      transport_.cancel(throws_.front().request);
      settle(throws_.begin(), Outcome::kUnanswered, "the client left before an answer came");
    }
    if (place_.id.empty()) {
      finish();
      return;
    }
    leaving_ = Leaving::kAck;
    if (place_.ack > ackTaken_) {
      // No answer has proved yet that the last ack was taken, and what is not acked would fly on
      // from here and be there twice. Of two polls the server answers the earlier one at once.
      const unsigned hold = holdRefused_ || place_.hold < kShortestHold ? 0 : kShortestHold;
      if (poll_ == 0) poll_ = startPoll(hold);
      ackPoll_ = startPoll(hold);
    }
  }
  if (leaving_ == Leaving::kAck) {
    const bool asking = poll_ != 0 && ackPoll_ != 0;
    if (place_.ack > ackTaken_ && asking && now < leaveDeadline_ - kLeaveReserve / 2) return;
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

void Engine::onLeave(const Reply& reply, Time now) {
  const bool again = !reply.answered || reply.status == 429 || reply.status >= 500;
  if (again) {
    leaveDue_ = now + std::max(kLeaveRetry, reply.retryAfter);
  } else {
    finish();
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

}  // namespace sprites
