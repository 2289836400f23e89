// Mutated frames from another server of the world: nothing is read outside a frame, the books
// balance, and no sprite is acked that was never sent.
//
//   world_fuzz [count] [seed]
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "expect.h"
#include "world_scene.h"

namespace {

using namespace server;
using namespace server::test;

constexpr uint64_t kDoubt = 1 << 20;

/** Two servers whose frames arrive. */
class Pair {
 public:
  Pair() : a({0, 2, 5, kDoubt}), b({1, 2, 9, kDoubt}) {
    a.tampered = b.tampered = true;
    for (int i = 0; i < 5; ++i) {
      EXPECT(a.join());
      if (i < 3) EXPECT(b.join());
    }
    a.seams.setRing(ringOf({{0, 2}, {1, 1}}, 0, true), 0);
    b.seams.setRing(ringOf({{0, 2}, {1, 1}}, 1, true), 0);
  }

  void act(Random& random) {
    Server& one = random.oneIn(2) ? a : b;
    const size_t at = random.below(one.clients.size());
    one.throwOne(at, Edge{static_cast<uint8_t>(random.below(4))}, ++sprite_, random.below(50));
    if (random.oneIn(4)) one.poll(random.below(one.clients.size()), &received_);
  }

  /** Carries all due messages from each server to the other, and keeps the bytes. */
  void talk(Random& random, std::vector<std::string>* said) {
    now += 100;
    carry(&a, &b, random, said);
    carry(&b, &a, random, said);
  }

  /** Delivers `bytes` to one server as the other's. */
  FrameRefusal give(const std::string& bytes, bool toA) {
    Server& to = toA ? a : b;
    const ExactCopy copy(bytes);
    const uint64_t out = to.pool.counts().crossedOut;
    const uint64_t waited = to.seams.waitingSprites();
    const uint64_t in = to.pool.counts().crossedIn;
    std::string answer;
    const FrameRefusal refusal =
        to.crossings.receive(toA ? 1 : 0, {copy.data(), copy.length()}, now, &answer);
    to.endTurn();
    to.check();
    EXPECT(to.pool.counts().crossedOut - out <= waited);
    Frames given;
    // An ack may say that the other server has refused a frame of ours, and which of our frames it
    // has taken.
    const bool told = readMessage(bytes, &given) == FrameRefusal::kNone &&
                      given.at[0].head.kind == FrameKind::kAck &&
                      given.at[0].head.refusal == refusal;
    if (!told && (refusal == FrameRefusal::kMalformed || refusal == FrameRefusal::kVersion)) {
      EXPECT(to.pool.counts().crossedIn == in && to.pool.counts().crossedOut == out);
    }
    if (!answer.empty()) {
      Frames said;
      EXPECT(readMessage(answer, &said) == FrameRefusal::kNone && said.count == 1);
      EXPECT(said.at[0].head.kind == FrameKind::kAck);
    }
    return refusal;
  }

  Server a, b;
  uint64_t now = 0;

 private:
  void carry(Server* from, Server* to, Random& random, std::vector<std::string>* said) {
    std::string frame;
    const auto peer = static_cast<PeerNumber>(to->number);
    while (from->crossings.nextMessage(peer, now, &frame)) {
      std::string answer;
      to->crossings.receive(static_cast<PeerNumber>(from->number), frame, now, &answer);
      to->endTurn();
      if (said != nullptr) {
        said->push_back(frame);
        if (!answer.empty()) said->push_back(answer);
      }
      std::string none;
      if (!answer.empty() && !random.oneIn(5)) from->crossings.receive(peer, answer, now, &none);
      EXPECT(none.empty());
      frame.clear();
    }
  }

  uint64_t sprite_ = 0;
  std::map<uint64_t, std::vector<Reception>> received_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto [count, seed] = readArguments(argc, argv, 2000);
  Random random(seed);
  const std::vector<std::string> words = {std::string(8, '\0'), std::string(8, '\xff'),
                                          std::string("\1\0\0\0", 4), std::string("\0\0\0\x80", 4),
                                          std::string("SPRW\2\0\2\0", 8)};
  std::vector<std::string> said;
  uint64_t refused[kRefusals] = {};
  for (uint64_t i = 0; i < count;) {
    Pair pair;
    std::vector<std::string> fresh;
    for (int turn = 0; turn < 20; ++turn) {
      for (int n = 0; n < 4; ++n) pair.act(random);
      pair.talk(random, &fresh);
      if (said.empty() || fresh.empty()) continue;
      for (int n = 0; n < 4; ++n, ++i) {
        const std::string bytes =
            mutate(random, random.pick(random.oneIn(2) ? fresh : said), said, words);
        ++refused[static_cast<size_t>(pair.give(bytes, random.oneIn(2)))];
      }
    }
    said = fresh;
  }
  printf("world_fuzz: %" PRIu64 " frames", count);
  for (size_t i = 0; i < kRefusals; ++i) printf(", %s %" PRIu64, kRefusalNames[i], refused[i]);
  printf("\n");
  if (count >= 1000) {
    EXPECT(refused[static_cast<size_t>(FrameRefusal::kMalformed)] > count / 20);
    EXPECT(refused[static_cast<size_t>(FrameRefusal::kNone)] > count / 50);
  }
  return 0;
}
