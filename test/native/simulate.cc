// Runs the whole native server, or a world of servers, in one thread under one seed. Sockets,
// clock, disk, threads and broker are simulated; all other code is the real one.
//
//   simulate [--seed N] [--seeds COUNT] [--minutes M] [--steps N] [--clients N] [--servers N]
//       [--trace] [--without WHAT,…] [--draw FILE]
//   simulate … --shrink       searches for a shorter history that breaks the same law
//   simulate --fixed COUNT    runs the first seeds, and checks that a seed always has the same
//   trace
//
// --draw writes a page for a browser with the last events and the broken law.
//
// A seed decides everything: the number of clients, their actions, the faults of network, disk and
// clock, the server's crashes, and the schedule of its threads. --without leaves aspects out:
// network, clients (that misbehave), crashes, power, disk, clock, state, workers, feeds, churn,
// ways (lists, streams and patches), arena, ahead (clients that pipeline requests), grants, broker
// (its lost messages and outages), world. Every third seed has several servers; ways, arena, ahead
// and grants are only in seeds with one server.
//
// At the end of a run faults stop and clients begin nothing new. Then each promised sprite must
// arrive, each watcher must have the newest version, and each request its answer. Then all clients
// leave, and the server must keep nothing of them.
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "simulated_arena.h"
#include "simulated_calls.h"
#include "simulated_drawing.h"
#include "simulated_visitors.h"

namespace {

using namespace sim;

constexpr const char* kAspects[] = {"network", "clients", "crashes", "power", "disk", "clock",
                                    "state",   "workers", "feeds",   "churn", "ways", "arena",
                                    "ahead",   "grants",  "broker",  "world"};

struct Order {
  uint64_t seed = 1;
  double minutes = 1;
  uint64_t steps = UINT64_MAX;
  uint32_t clients = 0;  // 0: by the seed
  uint32_t servers = 0;  // 0: by the seed
  bool trace = false;
  bool quiet = false;
  uint64_t breaks = 0;  // for tests: this many arrived sprites break a law
  std::string draw;     // file to draw into; empty: none
  std::set<std::string> without;

  bool has(const char* aspect) const { return !without.contains(aspect); }
};

struct Figures {
  uint64_t steps, requests, sprites, lives;
  double seconds, took;  // simulated time; real time
};

/** Mean intervals of faults, in milliseconds where not noted; 0: never. */
struct Faults {
  uint64_t crashEvery = 0;  // seconds
  bool power = false;
  uint64_t starveEvery = 0;
  uint64_t jumpEvery = 0;
  uint64_t fullEvery = 0;
  uint64_t brokerEvery = 0;
  uint64_t leaveEvery = 0;
};

class Run : public Actor {
 public:
  explicit Run(const Order& order) : order_(order), machine_(order.seed, order.trace) {
    machine = &machine_;
    network = &network_;
    broker = &broker_;
    crowd = &crowd_;
    ledger = &ledger_;
    records = &records_;
    sheets = &sheets_;
    inputs = &inputs_;
    if (!order.draw.empty()) {
      machine_.told = [this](const std::string& line) { drawing_.add(line); };
      machine_.ended = [this](const std::string& law) { draw(law, true); };
    }
    plan_.servers = order_.servers != 0    ? order_.servers
                    : order_.seed % 3 == 0 ? 2 + static_cast<uint32_t>(order_.seed / 3 % 3)
                                           : 1;
    if (!order_.has("world")) plan_.servers = 1;
    plan();
    lobby_ = std::make_unique<Lobby>(plan_.workers > 0);
    std::fill(std::begin(hosts), std::end(hosts), nullptr);
    for (; plan_.number < plan_.servers; ++plan_.number) {
      hosts_.push_back(std::make_unique<Host>(plan_));
      hosts[plan_.number] = hosts_.back().get();
      hosts_.back()->disk.odds = diskOdds_;
      hosts_.back()->disk.remembers = faults_.power;
    }
  }

