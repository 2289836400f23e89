// A server of a world and its state, case by case: what a power cut takes, and what not; that a
// server whose disk accepts nothing stands still; what a restarted server asks before anything
// else. Random histories are the simulation's.
//
//   world_state_test
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "expect.h"
#include "world_scene.h"

namespace {

using namespace server;
using namespace server::test;

constexpr uint64_t kDoubt = 1000;

/**
 * Servers with a client each. Servers with a state can be ended and begun again. All frames arrive,
 * unless a test says that one is lost.
 */
class Town {
 public:
  /** `keeping`: the servers with a state. */
  Town(size_t count, std::initializer_list<size_t> keeping, uint64_t doubt = kNever)
      : doubt_(doubt), folders_(count), servers_(count) {
    for (const size_t number : keeping) folders_[number] = std::make_unique<scene::Folder>();
    for (size_t number = 0; number < count; ++number) {
      begin(number, {});
      EXPECT(at(number).join());
    }
    std::vector<size_t> all;
    for (size_t number = 0; number < count; ++number) all.push_back(number);
    sew(all);
    // Each server has exchanged sprites with each of its neighbors already.
    for (size_t number = 0; number < count; ++number) {
      for (const Edge edge : {Edge::kLeft, Edge::kRight}) {
        EXPECT(at(number).throwOne(0, edge, ++first_, 0) == Outcome::kQueued);
      }
    }
    settle();
    for (const auto& server : servers_) begun_.push_back(server->pool.counts());
  }

  /** Counts of a server since the beginning. */
  uint64_t thrown(size_t number) { return at(number).pool.counts().thrown - begun_[number].thrown; }
  uint64_t in(size_t number) {
    return at(number).pool.counts().crossedIn - begun_[number].crossedIn;
  }
  uint64_t out(size_t number) {
    return at(number).pool.counts().crossedOut - begun_[number].crossedOut;
  }
  uint64_t doubted(size_t number) { return at(number).pool.counts().crossedInDoubt; }

  /**
   * How many sprites have crossed to the server since the beginning, as a process would find that
   * starts now.
   */
  uint64_t inOnDisk(size_t number) const {
    const scene::Folder copy;
    scene::OldFiles(folder(number)).putBack(copy);
    Pool pool(worldOptions(60000), nullptr, 0);
    StoredFeedsAndNotes stored;
    StateStore store(scene::storeOptions(copy), &pool, &stored);
    EXPECT(store.recover(&stored).ok());
    return pool.counts().crossedIn - begun_[number].crossedIn;
  }

  Server& at(size_t number) { return *servers_[number]; }
  Outbox& outbox(size_t from, size_t to) {
    return at(from).seams.peer(static_cast<PeerNumber>(to)).outbox;
  }
  const scene::Folder& folder(size_t number) const { return *folders_[number]; }
  uint64_t now() const { return now_; }
  void wait(uint64_t milliseconds) { now_ += milliseconds; }

  /** Makes these servers the ring, of which all servers know; the others are in no ring. */
  void sew(const std::vector<size_t>& names) {
    in_.clear();
    for (const size_t name : names) in_.emplace_back(name, 1);
    for (size_t number = 0; number < servers_.size(); ++number) look(number);
  }

  /** The messages that a server sends now. */
  std::vector<Message> frames(size_t from) {
    std::vector<Message> sent;
    at(from).crossings.rerouteStranded(now_);
    for (size_t to = 0; to < servers_.size(); ++to) {
      std::string frame;
      while (at(from).crossings.nextMessage(static_cast<PeerNumber>(to), now_, &frame)) {
        sent.push_back({from, to, std::exchange(frame, {})});
      }
    }
    at(from).endTurn();
    return sent;
  }

