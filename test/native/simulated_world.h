// The world of a simulation: the broker between its servers, and what a server has of it.
//
//   Member ─ask─▶ Broker: leases, by compare-and-set ─▶ answer, news ─▶ Member ─ring─▶ native
//   native ─frame, when its turn is written─▶ Broker: late, lost, doubled ─▶ the other's Member
//
// Frames, and what is sent and taken, are native/world's. JavaScript decides which servers are in
// the ring (lib/world/membership.js, leases.js): a few lines here say the same, without versions,
// tags, and preparing. test/world has the real ones in virtual time, and feeds that are shared.
#ifndef TEST_NATIVE_SIMULATED_WORLD_H_
#define TEST_NATIVE_SIMULATED_WORLD_H_

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "feeds/feeds.h"
#include "simulated_machine.h"
#include "world_scene.h"

namespace sim {

using namespace server;

constexpr uint64_t kLeaseTime = 4000;  // milliseconds
constexpr uint64_t kLeaseMargin = kLeaseTime / 8;
constexpr uint64_t kRenewEvery = kLeaseTime / 4;
constexpr uint64_t kFarewell = 8000;  // milliseconds that a server leaves for, at most
constexpr uint64_t kPatience = 2000;  // milliseconds that an answer of the broker is waited for

/** What a server says of itself in the broker's store. */
struct Lease {
  enum class State : uint8_t { kNone, kJoining, kMember, kLeaving, kGone, kLost };

  State state = State::kNone;
  uint64_t epoch = 0;
  uint64_t run = 0;     // the process
  uint64_t memory = 0;  // whose state it is
  uint32_t rows = 0;
  uint64_t revision = 0;  // the store's

  bool isLiving() const { return state >= State::kJoining && state <= State::kLeaving; }
  bool isSaidAsIn(const Lease& other) const {
    return state == other.state && epoch == other.epoch && run == other.run && rows == other.rows;
  }
};
using Leases = std::array<Lease, kMostServers>;

/** What goes to the broker, and what comes from it. */
struct Parcel {
  enum class Kind : uint8_t { kFrame, kAll, kPut, kAnswer, kNews, kPresence };

  Kind kind = Kind::kFrame;
  uint32_t from = 0, to = 0;               // servers, or the broker
  std::string bytes = {};                  // kFrame
  uint64_t question = 0;                   // kAll, kPut, kAnswer: by whom and which
  uint32_t name = 0;                       // kPut, kNews: whose lease
  Lease lease = {};                        // kPut: with the revision that it is to be written over
  Leases leases = {};                      // kAnswer to kAll
  bool refused = false;                    // kAnswer to kPut: something else is there
  std::string key = {};                    // kPresence: of a feed
  bool asks = false;                       // the same: for the others' shares of it
  std::optional<Attendance> present = {};  // the same: its sender's share
};

/** A server's end of its connection to the broker. */
class Connected {
 public:
  virtual ~Connected() = default;
  virtual void came(const Parcel& parcel) = 0;
};

struct BrokerOdds {
  uint64_t delay = 2 * kMillisecond;  // at most
  uint64_t drops = 0;                 // of a million
  uint64_t doubles = 0;
};

class Broker : public Actor {
 public:
  static constexpr uint32_t kSelf = kMostServers;
  static constexpr uint64_t kLate = 10 * kSecond;  // when what is doubled comes again, at most

  BrokerOdds odds;
  Connected* ends[kMostServers] = {};

  /** Nothing goes from one to the other any more. */
  void cut(uint32_t from, uint32_t to) { cut_[from][to] = true; }
  void mend() { cut_ = {}; }

  void send(const Parcel& parcel) {
    if (cut_[parcel.from][parcel.to]) return;
    if (machine->chance(odds.drops)) {
      return machine->say("a message from %" PRIu64 " to %" PRIu64 " is lost", parcel.from,
                          parcel.to);
    }
    bring(parcel, odds.delay);
    if (machine->chance(odds.doubles)) bring(parcel, kLate);
  }

  void act(uint64_t what) override {
    const Parcel parcel = std::move(onTheWay_.extract(what).mapped());
    if (cut_[parcel.from][parcel.to]) return;
    if (parcel.to == kSelf) return answer(parcel);
    if (ends[parcel.to] != nullptr) ends[parcel.to]->came(parcel);
  }

