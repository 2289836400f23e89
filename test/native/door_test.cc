// The front door, a worker and the pool with real sockets, without V8.
//
//   door_test [clients] [seed]
//
// Clients come in waves over loopback, to the front door and to that of a worker, which asks by its
// ring, with TLS and without. They join, park, throw and leave, and every promised sprite arrives.
// Then others send requests that are not hot, with every framing and in pieces (door_asking.h),
// some watch feeds (door_feeds.h), and some repeat past or possible failures. After each wave no
// client, connection, byte or source may be left. The test is for the sanitizers and for valgrind;
// test/native/simulate.cc has the histories of all clients of a server.
#include "http/door.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "door_asking.h"
#include "door_feeds.h"
#include "door_options.h"
#include "expect.h"
#include "server/worker.h"
#include "server/worker_service.h"
#include "wire.h"

namespace {

using namespace server;
using test::kAnyRequest;
using test::kNobodysId;
using test::Port;
using test::request;
using test::Wire;

constexpr uint32_t kClientsAWave = 400;
constexpr uint32_t kConnections = 3 * kClientsAWave;
constexpr uint32_t kMaxSprite = 16384;
constexpr uint32_t kHeadTime = 2000;
constexpr uint32_t kBodyTime = 4000;
constexpr uint32_t kIdleTime = 20000;
constexpr uint32_t kWriteTime = 5000;
constexpr uint32_t kKeepIdle = 60;  // seconds
constexpr uint32_t kHold = 30;
constexpr uint32_t kLease = 5;
/** Number of a request outside the random histories. */
constexpr uint64_t kFixedNumber = 1u << 30;

/** The time in milliseconds: only the test advances it. */
uint64_t now = 1000;

uint64_t microseconds() { return now * 1000; }

/** Bytes of the body of the answer to an unknown client. */
constexpr size_t kLongBody = 16384;

/** Returns the answers of the door; that to an unknown client is long. */
Replies makeReplies() {
  Replies replies = test::doorReplies();
  replies.outcomes[static_cast<size_t>(Outcome::kUnknownClient)] =
      Reply("HTTP/1.1 400 Bad Request\r\nContent-Length: " + std::to_string(kLongBody) +
            "\r\n\r\n" + std::string(kLongBody, 'x'));
  return replies;
}

PoolOptions poolOptions() {
  return {
      .capacity = 4 * kClientsAWave,
      .hold = kHold,
      .lease = kLease,
      .maxSprite = kMaxSprite,
      .mailboxSprites = 4096,
      .mailboxBytes = 1 << 24,
      .mailboxMemory = 1 << 28,
      .answerBytes = 65536,
      .throwRate = 0,
      .throwBurst = 1,
      .pollRate = 0,
      .pollBurst = 1,
  };
}

DoorOptions options(uint32_t connections = kConnections) {
  return {connections, kMaxSprite, test::kMaxColdHead, kHeadTime,     kBodyTime,
          kIdleTime,   kWriteTime, kKeepIdle,          Trust::kNobody};
}

/** Listens on a free port of the loopback. Returns the port. */
uint16_t listenTo(Door* door, TlsContext* tls = nullptr) {
  Listener listener;
  EXPECT(listener.reserve("127.0.0.1", 0) == 0 && listener.listenOn(4096, kKeepIdle) == 0);
  const uint16_t port = listener.port();
  const int fd = listener.release();
  // The test controls the door's time, but not the kernel's. On a busy machine its user timeout
  // would end a connection that reads nothing.
  constexpr int kNever = 0;
  EXPECT(setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kNever, sizeof kNever) == 0);
  door->adopt(fd, {.tls = tls});
  return port;
}

/** Whether a turn is due: Node's loop takes a turn only then. */
bool isTurnDue(const EventSet& events) {
  pollfd fd = {events.fd(), POLLIN, 0};
  return poll(&fd, 1, 0) == 1;
}

/** A door with a port of each kind, its pool, and the waits of its clients. */
class Stage {
 protected:
  struct Handler : PoolHandler {
    using PoolHandler::PoolHandler;
    bool hasRoom() const override { return room; }
    bool room = true;
  };

  explicit Stage(const AddressLimitsOptions& limits = {}, uint64_t (*clock)() = EventSet::now,
                 uint32_t connections = kConnections)
      : limits_(limits),
        pool_(poolOptions(), &limits_, now),
        handler_(&pool_, microseconds),
        feeds_({.hold = kHold, .feeds = 16, .memory = 1 << 26, .watchers = kConnections}, now,
               test::countingClock),
        door_(options(connections),
              {.events = &events_,
               .limits = &limits_,
               .open = &openInAll_,
               .requests = &handler_,
               .feeds = &feeds_,
               .counts = [] { return std::string("{}"); },
               .clock = clock},
              makeReplies(),
              {.handle = [this](const ScriptRequest& question) { handle(question); },
               .onParkedClosed = [this](Ticket ticket) { gone(ticket); },
               .bodies = test::kColdBodyBounds},
              now) {
    pool_.setResponder(PollHolder::kDoor, &door_);
    const test::Credentials identity = test::makeCredentials(test::KeyKind::kEcdsa);
    EXPECT(tls_.setCertificate(identity.certificate, identity.key).empty());
    port_ = listenTo(&door_);
    securePort_.number = listenTo(&door_, &tls_);
  }
  virtual ~Stage() = default;

  /** Handles a question to JavaScript. */
  virtual void handle(const ScriptRequest& question) = 0;
  virtual void gone(Ticket) {}
  /** Does a turn. */
  virtual void turn() = 0;
  virtual void tick() { door_.tick(now); }

  /** Takes turns until `holds`; only this machine's kernel may need time. */
  template <typename Holds>
  void until(Holds&& holds, int line = __builtin_LINE()) {
    for (int turns = 0; !holds(); ++turns) {
      if (turns == 200000) fail("it never comes", __FILE__, line);
      if (turns > 1000) usleep(50);
      turn();
    }
  }
#define UNTIL(condition) until([&] { return (condition); })

  /** Advances the time, as the loop's timer would. */
  void passTime(uint64_t milliseconds) {
    for (const uint64_t end = now + milliseconds; now < end;) {
      now += kTickMilliseconds;
      tick();
    }
  }

