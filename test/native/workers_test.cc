// A whole server with two workers, without V8, under load from several threads, for ThreadSanitizer
// (make threads).
//
//   workers_test [requests a client] [seed]
//
// Clients in two threads join, park, throw, ask, watch and leave over the shared port, at random,
// and some vanish. The main thread turns, ticks and publishes, answers as JavaScript would, and
// sends the workers its usual commands: bans, other servers of a world, notes, certificates, the
// end. Sprites are conserved, each answer belongs to its request, and at the end nothing is left.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "door_options.h"
#include "expect.h"
#include "http/door.h"
#include "server/front.h"
#include "wire.h"

namespace {

using namespace server;
using test::request;
using test::Wire;

constexpr int kClients = 16;  // for each thread
constexpr uint32_t kWorkers = 2;

uint64_t milliseconds() { return EventSet::now() / 1000; }

/** Number of epoll_wait calls. */
std::atomic<uint64_t> epollWaits{0};

/** The newest version that any client has received. */
std::atomic<uint64_t> newestVersion{0};

void recordVersion(uint64_t version) {
  for (uint64_t before = newestVersion;
       before < version && !newestVersion.compare_exchange_weak(before, version);) {
  }
}

/** Waits until the workers take a turn at each tick only: two or three in this time. */
void untilWorkersRest() {
  uint64_t turns = UINT64_MAX;
  for (int looks = 0; turns > 5 * kWorkers; ++looks) {
    EXPECT(looks < 40);
    const uint64_t before = epollWaits;
    usleep(2 * kTickMilliseconds * 1000);
    turns = epollWaits - before;
  }
}

/** The server, in the main thread. */
class Server {
 public:
  explicit Server(uint32_t maxSprite = 1000)
      : pool_(poolOptions(maxSprite), &limits_, milliseconds()),
        turn_(&pool_),
        feeds_({.hold = 30, .feeds = 8, .memory = 1 << 26, .watchers = 1000, .cache = 7},
               milliseconds(), EventSet::now, &limits_),
        front_(test::doorOptions(2000, maxSprite), parts(), test::doorReplies(),
               {.ask = [this](uint32_t worker,
                              const ScriptRequest& question) { handle(worker, question); },
                .gone = [this](Caller) { ++gone_; },
                .bodies = {}},
               milliseconds()) {
    front_.onWaitChange([](bool) {});
    for (const bool transient : {false, true}) {
      EXPECT(
          front_.listen({.address = "127.0.0.1", .port = 0, .backlog = 256, .transient = transient},
                        transient ? &transientPort_ : &port_) == 0);
    }
  }

  uint16_t port() const { return port_; }
  uint16_t transientPort() const { return transientPort_; }

  /** Serves until `over`, with the other work of a main thread. */
  void run(const std::atomic<bool>& over) {
    uint64_t tickAt = 0;
    uint64_t version = 0;
    for (uint64_t turns = 0; !over; ++turns) {
      turnIfDue(5);
      feeds_.step(1000);
      answerLater();
      if (turns % 4 == 0) publish(++version);
      if (turns % 64 == 0) manage(turns);
      if (milliseconds() < tickAt) continue;
      tickAt = milliseconds() + kTickMilliseconds;
      pool_.tick(milliseconds());
      feeds_.tick(milliseconds());
      front_.tick(milliseconds());
      EXPECT(conserved());
    }
  }

