// The clients of a simulation. Each knows the server's promises to it, and checks the laws.
//
//   Pipe     a connection: each request is answered in order, once and in time, or it is closed
//   Client   an actor with such a connection
//   Ledger   of every sprite: promised, refused, its receiver and its sequence number
//   Player   joins, throws, polls, acks, leaves
//
//   send, send, send ─▶ [ 1 │ 2 │ 3 ] ─▶ server ─▶ answers, in this order; or a stream of events
#ifndef TEST_NATIVE_SIMULATED_CLIENTS_H_
#define TEST_NATIVE_SIMULATED_CLIENTS_H_

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "simulated_documents.h"
#include "simulated_server.h"

namespace sim {

/** Deadline of an answer without a hold, in microseconds: the disk may need ten seconds. */
constexpr uint64_t kAnswerTime = 90 * kSecond;

/** Returns the number after the next `behind` in a text, from `at` on. Moves `at` there. */
inline uint64_t numberBehind(std::string_view text, std::string_view behind, size_t* at) {
  *at = text.find(behind, *at);
  if (*at == text.npos) return UINT64_MAX;
  *at += behind.size();
  uint64_t number = UINT64_MAX;
  std::from_chars(text.data() + *at, text.data() + text.size(), number);
  return number;
}

inline std::string textBehind(std::string_view text, std::string_view behind, char until = '"') {
  const size_t at = text.find(behind);
  if (at == text.npos) return {};
  const size_t begin = at + behind.size();
  return std::string(text.substr(begin, text.find(until, begin) - begin));
}

inline std::string getRequest(const std::string& target, const std::string& fields = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: s\r\n" + fields + "\r\n";
}
inline std::string postRequest(const std::string& target, const std::string& body = {},
                               const char* method = "POST") {
  return std::string(method) + " " + target +
         " HTTP/1.1\r\nHost: s\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

// ---- Connections --------------------------------------------------------------------------------

/** A request that waits for its answer. */
struct PendingRequest {
  uint32_t kind = 0;
  uint32_t session = 0;
  uint64_t number = 0;
  uint64_t timeout = 0;  // microseconds to answer it in, from when it is the oldest
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
  /** Receives the answer to the oldest request. */
  virtual void onAnswer(const PendingRequest& request, const Answer& answer) = 0;
  /** Receives a piece of a stream, which answers the oldest request. */
  virtual void onStream(std::string_view) {}
  /** The connection is gone before the answer to this request. */
  virtual void onLost(const PendingRequest&) {}
};

/** A client's connection. Answers may be compressed. A request opens a closed one again. */
class Pipe : public ClientEnd {
 public:
  Pipe(PipeOwner* owner, uint32_t address, uint32_t server)
      : owner_(owner), address_(address), port_(portOf(server)) {}

  /** Number of unanswered requests. */
  size_t pendingCount() const { return pending_.size(); }
  bool isStreaming() const { return isStreaming_; }

  /** Sends a request. False: there is no server, or the client has ended its half. */
  bool send(std::string_view request, const PendingRequest& what) {
    if (crowd->isOver || hasEndedHalf_) return false;
    if (stream_ == kNoStream) {
      stream_ = network->connect(port_, address_, this);
      if (stream_ == kNoStream) return false;
    }
    ++crowd->requests;
    pending_.push_back(what);
    if (pending_.size() == 1) deadline_ = machine->now() + what.timeout;
    network->send(stream_, request);
    return true;
  }

  /** Closes the connection: by a reset, or behind its requests. */
  void close(bool reset) {
    if (stream_ == kNoStream) return;
    network->closeClient(std::exchange(stream_, kNoStream), reset);
    clear();
  }

  /** Plays faults: cuts the connection or its half, or stops reading for a while. */
  void misbehave() {
    if (isPaused_) setReading(false);
    if (crowd->isCalm || stream_ == kNoStream) return;
    if (machine->happens(crowd->odds.resets)) {
      machine->trace("connection %" PRIu64 " is cut by its client", stream_);
      close(machine->below(2) == 0);
    } else if (machine->happens(crowd->odds.resets)) {
      machine->trace("connection %" PRIu64 " is ended by half by its client", stream_);
      hasEndedHalf_ = true;
      network->endClientHalf(stream_);
    } else if (machine->happens(crowd->odds.stops)) {
      machine->trace("connection %" PRIu64 " is not read from", stream_);
      setReading(true);
    }
  }

  void expectInTime() const {
    if (pending_.empty() || isPaused_ || machine->now() < deadline_) return;
    machine->trace("what it was asked for: connection %" PRIu64 ", kind %" PRIu64, stream_,
                   pending_.front().kind);
    machine->fail(isStreaming_ ? "streams: one says nothing any more, and its connection stays"
                               : "requests: one is not answered, and its connection stays");
  }

  void onBytes(std::string_view bytes) override {
    text_ += bytes;
    while (isStreaming_ ? readChunk() : readAnswer()) {
    }
  }

  void onEnd() override {
    stream_ = kNoStream;
    clear();
  }

 private:
  static constexpr uint64_t kCommentEvery = 25 * kSecond;

  void setReading(bool whether) {
    isPaused_ = whether;
    network->setReading(stream_, !whether);
  }

  static bool has(std::string_view head, std::string_view field) {
    return head.find(field) != head.npos;
  }

  /** Removes and returns the oldest request. */
  PendingRequest popRequest() {
    const PendingRequest answered = pending_.front();
    pending_.pop_front();
    if (!pending_.empty()) deadline_ = machine->now() + pending_.front().timeout;
    return answered;
  }

  /** Reads one answer; false: it is incomplete. */
  bool readAnswer() {
    const size_t end = text_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const std::string_view head = std::string_view(text_).substr(0, end + 2);
    expect(!pending_.empty(), "answers: one comes to no request");
    expect(head.starts_with("HTTP/1.1 "), "answers: one has another form");
    isLastAnswer_ = has(head, "\r\nConnection: close\r\n");
    const bool gzip = has(head, "\r\nContent-Encoding: gzip\r\n");
    if (has(head, "\r\nTransfer-Encoding: chunked\r\n")) {
      isStreaming_ = true;
      inflater_.reset();
      if (gzip) inflater_.emplace();
      text_.erase(0, end + 4);
      return true;
    }
    size_t at = 0;
    const uint64_t length = numberBehind(head, "\r\nContent-Length: ", &at);
    expect(length != UINT64_MAX, "answers: one has no length");
    if (text_.size() < end + 4 + length) return false;
    const std::string answer = text_.substr(0, end + 4 + length);
    text_.erase(0, answer.size());
    const PendingRequest request = popRequest();
    std::string body = answer.substr(end + 4);
    if (gzip) body = inflate(body);
    if (isLastAnswer_) close(false);
    const size_t line = answer.find("\r\n");
    owner_->onAnswer(
        request, {atoi(answer.c_str() + 9), std::string_view(answer).substr(13, line - 13), body});
    return true;
  }

  bool readChunk() {
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
      isStreaming_ = false;
      popRequest();
      if (isLastAnswer_) close(false);
      return true;
    }
    deadline_ = machine->now() + kCommentEvery + kAnswerTime;
    if (inflater_) {
      std::string text;
      expect(inflater_->add(piece, &text), "streams: one in gzip is no gzip");
      piece = text;
    }
    owner_->onStream(piece);
    return true;
  }

  static std::string inflate(std::string_view bytes) {
    std::string text;
    Inflater inflater;
    expect(inflater.add(bytes, &text) && inflater.ended(), "answers: one in gzip is no gzip");
    return text;
  }

  /** Resets the state after the connection's end. */
  void clear() {
    isPaused_ = isStreaming_ = hasEndedHalf_ = false;
    text_.clear();
    for (const PendingRequest& one : std::exchange(pending_, {})) owner_->onLost(one);
  }

  PipeOwner* const owner_;
  const uint32_t address_;
  const uint16_t port_;
  StreamNumber stream_ = kNoStream;
  std::string text_;                    // received bytes
  std::deque<PendingRequest> pending_;  // unanswered requests
  uint64_t deadline_ = 0;               // deadline of the oldest
  bool isStreaming_ = false;            // a stream answers the oldest
  std::optional<Inflater> inflater_;
  bool isLastAnswer_ = false;  // the server closes behind the current answer
  bool isPaused_ = false;      // the client does not read
  bool hasEndedHalf_ = false;  // the client has ended its half
};

/** Joins the pieces of a stream to events. */
class EventReader {
 public:
  /** Adds a piece. Calls `take(event)` for each complete event. */
  template <typename Take>
  void add(std::string_view text, Take&& take) {
    text_ += text;
    for (size_t end; (end = text_.find("\n\n")) != text_.npos; text_.erase(0, end + 2)) {
      const std::string_view event = std::string_view(text_).substr(0, end);
      if (event != ":") take(event);
    }
  }
  void clear() { text_.clear(); }