  /** Sends the beginning of a TLS record. */
  void sendPartialRecord(Wire* wire) {
    UNTIL(wire->isHandshakeDone());
    wire->sendRaw({"\x17\x03\x03\x40\x00x", 6});
  }

  /** Waits for the next answer. Returns its status. */
  int readStatus(Wire* wire, std::string* body = nullptr) {
    std::string head;
    std::string ignored;
    UNTIL(wire->readAnswer(&head, body == nullptr ? &ignored : body));
    return atoi(head.c_str() + 9);
  }

  int askStatus(Wire* wire, const std::string& text, std::string* body = nullptr) {
    wire->send(text);
    return readStatus(wire, body);
  }

  TlsContext tls_;
  AddressLimits limits_;
  Pool pool_;
  Handler handler_;
  Feeds feeds_;
  EventSet events_;
  std::atomic<uint32_t> openInAll_{0};
  Door door_;
  uint64_t tlsWireCount_ = 0;  // number of TLS connections so far; each fourth uses TLS 1.2
  Port port_ = 0;
  Port securePort_{0, &tlsWireCount_};
};

class Waves : private Stage {
 public:
  explicit Waves(uint64_t seed)
      : Stage({}, test::TurnClock::now),
        random_(seed),
        worker_(1,
                {.door = options(),
                 .limits = &limits_,
                 .open = &openInAll_,
                 .replies = makeReplies(),
                 .bodies = test::kColdBodyBounds,
                 .feeds = feeds_.workerOptions(),
                 .inputs = false,
                 .mainWaker = &waker_},
                now),
        service_({.pool = &pool_,
                  .feeds = &feeds_,
                  .clock = microseconds,
                  .counts = [] { return std::string_view("{}"); },
                  .ask = [this](const AskHead& head,
                                std::string_view text) { askForWorker(head, text); },
                  .gone = [this](Ticket ticket) { workerRoutes_.onParkedClosedLate(ticket); }},
                 PollHolder::kFirstWorker, kConnections + Door::kBeyondLimit) {
    doorRoutes_.setDoor(&door_);
    workerRoutes_.setDoor(&worker_.door());
    tls_.rollTicketKeys(time(nullptr));
    workerPort_ = listenTo(&worker_.door());
    secureWorkerPort_.number = listenTo(&worker_.door(), &tls_);
  }

  void runWave(uint32_t count) {
    joinAll(count);
    throwAmongAll();
    askAndAnswer();
    for (const bool endsBefore : {false, true}) closeWhilePending(endsBefore);
    closeBeforeWatching();
    endWhilePending();
    endBeforeItsTurn();
    sendAheadOfAnswer();
    pollAndEnd();
    closeWhileParked();
    sendAhead();
    sendAheadUnread();
    leave();
    nothingIsLeft();
    watchFeeds();
  }

  void summary() {
    const PoolCounts& counts = pool_.counts();
    printf("door_test: %" PRIu64 " clients came and went, %" PRIu64 " sprites thrown, %" PRIu64
           " flew on, %" PRIu64 " received; %" PRIu64 " requests, %" PRIu64 " handled, %" PRIu64
           " timed out, %" PRIu64 " slow readers\n",
           counts.joined, counts.thrown, counts.flown, lastKey_,
           door_.counts().requests + worker_.door().counts().requests, door_.counts().handled,
           door_.counts().refused(Outcome::kRequestTimeout), door_.counts().slowReaders);
  }

 private:
  struct Member {
    std::unique_ptr<Wire> polls;
    std::string id;
    uint64_t ack = 0;
  };

  uint32_t below(uint32_t bound) { return random_() % bound; }

  void handle(const ScriptRequest& question) override { doorRoutes_.onRequest(question); }
  void gone(Ticket ticket) override { doorRoutes_.onParkedClosed(ticket); }

  void turn() override {
    test::TurnClock::passRest();
    doorRoutes_.sendLateAnswers();
    workerRoutes_.sendLateAnswers();
    if (isTurnDue(events_)) door_.turn();
    test::stepFeeds(&feeds_);
    pool_.answerPolls();
    door_.sendAnswers();
    waker_.clear();
    while (worker_.asks().take(&batch_)) service_.serve(batch_);
    while (service_.hasRequests()) service_.askForOne();
    service_.settleTurn(DecisionState::kHolds);
    service_.send(&worker_.notices());
    worker_.turn();
  }

  /** The worker alone takes turns until `holds`. */
  template <typename Holds>
  void workUntil(Holds&& holds) {
    for (int turns = 0; !holds(); ++turns) {
      EXPECT(turns < 20000);
      worker_.turn();
    }
  }

  /** Asks JavaScript for a request of the worker. */
  void askForWorker(const AskHead& head, std::string_view text) {
    RequestHead request;
    EXPECT(readRequest(text, test::kMaxColdHead, &request) == ReadResult::kComplete);
    RequestFlags flags;
    memcpy(&flags, &head.number, sizeof flags);
    const auto client = subjectOf<Address>(head);
    workerRoutes_.onRequest({.ticket = head.ticket,
                             .head = request,
                             .text = text.substr(0, request.headLength),
                             .body = {flags.body, text.substr(request.headLength)},
                             .client = client,
                             .secure = flags.secure,
                             .transient = flags.transient});
  }

  void tick() override {
    while (!pool_.tick(now)) continue;
    while (!feeds_.tick(now)) continue;
    Stage::tick();
    worker_.tick(now);
    turn();
  }

  /** A client that has ended its half gets the refusal of its poll. */
  void pollAndEnd() {
    Wire wire(workerPort_);
    wire.send(request("GET", "/poll/" + kNobodysId));
    wire.endHalf();
    // The main thread gets the poll and the end together.
    for (int i = 0; i < 10; ++i) worker_.turn();
    std::string body;
    readStatus(&wire, &body);
    EXPECT(body.size() == kLongBody);
    UNTIL((wire.read(), wire.isClosed()));
  }