  Figures play() {
    const clock_t began = clock();
    for (const auto& host : hosts_) {
      host->begin();
      if (machine_.dead) crash();
    }
    addClients();
    machine_.after(kSecond, this, kLook);
    arm(faults_.crashEvery * 1000, kCrash);
    arm(faults_.starveEvery, kStarve);
    arm(faults_.jumpEvery, kJump);
    arm(faults_.fullEvery, kFull);
    arm(faults_.brokerEvery, kBroker);
    arm(faults_.leaveEvery, kLeave);
    const uint64_t end = Machine::kBegins + static_cast<uint64_t>(order_.minutes * 60 * kSecond);
    run([&] { return machine_.now() >= end || machine_.steps() >= order_.steps; });
    calmDown();
    if (machine_.told) draw("no law is broken", false);
    const double seconds =
        static_cast<double>(machine_.now() - Machine::kBegins) / static_cast<double>(kSecond);
    const double took = static_cast<double>(clock() - began) / CLOCKS_PER_SEC;
    uint64_t lives = 0;
    for (const auto& host : hosts_) lives += host->lives();
    return {machine_.steps(), crowd_.requests, ledger_.delivered, lives, seconds, took};
  }

  void act(uint64_t what) override {
    if (what == kLook) {
      look();
      return machine_.after(5 * kSecond, this, kLook);
    }
    if (what >= kBegin) return hosts_[what - kBegin]->begin();
    if (what == kRoom) {
      for (const auto& host : hosts_) host->disk.full = false;
      return;
    }
    if (what == kMend) return broker_.mend();
    if (crowd_.calm) return;
    fault(what);
  }

 private:
  static constexpr uint32_t kReaders = 4;  // watchers of each feed

  enum : uint64_t { kLook, kCrash, kStarve, kJump, kFull, kRoom, kLeave, kBroker, kMend, kBegin };

  uint64_t below(uint64_t bound) { return machine_.below(bound); }

  void draw(const std::string& end, bool broken) {
    FILE* const file = fopen(order_.draw.c_str(), "w");
    const std::string page =
        drawing_.page("seed " + std::to_string(order_.seed) + ": " + end, broken);
    const bool written = file != nullptr && fwrite(page.data(), page.size(), 1, file) == 1;
    if (file == nullptr || fclose(file) != 0 || !written) {
      fprintf(stderr, "simulate: %s can't be written\n", order_.draw.c_str());
    }
  }

