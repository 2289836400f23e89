// Subscribers of a simulation: clients that watch a private feed by an event stream and a grant.
//
// The laws that a subscriber sees broken:
//   - a stream ends with its grant, and says why
//   - a value that was published behind that end does not come by it
//   - a grant that is good is not refused, and no other opens a stream
#ifndef TEST_NATIVE_SIMULATED_SUBSCRIBERS_H_
#define TEST_NATIVE_SIMULATED_SUBSCRIBERS_H_

#include <string>
#include <string_view>
#include <utility>

#include "simulated_http.h"
#include "simulated_visitors.h"

namespace sim {

class Subscriber : public Client, private PipeOwner {
 public:
  /** `publisher`: of the feed that it watches. */
  Subscriber(uint32_t number, const Publisher* publisher)
      : number_(number), publisher_(publisher), pipe_(this, 0x10000000 + number) {
    machine->after(machine->below(2 * kSecond), this, 0);
  }

  void close() override { pipe_.cut(false); }

  bool isUpToDate() const override {
    const Life* const life = hosts[0]->life();
    return life != nullptr && version_ == life->newest(publisher_->key()).version;
  }

  void expectInTime() const override {
    pipe_.expectInTime();
    if (!pipe_.streams() || machine->now() <= Visitor::after(endOfStream()) + kPause) return;
    machine->say("that is the stream of subscriber %" PRIu64, number_);
    machine->broken("grants: a stream goes on behind its end");
  }

  void act(uint64_t) override {
    expectInTime();
    pipe_.misbehave();
    if (pipe_.asked() == 0) ask();
    machine->after(1 + machine->below(kPause), this, 0);
  }

 private:
  /** For so long it does not read, where it stops. */
  static constexpr uint64_t kPause = kSecond;

  /** A stream that is asked for behind its grant's end lasts until the grant is verified. */
  uint64_t endOfStream() const { return std::max(book->endOf(*grant_), sentAt_ + kVerifies); }

  bool reads() const { return !grant_->forged && grant_->reads(publisher_->key()); }

  void takeGrant() {
    const uint64_t kind = crowd->calm ? 9 : machine->below(8);
    const uint64_t length =
        crowd->calm ? 3600 * kSecond : (1 + machine->below(20000)) * kMillisecond;
    grant_ = kind == 0 ? book->any() : nullptr;
    if (grant_ == nullptr) {
      grant_ = book->sign({.token = {},
                           .sub = "l" + std::to_string(number_) + "." + std::to_string(++names_),
                           .jti = {},
                           .read = kind == 1 ? "other/*" : "secret/*",
                           .present = machine->below(2) == 0,
                           .forged = kind == 2,
                           .end = machine->now() + length});
    }
    isSettled_ = crowd->calm;
    machine->say("subscriber %" PRIu64 " takes a grant for %" PRIu64 " ms, of kind %" PRIu64,
                 number_, length / kMillisecond, kind);
  }

  void ask() {
    if (grant_ == nullptr || isOver_ || (crowd->calm && !isSettled_)) takeGrant();
    isOver_ = false;
    sentAt_ = machine->now();
    std::string head = "GET /feed/" + publisher_->key() + " HTTP/1.1\r\nHost: s\r\n";
    head += "Accept: text/event-stream\r\nAuthorization: Bearer " + grant_->token + "\r\n";
    if (!cursor_.empty()) head += "Last-Event-ID: " + cursor_ + "\r\n";
    if (!pipe_.ask(head + "\r\n", kHold * kSecond + kAnswerTime)) return;
    machine->say("subscriber %" PRIu64 " asks for a stream behind version %" PRIu64, number_,
                 version_);
  }

  void answered(const Answer& answer) override {
    if (answer.status == 503) return;
    refusedBy(std::string(answer.reason));
  }

  void refusedBy(const std::string& reason) {
    machine->say(reason == "grant-expired" ? "subscriber %" PRIu64 " hears that its grant is old"
                 : reason == "bad-grant"   ? "subscriber %" PRIu64 " hears of a bad grant"
                                           : "subscriber %" PRIu64 " is refused",
                 number_);
    isOver_ = true;
    const uint64_t now = machine->now();
    const bool fits = reason == "grant-expired" ? grant_->end <= now + 2 * kMillisecond
                      : reason == "bad-grant"
                          ? grant_->forged || book->begunOf(*grant_) <= now
                          : reason == "not-granted" && !grant_->forged && !reads();
    if (!fits) machine->broken("grants: a stream is refused for no reason, by " + reason);
  }

  /** Events, or pieces of some. */
  void streamed(std::string_view text) override {
    expect(reads(), "grants: one that does not read a feed opens a stream of it");
    events_ += text;
    for (size_t end; (end = events_.find("\n\n")) != events_.npos; events_.erase(0, end + 2)) {
      take(std::string_view(events_).substr(0, end));
    }
  }

  void take(std::string_view event) {
    if (event == ":") return;
    const std::string problem = textIn(event, "\"problem\":\"", '"');
    if (!problem.empty()) return refusedBy(problem);
    const std::string id = textIn(event, "id: ", '\n');
    const Cursor cursor = Cursor::of(id);
    size_t at = 0;
    const uint64_t value = numberIn(event, "\"value\":{\"n\":", &at);
    machine->say("subscriber %" PRIu64 " gets version %" PRIu64 ", number %" PRIu64, number_,
                 cursor.version, value);
    records->saw(publisher_->key(), 0, cursor, value);
    expect(cursor.version > version_, "watchers: an older value comes after a newer one");
    // What is published while a worker is told of the end may still come.
    expect(publisher_->askedAt(value) <= book->endOf(*grant_) + kSecond,
           "grants: a value comes that was published behind its end");
    cursor_ = id;
    version_ = cursor.version;
  }

  void lost() override { events_.clear(); }

  static std::string textIn(std::string_view text, std::string_view behind, char until) {
    const size_t at = text.find(behind);
    if (at == text.npos) return {};
    const size_t begin = at + behind.size();
    return std::string(text.substr(begin, text.find(until, begin) - begin));
  }

  const uint32_t number_;
  const Publisher* const publisher_;
  Pipe pipe_;
  const SignedGrant* grant_ = nullptr;
  bool isSettled_ = false;  // it keeps that to the end
  bool isOver_ = false;     // it was refused, or has ended
  uint64_t names_ = 0;
  uint64_t sentAt_ = 0;
  std::string cursor_;
  uint64_t version_ = 0;
  std::string events_;  // that are not whole yet
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_SUBSCRIBERS_H_
