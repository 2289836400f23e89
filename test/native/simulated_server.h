// The server of a simulation: the real native code from the sockets to the files; a few lines here
// stand in for JavaScript. A life of the server ends in order, by a kill during a call, or with the
// machine. The next life starts from the disk.
#ifndef TEST_NATIVE_SIMULATED_SERVER_H_
#define TEST_NATIVE_SIMULATED_SERVER_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "door_options.h"
#include "server/front.h"
#include "simulated_disk.h"
#include "simulated_documents.h"
#include "simulated_grants.h"
#include "simulated_sockets.h"
#include "simulated_world.h"

namespace sim {

using namespace server;

constexpr uint16_t kPort = 80;            // the first server's
constexpr uint32_t kHold = 30;            // seconds
constexpr uint32_t kLease = 20;           // seconds
constexpr uint32_t kHeldBytes = 1 << 20;  // of an address
constexpr uint64_t kMailboxMemory = 1 << 22;
constexpr LogBounds kLog = {.items = 40, .bytes = 1 << 14};

/** How clients misbehave. */
struct ClientOdds {
  uint64_t think = 10 * kSecond;  // most microseconds between two throws
  uint64_t resets = 0;            // of a million moments: a connection is cut
  uint64_t stops = 0;             // of a million: a reader stops for a while
  uint64_t leaves = 0;            // of a million: a client leaves
};

struct Crowd {
  ClientOdds odds;
  bool isCalm = false;              // clients begin nothing new
  bool diskFails = false;           // the disk fails: a crash may lose an ack
  bool mustLeave = false;           // all clients must leave
  bool isOver = false;              // no more requests
  uint64_t maxDelay = 3 * kSecond;  // most delay by disk, clock and network
  uint64_t requests = 0;
};
inline Crowd* crowd = nullptr;

/** A player's inputs, by their numbers. */
struct Inputs {
  uint64_t sent = 0;       // the newest input
  uint64_t confirmed = 0;  // the newest confirmed input
  uint64_t reduced = 0;    // the newest input in a reduction of this life
  uint64_t life = 0;
};
/** All players' inputs, by the players' numbers in the arena. */
inline std::map<uint64_t, Inputs>* inputs = nullptr;

struct ServerPlan {
  uint32_t clients = 100;
  uint32_t workers = 0;
  bool hasState = false;  // whether it has a state
  Sync sync = Sync::kNever;
  uint64_t maxTurnDelay = 200;  // most microseconds until the loop's next turn
  uint64_t mailboxMemory = kMailboxMemory;
  uint32_t servers = 1;    // in the world
  uint32_t number = 0;     // this server's
  uint64_t doubt = 60000;  // milliseconds: see SeamsOptions
};

inline Id idOf(std::string_view text) {
  Id id = {};
  size_t count = 0;
  for (const char c : text) {
    if (c == '-' || count == 32) continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    id.bytes[count / 2] = static_cast<uint8_t>(id.bytes[count / 2] << 4 | digit);
    ++count;
  }
  return id;
}
inline uint16_t portOf(uint32_t server) { return static_cast<uint16_t>(kPort + server); }

inline uint64_t microseconds() { return machine->readClock(); }

/** Returns the answers, which contain the outcomes' names. */
inline Replies makeReplies() {
  Replies replies = test::doorReplies();
  // To the client each of these is the end of the connection, as 503 is.
  for (const Outcome end : {Outcome::kRequestTimeout, Outcome::kBadRequest}) {
    replies.outcomes[static_cast<size_t>(end)] =
        replies.outcomes[static_cast<size_t>(Outcome::kTooManyConnections)];
  }
  return replies;
}

/** One run of the server. */
class Life {
 public:
  /** Work that a life schedules at its host. */
  enum class Due : uint8_t {
    kTurn,
    kPoolTick,
    kFeedsTick,
    kFrontTick,
    kFeedsStep,
    kCaughtUp,
    kScript,
    kReduce,
    kAdmit,
    kReady,
    kMember,
    kCrossing,
  };
  using Schedule = std::function<void(uint64_t delay, Due due)>;