  /**
   * A client that goes while its poll is parked is noticed at once, even if it has sent so much
   * ahead that the door reads no further.
   */
  void closeWhileParked() {
    std::string ahead;
    while (ahead.size() < 2 * kMaxPipelinedBytes) ahead += kAnyRequest;
    const auto heldBytes = [this] {
      return door_.counts().heldBytes + worker_.door().counts().heldBytes;
    };
    for (const Port& port : {port_, workerPort_, securePort_, secureWorkerPort_}) {
      for (const bool isAhead : {false, true}) {
        for (const bool resets : {false, true}) {
          Wire wire(port);
          std::string id;
          EXPECT(askStatus(&wire, request("POST", "/join"), &id) == 201);
          const uint32_t parked = pool_.counts().parked;
          const uint64_t held = heldBytes();
          wire.send(request("GET", "/poll/" + id));
          if (isAhead) wire.send(ahead);
          UNTIL(pool_.counts().parked == parked + 1);
          if (isAhead) UNTIL(heldBytes() >= held + kMaxPipelinedBytes);
          resets ? wire.reset() : wire.close();
          UNTIL(pool_.counts().parked == parked);
          Wire other(port);
          EXPECT(askStatus(&other, request("POST", "/leave/" + id)) == 204);
        }
      }
    }
  }

  /**
   * A client that sends many requests at once gets a few answers in each turn, and finally all of
   * them.
   */
  void sendAhead() {
    sendAheadBy(1, 500, (1 + test::kMaxResumesATurn) * 4);
    // However many clients there are: four requests for each of 256 that are read, and for each
    // that goes on.
    sendAheadBy(600, 20, (256 + test::kMaxResumesATurn) * 4);
  }

  /** `count` connections pipeline `ahead` requests each; a turn serves at most `most`. */
  void sendAheadBy(size_t count, size_t ahead, uint64_t most) {
    std::string requests;
    for (size_t i = 0; i < ahead; ++i) requests += kAnyRequest;
    std::vector<std::unique_ptr<Wire>> wires;
    for (size_t i = 0; i < count; ++i) {
      wires.push_back(std::make_unique<Wire>(port_));
      EXPECT(askStatus(wires.back().get(), kAnyRequest) == 204);
    }
    for (const auto& wire : wires) wire->send(requests);
    size_t answers = 0;
    for (int turns = 0; answers < count * ahead; ++turns) {
      EXPECT(turns < 200000);
      if (turns > 1000) usleep(50);
      std::string head;
      std::string body;
      const uint64_t before = door_.counts().requests;
      turn();
      // Two shares: when it is read, and when it goes on.
      EXPECT(door_.counts().requests - before <= most);
      for (const auto& wire : wires) {
        while (wire->readAnswer(&head, &body)) ++answers;
      }
    }
  }

  /**
   * Clients that send many requests, and read rarely and little, get all answers complete and in
   * order, even if these are sent in several turns.
   */
  void sendAheadUnread() {
    constexpr size_t kTimes = 400;
    const std::string two = kAnyRequest + request("POST", "/throw/" + kNobodysId + "/up", "{}");
    std::string requests;
    for (size_t i = 0; i < kTimes; ++i) requests += two;
    const uint64_t served = door_.counts().requests;
    // The smallest window: most of the answers stay with the server.
    Wire one(port_, 1);
    Wire other(port_, 1);
    for (Wire* const wire : {&one, &other}) wire->send(requests);
    // A client that has ended its half may still read.
    other.endHalf();
    // Enough turns to serve all requests: they wait for their reader.
    for (size_t i = 0; i < 4 * kTimes; ++i) turn();
    EXPECT(door_.counts().requests < served + 4 * kTimes);
    for (size_t answers = 0; answers < 4 * kTimes; ++answers) {
      Wire& wire = answers < 2 * kTimes ? one : other;
      std::string head;
      std::string body;
      UNTIL(wire.readAnswer(&head, &body) || wire.isClosed());
      EXPECT(head.substr(0, 12) == (answers % 2 == 0 ? "HTTP/1.1 204" : "HTTP/1.1 400"));
      EXPECT(body == std::string(answers % 2 == 0 ? 0 : kLongBody, 'x'));
    }
    EXPECT(one.read().empty() && other.read().empty());
    UNTIL((other.read(), other.isClosed()));
  }

  Port anyPort() {
    if (below(6) == 0) return below(2) == 0 ? securePort_ : secureWorkerPort_;
    return below(2) == 0 ? port_ : workerPort_;
  }

  void joinAll(uint32_t count) {
    members_.clear();
    members_.resize(count);
    for (Member& member : members_) {
      member.polls = std::make_unique<Wire>(anyPort());
      EXPECT(askStatus(member.polls.get(), request("POST", "/join"), &member.id) == 201);
      poll(&member);
    }
    UNTIL((readAllSprites(), pool_.counts().parked == count));
  }

  void poll(Member* member) {
    member->polls->send(
        request("GET", "/poll/" + member->id + "?ack=" + std::to_string(member->ack)));
  }

  /** Reads the sprites of a member, and acks them by the next poll. */
  void readSprites(Member* member) {
    std::string head;
    std::string body;
    if (!member->polls->readAnswer(&head, &body)) return;
    EXPECT(head.compare(0, 12, "HTTP/1.1 200") == 0);
    EXPECT(sscanf(body.c_str(), "{\"seq\":%" SCNu64, &member->ack) == 1);
    for (size_t at = 0; (at = body.find("\"key\":", at)) != std::string::npos; ++at) {
      received_.insert(strtoull(body.c_str() + at + 6, nullptr, 10));
    }
    poll(member);
  }

  void readAllSprites() {
    for (Member& member : members_) readSprites(&member);
  }

  std::string makeThrow(const std::string& id) {
    static const char* kEdges[] = {"left", "right", "up", "down"};
    const std::string key = std::to_string(++lastKey_);
    return request("POST", "/throw/" + id + "/" + kEdges[below(4)] + "?n=" + key,
                   "{\"key\":" + key + ",\"fill\":\"" + std::string(below(300), 'x') + "\"}");
  }

  /** On each port a pipeline with throws of many clients: each is promised and arrives. */
  void throwAmongAll() {
    const uint64_t before = lastKey_;
    for (const Port& port : {port_, workerPort_, securePort_, secureWorkerPort_}) {
      Wire thrower(port);
      std::string text;
      for (size_t i = 0; i < members_.size() / 4; ++i) {
        text += makeThrow(members_[below(members_.size())].id);
      }
      thrower.send(text);
      for (size_t i = 0; i < members_.size() / 4; ++i) EXPECT(readStatus(&thrower) == 202);
    }
    UNTIL((readAllSprites(), pool_.counts().waiting == 0));
    for (uint64_t key = before + 1; key <= lastKey_; ++key) EXPECT(received_.count(key) == 1);
    EXPECT(pool_.counts().lost == lostBefore_);
  }

