// The clients of a simulation, each of which knows what it was promised, and the laws that they see
// broken.
//
//   Wire       one connection: its requests, each answered once and in time, or closed
//   Player     joins, throws, polls, acks, leaves
//   Publisher  puts values, or appends items, one after the other
//   Reader    asks for what is newer than it has
//   Ledger     of every sprite: promised, refused, to whom it came, and by what number
//   Records    of every version of a feed: its one value
#ifndef TEST_NATIVE_SIMULATED_CLIENTS_H_
#define TEST_NATIVE_SIMULATED_CLIENTS_H_

#include <charconv>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "simulated_server.h"

namespace sim {

/** An actor with a connection, over which it asks. */
class Asking {
 public:
  virtual ~Asking() = default;
  virtual void answered(uint32_t wire, int status, std::string_view reason,
                        std::string_view body) = 0;
  /** The connection is gone, and with it the answer to what was asked. */
  virtual void lost(uint32_t wire) = 0;
};

/** A client's connection: it is opened again where it is gone. */
class Line : public Peer {
 public:
  /** Closes it: at once, or behind what was asked. */
  void cut(bool reset) {
    if (stream_ == kNoStream) return;
    network->leave(std::exchange(stream_, kNoStream), reset);
    forget();
  }

  void over() override {
    stream_ = kNoStream;
    forget();
  }

 protected:
  Line(uint32_t address, uint32_t server) : address_(address), port_(portOf(server)) {}

  /** Whether a request may be sent now; false: there is no server. */
  bool open() {
    if (crowd->over) return false;
    if (stream_ == kNoStream) {
      text_.clear();
      stream_ = network->connect(port_, address_, this);
      if (stream_ == kNoStream) return false;
    }
    ++crowd->requests;
    return true;
  }

  /** The connection is gone. */
  virtual void forget() = 0;

  StreamNumber stream_ = kNoStream;
  std::string text_;      // what has come
  bool stopped_ = false;  // it is not read from
  uint64_t until_ = 0;    // when there is to be an answer

 private:
  const uint32_t address_;
  const uint16_t port_;
};

class Wire : public Line {
 public:
  Wire(Asking* owner, uint32_t number, uint32_t address, uint32_t server = 0)
      : Line(address, server), owner_(owner), number_(number) {}

  bool asks() const { return asked_; }

  /** Asks for something that is to be answered within so many microseconds; false: no server. */
  bool ask(std::string_view request, uint64_t within) {
    if (!open()) return false;
    asked_ = true;
    until_ = machine->now() + within;
    network->send(stream_, request);
    return true;
  }

  void endHalf() {
    if (stream_ != kNoStream) network->end(stream_);
  }

  void stop(bool whether) {
    stopped_ = whether;
    if (stream_ != kNoStream) network->reads(stream_, !whether);
  }
  bool stopped() const { return stopped_; }

  void expectInTime() const {
    if (!asked_ || machine->now() < until_ || stopped_) return;
    machine->say("what it was asked for: connection %" PRIu64 " of kind %" PRIu64, stream_,
                 number_);
    machine->broken("requests: one is not answered, and its connection stays");
  }

  void came(std::string_view bytes) override {
    text_ += bytes;
    const size_t end = text_.find("\r\n\r\n");
    if (end == std::string::npos) return;
    const size_t field = text_.find("Content-Length: ");
    expect(field < end, "answers: one has no length");
    const size_t length = strtoul(text_.c_str() + field + 16, nullptr, 10);
    const size_t whole = end + 4 + length;
    if (text_.size() < whole) return;
    expect(asked_, "answers: one comes to no request");
    expect(text_.size() == whole, "answers: more comes than was asked for");
    const bool last = text_.find("Connection: close") < end;
    const std::string answer = std::exchange(text_, {});
    asked_ = false;
    if (last) cut(false);
    const std::string_view line = std::string_view(answer).substr(13, answer.find("\r\n") - 13);
    owner_->answered(number_, atoi(answer.c_str() + 9), line,
                     std::string_view(answer).substr(end + 4));
  }

