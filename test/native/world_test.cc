// The seams of a world, case by case: where a row ends, which sprites wait for which server, what
// is refused. That no sprite is missing or comes twice, whatever clients, servers, disks and the
// broker do, is a law of the simulation (simulated_world.h).
//
//   world_test [seed]
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "expect.h"
#include "world_scene.h"

namespace {

using namespace server;
using namespace server::test;

/** Two servers with one client each, in one ring; `memory`: see worldOptions. */
struct ServerPair {
  explicit ServerPair(uint64_t memory = 60000)
      : from({.number = 0, .count = 2, .life = 5, .memory = memory}),
        to({.number = 1, .count = 2, .life = 9, .memory = memory}) {
    for (Server* one : {&from, &to}) EXPECT(one->join());
    setRing(&from);
    setRing(&to);
  }

  /** Makes the ring known to a server. */
  void setRing(Server* one) const {
    one->seams.setRing(ringOf({{0, 1}, {1, 1}}, one->number, true), now);
  }

  Server& at(size_t server) { return server == 0 ? from : to; }

  /** Throws a sprite to `server` from the other one. The throw must be accepted. */
  void throwTo(size_t server) {
    EXPECT(at(1 - server).throwOne(0, Edge::kRight, ++sprite, 0) == Outcome::kQueued);
  }

  /** Delivers all due messages. The clients of both servers take their sprites. */
  void deliverDue() {
    messages += deliverMessages(&from, &to, now) + deliverMessages(&to, &from, now);
    for (int twice = 0; twice < 2; ++twice) {
      from.poll(0, &received);
      to.poll(0, &received);
    }
  }

  /** Lets time pass. */
  void runFor(uint64_t milliseconds) {
    for (; milliseconds > 0; --milliseconds, ++now) deliverDue();
  }