  Life(const ServerPlan& plan, Schedule schedule)
      : plan_(plan),
        schedule_(std::move(schedule)),
        limits_({.connections = 0,
                 .clients = 0,
                 .joinRate = 0,
                 .joinBurst = 1,
                 .spriteBytes = 0,
                 .heldBytes = kHeldBytes,
                 .feeds = 0}),
        pool_(poolOptions(), &limits_, milliseconds()),
        feeds_({.hold = kHold,
                .feeds = 16,
                .memory = 1 << 24,
                .watchers = 10000,
                .privatePatterns = std::make_shared<KeyPatterns>(kPrivate),
                .inWorld = plan.servers > 1,
                .log = kLog,
                .answerBytes = 600,
                .hasGrants = true,
                .lease = kLease * 1000},
               milliseconds(), microseconds, &limits_),
        arena_({.rooms = {"hall"}, .players = 20, .lease = kLease, .rate = 4}, &limits_,
               milliseconds()),
        turn_(&pool_),
        opened_(openState()),
        front_(test::doorOptions(plan.clients * 4 + 80, 4096), frontParts(), makeReplies(),
               {.ask = [this](uint32_t worker,
                              const ScriptRequest& question) { onQuestion(worker, question); },
                .gone = [this](Caller caller) { parked_.erase(keyOf(caller)); },
                .bodies = {.most = {{"feed", 1 << 16}}}},
               milliseconds()),
        admission_(&turn_, &front_, [this](uint64_t delay) { schedule_(delay, Due::kAdmit); }),
        poolClock_(milliseconds(), kTickMilliseconds),
        arenaClock_(milliseconds(), kTickMilliseconds),
        frontClock_(milliseconds(), kTickMilliseconds) {
    pool_.setThrowClock(microseconds);
    turn_.onReleased([this](TurnEnd end) { onTurnEnd(end); });
    front_.onWaitChange([this](bool whether) {
      frontWaits_ = whether;
      if (!frontWaits_) schedule_(1, Due::kReady);
    });
    feeds_.onBusy([this] { scheduleFeedsStep(); });
    if (turn_.store() != nullptr && !machine->isDead) {
      const int error = turn_.start([this] { schedule_(machine->below(300), Due::kCaughtUp); });
      // A process that dies during the start does not fail.
      if (error != 0 && !machine->isDead) failStart(error);
    }
    if (recovery_.doubtful && !machine->isDead) renewEpochs();
    for (const Due due : {Due::kPoolTick, Due::kFeedsTick, Due::kFrontTick}) scheduleTick(due);
    schedule_(kSecond, Due::kReduce);
    if (plan_.servers > 1) {
      member_ = std::make_unique<Member>(
          Member::Options{plan_.number, plan_.servers, plan_.doubt}, &pool_, &turn_,
          [this](uint64_t delay) { schedule_(delay, Due::kCrossing); });
      member_->setFeeds(&feeds_);
      scheduleTick(Due::kMember);
    }
    if (feeds_.hasWork()) scheduleFeedsStep();
    if (!machine->isDead) listen();
  }