  /** Requests that are not hot, and all reactions of JavaScript. */
  void askAndAnswer() {
    publishColdFeed();
    const uint64_t asked = doorRoutes_.askedCount() + workerRoutes_.askedCount();
    const auto open = [this] { return door_.counts().open + worker_.door().counts().open; };
    const uint32_t before = open();
    test::ColdClients scene(&exchanges_, &random_, [this] { turn(); });
    scene.connect(port_, 60, true);
    scene.connect(workerPort_, 30, false);
    scene.connect(securePort_, 15, true);
    scene.connect(secureWorkerPort_, 15, false);
    scene.run([this] { publishColdFeed(); });
    const auto arriving = [this] {
      return door_.counts().arriving + worker_.door().counts().arriving;
    };
    // Requests sent ahead may be read and asked for later.
    UNTIL(open() <= before && doorRoutes_.isDone() && workerRoutes_.isDone());
    EXPECT(arriving() == 0);
    EXPECT(doorRoutes_.askedCount() + workerRoutes_.askedCount() > asked + 90);
    for (const Door* door : {&door_, &worker_.door()}) {
      EXPECT(door->counts().handled <= door->counts().requests);
    }
    EXPECT(feeds_.remove(test::SimulatedScript::kFeed) == Outcome::kOk);
    exchanges_.clear();
  }

  /** Only for a parked request JavaScript hears that its connection is gone. */
  void closeWhilePending(bool endsBefore) {
    exchanges_[kFixedNumber] = {.reaction = test::Reaction::kPark, .method = "GET"};
    Wire wire(workerPort_);
    askStatus(&wire, request("GET", "/odd/" + std::to_string(kFixedNumber)));
    // The worker reads the request, but the main thread does not answer yet.
    const uint64_t requests = worker_.door().counts().requests;
    const uint32_t open = worker_.door().counts().open;
    wire.send(kAnyRequest);
    workUntil([&] { return worker_.door().counts().requests > requests; });
    // Only a reset is reported after the end of the client's half.
    if (endsBefore) wire.endHalf();
    for (int turns = 0; turns < 10; ++turns) worker_.turn();
    wire.reset();
    workUntil([&] { return worker_.door().counts().open < open; });
    exchanges_.clear();
  }

  /** A client that is gone before JavaScript lets a feed answer it watches nothing. */
  void closeBeforeWatching() {
    publishColdFeed();
    exchanges_[kFixedNumber] = {.reaction = test::Reaction::kWatchUntilNews,
                                .method = "POST",
                                .isAwaited = true,
                                .isRefused = true};
    const uint32_t open = door_.counts().open;
    const uint64_t asked = doorRoutes_.askedCount();
    Wire wire(port_);
    wire.send("POST /odd/" + std::to_string(kFixedNumber) +
              " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    for (int turns = 0; doorRoutes_.askedCount() == asked; ++turns) {
      EXPECT(turns < 20000);
      test::TurnClock::passRest();
      door_.turn();
    }
    wire.close();
    while (isTurnDue(events_)) door_.turn();
    UNTIL(doorRoutes_.isDone() && door_.counts().open == open);
    exchanges_.clear();
    EXPECT(feeds_.remove(test::SimulatedScript::kFeed) == Outcome::kOk);
  }

  /**
   * A TLS client that sends close_notify while its request is decided gets the answer, and then its
   * connection closes: no FIN announces that end again.
   */
  void endWhilePending() {
    // Both versions of TLS.
    for (int i = 0; i < 4; ++i) {
      Wire wire(secureWorkerPort_);
      UNTIL(wire.isHandshakeDone());
      const uint64_t requests = worker_.door().counts().requests;
      wire.send(kAnyRequest);
      workUntil([&] { return worker_.door().counts().requests > requests; });
      wire.endHalf();
      for (int turns = 0; turns < 3; ++turns) worker_.turn();
      EXPECT(readStatus(&wire) == 204);
      UNTIL((wire.read(), wire.isClosed()));
    }
  }

  /**
   * A client that ends its half while its request is parked counts as gone, even if its connection
   * still waits for its turn to go on with its input.
   */
  void endBeforeItsTurn() {
    const std::string body = "{}";
    exchanges_[kFixedNumber] = {
        .reaction = test::Reaction::kParkForever, .body = body, .method = "POST"};
    std::string ahead;
    for (int i = 0; i < 6; ++i) ahead += kAnyRequest;
    std::vector<std::unique_ptr<Wire>> before;
    for (uint64_t i = 0; i < 4 * test::kMaxResumesATurn; ++i) {
      before.push_back(std::make_unique<Wire>(port_));
      EXPECT(askStatus(before.back().get(), kAnyRequest) == 204);
    }
    Wire wire(port_);
    EXPECT(askStatus(&wire, kAnyRequest) == 204);
    for (const auto& other : before) other->send(ahead);
    const std::string parked = request("POST", "/odd/" + std::to_string(kFixedNumber), body);
    const size_t cut = parked.size() - body.size();
    wire.send(kAnyRequest + parked.substr(0, cut));
    const uint64_t lost = doorRoutes_.lostCount();
    turn();
    wire.send(parked.substr(cut));
    turn();
    wire.endHalf();
    UNTIL(doorRoutes_.lostCount() == lost + 1);
    exchanges_.clear();
  }

  void publishColdFeed() {
    ++coldFeedVersion_;
    const std::string value = "{\"v\":" + std::to_string(coldFeedVersion_) + "}";
    uint32_t watching;
    EXPECT(
        feeds_.publish(
            {.key = test::SimulatedScript::kFeed, .cursor = {1, coldFeedVersion_}, .value = value},
            &watching) == Outcome::kOk);
  }

  std::string coldFeedCursor() const {
    std::string text;
    Cursor{1, coldFeedVersion_}.appendTo(&text);
    return text;
  }