  /** Checks that nothing is left of the clients, which have all left. */
  void end() {
    Wire idle(port_);
    std::string head, body;
    idle.send(request("GET", "/now"));
    while (!idle.readAnswer(&head, &body)) turnIfDue(5);
    front_.drain(0);
    front_.stopListening();
    // Until no thread listens any more.
    const auto isListening = [this] { return Listener().reserve("127.0.0.1", port_) != 0; };
    for (int turns = 0; open() > 0 || gone_ < parked_ || isListening(); ++turns) {
      EXPECT(turns < 20000);
      front_.closeIdle();
      turnIfDue(1);
    }
    EXPECT(gone_ == parked_);
    uint64_t requests = 0;
    uint64_t watching = 0;
    std::vector<uint64_t> acceptedConnections;
    for (const WorkerCounts& counts : front_.counts()) {
      requests += counts.door.requests;
      watching += counts.feeds.watching;
      acceptedConnections.push_back(counts.door.accepted);
    }
    EXPECT(watching == 0 && feeds_.watchingInAll() == 0);
    // Every worker got connections, and the main thread none.
    EXPECT(acceptedConnections.size() == 1 + kWorkers && acceptedConnections[0] == 0 &&
           acceptedConnections[1] > 0 && acceptedConnections[2] > 0);
    front_.close();
    EXPECT(feeds_.unsentBytes() == 0);
    EXPECT(conserved());
    printf("workers_test: %" PRIu64 " requests, %" PRIu64 " handled, %" PRIu64
           " parked ones gone; %" PRIu64 " thrown, %" PRIu64 " acked, %" PRIu64 " lost\n",
           requests, handled_, gone_, pool_.counts().thrown, pool_.counts().acked,
           pool_.counts().lost);
  }

  /**
   * No answer needs a tick. A poll parked at a worker is not parked any more after the front has
   * closed.
   */
  void endParked() {
    Wire wire(port_);
    std::string head, id, body;
    const auto until = [this](auto&& holds) {
      for (int turns = 0; !holds(); ++turns) {
        EXPECT(turns < 5000);
        turnIfDue(1);
        answerLater();
      }
    };
    // JavaScript has the requests of other servers' clients, and without an arena the inputs.
    front_.setOtherServers(1, {2});
    for (const char* target : {"/now", "/later", "/arena/a/00000000-0000-4000-8000-000000000000",
                               "/throw/00000200-0000-4000-8000-000000000000/up"}) {
      wire.send(request("POST", target, "{}"));
      until([&] { return wire.readAnswer(&head, &body); });
      EXPECT(body.starts_with(target));
    }
    untilWorkersRest();
    for (const bool leaves : {true, false}) {
      wire.send(request("POST", "/join"));
      until([&] { return wire.readAnswer(&head, &id); });
      const std::string poll = request("GET", "/poll/" + id);
      wire.send(poll);
      until([&] { return pool_.counts().parked == 1; });
      if (!leaves) break;
      // JavaScript has the client leave, outside a turn of the front.
      HotRequest read;
      EXPECT(readHead(poll.data(), poll.size(), &read) == Verdict::kHot);
      EXPECT(pool_.leave(read.id) == Outcome::kOk);
      turn_.endOutsideFront();
      until([&] { return wire.readAnswer(&head, &body); });
    }
    front_.close();
    EXPECT(pool_.counts().parked == 0);
  }

 private:
  static PoolOptions poolOptions(uint32_t maxSprite) {
    return {.capacity = 1000,
            .hold = 30,
            .lease = 30,
            .maxSprite = maxSprite,
            .mailboxSprites = 64,
            .mailboxBytes = 1 << 20,
            .mailboxMemory = 1 << 24,
            .answerBytes = 65536};
  }

  FrontParts parts() {
    return {.limits = &limits_,
            .feeds = &feeds_,
            .clock = EventSet::now,
            .counts = [] { return std::string("{}"); },
            .turn = &turn_,
            .pool = &pool_,
            .workers = kWorkers};
  }

  /** Waits up to so many milliseconds for a turn, as Node's loop does. */
  void turnIfDue(int milliseconds) {
    pollfd due = {.fd = front_.events()->fd(), .events = POLLIN, .revents = 0};
    if (poll(&due, 1, milliseconds) == 1) front_.turn();
  }

  bool conserved() const {
    const PoolCounts& counts = pool_.counts();
    return counts.thrown == counts.acked + counts.waiting + counts.lost;
  }

  uint32_t open() const {
    uint32_t open = 0;
    for (const WorkerCounts& counts : front_.counts()) open += counts.door.open;
    return open;
  }