  ~Life() {
    front_.close();
    if (turn_.store() != nullptr) turn_.store()->stopSyncing();
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  /** The reason why the life could not start from the disk; empty: it started. */
  const std::string& startProblem() const { return startProblem_; }

  int eventFd() { return front_.events()->fd(); }
  bool frontWaits() const { return frontWaits_; }
  Pool& pool() { return pool_; }
  const Pool& pool() const { return pool_; }
  const Feeds& feeds() const { return feeds_; }
  const Arena& arena() const { return arena_; }
  Admission& admission() { return admission_; }
  /** Returns a feed's newest version. */
  Cursor newest(const std::string& key) const {
    const Feed* const feed = feeds_.find(key);
    return feed != nullptr && feed->value ? feed->cursor : Cursor{};
  }
  const Recovery& recovery() const { return recovery_; }
  std::vector<WorkerCounts> counts() const { return front_.counts(); }
  /** The server's membership in the world; nullptr: there is no world. */
  const Member* member() const { return member_.get(); }
  void leave() { member_->leave(); }
  bool isBlocked() const { return turn_.store() != nullptr && turn_.store()->blocked() != 0; }
  uint64_t snapshots() const {
    return turn_.store() == nullptr ? 0 : turn_.store()->counts().snapshots;
  }

  /** Ends in order: closes the front first, so that no client learns what only the snapshot has. */
  void finish() {
    front_.close();
    if (turn_.store() == nullptr) return;
    expect(turn_.finish().ok() || machine->isDead || crowd->diskFails,
           "an end in order has left no state");
  }

  void stopListening() { front_.stopListening(); }
  uint32_t closeIdle() { return front_.closeIdle(); }

  void act(Due due) {
    switch (due) {
      case Due::kTurn:
        if (!frontWaits_) front_.turn();
        break;
      case Due::kPoolTick:
        limits_.tick(milliseconds());
        arena_.tick(arenaClock_.advance(milliseconds()));
        if (turn_.tick(milliseconds(), poolClock_.advance(milliseconds())))
          return scheduleTick(due);
        return schedule_(kMillisecond, due);
      case Due::kFeedsTick:
        if (feeds_.tick(milliseconds())) return scheduleTick(due);
        return schedule_(kMillisecond, due);
      case Due::kFrontTick:
        front_.tick(frontClock_.advance(milliseconds()));
        return scheduleTick(due);
      case Due::kFeedsStep:
        isStepScheduled_ = false;
        for (const Feeds::Task& want : feeds_.takeTasks()) {
          if (member_ && (want.asksForShares || want.ownShare)) {
            member_->sendPresence(want);
          } else if (!want.fetch) {
            compress(want.key, want.cursor);
          }
        }
        feeds_.step(2500);
        if (feeds_.hasWork()) scheduleFeedsStep();
        break;
      case Due::kCaughtUp:
        return turn_.onDiskCaughtUp();
      case Due::kScript:
        return startNextJob();
      case Due::kReduce:
        reduce();
        return schedule_(1 + machine->below(kSecond), due);
      case Due::kAdmit:
        return admission_.act();
      case Due::kReady:
        break;
      case Due::kMember:
        member_->tick();
        return scheduleTick(due);
      case Due::kCrossing:
        return member_->work();
    }
  }

  /** Checks the laws that hold between any two steps. */
  void expectLaws() const {
    const PoolCounts& counts = pool_.counts();
    expect(counts.thrown + counts.crossedIn ==
               counts.acked + counts.waiting + counts.lost + counts.crossedOut,
           "sprites: what is thrown or has come is not acked + waiting + lost + gone");
    // The outboxes may take as much again.
    expect(counts.mailboxBytes <= plan_.mailboxMemory * (plan_.servers > 1 ? 2 : 1),
           "memory: mailboxes have more than they may");
    const ArenaCounts& played = arena_.counts();
    expect(played.inputs == played.reduced + played.superseded + played.waiting,
           "arena: inputs are not reduced + superseded + waiting");
    expect(played.reduced == reducedCount_,
           "arena: not so many inputs came to reductions as are counted");
  }

 private:
  enum class JobKind : uint8_t { kValue, kItem, kPlayer };

  struct Job {
    std::optional<Caller> caller;  // none: the server's own job
    std::string key, body;
    JobKind kind;
  };

  static uint64_t milliseconds() { return machine->now() / kMillisecond; }

  PoolOptions poolOptions() const {
    return {.capacity = plan_.clients * 2 + 10,
            .hold = kHold,
            .lease = kLease,
            .maxSprite = 4096,
            .mailboxSprites = 20,
            .mailboxBytes = 1 << 15,
            .mailboxMemory = plan_.mailboxMemory,
            .answerBytes = 8192};
  }

  FrontParts frontParts() {
    return {.limits = &limits_,
            .feeds = &feeds_,
            .clock = microseconds,
            .counts = [] { return std::string("{}"); },
            .turn = &turn_,
            .pool = &pool_,
            .arena = &arena_,
            .workers = plan_.workers};
  }

  bool openState() {
    arena_.setFields(0, {{.name = "x", .min = 0, .max = 1e9, .start = 0, .isInteger = true}});
    if (!plan_.hasState) return true;
    recovery_ = turn_.open({.path = std::string(Disk::kFolder) + "state",
                            .stateBytes = uint64_t{1} << 30,
                            .journalBytes = 1 << 18,
                            .snapshotSeconds = 30,
                            .sync = plan_.sync});
    if (machine->isDead) return false;
    if (!recovery_.ok()) {
      if (recovery_.error == EIO || recovery_.error == ENOSPC)
        return failStart(recovery_.error), false;
      startProblem_ = "the state can't be read: " + recovery_.file + " " + recovery_.problem +
                      " errno " + std::to_string(recovery_.error);
      return false;
    }
    std::string key;
    if (turn_.attach(&feeds_, &key) != Outcome::kOk) startProblem_ = "a feed does not fit: " + key;
    turn_.attach(&arena_);
    return true;
  }

  /** Ends a process whose disk fails. It is started again. */
  static void failStart(int error) {
    if (machine->isDead) return;
    machine->trace("a start fails, by errno %" PRIu64, static_cast<uint64_t>(error));
    expect(crowd->diskFails, "a start fails on a disk that does not");
    machine->isDead = true;
  }

  void listen() {
    uint16_t port;
    const int error = front_.listen(
        {.address = "127.0.0.1", .port = portOf(plan_.number), .backlog = 1000}, &port);
    expect(error == 0, "the server does not listen");
  }

  void scheduleTick(Due due) {
    // Timers are late sometimes.
    const uint64_t delay = machine->below(50) == 0 ? machine->below(300 * kMillisecond) : 0;
    schedule_(kTickMilliseconds * kMillisecond + delay, due);
  }

  void scheduleFeedsStep() {
    if (std::exchange(isStepScheduled_, true)) return;
    schedule_(machine->below(plan_.maxTurnDelay), Due::kFeedsStep);
  }

  // ---- The part of JavaScript

  static uint64_t keyOf(Caller caller) {
    return uint64_t{caller.worker} << 56 ^ uint64_t { caller.ticket.generation } << 24 ^
           caller.ticket.connection;
  }

  void onQuestion(uint32_t worker, const ScriptRequest& question) {
    const Caller caller = {worker, question.ticket};
    const std::string_view target = question.head.target;
    if (question.body.state == Body::State::kAwaited) return front_.proceed(caller);
    if (admission_.accept(caller, question)) return;
    const bool plays = target.starts_with("/arena/");
    if (plays || target.starts_with("/feed/")) {
      const bool posts = question.head.method == "POST";
      waitingJobs_.push_back({caller, std::string(target.substr(plays ? 7 : 6)),
                              std::string(question.body.bytes),
                              plays   ? JobKind::kPlayer
                              : posts ? JobKind::kItem
                                      : JobKind::kValue});
      return schedule_(machine->below(3 * kMillisecond), Due::kScript);
    }
    if (target == "/parked" && machine->below(2) == 0) {
      parked_.insert(keyOf(caller));
      if (!front_.park(caller)) parked_.erase(keyOf(caller));
      return;
    }
    respond(caller, "200 OK", target);
  }

  void respond(Caller caller, const char* status, std::string_view body) {
    front_.respond(caller, std::string("HTTP/1.1 ") + status + "\r\n",
                   "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n", body);
  }

  /** Begins the next publication when the last one is durable. */
  void startNextJob() {
    while (!currentJob_ && !waitingJobs_.empty()) {
      currentJob_ = std::move(waitingJobs_.front());
      waitingJobs_.pop_front();
      if (currentJob_->kind == JobKind::kPlayer) {
        endJob(runPlayerJob());
      } else {
        publishJob(nextCursorOf(currentJob_->key));
      }
    }
  }

  Cursor nextCursorOf(const std::string& key) const {
    const Cursor known = newest(key);
    return {known.version > 0 ? known.epoch : newEpoch(), known.version + 1};
  }

  void publishJob(Cursor cursor) {
    jobAnswer_.clear();
    cursor.appendTo(&jobAnswer_);
    const auto& [caller, key, body, kind] = *currentJob_;
    endJob(publish(key, cursor, body, kind == JobKind::kItem));
  }

  /** Ends the current job, done or refused. Its answer waits for the end of the turn. */
  void endJob(Outcome outcome) {
    if (outcome != Outcome::kOk) {
      const Job job = *std::exchange(currentJob_, std::nullopt);
      if (!job.caller) return;
      return respond(*job.caller,
                     (std::string("400 ") + kOutcomeNames[static_cast<size_t>(outcome)]).c_str(),
                     "");
    }
    jobAwaitsTurn_ = true;
    const TurnEnd end = turn_.endOutsideFront();
    if (end != TurnEnd::kWait) settleJob(end);
  }

  void onTurnEnd(TurnEnd end) {
    admission_.onTurnEnd(end);
    settleJob(end);
  }

  void settleJob(TurnEnd end) {
    if (!std::exchange(jobAwaitsTurn_, false)) return;
    const Job job = *std::exchange(currentJob_, std::nullopt);
    if (job.caller && end == TurnEnd::kSend) respond(*job.caller, "200 OK", jobAnswer_);
    if (job.caller && end != TurnEnd::kSend) front_.abandon(*job.caller);
    if (!waitingJobs_.empty()) schedule_(1, Due::kScript);
  }

  /** Lets a player join or leave. */
  Outcome runPlayerJob() {
    const std::string& path = currentJob_->key;
    Id id;
    if (path.ends_with("/leave")) {
      jobAnswer_.clear();
      return arena_.leave("hall", idOf(std::string_view(path).substr(5, 36)));
    }
    uint32_t number;
    const Outcome outcome = arena_.join(path, {}, machine->readClock(), &id, &number);
    if (outcome != Outcome::kOk) return outcome;
    jobAnswer_.resize(36);
    id.format(jobAnswer_.data());
    jobAnswer_ += " " + std::to_string(number);
    return outcome;
  }

  Outcome publish(const std::string& key, Cursor cursor, const std::string& body, bool item) {
    uint32_t watching;
    if (item) return feeds_.append(key, cursor, body, &watching);
    const Feed* const feed = feeds_.find(key);
    const bool isNext = feed != nullptr && feed->value && feed->cursor.epoch == cursor.epoch &&
                        feed->cursor.version + 1 == cursor.version;
    Sheet before, next;
    std::string patch;
    if (isNext && before.parse(feed->value->text()) && next.parse(body))
      patch = before.patchTo(next);
    return feeds_.publish({.key = key, .cursor = cursor, .value = body, .patch = patch}, &watching);
  }

  /** Acts as a game's reducer: checks its inputs, and publishes them. */
  void reduce() {
    uint32_t numbers[20];
    uint8_t fresh[20];
    double values[20];
    const uint32_t count = arena_.collectInputs(
        0, {.capacity = 20, .numbers = numbers, .isNew = fresh, .values = values});
    Sheet sheet{machine->steps(), {}};
    for (uint32_t i = 0; i < count; ++i) {
      const auto value = static_cast<uint64_t>(values[i]);
      reducedCount_ += fresh[i];
      sheet.cells.push_back(numbers[i]);
      sheet.cells.push_back(value);
      const auto found = inputs->find(numbers[i]);
      if (found == inputs->end()) {
        expect(value == 0, "arena: a player has an input without having sent one");
        continue;
      }
      Inputs& its = found->second;
      const bool known = std::exchange(its.life, firstStep_) == firstStep_;
      expect(value <= its.sent, "arena: an input comes that was not sent");
      expect(value >= its.confirmed || crowd->diskFails, "arena: an input is lost that was taken");
      expect(!known || value >= its.reduced, "arena: an older input comes after a newer one");
      expect(!known || (value != its.reduced) == (fresh[i] != 0),
             "arena: an input that is new is not called so, or the other way");
      its.reduced = value;
    }
    if (count == 0 || currentJob_ || crowd->mustLeave) return;
    const std::string text = sheet.text();
    publishedSheets->emplace(std::pair("arena/hall", sheet.number), text);
    waitingJobs_.push_back({std::nullopt, "arena/hall", text, JobKind::kValue});
    schedule_(1, Due::kScript);
  }

  /** Compresses a feed's value; some compressions fail. */
  void compress(const std::string& key, Cursor cursor) {
    const Feed* const feed = feeds_.find(key);
    std::string whole;
    if (feed != nullptr && feed->value && machine->below(10) != 0) {
      feed->appendHead(&whole);
      whole.append(feed->value->text()).append("}");
    }
    // The table ignores the result if the version is not the requested one any more.
    feeds_.setCompressed(key, cursor, whole.empty() ? std::string() : gzipOf(whole));
  }

  static uint64_t newEpoch() { return 1 + machine->below(uint64_t{1} << 40); }

  /** Gives all feeds new epochs: clients may have versions that this life does not know. */
  void renewEpochs() {
    std::vector<std::string> keys;
    feeds_.forEach([&](const Feed& feed) { keys.push_back(feed.key); });
    for (const std::string& key : keys) {
      const Feed* const feed = feeds_.find(key);
      uint32_t watching;
      if (feed->isLog) {
        (void)feeds_.append(key, {newEpoch(), feed->cursor.version}, {}, &watching);
      } else {
        const std::string value(feed->value->text());
        (void)feeds_.publish(
            {.key = key, .cursor = {newEpoch(), feed->cursor.version + 1}, .value = value},
            &watching);
      }
    }
    (void)turn_.endOutsideFront();
  }

  const ServerPlan plan_;
  const Schedule schedule_;
  std::string startProblem_;
  Recovery recovery_;
  AddressLimits limits_;
  Pool pool_;
  Feeds feeds_;
  Arena arena_;
  Turn turn_;
  const bool opened_;
  bool frontWaits_ = false;
  bool isStepScheduled_ = false;
  std::deque<Job> waitingJobs_;
  std::optional<Job> currentJob_;
  std::string jobAnswer_;  // the current job's answer, sent when it is durable
  uint64_t reducedCount_ = 0;
  const uint64_t firstStep_ = machine->steps();
  bool jobAwaitsTurn_ = false;  // the job is durable when the turn is written
  std::set<uint64_t> parked_;
  Front front_;
  Admission admission_;
  base::DeadlineClock poolClock_;
  base::DeadlineClock arenaClock_;
  base::DeadlineClock frontClock_;
  std::unique_ptr<Member> member_;
};

/** A server's host: has its disk, begins its lives, and calls their due work. */
class Host : public Actor {
 public:
  explicit Host(const ServerPlan& plan) : plan_(plan) { sim::disk.at[plan.number] = &disk; }