 private:
  void forget() override {
    stopped_ = false;
    text_.clear();
    if (std::exchange(asked_, false)) owner_->lost(number_);
  }

  Asking* const owner_;
  const uint32_t number_;
  bool asked_ = false;
};

/** How long an answer may take that is not held: the disk may need ten seconds. */
constexpr uint64_t kAnswerTime = 90 * kSecond;

// ---- Sprites ------------------------------------------------------------------------------------

/** A client of the torus, from its join on. */
struct Session {
  Id id = {};
  uint32_t server = 0;
  std::string text;
  bool gone = false;              // it has left, or the server has said so
  uint64_t acked = 0;             // by any poll
  uint64_t confirmed = 0;         // acked, and the server has said that it knows
  std::vector<uint32_t> sprites;  // by their numbers
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

  /** Of no thrower: in no order. */
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

  /** A sprite has come to a session under a number. */
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
    // What comes twice counts once among those in doubt.
    if (one.holder == number + 1) {
      expectOnce(false, "sprites: one comes twice to the same client");
    } else if (one.holder != 0) {
      // What comes to a client that has left meanwhile may be late.
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
    uint32_t holder;    // the session to which it has come last, and 1
    uint64_t sequence;  // there
    uint8_t edge;
    bool promised, refused;
  };

  /** A sprite that a server has given up in doubt may come from both. */
  void expectOnce(bool holds, const char* law) {
    if (!holds) expect(++twice_ <= Books::read().doubted, law);
  }

  /** While torus and ring stay, what one client throws over one edge comes in that order. */
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
  uint64_t shape_ = 0;  // as it was when one came last
  uint64_t from_ = 0;   // the first that was thrown since it is so
  std::map<std::tuple<uint32_t, uint8_t, uint32_t>, uint64_t> newest_;
};
inline Ledger* ledger = nullptr;

inline uint64_t numberIn(std::string_view text, std::string_view behind, size_t* at) {
  *at = text.find(behind, *at);
  if (*at == text.npos) return UINT64_MAX;
  *at += behind.size();
  uint64_t number = UINT64_MAX;
  std::from_chars(text.data() + *at, text.data() + text.size(), number);
  return number;
}

class Player : public Actor, private Asking {
 public:
  enum : uint32_t { kHand, kPoll };

  Player(uint32_t number, uint32_t address, uint32_t server)
      : number_(number),
        server_(server),
        hand_(this, kHand, address, server),
        poll_(this, kPoll, address, server) {
    machine->after(machine->below(crowd->odds.think / 4 + 1), this, 0);
  }

  /** What a client does next. */
  void act(uint64_t) override {
    begun_ = false;
    misbehave();
    if (!hand_.asks()) useHand();
    if (session_ != kNobody && !poll_.asks()) poll();
    soon(crowd->calm ? kSecond : crowd->odds.think);
  }

  void expectInTime() const {
    hand_.expectInTime();
    poll_.expectInTime();
  }

  bool isDone() const { return session_ == kNobody && !hand_.asks() && !poll_.asks(); }
  bool owes() const { return sprite_ != kNone; }

