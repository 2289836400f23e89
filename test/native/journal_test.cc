// The state that comes back is the state that was: random lives of a pool with a journal, ended at
// random moments without a word, with snapshots made in between.
//
//   journal_test [lives] [seed]
//
// After each end a new pool reads the files and is compared with the old one, byte for byte as a
// snapshot has them: ids, places, holes of the torus, waiting sprites and their order, throw
// windows, those who are just leaving, every count. The new pool then lives on in the old one's
// place.
#include <cerrno>
#include <cstring>

#include "state_scene.h"

namespace {

using namespace scene;

/** Ends with a torn batch: the last bytes of the last journal are cut off. */
void tearEnd(const Folder& folder, uint64_t bytes) {
  std::string last;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path();
    if (name.find(".journal-") == name.npos) continue;
    if (last.empty() || name.size() > last.size() || (name.size() == last.size() && name > last)) {
      last = name;
    }
  }
  EXPECT(!last.empty());
  const uint64_t size = std::filesystem::file_size(last);
  std::filesystem::resize_file(last, size - std::min(size, bytes));
}

size_t journalsIn(const Folder& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    count += entry.path().string().find(".journal-") != std::string::npos;
  }
  return count;
}

class Run {
 public:
  explicit Run(uint64_t seed) : random_(seed) {}

  /** One life: begun, ended a few times, compared each time. */
  void life() {
    const Folder folder;
    std::string state;
    for (uint32_t run = below(4) + 1; run > 0; --run) {
      Life life(random_(), kCapacity, storeOptions(folder));
      const Recovery recovery = life.store().recover();
      if (!recovery.ok()) {
        fprintf(stderr, "%s: %s (%d)\n", recovery.file.c_str(), recovery.problem.c_str(),
                recovery.error);
      }
      EXPECT(recovery.ok() && recovery.torn == 0);
      if (!state.empty()) EXPECT(stateOf(life.pool()) == state);
      law(life.pool());
      EXPECT(life.store().start() == 0);
      for (uint32_t turns = below(60); turns > 0; --turns) {
        life.turn();
        EXPECT(life.end());
        if (below(20) == 0) EXPECT(life.store().compactNow().empty());
      }
      records_ += recovery.records;
      ++ends_;
      if (below(3) == 0) {
        EXPECT(life.store().finish().ok());
        EXPECT(journalsIn(folder) == 0);
        ++orderly_;
      }
      // What is promised by now; a torn turn was never promised.
      state = stateOf(life.pool());
      if (below(2) == 0 && journalsIn(folder) > 0) tear(folder, &life);
    }
  }

  void report() const {
    printf("journal_test: %" PRIu64 " ends, %" PRIu64 " of them in order, %" PRIu64
           " torn, %" PRIu64 " records read\n",
           ends_, orderly_, tornEnds_, records_);
    EXPECT(ends_ > 10 && orderly_ > 0 && tornEnds_ > 0 && records_ > 100);
  }

 private:
  static constexpr uint32_t kCapacity = 60;

  uint32_t below(uint32_t most) { return most == 0 ? 0 : random_() % most; }

  static void law(const Pool& pool) {
    const Counts& counts = pool.counts();
    EXPECT(counts.thrown == counts.acked + counts.waiting + counts.lost);
  }

  /** A last turn that is written, but not whole: the next start cuts it, and says so. */
  void tear(const Folder& folder, Life* life) {
    const std::string promised = stateOf(life->pool());
    const uint64_t before = life->store().counts().journalBytes;
    life->turn();
    EXPECT(life->end());
    const uint64_t batch = life->store().counts().journalBytes - before;
    if (batch == 0) return;
    const uint64_t cut = below(batch) + 1;
    tearEnd(folder, cut);
    Life next(1, kCapacity, storeOptions(folder));
    const Recovery recovery = next.store().recover();
    EXPECT(recovery.ok() && recovery.torn == batch - cut);
    EXPECT(stateOf(next.pool()) == promised);
    ++tornEnds_;
  }

  std::mt19937_64 random_;
  uint64_t ends_ = 0;
  uint64_t orderly_ = 0;
  uint64_t tornEnds_ = 0;
  uint64_t records_ = 0;
};

/** No link is followed, neither to read a journal nor to begin one. */
void noLinkIsFollowed() {
  const Folder folder;
  const Folder other;
  // A whole journal, which one who follows a link to it would take, and cut.
  const auto liveIn = [](const Folder& place, auto&& then) {
    Life life(1, 10, storeOptions(place));
    EXPECT(life.store().recover().ok() && life.store().start() == 0);
    life.turn();
    EXPECT(life.end());
    then(life.store());
  };
  liveIn(other, [](StateStore&) {});
  const std::string victim = other.file() + ".journal-0";
  EXPECT(std::filesystem::is_regular_file(victim));
  const std::string first = folder.file() + ".journal-0";
  std::filesystem::create_symlink(victim, first);
  {
    Life life(1, 10, storeOptions(folder));
    EXPECT(life.store().recover().error == ELOOP);
  }
  EXPECT(std::filesystem::remove(first));

  liveIn(folder, [&](StateStore& store) {
    const std::string nothing = other.path() + "/nothing";
    std::filesystem::create_symlink(nothing, folder.file() + ".journal-1");
    EXPECT(!store.compactNow().empty());
    EXPECT(!std::filesystem::exists(nothing));
  });
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t lives = argc > 1 ? strtoull(argv[1], nullptr, 10) : 200;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : std::random_device{}();
  printf("journal_test: %" PRIu64 " lives, seed %" PRIu64 "\n", lives, seed);
  fflush(stdout);
  noLinkIsFollowed();
  Run run(seed);
  for (uint64_t i = 0; i < lives; ++i) run.life();
  run.report();
  return 0;
}