  /** Draws the seed's plan. All aspects are drawn, so that leaving one out changes no other. */
  void plan() {
    plan_.clients = 2 + static_cast<uint32_t>(below(3) == 0 ? below(150) : below(30));
    if (order_.clients != 0) plan_.clients = order_.clients;
    plan_.workers = below(2) == 0 ? 0 : 1 + static_cast<uint32_t>(below(3));
    plan_.keeps = below(4) != 0;
    plan_.sync = below(2) == 0 ? Sync::kTurn : Sync::kNever;
    plan_.turnTakes = below(2) == 0 ? 100 : 5000;
    machine_.lookTakes = below(4);
    const bool badNetwork = below(2) == 0;
    const bool badClients = below(2) == 0;
    const bool churns = below(2) == 0;
    const bool crashes = below(2) == 0;
    const bool power = below(2) == 0;
    const bool badDisk = below(3) == 0;
    const bool badClock = below(3) == 0;
    const uint64_t think = below(3);
    if (!order_.has("workers")) plan_.workers = 0;
    if (!order_.has("state")) plan_.keeps = false;
    crowd_.odds.think = think == 0 ? kSecond : think == 1 ? 10 * kSecond : 60 * kSecond;
    if (badNetwork && order_.has("network")) {
      network_.odds = {.latency = 200 * kMillisecond,
                       .cuts = 100000,
                       .cutCalls = 100000,
                       .noRoom = 30000,
                       .window = 3000};
    }
    if (badClients && order_.has("clients")) crowd_.odds.resets = 20000, crowd_.odds.stops = 10000;
    if (churns && order_.has("churn")) crowd_.odds.leaves = 50000;
    if (plan_.keeps) {
      if (crashes && order_.has("crashes")) faults_.crashEvery = 20;
      // A failing disk and a power cut together may leave files that no start accepts.
      faults_.power = power && !badDisk && plan_.sync == Sync::kTurn && order_.has("power");
      if (badDisk && order_.has("disk")) {
        diskOdds_ = {.syncTakes = 20000, .slowSync = 2000, .fails = 3000, .shortWrites = 50000};
        faults_.fullEvery = 30000;
        crowd_.lossy = true;
      }
      // The longer a sync takes, the more writes a power cut can lose.
      if (faults_.power && below(2) == 0) diskOdds_.syncTakes = 200 * kMillisecond;
    }
    crowd_.late += (badNetwork ? 10 : 0) * kSecond + (badClock ? 60 : 0) * kSecond +
                   (badDisk ? 60 : 0) * kSecond;
    if (badClock && order_.has("clock")) faults_.starveEvery = 20000, faults_.jumpEvery = 60000;
    machine_.say("seed %" PRIu64 ": %" PRIu64 " clients, %" PRIu64 " workers", order_.seed,
                 plan_.clients, plan_.workers);
    if (plan_.servers > 1) planWorld();
    if (plan_.keeps) {
      machine_.say(plan_.sync == Sync::kTurn ? "a state, synced each turn" : "a state, not synced");
    }
    if (badNetwork) machine_.say("the network is bad");
    if (crowd_.odds.resets != 0) machine_.say("clients cut connections, and stop reading");
    if (crowd_.odds.leaves != 0) machine_.say("clients leave");
    if (faults_.crashEvery != 0) machine_.say("the server crashes");
    if (crowd_.lossy) machine_.say("the disk fails");
    if (badClock) machine_.say("the clock jumps");
  }

  void planWorld() {
    machine_.say("%" PRIu64 " servers", plan_.servers);
    if (below(4) == 0) plan_.doubt = 3000;
    // With little memory the mailboxes are full now and then.
    if (below(4) == 0) plan_.memory = order_.seed % 2 == 0 ? 1 << 12 : 1 << 14;
    const bool loses = below(2) == 0;
    const bool fails = below(2) == 0;
    const bool leaves = below(2) == 0;
    if (leaves && plan_.keeps && !crowd_.lossy && order_.has("churn")) faults_.leaveEvery = 20000;
    if (!order_.has("broker")) return;
    if (loses) {
      broker_.odds = {.delay = 500 * kMillisecond, .drops = 100000, .doubles = 100000};
      machine_.say("the broker is late, and loses and doubles messages");
    }
    if (!fails) return;
    faults_.brokerEvery = 10000;
    machine_.say("the broker is away");
  }

  template <typename One, typename... Given>
  void add(Given&&... given) {
    clients_.push_back(std::make_unique<One>(std::forward<Given>(given)...));
  }

  void addClients() {
    for (uint32_t i = 0; i < plan_.clients; ++i) {
      add<Player>(i, 0x0a000000 + i % 200, i % plan_.servers, Player::Way::kInTurn);
    }
    if (order_.has("feeds")) addFeeds();
    if (plan_.servers > 1) return;
    for (uint32_t i = 0; i < 3 && order_.has("ahead"); ++i) {
      add<Player>(plan_.clients + i, 0x0f000000, 0, Player::Way::kAhead);
    }
    for (int i = 0; i < 6 && order_.has("arena"); ++i) add<ArenaPlayer>(0x0e000000);
    if (order_.has("grants") && order_.seed % 2 == 0) lobby_->open(&clients_);
  }

