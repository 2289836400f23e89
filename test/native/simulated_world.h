// The world of a simulation: the broker between the servers, and each server's membership.
//
//   Member ─lease─▶ Broker: the list of servers ─▶ its leases, to all ─▶ Member ─ring─▶ native
//   native ─frame, when its turn is written─▶ Broker: late, lost, doubled ─▶ the other's Member
//
// The frames and their sending and receiving are native/world's. The broker itself judges the
// leases, instead of JavaScript (lib/world/membership.js, by a store's compare-and-set): the rings
// are the same. test/world tests the real membership, and shared feeds, in virtual time.
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
constexpr uint64_t kMaxLeaveTime = 8000;  // most milliseconds of a leave

/** A server's announcement of itself. */
struct Lease {
  enum class State : uint8_t { kNone, kMember, kLeaving, kGone, kLost };

  State state = State::kNone;
  uint64_t epoch = 0;
  uint64_t run = 0;     // identifies the process
  uint64_t memory = 0;  // identifies the state
  uint32_t rows = 0;
  uint64_t announcedAt = 0;  // milliseconds

  bool isLiving() const { return state == State::kMember || state == State::kLeaving; }
  bool hasSameContent(const Lease& other) const {
    return state == other.state && epoch == other.epoch && run == other.run && rows == other.rows;
  }
};
using Leases = std::array<Lease, kMaxServers>;

/** A message to or from the broker. */
struct BrokerMessage {
  enum class Kind : uint8_t { kFrame, kLease, kLeases, kPresence };

  Kind kind = Kind::kFrame;
  uint32_t from = 0, to = 0;               // servers, or the broker
  std::string bytes = {};                  // kFrame
  Lease lease = {};                        // kLease: the sender's
  Leases leases = {};                      // kLeases
  uint64_t revision = 0;                   // kLeases: number of changes
  std::string key = {};                    // kPresence: the feed
  bool asks = false;                       // kPresence: asks for the others' shares
  std::optional<Attendance> present = {};  // kPresence: the sender's share
};

/** A server's end of its connection to the broker. */
class BrokerClient {
 public:
  virtual ~BrokerClient() = default;
  virtual void onMessage(const BrokerMessage& parcel) = 0;
};

struct BrokerOdds {
  uint64_t delay = 2 * kMillisecond;  // most microseconds of a message
  uint64_t drops = 0;                 // lost messages, of a million
  uint64_t doubles = 0;
};

class Broker : public Actor {
 public:
  static constexpr uint32_t kSelf = kMaxServers;
  static constexpr uint64_t kMaxDuplicateDelay = 10 * kSecond;  // most delay of a doubled message

  BrokerOdds odds;
  BrokerClient* clients[kMaxServers] = {};

  /** Drops all messages from one server to another, until `mend`. */
  void cut(uint32_t from, uint32_t to) { isCut_[from][to] = true; }
  void mend() { isCut_ = {}; }

  void send(const BrokerMessage& parcel) {
    if (isCut_[parcel.from][parcel.to]) return;
    if (machine->happens(odds.drops)) {
      return machine->trace("a message from %" PRIu64 " to %" PRIu64 " is lost", parcel.from,
                            parcel.to);
    }
    deliverLater(parcel, odds.delay);
    if (machine->happens(odds.doubles)) deliverLater(parcel, kMaxDuplicateDelay);
  }

  void act(uint64_t what) override {
    const BrokerMessage parcel = std::move(inFlight_.extract(what).mapped());
    if (isCut_[parcel.from][parcel.to]) return;
    if (parcel.to == kSelf) return receiveLease(parcel.from, parcel.lease);
    if (clients[parcel.to] != nullptr) clients[parcel.to]->onMessage(parcel);
  }

 private:
  void deliverLater(const BrokerMessage& parcel, uint64_t within) {
    inFlight_.emplace(++lastSent_, parcel);
    machine->schedule(1 + machine->below(within), this, lastSent_);
  }

