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

struct RunOptions {
  uint64_t seed = 1;
  double minutes = 1;
  uint64_t steps = UINT64_MAX;
  uint32_t clients = 0;  // 0: by the seed
  uint32_t servers = 0;  // 0: by the seed
  bool trace = false;
  bool quiet = false;
  uint64_t failAfter = 0;  // for tests: this many arrived sprites break a law
  std::string drawFile;    // file to draw into; empty: none
  std::set<std::string> without;

  bool has(const char* aspect) const { return !without.contains(aspect); }
};

struct Figures {
  uint64_t steps, requests, sprites, lives;
  double seconds, coreSeconds;  // simulated time; real time
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
  explicit Run(const RunOptions& order) : order_(order), machine_(order.seed, order.trace) {
    machine = &machine_;
    network = &network_;
    broker = &broker_;
    crowd = &crowd_;
    ledger = &ledger_;
    records = &records_;
    publishedSheets = &publishedSheets_;
    inputs = &inputs_;
    if (!order.drawFile.empty()) {
      machine_.onTrace = [this](const std::string& line) { drawing_.add(line); };
      machine_.onFailure = [this](const std::string& law) { draw(law, true); };
    }
    plan_.servers = order_.servers != 0    ? order_.servers
                    : order_.seed % 3 == 0 ? 2 + static_cast<uint32_t>(order_.seed / 3 % 3)
                                           : 1;
    if (!order_.has("world")) plan_.servers = 1;
    choosePlan();
    lobby_ = std::make_unique<Lobby>(plan_.workers > 0);
    std::fill(std::begin(hosts), std::end(hosts), nullptr);
    for (; plan_.number < plan_.servers; ++plan_.number) {
      hosts_.push_back(std::make_unique<Host>(plan_));
      hosts[plan_.number] = hosts_.back().get();
      hosts_.back()->disk.odds = diskOdds_;
      hosts_.back()->disk.keepsUnsynced = faults_.power;
    }
  }

  Figures play() {
    const clock_t began = clock();
    for (const auto& host : hosts_) {
      host->startLife();
      if (machine_.isDead) crash();
    }
    addClients();
    machine_.schedule(kSecond, this, kCheckLaws);
    scheduleFault(faults_.crashEvery * 1000, kCrash);
    scheduleFault(faults_.starveEvery, kStarve);
    scheduleFault(faults_.jumpEvery, kJump);
    scheduleFault(faults_.fullEvery, kFull);
    scheduleFault(faults_.brokerEvery, kBroker);
    scheduleFault(faults_.leaveEvery, kLeave);
    const uint64_t end = Machine::kStartTime + static_cast<uint64_t>(order_.minutes * 60 * kSecond);
    run([&] { return machine_.now() >= end || machine_.steps() >= order_.steps; });
    finishRun();
    if (machine_.onTrace) draw("no law is broken", false);
    const double seconds =
        static_cast<double>(machine_.now() - Machine::kStartTime) / static_cast<double>(kSecond);
    const double took = static_cast<double>(clock() - began) / CLOCKS_PER_SEC;
    uint64_t lives = 0;
    for (const auto& host : hosts_) lives += host->lives();
    return {machine_.steps(), crowd_.requests, ledger_.delivered, lives, seconds, took};
  }

  void act(uint64_t what) override {
    if (what == kCheckLaws) {
      checkLaws();
      return machine_.schedule(5 * kSecond, this, kCheckLaws);
    }
    if (what >= kStartServer) return hosts_[what - kStartServer]->startLife();
    if (what == kEmptyDisk) {
      for (const auto& host : hosts_) host->disk.isFull = false;
      return;
    }
    if (what == kMend) return broker_.mend();
    if (crowd_.isCalm) return;
    injectFault(what);
  }

 private:
  static constexpr uint32_t kReaders = 4;  // watchers of each feed

  enum : uint64_t {
    kCheckLaws,
    kCrash,
    kStarve,
    kJump,
    kFull,
    kEmptyDisk,
    kLeave,
    kBroker,
    kMend,
    kStartServer
  };

