// A restored state is the state before: random lives of a pool with a journal, ended at random
// moments without notice, with snapshots made in between.
//
//   journal_test [lives] [seed]
//
// After each end a new pool reads the files and is compared with the old one, byte for byte as a
// snapshot has them: ids, places, holes of the torus, waiting sprites and their order, throw
// windows, leaving clients, every count. The new pool then takes the old one's place and lives on.
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/checksum.h"
#include "state_scene.h"

namespace {

using namespace scene;

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

  /** Runs one life: it begins, and ends a few times with a comparison. */
  void life() {
    const Folder folder;
    std::string state;
    for (uint32_t run = below(4) + 1; run > 0; --run) {
      // The life is in a world, or no longer, or not yet.
      const StateStoreOptions options = storeOptions(folder);
      Life life(random_(), kCapacity, options, below(2) == 0 ? Where::kAlone : Where::kInWorld);
      const Recovery recovery = life.recover();
      if (!recovery.ok()) {
        fprintf(stderr, "%s: %s (%d)\n", recovery.file.c_str(), recovery.problem.c_str(),
                recovery.error);
      }
      EXPECT(recovery.ok() && recovery.tornBytes == 0);
      if (!state.empty()) EXPECT(stateOf(life) == state);
      expectLaw(life.pool());
      EXPECT(life.start() == 0);
      for (uint32_t turns = below(60); turns > 0; --turns) {
        life.turn();
        EXPECT(life.end());
        if (below(20) == 0) EXPECT(life.store().compactNow().empty());
      }
      records_ += recovery.records;
      ++ends_;
      if (below(3) == 0) {
        EXPECT(life.finish().ok());
        EXPECT(journalsIn(folder) == 0);
        ++orderly_;
      }
      // The state that is promised by now. A torn turn was never promised.
      state = stateOf(life);
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

  /** Writes a last turn in part: the next start cuts it, and says so. */
  void tear(const Folder& folder, Life* life) {
    const std::string promised = stateOf(*life);
    const uint64_t before = life->store().counts().journalBytes;
    life->turn();
    EXPECT(life->end());
    const uint64_t batch = life->store().counts().journalBytes - before;
    if (batch == 0) return;
    const uint64_t cut = below(batch) + 1;
    const uint64_t generation = life->store().counts().generation;
    const std::string journal = folder.file() + ".journal-" + std::to_string(generation);
    std::filesystem::resize_file(journal, std::filesystem::file_size(journal) - cut);
    Life next(1, kCapacity, storeOptions(folder));
    const Recovery recovery = next.recover();
    EXPECT(recovery.ok() && recovery.tornBytes == batch - cut);
    EXPECT(stateOf(next) == promised);
    ++tornEnds_;
  }

  std::mt19937_64 random_;
  uint64_t ends_ = 0;
  uint64_t orderly_ = 0;
  uint64_t tornEnds_ = 0;
  uint64_t records_ = 0;
};

/** Changes the header of a journal, whose checksums then fit. */
void editHeader(const std::string& path, const std::function<void(JournalBegin*)>& edit) {
  FILE* const file = fopen(path.c_str(), "r+");
  JournalBegin begin;
  EXPECT(fread(&begin, sizeof begin, 1, file) == 1);
  edit(&begin);
  const auto seal = [](auto* head) {
    Checksum checksum;
    checksum.add(reinterpret_cast<const char*>(head), sizeof *head - sizeof head->checksum);
    head->checksum = checksum.value();
  };
  seal(&begin.header);
  seal(&begin.origin);
  rewind(file);
  EXPECT(fwrite(&begin, sizeof begin, 1, file) == 1 && fclose(file) == 0);
}

/** Makes a journal look as if the machine was restarted since. */
void asOfOtherBoot(const std::string& path) {
  editHeader(path, [](JournalBegin* begin) { begin->origin.boot[0] ^= 1; });
}

/** Writes zeros over the header of a journal. */
void loseHeader(const std::string& path) {
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      << std::string(sizeof(JournalBegin), '\0');
}

/** Makes a run with one turn, and with what `beforeEnd` does to it. Returns the state at its end.
 */
std::string oneTurn(
    const Folder& folder, const std::function<void(Life&)>& beforeEnd = [](Life&) {}) {
  Life life(1, 10, storeOptions(folder));
  EXPECT(life.recover().ok() && life.start() == 0);
  life.turn();
  EXPECT(life.end());
  beforeEnd(life);
  return stateOf(life);
}

/** The server follows no link, neither to read a journal nor to begin one. */
void noLinkIsFollowed() {
  const Folder folder;
  const Folder other;
  // The journal is whole: a program that followed a link to it would replay it, and cut it.
  oneTurn(other);
  const std::string victim = other.file() + ".journal-0";
  EXPECT(std::filesystem::is_regular_file(victim));
  const std::string first = folder.file() + ".journal-0";
  std::filesystem::create_symlink(victim, first);
  {
    Life life(1, 10, storeOptions(folder));
    EXPECT(life.recover().error == ELOOP);
  }
  EXPECT(std::filesystem::remove(first));

  oneTurn(folder, [&](Life& life) {
    const std::string nothing = other.path() + "/nothing";
    std::filesystem::create_symlink(nothing, folder.file() + ".journal-1");
    EXPECT(!life.store().compactNow().empty());
    EXPECT(!std::filesystem::exists(nothing));
  });
}

/** Returns all files of a folder, by name. */
std::map<std::string, std::string> filesIn(const Folder& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files[entry.path().filename()] = test::readFile(entry.path());
  }
  return files;
}

/** Inverts the bits of the byte at `at`. */
void damage(const std::string& path, uint64_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(~file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

/** The journals of a state, by generation. */
struct Journals {
  std::string operator[](int generation) const {
    return state + ".journal-" + std::to_string(generation);
  }
  /** The last two were begun before the machine was restarted. */
  void outliveThePower() const {
    for (const int generation : {2, 3}) asOfOtherBoot((*this)[generation]);
  }
  std::string state;
};

/**
 * Files that do not fit together are refused with the name of one of them, and left as they are.
 */
void whatDoesNotFitIsRefused() {
  struct Case {
    const char* name;
    std::function<void(const Journals& of)> spoil;
    const char* refused;  // the end of the file's name
    const char* why;
  };
  using std::filesystem::remove;
  const auto cutByOne = [](const std::string& path) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  };
  const std::vector<Case> cases = {
      {"one is missing", [](const Journals& of) { remove(of[2]); }, ".journal-3",
       "which is not there"},
      {"the first is missing", [](const Journals& of) { remove(of[1]); }, ".journal-2",
       "which is not there"},
      {"the snapshot is missing", [](const Journals& of) { remove(of.state); }, ".journal-1",
       "which is not there"},
      {"one is in the place of another",
       [](const Journals& of) {
         copy(std::filesystem::path(of[1]), of[2],
              std::filesystem::copy_options::overwrite_existing);
       },
       ".journal-2", "it is the journal of generation 1"},
      {"one that others go on from is cut off", [&](const Journals& of) { cutByOne(of[1]); },
       ".journal-1", "it is cut off"},
      {"one that others go on from is damaged",
       [](const Journals& of) { damage(of[1], std::filesystem::file_size(of[1]) - 1); },
       ".journal-1", "it is damaged at byte"},
      {"one that others go on from is cut off, and was on the disk before a power cut",
       [&](const Journals& of) { cutByOne(of[1]), of.outliveThePower(); }, ".journal-1",
       "it is cut off"},
      {"one that others go on from has no header, and was on the disk before a power cut",
       [](const Journals& of) { loseHeader(of[1]), of.outliveThePower(); }, ".journal-1",
       "it is no journal"},
      {"one that others go on from ends in its header, and was on the disk before a power cut",
       [](const Journals& of) {
         std::filesystem::resize_file(of[1], sizeof(JournalBegin) - 1);
         of.outliveThePower();
       },
       ".journal-1", "it is cut off"},
      {"the last is of a newer version",
       [](const Journals& of) { editHeader(of[3], [](auto* begin) { ++begin->header.version; }); },
       ".journal-3", "it is of version"},
      {"the last is of a version before the first release",
       [](const Journals& of) {
         editHeader(of[3], [](auto* begin) { begin->header.version = 1; });
       },
       ".journal-3", "it is of version 1,"},
      {"the last is of another machine",
       [](const Journals& of) {
         editHeader(of[3], [](auto* begin) { begin->header.byteOrder = 0x04030201; });
       },
       ".journal-3", "another byte order"},
      {"the run of the last is damaged",
       [](const Journals& of) { damage(of[3], offsetof(JournalBegin, header.run)); }, ".journal-3",
       "its header is damaged"},
      {"the origin of the last is damaged",
       [](const Journals& of) { damage(of[3], offsetof(JournalBegin, origin)); }, ".journal-3",
       "its header is damaged"},
      {"the last is damaged before what was on the disk",
       [](const Journals& of) { damage(of[3], 136); }, ".journal-3", "it is damaged at byte 96"},
  };
  for (const Case& one : cases) {
    const Folder folder;
    for (int run = 0; run < 3; ++run) {
      Life life(1, 10, storeOptions(folder, Sync::kTurn));
      EXPECT(life.recover().ok() && life.start() == 0);
      if (run == 0) EXPECT(life.store().compactNow().empty());
      for (int turn = 0; turn < 3; ++turn) {
        life.turn();
        (void)life.end();
        while (life.store().awaitsDisk()) std::this_thread::yield();
      }
    }
    one.spoil({folder.file()});
    const auto before = filesIn(folder);
    Life life(1, 10, storeOptions(folder));
    const Recovery recovery = life.recover();
    const bool named = recovery.file.ends_with(one.refused);
    if (recovery.ok() || !named || recovery.problem.find(one.why) == std::string::npos) {
      fprintf(stderr, "%s: %s: %s\n", one.name, recovery.file.c_str(), recovery.problem.c_str());
      EXPECT(false);
    }
    EXPECT(filesIn(folder) == before);
  }
}

/**
 * A power cut may leave a journal while a part of the journal before it is lost, or all of that.
 */
void whatAPowerCutHasTakenIsCut() {
  enum class PowerCutLoss { kNothing, kTurn, kHeader };
  for (const PowerCutLoss loss :
       {PowerCutLoss::kNothing, PowerCutLoss::kTurn, PowerCutLoss::kHeader}) {
    const bool isCut = loss != PowerCutLoss::kNothing;
    const Folder folder;
    std::string state;
    for (int run = 0; run < 2; ++run) {
      Life life(1, 10, storeOptions(folder, Sync::kNever));
      EXPECT(life.recover().ok() && life.start() == 0);
      for (int turn = 0; turn < 3; ++turn) {
        // The rest of the first run: all but the last turn, or nothing.
        const int cut = loss == PowerCutLoss::kTurn ? 2 : 0;
        if (isCut && run == 0 && turn == cut) state = stateOf(life);
        life.turn();
        (void)life.end();
      }
      if (!isCut) state = stateOf(life);
    }
    const std::string first = folder.file() + ".journal-0";
    const std::string second = folder.file() + ".journal-1";
    for (const std::string& journal : {first, second}) asOfOtherBoot(journal);
    if (loss == PowerCutLoss::kTurn) {
      std::filesystem::resize_file(first, std::filesystem::file_size(first) - 1);
    }
    if (loss == PowerCutLoss::kHeader) loseHeader(first);
    Life life(1, 10, storeOptions(folder));
    const Recovery recovery = life.recover();
    EXPECT(recovery.ok() && recovery.doubtful && stateOf(life) == state);
    EXPECT((recovery.tornBytes > 0) == isCut && std::filesystem::exists(second) != isCut);
    EXPECT(life.start() == 0);
  }
}

/**
 * A journal that ends within its header is of a process that has promised nothing: it is removed.
 */
void aCutHeaderSaysNothing() {
  for (const size_t length : {0, 1, 60}) {
    const Folder folder;
    const std::string state = oneTurn(folder);
    std::ofstream(folder.file() + ".journal-1") << std::string(length, 'x');
    Life next(1, 10, storeOptions(folder));
    const Recovery recovery = next.recover();
    EXPECT(recovery.ok() && recovery.tornBytes == length && stateOf(next) == state);
    EXPECT(next.start() == 0);
  }
}

/** A power cut may take the header of a longer file: all that its process has said is lost. */
void aLostHeaderSaysNothing() {
  for (const bool isEmpty : {true, false}) {
    const Folder folder;
    const std::string state = oneTurn(folder, [](Life& life) { EXPECT(life.finish().ok()); });
    const std::string journal = folder.file() + ".journal-1";
    oneTurn(folder);
    if (isEmpty) {
      std::filesystem::resize_file(journal, 0);
    } else {
      loseHeader(journal);
    }
    Life next(1, 10, storeOptions(folder));
    const Recovery recovery = next.recover();
    EXPECT(recovery.ok() && recovery.doubtful && stateOf(next) == state);
    EXPECT(next.start() == 0);
  }
}

/**
 * A journal that is not its process's original file may be an old copy: later answers are missing
 * in it. A process that was killed before it removed the file leaves the original.
 */
void aCopyIsInDoubt() {
  enum class JournalCopy { kCopied, kCopiedBesideSnapshot, kLinkedBesideSnapshot };
  for (const JournalCopy copy : {JournalCopy::kCopied, JournalCopy::kCopiedBesideSnapshot,
                                 JournalCopy::kLinkedBesideSnapshot}) {
    const Folder folder;
    const std::string journal = folder.file() + ".journal-0";
    const std::string other = folder.file() + ".kept";
    const std::string state = oneTurn(folder, [&](Life& life) {
      if (copy == JournalCopy::kLinkedBesideSnapshot) {
        std::filesystem::create_hard_link(journal, other);
      } else {
        std::filesystem::copy(journal, other);
      }
      if (copy != JournalCopy::kCopied) EXPECT(life.finish().ok());
    });
    std::filesystem::rename(other, journal);
    Life next(1, 10, storeOptions(folder));
    const Recovery recovery = next.recover();
    EXPECT(recovery.ok() && stateOf(next) == state);
    EXPECT(recovery.doubtful == (copy != JournalCopy::kLinkedBesideSnapshot));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto [lives, seed] = readArguments(argc, argv, 200);
  noLinkIsFollowed();
  whatDoesNotFitIsRefused();
  whatAPowerCutHasTakenIsCut();
  aCutHeaderSaysNothing();
  aLostHeaderSaysNothing();
  aCopyIsInDoubt();
  Run run(seed);
  for (uint64_t i = 0; i < lives; ++i) run.life();
  run.report();
  return 0;
}