  /** Adds feeds and their watchers: at one server by every way, in a world only by polls. */
  void addFeeds() {
    using Way = FeedWatcher::Way;
    static constexpr std::pair<const char*, uint64_t> kFeeds[] = {
        {"value/a", 60}, {"value/b", 4000}, {"log/a", 0}};
    std::vector<std::string> all = {"arena/hall"};
    for (const auto& [key, cells] : kFeeds) {
      for (uint32_t server = 0; server < plan_.servers; ++server) {
        add<Publisher>(key, 0x0b000000, server, cells);
      }
      all.emplace_back(key);
      for (uint32_t i = 0; i < kReaders; ++i) {
        add<FeedWatcher>(Way::kPoll, std::vector<std::string>{key}, 0x0c000000 + i,
                         i % plan_.servers);
      }
    }
    if (plan_.servers > 1) {
      for (uint32_t server = 0; server < plan_.servers; ++server) {
        add<Headcount>("value/a", kReaders, server);
      }
    } else if (order_.has("ways")) {
      add<FeedWatcher>(Way::kPoll, std::vector{all[0]}, 0x0d000000);
      for (const auto& key : all) add<FeedWatcher>(Way::kStream, std::vector{key}, 0x0d000000);
      for (int i = 0; i < 3; ++i) add<FeedWatcher>(Way::kList, all, 0x0d000000);
    }
  }

  /** Schedules a fault after `every` milliseconds on average. */
  void arm(uint64_t every, uint64_t what) {
    if (every != 0) machine_.after((every / 2 + below(every)) * kMillisecond, this, what);
  }

  void fault(uint64_t what) {
    switch (what) {
      case kCrash:
        // At a later call of the disk, or within an orderly end, or now.
        if (Host& host = anyHost(); below(2) == 0) {
          host.disk.endsAt = below(30);
        } else if (host.life() != nullptr && below(2) == 0) {
          if (below(2) == 0) host.disk.endsAt = below(30);
          restart(&host);
        } else if (host.life() != nullptr) {
          machine_.say("the process ends");
          host.kill();
        }
        return arm(faults_.crashEvery * 1000, what);
      case kStarve: {
        const uint64_t time = below(4000);
        machine_.say("the server has no core for %" PRIu64 " ms", time);
        anyHost().starve(time * kMillisecond);
        return arm(faults_.starveEvery, what);
      }
      case kJump: {
        const uint64_t time = below(20000);
        machine_.say("the machine sleeps for %" PRIu64 " ms", time);
        machine_.pass(time * kMillisecond);
        return arm(faults_.jumpEvery, what);
      }
      case kFull:
        machine_.say("the disk is full");
        anyHost().disk.full = true;
        machine_.after(below(5 * kSecond), this, kRoom);
        return arm(faults_.fullEvery, what);
      case kLeave:
        if (Host& host = anyHost(); host.life() != nullptr) {
          machine_.say("server %" PRIu64 " leaves", host.number());
          host.life()->leave();
        }
        return arm(faults_.leaveEvery, what);
      case kBroker:
        failBroker();
        return arm(faults_.brokerEvery, what);
      default:
        return;
    }
  }

  Host& anyHost() { return *hosts_[plan_.servers == 1 ? 0 : below(plan_.servers)]; }

  void failBroker() {
    const auto one = static_cast<uint32_t>(below(plan_.servers));
    const auto other = static_cast<uint32_t>(below(plan_.servers));
    switch (below(3)) {
      case 0:
        machine_.say("nothing comes from server %" PRIu64 " to %" PRIu64, one, other);
        broker_.cut(one, other);
        break;
      default:
        machine_.say("server %" PRIu64 " does not reach the broker, from there to %" PRIu64, one,
                     other);
        for (uint32_t to = 0; to <= kMostServers; ++to) {
          for (uint32_t name = std::min(one, other); name <= std::max(one, other); ++name) {
            broker_.cut(name, to);
            broker_.cut(to, name);
          }
        }
    }
    machine_.after(below(20 * kSecond), this, kMend);
  }

  void crash() {
    const Crash how = faults_.power && below(2) == 0 ? Crash::kPower : Crash::kKill;
    machine_.say(how == Crash::kPower ? "a power cut" : "a kill");
    const uint32_t server = machine_.server;
    hosts_[server]->end();
    machine_.dead = false;
    disk->crash(how);
    // In a world the pause may be long enough to lose the place in the ring.
    const uint64_t most = plan_.servers > 1 && below(3) == 0 ? 20 : 3;
    machine_.after(50 * kMillisecond + below(most * kSecond), this, kBegin + server);
  }