  uint64_t below(uint64_t bound) { return machine_.below(bound); }

  void draw(const std::string& end, bool broken) {
    FILE* const file = fopen(order_.drawFile.c_str(), "w");
    const std::string page =
        drawing_.page("seed " + std::to_string(order_.seed) + ": " + end, broken);
    const bool written = file != nullptr && fwrite(page.data(), page.size(), 1, file) == 1;
    if (file == nullptr || fclose(file) != 0 || !written) {
      fprintf(stderr, "simulate: %s can't be written\n", order_.drawFile.c_str());
    }
  }

  /** Draws the seed's plan. All aspects are drawn, so that leaving one out changes no other. */
  void choosePlan() {
    plan_.clients = 2 + static_cast<uint32_t>(below(3) == 0 ? below(150) : below(30));
    if (order_.clients != 0) plan_.clients = order_.clients;
    plan_.workers = below(2) == 0 ? 0 : 1 + static_cast<uint32_t>(below(3));
    plan_.hasState = below(4) != 0;
    plan_.sync = below(2) == 0 ? Sync::kTurn : Sync::kNever;
    plan_.maxTurnDelay = below(2) == 0 ? 100 : 5000;
    machine_.clockReadTime = below(4);
    const bool badNetwork = below(2) == 0;
    const bool badClients = below(2) == 0;
    const bool churns = below(2) == 0;
    const bool crashes = below(2) == 0;
    const bool power = below(2) == 0;
    const bool badDisk = below(3) == 0;
    const bool badClock = below(3) == 0;
    const uint64_t think = below(3);
    if (!order_.has("workers")) plan_.workers = 0;
    if (!order_.has("state")) plan_.hasState = false;
    crowd_.odds.think = think == 0 ? kSecond : think == 1 ? 10 * kSecond : 60 * kSecond;
    if (badNetwork && order_.has("network")) {
      network_.odds = {.latency = 200 * kMillisecond,
                       .splits = 100000,
                       .shortCalls = 100000,
                       .refusedSends = 30000,
                       .window = 3000};
    }
    if (badClients && order_.has("clients")) crowd_.odds.resets = 20000, crowd_.odds.stops = 10000;
    if (churns && order_.has("churn")) crowd_.odds.leaves = 50000;
    if (plan_.hasState) {
      if (crashes && order_.has("crashes")) faults_.crashEvery = 20;
      // A failing disk and a power cut together may leave files that no start accepts.
      faults_.power = power && !badDisk && plan_.sync == Sync::kTurn && order_.has("power");
      if (badDisk && order_.has("disk")) {
        diskOdds_ = {
            .maxSyncTime = 20000, .slowSyncs = 2000, .failures = 3000, .shortWrites = 50000};
        faults_.fullEvery = 30000;
        crowd_.diskFails = true;
      }
      // The longer a sync takes, the more writes a power cut can lose.
      if (faults_.power && below(2) == 0) diskOdds_.maxSyncTime = 200 * kMillisecond;
    }
    crowd_.maxDelay += (badNetwork ? 10 : 0) * kSecond + (badClock ? 60 : 0) * kSecond +
                       (badDisk ? 60 : 0) * kSecond;
    if (badClock && order_.has("clock")) faults_.starveEvery = 20000, faults_.jumpEvery = 60000;
    machine_.trace("seed %" PRIu64 ": %" PRIu64 " clients, %" PRIu64 " workers", order_.seed,
                   plan_.clients, plan_.workers);
    if (plan_.servers > 1) chooseWorldPlan();
    if (plan_.hasState) {
      machine_.trace(plan_.sync == Sync::kTurn ? "a state, synced each turn"
                                               : "a state, not synced");
    }
    if (badNetwork) machine_.trace("the network is bad");
    if (crowd_.odds.resets != 0) machine_.trace("clients cut connections, and stop reading");
    if (crowd_.odds.leaves != 0) machine_.trace("clients leave");
    if (faults_.crashEvery != 0) machine_.trace("the server crashes");
    if (crowd_.diskFails) machine_.trace("the disk fails");
    if (badClock) machine_.trace("the clock jumps");
  }