  /** Receives a lease: a server goes on, or begins, with its last state or after losing it. */
  void receiveLease(uint32_t from, const Lease& lease) {
    const uint64_t now = machine->now() / kMillisecond;
    const uint64_t before = revision_;
    Lease& known = leases_[from];
    const bool goesOn =
        known.isLiving() && lease.run == known.run && lease.announcedAt > known.announcedAt;
    const bool begins =
        lease.epoch > known.epoch && (!known.isLiving() || lease.memory == known.memory);
    if (lease.state != Lease::State::kNone && (goesOn || begins)) {
      if (!lease.hasSameContent(known)) ++revision_;
      known = lease;
      renewedAt_[from] = now;
    }
    for (uint32_t name = 0; name < kMaxServers; ++name) {
      if (!leases_[name].isLiving() || now <= renewedAt_[name] + kLeaseTime + kLeaseMargin)
        continue;
      machine->trace("server %" PRIu64 " is taken out of the ring", name);
      leases_[name].state = Lease::State::kLost;
      ++revision_;
    }
    for (uint32_t to = 0; to < kMaxServers; ++to) {
      if (to != from && revision_ == before) continue;
      send({.kind = BrokerMessage::Kind::kLeases,
            .from = kSelf,
            .to = to,
            .leases = leases_,
            .revision = revision_});
    }
  }

  std::map<uint64_t, BrokerMessage> inFlight_;
  uint64_t lastSent_ = 0;
  Leases leases_;
  std::array<uint64_t, kMaxServers> renewedAt_ = {};  // milliseconds
  uint64_t revision_ = 1;
  std::array<std::array<bool, kMaxServers + 1>, kMaxServers + 1> isCut_ = {};
};
inline Broker* broker = nullptr;

/** A server's membership in the world. */
class Member : private BrokerClient {
 public:
  struct Options {
    uint32_t number, servers;
    uint64_t doubt;
  };