 private:
  std::string text_;
};

/** A client of the run. */
class Client : public Actor, protected PipeOwner {
 public:
  explicit Client(uint32_t address, uint32_t server = 0) : pipe_(this, address, server) {
    machine->schedule(machine->below(2 * kSecond), this, 0);
  }

  virtual void expectInTime() const { pipe_.expectInTime(); }
  /** Whether the client waits for a promise, or for the end of an action. */
  virtual bool isWaiting() const { return false; }
  /** Whether the client has the newest versions; asked when nothing new is begun. */
  virtual bool isUpToDate() const { return true; }
  /** Whether the client has left; asked when all must leave. */
  virtual bool hasLeft() const { return true; }
  /** Closes the connections at the end of the run. */
  virtual void close() { pipe_.close(false); }

 protected:
  Pipe pipe_;
};

// ---- Sprites ------------------------------------------------------------------------------------

/** A client of the torus, from its join on. */
struct Session {
  Id id = {};
  uint32_t server = 0;
  std::string idText;
  uint64_t acked = 0;             // by any poll
  uint64_t confirmed = 0;         // acked by an answered poll
  std::vector<uint32_t> sprites;  // by sequence number
};

class Ledger {
 public:
  uint32_t openSession() {
    Session& session = sessions_.emplace_back();
    session = {};
    return static_cast<uint32_t>(sessions_.size() - 1);
  }
  Session& session(uint32_t number) { return sessions_[number]; }
  const std::deque<Session>& sessions() const { return sessions_; }

