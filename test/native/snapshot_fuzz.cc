// Snapshots that are damaged in ways their checksum does not tell: the loader takes a state that
// holds together or refuses it, and never reads or writes where it should not.
//
//   snapshot_fuzz [count] [seed]
//
// A pool with a past is saved, a few numbers of the file are replaced by odd ones, the checksum is
// made right again, and it is loaded. What is taken is then used: clients leave, throw and poll.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "expect.h"
#include "state_fuzz.h"
#include "state_scene.h"
#include "store/snapshot.h"
#include "world_steps.h"

namespace {

using namespace server;
using scene::besideOf;

constexpr uint32_t kCapacity = 64;
constexpr size_t kHeader = 104;  // bytes, as in snapshot.cc

struct NoResponder : PollResponder {
  void answer(uint32_t, std::string_view body) override { bytes += body.size(); }
  size_t bytes = 0;
};

PoolOptions options() {
  return {.capacity = kCapacity,
          .hold = 120,
          .lease = 30,
          .maxSprite = 4096,
          .mailboxSprites = 16,
          .mailboxBytes = 1 << 16,
          .mailboxMemory = 1 << 24,
          .answerBytes = 1 << 12};
}

/** CRC-32 as zlib has it, bit by bit: not the code under test. */
uint32_t checksum(const std::vector<uint8_t>& bytes, size_t length) {
  uint32_t value = UINT32_MAX;
  for (size_t i = 0; i < length; ++i) {
    value ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320 : 0);
  }
  return ~value;
}

std::vector<uint8_t> readAll(const std::string& path) {
  FILE* file = fopen(path.c_str(), "rb");
  EXPECT(file != nullptr);
  std::vector<uint8_t> bytes(1 << 20);
  bytes.resize(fread(bytes.data(), 1, bytes.size(), file));
  fclose(file);
  return bytes;
}