  Server from, to;
  std::map<uint64_t, std::vector<Reception>> received;
  uint64_t now = 0;
  uint64_t sprite = 0;
  uint64_t messages = 0;
};

// ---- Where a row ends -------------------------------------------------------------------------

/** After any history the right links close a row: the test follows all of them. */
void checkEnds(uint64_t seed, uint32_t capacity) {
  std::mt19937_64 random(seed);
  Torus torus(capacity);
  std::vector<uint32_t> in, out;
  for (uint32_t node = 0; node < capacity; ++node) out.push_back(node);
  for (int step = 0; step < 400; ++step) {
    const bool grows = random() % capacity > in.size() || (step / 60) % 2 == 0;
    std::vector<uint32_t>& from = grows && !out.empty() ? out : in;
    if (from.empty()) continue;
    std::swap(from[random() % from.size()], from.back());
    const uint32_t node = from.back();
    from.pop_back();
    &from == &out ? torus.join(node) : torus.leave(node);
    (&from == &out ? in : out).push_back(node);
    std::map<uint32_t, uint32_t> members;
    for (const uint32_t one : in) {
      const uint32_t row = torus.cycleOf(one);
      ++members[row];
      EXPECT(row < torus.cycles());
      EXPECT(torus.closesRow(one, Edge::kRight) == (one == torus.lastOfCycle(row)));
      EXPECT(torus.closesRow(one, Edge::kLeft) == (one == torus.firstOfCycle(row)));
      EXPECT(!torus.closesRow(one, Edge::kUp) && !torus.closesRow(one, Edge::kDown));
    }
    EXPECT(members.size() == torus.cycles());
    for (const auto& [row, count] : members) {
      uint32_t node = torus.firstOfCycle(row);
      for (uint32_t i = 1; i < count; ++i) {
        EXPECT(!torus.closesRow(node, Edge::kRight));
        node = torus.neighbor(node, Edge::kRight);
      }
      EXPECT(node == torus.lastOfCycle(row));
    }
  }
}

/** A row whose receivers do not ack answers like a full mailbox. */
void checkBusy() {
  Server from({0, 2, 1});
  Server to({1, 2, 1});
  for (Server* one : {&from, &to}) {
    for (int n = 0; n < 4; ++n) EXPECT(one->join());
    one->seams.setRing(ringOf({{0, 2}, {1, 2}}, one->number, true), 0);
  }
  const uint32_t end = from.pool.torus().lastOfCycle(0);
  size_t guest = 0;
  while (from.clients[guest].id.record() != end) ++guest;
  uint64_t taken = 0;
  uint64_t now = 0;
  for (int i = 0; i < 50; ++i, now += 50) {
    const Outcome outcome = from.throwOne(guest, Edge::kRight, i + 1, 0);
    taken += outcome == Outcome::kQueued;
    EXPECT(outcome == Outcome::kQueued || outcome == Outcome::kNeighborBusy);
    deliverMessages(&from, &to, now);
  }
  EXPECT(taken >= 4 && taken <= 8);
  EXPECT(from.throwOne(guest, Edge::kRight, 100, 0) == Outcome::kNeighborBusy);
  // The other edge, and the same edge of other rows, are as before.
  const uint32_t start = from.pool.torus().firstOfCycle(0);
  size_t other = 0;
  while (from.clients[other].id.record() != start) ++other;
  EXPECT(from.throwOne(other, Edge::kLeft, 101, 0) == Outcome::kQueued);
  std::map<uint64_t, std::vector<Reception>> received;
  for (int round = 0; round < 4; ++round) {
    for (size_t at = 0; at < to.clients.size(); ++at) to.poll(at, &received);
    now += 300;
    deliverMessages(&from, &to, now);
  }
  EXPECT(from.throwOne(guest, Edge::kRight, 102, 0) == Outcome::kQueued);
  // The outbox of a peer that does not answer fills up.
  int queued = 0;
  const auto thrown = [&] { return from.throwOne(guest, Edge::kRight, 200 + queued, 300); };
  while (queued < 5000 && thrown() == Outcome::kQueued) ++queued;
  EXPECT(queued > 50 && queued < 5000);
  from.check();
}

/** Two servers whose memory is full of sprites for the other still take these from each other. */
void checkFullOfCrossers() {
  constexpr uint64_t kMemory = 3000;
  ServerPair two(kMemory);
  uint64_t sprite = 0;
  uint64_t taken = 0;
  for (const size_t i : {0, 1}) {
    while (two.at(i).throwOne(0, Edge::kRight, ++sprite, 100) == Outcome::kQueued) ++taken;
    EXPECT(two.at(i).throwOne(0, Edge::kUp, ++sprite, 100) == Outcome::kMailboxesFull);
  }
  EXPECT(taken > 10);
  for (; two.now < 20000; two.now += 100) {
    two.deliverDue();
    for (const size_t i : {0, 1}) EXPECT(two.at(i).pool.counts().mailboxBytes <= 2 * kMemory);
  }
  EXPECT(two.received.size() == taken);
}

/**
 * A far peer, over a line that carries `width` bytes a millisecond (0: any number). Few bytes are
 * sent twice, and the queue on the line is soon bounded by its time.
 */
void checkFar(uint64_t delay, uint64_t width, uint64_t most) {
  ServerPair two(10 << 20);
  Server& from = two.from;
  Server& to = two.to;
  std::deque<std::pair<uint64_t, std::string>> there, back;
  uint64_t free = 0;
  uint64_t sent = 0;
  uint64_t taken = 0;
  uint64_t longest = 0;
  for (uint64_t now = 0; now < 60000; now += 10) {
    if (now % 20 == 0 && now < 30000) {
      const Outcome outcome = from.throwOne(0, Edge::kRight, now + 1, 200);
      EXPECT(outcome == Outcome::kQueued || outcome == Outcome::kNeighborBusy);
      taken += outcome == Outcome::kQueued ? 1 : 0;
    }
    std::string frame;
    while (from.crossings.nextMessage(1, now, &frame)) {
      free = std::max(free, now) + (width > 0 ? frame.size() / width : 0);
      if (now > 5000) longest = std::max(longest, free - now);
      sent += frame.size();
      there.emplace_back(free + delay, std::exchange(frame, {}));
    }
    for (; !there.empty() && there.front().first <= now; there.pop_front()) {
      std::string answer;
      to.crossings.receive(0, there.front().second, now, &answer);
      back.emplace_back(now + delay, answer);
    }
    std::string late;
    if (to.crossings.nextMessage(0, now, &late)) back.emplace_back(now + delay, late);
    for (; !back.empty() && back.front().first <= now; back.pop_front()) {
      deliverAnswer(&from, 1, back.front().second, now);
    }
    to.endTurn();
    to.poll(0, &two.received);
  }
  EXPECT(two.received.size() == taken && from.seams.waitingSprites() == 0);
  const uint64_t once = taken * 300;
  fprintf(stderr,
          "world_test: %" PRIu64 " ms away: %" PRIu64 " bytes for %" PRIu64 ", %" PRIu64
          " ms on the line at most\n",
          delay, sent, once, longest);
  EXPECT(sent < once + once / 5);
  EXPECT(longest <= most);
}

/**
 * Two servers that have met: each knows the other's life, and somewhat more than one sprite may be
 * in flight.
 */
struct AcquaintedPair : ServerPair {
  AcquaintedPair() {
    for (now = 1; now < 3000; ++now) {
      if (now % 20 == 0 && now < 2000) throwTo(now / 20 % 2);
      deliverDue();
    }
    EXPECT(from.seams.waitingSprites() + to.seams.waitingSprites() == 0);
    messages = 0;
  }
};

/** Acks wait for each other, or ride on sprites. No sender waits for them. */
void checkAcks() {
  AcquaintedPair met;
  // One way: a sprite is sent at once, its ack alone after its wait.
  const uint64_t begun = met.now;
  met.throwTo(1);
  EXPECT(met.at(0).crossings.dueAt() == 0);
  met.deliverDue();
  met.throwTo(1);
  met.deliverDue();
  const uint64_t sent = met.messages;
  // The first frame is timed.
  EXPECT(sent == 3 && met.sprite == met.received.size());
  EXPECT(met.at(0).seams.waitingSprites() >= 1 && met.at(1).crossings.dueAt() == begun + kAckDelay);
  met.runFor(kAckDelay);
  EXPECT(met.messages == sent && met.at(0).seams.waitingSprites() >= 1);
  met.deliverDue();
  EXPECT(met.messages == sent + 1 && met.at(0).seams.waitingSprites() == 0);
  EXPECT(met.at(0).crossings.dueAt() == kNeverDue && met.at(1).crossings.dueAt() == kNeverDue);
  // Both ways: the ack rides on a sprite.
  met.messages = 0;
  const uint64_t thrown = met.sprite;
  for (const uint64_t end = met.now + 4000; met.now < end; ++met.now) {
    if (met.now % 40 == 0) met.throwTo(met.now / 40 % 2);
    met.deliverDue();
  }
  EXPECT(met.sprite - thrown == 100 && met.messages <= 115);
  // Many at once, one way: at half of the window no ack waits.
  for (int i = 0; i < 1000; ++i) {
    met.throwTo(1);
    met.deliverDue();
    EXPECT(met.at(0).seams.waitingBytes() < kFirstWindow);
  }
  // A server that leaves the ring sends its ack at once.
  met.runFor(5 * kAckDelay);
  EXPECT(met.at(0).seams.waitingSprites() == 0);
  met.throwTo(1);
  met.deliverDue();
  EXPECT(met.at(0).seams.waitingSprites() == 1 && met.at(1).crossings.dueAt() > met.now);
  met.at(1).seams.setRing({}, met.now);
  EXPECT(met.at(1).crossings.dueAt() == 0);
  met.deliverDue();
  EXPECT(met.at(0).seams.waitingSprites() == 0 && met.sprite == met.received.size());
  for (const auto& [sprite, where] : met.received) EXPECT(where.size() == 1);
}

/**
 * A busy row's end is reported at once. A sender's next process gets no ack of an earlier frame.
 */
void checkHaste() {
  AcquaintedPair met;
  met.throwTo(1);
  met.deliverDue();
  std::string answer;
  int sprites = 0;
  for (; answer.empty() && sprites < 10; ++sprites) {
    met.throwTo(1);
    std::string message;
    EXPECT(met.at(0).crossings.nextMessage(1, met.now, &message));
    EXPECT(met.at(1).crossings.receive(0, message, met.now, &answer) == FrameRefusal::kNone);
  }
  EXPECT(sprites <= 5);
  Frames told;
  EXPECT(readMessage(answer, &told) == FrameRefusal::kNone && told.at[0].head.count == 1);
  EXPECT(readEnd(&told.at[0].body).busy);

  AcquaintedPair again;
  again.throwTo(1);
  again.deliverDue();
  again.throwTo(1);
  again.deliverDue();
  EXPECT(again.at(1).crossings.dueAt() == again.now + kAckDelay);
  const std::string question = frameText(
      {.answerWanted = true, .life = 50, .peerLife = 9, .serial = 1, .number = 1, .memory = 77});
  EXPECT(again.at(1).crossings.receive(0, question, again.now, &answer) == FrameRefusal::kNone);
  EXPECT(again.at(1).crossings.dueAt() == kNeverDue);
}

/**
 * Sprites are not taken if they ride on an ack that makes no sense, or on a frame that is no ack.
 */
void checkRiders() {
  ServerPair two;
  Server& to = two.to;
  const std::string sprites =
      frameText({.life = 5, .peerLife = 9, .serial = 1, .number = 1, .base = 1}, {kEmptySprite});
  FrameHead head = {.kind = FrameKind::kAck, .life = 5, .peerLife = 9, .memory = 3};
  const std::string ack = frameText(head);
  head.refusal = FrameRefusal::kNotInRing;
  std::string answer;
  using Parts = std::vector<std::string>;
  for (const Parts& parts :
       {Parts{sprites, ack}, Parts{ack, ack}, Parts{sprites, sprites},
        Parts{frameText(head), sprites}, Parts{ack, sprites, ack}, Parts{ack, ack, sprites}}) {
    std::string bad;
    for (const std::string& part : parts) bad += part;
    EXPECT(to.crossings.receive(0, bad, 0, &answer) == FrameRefusal::kMalformed);
  }
  const std::string good = ack + sprites;
  for (size_t cut = 1; cut < good.size(); ++cut) {
    if (cut == kFrameHead) continue;
    EXPECT(to.crossings.receive(0, good.substr(0, cut), 0, &answer) == FrameRefusal::kMalformed);
  }
  std::string versions = good;
  versions[kFrameHead + 4] = kFrameVersion + 1;
  EXPECT(to.crossings.receive(0, versions, 0, &answer) == FrameRefusal::kMalformed);
  EXPECT(answer.empty() && to.pool.counts().crossedIn == 0);
  EXPECT(to.crossings.receive(0, good, 0, &answer) == FrameRefusal::kNone);
  EXPECT(to.pool.counts().crossedIn == 1);

  AcquaintedPair met;
  const uint64_t taken = met.at(1).seams.peer(0).lastTaken;
  const std::string nonsense =
      frameText({.kind = FrameKind::kAck, .life = 5, .peerLife = 9, .number = 1 << 20}) +
      frameText(
          {.life = 5, .peerLife = 9, .serial = 1 << 20, .number = taken + 1, .base = taken + 1},
          {kEmptySprite});
  EXPECT(met.at(1).crossings.receive(0, nonsense, met.now, &answer) == FrameRefusal::kMalformed);
  EXPECT(met.at(1).seams.peer(0).lastTaken == taken);
}

/**
 * A server that has been out of the ring for longer than the doubt no longer owns sprites that were
 * sent to it.
 */
void checkDoubt() {
  std::vector<std::unique_ptr<Server>> servers;
  for (size_t i = 0; i < 3; ++i) {
    servers.push_back(
        std::make_unique<Server>(ServerOptions{.number = i, .count = 3, .life = 1, .doubt = 1000}));
    servers[i]->join();
  }
  Server& from = *servers[0];
  from.seams.setRing(ringOf({{0, 1}, {1, 1}, {2, 1}}, 0, true), 0);
  servers[1]->seams.setRing(ringOf({{0, 1}, {1, 1}, {2, 1}}, 1, true), 0);
  EXPECT(from.throwOne(0, Edge::kRight, 1, 0) == Outcome::kQueued);
  std::string hello, ack, none, first;
  // A frame that asks for the peer's life has no sprites, and is never in doubt.
  EXPECT(from.crossings.nextMessage(1, 0, &hello));
  EXPECT(servers[1]->crossings.receive(0, hello, 0, &ack) == FrameRefusal::kOtherLife);
  EXPECT(from.crossings.receive(1, ack, 0, &none) == FrameRefusal::kOtherLife && none.empty());
  EXPECT(from.crossings.nextMessage(1, 0, &first));
  EXPECT(from.throwOne(0, Edge::kRight, 2, 0) == Outcome::kQueued);
  // The sprite that was never sent goes the other way at once; the sent one waits for an answer.
  from.seams.setRing(ringOf({{0, 1}, {2, 1}}, 0, true), 100);
  from.crossings.rerouteStranded(100);
  EXPECT(from.seams.peer(1).outbox.size() == 1 && from.seams.peer(2).outbox.size() == 1);
  std::string question;
  EXPECT(from.crossings.nextMessage(1, 100, &question));
  std::string more;
  for (uint64_t now = 101; now < 1100; ++now) {
    for (const PeerNumber peer : {1, 2}) (void)from.crossings.nextMessage(peer, now, &more);
  }
  EXPECT(from.crossings.dueAt() == 1100);
  from.crossings.rerouteStranded(1099);
  EXPECT(from.seams.peer(1).outbox.size() == 1);
  from.crossings.rerouteStranded(1100);
  EXPECT(from.seams.peer(1).outbox.size() == 0 && from.seams.peer(2).outbox.size() == 2);
  EXPECT(from.pool.counts().crossedInDoubt == 1);
  // With no other server the sprites land here.
  from.seams.setRing({}, 1200);
  from.crossings.rerouteStranded(1200);
  EXPECT(from.seams.waitingSprites() == 0 && from.pool.counts().waiting == 2);
  from.check();
}

/** A frame sent before a fence is void, however late it arrives. */
void checkFence() {
  ServerPair two;
  Server& from = two.from;
  Server& to = two.to;
  std::string hello, ack, late;
  EXPECT(from.throwOne(0, Edge::kRight, 1, 0) == Outcome::kQueued);
  // The first frame does not know its receiver yet.
  EXPECT(from.crossings.nextMessage(1, 0, &hello));
  EXPECT(to.crossings.receive(0, hello, 0, &ack) == FrameRefusal::kOtherLife);
  std::string none;
  EXPECT(from.crossings.receive(1, ack, 0, &none) == FrameRefusal::kOtherLife && none.empty());
  EXPECT(from.crossings.nextMessage(1, 0, &late));
  from.seams.setRing({}, 10);
  std::string question, answer;
  EXPECT(from.crossings.nextMessage(1, 10, &question));
  EXPECT(to.crossings.receive(0, question, 10, &answer) == FrameRefusal::kNone);
  EXPECT(from.seams.waitingSprites() == 1);
  EXPECT(from.crossings.receive(1, answer, 10, &none) == FrameRefusal::kNone);
  from.crossings.rerouteStranded(10);
  EXPECT(from.seams.waitingSprites() == 0 && from.pool.counts().waiting == 1);
  std::string last;
  to.crossings.receive(0, late, 10, &last);
  EXPECT(to.pool.counts().crossedIn == 0);
}

/**
 * A server out of the ring is forgotten for another one, which gets its number, if nothing waits
 * for the server, and nothing can come from it that was taken before. If it comes back, each sprite
 * arrives once.
 */
void checkForgetting(bool receiverForgets) {
  ServerPair two;
  Server& from = two.from;
  Server& to = two.to;
  const auto carryAll = [&two] {
    for (int rounds = 0; rounds < 10; ++rounds) {
      two.now += kAckDelay;
      deliverMessages(&two.from, &two.to, two.now);
      deliverMessages(&two.to, &two.from, two.now);
    }
  };
  for (const uint64_t sprite : {1, 2, 3}) {
    EXPECT(from.throwOne(0, Edge::kRight, sprite, 0) == Outcome::kQueued);
  }
  EXPECT(!from.pool.replacePeer(1, "y", true));
  carryAll();
  EXPECT(to.pool.counts().crossedIn == 3 && from.seams.waitingSprites() == 0);
  EXPECT(!from.pool.replacePeer(1, "y", true) && !to.pool.replacePeer(0, "y", true));
  for (Server* one : {&from, &to}) one->seams.setRing({}, ++two.now);
  EXPECT(!to.pool.replacePeer(0, "y", false) && !to.pool.replacePeer(0, "1", true));
  const auto replace = [](Server& one, PeerNumber number, const char* name, bool emptied) {
    EXPECT(one.pool.replacePeer(number, name, emptied));
    one.seams.peer(number).epoch = kMaxFrameNumber;
  };
  if (receiverForgets) {
    replace(to, 0, "y", true);
    EXPECT(to.seams.findPeer("0") == kNoPeer && to.seams.findPeer("y") == 0);
    replace(to, 0, "0", false);
  }
  replace(from, 1, "y", false);
  replace(from, 1, "1", false);
  for (Server* one : {&from, &to}) two.setRing(one);
  EXPECT(from.throwOne(0, Edge::kRight, 4, 0) == Outcome::kQueued);
  std::string question;
  EXPECT(from.crossings.nextMessage(1, two.now, &question));
  // A late ack of the first sprite alone.
  const FrameHead late = {.kind = FrameKind::kAck,
                          .life = 9,
                          .peerLife = 5,
                          .serial = 1,
                          .number = 1,
                          .memory = to.seams.self().memory};
  deliverAnswer(&from, 1, frameText(late), two.now);
  carryAll();
  EXPECT(to.pool.counts().crossedIn == 4 && from.seams.waitingSprites() == 0);
  from.check();
  to.check();
}

/** Frames of another version, of an older life, and from outside the ring are refused as such. */
void checkRefusals() {
  ServerPair two;
  Server& from = two.from;
  Server& to = two.to;
  to.seams.setRing({}, 0);
  EXPECT(from.throwOne(0, Edge::kRight, 1, 0) == Outcome::kQueued);
  const auto frame = [&](uint64_t life, uint64_t peerLife = 9) {
    return frameText({.life = life, .peerLife = peerLife, .serial = 1, .number = 1, .base = 1},
                     {kEmptySprite});
  };
  std::string answer;
  EXPECT(to.crossings.receive(0, frame(5), 0, &answer) == FrameRefusal::kNotInRing);
  Ring ring = ringOf({{0, 1}, {1, 1}}, 1, true);
  ring.epochs = {{0, 5}};
  to.seams.setRing(ring, 0);
  // The store does not know such a process, which is not told what was taken.
  answer.clear();
  EXPECT(to.crossings.receive(0, frame(kMaxFrameNumber - 1), 0, &answer) ==
         FrameRefusal::kNotInRing);
  EXPECT(answer.empty());
  EXPECT(to.crossings.receive(0, frame(5, 8), 0, &answer) == FrameRefusal::kOtherLife);
  EXPECT(to.crossings.receive(0, frame(4), 0, &answer) == FrameRefusal::kOlderLife);
  std::string other = frame(5);
  other[4] = kFrameVersion + 1;
  answer.clear();
  EXPECT(to.crossings.receive(0, other, 0, &answer) == FrameRefusal::kVersion);
  EXPECT(to.pool.counts().crossedIn == 0 && to.crossings.refused()[1] == 1);
  // The sender gets an answer in our version, and does not answer that.
  std::string none;
  Frames frames;
  EXPECT(readMessage(answer, &frames) == FrameRefusal::kNone && frames.count == 1);
  const FrameHead& head = frames.at[0].head;
  EXPECT(head.kind == FrameKind::kAck && head.refusal == FrameRefusal::kVersion);
  answer[4] = kFrameVersion + 1;
  EXPECT(from.crossings.receive(1, answer, 0, &none) == FrameRefusal::kVersion && none.empty());
  EXPECT(to.crossings.receive(0, frame(5), 0, &answer) == FrameRefusal::kNone);
  EXPECT(to.crossings.receive(0, frame(5), 0, &answer) == FrameRefusal::kNone);
  EXPECT(to.pool.counts().crossedIn == 1);
}

/**
 * Numbers that no server can have reached: the next number still fits into frames, and frames of a
 * server that goes on as before are accepted again.
 */
void checkLeaps() {
  constexpr uint64_t kLast = kMaxFrameNumber - 1;
  ServerPair two;
  Server& from = two.from;
  Server& to = two.to;
  for (Server* one : {&from, &to}) {
    Ring ring = ringOf({{0, 1}, {1, 1}}, one->number, true);
    ring.epochs = {{static_cast<PeerNumber>(1 - one->number), 9}};
    one->seams.setRing(ring, 0);
  }
  std::string none;
  const auto ack = [&](uint64_t life, uint64_t number) {
    const FrameHead head = {.kind = FrameKind::kAck, .life = life, .peerLife = 5, .number = number};
    return from.crossings.receive(1, frameText(head), 0, &none);
  };
  EXPECT(from.throwOne(0, Edge::kRight, 1, 0) == Outcome::kQueued);
  Outbox& outbox = from.seams.peer(1).outbox;
  EXPECT(ack(kLast, 0) == FrameRefusal::kNotInRing && outbox.peerLife() == 0);
  EXPECT(ack(9, kLast) == FrameRefusal::kMalformed);
  EXPECT(ack(9, kNumbersAhead + 1) == FrameRefusal::kMalformed && !outbox.isSettled() &&
         outbox.base() == 1);
  EXPECT(ack(9, 41) == FrameRefusal::kNone && outbox.base() == 42 && outbox.size() == 1);

  uint64_t serial = 0;
  const auto send = [&](uint64_t base, uint16_t hops) {
    const FrameHead head = {
        .life = 5, .peerLife = 9, .serial = ++serial, .number = base, .base = base, .memory = 3};
    const std::string text = frameText(head, {{.length = 2, .row = 7, .hops = hops}});
    return to.crossings.receive(0, text, 0, &none);
  };
  const uint64_t& taken = to.seams.peer(0).lastTaken;
  EXPECT(send(kLast, 0) == FrameRefusal::kNone && taken == kLast);
  EXPECT(send(42, UINT16_MAX) == FrameRefusal::kNone && taken == 42);
  // The sprite goes on around the ring, since no server here has the row, but not without end.
  EXPECT(to.seams.peer(0).outbox.size() == 1);
  to.seams.peer(0).outbox.each([](const Crosser& one) { EXPECT(one.hops < kMaxPeers); });
  EXPECT(send(43 + kNumbersAhead / 2, 0) == FrameRefusal::kNone && taken == 43 + kNumbersAhead / 2);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? strtoull(argv[1], nullptr, 10) : std::random_device{}();
  printf("world_test: seed %" PRIu64 "\n", seed);
  fflush(stdout);
  for (const uint32_t capacity : {1, 2, 3, 5, 9, 17, 40, 120}) checkEnds(seed, capacity);
  checkBusy();
  checkFullOfCrossers();
  checkFar(400, 0, 0);
  checkFar(50, 10, 3000);
  checkAcks();
  checkHaste();
  checkRiders();
  checkDoubt();
  checkFence();
  for (const bool one : {false, true}) checkForgetting(one);
  checkRefusals();
  checkLeaps();
  return 0;
}
