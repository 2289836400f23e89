// Players of an arena. An input's value is its number: so a reduction shows which input it got.
#ifndef TEST_NATIVE_SIMULATED_ARENA_H_
#define TEST_NATIVE_SIMULATED_ARENA_H_

#include <string>
#include <string_view>

#include "simulated_clients.h"

namespace sim {

class ArenaPlayer : public Client {
 public:
  using Client::Client;

  bool isUpToDate() const override { return player_.empty() || (newest_ > 0 && pending_ == 0); }

  void act(uint64_t) override {
    pipe_.misbehave();
    if (pipe_.asked() == 0 && !crowd->leaving) player_.empty() ? join() : play();
    machine->after(1 + machine->below(kSecond), this, 0);
  }

 private:
  void join() {
    if (crowd->calm) return;
    askedAt_ = machine->now();
    pipe_.ask(post("/arena/hall"), {.within = kAnswerTime});
  }

  void play() {
    if (crowd->calm && newest_ > 0 && pending_ == 0) return;
    if (!crowd->calm && machine->below(100) == 0) {
      // The player may have left already, without an answer.
      leaves_ |= pipe_.ask(post("/arena/hall/" + player_ + "/leave"), {.within = kAnswerTime});
      return;
    }
    // Some players pause for a lease, or longer.
    if (!crowd->calm && machine->below(100) == 0) pausesUntil_ = machine->now() + 30 * kSecond;
    if (!crowd->calm && machine->now() < pausesUntil_) return;
    // An unanswered input is sent again. Some players also repeat an old input.
    if (pending_ == 0) pending_ = ++newest_, pendingSince_ = machine->now();
    asked_ = pending_;
    if (newest_ > 1 && machine->below(5) == 0) asked_ = 1 + machine->below(newest_ - 1);
    const std::string number = std::to_string(asked_);
    if (!pipe_.ask(post("/arena/hall/" + player_ + "?n=" + number, "{\"x\":" + number + "}"),
                   {.within = kAnswerTime})) {
      return;
    }
    Inputs& its = (*inputs)[number_];
    its.sent = std::max(its.sent, asked_);
    machine->say("player %" PRIu64 " sends its input %" PRIu64, number_, asked_);
  }

  void answered(const Asked&, const Answer& answer) override {
    if (answer.status == 503) return;
    if (answer.status == 200 && leaves_) return forget();
    if (answer.status == 200) {
      player_ = answer.body.substr(0, 36);
      size_t at = 0;
      number_ = numberIn(answer.body, " ", &at);
      expect(inputs->emplace(number_, Inputs{}).second, "arena: two players have one number");
      newest_ = pending_ = 0;
      renewedAt_ = askedAt_;
      machine->say("player %" PRIu64 " has joined", number_);
      return;
    }
    if (answer.status == 204) {
      Inputs& its = (*inputs)[number_];
      its.taken = std::max(its.taken, asked_);
      // A repeated input does not renew the lease.
      if (asked_ == pending_) pending_ = 0, renewedAt_ = pendingSince_;
      return;
    }
    if (answer.reason == "unknown-player") {
      expect(machine->now() - renewedAt_ >= kLease * kSecond || leaves_ || crowd->lossy,
             "arena: a lease ends too early");
      return forget();
    }
    if (answer.reason != "state-unwritable") {
      machine->broken("arena: refused for no reason, by " + std::string(answer.reason));
    }
  }

  void forget() {
    player_.clear();
    leaves_ = false;
  }

  std::string player_;   // its id; empty: not joined
  bool leaves_ = false;  // whether a leave was sent
  uint64_t number_ = 0;
  uint64_t newest_ = 0;   // number of its newest input
  uint64_t pending_ = 0;  // the newest input while it is unanswered; 0: none
  uint64_t asked_ = 0;
  uint64_t pendingSince_ = 0;
  uint64_t askedAt_ = 0;
  uint64_t renewedAt_ = 0;  // lower bound of the lease's last renewal
  uint64_t pausesUntil_ = 0;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_ARENA_H_