  template <typename Until>
  void run(Until&& until) {
    while (!until()) {
      expect(machine_.next() != kNever, "nothing is to happen any more");
      machine_.step();
      if (machine_.dead) crash();
      expect(order_.breaks == 0 || ledger_.delivered < order_.breaks, "a test: sprites have come");
      Host& host = *hosts_[machine_.server];
      if (host.hasLeft()) restart(&host);
    }
  }

  /** Ends a server in order, as after a leave of its world, and starts it again. */
  void restart(Host* host) {
    machine_.server = host->number();
    machine_.say("server %" PRIu64 " ends in order", host->number());
    host->life()->finish();
    if (machine_.dead) return crash();
    host->disk.endsAt = kNever;
    host->end();
    machine_.after(below(20 * kSecond), this, kBegin + host->number());
  }

  /** Checks the laws that need a look at everything; called now and then. */
  void look() {
    for (const auto& one : clients_) one->expectInTime();
    for (const auto& host : hosts_) {
      if (host->life() != nullptr) look(*host->life());
    }
  }

  void look(const Life& life) const {
    const Torus& torus = life.pool().torus();
    const Edge opposite[] = {Edge::kRight, Edge::kLeft, Edge::kDown, Edge::kUp};
    uint32_t seen = 0;
    for (uint32_t node = 0; node < torus.capacity() && seen < torus.size(); ++node) {
      if (!torus.contains(node)) continue;
      ++seen;
      for (uint8_t edge = 0; edge < 4; ++edge) {
        const uint32_t neighbor = torus.neighbor(node, Edge{edge});
        expect(torus.contains(neighbor) && torus.neighbor(neighbor, opposite[edge]) == node,
               "torus: a link does not lead back");
        expect(neighbor != node || torus.size() < 9, "torus: a node is its own neighbor");
      }
    }
    for (const WorkerCounts& counts : life.counts()) {
      expect(counts.door.heldBytes <= uint64_t{kHeldBytes} * (plan_.clients + 10),
             "memory: a door holds more than it may");
      expect(counts.door.slowReaders == 0 || crowd_.odds.stops != 0,
             "answers: a client is closed as a slow reader that reads");
    }
  }

  /** Runs until `holds`. After `seconds` the law is broken. */
  template <typename Holds>
  void await(uint64_t seconds, const char* law, Holds&& holds) {
    const uint64_t end = machine_.now() + seconds * kSecond;
    run([&] {
      expect(machine_.now() < end, law);
      return holds();
    });
  }

  bool isEasy() const {
    return std::ranges::all_of(hosts_, [](const auto& host) {
      return host->life() != nullptr && !host->life()->blocked();
    });
  }

