// Players of an arena. An input's value is its number: so a reduction shows which input it got.
#ifndef TEST_NATIVE_SIMULATED_ARENA_H_
#define TEST_NATIVE_SIMULATED_ARENA_H_

#include <string>

#include "simulated_clients.h"

namespace sim {

class ArenaPlayer : public Client {
 public:
  using Client::Client;

  bool isUpToDate() const override { return player_.empty() || (newest_ > 0 && pending_ == 0); }

  void act(uint64_t) override {
    pipe_.misbehave();
    if (pipe_.pendingCount() == 0 && !crowd->mustLeave) player_.empty() ? join() : play();
    machine->schedule(1 + machine->below(kSecond), this, 0);
  }

 private:
  void join() {
    if (crowd->isCalm) return;
    joinSentAt_ = machine->now();
    pipe_.send(postRequest("/arena/hall"), {.timeout = kAnswerTime});
  }

  void play() {
    if (crowd->isCalm && newest_ > 0 && pending_ == 0) return;
    if (!crowd->isCalm && machine->below(100) == 0) {
      // The player may have left already, without an answer.
      hasSentLeave_ |=
          pipe_.send(postRequest("/arena/hall/" + player_ + "/leave"), {.timeout = kAnswerTime});
      return;
    }
    // Some players pause for a lease, or longer.
    if (!crowd->isCalm && machine->below(100) == 0) pausesUntil_ = machine->now() + 30 * kSecond;
    if (!crowd->isCalm && machine->now() < pausesUntil_) return;
    // An unanswered input is sent again. Some players also repeat an old input.
    if (pending_ == 0) pending_ = ++newest_, pendingSince_ = machine->now();
    sentNumber_ = pending_;
    if (newest_ > 1 && machine->below(5) == 0) sentNumber_ = 1 + machine->below(newest_ - 1);
    const std::string number = std::to_string(sentNumber_);
    if (!pipe_.send(
            postRequest("/arena/hall/" + player_ + "?n=" + number, "{\"x\":" + number + "}"),
            {.timeout = kAnswerTime})) {
      return;
    }
    Inputs& its = (*inputs)[number_];
    its.sent = std::max(its.sent, sentNumber_);
    machine->trace("player %" PRIu64 " sends its input %" PRIu64, number_, sentNumber_);
  }

  void onAnswer(const PendingRequest&, const Answer& answer) override {
    if (answer.status == 503) return;
    if (answer.status == 200 && hasSentLeave_) return reset();
    if (answer.status == 200) {
      player_ = answer.body.substr(0, 36);
      size_t at = 0;
      number_ = numberBehind(answer.body, " ", &at);
      expect(inputs->emplace(number_, Inputs{}).second, "arena: two players have one number");
      newest_ = pending_ = 0;
      renewedAt_ = joinSentAt_;
      machine->trace("player %" PRIu64 " has joined", number_);
      return;
    }
    if (answer.status == 204) {
      Inputs& its = (*inputs)[number_];
      its.confirmed = std::max(its.confirmed, sentNumber_);
      // A repeated input does not renew the lease.
      if (sentNumber_ == pending_) pending_ = 0, renewedAt_ = pendingSince_;
      return;
    }
    if (answer.reason == "unknown-player") {
      expect(machine->now() - renewedAt_ >= kLease * kSecond || hasSentLeave_ || crowd->diskFails,
             "arena: a lease ends too early");
      return reset();
    }
    if (answer.reason != "state-unwritable") {
      machine->fail("arena: refused for no reason, by " + std::string(answer.reason));
    }
  }

  void reset() {
    player_.clear();
    hasSentLeave_ = false;
  }

  std::string player_;         // its id; empty: not joined
  bool hasSentLeave_ = false;  // whether a leave was sent
  uint64_t number_ = 0;
  uint64_t newest_ = 0;   // number of its newest input
  uint64_t pending_ = 0;  // the newest input while it is unanswered; 0: none
  uint64_t sentNumber_ = 0;
  uint64_t pendingSince_ = 0;
  uint64_t joinSentAt_ = 0;
  uint64_t renewedAt_ = 0;  // lower bound of the lease's last renewal
  uint64_t pausesUntil_ = 0;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_ARENA_H_