  /**
   * More bytes than the server keeps may be sent after a head that came in pieces and whose answer
   * takes time.
   */
  void sendAheadOfAnswer() {
    constexpr size_t kBehind = 4000;
    exchanges_[kFixedNumber] = {.reaction = test::Reaction::kLater, .method = "GET"};
    std::string text = request("GET", "/odd/" + std::to_string(kFixedNumber));
    for (size_t i = 0; i < kBehind; ++i) text += kAnyRequest;
    Wire wire(port_);
    std::string head;
    std::string body;
    // In pieces that the kernel accepts; the first ends within the head.
    wire.send(text.substr(0, 10));
    for (int turns = 0; turns < 20; ++turns) turn();
    size_t answers = 0;
    for (size_t at = 10; at < text.size(); at += 100000) {
      wire.send(std::string_view(text).substr(at, 100000));
      for (int turns = 0; turns < 20; ++turns) turn();
      while (wire.readAnswer(&head, &body)) ++answers;
    }
    wire.endHalf();
    UNTIL(wire.readAnswer(&head, &body) ? ++answers > kBehind : wire.isClosed());
    EXPECT(answers == kBehind + 1 && head.substr(9, 3) == "204");
    exchanges_.clear();
  }

  void leave() {
    // Some throw once more, when no client listens; their sprites fly until all clients are gone.
    Wire other(workerPort_);
    for (Member& member : members_) {
      switch (below(4)) {
        case 0:
          EXPECT(askStatus(&other, makeThrow(member.id)) == 202);
          member.polls->close();
          break;
        case 1:
          member.polls->reset();
          break;
        default:
          EXPECT(askStatus(&other, request("POST", "/leave/" + member.id)) == 204);
      }
    }
    // The leases of the silent clients end.
    passTime(kLease * 1000 + 1000);
  }

  void nothingIsLeft() {
    members_.clear();
    const auto conserved = [this] {
      const PoolCounts& counts = pool_.counts();
      return counts.thrown == counts.acked + counts.waiting + counts.lost;
    };
    EXPECT(conserved());
    const auto shaken = [this] {
      uint64_t count = 0;
      for (const Door* door : {&door_, &worker_.door()}) {
        count += door->counts().handshakes + door->counts().failedHandshakes;
      }
      return count;
    };
    // A connection that its client has reset may still wait to be accepted.
    UNTIL(shaken() == tlsWireCount_ && door_.counts().open == 0 &&
          worker_.door().counts().open == 0);
    passTime(kLease * 1000 + 1000);
    const PoolCounts& counts = pool_.counts();
    EXPECT(counts.clients == 0 && counts.parked == 0);
    EXPECT(counts.waiting == 0 && counts.mailboxBytes == 0);
    EXPECT(conserved());
    EXPECT(door_.counts().heldBytes == 0 && worker_.door().counts().heldBytes == 0);
    EXPECT(door_.counts().secure == 0 && worker_.door().counts().secure == 0);
    EXPECT(limits_.size() == 0 && openInAll_ == 0);
    lostBefore_ = counts.lost;
  }

  void watchFeeds() {
    test::DoorFeeds scene(
        &feeds_, port_, securePort_, [this] { turn(); },
        [this](uint64_t milliseconds) { passTime(milliseconds); });
    const uint64_t slow = door_.counts().slowReaders;
    scene.comment();
    scene.packPatches();
    scene.sendFromFile();
    scene.readSlowly(kWriteTime);
    scene.readInParts(kWriteTime);
    EXPECT(door_.counts().slowReaders >= slow + 2);
    scene.removeAll();
    UNTIL(door_.counts().open == 0);
    EXPECT(feeds_.counts().watching == 0 && feeds_.counts().feeds == 0);
    EXPECT(door_.counts().heldBytes == 0 && limits_.size() == 0);
    // The door frees its last messages with the tick.
    passTime(kTickMilliseconds);
    EXPECT(feeds_.unsentBytes() == 0 && feeds_.counts().memory == 0);
  }

  std::mt19937 random_;
  test::SimulatedScript::Exchanges exchanges_;
  test::SimulatedScript doorRoutes_{&random_, &exchanges_, [this] { return coldFeedCursor(); }};
  test::SimulatedScript workerRoutes_{&random_, &exchanges_, [this] { return coldFeedCursor(); }};
  Waker waker_{&events_};
  Worker worker_;
  WorkerService service_;
  std::string batch_;
  std::vector<Member> members_;
  std::set<uint64_t> received_;  // keys of sprites
  uint64_t lastKey_ = 0;
  uint64_t lostBefore_ = 0;
  uint64_t coldFeedVersion_ = 0;
  Port workerPort_ = 0;
  Port secureWorkerPort_{0, &tlsWireCount_};
};

/**
 * JavaScript asks for a body when the turn's share is used up, and answers later than any deadline.
 */
class SlowScript : private Stage {
 public:
  SlowScript() : Stage({}, test::TurnClock::now) {}

