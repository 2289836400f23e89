// A client of the torus that sends its requests ahead, on one connection: throws, polls, places,
// feeds and what JavaScript answers, several at once.
#ifndef TEST_NATIVE_SIMULATED_PIPELINE_H_
#define TEST_NATIVE_SIMULATED_PIPELINE_H_

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "simulated_http.h"

namespace sim {

class Pipeliner : public Client, private PipeOwner {
 public:
  explicit Pipeliner(uint32_t address) : pipe_(this, address) {
    machine->after(machine->below(2 * kSecond), this, 0);
  }

  void expectInTime() const override { pipe_.expectInTime(); }
  void close() override { pipe_.cut(false); }
  bool owes() const override { return !throws_.empty(); }
  bool isDone() const override { return session_ == kNobody && asked_.empty(); }

  void act(uint64_t) override {
    pipe_.misbehave();
    if (session_ == kNobody) {
      if (asked_.empty() && !crowd->leaving) ask({Kind::kJoin}, post("/join"));
    } else if (crowd->leaving) {
      if (asked_.empty() || asked_.back().kind != Kind::kLeave) {
        ask({Kind::kLeave}, post("/leave/" + id()));
      }
    } else {
      sendAhead();
    }
    machine->after(1 + machine->below(crowd->calm ? kSecond : crowd->odds.think / 4), this, 0);
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;
  static constexpr size_t kMostAhead = 12;
  enum class Kind : uint8_t { kJoin, kLeave, kThrow, kPoll, kPlace, kFeed, kCold };

  /** A request, and the number that it is about: of a throw's sprite, of a poll's ack, or drawn. */
  struct Asked {
    Kind kind;
    uint64_t number = 0;
  };

  /** A sprite whose throw has no answer. */
  struct Throw {
    uint32_t sprite;
    uint64_t number;
    uint64_t tries;
    bool sent;
  };

  const std::string& id() const { return ledger->session(session_).text; }

  static std::string get(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nHost: s\r\n\r\n";
  }
  static std::string post(const std::string& target, const std::string& body = {}) {
    return "POST " + target +
           " HTTP/1.1\r\nHost: s\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           body;
  }

  /** @return false: no server */
  bool ask(Asked what, const std::string& request) {
    const bool goes = pipe_.ask(request, kHold * kSecond + kAnswerTime);
    if (goes) asked_.push_back(what);
    return goes;
  }

  void sendAhead() {
    for (Throw& one : throws_) {
      if (!one.sent) send(&one);
    }
    bool polls = false;
    for (const Asked& one : asked_) polls = polls || one.kind == Kind::kPoll;
    for (uint64_t more = crowd->calm ? 0 : machine->below(6); more > 0; --more) {
      // Of more throws without an answer than a server remembers one may be stale.
      if (std::max(asked_.size(), throws_.size()) >= kMostAhead) break;
      const uint64_t what = machine->below(6);
      const uint64_t number = machine->below(1000000);
      if (what < 3) {
        throws_.push_back({ledger->thrown(), ++thrown_, 0, false});
        send(&throws_.back());
      } else if (what == 3) {
        ask({Kind::kPlace}, get("/place/" + id()));
      } else if (what == 4) {
        ask({Kind::kFeed}, get("/feed/value/a"));
      } else {
        ask({Kind::kCold, number}, get("/cold/" + std::to_string(number)));
      }
    }
    if (polls && (crowd->calm || machine->below(3) != 0)) return;
    Session& session = ledger->session(session_);
    const uint64_t ack = session.sprites.size();
    session.acked = ack;
    ask({Kind::kPoll, ack}, get("/poll/" + id() + "?hold=5&ack=" + std::to_string(ack)));
  }

  void send(Throw* one) {
    static constexpr const char* kEdges[] = {"/left?n=", "/right?n=", "/up?n=", "/down?n="};
    one->sent = ask({Kind::kThrow, one->sprite},
                    post("/throw/" + id() + kEdges[one->sprite % 4] + std::to_string(one->number),
                         "{\"u\":" + std::to_string(one->sprite) + ",\"f\":\"\"}"));
    if (!one->sent) return;
    ++one->tries;
    machine->say("sprite %" PRIu64 " is thrown ahead, behind %" PRIu64 " requests", one->sprite,
                 asked_.size() - 1);
  }

  void answered(const Answer& answer) override {
    const Asked asked = asked_.front();
    asked_.pop_front();
    // The connection closes: requests behind this one are lost.
    if (answer.status == 503) return asked_.empty() ? lost() : void();
    if (answer.reason == "unknown-client") return end();
    const auto [status, reason, body] = answer;
    switch (asked.kind) {
      case Kind::kJoin:
        if (status != 201) return expectRefusal(answer);
        session_ = ledger->open();
        ledger->session(session_).text = body;
        ledger->session(session_).id = idOf(body);
        thrown_ = 0;
        return;
      case Kind::kLeave:
        return status == 204 ? end() : expectRefusal(answer);
      case Kind::kThrow:
        return thrown(asked.number, answer);
      case Kind::kPoll:
        return status == 200 ? polled(asked.number, body) : expectRefusal(answer);
      case Kind::kPlace:
        return expect(status == 200 && body.starts_with("{\"row\":"), kOrder);
      case Kind::kFeed:
        return expect(reason == "unknown-feed" || body.starts_with("{\"feed\":\"value/a\""),
                      kOrder);
      case Kind::kCold:
        return expect(body == "/cold/" + std::to_string(asked.number), kOrder);
    }
  }

  void thrown(uint64_t sprite, const Answer& answer) {
    const auto found = std::find_if(throws_.begin(), throws_.end(),
                                    [&](const Throw& one) { return one.sprite == sprite; });
    // Of a session before.
    if (found == throws_.end()) return;
    if (answer.status == 202) {
      expect(answer.reason != "duplicate" || found->tries > 1,
             "throws: the first is called a duplicate");
      ledger->promised(found->sprite);
    } else {
      expectRefusal(answer);
      if (found->tries == 1) ledger->refused(found->sprite);
    }
    throws_.erase(found);
  }

  void polled(uint64_t ack, std::string_view body) {
    expect(body.starts_with("{\"seq\":"), kOrder);
    Session& session = ledger->session(session_);
    session.confirmed = std::max(session.confirmed, ack);
    size_t at = 1;
    uint64_t last = ack;
    for (uint64_t sequence; (sequence = numberIn(body, "{\"seq\":", &at)) != UINT64_MAX;) {
      expect(sequence == last + 1, "polls: an answer leaves a number out");
      last = sequence;
      ledger->came(session_, sequence, numberIn(body, "\"sprite\":{\"u\":", &at));
    }
  }

  static void expectRefusal(const Answer& answer) {
    for (const char* known :
         {"torus-full", "neighbor-busy", "mailboxes-full", "state-unwritable"}) {
      if (answer.reason == known) return;
    }
    machine->broken("requests: refused for no reason, by " + std::string(answer.reason));
  }

  void streamed(std::string_view) override {}

  /** What has no answer is thrown once more. */
  void lost() override {
    asked_.clear();
    for (Throw& one : throws_) one.sent = false;
  }

  void end() {
    if (session_ == kNobody) return;
    ledger->session(session_).gone = true;
    session_ = kNobody;
    throws_.clear();
    pipe_.cut(false);
  }

  static constexpr const char* kOrder = "answers: one is to another request than the oldest";

  Pipe pipe_;
  uint32_t session_ = kNobody;
  std::deque<Asked> asked_;
  std::deque<Throw> throws_;
  uint64_t thrown_ = 0;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_PIPELINE_H_