  /** The broker's disk is lost: revisions begin anew. */
  void loseAll() {
    leases_ = before_ = {};
    revision_ = 0;
  }

  /** Another one leads, which has not what was written last, though it was acknowledged. */
  void forget() {
    leases_ = before_;
    revision_ = beforeRevision_;
  }

 private:
  void bring(const Parcel& parcel, uint64_t within) {
    onTheWay_.emplace(++sent_, parcel);
    machine->after(1 + machine->below(within), this, sent_);
  }

  void answer(const Parcel& asked) {
    Parcel told = {.kind = Parcel::Kind::kAnswer,
                   .from = kSelf,
                   .to = asked.from,
                   .question = asked.question,
                   .name = asked.name,
                   .lease = asked.lease,
                   .leases = leases_};
    if (asked.kind == Parcel::Kind::kPut) {
      Lease& lease = leases_[asked.name];
      told.refused = lease.revision != asked.lease.revision;
      if (!told.refused) {
        before_ = leases_;
        beforeRevision_ = revision_;
        lease = asked.lease;
        told.lease.revision = lease.revision = ++revision_;
        for (uint32_t to = 0; to < kMostServers; ++to) {
          send({.kind = Parcel::Kind::kNews,
                .from = kSelf,
                .to = to,
                .name = asked.name,
                .lease = lease});
        }
      }
    }
    send(told);
  }