  void calmDown() {
    machine_.say("nothing new is begun, and nothing fails");
    crowd_.calm = true;
    network_.odds = {};
    broker_.odds = {};
    broker_.mend();
    for (const auto& host : hosts_) {
      host->disk.odds = {};
      host->disk.full = false;
      host->disk.endsAt = kNever;
    }
    await(60, "the server serves again", [&] { return isEasy(); });
    await(600, "sprites: one that is promised does not come", [&] {
      return machine_.steps() % 64 == 0 && isEasy() && Books::read().waiting == 0 &&
             std::ranges::none_of(clients_, [](const auto& one) { return one->owes(); });
    });
    const Books books = Books::read();
    expect(books.crossedIn - books.crossedOut <= books.doubted,
           "crossings: what has come has not gone");
    if (ledger_.missing() > books.lost) {
      machine_.broken("sprites: " + std::to_string(ledger_.missing()) +
                      " that were promised never came, such as " +
                      std::to_string(ledger_.firstMissing()) + "; " + std::to_string(books.lost) +
                      " are counted as lost");
    }
    await(120, "feeds: a watcher does not get the newest", [&] {
      return std::ranges::all_of(clients_, [](const auto& one) { return one->isUpToDate(); });
    });
    await(120, "presence: what is told in the end is not what is there",
          [&] { return machine_.steps() % 64 == 0 && lobby_->isRight(); });
    crowd_.leaving = true;
    await(600, "clients: one does not get away", [&] {
      return machine_.steps() % 64 == 0 &&
             std::ranges::all_of(clients_, [](const auto& one) { return one->isDone(); });
    });
    await(120, "clients: one stays that has left, or whose lease is over", [&] {
      return isEasy() && Books::read().clients == 0 &&
             std::ranges::all_of(hosts_, [](const auto& host) {
               return host->life()->arena().counts().players == 0;
             });
    });
    expect(
        std::ranges::all_of(
            hosts_, [](const auto& host) { return host->life()->arena().counts().waiting == 0; }),
        "arena: an input waits of a player that has left");
    crowd_.over = true;
    for (const auto& one : clients_) one->close();
    // Not at every step: workers that get messages at every step never read.
    uint64_t next = 0;
    await(120, "connections: one stays that is closed", [&] {
      if (machine_.now() < next || !isEasy()) return false;
      next = machine_.now() + 50 * kMillisecond;
      uint32_t open = 0;
      for (const auto& host : hosts_) {
        machine_.server = host->number();
        host->life()->closeIdle();
        for (const WorkerCounts& one : host->life()->counts()) open += one.door.open;
      }
      return open == 0;
    });
    await(10, "memory: an answer is held without a reader", [&] {
      return isEasy() && std::ranges::all_of(hosts_, [](const auto& host) {
               return host->life()->feeds().held() == 0;
             });
    });
    expect(Books::read().waiting == 0, "sprites: one waits without a receiver");
    for (const auto& host : hosts_) {
      machine_.server = host->number();
      host->life()->finish();
      host->end();
    }
  }

  const Order order_;
  Drawing drawing_;
  Machine machine_;
  Network network_;
  Broker broker_;
  DiskOdds diskOdds_;
  Crowd crowd_;
  Ledger ledger_;
  Records records_;
  ServerPlan plan_;
  Faults faults_;
  std::unique_ptr<Lobby> lobby_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<std::pair<std::string, uint64_t>, std::string> sheets_;
  std::map<uint64_t, Inputs> inputs_;
};

void tell(const Order& order, const Figures& figures) {
  printf("seed %" PRIu64 ": %" PRIu64 " steps, %" PRIu64 " requests, %" PRIu64 " sprites, %" PRIu64
         " lives; %.0f s in %.3f s of a core: %.0f times the clock\n",
         order.seed, figures.steps, figures.requests, figures.sprites, figures.lives,
         figures.seconds, figures.took, figures.seconds / figures.took);
}

Figures play(const Order& order) {
  const Figures figures = std::make_unique<Run>(order)->play();
  if (!order.quiet) tell(order, figures);
  return figures;
}

/** Runs a program with these arguments. Returns its output; `status`: its exit status. */
std::string outputOf(const std::string& program, const std::string& arguments, int* status) {
  FILE* const pipe = popen((program + " " + arguments).c_str(), "r");
  std::string text;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, got);
  *status = pclose(pipe);
  return text;
}

/** Runs the simulation. Returns its output; `drawn`: its drawing. */
std::string outputOf(const std::string& program, const std::string& arguments, int* status,
                     std::string* drawn) {
  std::string page = P_tmpdir "/simulate-XXXXXX";
  close(mkstemp(page.data()));
  std::string text = outputOf(program, arguments + " --draw " + page, status);
  int ignored;
  *drawn = outputOf("cat", page, &ignored);
  remove(page.c_str());
  return text;
}

/** Tests that a worker has a column in the drawing. */
bool testDrawing(const std::string& program) {
  int status;
  std::string drawn;
  // The server of this seed has one worker.
  outputOf(program, "--quiet --seed 21812 --minutes 0.1", &status, &drawn);
  const bool isDrawn =
      drawn.find("worker 1</th>") != drawn.npos && drawn.find("server</th>") != drawn.npos;
  if (!isDrawn) fputs("simulate: a worker is not drawn\n", stderr);
  return isDrawn;
}