  /** Answers as JavaScript does: at once, later, parked, or by a feed. The answer is the target. */
  void handle(uint32_t worker, const ScriptRequest& question) {
    ++handled_;
    const Caller caller = {worker, question.ticket};
    const std::string target(question.head.target);
    EXPECT(question.transient == target.starts_with("/transient"));
    if (question.body.state == Body::State::kAwaited) return front_.proceed(caller);
    if (target.starts_with("/later")) return later_.push_back({caller, target});
    if (target.starts_with("/parked")) {
      EXPECT(front_.park(caller));
      ++parked_;
      return;
    }
    if (target.starts_with("/watch")) {
      const FeedRequest wanted = {"news", ""};
      // Lives for the call only.
      const std::string known = '"' + std::string(100, 'x') + '"';
      WatchOptions how = {};
      how.hold = kNoFeedHold;
      how.noneMatch = known;
      return front_.watch(caller, &wanted, 1, how);
    }
    if (target.starts_with("/abandon")) return front_.abandon(caller);
    answer(caller, target + " " + std::string(question.body.bytes));
  }

  void answer(Caller caller, const std::string& body) {
    front_.respond(caller, "HTTP/1.1 200 OK\r\n",
                   "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n", body);
  }

  void answerLater() {
    for (const auto& [caller, target] : std::exchange(later_, {})) answer(caller, target + " ");
  }

  void publish(uint64_t version) {
    uint32_t watching;
    const std::string value =
        "[" + std::to_string(version) + ",\"" + std::string(2000, 'x') + "\"]";
    const std::string patch =
        R"({"op":"replace","path":"/0","value":)" + std::to_string(version) + "}";
    EXPECT(feeds_.publish({.key = "news",
                           .cursor = {1, version},
                           .value = value,
                           .patch = version == 1 ? std::string_view() : patch},
                          &watching) == Outcome::kOk);
    recordVersion(version);
  }

  /** Sends the workers the commands of a main thread. */
  void manage(uint64_t turns) {
    Address address;
    EXPECT(Address::parse("192.0.2.1", &address));
    limits_.ban(address, turns % 128, milliseconds());
    limits_.tick(milliseconds());
    front_.setOtherServers(1, {2, static_cast<ServerTag>(turns % 100 + 3)});
    front_.enableLogEvents();
    front_.takeLogEvents();
    front_.counts();
    front_.setTls("no certificate", "no key", "no tickets");
  }

  AddressLimits limits_{AddressLimitsOptions{}};
  Pool pool_;
  Turn turn_;
  Feeds feeds_;
  Front front_;
  std::vector<std::pair<Caller, std::string>> later_;
  uint64_t handled_ = 0;
  uint64_t parked_ = 0, gone_ = 0;  // requests; those whose connection is gone
  uint16_t port_ = 0;
  uint16_t transientPort_ = 0;
};

/** The clients of a thread. */
class Crowd {
 public:
  Crowd(const Server& server, uint64_t seed)
      : port_(server.port()), transientPort_(server.transientPort()), random_(seed) {}

  void run(uint64_t requests) {
    for (int i = 0; i < kClients; ++i) clients_.push_back(joinClient());
    for (uint64_t i = 0; i < requests; ++i) act(&clients_[below(kClients)]);
    for (Client& client : clients_) {
      client.polls->close();
      EXPECT(status(exchange(&client, request("POST", "/leave/" + client.id))) == 204);
    }
  }

 private:
  struct Client {
    std::unique_ptr<Wire> asks, polls;
    std::string id, body;
    bool parked = false;
  };

  uint32_t below(uint32_t bound) { return random_() % bound; }

  static int status(const std::string& head) { return atoi(head.c_str() + 9); }

  /** Returns the head of the answer; sets the client's body. */
  static std::string exchange(Client* client, const std::string& text) {
    client->asks->send(text);
    return readAnswer(client->asks.get(), &client->body);
  }

  static std::string readAnswer(Wire* wire, std::string* body) {
    std::string head;
    for (int looks = 0; !wire->readAnswer(&head, body); ++looks) {
      EXPECT(looks < 200000 && !wire->isClosed());
      usleep(50);
    }
    return head;
  }