  void chooseWorldPlan() {
    machine_.trace("%" PRIu64 " servers", plan_.servers);
    if (below(4) == 0) plan_.doubt = 3000;
    // With little memory the mailboxes are full now and then.
    if (below(4) == 0) plan_.mailboxMemory = order_.seed % 2 == 0 ? 1 << 12 : 1 << 14;
    const bool loses = below(2) == 0;
    const bool fails = below(2) == 0;
    const bool leaves = below(2) == 0;
    if (leaves && plan_.hasState && !crowd_.diskFails && order_.has("churn"))
      faults_.leaveEvery = 20000;
    if (!order_.has("broker")) return;
    if (loses) {
      broker_.odds = {.delay = 500 * kMillisecond, .drops = 100000, .doubles = 100000};
      machine_.trace("the broker is late, and loses and doubles messages");
    }
    if (!fails) return;
    faults_.brokerEvery = 10000;
    machine_.trace("the broker is away");
  }

  template <typename One, typename... Given>
  void addClient(Given&&... given) {
    clients_.push_back(std::make_unique<One>(std::forward<Given>(given)...));
  }

  void addClients() {
    for (uint32_t i = 0; i < plan_.clients; ++i) {
      addClient<Player>(i, 0x0a000000 + i % 200, i % plan_.servers, Player::Mode::kInTurn);
    }
    if (order_.has("feeds")) addFeeds();
    if (plan_.servers > 1) return;
    for (uint32_t i = 0; i < 3 && order_.has("ahead"); ++i) {
      addClient<Player>(plan_.clients + i, 0x0f000000, 0, Player::Mode::kPipelined);
    }
    for (int i = 0; i < 6 && order_.has("arena"); ++i) addClient<ArenaPlayer>(0x0e000000);
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
        addClient<Publisher>(key, 0x0b000000, server, cells);
      }
      all.emplace_back(key);
      for (uint32_t i = 0; i < kReaders; ++i) {
        addClient<FeedWatcher>(Way::kPoll, std::vector<std::string>{key}, 0x0c000000 + i,
                               i % plan_.servers);
      }
    }
    if (plan_.servers > 1) {
      for (uint32_t server = 0; server < plan_.servers; ++server) {
        addClient<Headcount>("value/a", kReaders, server);
      }
    } else if (order_.has("ways")) {
      addClient<FeedWatcher>(Way::kPoll, std::vector{all[0]}, 0x0d000000);
      for (const auto& key : all)
        addClient<FeedWatcher>(Way::kStream, std::vector{key}, 0x0d000000);
      for (int i = 0; i < 3; ++i) addClient<FeedWatcher>(Way::kList, all, 0x0d000000);
    }
  }

  /** Schedules a fault after `every` milliseconds on average. */
  void scheduleFault(uint64_t every, uint64_t what) {
    if (every != 0) machine_.schedule((every / 2 + below(every)) * kMillisecond, this, what);
  }

  void injectFault(uint64_t what) {
    switch (what) {
      case kCrash:
        // At a later call of the disk, or within an orderly end, or now.
        if (Host& host = randomHost(); below(2) == 0) {
          host.disk.callsUntilEnd = below(30);
        } else if (host.life() != nullptr && below(2) == 0) {
          if (below(2) == 0) host.disk.callsUntilEnd = below(30);
          restart(&host);
        } else if (host.life() != nullptr) {
          machine_.trace("the process ends");
          host.kill();
        }
        return scheduleFault(faults_.crashEvery * 1000, what);
      case kStarve: {
        const uint64_t time = below(4000);
        machine_.trace("the server has no core for %" PRIu64 " ms", time);
        randomHost().starve(time * kMillisecond);
        return scheduleFault(faults_.starveEvery, what);
      }
      case kJump: {
        const uint64_t time = below(20000);
        machine_.trace("the machine sleeps for %" PRIu64 " ms", time);
        machine_.advance(time * kMillisecond);
        return scheduleFault(faults_.jumpEvery, what);
      }
      case kFull:
        machine_.trace("the disk is full");
        randomHost().disk.isFull = true;
        machine_.schedule(below(5 * kSecond), this, kEmptyDisk);
        return scheduleFault(faults_.fullEvery, what);
      case kLeave:
        if (Host& host = randomHost(); host.life() != nullptr) {
          machine_.trace("server %" PRIu64 " leaves", host.number());
          host.life()->leave();
        }
        return scheduleFault(faults_.leaveEvery, what);
      case kBroker:
        failBroker();
        return scheduleFault(faults_.brokerEvery, what);
      default:
        return;
    }
  }

  Host& randomHost() { return *hosts_[plan_.servers == 1 ? 0 : below(plan_.servers)]; }

  void failBroker() {
    const auto one = static_cast<uint32_t>(below(plan_.servers));
    const auto other = static_cast<uint32_t>(below(plan_.servers));
    switch (below(3)) {
      case 0:
        machine_.trace("nothing comes from server %" PRIu64 " to %" PRIu64, one, other);
        broker_.cut(one, other);
        break;
      default:
        machine_.trace("server %" PRIu64 " does not reach the broker, from there to %" PRIu64, one,
                       other);
        for (uint32_t to = 0; to <= kMaxServers; ++to) {
          for (uint32_t name = std::min(one, other); name <= std::max(one, other); ++name) {
            broker_.cut(name, to);
            broker_.cut(to, name);
          }
        }
    }
    machine_.schedule(below(20 * kSecond), this, kMend);
  }

  void crash() {
    const Crash how = faults_.power && below(2) == 0 ? Crash::kPower : Crash::kKill;
    machine_.trace(how == Crash::kPower ? "a power cut" : "a kill");
    const uint32_t server = machine_.server;
    hosts_[server]->endLife();
    machine_.isDead = false;
    disk->crash(how);
    // In a world the pause may be long enough to lose the place in the ring.
    const uint64_t most = plan_.servers > 1 && below(3) == 0 ? 20 : 3;
    machine_.schedule(50 * kMillisecond + below(most * kSecond), this, kStartServer + server);
  }

  template <typename Until>
  void run(Until&& until) {
    while (!until()) {
      expect(machine_.nextTime() != kNever, "nothing is to happen any more");
      machine_.step();
      if (machine_.isDead) crash();
      expect(order_.failAfter == 0 || ledger_.delivered < order_.failAfter,
             "a test: sprites have come");
      Host& host = *hosts_[machine_.server];
      if (host.hasLeft()) restart(&host);
    }
  }

  /** Ends a server in order, as after a leave of its world, and starts it again. */
  void restart(Host* host) {
    machine_.server = host->number();
    machine_.trace("server %" PRIu64 " ends in order", host->number());
    host->life()->finish();
    if (machine_.isDead) return crash();
    host->disk.callsUntilEnd = kNever;
    host->endLife();
    machine_.schedule(below(20 * kSecond), this, kStartServer + host->number());
  }

  /** Checks the laws that need a look at everything; called now and then. */
  void checkLaws() {
    for (const auto& one : clients_) one->expectInTime();
    for (const auto& host : hosts_) {
      if (host->life() != nullptr) checkLaws(*host->life());
    }
  }

  void checkLaws(const Life& life) const {
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
  void runUntil(uint64_t seconds, const char* law, Holds&& holds) {
    const uint64_t end = machine_.now() + seconds * kSecond;
    run([&] {
      expect(machine_.now() < end, law);
      return holds();
    });
  }

  bool areAllServing() const {
    return std::ranges::all_of(hosts_, [](const auto& host) {
      return host->life() != nullptr && !host->life()->isBlocked();
    });
  }

  void finishRun() {
    machine_.trace("nothing new is begun, and nothing fails");
    crowd_.isCalm = true;
    network_.odds = {};
    broker_.odds = {};
    broker_.mend();
    for (const auto& host : hosts_) {
      host->disk.odds = {};
      host->disk.isFull = false;
      host->disk.callsUntilEnd = kNever;
    }
    runUntil(60, "the server serves again", [&] { return areAllServing(); });
    runUntil(600, "sprites: one that is promised does not come", [&] {
      return machine_.steps() % 64 == 0 && areAllServing() && Totals::read().waiting == 0 &&
             std::ranges::none_of(clients_, [](const auto& one) { return one->isWaiting(); });
    });
    const Totals totals = Totals::read();
    expect(totals.crossedIn - totals.crossedOut <= totals.doubted,
           "crossings: what has come has not gone");
    if (ledger_.missing() > totals.lost) {
      machine_.fail("sprites: " + std::to_string(ledger_.missing()) +
                    " that were promised never came, such as " +
                    std::to_string(ledger_.firstMissing()) + "; " + std::to_string(totals.lost) +
                    " are counted as lost");
    }
    runUntil(120, "feeds: a watcher does not get the newest", [&] {
      return std::ranges::all_of(clients_, [](const auto& one) { return one->isUpToDate(); });
    });
    runUntil(120, "presence: what is told in the end is not what is there",
             [&] { return machine_.steps() % 64 == 0 && lobby_->isPresenceRight(); });
    crowd_.mustLeave = true;
    runUntil(600, "clients: one does not get away", [&] {
      return machine_.steps() % 64 == 0 &&
             std::ranges::all_of(clients_, [](const auto& one) { return one->hasLeft(); });
    });
    runUntil(120, "clients: one stays that has left, or whose lease is over", [&] {
      return areAllServing() && Totals::read().clients == 0 &&
             std::ranges::all_of(hosts_, [](const auto& host) {
               return host->life()->arena().counts().players == 0;
             });
    });
    expect(
        std::ranges::all_of(
            hosts_, [](const auto& host) { return host->life()->arena().counts().waiting == 0; }),
        "arena: an input waits of a player that has left");
    crowd_.isOver = true;
    for (const auto& one : clients_) one->close();
    // Not at every step: workers that get messages at every step never read.
    uint64_t next = 0;
    runUntil(120, "connections: one stays that is closed", [&] {
      if (machine_.now() < next || !areAllServing()) return false;
      next = machine_.now() + 50 * kMillisecond;
      uint32_t open = 0;
      for (const auto& host : hosts_) {
        machine_.server = host->number();
        host->life()->closeIdle();
        for (const WorkerCounts& one : host->life()->counts()) open += one.door.open;
      }
      return open == 0;
    });
    runUntil(10, "memory: an answer is held without a reader", [&] {
      return areAllServing() && std::ranges::all_of(hosts_, [](const auto& host) {
               return host->life()->feeds().unsentBytes() == 0;
             });
    });
    expect(Totals::read().waiting == 0, "sprites: one waits without a receiver");
    for (const auto& host : hosts_) {
      machine_.server = host->number();
      host->life()->finish();
      host->endLife();
    }
  }

  const RunOptions order_;
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
  std::map<std::pair<std::string, uint64_t>, std::string> publishedSheets_;
  std::map<uint64_t, Inputs> inputs_;
};

