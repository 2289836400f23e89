// A client's connection on which several requests are under way, whose answers may be compressed,
// or streams of events.
//
//   ask, ask, ask ─▶ [ 1 │ 2 │ 3 ] ─▶ server ─▶ answers, in this order: each whole, once, in time
#ifndef TEST_NATIVE_SIMULATED_HTTP_H_
#define TEST_NATIVE_SIMULATED_HTTP_H_

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "simulated_clients.h"
#include "simulated_documents.h"

namespace sim {

/** A client as the run has it. */
class Client : public Actor {
 public:
  virtual void expectInTime() const = 0;
  /** Whether something it was promised, or has begun, is still to come. */
  virtual bool owes() const { return false; }
  /** Whether it has what is newest, now that nothing new is begun. */
  virtual bool isUpToDate() const { return true; }
  /** Whether it is gone, now that all are to go. */
  virtual bool isDone() const { return true; }
  virtual void close() = 0;
};

struct Answer {
  int status;
  std::string_view reason;
  std::string_view body;
};

/** The owner of a connection. */
class PipeOwner {
 public:
  virtual ~PipeOwner() = default;
  /** The answer to the oldest request. */
  virtual void answered(const Answer& answer) = 0;
  /** What a stream has sent, which is the answer to the oldest request. */
  virtual void streamed(std::string_view text) = 0;
  /** The connection is gone, and with it the answers to all that was asked. */
  virtual void lost() = 0;
};

class Pipe : public Line {
 public:
  Pipe(PipeOwner* owner, uint32_t address) : Line(address, 0), owner_(owner) {}

  /** How many requests have no answer. */
  size_t asked() const { return asked_.size(); }
  bool streams() const { return streams_; }

  /** Asks for something that is to be answered within so many microseconds from when it is the
   * oldest; false: no server. */
  bool ask(std::string_view request, uint64_t within) {
    if (!open()) return false;
    asked_.push_back(within);
    if (asked_.size() == 1) until_ = machine->now() + within;
    network->send(stream_, request);
    return true;
  }

  /** Some connections are cut, some are not read from for a while. */
  void misbehave() {
    if (stopped_) stop(false);
    if (crowd->calm || stream_ == kNoStream) return;
    if (machine->chance(crowd->odds.resets)) return cut(machine->below(2) == 0);
    if (machine->chance(crowd->odds.stops)) stop(true);
  }

  void expectInTime() const {
    if (asked_.empty() || stopped_ || machine->now() < until_) return;
    machine->broken(streams_ ? "streams: one says nothing any more, and its connection stays"
                             : "requests: one is not answered, and its connection stays");
  }

  void came(std::string_view bytes) override {
    text_ += bytes;
    while (streams_ ? takeChunk() : takeAnswer()) {
    }
  }

 private:
  static constexpr uint64_t kCommentEvery = 25 * kSecond;

  void stop(bool whether) {
    stopped_ = whether;
    network->reads(stream_, !whether);
  }

  static bool has(std::string_view head, std::string_view field) {
    return head.find(field) != head.npos;
  }

  /** The oldest request is answered. */
  void next() {
    asked_.pop_front();
    if (!asked_.empty()) until_ = machine->now() + asked_.front();
  }

  /** Takes one answer from what has come; false: it is not whole. */
  bool takeAnswer() {
    const size_t end = text_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const std::string_view head = std::string_view(text_).substr(0, end + 2);
    expect(!asked_.empty(), "answers: one comes to no request");
    expect(head.starts_with("HTTP/1.1 "), "answers: one has another form");
    last_ = has(head, "\r\nConnection: close\r\n");
    const bool gzip = has(head, "\r\nContent-Encoding: gzip\r\n");
    if (has(head, "\r\nTransfer-Encoding: chunked\r\n")) {
      streams_ = true;
      unpacked_.reset();
      if (gzip) unpacked_.emplace();
      text_.erase(0, end + 4);
      return true;
    }
    size_t at = 0;
    const uint64_t length = numberIn(head, "\r\nContent-Length: ", &at);
    expect(length != UINT64_MAX, "answers: one has no length");
    if (text_.size() < end + 4 + length) return false;
    const std::string answer = text_.substr(0, end + 4 + length);
    text_.erase(0, answer.size());
    next();
    std::string body = answer.substr(end + 4);
    if (gzip) body = unpacked(body);
    if (last_) cut(false);
    const size_t line = answer.find("\r\n");
    owner_->answered(
        {atoi(answer.c_str() + 9), std::string_view(answer).substr(13, line - 13), body});
    return true;
  }

  bool takeChunk() {
    const size_t end = text_.find("\r\n");
    if (end == std::string::npos) return false;
    size_t length = 0;
    const auto parsed = std::from_chars(text_.data(), text_.data() + end, length, 16);
    expect(parsed.ptr == text_.data() + end && end > 0, "streams: a chunk has no length");
    if (text_.size() < end + 2 + length + 2) return false;
    expect(text_.compare(end + 2 + length, 2, "\r\n") == 0,
           "streams: a chunk is longer than it says");
    std::string piece = text_.substr(end + 2, length);
    text_.erase(0, end + 2 + length + 2);
    if (length == 0) {
      streams_ = false;
      next();
      if (last_) cut(false);
      return true;
    }
    until_ = machine->now() + kCommentEvery + kAnswerTime;
    if (unpacked_) {
      std::string text;
      expect(unpacked_->add(piece, &text), "streams: one in gzip is no gzip");
      piece = text;
    }
    owner_->streamed(piece);
    return true;
  }

  static std::string unpacked(std::string_view bytes) {
    std::string text;
    Inflater inflater;
    expect(inflater.add(bytes, &text) && inflater.ended(), "answers: one in gzip is no gzip");
    return text;
  }

  void forget() override {
    stopped_ = streams_ = false;
    text_.clear();
    if (asked_.empty()) return;
    asked_.clear();
    owner_->lost();
  }

  PipeOwner* const owner_;
  std::deque<uint64_t> asked_;  // how long each may take; `until_` is for the oldest
  bool streams_ = false;        // the oldest is being answered by a stream
  std::optional<Inflater> unpacked_;
  bool last_ = false;  // it closes behind the answer that comes
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_HTTP_H_