void writeAll(const std::string& path, const std::vector<uint8_t>& bytes) {
  FILE* file = fopen(path.c_str(), "wb");
  EXPECT(file != nullptr && fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  EXPECT(fclose(file) == 0);
}

class Run {
 public:
  explicit Run(uint64_t seed) : random_(seed) {
    char name[] = "/tmp/snapshot_fuzz.XXXXXX";
    const int fd = mkstemp(name);
    EXPECT(fd >= 0);
    close(fd);
    path_ = name;
  }
  ~Run() { unlink(path_.c_str()); }

  /** Fills a pool and keeps the file it is saved to. */
  void prepare() {
    AddressLimits limits{AddressLimitsOptions{}};
    Pool clients(options(), &limits, 0);
    clients.setResponder(PollHolder::kRoutes, &noResponder_);
    ids_.clear();
    std::optional<test::WorldSteps> world;
    if (below(3) > 0) world.emplace(&clients);
    const uint32_t most = below(30) + 1;
    for (uint32_t i = 0; i < most * 10; ++i) {
      if (world && below(4) == 0) {
        world->step([this](uint64_t n) { return uint64_t{below(static_cast<uint32_t>(n))}; });
      }
      const uint32_t what = below(10);
      if (ids_.size() < most && what < 4) {
        Id id;
        EXPECT(clients.join({.host = below(4)}, 0, &id) == Outcome::kOk);
        ids_.push_back(id);
      } else if (!ids_.empty() && what == 4) {
        const size_t at = below(ids_.size());
        clients.leave(ids_[at]);
        ids_.erase(ids_.begin() + at);
      } else if (!ids_.empty()) {
        const Id& id = ids_[below(ids_.size())];
        if (what < 9) {
          clients.throwSprite(id, Edge{static_cast<uint8_t>(below(4))}, i,
                              "{\"n\":" + std::to_string(i) + "}", i);
        } else {
          clients.poll(id, 0, 0, PollHolder::kRoutes, i);
        }
      }
    }
    beside_ = {};
    for (uint32_t i = below(4); i > 0; --i) publish(i);
    // A save writes over nothing.
    unlink(path_.c_str());
    EXPECT(Snapshot::save(clients, beside_, path_, scene::kAnySize, {}, Replace::kNothing).ok());
    whole_ = readAll(path_);
    EXPECT(load(whole_).empty());
    EXPECT(besideOf(loaded_.feeds(), loaded_.takeNotes()) ==
           besideOf(beside_.feeds(), Shelf(beside_).takeNotes()));
    EXPECT(!load({whole_.begin(), whole_.end() - 1}).empty());
  }

  void step() {
    static constexpr uint32_t kOdd[] = {0,  1,  2,         3,          4,          5,         255,
                                        64, 65, 0x7ffffff, 0x7fffffff, 0x80000000, 0xffffffff};
    std::vector<uint8_t> bytes = whole_;
    for (uint32_t n = below(3) + 1; n > 0; --n) {
      // From the counts on; half of all strikes hit the header or the first client.
      const size_t words = (bytes.size() - 4) / 4;
      const size_t first = std::min<size_t>(words, (kHeader + 56) / 4);
      const size_t at = 4 * (4 + below((below(2) ? first : words) - 4));
      if (below(3) > 0) {
        const uint32_t value = below(2) ? kOdd[below(std::size(kOdd))] : below(70);
        memcpy(&bytes[at], &value, sizeof value);
      } else {
        bytes[at + below(4)] ^= 1 << below(8);
      }
    }
    if (below(8) == 0) bytes.resize(below(bytes.size()));
    if (bytes.size() >= 4) {
      const uint32_t sum = checksum(bytes, bytes.size() - 4);
      memcpy(&bytes[bytes.size() - 4], &sum, sizeof sum);
    }
    verdicts_.add(load(bytes));
    ++steps_;
  }

  void report() const {
    verdicts_.print();
    if (steps_ < 3000) return;
    for (const char* said :
         {"", "it ends too early", "a client in it makes no sense", "a sprite in it makes no sense",
          "its counts do not add up", kTooManyClients, "its torus does not hold together"}) {
      EXPECT(verdicts_.saw(said));
    }
  }

 private:
  /** Puts a feed of two versions and a note beside the pool. */
  void publish(uint32_t number) {
    const std::string key = "feed" + std::to_string(number);
    const std::string value(20 + below(20), '1');
    for (const uint64_t version : {4, 5}) {
      const PublishText head = {.epoch = 7,
                                .key = static_cast<uint32_t>(key.size()),
                                .value = static_cast<uint32_t>(value.size()),
                                .what = Published::kValue};
      std::string text(reinterpret_cast<const char*>(&head), sizeof head);
      text += key;
      text += value;
      text += "{}";
      EXPECT(beside_.apply({.step = JournalStep::kPublish, .number = version}, text));
    }
    EXPECT(beside_.apply({.step = JournalStep::kNote, .other = 5}, key + " is noted"));
  }

  uint32_t below(uint32_t most) { return most == 0 ? 0 : random_() % most; }

  /** Loads `bytes`, and uses what is taken; what was wrong with it. */
  std::string load(const std::vector<uint8_t>& bytes) {
    writeAll(path_, bytes);
    AddressLimits limits{AddressLimitsOptions{}};
    Pool clients(options(), &limits, 0);
    clients.setResponder(PollHolder::kRoutes, &noResponder_);
    loaded_ = {};
    const SnapshotResult result = Snapshot::load(&clients, &loaded_, path_, scene::kAnySize);
    EXPECT(result.error == 0);
    if (!result.ok()) return result.problem;
    // Leaving clients are in the torus, and count as clients no more.
    clients.seeAllOff();
    const Counts& counts = clients.counts();
    scene::expectLaw(clients);
    clients.endWorld();
    scene::expectLaw(clients);
    EXPECT(counts.clients == clients.torus().size());
    for (const Id& id : ids_) {
      for (uint8_t edge = 0; edge < 4; ++edge) {
        clients.throwSprite(id, Edge{edge}, below(400), "{\"after\":1}", 0);
      }
      clients.poll(id, 0, 0, PollHolder::kRoutes, 1);
      Id newcomer;
      if (below(2) > 0) clients.join({}, 0, &newcomer);
      if (below(2) > 0) clients.leave(id);
      scene::expectLaw(clients);
    }
    // Every hold and every lease ends: no client is left, no sprite waits.
    for (uint64_t now = 0; now < 400000; now += 50) {
      while (!clients.tick(now)) {
      }
    }
    EXPECT(counts.clients == 0 && counts.waiting == 0 && counts.mailboxBytes == 0);
    EXPECT(limits.size() == 0);
    return {};
  }

  std::mt19937_64 random_;
  NoResponder noResponder_;
  std::string path_;
  std::vector<Id> ids_;
  std::vector<uint8_t> whole_;
  Shelf beside_;
  Shelf loaded_;
  test::Verdicts verdicts_;
  uint64_t steps_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return server::test::fuzzStates<Run>(argc, argv, "snapshots"); }