void printFigures(const RunOptions& order, const Figures& figures) {
  printf("seed %" PRIu64 ": %" PRIu64 " steps, %" PRIu64 " requests, %" PRIu64 " sprites, %" PRIu64
         " lives; %.0f s in %.3f s of a core: %.0f times the clock\n",
         order.seed, figures.steps, figures.requests, figures.sprites, figures.lives,
         figures.seconds, figures.coreSeconds, figures.seconds / figures.coreSeconds);
}

Figures play(const RunOptions& order) {
  const Figures figures = std::make_unique<Run>(order)->play();
  if (!order.quiet) printFigures(order, figures);
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
int runFixedSet(const char* program, const char* count) {
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
    RunOptions order;
    order.seed = seed;
    order.quiet = true;
    const Figures figures = play(order);
    sum.steps += figures.steps;
    sum.sprites += figures.sprites;
    sum.lives += figures.lives;
    sum.seconds += figures.seconds;
    sum.coreSeconds += figures.coreSeconds;
  }
  printf("simulate: %" PRIu64 " seeds, %" PRIu64 " steps, %" PRIu64 " sprites, %" PRIu64
         " lives; %.0f s in %.1f s\n",
         seeds, sum.steps, sum.sprites, sum.lives, sum.seconds, sum.coreSeconds);
  return 0;
}