  Disk disk;
  uint64_t lastDoubted = 0;  // doubted sprites of the last life

  Life* life() const { return life_.get(); }

  void startLife() {
    machine->server = plan_.number;
    ++lifeNumber_;
    isTurnDue_ = false;
    const bool mayDoubt = disk.keepsUnsynced || disk.hasUnfinishedJournal(sizeof(JournalBegin));
    life_ =
        std::make_unique<Life>(plan_, [this, number = lifeNumber_](uint64_t delay, Life::Due due) {
          if (number != lifeNumber_) return;
          machine->schedule(delay, this, eventOf(due));
        });
    if (machine->isDead) return;
    if (!life_->startProblem().empty()) machine->fail(life_->startProblem());
    expect(mayDoubt || !life_->recovery().doubtful, "a killed process has left a state in doubt");
    network->setReadyActor(life_->eventFd(), this, eventOf(Life::Due::kReady));
    machine->trace("a server begins, life %" PRIu64 ": %" PRIu64 " clients, %" PRIu64
                   " sprites wait",
                   lifeNumber_, life_->pool().counts().clients, life_->pool().counts().waiting);
    act(eventOf(Life::Due::kReady));
  }

  /** Ends the server's process. */
  void endLife() {
    machine->server = plan_.number;
    if (life_) lastDoubted = life_->pool().counts().crossedInDoubt;
    life_.reset();
    ++lifeNumber_;
    machine->freeEndedThreads();
    expect(network->openDescriptors() == 0, "a descriptor is left open");
  }