  Client joinClient() {
    Client client = {std::make_unique<Wire>(port_), std::make_unique<Wire>(port_), {}, {}};
    EXPECT(status(exchange(&client, request("POST", "/join"))) == 201);
    client.id = client.body;
    return client;
  }

  void act(Client* client) {
    const std::string n = std::to_string(++requestCount_);
    switch (below(15)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const int code = status(exchange(
            client, request("POST", "/throw/" + client->id + "/left?n=" + n, "{\"n\":1}")));
        EXPECT(code == 202 || code == 400);  // the neighbor's mailbox may be full
        return;
      }
      case 4:
      case 5:
        return poll(client);
      case 6:
        EXPECT(status(exchange(client, request("GET", "/place/" + client->id))) == 200);
        return;
      case 7:
        exchange(client, request("GET", "/status"));
        EXPECT(client->body == "{}");
        return;
      case 8:
        exchange(client, request("POST", "/now/" + n, "the body"));
        EXPECT(client->body == "/now/" + n + " the body");
        return;
      case 9:
        exchange(client, request("GET", "/later/" + n));
        EXPECT(client->body == "/later/" + n + " ");
        return;
      case 10:
        return readNews(client, below(2) == 0 ? "/watch/" + n : "/feed/news");
      case 11: {
        Wire wire(port_);
        wire.send(request("GET", below(2) == 0 ? "/parked/" + n : "/abandon/" + n));
        return;
      }
      case 12: {
        Wire wire(transientPort_);
        wire.send(request("GET", "/transient/place/" + n));
        std::string body;
        EXPECT(status(readAnswer(&wire, &body)) == 200);
        return;
      }
      case 13:
        return sendAhead(client);
      default:
        client->polls->reset();
        client->polls = std::make_unique<Wire>(port_);
        client->parked = false;
    }
  }

  /**
   * After one client has received a version, every later request in any thread gets at least that
   * one.
   */
  static void readNews(Client* client, const std::string& target) {
    const std::string_view head = R"({"feed":"news","cursor":"e1-)";
    const uint64_t before = newestVersion;
    exchange(client, request("GET", target));
    EXPECT(client->body.starts_with(head));
    const uint64_t version = strtoull(client->body.c_str() + head.size(), nullptr, 10);
    EXPECT(version >= before);
    recordVersion(version);
  }

  /** A refusal decided by the worker is sent before the main thread's answers to later requests. */
  static void sendAhead(Client* client) {
    const std::string bad = request("POST", "/throw/" + client->id + "/left", "[]");
    client->asks->send(test::kAnyRequest + bad + test::kAnyRequest);
    for (const int expected : {204, 400, 204}) {
      EXPECT(status(readAnswer(client->asks.get(), &client->body)) == expected);
    }
  }

  /** Parks a poll, or reads the answer of the parked one, if it has come. */
  static void poll(Client* client) {
    std::string head;
    std::string body;
    if (client->parked && !client->polls->readAnswer(&head, &body)) return;
    client->parked = true;
    // The next poll acks all received sprites.
    const size_t at = body.find("\"seq\":");
    const std::string seq = at == body.npos ? "0" : body.substr(at + 6, body.find(',') - at - 6);
    client->polls->send(request("GET", "/poll/" + client->id + "?ack=" + seq));
  }

  const uint16_t port_, transientPort_;
  std::mt19937_64 random_;
  std::vector<Client> clients_;
  uint64_t requestCount_ = 0;
};