  /** Thrower of sprites without an order. */
  static constexpr uint32_t kUnordered = UINT32_MAX;

  uint32_t addThrown(uint32_t thrower = kUnordered, uint8_t edge = 0) {
    sprites_.push_back({thrower, edge});
    return static_cast<uint32_t>(sprites_.size() - 1);
  }
  void markPromised(uint32_t sprite) {
    expect(!sprites_[sprite].refused, "sprites: one is promised that was refused");
    sprites_[sprite].promised = true;
  }
  void markRefused(uint32_t sprite) {
    expect(sprites_[sprite].receiver == 0, "sprites: one is refused that has come");
    sprites_[sprite].refused = true;
  }

  /** Records that a sprite has come to a session, with its sequence number. */
  void recordArrival(uint32_t number, uint64_t sequence, uint64_t sprite) {
    Session& session = sessions_[number];
    expect(sprite < sprites_.size(), "sprites: one comes that was never thrown");
    Sprite& one = sprites_[sprite];
    expect(!one.refused, "sprites: one comes that was refused");
    if (sequence <= session.sprites.size()) {
      expect(session.sprites[sequence - 1] == sprite,
             "sprites: another one comes under the same number");
      return;
    }
    expect(sequence == session.sprites.size() + 1, "sprites: a number is left out");
    session.sprites.push_back(static_cast<uint32_t>(sprite));
    const auto isThere = [](const Session& of) {
      const Life* const life = hosts[of.server]->life();
      return life != nullptr && life->pool().find(of.id) != Pool::kNoRecord;
    };
    // A doubled sprite counts once against the doubted ones.
    if (one.receiver == number + 1) {
      expectOnce(false, "sprites: one comes twice to the same client");
    } else if (one.receiver != 0) {
      // A late delivery to a client that has left does not count.
      if (!isThere(session)) return;
      const Session& before = sessions_[one.receiver - 1];
      const bool acked = one.sequence <= before.confirmed;
      expectOnce(crowd->diskFails || !acked,
                 "sprites: one comes to a second client that the first has acked");
      expectOnce(acked || !isThere(before),
                 "sprites: one comes to a second client while the first is there");
    }
    expectOrder(number, one, sprite);
    one.receiver = number + 1;
    one.sequence = sequence;
    ++delivered;
  }

  uint64_t missing() const {
    uint64_t count = 0;
    for (const Sprite& one : sprites_) count += one.promised && one.receiver == 0 ? 1 : 0;
    return count;
  }
  uint64_t firstMissing() const {
    for (size_t i = 0; i < sprites_.size(); ++i) {
      if (sprites_[i].promised && sprites_[i].receiver == 0) return i;
    }
    return 0;
  }