  void act(uint64_t what) override {
    if (what >> 8 != lifeNumber_ || !life_) return;
    machine->server = plan_.number;
    const auto due = static_cast<Life::Due>(what & 0xff);
    if (machine->now() < busyUntil_ && due != Life::Due::kReady) {
      return machine->schedule(busyUntil_ - machine->now() + machine->below(1000), this, what);
    }
    if (due == Life::Due::kTurn) {
      isTurnDue_ = false;
      machine->trace("a turn");
    }
    life_->act(due);
    if (machine->isDead) return;
    if (due != Life::Due::kReady) life_->expectLaws();
    if (due == Life::Due::kCrossing) expectWorldLaws();
    // A call of the server may be running: the turn is a separate step.
    if (isTurnDue_ || life_->frontWaits()) return;
    if (due == Life::Due::kReady || network->isReady(life_->eventFd())) {
      isTurnDue_ = true;
      machine->schedule(machine->below(plan_.maxTurnDelay), this, eventOf(Life::Due::kTurn));
    }
  }

  /** Ends the process before the next step. */
  void kill() {
    machine->server = plan_.number;
    machine->isDead = true;
  }

  /** Whether the server has left its world in order, and should start again. */
  bool hasLeft() const {
    return life_ != nullptr && life_->member() != nullptr && life_->member()->hasLeft();
  }