/** Tests that --shrink shortens a failing run, prints its events and draws them. */
bool testShrinking(const std::string& program) {
  int status;
  std::string drawn;
  const std::string text =
      outputOf(program, "--minutes 0.2 --seed 50 --breaks 2 --shrink", &status, &drawn);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  const bool isLittle = status != 0 && lines < 60 &&
                        text.find("a test: sprites have come") != text.npos &&
                        text.find("--clients ") != text.npos;
  const bool isDrawn = drawn.find("a test: sprites have come</p>") != drawn.npos &&
                       drawn.find("client 1</th>") != drawn.npos;
  if (!isLittle || !isDrawn) {
    fprintf(stderr, "simulate: a run is not shrunk, or not drawn:\n%s", text.c_str());
  }
  return isLittle && isDrawn;
}

/** Checks that a seed has the same trace, to the byte, each time. Then runs `count` seeds. */
int fixedSet(const char* program, const char* count) {
  for (const uint64_t seed : {12, 11, 50}) {
    int status;
    const std::string arguments =
        "--quiet --minutes 0.3 --trace --seed " + std::to_string(seed) + " 2>/dev/null";
    const std::string once = outputOf(program, arguments, &status);
    if (status != 0 || once.size() < 1000 || once != outputOf(program, arguments, &status)) {
      fprintf(stderr, "simulate: seed %" PRIu64 " has two traces\n", seed);
      return 1;
    }
  }
  if (!testShrinking(program) || !testDrawing(program)) return 1;
  Figures sum = {};
  const uint64_t seeds = strtoull(count, nullptr, 10);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Order order;
    order.seed = seed;
    order.quiet = true;
    const Figures figures = play(order);
    sum.steps += figures.steps;
    sum.sprites += figures.sprites;
    sum.lives += figures.lives;
    sum.seconds += figures.seconds;
    sum.took += figures.took;
  }
  printf("simulate: %" PRIu64 " seeds, %" PRIu64 " steps, %" PRIu64 " sprites, %" PRIu64
         " lives; %.0f s in %.1f s\n",
         seeds, sum.steps, sum.sprites, sum.lives, sum.seconds, sum.took);
  return 0;
}

/** Result of a run in another process: the broken law (empty: none), and its step. */
struct Broken {
  std::string law, text;
  uint64_t step = 0;
};

/** Searches for a shorter run that breaks the same law: without aspects, with fewer clients, in
 * less time, under other seeds. Prints the steps of the shortest run. */