  /** `wake(delay)` schedules a call of `work`, after microseconds. `pool` has the last process's
   * state, and its changes are written. */
  Member(const Options& options, Pool* pool, Turn* turn, std::function<void(uint64_t delay)> wake)
      : number_(options.number),
        servers_(options.servers),
        doubt_(options.doubt),
        pool_(*pool),
        turn_(*turn),
        wake_(std::move(wake)),
        seams_(*pool->enterWorld()),
        run_(1 + machine->below(UINT32_MAX)) {
    turn_.onReleased([this](TurnEnd end) { onTurnEnd(end); });
    broker->clients[number_] = this;
    (void)turn_.endOutsideFront();
  }
  ~Member() override {
    broker->clients[number_] = nullptr;
    pool_.closeSeams();
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /** Number of changes of the ring. */
  uint64_t ringChanges() const { return ringChanges_; }
  const Seams& seams() const { return seams_; }

  /** Begins to leave: the neighbors connect, waiting sprites are handed over, then the name is
   * free.
   */
  void leave() { leaveBy_ = std::min(leaveBy_, milliseconds() + kMaxLeaveTime); }

  /** Whether the server has left, or has given up waiting. */
  bool hasLeft() const {
    const bool gone = leases_[number_].state == Lease::State::kGone;
    return leaveBy_ != kNeverDue && (gone || milliseconds() > leaveBy_);
  }

  /** Sends this server's share of a feed's watchers to the others, or asks for theirs. */
  void sendPresence(const Feeds::Task& want) const {
    for (uint32_t to = 0; to < servers_; ++to) {
      if (to == number_) continue;
      broker->send({.kind = BrokerMessage::Kind::kPresence,
                    .from = number_,
                    .to = to,
                    .key = want.key,
                    .asks = want.asksForShares,
                    .present = want.ownShare});
    }
  }

  /** Sets the table that receives the others' shares. */
  void setFeeds(Feeds* feeds) { feeds_ = feeds; }

  /** Announces the server: regularly, and after a change. */
  void tick() {
    const uint64_t now = milliseconds();
    const Lease& own = leases_[number_];
    const bool isLeaving = leaveBy_ != kNeverDue;
    Lease next = {.run = run_, .memory = seams_.self().memory, .rows = rows(), .announcedAt = now};
    if (revision_ > 0 && (isOwnLease(own) || !isLeaving)) {
      // The epoch was not accepted, or has ended.
      if (!isOwnLease(own) && own.epoch >= epoch_) {
        epoch_ = std::max({1700000000 + now / 1000, own.epoch + 1, seams_.self().life + 1});
      }
      const bool hasLeft = own.state == Lease::State::kLeaving && seams_.waitingSprites() == 0;
      next.epoch = epoch_;
      next.state = !isLeaving ? Lease::State::kMember
                   : hasLeft  ? Lease::State::kGone
                              : Lease::State::kLeaving;
    }
    if (now >= announced_.announcedAt + kRenewEvery || !next.hasSameContent(announced_)) {
      announced_ = next;
      broker->send({.kind = BrokerMessage::Kind::kLease,
                    .from = number_,
                    .to = Broker::kSelf,
                    .lease = next});
    }
    updateRing();
  }

  /** Processes received messages, and sends due ones. */
  void work() {
    if (callAt_ > milliseconds()) return;
    callAt_ = kNeverDue;
    for (const BrokerMessage& parcel : std::exchange(received_, {})) {
      switch (parcel.kind) {
        case BrokerMessage::Kind::kFrame:
          receiveFrame(parcel.from, parcel.bytes);
          break;
        case BrokerMessage::Kind::kPresence:
          receivePresence(parcel);
          break;
        default:
          if (parcel.revision < revision_) break;
          revision_ = parcel.revision;
          leases_ = parcel.leases;
          updateRing();
      }
    }
    sendDue();
  }

 private:
  using Messages = std::vector<std::pair<uint32_t, std::string>>;

  static uint64_t milliseconds() { return machine->now() / kMillisecond; }

  void onMessage(const BrokerMessage& parcel) override {
    received_.push_back(parcel);
    callAt(milliseconds());
  }

  void callAt(uint64_t at) {
    if (at >= callAt_) return;
    callAt_ = at;
    const uint64_t time = at * kMillisecond;
    wake_(time > machine->now() ? time - machine->now() : machine->below(300));
  }

  bool isOwnLease(const Lease& lease) const {
    return lease.isLiving() && lease.run == run_ && lease.epoch == epoch_;
  }
  bool isInRing() const {
    const Lease& own = leases_[number_];
    return isOwnLease(own) && own.state == Lease::State::kMember;
  }
  /** Whether it is a member: without the broker only until its lease ends. */
  bool isMember() const {
    return isInRing() && milliseconds() < leases_[number_].announcedAt + kLeaseTime;
  }

  uint32_t rows() const { return pool_.torus().cycles(); }

  // ---- Like lib/world/shared-presence.js

  static std::string nameOf(uint32_t server) {
    return std::string(1, static_cast<char>('a' + server));
  }

  /** Forgets the shares of servers whose epoch has changed. */
  void forgetChangedPeers() {
    for (uint32_t name = 0; name < servers_; ++name) {
      const bool there = isOwnLease(leases_[number_]) && leases_[name].isLiving();
      const uint64_t epoch = there && name != number_ ? leases_[name].epoch : 0;
      if (std::exchange(peerEpochs_[name], epoch) != epoch) feeds_->removeShares(nameOf(name));
    }
  }

  void receivePresence(const BrokerMessage& told) {
    if (peerEpochs_[told.from] == 0) return;
    if (told.asks) feeds_->answerShareRequest(told.key);
    if (told.present) feeds_->setShare(told.key, nameOf(told.from), *told.present);
  }

  // ---- Like lib/world/crossing.js

  /** Sets the native ring after a change. */
  void updateRing() {
    if (!crossings_) {
      if (!isMember()) return;
      machine->trace("server %" PRIu64 " is in the world by epoch %" PRIu64, number_, epoch_);
      crossings_ = std::make_unique<Crossings>(&pool_, epoch_);
      // The pool's numbers of peers are the servers' numbers.
      for (uint32_t i = 0; i < servers_; ++i) pool_.findOrAddPeer(nameOf(i));
      pool_.openSeams({.outboxBytes = 1 << 14, .doubt = doubt_},
                      [this] { callAt(milliseconds()); });
    }
    const bool open = isMember();
    const auto isSaid = [](const Lease& one, const Lease& other) {
      return one.hasSameContent(other);
    };
    if (open == ringIsOpen_ && std::ranges::equal(leases_, ringLeases_, isSaid)) return;
    ringLeases_ = leases_;
    ringIsOpen_ = open;
    ++ringChanges_;
    forgetChangedPeers();
    if (leaveBy_ != kNeverDue) return closeRing();
    std::vector<std::pair<size_t, uint32_t>> in;
    for (uint32_t i = 0; i < servers_; ++i) {
      const bool other = isInRing() && leases_[i].state == Lease::State::kMember;
      if (i == number_ || other) in.emplace_back(i, i == number_ ? rows() : leases_[i].rows);
    }
    Ring ring = test::ringOf(in, number_, open);
    ring.accepted.clear();
    for (PeerNumber i = 0; i < servers_; ++i) {
      if (i == number_ || leases_[i].epoch == 0) continue;
      ring.epochs.push_back({i, leases_[i].epoch});
      if (leases_[i].isLiving()) ring.accepted.push_back(i);
    }
    machine->trace("server %" PRIu64 " knows a ring of %" PRIu64 ", open %" PRIu64, number_,
                   in.size(), open ? 1 : 0);
    ring_ = ring;
    seams_.setRing(std::move(ring), milliseconds());
  }

  /** Keeps the way out, so that waiting sprites can be handed over, and accepts nothing more. */
  void closeRing() {
    ring_.accepted.clear();
    ring_.isOpen = false;
    seams_.setRing(ring_, milliseconds());
  }

  void receiveFrame(uint32_t from, const std::string& message) {
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
      machine->trace("server %" PRIu64 " takes %" PRIu64 " sprites of %" PRIu64, number_, taken,
                     from);
    }
    if (!answer.empty()) answers_.emplace_back(from, std::move(answer));
  }