  /** Takes the core from the process for this time. */
  void starve(uint64_t microseconds) { busyUntil_ = machine->now() + microseconds; }

  uint64_t lives() const { return lifeNumber_; }
  uint32_t number() const { return plan_.number; }

 private:
  void expectWorldLaws();

  uint64_t eventOf(Life::Due due) const { return lifeNumber_ << 8 | static_cast<uint64_t>(due); }

  const ServerPlan plan_;
  std::unique_ptr<Life> life_;
  uint64_t lifeNumber_ = 0;
  bool isTurnDue_ = false;
  uint64_t busyUntil_ = 0;
};

/** The hosts by number; nullptr: none. */
inline Host* hosts[kMaxServers] = {};

/** The sums of all servers' counts. */
struct Totals {
  uint64_t waiting = 0, lost = 0, clients = 0, crossedIn = 0, crossedOut = 0, doubted = 0;
  uint64_t shape = 0;      // changes with every torus and ring
  bool isComplete = true;  // no server is down

  static Totals read() {
    Totals sum;
    for (Host* const host : hosts) {
      if (host == nullptr) continue;
      sum.shape = sum.shape * 1000003 + host->lives();
      const Life* const life = host->life();
      if (life == nullptr) {
        sum.isComplete = false;
        sum.doubted += host->lastDoubted;
        continue;
      }
      const PoolCounts& counts = life->pool().counts();
      sum.waiting += counts.waiting;
      sum.lost += counts.lost;
      sum.clients += counts.clients;
      sum.crossedIn += counts.crossedIn;
      sum.crossedOut += counts.crossedOut;
      sum.doubted += counts.crossedInDoubt;
      const uint64_t rings = life->member() == nullptr ? 0 : life->member()->ringChanges();
      sum.shape = (sum.shape * 1000003 + counts.joined + counts.left + counts.expired) * 1000003 +
                  life->pool().torus().size() + rings * 4096;
    }
    return sum;
  }
};

/** Checks that acknowledged crossings have arrived. */
inline void Host::expectWorldLaws() {
  const Totals totals = Totals::read();
  if (!totals.isComplete) return;
  expect(totals.crossedIn >= totals.crossedOut, "crossings: more has gone than has come");
  if (totals.doubted > 0) return;
  for (uint32_t to = 0; to < plan_.servers; ++to) {
    if (to == plan_.number) continue;
    const Seams& seams = life_->member()->seams();
    const Seams& there = hosts[to]->life()->member()->seams();
    if (seams.size() == 0 || there.size() == 0) continue;
    const server::Peer& peer = there.peer(static_cast<PeerNumber>(plan_.number));
    const uint64_t taken = peer.sender.memory == seams.self().memory ? peer.lastTaken : 0;
    expect(seams.peer(static_cast<PeerNumber>(to)).outbox.base() <= taken + 1,
           "crossings: a sprite is acked that was not taken");
  }
}

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_SERVER_H_