int shrink(const std::string& program, Order order) {
  const std::string drawn = std::exchange(order.draw, {});
  const auto textOf = [](const Order& one) {
    char minutes[32];
    snprintf(minutes, sizeof minutes, "%g", one.minutes);
    std::string text = "--seed " + std::to_string(one.seed) + " --minutes " + minutes;
    if (one.steps != UINT64_MAX) text += " --steps " + std::to_string(one.steps);
    if (one.clients != 0) text += " --clients " + std::to_string(one.clients);
    if (one.servers != 0) text += " --servers " + std::to_string(one.servers);
    std::string without;
    for (const std::string& aspect : one.without) without += (without.empty() ? "" : ",") + aspect;
    if (!without.empty()) text += " --without " + without;
    if (one.breaks != 0) text += " --breaks " + std::to_string(one.breaks);
    return text;
  };
  const auto run = [&](const Order& one, const std::string& more) {
    int status;
    Broken broken;
    broken.text = outputOf("timeout 60 " + program, "--quiet " + textOf(one) + more, &status);
    const std::string behind = ", broken in step ";
    const size_t at = broken.text.rfind(behind);
    // A process that ends by a crash counts as a broken law, too.
    if (status != 0) broken.law = "the process ends by status " + std::to_string(status);
    if (at == std::string::npos) return broken;
    broken.law.clear();
    broken.step = strtoull(broken.text.c_str() + at + behind.size(), nullptr, 10);
    const size_t law = broken.text.find(": ", at) + 2;
    // Numbers in the message do not distinguish laws.
    for (size_t i = law; i < broken.text.size() && broken.text[i] != '\n'; ++i) {
      if (isdigit(static_cast<unsigned char>(broken.text[i])) == 0) broken.law += broken.text[i];
    }
    return broken;
  };
  Broken least = run(order, " 2>&1");
  if (least.law.empty()) {
    puts("simulate: this breaks no law");
    return 0;
  }
  const std::string law = least.law;
  int tries = 0;
  // Returns whether a run breaks the same law before step `before`. Then it is the new shortest.
  const auto takes = [&](const Order& one, uint64_t before) {
    ++tries;
    const Broken broken = run(one, " 2>&1");
    if (broken.law != law || broken.step >= before) return false;
    order = one;
    least = broken;
    return true;
  };
  for (const char* aspect : kAspects) {
    Order one = order;
    one.without.insert(aspect);
    takes(one, UINT64_MAX);
  }
  for (const uint32_t clients : {2, 3, 5, 10}) {
    // Another number of clients or another seed has another history. Only even seeds have grants.
    for (uint64_t i = 0; i < 20; ++i) {
      Order one = order;
      one.clients = clients;
      one.seed += i == 0 ? 0 : 2 * i;
      takes(one, least.step);
    }
  }
  double minutes = order.minutes;
  for (int halves = 0; halves < 7; ++halves) {
    minutes /= 2;
    Order one = order;
    one.minutes = minutes;
    takes(one, least.step + 1);
  }
  const std::string trace =
      run(order, " --trace 2>/dev/null" + (drawn.empty() ? "" : " --draw " + drawn)).text;
  // Turns are left out.
  for (size_t at = 0; at < trace.size();) {
    const size_t end = std::min(trace.find('\n', at), trace.size());
    const std::string line = trace.substr(at, end - at);
    if (!line.ends_with(" a turn")) puts(line.c_str());
    at = end + 1;
  }
  const size_t said = least.text.find_last_of('\n', least.text.size() - 2) + 1;
  printf("%s%d tries; the least is\nsimulate %s\n", least.text.substr(said).c_str(), tries,
         textOf(order).c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  Order order;
  uint64_t seeds = 1;
  bool shrinks = false;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const char* const value = i + 1 < count ? arguments[i + 1] : "";
    if (name == "--trace" || name == "--quiet" || name == "--shrink") {
      (name == "--trace" ? order.trace : name == "--quiet" ? order.quiet : shrinks) = true;
      continue;
    }
    ++i;
    if (name == "--seed") {
      order.seed = strtoull(value, nullptr, 10);
    } else if (name == "--seeds") {
      seeds = strtoull(value, nullptr, 10);
    } else if (name == "--minutes") {
      order.minutes = strtod(value, nullptr);
    } else if (name == "--steps") {
      order.steps = strtoull(value, nullptr, 10);
    } else if (name == "--fixed") {
      return fixedSet(arguments[0], value);
    } else if (name == "--breaks") {
      order.breaks = strtoull(value, nullptr, 10);
    } else if (name == "--draw") {
      order.draw = value;
    } else if (name == "--clients") {
      order.clients = static_cast<uint32_t>(strtoul(value, nullptr, 10));
    } else if (name == "--servers") {
      order.servers =
          std::clamp(static_cast<uint32_t>(strtoul(value, nullptr, 10)), 1U, kMostServers);
    } else if (name == "--without") {
      for (const char* aspect : kAspects) {
        if (std::string(value).find(aspect) != std::string::npos) order.without.insert(aspect);
      }
    } else {
      fprintf(stderr, "simulate: what is %s?\n", name.c_str());
      return 2;
    }
  }
  if (shrinks) return shrink(arguments[0], order);
  for (; seeds > 0; --seeds, ++order.seed) play(order);
}