  uint64_t delivered = 0;

 private:
  struct Sprite {
    uint32_t thrower;
    uint8_t edge;
    uint32_t receiver = 0;  // its last receiver's session, plus 1
    uint64_t sequence = 0;  // its number there
    bool promised = false, refused = false;
  };

  /** Expects that a sprite comes once. One that a server gave up in doubt may come from both. */
  void expectOnce(bool holds, const char* law) {
    if (!holds) expect(++duplicates_ <= Totals::read().doubted, law);
  }

  /** Expects the order of one client's sprites over one edge, while torus and ring don't change. */
  void expectOrder(uint32_t number, const Sprite& one, uint64_t sprite) {
    const uint64_t shape = Totals::read().shape;
    if (std::exchange(lastShape_, shape) != shape) {
      newest_.clear();
      firstOfShape_ = sprites_.size();
    }
    if (sprite < firstOfShape_ || one.thrower == kUnordered) return;
    uint64_t& newest = newest_[{one.thrower, one.edge, number}];
    expect(newest <= sprite, "sprites: one comes behind one that was thrown later");
    newest = sprite;
  }

  std::deque<Session> sessions_;
  std::deque<Sprite> sprites_;
  uint64_t duplicates_ = 0;
  uint64_t lastShape_ = 0;     // at the last arrival
  uint64_t firstOfShape_ = 0;  // the first sprite thrown with this shape
  std::map<std::tuple<uint32_t, uint8_t, uint32_t>, uint64_t> newest_;
};
inline Ledger* ledger = nullptr;

/** A client of the torus. */
class Player : public Client {
 public:
  /** One request at a time, and polls on a second connection; or one connection, pipelined. */
  enum class Mode : uint8_t { kInTurn, kPipelined };

  Player(uint32_t number, uint32_t address, uint32_t server, Mode way)
      : Client(address, server),
        number_(number),
        server_(server),
        isPipelining_(way == Mode::kPipelined),
        pollPipe_(this, address, server) {}

  /** Takes the client's next step. */
  void act(uint64_t) override {
    pipe_.misbehave();
    pollPipe_.misbehave();
    if (session_ == kNoSession) {
      if (pipe_.pendingCount() == 0 && !crowd->mustLeave)
        sendRequest(Kind::kJoin, 0, postRequest("/join"));
    } else {
      step();
    }
    const uint64_t pause = crowd->odds.think / (isPipelining_ ? 4 : 1);
    machine->schedule(1 + machine->below(crowd->isCalm ? kSecond : pause), this, 0);
  }

  void expectInTime() const override {
    pipe_.expectInTime();
    pollPipe_.expectInTime();
  }
  bool isWaiting() const override { return !throws_.empty(); }
  bool hasLeft() const override {
    return session_ == kNoSession && pipe_.pendingCount() == 0 && pollPipe_.pendingCount() == 0;
  }
  void close() override {
    pipe_.close(false);
    pollPipe_.close(false);
  }

 private:
  static constexpr uint32_t kNoSession = UINT32_MAX;
  static constexpr size_t kMaxPipelined = 12;
  enum class Kind : uint8_t { kJoin, kLeave, kThrow, kPoll, kPlace, kFeed, kCold };

  /** An unanswered throw. */
  struct Throw {
    uint32_t sprite;
    uint64_t number;
    uint8_t edge;
    size_t fillBytes;
    uint64_t tries = 0;
    bool isSent = false;
  };

  const std::string& id() const { return ledger->session(session_).idText; }

  /** Sends a request. `number`: a throw's sprite, a poll's ack, or a random number. */
  bool sendRequest(Kind kind, uint64_t number, const std::string& request) {
    Pipe& by = kind == Kind::kPoll && !isPipelining_ ? pollPipe_ : pipe_;
    const uint64_t holds = kind == Kind::kPoll || isPipelining_ ? kHold * kSecond : 0;
    return by.send(request, {.kind = static_cast<uint32_t>(kind),
                             .session = session_,
                             .number = number,
                             .timeout = holds + kAnswerTime});
  }