/** Result of a run in another process: the broken law (empty: none), and its step. */
struct Failure {
  std::string law, text;
  uint64_t step = 0;
};

/** Searches for a shorter run that breaks the same law: without aspects, with fewer clients, in
 * less time, under other seeds. Prints the steps of the shortest run. */
int shrink(const std::string& program, RunOptions order) {
  const std::string drawn = std::exchange(order.drawFile, {});
  const auto textOf = [](const RunOptions& one) {
    char minutes[32];
    snprintf(minutes, sizeof minutes, "%g", one.minutes);
    std::string text = "--seed " + std::to_string(one.seed) + " --minutes " + minutes;
    if (one.steps != UINT64_MAX) text += " --steps " + std::to_string(one.steps);
    if (one.clients != 0) text += " --clients " + std::to_string(one.clients);
    if (one.servers != 0) text += " --servers " + std::to_string(one.servers);
    std::string without;
    for (const std::string& aspect : one.without) without += (without.empty() ? "" : ",") + aspect;
    if (!without.empty()) text += " --without " + without;
    if (one.failAfter != 0) text += " --breaks " + std::to_string(one.failAfter);
    return text;
  };
  const auto run = [&](const RunOptions& one, const std::string& more) {
    int status;
    Failure broken;
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
  Failure shortest = run(order, " 2>&1");
  if (shortest.law.empty()) {
    puts("simulate: this breaks no law");
    return 0;
  }
  const std::string law = shortest.law;
  int tries = 0;
  // Returns whether a run breaks the same law before step `before`. Then it is the new shortest.
  const auto tryShorter = [&](const RunOptions& one, uint64_t before) {
    ++tries;
    const Failure broken = run(one, " 2>&1");
    if (broken.law != law || broken.step >= before) return false;
    order = one;
    shortest = broken;
    return true;
  };
  for (const char* aspect : kAspects) {
    RunOptions options = order;
    options.without.insert(aspect);
    tryShorter(options, UINT64_MAX);
  }
  for (const uint32_t clients : {2, 3, 5, 10}) {
    // Another number of clients or another seed has another history. Only even seeds have grants.
    for (uint64_t i = 0; i < 20; ++i) {
      RunOptions options = order;
      options.clients = clients;
      options.seed += i == 0 ? 0 : 2 * i;
      tryShorter(options, shortest.step);
    }
  }
  double minutes = order.minutes;
  for (int halves = 0; halves < 7; ++halves) {
    minutes /= 2;
    RunOptions options = order;
    options.minutes = minutes;
    tryShorter(options, shortest.step + 1);
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
  const size_t said = shortest.text.find_last_of('\n', shortest.text.size() - 2) + 1;
  printf("%s%d tries; the least is\nsimulate %s\n", shortest.text.substr(said).c_str(), tries,
         textOf(order).c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  RunOptions order;
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
      return runFixedSet(arguments[0], value);
    } else if (name == "--breaks") {
      order.failAfter = strtoull(value, nullptr, 10);
    } else if (name == "--draw") {
      order.drawFile = value;
    } else if (name == "--clients") {
      order.clients = static_cast<uint32_t>(strtoul(value, nullptr, 10));
    } else if (name == "--servers") {
      order.servers =
          std::clamp(static_cast<uint32_t>(strtoul(value, nullptr, 10)), 1U, kMaxServers);
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