  std::map<uint64_t, Parcel> onTheWay_;
  uint64_t sent_ = 0;
  Leases leases_;
  uint64_t revision_ = 0;
  Leases before_;  // the last write
  uint64_t beforeRevision_ = 0;
  std::array<std::array<bool, kMostServers + 1>, kMostServers + 1> cut_ = {};
};
inline Broker* broker = nullptr;

/** A server's part in the world. */
class Member : private Connected {
 public:
  /** `wake(delay)`: it is to be called by `work` then, microseconds. `pool` has what the last
   * process has left, and all that it does is written. */
  Member(uint32_t number, uint32_t servers, uint64_t doubt, Pool* pool, Turn* turn,
         std::function<void(uint64_t delay)> wake)
      : number_(number),
        servers_(servers),
        doubt_(doubt),
        pool_(*pool),
        turn_(*turn),
        wake_(std::move(wake)),
        seams_(*pool->enterWorld()),
        run_(1 + machine->below(UINT32_MAX)) {
    turn_.onReleased([this](TurnEnd end) { settle(end); });
    broker->ends[number_] = this;
    (void)turn_.endOwn();
  }
  ~Member() override {
    broker->ends[number_] = nullptr;
    pool_.closeSeams();
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /** How often the ring was another one. */
  uint64_t rings() const { return rings_; }
  const Seams& seams() const { return seams_; }

  /** The server leaves: the neighbors connect, then what waits is handed over, then its name is
   * free. */
  void leave() { leaveBy_ = std::min(leaveBy_, milliseconds() + kFarewell); }

  /** The server has left, or has given up waiting for that. */
  bool hasLeft() const {
    const bool gone = seen_[number_].lease.state == Lease::State::kGone;
    return leaveBy_ != kNeverDue && (gone || milliseconds() > leaveBy_);
  }

  /** Tells the others of this server's share of a feed's watchers, or asks for theirs. */
  void tellPresence(const Feeds::Want& want) const {
    for (uint32_t to = 0; to < servers_; ++to) {
      if (to == number_) continue;
      broker->send({.kind = Parcel::Kind::kPresence,
                    .from = number_,
                    .to = to,
                    .key = want.key,
                    .asks = want.asks,
                    .present = want.share});
    }
  }

  /** Has `feeds` know of the others' shares. */
  void tellOf(Feeds* feeds) { feeds_ = feeds; }

  /** Looks at the server's lease, and at the others'. */
  void tick() {
    const uint64_t now = milliseconds();
    if (asked_ == 0 || now > askedAt_ + kPatience) {
      if (std::exchange(asked_, 0) != 0) mustReload_ = true;
      turn(now);
    }
    look();
  }

  /** Takes what has come, and sends what is due. */
  void work() {
    if (callAt_ > milliseconds()) return;
    callAt_ = kNeverDue;
    for (const Parcel& parcel : std::exchange(inbox_, {})) {
      switch (parcel.kind) {
        case Parcel::Kind::kFrame:
          receive(parcel.from, parcel.bytes);
          break;
        case Parcel::Kind::kNews:
          hear(parcel.name, parcel.lease);
          break;
        case Parcel::Kind::kPresence:
          hearOf(parcel);
          break;
        default:
          answered(parcel);
      }
    }
    pump();
  }

 private:
  struct Seen {
    Lease lease;
    uint64_t at = 0;  // milliseconds
  };
  using Messages = std::vector<std::pair<uint32_t, std::string>>;

  static uint64_t milliseconds() { return machine->now() / kMillisecond; }

  void came(const Parcel& parcel) override {
    inbox_.push_back(parcel);
    callAt(milliseconds());
  }

  void callAt(uint64_t at) {
    if (at >= callAt_) return;
    callAt_ = at;
    const uint64_t time = at * kMillisecond;
    wake_(time > machine->now() ? time - machine->now() : machine->below(300));
  }

  // ---- As lib/world/membership.js

  bool isOurs(const Lease& lease) const {
    return lease.isLiving() && lease.run == run_ && lease.epoch == epoch_;
  }
  bool isInRing() const {
    return isOurs(seen_[number_].lease) && seen_[number_].lease.state == Lease::State::kMember;
  }
  bool isMember() const { return isInRing() && milliseconds() < leaseEnd_; }
  bool isOverdue(uint32_t name, uint64_t now) const {
    return seen_[name].lease.isLiving() && now > seen_[name].at + kLeaseTime + kLeaseMargin;
  }

  void turn(uint64_t now) {
    if (mustReload_) return ask({.kind = Parcel::Kind::kAll, .name = number_});
    const Seen& own = seen_[number_];
    if (!isOurs(own.lease)) return leaveBy_ == kNeverDue ? claim(now) : void();
    const bool due = now >= sentAt_ + kRenewEvery || own.lease.rows != rows() || now >= leaseEnd_;
    if (leaveBy_ != kNeverDue) {
      const bool left = own.lease.state == Lease::State::kLeaving;
      if (left && seams_.sprites() == 0) return put(Lease::State::kGone);
      if (due || !left) put(Lease::State::kLeaving);
      return;
    }
    if (due || own.lease.state == Lease::State::kJoining) return put(Lease::State::kMember);
    // A server that has lost touch with the store finds no other lost.
    if (!isMember() || now > contact_ + kLeaseTime / 2) return;
    for (uint32_t name = 0; name < servers_; ++name) {
      const uint64_t turns = (number_ + servers_ - name - 1) % servers_;
      if (name == number_ || !isOverdue(name, now)) continue;
      if (!isOverdue(name, now - turns * kLeaseTime / 16)) continue;
      machine->say("server %" PRIu64 " takes %" PRIu64 " out of the ring", number_, name);
      Lease lost = seen_[name].lease;
      lost.state = Lease::State::kLost;
      return ask({.kind = Parcel::Kind::kPut, .name = name, .lease = lost});
    }
  }

  void claim(uint64_t now) {
    const Lease& lease = seen_[number_].lease;
    const bool sameState = lease.memory == seams_.self().memory && lease.run != run_ && epoch_ == 0;
    if (lease.isLiving() && !sameState && !isOverdue(number_, now)) return;
    epoch_ =
        std::max({1700000000 + now / 1000, lease.epoch + 1, epoch_ + 1, seams_.self().life + 1});
    put(Lease::State::kJoining);
  }

  void put(Lease::State state) {
    sentAt_ = milliseconds();
    ask({.kind = Parcel::Kind::kPut,
         .name = number_,
         .lease = {.state = state,
                   .epoch = epoch_,
                   .run = run_,
                   .memory = seams_.self().memory,
                   .rows = rows(),
                   .revision = seen_[number_].lease.revision}});
  }

  void ask(Parcel parcel) {
    asked_ = run_ << 32 | ++questions_;
    askedAt_ = milliseconds();
    mustReload_ = false;
    parcel.from = number_;
    parcel.to = Broker::kSelf;
    parcel.question = asked_;
    asks_ = parcel.kind;
    broker->send(parcel);
  }

  void answered(const Parcel& told) {
    if (told.question != asked_) return;
    asked_ = 0;
    const uint64_t now = milliseconds();
    if (asks_ == Parcel::Kind::kAll) {
      // The store may be another one now, or have forgotten something.
      for (uint32_t name = 0; name < servers_; ++name) {
        Seen& seen = seen_[name];
        const Lease& there = told.leases[name];
        if (seen.at <= askedAt_ && there.revision < seen.lease.revision) seen = {};
        see(name, there);
      }
    } else if (told.refused) {
      mustReload_ = true;
    } else {
      if (told.name == number_) leaseEnd_ = askedAt_ + kLeaseTime;
      // What was written before that must be known before it is a member.
      mustReload_ = told.lease.state == Lease::State::kJoining;
      see(told.name, told.lease);
    }
    // What was seen while the store was away is judged from now on.
    if (now > contact_ + kLeaseTime / 2) {
      for (Seen& seen : seen_) seen.at = now;
    }
    contact_ = now;
    look();
    tick();
  }

  void hear(uint32_t name, const Lease& lease) {
    const Lease& known = seen_[name].lease;
    const bool denied = name == number_ && isOurs(known) && !isOurs(lease);
    if (lease.revision < known.revision || denied) {
      mustReload_ = true;
    } else {
      see(name, lease);
      look();
    }
  }

  void see(uint32_t name, const Lease& lease) {
    Seen& seen = seen_[name];
    if (seen.lease.revision >= lease.revision) return;
    seen = {lease, milliseconds()};
  }

  uint32_t rows() const { return pool_.torus().cycles(); }

  // ---- As lib/world/shared-presence.js

  static std::string nameOf(uint32_t server) {
    return std::string(1, static_cast<char>('a' + server));
  }

  /** Forgets the shares of those that are not what they were. */
  void meetPeers(const Leases& leases) {
    for (uint32_t name = 0; name < servers_; ++name) {
      const bool there = isOurs(seen_[number_].lease) && leases[name].isLiving();
      const uint64_t epoch = there && name != number_ ? leases[name].epoch : 0;
      if (std::exchange(peers_[name], epoch) != epoch) feeds_->forgetShares(nameOf(name));
    }
  }

  void hearOf(const Parcel& told) {
    if (peers_[told.from] == 0) return;
    if (told.asks) feeds_->askShare(told.key);
    if (told.present) feeds_->takeShare(told.key, nameOf(told.from), *told.present);
  }

  // ---- As lib/world/crossing.js

  /** Tells native of the ring, where it is another one. */
  void look() {
    if (!crossings_) {
      if (!isMember()) return;
      machine->say("server %" PRIu64 " is in the world by epoch %" PRIu64, number_, epoch_);
      crossings_ = std::make_unique<Crossings>(&pool_, epoch_);
      // Their numbers are those of the servers.
      for (uint32_t i = 0; i < servers_; ++i) pool_.know(nameOf(i));
      pool_.openSeams({.outboxBytes = 1 << 14, .doubt = doubt_},
                      [this] { callAt(milliseconds()); });
    }
    Leases leases;
    for (uint32_t i = 0; i < servers_; ++i) leases[i] = seen_[i].lease;
    const bool open = isMember();
    const auto isSaid = [](const Lease& one, const Lease& other) { return one.isSaidAsIn(other); };
    if (open == toldOpen_ && std::ranges::equal(leases, told_, isSaid)) return;
    told_ = leases;
    toldOpen_ = open;
    ++rings_;
    meetPeers(leases);
    if (leaveBy_ != kNeverDue) return lookBack();
    std::vector<std::pair<size_t, uint32_t>> in;
    for (uint32_t i = 0; i < servers_; ++i) {
      const bool other = isInRing() && leases[i].state == Lease::State::kMember;
      if (i == number_ || other) in.emplace_back(i, i == number_ ? rows() : leases[i].rows);
    }
    Ring ring = test::ringOf(in, number_, open);
    ring.accepted.clear();
    for (PeerNumber i = 0; i < servers_; ++i) {
      if (i == number_ || leases[i].epoch == 0) continue;
      ring.told.push_back({i, leases[i].epoch});
      if (leases[i].isLiving()) ring.accepted.push_back(i);
    }
    machine->say("server %" PRIu64 " knows a ring of %" PRIu64 ", open %" PRIu64, number_,
                 in.size(), open ? 1 : 0);
    ring_ = ring;
    seams_.set(std::move(ring), milliseconds());
  }

  /** The way out stays as it was, so that what waits can be handed over; nothing comes in. */
  void lookBack() {
    ring_.accepted.clear();
    ring_.open = false;
    seams_.set(ring_, milliseconds());
  }

  void receive(uint32_t from, const std::string& message) {
    if (!crossings_) return;
    Frames frames;
    expect(readMessage(message, &frames) == FrameRefusal::kNone, "crossings: a frame is malformed");
    const FrameHead& head = frames.at[frames.count - 1].head;
    const bool older =
        head.kind == FrameKind::kSprites && head.life < seams_.peer(peerOf(from)).sender.life;
    const bool other = head.kind == FrameKind::kSprites && head.peerLife != seams_.self().life;
    const uint64_t in = pool_.counts().crossedIn;
    std::string answer;
    const FrameRefusal refusal =
        crossings_->receive(peerOf(from), message, milliseconds(), &answer);
    expect(refusal != FrameRefusal::kMalformed, "crossings: an ack makes no sense");
    expect(!older || !pool_.promising() || refusal == FrameRefusal::kOlderLife,
           "crossings: a frame of an older epoch is not refused");
    const uint64_t taken = pool_.counts().crossedIn - in;
    expect(taken == 0 || !other, "crossings: a frame for another life is taken");
    if (taken > 0) {
      machine->say("server %" PRIu64 " takes %" PRIu64 " sprites of %" PRIu64, number_, taken,
                   from);
    }
    if (!answer.empty()) answers_.emplace_back(from, std::move(answer));
  }

  static PeerNumber peerOf(uint32_t server) { return static_cast<PeerNumber>(server); }

  /** Sends what is due, when the turn that says so is written. */
  void pump() {
    if (!crossings_) return (void)turn_.endOwn();
    const uint64_t now = milliseconds();
    Messages messages = std::exchange(answers_, {});
    crossings_->sortOut(now);
    for (uint32_t to = 0; to < servers_; ++to) {
      std::string message;
      while (crossings_->next(peerOf(to), now, &message)) {
        messages.emplace_back(to, std::exchange(message, {}));
      }
    }
    const TurnEnd end = turn_.endOwn();
    if (machine->dead) return;
    if (end == TurnEnd::kSend) send(messages);
    if (end == TurnEnd::kWait) {
      for (auto& one : messages) waiting_.push_back(std::move(one));
    }
    const uint64_t due = crossings_->dueAt();
    if (due != kNeverDue) callAt(due > now ? due : now + 50);
  }

  void settle(TurnEnd end) {
    const Messages messages = std::exchange(waiting_, {});
    if (end == TurnEnd::kSend) send(messages);
  }

  void send(const Messages& messages) const {
    for (const auto& [to, bytes] : messages) {
      broker->send({.kind = Parcel::Kind::kFrame, .from = number_, .to = to, .bytes = bytes});
    }
  }

  const uint32_t number_;
  const uint32_t servers_;
  const uint64_t doubt_;
  Pool& pool_;
  Turn& turn_;
  const std::function<void(uint64_t)> wake_;
  Seams& seams_;
  const uint64_t run_;
  std::unique_ptr<Crossings> crossings_;
  std::vector<Parcel> inbox_;
  Messages answers_, waiting_;
  Feeds* feeds_ = nullptr;
  std::array<uint64_t, kMostServers> peers_ = {};  // epochs of the others that are there
  uint64_t callAt_ = kNeverDue;
  uint64_t rings_ = 0;
  // Of its lease, and the others':
  std::array<Seen, kMostServers> seen_;
  Leases told_;
  bool toldOpen_ = false;
  Ring ring_;
  uint64_t leaveBy_ = kNeverDue;
  bool mustReload_ = true;
  uint64_t epoch_ = 0;
  uint64_t leaseEnd_ = 0;
  uint64_t contact_ = 0;
  uint64_t sentAt_ = 0;
  uint64_t asked_ = 0;  // what is not answered
  uint64_t askedAt_ = 0;
  uint64_t questions_ = 0;
  Parcel::Kind asks_ = Parcel::Kind::kAll;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_WORLD_H_