  /** Delivers a message. Returns its immediate answer, if that may go out. */
  std::vector<Message> deliver(const Message& message) {
    std::string answer;
    Server& to = at(message.to);
    to.crossings.receive(static_cast<PeerNumber>(message.from), message.bytes, now_, &answer);
    if (to.tryEndTurn() != Commit::kDone || answer.empty()) return {};
    return {{message.to, message.from, answer}};
  }

  /** Delivers the messages that a server sends now, and loses the answers. */
  void send(size_t from) {
    for (const Message& message : frames(from)) (void)deliver(message);
  }

  /** Delivers all due messages, and their answers. */
  void carry() {
    for (int rounds = 0; rounds < 20; ++rounds) {
      wait(500);
      for (size_t from = 0; from < servers_.size(); ++from) {
        for (const Message& message : frames(from)) {
          for (const Message& answer : deliver(message)) (void)deliver(answer);
        }
      }
    }
  }

  /** Throws sprites to the right from the client of a server. Each is accepted. */
  void throwFrom(size_t number, std::initializer_list<uint64_t> sprites) {
    for (const uint64_t sprite : sprites) {
      EXPECT(at(number).throwOne(0, Edge::kRight, sprite, 0) == Outcome::kQueued);
    }
  }

  /** Lets all clients poll until nothing comes any more. */
  void takeAll() {
    for (const auto& server : servers_) {
      for (int times = 0; times < 20; ++times) server->poll(0, &received);
    }
  }

  void settle() {
    carry();
    takeAll();
  }

  /** Returns how often a sprite was received. */
  size_t times(uint64_t sprite) const {
    const auto found = received.find(sprite);
    return found == received.end() ? 0 : found->second.size();
  }

  /** Returns whether each of these sprites is received once, when all is carried and taken. */
  bool arrive(std::initializer_list<uint64_t> sprites) {
    settle();
    return std::ranges::all_of(sprites, [this](uint64_t sprite) { return times(sprite) == 1; });
  }

  /** Ends a server, `inOrder` with a snapshot and no journal, and begins it again. */
  void restart(size_t number, bool inOrder = false) {
    if (inOrder) EXPECT(at(number).store->finish().ok());
    begin(number, at(number).takeClients());
  }

  /** A server's files and clients at one time. */
  struct Backup {
    scene::OldFiles files;
    std::vector<Client> clients;
  };
  Backup backUp(size_t number) { return {scene::OldFiles(folder(number)), at(number).clients}; }

  /** Kills a server and begins it again with what it had at an earlier time. */
  void cutPower(size_t number, const Backup& before) {
    Clients clients = at(number).takeClients();
    clients.clients = before.clients;
    servers_[number].reset();
    before.files.putBack(folder(number));
    begin(number, std::move(clients));
  }

  std::map<uint64_t, std::vector<Reception>> received;

 private:
  void begin(size_t number, Clients clients) {
    servers_[number].reset();
    servers_[number] = std::make_unique<Server>(
        ServerOptions{number, servers_.size(), ++life_, doubt_, now_, folders_[number].get()});
    at(number).setClients(std::move(clients));
    if (!in_.empty()) look(number);
  }

  void look(size_t number) {
    // Servers of the ring still hear a server in no ring: it asks, and is answered.
    at(number).seams.setRing(ringOf(in_, number, true), now_);
  }

