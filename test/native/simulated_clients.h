// The clients of a simulation. Each knows the server's promises to it, and checks the laws.
//
//   Pipe     a connection: each request is answered in order, once and in time, or it is closed
//   Client   an actor with such a connection
//   Ledger   of every sprite: promised, refused, its receiver and its sequence number
//   Player   joins, throws, polls, acks, leaves
//
//   ask, ask, ask ─▶ [ 1 │ 2 │ 3 ] ─▶ server ─▶ answers, in this order; or a stream of events
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
inline uint64_t numberIn(std::string_view text, std::string_view behind, size_t* at) {
  *at = text.find(behind, *at);
  if (*at == text.npos) return UINT64_MAX;
  *at += behind.size();
  uint64_t number = UINT64_MAX;
  std::from_chars(text.data() + *at, text.data() + text.size(), number);
  return number;
}

inline std::string textIn(std::string_view text, std::string_view behind, char until = '"') {
  const size_t at = text.find(behind);
  if (at == text.npos) return {};
  const size_t begin = at + behind.size();
  return std::string(text.substr(begin, text.find(until, begin) - begin));
}

inline std::string get(const std::string& target, const std::string& fields = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: s\r\n" + fields + "\r\n";
}
inline std::string post(const std::string& target, const std::string& body = {},
                        const char* method = "POST") {
  return std::string(method) + " " + target +
         " HTTP/1.1\r\nHost: s\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

// ---- Connections --------------------------------------------------------------------------------

/** A request that waits for its answer. */
struct Asked {
  uint32_t kind = 0;
  uint32_t session = 0;
  uint64_t number = 0;
  uint64_t within = 0;  // microseconds to answer it in, from when it is the oldest
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
  virtual void answered(const Asked& asked, const Answer& answer) = 0;
  /** Receives a piece of a stream, which answers the oldest request. */
  virtual void streamed(std::string_view) {}
  /** The connection is gone before the answer to this request. */
  virtual void lost(const Asked&) {}
};

/** A client's connection. Answers may be compressed. A request opens a closed one again. */
class Pipe : public Peer {
 public:
  Pipe(PipeOwner* owner, uint32_t address, uint32_t server)
      : owner_(owner), address_(address), port_(portOf(server)) {}

  /** Number of unanswered requests. */
  size_t asked() const { return asked_.size(); }
  bool streams() const { return streams_; }

  /** Sends a request. False: there is no server, or the client has ended its half. */
  bool ask(std::string_view request, const Asked& what) {
    if (crowd->over || ended_) return false;
    if (stream_ == kNoStream) {
      stream_ = network->connect(port_, address_, this);
      if (stream_ == kNoStream) return false;
    }
    ++crowd->requests;
    asked_.push_back(what);
    if (asked_.size() == 1) until_ = machine->now() + what.within;
    network->send(stream_, request);
    return true;
  }

  /** Closes the connection: by a reset, or behind its requests. */
  void cut(bool reset) {
    if (stream_ == kNoStream) return;
    network->leave(std::exchange(stream_, kNoStream), reset);
    forget();
  }

  /** Plays faults: cuts the connection or its half, or stops reading for a while. */
  void misbehave() {
    if (stopped_) stop(false);
    if (crowd->calm || stream_ == kNoStream) return;
    if (machine->chance(crowd->odds.resets)) {
      machine->say("connection %" PRIu64 " is cut by its client", stream_);
      cut(machine->below(2) == 0);
    } else if (machine->chance(crowd->odds.resets)) {
      machine->say("connection %" PRIu64 " is ended by half by its client", stream_);
      ended_ = true;
      network->end(stream_);
    } else if (machine->chance(crowd->odds.stops)) {
      machine->say("connection %" PRIu64 " is not read from", stream_);
      stop(true);
    }
  }

  void expectInTime() const {
    if (asked_.empty() || stopped_ || machine->now() < until_) return;
    machine->say("what it was asked for: connection %" PRIu64 ", kind %" PRIu64, stream_,
                 asked_.front().kind);
    machine->broken(streams_ ? "streams: one says nothing any more, and its connection stays"
                             : "requests: one is not answered, and its connection stays");
  }

  void came(std::string_view bytes) override {
    text_ += bytes;
    while (streams_ ? takeChunk() : takeAnswer()) {
    }
  }

  void over() override {
    stream_ = kNoStream;
    forget();
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

  /** Removes and returns the oldest request. */
  Asked next() {
    const Asked answered = asked_.front();
    asked_.pop_front();
    if (!asked_.empty()) until_ = machine->now() + asked_.front().within;
    return answered;
  }

  /** Reads one answer; false: it is incomplete. */
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
    const Asked asked = next();
    std::string body = answer.substr(end + 4);
    if (gzip) body = unpacked(body);
    if (last_) cut(false);
    const size_t line = answer.find("\r\n");
    owner_->answered(
        asked, {atoi(answer.c_str() + 9), std::string_view(answer).substr(13, line - 13), body});
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

  /** Resets the state after the connection's end. */
  void forget() {
    stopped_ = streams_ = ended_ = false;
    text_.clear();
    for (const Asked& one : std::exchange(asked_, {})) owner_->lost(one);
  }

  PipeOwner* const owner_;
  const uint32_t address_;
  const uint16_t port_;
  StreamNumber stream_ = kNoStream;
  std::string text_;         // received bytes
  std::deque<Asked> asked_;  // unanswered requests
  uint64_t until_ = 0;       // deadline of the oldest
  bool streams_ = false;     // a stream answers the oldest
  std::optional<Inflater> unpacked_;
  bool last_ = false;     // the server closes behind the current answer
  bool stopped_ = false;  // the client does not read
  bool ended_ = false;    // the client has ended its half
};

/** Joins the pieces of a stream to events. */
class Events {
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
    machine->after(machine->below(2 * kSecond), this, 0);
  }

  virtual void expectInTime() const { pipe_.expectInTime(); }
  /** Whether the client waits for a promise, or for the end of an action. */
  virtual bool owes() const { return false; }
  /** Whether the client has the newest versions; asked when nothing new is begun. */
  virtual bool isUpToDate() const { return true; }
  /** Whether the client has left; asked when all must leave. */
  virtual bool isDone() const { return true; }
  /** Closes the connections at the end of the run. */
  virtual void close() { pipe_.cut(false); }

 protected:
  Pipe pipe_;
};

// ---- Sprites ------------------------------------------------------------------------------------

/** A client of the torus, from its join on. */
struct Session {
  Id id = {};
  uint32_t server = 0;
  std::string text;
  uint64_t acked = 0;             // by any poll
  uint64_t confirmed = 0;         // acked by an answered poll
  std::vector<uint32_t> sprites;  // by sequence number
};

class Ledger {
 public:
  uint32_t open() {
    Session& session = sessions_.emplace_back();
    session = {};
    return static_cast<uint32_t>(sessions_.size() - 1);
  }
  Session& session(uint32_t number) { return sessions_[number]; }
  const std::deque<Session>& sessions() const { return sessions_; }

  /** Thrower of sprites without an order. */
  static constexpr uint32_t kUnordered = UINT32_MAX;

  uint32_t thrown(uint32_t thrower = kUnordered, uint8_t edge = 0) {
    sprites_.push_back({thrower, 0, 0, edge, false, false});
    return static_cast<uint32_t>(sprites_.size() - 1);
  }
  void promised(uint32_t sprite) {
    expect(!sprites_[sprite].refused, "sprites: one is promised that was refused");
    sprites_[sprite].promised = true;
  }
  void refused(uint32_t sprite) {
    expect(sprites_[sprite].holder == 0, "sprites: one is refused that has come");
    sprites_[sprite].refused = true;
  }

  /** Records that a sprite has come to a session, with its sequence number. */
  void came(uint32_t number, uint64_t sequence, uint64_t sprite) {
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
    if (one.holder == number + 1) {
      expectOnce(false, "sprites: one comes twice to the same client");
    } else if (one.holder != 0) {
      // A late delivery to a client that has left does not count.
      if (!isThere(session)) return;
      const Session& before = sessions_[one.holder - 1];
      const bool acked = one.sequence <= before.confirmed;
      expectOnce(crowd->lossy || !acked,
                 "sprites: one comes to a second client that the first has acked");
      expectOnce(acked || !isThere(before),
                 "sprites: one comes to a second client while the first is there");
    }
    expectOrder(number, one, sprite);
    one.holder = number + 1;
    one.sequence = sequence;
    ++delivered;
  }

  uint64_t missing() const {
    uint64_t count = 0;
    for (const Sprite& one : sprites_) count += one.promised && one.holder == 0 ? 1 : 0;
    return count;
  }
  uint64_t firstMissing() const {
    for (size_t i = 0; i < sprites_.size(); ++i) {
      if (sprites_[i].promised && sprites_[i].holder == 0) return i;
    }
    return 0;
  }

  uint64_t delivered = 0;

 private:
  struct Sprite {
    uint32_t thrower;
    uint32_t holder;    // its last receiver's session, plus 1
    uint64_t sequence;  // its number there
    uint8_t edge;
    bool promised, refused;
  };

  /** Expects that a sprite comes once. One that a server gave up in doubt may come from both. */
  void expectOnce(bool holds, const char* law) {
    if (!holds) expect(++twice_ <= Books::read().doubted, law);
  }

  /** Expects the order of one client's sprites over one edge, while torus and ring don't change. */
  void expectOrder(uint32_t number, const Sprite& one, uint64_t sprite) {
    const uint64_t shape = Books::read().shape;
    if (std::exchange(shape_, shape) != shape) {
      newest_.clear();
      from_ = sprites_.size();
    }
    if (sprite < from_ || one.thrower == kUnordered) return;
    uint64_t& newest = newest_[{one.thrower, one.edge, number}];
    expect(newest <= sprite, "sprites: one comes behind one that was thrown later");
    newest = sprite;
  }

  std::deque<Session> sessions_;
  std::deque<Sprite> sprites_;
  uint64_t twice_ = 0;
  uint64_t shape_ = 0;  // at the last arrival
  uint64_t from_ = 0;   // the first sprite thrown with this shape
  std::map<std::tuple<uint32_t, uint8_t, uint32_t>, uint64_t> newest_;
};
inline Ledger* ledger = nullptr;

/** A client of the torus. */
class Player : public Client {
 public:
  /** One request at a time, and polls on a second connection; or one connection, pipelined. */
  enum class Way : uint8_t { kInTurn, kAhead };

  Player(uint32_t number, uint32_t address, uint32_t server, Way way)
      : Client(address, server),
        number_(number),
        server_(server),
        isAhead_(way == Way::kAhead),
        polls_(this, address, server) {}

  /** Takes the client's next step. */
  void act(uint64_t) override {
    pipe_.misbehave();
    polls_.misbehave();
    if (session_ == kNobody) {
      if (pipe_.asked() == 0 && !crowd->leaving) ask(Kind::kJoin, 0, post("/join"));
    } else {
      go();
    }
    const uint64_t pause = crowd->odds.think / (isAhead_ ? 4 : 1);
    machine->after(1 + machine->below(crowd->calm ? kSecond : pause), this, 0);
  }

  void expectInTime() const override {
    pipe_.expectInTime();
    polls_.expectInTime();
  }
  bool owes() const override { return !throws_.empty(); }
  bool isDone() const override {
    return session_ == kNobody && pipe_.asked() == 0 && polls_.asked() == 0;
  }
  void close() override {
    pipe_.cut(false);
    polls_.cut(false);
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;
  static constexpr size_t kMostAhead = 12;
  enum class Kind : uint8_t { kJoin, kLeave, kThrow, kPoll, kPlace, kFeed, kCold };

  /** An unanswered throw. */
  struct Throw {
    uint32_t sprite;
    uint64_t number;
    uint8_t edge;
    size_t fill;
    uint64_t tries = 0;
    bool sent = false;
  };

  const std::string& id() const { return ledger->session(session_).text; }

  /** Sends a request. `number`: a throw's sprite, a poll's ack, or a random number. */
  bool ask(Kind kind, uint64_t number, const std::string& request) {
    Pipe& by = kind == Kind::kPoll && !isAhead_ ? polls_ : pipe_;
    const uint64_t holds = kind == Kind::kPoll || isAhead_ ? kHold * kSecond : 0;
    return by.ask(request, {.kind = static_cast<uint32_t>(kind),
                            .session = session_,
                            .number = number,
                            .within = holds + kAnswerTime});
  }

  /** Takes the next step of a joined client. */
  void go() {
    for (Throw& one : throws_) {
      if (!one.sent) send(&one);
    }
    const bool leaves = crowd->leaving || (!crowd->calm && machine->chance(crowd->odds.leaves));
    if (leaves && pipe_.asked() == 0 && throws_.empty()) {
      if (ask(Kind::kLeave, 0, post("/leave/" + id()))) {
        machine->say("client %" PRIu64 " leaves", number_);
      }
    } else if (!crowd->calm) {
      begin();
    }
    if (polling_ == 0 || (isAhead_ && !crowd->calm && machine->below(3) == 0)) poll();
  }

  void begin() {
    for (uint64_t more = isAhead_ ? machine->below(6) : 1; more > 0; --more) {
      // Not more unanswered throws than the server remembers: an older one could be stale.
      if (std::max(pipe_.asked(), throws_.size()) >= (isAhead_ ? kMostAhead : 1)) return;
      const uint64_t what = isAhead_ ? machine->below(6) : 0;
      const uint64_t number = machine->below(1000000);
      if (what < 3) {
        throwNew();
      } else if (what == 3) {
        ask(Kind::kPlace, 0, get("/place/" + id()));
      } else if (what == 4) {
        ask(Kind::kFeed, 0, get("/feed/value/a"));
      } else {
        ask(Kind::kCold, number, get("/cold/" + std::to_string(number)));
      }
    }
  }

  void throwNew() {
    const auto edge = static_cast<uint8_t>(machine->below(4));
    const size_t fill = machine->below(20) == 0 ? machine->below(3000) : machine->below(60);
    const uint32_t sprite = ledger->thrown(isAhead_ ? Ledger::kUnordered : number_, edge);
    throws_.push_back({sprite, ++thrown_, edge, fill});
    send(&throws_.back());
  }

  void send(Throw* one) {
    static constexpr const char* kEdges[] = {"/left?n=", "/right?n=", "/up?n=", "/down?n="};
    one->sent = ask(Kind::kThrow, one->sprite,
                    post("/throw/" + id() + kEdges[one->edge] + std::to_string(one->number),
                         "{\"u\":" + std::to_string(one->sprite) + ",\"f\":\"" +
                             std::string(one->fill, 'x') + "\"}"));
    if (!one->sent) return;
    ++one->tries;
    machine->say("client %" PRIu64 " throws %" PRIu64 ", its %" PRIu64 ".", number_, one->sprite,
                 one->number);
  }

  void poll() {
    if (crowd->leaving) return;
    Session& session = ledger->session(session_);
    uint64_t ack = session.sprites.size();
    // Some clients ack less than they have.
    if (!crowd->calm && ack > session.acked && machine->below(20) == 0) {
      ack = session.acked + machine->below(ack - session.acked);
    }
    const uint64_t hold = isAhead_ ? 5 : machine->below(3) == 0 ? 5 + machine->below(kHold - 4) : 0;
    const std::string held = hold == 0 ? "" : "&hold=" + std::to_string(hold);
    session.acked = ack;
    if (!ask(Kind::kPoll, ack, get("/poll/" + id() + "?ack=" + std::to_string(ack) + held))) return;
    ++polling_;
    machine->say("client %" PRIu64 " polls, ack %" PRIu64, number_, ack);
  }

  void answered(const Asked& asked, const Answer& answer) override {
    const auto kind = Kind{static_cast<uint8_t>(asked.kind)};
    if (answer.status == 503) return lost(asked);
    if (kind == Kind::kPoll) --polling_;
    if (kind != Kind::kJoin && asked.session != session_) {
      // An answer to an earlier session: its promise holds.
      if (kind == Kind::kThrow && answer.status == 202) {
        ledger->promised(static_cast<uint32_t>(asked.number));
      }
      return;
    }
    if (answer.reason == "unknown-client") return end();
    const auto& [status, reason, body] = answer;
    switch (kind) {
      case Kind::kJoin:
        return status == 201 ? join(body) : expectRefusal(answer);
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

  void join(std::string_view body) {
    session_ = ledger->open();
    Session& session = ledger->session(session_);
    session.text = body;
    session.id = idOf(body);
    session.server = server_;
    thrown_ = 0;
    machine->say("client %" PRIu64 " has joined: session %" PRIu64, number_, session_);
    pollSoon();
  }

  auto findThrow(uint64_t sprite) {
    return std::find_if(throws_.begin(), throws_.end(),
                        [&](const Throw& one) { return one.sprite == sprite; });
  }

  void thrown(uint64_t sprite, const Answer& answer) {
    const auto found = findThrow(sprite);
    if (answer.status == 202) {
      const bool again = answer.reason == "duplicate";
      machine->say(again ? "sprite %" PRIu64 " is promised: it was already"
                         : "sprite %" PRIu64 " is promised",
                   sprite);
      expect(!again || found->tries > 1, "throws: the first is called a duplicate");
      ledger->promised(found->sprite);
    } else {
      expectRefusal(answer);
      machine->say("sprite %" PRIu64 " is refused", sprite);
      // An earlier try may have been accepted.
      if (found->tries == 1) ledger->refused(found->sprite);
    }
    throws_.erase(found);
  }

  static void expectRefusal(const Answer& answer) {
    static constexpr const char* kKnown[] = {"torus-full",       "neighbor-busy",  "mailboxes-full",
                                             "state-unwritable", "too-many-joins", "draining"};
    const bool known = std::ranges::find(kKnown, answer.reason) != std::end(kKnown);
    if (answer.status == 400 && known) return;
    machine->broken("requests: refused for no reason, by " + std::to_string(answer.status) + " " +
                    std::string(answer.reason));
  }

  void polled(uint64_t ack, std::string_view body) {
    Session& session = ledger->session(session_);
    session.confirmed = std::max(session.confirmed, ack);
    expect(body.starts_with("{\"seq\":"), kOrder);
    size_t at = 0;
    const uint64_t newest = numberIn(body, "{\"seq\":", &at);
    uint64_t last = ack;
    for (uint64_t sequence; (sequence = numberIn(body, "{\"seq\":", &at)) != UINT64_MAX;) {
      const uint64_t sprite = numberIn(body, "\"sprite\":{\"u\":", &at);
      expect(sequence == last + 1, "polls: an answer leaves a number out");
      last = sequence;
      machine->say("client %" PRIu64 " gets sprite %" PRIu64 " as its %" PRIu64 ".", number_,
                   sprite, sequence);
      ledger->came(session_, sequence, sprite);
    }
    expect(newest >= last, "polls: an answer names an older number than it has");
    pollSoon();
  }

  /** Polls again at once, mostly. */
  void pollSoon() {
    if (!isAhead_ && polling_ == 0 && machine->below(50) != 0) poll();
  }

  void lost(const Asked& asked) override {
    const auto kind = Kind{static_cast<uint8_t>(asked.kind)};
    machine->say("client %" PRIu64 " has no answer", number_);
    if (kind == Kind::kPoll) --polling_;
    if (kind != Kind::kThrow) return;
    // The throw is repeated.
    const auto found = findThrow(asked.number);
    if (found != throws_.end()) found->sent = false;
  }

  void end() {
    machine->say("client %" PRIu64 " has left", number_);
    session_ = kNobody;
    throws_.clear();
  }

  static constexpr const char* kOrder = "answers: one is to another request than the oldest";

  const uint32_t number_;
  const uint32_t server_;
  const bool isAhead_;
  Pipe polls_;
  uint32_t session_ = kNobody;
  uint32_t polling_ = 0;  // unanswered polls
  std::deque<Throw> throws_;
  uint64_t thrown_ = 0;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_CLIENTS_H_