/** With a blocked main thread, asks pile up to their bound, and the workers sleep. */
void standStill() {
  constexpr size_t kLarge = 60000;
  Server server(kLarge);
  const std::string text = request("POST", "/throw/" + test::kNobodysId + "/left",
                                   "{\"n\":\"" + std::string(kLarge - 8, 'x') + "\"}");
  std::vector<std::unique_ptr<Wire>> wires;
  // Fills all places of the rings: one request at a time, so that each is a batch.
  for (uint32_t i = 0; i < 4 * kWorkers * BatchRing::kPlaces; ++i) {
    wires.push_back(std::make_unique<Wire>(server.port()));
    wires.back()->send(request("GET", "/place/" + test::kNobodysId));
    usleep(500);
  }
  // Then sends each worker more than may wait.
  for (size_t bytes = 0; bytes < 3 * kMaxAskBytes / 2 * kWorkers; bytes += text.size()) {
    wires.push_back(std::make_unique<Wire>(server.port()));
    wires.back()->send(text);
  }
  // The workers read up to their bound.
  untilWorkersRest();
  std::atomic<bool> over{false};
  std::thread reader([&] {
    std::string head, body;
    for (const auto& wire : wires) {
      for (int looks = 0; !wire->readAnswer(&head, &body); ++looks) {
        EXPECT(looks < 200000 && !wire->isClosed());
        usleep(50);
      }
    }
    wires.clear();
    over = true;
  });
  server.run(over);
  reader.join();
  server.end();
}

/** The main thread's feeds. */
Feeds makeFeeds(uint64_t memory = 1 << 20) {
  return {{.hold = 30, .feeds = 8, .memory = memory, .watchers = 8}, milliseconds(), EventSet::now};
}

/** A worker whose turns the test runs, and a client of it. */
struct SingleWorker {
  explicit SingleWorker(const FeedsOptions& feeds)
      : worker(1,
               {.door = test::doorOptions(2000, 1000),
                .limits = &limits,
                .open = &open,
                .replies = test::doorReplies(),
                .bodies = {},
                .feeds = feeds,
                .inputs = false,
                .mainWaker = &waker},
               milliseconds()),
        port(listen()),
        wire(port) {
    worker.turn();
  }

  uint16_t listen() {
    Listener listener;
    EXPECT(listener.reserve("127.0.0.1", 0) == 0 && listener.listenOn(16, 60) == 0);
    const uint16_t port = listener.port();
    worker.door().adopt(listener.release(), {nullptr, false});
    return port;
  }

  EventSet events;
  Waker waker{&events};
  AddressLimits limits{AddressLimitsOptions{}};
  std::atomic<uint32_t> open{0};
  Worker worker;
  uint16_t port;
  Wire wire;
};

/** What waits for the main thread is bounded. */
void asksForFew() {
  const Feeds shown = makeFeeds();
  SingleWorker alone(shown.workerOptions());
  std::vector<std::unique_ptr<Wire>> wires;
  uint32_t asked = 0;
  std::string batch;
  for (uint32_t turns = 0; turns < 100; ++turns) {
    if (wires.size() < 2 * kMaxRequests) {
      wires.push_back(std::make_unique<Wire>(alone.port));
      wires.back()->send(request("GET", "/now"));
    }
    alone.worker.turn();
    while (alone.worker.asks().take(&batch)) {
      eachMessage<AskHead>(batch, [&](const AskHead&, std::string_view) { ++asked; });
    }
  }
  EXPECT(asked == kMaxRequests);
  WorkerAsks asks({.maxSprite = 1, .inputs = false});
  EXPECT(asks.hasRoom());
  asks.addAsk({}, std::string(kMaxAskBytes, 'x'));
  EXPECT(!asks.hasRoom());
}

/** A worker that waits for owed messages reads no requests. */
void awaitsWhatItIsOwed() {
  const Feeds shown = makeFeeds();
  SingleWorker alone(shown.workerOptions());
  Worker& worker = alone.worker;
  alone.wire.send(request("GET", "/status"));
  std::string batch;
  const auto asks = [&] {
    worker.turn();
    return worker.asks().take(&batch);
  };
  worker.notices().setHasUnsent(true);
  EXPECT(!asks() && !asks());
  worker.notices().setHasUnsent(false);
  EXPECT(asks());
}

/**
 * A client that has ended its half gets a value that the worker does not have yet, but does not
 * wait for news.
 */