  const uint64_t doubt_;
  std::vector<std::unique_ptr<scene::Folder>> folders_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::pair<size_t, uint32_t>> in_;
  std::vector<PoolCounts> begun_;
  uint64_t first_ = 1000;  // keys of the beginning's sprites
  uint64_t life_ = 0;
  uint64_t now_ = 1000;
};

// ---- Power cuts ---------------------------------------------------------------------------------

/** The event after a power cut. */
enum class Then : uint8_t { kNothing, kRestart, kRestartInOrder, kSnapshot };

/**
 * The thrower's server has forgotten the crossings. These sprites have arrived, and new numbers go
 * on after theirs, also if the server ends once more, before or after it was answered.
 */
void aPowerCutAtTheSender(Then then, bool answered) {
  Town town(2, {0, 1});
  town.throwFrom(0, {1, 2});
  town.settle();
  const Town::Backup before = town.backUp(0);
  town.throwFrom(0, {3, 4, 5});
  town.carry();
  town.throwFrom(0, {6});
  town.cutPower(0, before);
  EXPECT(town.thrown(0) == 2);
  town.throwFrom(0, {7, 8});
  const std::vector<Message> questions = town.frames(0);
  for (size_t i = 0; answered && i < questions.size(); ++i) {
    for (const Message& answer : town.deliver(questions[i])) (void)town.deliver(answer);
  }
  if (then == Then::kSnapshot) EXPECT(town.at(0).store->compactNow().empty());
  if (then == Then::kRestart || then == Then::kSnapshot) town.restart(0);
  if (then == Then::kRestartInOrder) town.restart(0, true);
  EXPECT(town.outbox(0, 1).size() == 2);
  EXPECT(town.arrive({1, 2, 3, 4, 5, 7, 8}));
  // A sprite that was accepted at the last moment, and had not crossed.
  EXPECT(town.times(6) == 0);
  EXPECT(town.outbox(0, 1).size() == 0);
  // The server's counts lack the three sprites that had crossed.
  EXPECT(town.out(0) == 4 && town.in(1) == 7);
  for (const size_t server : {0, 1}) town.at(server).check();
}

/** The server has forgotten only the acks: no sprite is missing, and none comes twice. */
void aPowerCutBeforeTheAcks(bool peerRestarts) {
  Town town(2, {0, 1});
  town.throwFrom(0, {1, 2, 3});
  const Town::Backup before = town.backUp(0);
  town.carry();
  EXPECT(town.outbox(0, 1).size() == 0);
  town.cutPower(0, before);
  if (peerRestarts) town.restart(1);
  EXPECT(town.outbox(0, 1).size() == 3);
  town.throwFrom(0, {4});
  EXPECT(town.arrive({1, 2, 3, 4}));
  EXPECT(town.out(0) == 4 && town.in(1) == 4);
}

/**
 * The receiver's server has forgotten sprites that it has acked: these are missing, and later ones
 * are taken.
 */
void aPowerCutAtTheReceiver(bool senderRestarts) {
  Town town(2, {0, 1});
  town.throwFrom(0, {1, 2});
  town.settle();
  const Town::Backup before = town.backUp(1);
  town.throwFrom(0, {3, 4});
  town.carry();
  EXPECT(town.outbox(0, 1).size() == 0);
  // The sender has not heard of this sprite's ack.
  town.throwFrom(0, {5});
  town.send(0);
  town.throwFrom(0, {6});
  town.cutPower(1, before);
  if (senderRestarts) town.restart(0);
  town.carry();
  town.throwFrom(0, {7});
  EXPECT(town.arrive({1, 2, 5, 6, 7}));
  EXPECT(town.times(3) == 0 && town.times(4) == 0);
  EXPECT(town.outbox(0, 1).size() == 0);
  EXPECT(town.out(0) == 7 && town.in(1) == 5);
  for (const size_t server : {0, 1}) town.at(server).check();
}

/** Both servers lose power, one with an older disk than the other. */
void aPowerCutAtBoth(bool senderFurther) {
  Town town(2, {0, 1});
  town.throwFrom(0, {1, 2});
  town.settle();
  const Town::Backup first = town.backUp(senderFurther ? 0 : 1);
  town.throwFrom(0, {3, 4});
  town.carry();
  const Town::Backup second = town.backUp(senderFurther ? 1 : 0);
  town.throwFrom(0, {5, 6});
  town.carry();
  // The receiver's client has not polled since `takeAll`.
  town.cutPower(0, senderFurther ? first : second);
  town.cutPower(1, senderFurther ? second : first);
  town.throwFrom(0, {7, 8});
  EXPECT(town.arrive({1, 2, 7, 8}));
  for (const uint64_t sprite : {3, 4}) EXPECT(town.times(sprite) == (senderFurther ? 1 : 0));
  for (const uint64_t sprite : {5, 6}) EXPECT(town.times(sprite) == 0);
  EXPECT(town.outbox(0, 1).size() == 0);
}

/** A server forgets that it was ever in a world: for the others it is new. */
void aPowerCutBeforeTheWorld() {
  Town town(2, {1});
  const scene::Folder empty;
  town.throwFrom(1, {1, 2});
  town.throwFrom(0, {3, 4});
  town.settle();
  town.cutPower(1, {scene::OldFiles(empty), {}});
  EXPECT(town.at(1).join());
  town.sew({0, 1});
  town.throwFrom(1, {5});
  town.throwFrom(0, {6});
  EXPECT(town.arrive({1, 2, 3, 4, 5, 6}));
}

/**
 * A server comes back with the state of another server of its name. For the others that is another
 * memory, of which they have taken nothing, whatever its numbers are.
 */
void anotherStateIsAnotherMemory() {
  Town town(2, {0, 1});
  town.throwFrom(0, {1, 2, 3});
  town.settle();
  Town elsewhere(2, {0});
  elsewhere.throwFrom(0, {11, 12});
  EXPECT(!elsewhere.frames(0).empty());
  EXPECT(elsewhere.outbox(0, 1).base() + 1 < town.outbox(0, 1).base());
  town.cutPower(0, elsewhere.backUp(0));
  EXPECT(town.outbox(0, 1).size() == 2);
  town.carry();
  town.throwFrom(0, {13});
  EXPECT(town.arrive({1, 2, 3, 11, 12, 13}));
}

// ---- Restarts -----------------------------------------------------------------------------------

/**
 * A sprite that may have been sent goes to no other server before its receiver, server 1, was
 * asked. That answers even out of the ring. `taker`: the server that has the sprite in the end.
 */
void aRestartedServerAsksFirst(bool inOrder, size_t taker) {
  Town town(3, {0});
  town.throwFrom(0, {1});
  if (taker == 1) town.send(0);
  town.sew({0, 2});
  // The server restarts twice: the second process follows one that has not asked either.
  for (int times = 0; times < 2; ++times) town.restart(0, inOrder);
  // First the server has to ask, and nothing lands elsewhere.
  const std::vector<Message> questions = town.frames(0);
  EXPECT(town.outbox(0, 1).size() == 1 && town.outbox(0, 2).size() == 0);
  bool asked = false;
  for (const Message& question : questions) {
    asked = asked || question.to == 1;
    for (const Message& answer : town.deliver(question)) (void)town.deliver(answer);
  }
  EXPECT(asked);
  // One answer is enough.
  (void)town.frames(0);
  EXPECT(town.outbox(0, 1).size() == 0);
  EXPECT(town.arrive({1}));
  EXPECT(town.received[1][0].server == taker);
  EXPECT(town.doubted(0) == 0);
}

/** If the receiver does not answer, the doubt ends as it would have without a restart. */
void theDoubtEndsAfterARestart() {
  Town town(3, {0}, kDoubt);
  town.throwFrom(0, {1});
  EXPECT(!town.frames(0).empty());
  town.sew({0, 2});
  town.wait(kDoubt / 2);
  town.restart(0);
  // The process can't know how long it was down: the whole doubt begins again.
  town.wait(kDoubt - 1);
  EXPECT(!town.frames(0).empty());
  EXPECT(town.outbox(0, 1).size() == 1 && town.doubted(0) == 0);
  town.wait(1);
  (void)town.frames(0);
  EXPECT(town.outbox(0, 1).size() == 0 && town.outbox(0, 2).size() == 1);
  EXPECT(town.doubted(0) == 1);
  // The sprite belongs to another server now, also after a further restart.
  town.restart(0);
  EXPECT(town.outbox(0, 1).size() == 0 && town.outbox(0, 2).size() == 1);
  EXPECT(town.doubted(0) == 1);
  town.sew({0, 1, 2});
  town.carry();
  town.throwFrom(0, {2});
  EXPECT(town.arrive({1, 2}));
  EXPECT(town.received[1][0].server == 2 && town.received[2][0].server == 1);
}

/**
 * A sprite that was never sent goes to another server at once. A sprite that may have been sent
 * stays. A restarted server finds both so, too.
 */
void onlyWhatWasSentIsInDoubt(bool inOrder) {
  Town town(3, {0});
  town.throwFrom(0, {1});
  EXPECT(!town.frames(0).empty());
  town.throwFrom(0, {2, 3});
  town.sew({0, 2});
  (void)town.frames(0);
  EXPECT(town.outbox(0, 1).size() == 1 && town.outbox(0, 2).size() == 2);
  const std::string state = scene::stateOf(town.at(0).pool);
  town.restart(0, inOrder);
  EXPECT(town.at(0).stateAtStart == state);
  EXPECT(town.arrive({1, 2, 3}));
  for (const uint64_t sprite : {1, 2, 3}) EXPECT(town.received[sprite][0].server == 2);
}

/**
 * A sprite that goes on around the ring, since no client is here, keeps its row, its edges and its
 * hops.
 */
void whatPassesThroughIsKept(bool inOrder) {
  Town town(3, {1});
  Server& empty = town.at(1);
  empty.leave(0);
  empty.pool.tick(town.now());
  empty.endTurn();
  uint64_t number = empty.seams.peer(0).lastTaken;
  for (const Edge over : {Edge::kLeft, Edge::kRight}) {
    for (const uint8_t round : {0, 1}) {
      const CrosserHead head = {.row = static_cast<uint32_t>(3 + number % 5),
                                .from = Edge::kUp,
                                .exitEdge = over,
                                .round = round,
                                .hops = 2};
      EXPECT(empty.pool.crossIn(0, ++number, head, "{\"u\":1}"));
    }
  }
  empty.endTurn();
  EXPECT(town.outbox(1, 0).size() == 2 && town.outbox(1, 2).size() == 2);
  uint32_t rounds = 0;
  town.outbox(1, 2).each([&](const Crosser& one) {
    EXPECT(one.row >= 3 && one.hops == 1 && one.sprite->from == Edge::kUp);
    rounds += one.round;
  });
  EXPECT(rounds == 1);
  const std::string state = scene::stateOf(empty.pool);
  town.restart(1, inOrder);
  EXPECT(town.at(1).stateAtStart == state);
}

/** An earlier process stays refused, whichever server is restarted. */
void anOlderProcessStaysRefused(bool inOrder) {
  Town town(2, {0, 1});
  town.throwFrom(0, {1});
  town.carry();
  const uint64_t old = town.at(0).life;
  const uint64_t memory = town.at(0).seams.self().memory;
  town.restart(0);
  town.throwFrom(0, {2});
  town.carry();
  town.restart(1, inOrder);
  const std::string frame = frameText({.life = old,
                                       .peerLife = town.at(1).life,
                                       .serial = 100,
                                       .number = town.outbox(0, 1).base(),
                                       .base = town.outbox(0, 1).base(),
                                       .memory = memory},
                                      {kEmptySprite});
  std::string answer;
  EXPECT(town.at(1).crossings.receive(0, frame, town.now(), &answer) == FrameRefusal::kOlderLife);
  EXPECT(town.in(1) == 2);
  town.takeAll();
  EXPECT(town.times(1) == 1 && town.times(2) == 1);
}

/** Whatever number an ack has: a server that goes on after it can be restarted. */
void anAckedNumberPreventsNoRestart(bool inOrder) {
  Town town(2, {0});
  town.restart(0);
  std::string none;
  const std::string ack = frameText({.kind = FrameKind::kAck,
                                     .life = town.at(1).life,
                                     .peerLife = town.at(0).life,
                                     .number = kMaxFrameNumber - 1});
  (void)town.at(0).crossings.receive(1, ack, town.now(), &none);
  town.at(0).endTurn();
  town.restart(0, inOrder);
  town.throwFrom(0, {1});
  EXPECT(town.arrive({1}));
}

/** Nor does a sprite's number prevent a restart: a frame beyond the last number is malformed. */
void aSpritesNumberPreventsNoRestart(bool inOrder) {
  Town town(2, {0});
  constexpr uint64_t kLast = kMaxFrameNumber - 1;
  std::string none;
  const std::string frame = frameText({.life = town.at(1).life,
                                       .peerLife = town.at(0).life,
                                       .serial = 1000,
                                       .number = kLast,
                                       .base = kLast,
                                       .memory = town.at(1).seams.self().memory},
                                      {kEmptySprite, kEmptySprite});
  EXPECT(town.at(0).crossings.receive(1, frame, town.now(), &none) == FrameRefusal::kMalformed);
  town.at(0).endTurn();
  town.restart(0, inOrder);
  town.throwFrom(1, {1});
  EXPECT(town.arrive({1}));
}

/** Whichever server is restarted, and however: sprites that the other one has taken stay taken. */
void whatWasTakenStaysTaken(bool inOrder) {
  Town town(2, {0, 1});
  town.throwFrom(0, {1, 2, 3});
  town.send(0);
  // No answer arrived.
  town.restart(1, inOrder);
  town.throwFrom(0, {4});
  town.restart(0, inOrder);
  town.restart(1, inOrder);
  town.settle();
  town.carry();
  town.throwFrom(0, {5});
  EXPECT(town.arrive({1, 2, 3, 4, 5}));
  EXPECT(town.out(0) == 5 && town.in(1) == 5);
}

// ---- A full disk --------------------------------------------------------------------------------

/**
 * After a turn of which only `cut` bytes could be written, nothing is sent, taken, acked, handed
 * elsewhere or delivered. Then the disk accepts it, or the process ends.
 */
void nothingIsSaidThatIsNotWritten(uint64_t cut, bool ends) {
  Town town(3, {1});
  Server& stuck = town.at(1);
  const uint64_t seen = stuck.clients[0].seen;
  // The stuck server's client polls. A sprite for 2 was sent; one for 0 was not sent yet.
  town.throwFrom(1, {10});
  EXPECT(!town.frames(1).empty());
  EXPECT(stuck.throwOne(0, Edge::kLeft, 11, 0) == Outcome::kQueued);
  const uint64_t written = stuck.store->counts().journalBytes;
  const auto onDisk = [&] {
    scene::limitFiles(RLIM_INFINITY);
    const uint64_t found = town.inOnDisk(1);
    scene::limitFiles(written + cut);
    return found;
  };

  scene::limitFiles(written + cut);
  town.throwFrom(0, {1});
  for (const Message& frame : town.frames(0)) {
    if (frame.to == 1) EXPECT(town.deliver(frame).empty());
  }
  EXPECT(stuck.store->blocked() == EFBIG && !stuck.pool.promising());
  EXPECT(town.in(1) == 1 && stuck.clients[0].seen == seen);
  EXPECT(onDisk() == 0);
  // Two servers have the third out of the ring: sprites that it never sent are still not theirs.
  town.sew({1, 2});
  for (int looks = 0; looks < 10; ++looks) {
    town.wait(500);
    EXPECT(town.frames(1).empty());
    stuck.store->tick(town.now());
    EXPECT(stuck.tryEndTurn() == Commit::kDone);
    for (const size_t other : {0, 2}) {
      for (const Message& frame : town.frames(other)) {
        if (frame.to == 1) EXPECT(town.deliver(frame).empty());
      }
    }
    EXPECT(stuck.throwWithinTurn(0, Edge::kRight, 12, 0) == Outcome::kStateUnwritable);
    EXPECT(stuck.throwWithinTurn(0, Edge::kUp, 12, 0) == Outcome::kStateUnwritable);
  }
  EXPECT(town.outbox(0, 1).size() == 1 && stuck.clients[0].seen == seen);
  EXPECT(town.outbox(1, 0).size() == 1 && town.outbox(1, 2).size() == 1);
  EXPECT(town.in(1) == 1 && town.out(1) == 0);
  EXPECT(onDisk() == 0);

  scene::limitFiles(RLIM_INFINITY);
  if (ends) {
    town.restart(1);
    EXPECT(town.in(1) == 0);
  } else {
    stuck.store->tick(town.now());
    stuck.endTurn();
    EXPECT(stuck.store->blocked() == 0 && stuck.clients[0].seen == seen + 1);
  }
  town.sew({0, 1, 2});
  EXPECT(town.arrive({1, 10, 11}));
  EXPECT(town.received[1][0].server == 1 && town.received[10][0].server == 2);
  for (const size_t server : {0, 1, 2}) {
    town.at(server).check();
    EXPECT(town.at(server).seams.waitingSprites() == 0);
  }
}

/** A server that was forgotten for another one stays forgotten after a restart. */
void aForgottenServerStaysForgotten(bool inOrder) {
  Town town(3, {0});
  town.sew({0, 2});
  town.settle();
  EXPECT(town.at(0).pool.replacePeer(1, "y", true));
  town.at(0).endTurn();
  town.restart(0, inOrder);
  EXPECT(town.at(0).seams.findPeer("y") == 1 && town.at(0).seams.findPeer("1") == 3);
  town.throwFrom(0, {1});
  EXPECT(town.arrive({1}));
}

/** An ack that could not be written does not count after a restart. */
void anAckThatIsNotWritten() {
  Town town(2, {0, 1});
  town.throwFrom(0, {1});
  std::vector<Message> acks;
  for (const Message& frame : town.frames(0)) acks = town.deliver(frame);
  town.wait(kAckDelay);
  // The ack came at once, or has waited.
  if (acks.empty()) acks = town.frames(1);
  EXPECT(acks.size() == 1);
  scene::limitFiles(town.at(0).store->counts().journalBytes);
  (void)town.deliver(acks[0]);
  EXPECT(town.at(0).store->blocked() == EFBIG);
  scene::limitFiles(RLIM_INFINITY);
  town.restart(0);
  EXPECT(town.outbox(0, 1).size() == 1);
  EXPECT(town.arrive({1}));
  EXPECT(town.out(0) == 1 && town.in(1) == 1);
}

}  // namespace

int main() {
  signal(SIGXFSZ, SIG_IGN);
  aPowerCutBeforeTheWorld();
  for (const bool one : {false, true}) {
    for (const Then then :
         {Then::kNothing, Then::kRestart, Then::kRestartInOrder, Then::kSnapshot}) {
      aPowerCutAtTheSender(then, one);
    }
    aPowerCutBeforeTheAcks(one);
    aPowerCutAtTheReceiver(one);
    aPowerCutAtBoth(one);
    whatWasTakenStaysTaken(one);
    anAckedNumberPreventsNoRestart(one);
    aSpritesNumberPreventsNoRestart(one);
    onlyWhatWasSentIsInDoubt(one);
    aForgottenServerStaysForgotten(one);
    whatPassesThroughIsKept(one);
    anOlderProcessStaysRefused(one);
    for (const size_t taker : {2, 1}) aRestartedServerAsksFirst(one, taker);
    for (const uint64_t cut : {0, 1, 31, 32, 40, 87}) nothingIsSaidThatIsNotWritten(cut, one);
  }
  anotherStateIsAnotherMemory();
  theDoubtEndsAfterARestart();
  anAckThatIsNotWritten();
  printf("world_state_test: power cuts, restarts, a disk that takes nothing\n");
  return 0;
}