  static PeerNumber peerOf(uint32_t server) { return static_cast<PeerNumber>(server); }

  /** Sends due messages when their turn is written. */
  void sendDue() {
    if (!crossings_) return (void)turn_.endOutsideFront();
    const uint64_t now = milliseconds();
    Messages messages = std::exchange(answers_, {});
    crossings_->rerouteStranded(now);
    for (uint32_t to = 0; to < servers_; ++to) {
      std::string message;
      while (crossings_->nextMessage(peerOf(to), now, &message)) {
        messages.emplace_back(to, std::exchange(message, {}));
      }
    }
    const TurnEnd end = turn_.endOutsideFront();
    if (machine->isDead) return;
    if (end == TurnEnd::kSend) send(messages);
    if (end == TurnEnd::kWait) {
      for (auto& one : messages) heldMessages_.push_back(std::move(one));
    }
    const uint64_t due = crossings_->dueAt();
    if (due != kNeverDue) callAt(due > now ? due : now + 50);
  }

  void onTurnEnd(TurnEnd end) {
    const Messages messages = std::exchange(heldMessages_, {});
    if (end == TurnEnd::kSend) send(messages);
  }

  void send(const Messages& messages) const {
    for (const auto& [to, bytes] : messages) {
      broker->send(
          {.kind = BrokerMessage::Kind::kFrame, .from = number_, .to = to, .bytes = bytes});
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
  std::vector<BrokerMessage> received_;
  Messages answers_, heldMessages_;
  Feeds* feeds_ = nullptr;
  std::array<uint64_t, kMaxServers> peerEpochs_ = {};  // epochs of the living others
  uint64_t callAt_ = kNeverDue;
  uint64_t ringChanges_ = 0;
  // Leases, its own and the others':
  Leases leases_;  // the broker's list
  uint64_t revision_ = 0;
  Lease announced_;  // its own announcement
  Leases ringLeases_;
  bool ringIsOpen_ = false;
  Ring ring_;
  uint64_t leaveBy_ = kNeverDue;
  uint64_t epoch_ = 0;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_WORLD_H_