void awaitsFeedForHalf() {
  const Feeds shown = makeFeeds();
  for (const bool isParked : {false, true}) {
    SingleWorker alone(shown.workerOptions());
    alone.wire.send(request("GET", isParked ? "/feed/news?after=e1-1" : "/feed/news"));
    alone.wire.endHalf();
    for (int turns = 0; turns < 4; ++turns) alone.worker.turn();
    EXPECT(alone.open == (isParked ? 0 : 1));
  }
}

/**
 * When slow readers hold too much, the slowest one of all threads is closed, whichever thread looks
 * first.
 */
void closesTheSlowestOfAll() {
  Feeds shown = makeFeeds(1 << 27);
  FeedsOptions options = shown.workerOptions();
  options.memory = 1 << 20;
  SingleWorker old(options);
  SingleWorker newer(options);
  uint64_t version = 0;
  const auto publish = [&] {
    uint32_t watching;
    // More bytes than the kernel buffers for a stalled reader.
    const std::string value = '"' + std::string(32 << 20, 'x') + '"';
    EXPECT(shown.publish({.key = "news", .cursor = {1, ++version}, .value = value}, &watching) ==
           Outcome::kOk);
  };
  for (SingleWorker* one : {&old, &newer}) {
    publish();
    one->wire.send(request("GET", "/feed/news"));
    std::string batch;
    while (!one->worker.asks().take(&batch)) one->worker.turn();
    batch.clear();
    FeedNews news = {"news", *shown.find("news"), {}};
    const NoticeHead head = {.length = sizeof(void*), .notice = Notice::kFeed, .ticket = {1, 0}};
    addMessage(&batch, head, PassedObject(std::make_unique<FeedNews>(std::move(news))));
    EXPECT(one->worker.notices().put(&batch));
    one->worker.turn();
    one->worker.tick(milliseconds());
    EXPECT(one->open == 1);
    usleep(2000);
  }
  publish();
  newer.worker.tick(milliseconds());
  EXPECT(newer.open == 1);
  old.worker.tick(milliseconds());
  EXPECT(old.open == 0 && old.worker.door().counts().slowReaders == 1);
}

/** Threads that may be started; negative: any number. */
std::atomic<int> threadsLeft{-1};

/** A server that gets too few threads throws, and leaves the signals as they were. */
void noThread() {
  sigset_t before = {}, after = {};  // initialized: the call sets only their beginning
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  threadsLeft = kWorkers - 1;
  int error = 0;
  try {
    Server();
  } catch (const std::system_error& thrown) {
    error = thrown.code().value();
  }
  threadsLeft = -1;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT(error == EAGAIN && memcmp(&before, &after, sizeof before) == 0);
}

/** Number of files that the process has open. */
size_t openFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

/** A server that ends right after listening: its workers may not have looked yet. */
void endAtOnce() {
  const size_t before = openFiles();
  for (int i = 0; i < 50; ++i) Server();
  EXPECT(openFiles() == before);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" int __real_epoll_wait(int set, epoll_event* events, int most, int timeout);
extern "C" int __wrap_epoll_wait(int set, epoll_event* events, int most, int timeout) {
  ++epollWaits;
  return __real_epoll_wait(set, events, most, timeout);
}
extern "C" void
__real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, void** body, void (*depend)());
extern "C" void
__wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, void** body, void (*depend)()) {
  if (threadsLeft >= 0 && --threadsLeft < 0) {
    throw std::system_error(EAGAIN, std::generic_category());
  }
  __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
      self, body, depend);
}
// NOLINTEND(bugprone-reserved-identifier)

int main(int argc, char** argv) {
  const Arguments given = readArguments(argc, argv, 3000);
  Server server;
  std::atomic<int> running{2};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      Crowd(server, given.seed + i).run(given.count);
      if (--running == 0) over = true;
    });
  }
  server.run(over);
  for (std::thread& thread : threads) thread.join();
  server.end();
  standStill();
  endAtOnce();
  noThread();
  Server().endParked();
  asksForFew();
  awaitsWhatItIsOwed();
  awaitsFeedForHalf();
  closesTheSlowestOfAll();
}