  /** Takes the next step of a joined client. */
  void step() {
    for (Throw& one : throws_) {
      if (!one.isSent) sendThrow(&one);
    }
    const bool leaves =
        crowd->mustLeave || (!crowd->isCalm && machine->happens(crowd->odds.leaves));
    if (leaves && pipe_.pendingCount() == 0 && throws_.empty()) {
      if (sendRequest(Kind::kLeave, 0, postRequest("/leave/" + id()))) {
        machine->trace("client %" PRIu64 " leaves", number_);
      }
    } else if (!crowd->isCalm) {
      startRequests();
    }
    if (pendingPolls_ == 0 || (isPipelining_ && !crowd->isCalm && machine->below(3) == 0))
      sendPoll();
  }

  void startRequests() {
    for (uint64_t more = isPipelining_ ? machine->below(6) : 1; more > 0; --more) {
      // Not more unanswered throws than the server remembers: an older one could be stale.
      if (std::max(pipe_.pendingCount(), throws_.size()) >= (isPipelining_ ? kMaxPipelined : 1))
        return;
      const uint64_t what = isPipelining_ ? machine->below(6) : 0;
      const uint64_t number = machine->below(1000000);
      if (what < 3) {
        throwNew();
      } else if (what == 3) {
        sendRequest(Kind::kPlace, 0, getRequest("/place/" + id()));
      } else if (what == 4) {
        sendRequest(Kind::kFeed, 0, getRequest("/feed/value/a"));
      } else {
        sendRequest(Kind::kCold, number, getRequest("/cold/" + std::to_string(number)));
      }
    }
  }

  void throwNew() {
    const auto edge = static_cast<uint8_t>(machine->below(4));
    const size_t fill = machine->below(20) == 0 ? machine->below(3000) : machine->below(60);
    const uint32_t sprite = ledger->addThrown(isPipelining_ ? Ledger::kUnordered : number_, edge);
    throws_.push_back({sprite, ++lastNumber_, edge, fill});
    sendThrow(&throws_.back());
  }

  void sendThrow(Throw* one) {
    static constexpr const char* kEdges[] = {"/left?n=", "/right?n=", "/up?n=", "/down?n="};
    one->isSent =
        sendRequest(Kind::kThrow, one->sprite,
                    postRequest("/throw/" + id() + kEdges[one->edge] + std::to_string(one->number),
                                "{\"u\":" + std::to_string(one->sprite) + ",\"f\":\"" +
                                    std::string(one->fillBytes, 'x') + "\"}"));
    if (!one->isSent) return;
    ++one->tries;
    machine->trace("client %" PRIu64 " throws %" PRIu64 ", its %" PRIu64 ".", number_, one->sprite,
                   one->number);
  }

  void sendPoll() {
    if (crowd->mustLeave) return;
    Session& session = ledger->session(session_);
    uint64_t ack = session.sprites.size();
    // Some clients ack less than they have.
    if (!crowd->isCalm && ack > session.acked && machine->below(20) == 0) {
      ack = session.acked + machine->below(ack - session.acked);
    }
    const uint64_t hold = isPipelining_            ? 5
                          : machine->below(3) == 0 ? 5 + machine->below(kHold - 4)
                                                   : 0;
    const std::string held = hold == 0 ? "" : "&hold=" + std::to_string(hold);
    session.acked = ack;
    if (!sendRequest(Kind::kPoll, ack,
                     getRequest("/poll/" + id() + "?ack=" + std::to_string(ack) + held)))
      return;
    ++pendingPolls_;
    machine->trace("client %" PRIu64 " polls, ack %" PRIu64, number_, ack);
  }

  void onAnswer(const PendingRequest& request, const Answer& answer) override {
    const auto kind = Kind{static_cast<uint8_t>(request.kind)};
    if (answer.status == 503) return onLost(request);
    if (kind == Kind::kPoll) --pendingPolls_;
    if (kind != Kind::kJoin && request.session != session_) {
      // An answer to an earlier session: its promise holds.
      if (kind == Kind::kThrow && answer.status == 202) {
        ledger->markPromised(static_cast<uint32_t>(request.number));
      }
      return;
    }
    if (answer.reason == "unknown-client") return onLeft();
    const auto& [status, reason, body] = answer;
    switch (kind) {
      case Kind::kJoin:
        return status == 201 ? onJoined(body) : expectRefusal(answer);
      case Kind::kLeave:
        return status == 204 ? onLeft() : expectRefusal(answer);
      case Kind::kThrow:
        return onThrown(request.number, answer);
      case Kind::kPoll:
        return status == 200 ? onPolled(request.number, body) : expectRefusal(answer);
      case Kind::kPlace:
        return expect(status == 200 && body.starts_with("{\"row\":"), kWrongOrder);
      case Kind::kFeed:
        return expect(reason == "unknown-feed" || body.starts_with("{\"feed\":\"value/a\""),
                      kWrongOrder);
      case Kind::kCold:
        return expect(body == "/cold/" + std::to_string(request.number), kWrongOrder);
    }
  }