  /** In the end. */
  void close() {
    hand_.cut(false);
    poll_.cut(false);
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;
  static constexpr uint32_t kNone = UINT32_MAX;
  enum class Did : uint8_t { kJoin, kThrow, kLeave };

  /** Not later than that. */
  void soon(uint64_t within) {
    if (std::exchange(begun_, true)) return;
    machine->after(1 + machine->below(within), this, 0);
  }

  void misbehave() {
    for (Wire* wire : {&hand_, &poll_}) {
      if (wire->stopped()) wire->stop(false);
      if (crowd->calm) continue;
      if (machine->chance(crowd->odds.resets)) {
        machine->say("client %" PRIu64 " cuts a connection", number_);
        wire->cut(machine->below(2) == 0);
      } else if (machine->chance(crowd->odds.resets)) {
        machine->say("client %" PRIu64 " ends its half", number_);
        wire->endHalf();
      } else if (machine->chance(crowd->odds.stops)) {
        machine->say("client %" PRIu64 " stops reading", number_);
        wire->stop(true);
      }
    }
  }

  void useHand() {
    if (session_ == kNobody) {
      if (!crowd->leaving)
        ask(Did::kJoin, "POST /join HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    if (sprite_ != kNone) return throwIt();
    if (crowd->leaving || (!crowd->calm && machine->chance(crowd->odds.leaves))) {
      const std::string request = "POST /leave/" + ledger->session(session_).text +
                                  " HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n";
      return ask(Did::kLeave, request);
    }
    if (crowd->calm) return;
    edge_ = static_cast<uint8_t>(machine->below(4));
    sprite_ = ledger->thrown(number_, edge_);
    ++throwNumber_;
    tries_ = 0;
    fill_ = machine->below(20) == 0 ? machine->below(3000) : machine->below(60);
    throwIt();
  }

  void throwIt() {
    static constexpr const char* kEdges[] = {"left", "right", "up", "down"};
    char body[64];
    const int length = snprintf(body, sizeof body, "{\"u\":%" PRIu32 ",\"f\":\"", sprite_);
    char head[160];
    snprintf(head, sizeof head,
             "POST /throw/%s/%s?n=%" PRIu64 " HTTP/1.1\r\nHost: s\r\nContent-Length: %zu\r\n\r\n",
             ledger->session(session_).text.c_str(), kEdges[edge_], throwNumber_,
             length + fill_ + 2);
    ++tries_;
    ask(Did::kThrow, head + std::string(body) + std::string(fill_, 'x') + "\"}");
  }

  void ask(Did what, std::string_view request) {
    did_ = what;
    asked_ = sprite_;
    if (!hand_.ask(request, kAnswerTime)) return;
    machine->say(what == Did::kJoin    ? "client %" PRIu64 " joins"
                 : what == Did::kLeave ? "client %" PRIu64 " leaves"
                                       : "client %" PRIu64 " throws %" PRIu64 ", its %" PRIu64 ".",
                 number_, sprite_, throwNumber_);
  }

  void poll() {
    Session& session = ledger->session(session_);
    pollAck_ = session.sprites.size();
    // Some ack less than they have.
    if (!crowd->calm && pollAck_ > session.acked && machine->below(20) == 0) {
      pollAck_ = session.acked + machine->below(pollAck_ - session.acked);
    }
    session.acked = pollAck_;
    const uint64_t hold = machine->below(3) == 0 ? 5 + machine->below(kHold - 4) : 0;
    char request[160];
    const std::string held = hold == 0 ? "" : "&hold=" + std::to_string(hold);
    snprintf(request, sizeof request, "GET /poll/%s?ack=%" PRIu64 "%s HTTP/1.1\r\nHost: s\r\n\r\n",
             session.text.c_str(), pollAck_, held.c_str());
    polled_ = session_;
    if (poll_.ask(request, kHold * kSecond + kAnswerTime)) {
      machine->say("client %" PRIu64 " polls, ack %" PRIu64, number_, pollAck_);
    }
  }

  void answered(uint32_t wire, int status, std::string_view reason,
                std::string_view body) override {
    if (status == 503) return;
    if (wire == kPoll) {
      polledAnswer(status, reason, body);
    } else {
      handAnswer(status, reason, body);
    }
  }

  void handAnswer(int status, std::string_view reason, std::string_view body) {
    switch (did_) {
      case Did::kJoin:
        if (status != 201) return expectRefusal(status, reason);
        session_ = ledger->open();
        ledger->session(session_).text = body;
        ledger->session(session_).id = idOf(body);
        ledger->session(session_).server = server_;
        throwNumber_ = 0;
        machine->say("client %" PRIu64 " has joined: session %" PRIu64, number_, session_);
        return soonPoll();
      case Did::kLeave:
        if (status != 204) return expectRefusal(status, reason);
        machine->say("client %" PRIu64 " has left", number_);
        return end();
      case Did::kThrow:
        return thrown(status, reason);
    }
  }

  void thrown(int status, std::string_view reason) {
    if (status == 202) {
      machine->say(reason == "duplicate" ? "sprite %" PRIu64 " is promised: it was already"
                                         : "sprite %" PRIu64 " is promised",
                   asked_);
      expect(reason != "duplicate" || tries_ > 1, "throws: the first is called a duplicate");
      ledger->promised(asked_);
      sprite_ = kNone;
      return;
    }
    if (reason == "unknown-client") return end();
    expectRefusal(status, reason);
    machine->say("sprite %" PRIu64 " is refused", asked_);
    // An earlier try of it may have been taken.
    if (tries_ == 1) ledger->refused(asked_);
    sprite_ = kNone;
  }

  void expectRefusal(int status, std::string_view reason) {
    const bool known = reason == "torus-full" || reason == "neighbor-busy" ||
                       reason == "mailboxes-full" || reason == "state-unwritable" ||
                       reason == "too-many-joins" || reason == "draining";
    if (status == 400 && known) return;
    machine->broken("requests: refused for no reason, by " + std::to_string(status) + " " +
                    std::string(reason));
  }

  void polledAnswer(int status, std::string_view reason, std::string_view body) {
    // Of a session before.
    if (polled_ != session_) return;
    if (status != 200) {
      if (reason == "unknown-client") return end();
      if (reason == "state-unwritable") return;
      machine->broken("polls: refused for no reason, by " + std::string(reason));
    }
    Session& session = ledger->session(session_);
    session.confirmed = std::max(session.confirmed, pollAck_);
    size_t at = 0;
    const uint64_t newest = numberIn(body, "{\"seq\":", &at);
    uint64_t last = pollAck_;
    for (;;) {
      const uint64_t sequence = numberIn(body, "{\"seq\":", &at);
      if (sequence == UINT64_MAX) break;
      const uint64_t sprite = numberIn(body, "\"sprite\":{\"u\":", &at);
      expect(sequence == last + 1, "polls: an answer leaves a number out");
      last = sequence;
      machine->say("client %" PRIu64 " gets sprite %" PRIu64 " as its %" PRIu64 ".", number_,
                   sprite, sequence);
      ledger->came(session_, sequence, sprite);
    }
    expect(newest >= last, "polls: an answer names an older number than it has");
    soonPoll();
  }

  void lost(uint32_t wire) override {
    machine->say(wire == kPoll ? "client %" PRIu64 " has no answer to its poll"
                               : "client %" PRIu64 " has no answer",
                 number_);
  }

  void end() {
    if (session_ == kNobody) return;
    ledger->session(session_).gone = true;
    session_ = kNobody;
    sprite_ = kNone;
  }

  /** Most ask again at once. */
  void soonPoll() {
    if (session_ == kNobody || poll_.asks()) return;
    if (machine->below(50) == 0) return;
    poll();
  }

  const uint32_t number_;
  const uint32_t server_;
  Wire hand_;
  Wire poll_;
  uint32_t session_ = kNobody;
  uint32_t polled_ = kNobody;
  uint64_t pollAck_ = 0;
  Did did_ = Did::kJoin;
  uint32_t sprite_ = kNone;  // that it throws
  uint32_t asked_ = kNone;   // the one that the last request was about
  uint64_t throwNumber_ = 0;
  uint32_t tries_ = 0;
  uint8_t edge_ = 0;
  size_t fill_ = 0;
  bool begun_ = true;
};

// ---- Feeds --------------------------------------------------------------------------------------

/** What every version of every feed has: the number that its publisher has written into it. */
class Records {
 public:
  void saw(const std::string& key, uint32_t server, Cursor cursor, uint64_t number) {
    const auto [found, isNew] =
        seen_.emplace(std::tuple(key, cursor.epoch, cursor.version), number);
    expect(isNew || found->second == number, "feeds: one cursor has two values");
    uint64_t& newest = newest_[{key, server}];
    newest = std::max(newest, cursor.version);
  }

  /** The newest version that a server has told a client of. */
  uint64_t newest(const std::string& key, uint32_t server = 0) { return newest_[{key, server}]; }

  /** An item has one place in a log, also after the log's epoch was renewed. */
  void sawItem(const std::string& key, uint32_t server, Cursor cursor, uint64_t number) {
    saw(key, server, cursor, number);
    const auto [found, isNew] = items_.emplace(std::pair(key, number), cursor.version);
    expect(isNew || found->second == cursor.version, "logs: an item has two places");
  }

 private:
  std::map<std::pair<std::string, uint64_t>, uint64_t> items_;
  std::map<std::tuple<std::string, uint64_t, uint64_t>, uint64_t> seen_;
  std::map<std::pair<std::string, uint32_t>, uint64_t> newest_;
};
inline Records* records = nullptr;

/** One at a time publishes under a key: a value, or items of a log where the key begins with l. */
class Publisher : public Actor, private Asking {
 public:
  Publisher(std::string key, uint32_t address, uint32_t server = 0)
      : key_(std::move(key)), server_(server), wire_(this, 0, address, server) {
    machine->after(machine->below(2 * kSecond), this, 0);
  }

  const std::string& key() const { return key_; }
  uint32_t server() const { return server_; }
  bool isLog() const { return key_[0] == 'l'; }
  /** The newest version that it knows to hold: versions go on through lives and epochs. */
  uint64_t held() const { return held_; }
  bool asks() const { return wire_.asks(); }
  /** Whether it knows that one of its publications holds. */
  bool holds() const { return held_ > 0; }
  /** When it has begun to publish a number. */
  uint64_t askedAt(uint64_t number) const { return asked_.at(number); }
  void expectInTime() const { wire_.expectInTime(); }
  void close() { wire_.cut(false); }

  void act(uint64_t) override {
    if (!crowd->calm && machine->chance(crowd->odds.resets)) wire_.cut(machine->below(2) == 0);
    if (!wire_.asks() && !crowd->calm) publish();
    machine->after(1 + machine->below(crowd->odds.think), this, 0);
  }

 private:
  virtual std::string bodyOf(uint64_t number) {
    return "{\"n\":" + std::to_string(number) + ",\"f\":\"" +
           std::string(machine->below(200), 'x') + "\"}";
  }

  void publish() {
    const std::string body = bodyOf(++tried_);
    const std::string head =
        (isLog() ? "POST" : "PUT") + (" /feed/" + key_) +
        " HTTP/1.1\r\nHost: s\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    asked_[tried_] = machine->now();
    if (!wire_.ask(head + body, kAnswerTime)) return;
    machine->say("number %" PRIu64 " is published", tried_);
  }

  void answered(uint32_t, int status, std::string_view reason, std::string_view body) override {
    if (status == 503) return;
    if (status == 200) {
      const Cursor cursor = Cursor::of(body);
      held_ = std::max(held_, cursor.version);
      isLog() ? records->sawItem(key_, server_, cursor, tried_)
              : records->saw(key_, server_, cursor, tried_);
      machine->say("number %" PRIu64 " holds", tried_);
      return;
    }
    // Of an item: the store may have it.
    if (isLog() && reason == "publishing-busy") return lost(0);
    expect(reason == "state-unwritable", "publications: refused for no reason");
  }

  void lost(uint32_t) override {
    machine->say("it is unknown whether number %" PRIu64 " holds", tried_);
  }

  const std::string key_;
  const uint32_t server_;
  Wire wire_;
  uint64_t tried_ = server_ * uint64_t{1000000000};
  uint64_t held_ = 0;  // a version
  std::map<uint64_t, uint64_t> asked_;
};

class Reader : public Actor, private Asking {
 public:
  Reader(const Publisher* publisher, uint32_t address, uint32_t server)
      : publisher_(publisher), server_(server), wire_(this, 0, address, server) {
    machine->after(machine->below(2 * kSecond), this, 0);
  }

  void expectInTime() const { wire_.expectInTime(); }
  void close() {
    closed_ = true;
    wire_.cut(false);
  }

  /** Whether it has the newest, and that is no older than its publisher knows to hold. */
  bool isUpToDate() const {
    const Life* const life = hosts[server_]->life();
    const Life* const other = hosts[publisher_->server()]->life();
    if (life == nullptr || other == nullptr) return false;
    const Cursor newest = life->newest(publisher_->key());
    const Cursor there = other->newest(publisher_->key());
    expect(there.version >= publisher_->held(), "feeds: a publication is lost that was to hold");
    const Cursor here = {publisher_->isLog() ? newest.epoch : epoch_, version_};
    const auto isSame = [&](const Cursor& one) {
      return !isNewer(one, newest) && !isNewer(newest, one);
    };
    return isSame(here) && isSame(there);
  }

  void act(uint64_t) override {
    if (closed_) return;
    if (wire_.stopped()) wire_.stop(false);
    if (!crowd->calm && machine->chance(crowd->odds.resets)) wire_.cut(machine->below(2) == 0);
    if (!crowd->calm && machine->chance(crowd->odds.stops)) wire_.stop(true);
    if (!wire_.asks()) ask();
    machine->after(1 + machine->below(kSecond), this, 0);
  }

 private:
  void ask() {
    const std::string after = "?after=" + (cursor_.empty() ? "none" : cursor_);
    const std::string request =
        "GET /feed/" + publisher_->key() + after + " HTTP/1.1\r\nHost: s\r\n\r\n";
    asked_ = cursor_;
    told_ = records->newest(publisher_->key(), server_);
    if (wire_.ask(request, kHold * kSecond + kAnswerTime)) {
      machine->say("a watcher of version %" PRIu64 " asks for more", version_);
    }
  }

  void answered(uint32_t, int status, std::string_view reason, std::string_view body) override {
    if (status == 503) return;
    if (status != 200) return expect(reason == "unknown-feed", "watchers: refused for no reason");
    const std::string cursor = textIn(body, "\"cursor\":\"");
    const bool pings = body.find("\"value\":") == body.npos && body.find("\"items\":") == body.npos;
    if (pings) {
      expect(cursor == (asked_.empty() ? "none" : asked_),
             "watchers: nothing new has a new cursor");
      expect(version_ >= told_, "watchers: there is something new that another was told of before");
    } else if (publisher_->isLog()) {
      takeItems(body, Cursor::of(cursor));
      cursor_ = cursor;
    } else {
      takeValue(body, Cursor::of(cursor));
      cursor_ = cursor;
    }
    if (machine->below(10) != 0) ask();
  }

  void takeValue(std::string_view body, Cursor cursor) {
    size_t at = 0;
    const uint64_t number = numberIn(body, "\"value\":{\"n\":", &at);
    machine->say("a watcher gets version %" PRIu64 ", number %" PRIu64, cursor.version, number);
    records->saw(publisher_->key(), server_, cursor, number);
    expect(isNewer(cursor, {epoch_, version_}), "watchers: an older value comes after a newer one");
    expect(cursor.version >= told_, "watchers: an older value than another was told of before");
    version_ = cursor.version;
    epoch_ = cursor.epoch;
  }

  void takeItems(std::string_view body, Cursor to) {
    const Cursor from = Cursor::of(textIn(body, "\"from\":\""));
    const bool gap = body.find("\"gap\":true") != body.npos;
    expect(gap || asked_.empty() || textIn(body, "\"from\":\"") == asked_,
           "logs: an answer does not go on from where it was asked");
    uint64_t version = from.version;
    size_t at = body.find("\"items\":[");
    for (;;) {
      const uint64_t number = numberIn(body, "{\"n\":", &at);
      if (number == UINT64_MAX) break;
      records->sawItem(publisher_->key(), server_, {to.epoch, ++version}, number);
    }
    machine->say("a watcher gets items up to version %" PRIu64, version);
    expect(gap || version > version_, "logs: an item comes twice");
    version_ = version;
    expect(version == to.version, "logs: an answer has not as many items as its cursors say");
  }

  void lost(uint32_t) override {}

  static std::string textIn(std::string_view body, std::string_view behind) {
    const size_t at = body.find(behind);
    if (at == body.npos) return {};
    const size_t begin = at + behind.size();
    return std::string(body.substr(begin, body.find('"', begin) - begin));
  }

  const Publisher* const publisher_;
  const uint32_t server_;
  Wire wire_;
  std::string cursor_, asked_;
  bool closed_ = false;
  uint64_t version_ = 0, epoch_ = 0;
  uint64_t told_ = 0;  // to any client, before it has asked
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_CLIENTS_H_