  void run() {
    Wire first(port_);
    first.send(
        "POST /later HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    UNTIL(lastAsked_ == "awaited");
    const Ticket awaiting = ticket_;
    first.send("body");
    Wire second(port_);
    second.send(request("GET", "/long"));
    UNTIL(lastAsked_ == "whole ");
    const Ticket pending = ticket_;
    while (isTurnDue(events_)) door_.turn();
    // The body has arrived already: no event will ask for another turn.
    door_.proceed(awaiting);
    UNTIL(lastAsked_ == "whole body");
    passTime(kHeadTime + kBodyTime + kIdleTime + 1000);
    for (const Ticket ticket : {pending, awaiting}) answer(ticket);
    for (Wire* wire : {&first, &second}) {
      UNTIL(wire->read().find("HTTP/1.1 200") != std::string::npos);
    }
    shareTurns();
    waitForRoom();
    readLittleAhead();
    readTooLongBody();
    answerEndedRequests();
    refuseTheBody();
    passTime(kIdleTime + 1000);
    closeBegunHeads();
    EXPECT(door_.counts().open == 0 && door_.counts().refused(Outcome::kRequestTimeout) == 0);
    keepDeadlines();
  }

 private:
  void handle(const ScriptRequest& question) override {
    ticket_ = question.ticket;
    const bool awaited = question.body.state == Body::State::kAwaited;
    lastAsked_ = awaited ? "awaited" : "whole " + std::string(question.body.bytes);
    if (question.head.target == "/deferred") answer(ticket_);
    if (question.head.target == "/long") test::TurnClock::useUpTheTurn();
    // The question is valid during the whole call.
    EXPECT(question.text.ends_with("\r\n\r\n"));
  }

  /** Of the bytes that a client sends ahead of an answer, at most one read is held. */
  void readLittleAhead() {
    std::string ahead;
    while (ahead.size() < 100000) ahead += request("GET", "/long");
    Wire wire(port_);
    wire.send(ahead);
    UNTIL(door_.counts().heldBytes > 0 && !isTurnDue(events_));
    EXPECT(door_.counts().heldBytes <= test::kMaxColdHead + 65536);
    wire.reset();
    UNTIL(door_.counts().heldBytes == 0);
    // The buffer of an incomplete TLS record counts as held.
    Wire secure(securePort_);
    sendPartialRecord(&secure);
    UNTIL(door_.counts().heldBytes > 16384);
    secure.reset();
    UNTIL(door_.counts().heldBytes == 0);
  }

  /**
   * The server reads a too long body even after its answer, however much comes: closing with unread
   * bytes sends a reset, and the client may never see the answer.
   */
  void readTooLongBody() {
    const std::string piece(60000, 'b');
    Wire wire(port_);
    lastAsked_.clear();
    wire.send("POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    UNTIL(lastAsked_ == "whole ");
    wire.send(piece);
    UNTIL(!isTurnDue(events_));
    answer(ticket_);
    for (int i = 0; i < 400; ++i) {
      wire.send(piece);
      UNTIL(!isTurnDue(events_));
    }
    UNTIL(wire.read().starts_with("HTTP/1.1 200"));
    wire.endHalf();
  }

  /**
   * With TLS a client that ends its half within a request is answered at once: no FIN announces the
   * end.
   */
  void answerEndedRequests() {
    for (const char* text : {"GET /long HTTP/1.1\r\n",
                             "POST /long HTTP/1.1\r\nHost: a\r\nExpect: "
                             "100-continue\r\nContent-Length: 4\r\n\r\n"}) {
      // Both versions.
      for (int i = 0; i < 4; ++i) {
        Wire wire(securePort_);
        wire.send(text);
        wire.endHalf();
        lastAsked_.clear();
        until([&] {
          if (std::exchange(lastAsked_, "") == "awaited") door_.proceed(ticket_);
          return wire.read().find("HTTP/1.1 400") != std::string::npos && wire.isClosed();
        });
      }
    }
  }

  /** The client is not asked for an unwanted body. */
  void refuseTheBody() {
    Wire wire(port_);
    wire.send(
        "POST /deferred HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    UNTIL(wire.read().starts_with("HTTP/1.1 200") && wire.isClosed());
  }

  /**
   * closeIdle closes a connection in its handshake, or whose head is incomplete, but not one whose
   * body is, nor one whose client has not read its answers.
   */
  void closeBegunHeads() {
    Wire head(securePort_);
    head.send("GET /lo");
    UNTIL((head.read(), door_.counts().heldBytes == 7));
    Wire mute(Port(securePort_.number));
    Wire reader(port_, 1);
    for (int i = 0; i < 800; ++i) {
      reader.send(request("GET", "/place/" + kNobodysId));
    }
    UNTIL(door_.counts().heldBytes > 7 && !isTurnDue(events_));
    Wire body(port_);
    body.send("POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
    Wire sprite(port_);
    sprite.send("POST /throw/" + kNobodysId +
                "/up HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{");
    UNTIL(door_.counts().arriving == 1 && !isTurnDue(events_));
    EXPECT(door_.closeIdle() == 3);
    for (Wire* wire : {&reader, &body, &sprite}) wire->reset();
    UNTIL(door_.counts().open == 0);
  }

  /**
   * Slow bytes extend no deadline. A client that sends too little is refused, one that sends
   * nothing is closed, and so is one that has been refused and stays.
   */
  void keepDeadlines() {
    const std::string ask = "POST /later HTTP/1.1\r\nHost: a\r\n";
    Wire head(port_), body(port_), awaited(port_), silent(port_);
    Wire mute(Port(securePort_.number));
    lastAsked_.clear();
    head.send("GET /lo");
    body.send(ask + "Content-Length: 100\r\n\r\n");
    awaited.send(ask + "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    UNTIL(lastAsked_ == "awaited" && door_.counts().arriving == 2 && door_.counts().open == 5);
    door_.proceed(ticket_);
    for (int i = 0; i < 5; ++i) {
      passTime(kBodyTime / 4);
      head.send("n");
      body.send("b");
      UNTIL(!isTurnDue(events_));
    }
    UNTIL(silent.read().empty() && silent.isClosed() && mute.read().empty() && mute.isClosed());
    for (Wire* wire : {&head, &body, &awaited}) {
      UNTIL(wire->read().find("HTTP/1.1 408") != std::string::npos);
    }
    EXPECT(door_.counts().refused(Outcome::kRequestTimeout) == 3);
    passTime(2000);
    EXPECT(door_.counts().open == 0);
  }

  void answer(Ticket ticket) {
    door_.respond(ticket, "HTTP/1.1 200 OK\r\n", "Content-Length: 0\r\n\r\n", {});
  }

  /** If JavaScript takes long after its calls, a turn has few of them, and always at least one. */
  void shareTurns() {
    std::vector<std::unique_ptr<Wire>> wires;
    for (const uint32_t sent : {1, 19}) {
      const uint64_t before = door_.counts().handled;
      for (uint32_t i = 0; i < sent; ++i) {
        wires.push_back(std::make_unique<Wire>(port_));
        wires.back()->send(request("GET", "/deferred"));
      }
      while (door_.counts().handled < before + sent) {
        const uint64_t handled = door_.counts().handled;
        UNTIL(door_.counts().handled > handled);
        EXPECT(door_.counts().handled <= handled + 2);
        for (int i = 0; i < 20; ++i) door_.countDeferred(10'000'000);
      }
    }
  }

  /** Requests sent ahead also wait for room in the handler, and wake no thread meanwhile. */
  void waitForRoom() {
    // More requests than a turn serves.
    constexpr int kAhead = 8 * test::kMaxResumesATurn;
    std::string ahead;
    for (int i = 0; i < kAhead; ++i) ahead += request("POST", "/join");
    Wire wire(port_);
    wire.send(ahead);
    const uint64_t before = door_.counts().requests;
    UNTIL(door_.counts().requests > before);
    handler_.room = false;
    const uint64_t served = door_.counts().requests;
    door_.sendAnswers();
    UNTIL(!isTurnDue(events_));
    EXPECT(door_.counts().requests == served);
    door_.closeIdle();
    handler_.room = true;
    events_.wake();
    int answers = 0;
    until([&] {
      door_.sendAnswers();
      std::string head;
      std::string body;
      while (wire.readAnswer(&head, &body)) ++answers;
      return answers == kAhead;
    });
  }

  /** Takes a turn only when one is due, as Node's loop does. */
  void turn() override {
    test::TurnClock::passRest();
    if (isTurnDue(events_)) door_.turn();
  }

  std::string lastAsked_;
  Ticket ticket_ = {};
};

/**
 * Addresses take turns, each with its tickets in order; only the tickets of gone connections are
 * forgotten.
 */
void takeTurns() {
  const Address addresses[] = {Address::from(in_addr{1}), Address::from(in_addr{2}),
                               Address::from(in_addr{3})};
  FairTickets tickets;
  const auto takeAll = [&] {
    std::string all;
    while (!tickets.empty()) all += std::to_string(tickets.pop().connection) + " ";
    return all;
  };
  for (uint32_t i = 0; i < 5; ++i) tickets.add(addresses[0], {i, 0});
  tickets.add(addresses[1], {10, 0});
  tickets.add(addresses[2], {20, 0});
  tickets.add(addresses[2], {21, 0});
  EXPECT(tickets.pop().connection == 0 && tickets.pop().connection == 10);
  // A new ticket of an address queues behind those of waiting addresses, however many these have.
  tickets.add(addresses[1], {11, 0});
  EXPECT(takeAll() == "20 1 11 21 2 3 4 ");
  for (uint32_t i = 0; i < 5; ++i) tickets.add(addresses[i % 2], {i, 0});
  tickets.add(addresses[2], {5, 0});
  tickets.removeIf([](const Ticket& ticket) { return ticket.connection % 2 == 1; });
  EXPECT(takeAll() == "0 2 4 ");
  // Nothing is left of addresses that come and go.
  for (uint32_t i = 0; i < 1000; ++i) {
    tickets.add(Address::from(in_addr{i}), {i, 0});
    tickets.removeIf([](const Ticket&) { return true; });
    EXPECT(tickets.empty());
  }
  tickets.add(addresses[0], {7, 0});
  EXPECT(takeAll() == "7 ");
}

/**
 * After a hot request, other work gets a smaller share of a turn, then rests; after a while it gets
 * the whole share again.
 */
void shareTurns() {
  TurnShare share(250, 50);
  uint64_t now = 1000;
  const auto left = [&](uint64_t hot, uint64_t took) {
    now += 10000;
    share.begin(hot, now);
    EXPECT(share.hasTimeLeft() && share.restLeft() == 0);
    share.addWork(now, now + took, 1);
    return share.hasTimeLeft();
  };
  EXPECT(left(0, 249) && !left(0, 250));
  EXPECT(left(1, 49) && !left(2, 50));
  // The rest is nine times as long as the work, and ends by itself.
  const uint64_t ended = now + 50;
  share.begin(2, ended + 449);
  EXPECT(!share.hasTimeLeft() && share.restLeft() == 1);
  share.begin(2, ended + 450);
  EXPECT(share.hasTimeLeft() && share.restLeft() == 0);
  // With three addresses the rest is a third.
  share.addWork(ended + 450, ended + 500, 3);
  share.begin(3, ended + 649);
  EXPECT(!share.hasTimeLeft());
  share.begin(3, ended + 650);
  EXPECT(share.hasTimeLeft());
  // After long work the rest is that of a whole share.
  share.addWork(ended + 650, ended + 5650, 1);
  share.begin(3, ended + 7899);
  EXPECT(share.restLeft() == 1);
  for (uint32_t turn = 3; turn < TurnShare::kTurnsUntilAlone; ++turn) EXPECT(!left(3, 50));
  EXPECT(left(3, 50));
}

/** A hundred requests of a tick have fresh counts; the others have the last ones. */
void boundCounts() {
  int calls = 0;
  LiveCounts counts([&calls] { return std::to_string(++calls); });
  for (int i = 0; i < 101; ++i) EXPECT(!counts.text().empty());
  EXPECT(counts.text() == "100");
  counts.tick();
  EXPECT(counts.text() == "101");
}

/**
 * Clients that send more while a decided answer waits, at an address that may hold nearly nothing:
 * that answer comes first, and no request is lost without an answer.
 */
class DecidedAnswers : private Stage {
 public:
  DecidedAnswers() : Stage(shares()) {
    tlsWireCount_ = 3;  // the next is TLS 1.2
    Wire wire(port_);
    EXPECT(askStatus(&wire, request("POST", "/join"), &id_) == 201);
  }

  void run() {
    const std::string poll = request("GET", "/poll/" + id_);
    const auto half = [](const std::string& text) { return text.substr(0, text.size() / 2); };
    const std::string one = makeThrow("{" + std::string(40, ' ') + "}");
    EXPECT(one.size() / 2 > kHeld && poll.size() > kHeld);
    // The second request: its body is incomplete; its head is incomplete; it is for a later turn;
    // it is behind a poll.
    EXPECT(answersTo(one + one.substr(0, one.size() - 1)) == "202 503 ");
    EXPECT(answersTo(one + half(one)) == "202 503 ");
    EXPECT(answersTo(one + one + one + one + one) == "202 202 202 202 503 ");
    EXPECT(answersTo(one + poll) == "202 503 ");
    EXPECT(answersTo(one + poll + half(one), one.substr(one.size() / 2)) == "202 503 ");
    EXPECT(pool_.counts().thrown == 8);
    // More than one read, with TLS 1.2, which has the rest: requests after a gap are not served.
    EXPECT(answersTo(manyThrows(), {}, securePort_) == "202 202 202 202 503 ");
    EXPECT(pool_.counts().thrown == 12);
    EXPECT(door_.counts().refused(Outcome::kTooMuchHeld) == 6);
    outliveDeadline(poll);
    UNTIL(door_.counts().open == 0);
    EXPECT(door_.counts().handled == 0);
    refuseTooMuchHeld();
    UNTIL(door_.counts().open == 0);
    EXPECT(door_.counts().heldBytes == 0 && door_.counts().arriving == 0);
  }

 private:
  static constexpr uint64_t kHeld = 64;

  static AddressLimitsOptions shares() {
    AddressLimitsOptions options = {};
    options.heldBytes = kHeld;
    return options;
  }

  std::string makeThrow(const std::string& sprite = "{}") const {
    return request("POST", "/throw/" + id_ + "/up", sprite);
  }

  /** Returns throws of which one ends exactly with a read, and some more. */
  std::string manyThrows() const {
    constexpr size_t kRead = test::kMaxColdHead + 65536;
    std::string sprite = "{ }";
    while (kRead % makeThrow(sprite).size() != 0) sprite.insert(1, " ");
    std::string all;
    while (all.size() < kRead + 1024) all += makeThrow(sprite);
    return all;
  }

  void handle(const ScriptRequest& question) override {
    door_.respond(question.ticket, "HTTP/1.1 404 Not Found\r\n", "Content-Length: 0\r\n\r\n", {});
  }

  void decideOnly() {
    door_.turn();
    pool_.answerPolls();
  }

  void turn() override {
    decideOnly();
    door_.sendAnswers();
  }

  /** Decides without sending answers, as if the disk took its time. */
  void untilThrown(uint64_t count) {
    for (int turns = 0; pool_.counts().thrown < count; ++turns) {
      EXPECT(turns < 20000);
      if (turns > 1000) usleep(50);
      decideOnly();
    }
  }

  /**
   * Returns the statuses of the answers until the connection ends; `later` is sent after the first
   * one.
   */
  std::string answersTo(const std::string& text, const std::string& later = {}, Port port = 0) {
    Wire wire(port.number == 0 ? port_ : port);
    wire.send(text);
    std::string statuses;
    std::string head;
    std::string body;
    until([&] {
      const bool none = statuses.empty();
      while (wire.readAnswer(&head, &body)) statuses += head.substr(9, 3) + " ";
      if (none && !statuses.empty() && !later.empty()) wire.send(later);
      return wire.isClosed();
    });
    EXPECT(wire.read().empty());
    return statuses;
  }

  /**
   * Requests that are not hot count as held, too: while their body comes, and while they wait for
   * their turn.
   */
  void refuseTooMuchHeld() {
    const std::string get = request("GET", "/other?what=is-longer-than-what-may-be-held");
    EXPECT(get.size() > kHeld);
    const std::string post = "POST /other HTTP/1.1\r\nHost: a\r\n";
    EXPECT(answersTo(post + "Content-Length: 99\r\n\r\n1") == "503 ");
    EXPECT(answersTo(post + "Transfer-Encoding: chunked\r\n\r\n9\r\n123456789") == "503 ");
    EXPECT(answersTo(post + "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n") == "503 ");
    Wire secure(securePort_);
    sendPartialRecord(&secure);
    UNTIL((secure.read(), secure.isClosed()));
    // A parked poll gets the 503, too.
    EXPECT(askStatus(std::make_unique<Wire>(port_).get(), request("POST", "/join"), &id_) == 201);
    EXPECT(answersTo(request("GET", "/poll/" + id_) + get) == "503 ");
    EXPECT(pool_.counts().parked == 0);
    // Of many requests at once some must wait, and there is no room for them.
    std::vector<std::unique_ptr<Wire>> wires;
    wires.reserve(64);
    for (int i = 0; i < 64; ++i) wires.push_back(std::make_unique<Wire>(port_));
    uint32_t refused = 0;
    for (const auto& wire : wires) wire->send(get);
    for (const auto& wire : wires) {
      if (readStatus(wire.get()) == 503) ++refused;
    }
    EXPECT(refused > 0 && refused < wires.size());
  }

  /** The deadline of the next request's head ends before the answer is sent. */
  void outliveDeadline(const std::string& poll) {
    constexpr size_t kBegun = 10;
    const uint64_t thrown = pool_.counts().thrown;
    Wire wire(port_);
    wire.send(makeThrow() + poll.substr(0, kBegun));
    untilThrown(thrown + 1);
    passTime(kHeadTime + 1000);
    EXPECT(readStatus(&wire) == 202);
    wire.send(poll.substr(kBegun));
    EXPECT(readStatus(&wire) == 200);
  }

  std::string id_;
};

/** Connections above the limit: so many are answered at a time and in a tick; the others wait. */
class TooManyConnections : private Stage {
 public:
  TooManyConnections() : Stage({}, EventSet::now, 1) {}

  void run() {
    constexpr uint32_t kATick = 50;
    Wire served(port_);
    UNTIL(door_.counts().open == 1);
    std::vector<std::unique_ptr<Wire>> wires;
    for (uint32_t i = 0; i < 2 * kATick; ++i) wires.push_back(std::make_unique<Wire>(port_));
    const auto expect = [this](uint32_t refused) {
      UNTIL(!isTurnDue(events_));
      EXPECT(door_.counts().refused(Outcome::kTooManyConnections) == refused);
    };
    expect(Door::kBeyondLimit);
    wires.erase(wires.begin(), wires.begin() + Door::kBeyondLimit);
    expect(kATick);
    passTime(kTickMilliseconds);
    expect(kATick + Door::kBeyondLimit - (kATick - Door::kBeyondLimit));
    wires.clear();
    passTime(kTickMilliseconds);
    UNTIL(door_.counts().open == 1);
  }

 private:
  void handle(const ScriptRequest&) override {}
  void turn() override {
    if (isTurnDue(events_)) door_.turn();
  }
};

}  // namespace

int main(int argc, char** argv) {
  const auto [clients, seed] = readArguments(argc, argv, 10000);
  signal(SIGPIPE, SIG_IGN);  // as Node does
  takeTurns();
  shareTurns();
  boundCounts();
  SlowScript().run();
  DecidedAnswers().run();
  TooManyConnections().run();
  Waves test(seed);
  for (uint64_t come = 0; come < clients; come += kClientsAWave) {
    test.runWave(std::min<uint64_t>(kClientsAWave, std::max<uint64_t>(clients - come, 20)));
  }
  test.summary();
}