  void onJoined(std::string_view body) {
    session_ = ledger->openSession();
    Session& session = ledger->session(session_);
    session.idText = body;
    session.id = idOf(body);
    session.server = server_;
    lastNumber_ = 0;
    machine->trace("client %" PRIu64 " has joined: session %" PRIu64, number_, session_);
    pollAgain();
  }

  auto findThrow(uint64_t sprite) {
    return std::find_if(throws_.begin(), throws_.end(),
                        [&](const Throw& one) { return one.sprite == sprite; });
  }

  void onThrown(uint64_t sprite, const Answer& answer) {
    const auto found = findThrow(sprite);
    if (answer.status == 202) {
      const bool again = answer.reason == "duplicate";
      machine->trace(again ? "sprite %" PRIu64 " is promised: it was already"
                           : "sprite %" PRIu64 " is promised",
                     sprite);
      expect(!again || found->tries > 1, "throws: the first is called a duplicate");
      ledger->markPromised(found->sprite);
    } else {
      expectRefusal(answer);
      machine->trace("sprite %" PRIu64 " is refused", sprite);
      // An earlier try may have been accepted.
      if (found->tries == 1) ledger->markRefused(found->sprite);
    }
    throws_.erase(found);
  }

  static void expectRefusal(const Answer& answer) {
    static constexpr const char* kKnown[] = {"torus-full",       "neighbor-busy",  "mailboxes-full",
                                             "state-unwritable", "too-many-joins", "draining"};
    const bool known = std::ranges::find(kKnown, answer.reason) != std::end(kKnown);
    if (answer.status == 400 && known) return;
    machine->fail("requests: refused for no reason, by " + std::to_string(answer.status) + " " +
                  std::string(answer.reason));
  }

  void onPolled(uint64_t ack, std::string_view body) {
    Session& session = ledger->session(session_);
    session.confirmed = std::max(session.confirmed, ack);
    expect(body.starts_with("{\"seq\":"), kWrongOrder);
    size_t at = 0;
    const uint64_t newest = numberBehind(body, "{\"seq\":", &at);
    uint64_t last = ack;
    for (uint64_t sequence; (sequence = numberBehind(body, "{\"seq\":", &at)) != UINT64_MAX;) {
      const uint64_t sprite = numberBehind(body, "\"sprite\":{\"u\":", &at);
      expect(sequence == last + 1, "polls: an answer leaves a number out");
      last = sequence;
      machine->trace("client %" PRIu64 " gets sprite %" PRIu64 " as its %" PRIu64 ".", number_,
                     sprite, sequence);
      ledger->recordArrival(session_, sequence, sprite);
    }
    expect(newest >= last, "polls: an answer names an older number than it has");
    pollAgain();
  }

  /** Polls again at once, mostly. */
  void pollAgain() {
    if (!isPipelining_ && pendingPolls_ == 0 && machine->below(50) != 0) sendPoll();
  }

  void onLost(const PendingRequest& request) override {
    const auto kind = Kind{static_cast<uint8_t>(request.kind)};
    machine->trace("client %" PRIu64 " has no answer", number_);
    if (kind == Kind::kPoll) --pendingPolls_;
    if (kind != Kind::kThrow) return;
    // The throw is repeated.
    const auto found = findThrow(request.number);
    if (found != throws_.end()) found->isSent = false;
  }

  void onLeft() {
    machine->trace("client %" PRIu64 " has left", number_);
    session_ = kNoSession;
    throws_.clear();
  }

  static constexpr const char* kWrongOrder = "answers: one is to another request than the oldest";

  const uint32_t number_;
  const uint32_t server_;
  const bool isPipelining_;
  Pipe pollPipe_;
  uint32_t session_ = kNoSession;
  uint32_t pendingPolls_ = 0;  // unanswered polls
  std::deque<Throw> throws_;
  uint64_t lastNumber_ = 0;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_CLIENTS_H_
