// A process that ends at any system call of the writing leaves one whole state, with everything in
// it that was promised before.
//
//   crash_test [lives] [seed]
//
// A life is played by a process of its own: two runs of a pool with a store, with turns, a snapshot
// while it runs, an end without a word, a start after it and an end in order. It is played again
// and again, and ends each time one call later: before the call; in the middle of it, where the
// call writes; or it goes on, and that call has failed. What a start then finds must be the state
// of one moment of that life, whole, and not an earlier one than was promised last. At last many
// processes end in a row, on the files of the one before.
//
// That is a killed process, and the kernel still has all it was given. For a power cut an order is
// held to: a file is on the disk before it gets another's name, and the names are before a journal
// goes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <set>
#include <utility>

#include "state_scene.h"

namespace {

using namespace scene;

/** What happens at the call. */
enum class Fate { kEnds, kTears, kFails };

constexpr size_t kMostMoments = 4096;

/** What a life tells its watcher, without a system call. */
struct Tale {
  uint64_t calls;     // made
  uint64_t promised;  // the newest moment that was promised
  uint64_t moments;   // how many there are
  size_t states[kMostMoments];
};

/** What the calls below go by: they have no other way to know. */
struct Script {
  Tale* told = nullptr;
  uint64_t at = 0;  // the call at which it happens; 0: never
  Fate fate = Fate::kEnds;
  bool counts = false;
};
Script script;

/** What a power cut might take: what was written and not synced since. */
struct Unsynced {
  std::set<ino_t> files;
  bool names = true;  // of the directory; what the process before has left nobody knows

  static ino_t inodeOf(int fd) {
    struct stat info;
    EXPECT(fstat(fd, &info) == 0);
    return info.st_ino;
  }

  void written(int fd) {
    if (script.counts) files.insert(inodeOf(fd));
  }

  void synced(int fd) {
    struct stat info;
    EXPECT(fstat(fd, &info) == 0);
    if (S_ISDIR(info.st_mode)) names = false;
    files.erase(info.st_ino);
  }

  void expectSynced(const char* path) const {
    struct stat info;
    EXPECT(!script.counts || stat(path, &info) != 0 || !files.contains(info.st_ino));
  }

  /** A journal that says something may go only when what replaces it has its name for good. */
  void expectMayGo(const char* path) const {
    struct stat info;
    const bool counts = script.counts && strstr(path, ".journal-") != nullptr &&
                        stat(path, &info) == 0 &&
                        info.st_size > static_cast<off_t>(sizeof(JournalBegin));
    EXPECT(!counts || !names);
  }
};
Unsynced unsynced;

constexpr int kEnded = 10;
constexpr int kRefused = 11;

/** Whether this call fails; where the life ends with it, it does not return. */
bool failsHere() {
  if (!script.counts || ++script.told->calls != script.at) return false;
  if (script.fate != Fate::kFails) _exit(kEnded);
  errno = EIO;
  return true;
}

/** The same for a call that writes: `write(n)` writes the first `n` bytes. */
template <typename Write>
bool failsWriting(size_t length, Write&& write) {
  const bool here = script.counts && script.told->calls + 1 == script.at;
  if (here && script.fate == Fate::kTears && length > 1) {
    // Every length comes, since every call is torn in every life.
    write(std::mt19937_64(script.at * 31 + length)() % length);
  }
  return failsHere();
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
int __real_open(const char* path, int flags, ...);
ssize_t __real_write(int fd, const void* bytes, size_t length);
ssize_t __real_pwrite(int fd, const void* bytes, size_t length, off_t at);
int __real_fsync(int fd);
int __real_sync_file_range(int fd, off_t from, off_t length, unsigned how);
int __real_fdatasync(int fd);
int __real_rename(const char* from, const char* to);
int __real_renameat2(int a, const char* from, int b, const char* to, unsigned flags);
int __real_unlink(const char* path);
int __real_truncate(const char* path, off_t length);
int __real_fallocate(int fd, int mode, off_t at, off_t length);

int __wrap_open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  // clang-tidy 14 does not see va_start in a file that is not its first.
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
  const auto mode = static_cast<mode_t>((flags & O_CREAT) != 0 ? va_arg(more, int) : 0);
  va_end(more);
  if (failsHere()) return -1;
  if ((flags & O_CREAT) != 0) unsynced.names = true;
  return __real_open(path, flags, mode);
}
ssize_t __wrap_write(int fd, const void* bytes, size_t length) {
  unsynced.written(fd);
  const auto part = [&](size_t n) { return __real_write(fd, bytes, n); };
  return failsWriting(length, part) ? -1 : __real_write(fd, bytes, length);
}
ssize_t __wrap_pwrite(int fd, const void* bytes, size_t length, off_t at) {
  unsynced.written(fd);
  const auto part = [&](size_t n) { return __real_pwrite(fd, bytes, n, at); };
  return failsWriting(length, part) ? -1 : __real_pwrite(fd, bytes, length, at);
}
int __wrap_fsync(int fd) {
  if (failsHere()) return -1;
  unsynced.synced(fd);
  return __real_fsync(fd);
}
int __wrap_sync_file_range(int fd, off_t from, off_t length, unsigned how) {
  return failsHere() ? -1 : __real_sync_file_range(fd, from, length, how);
}
int __wrap_fdatasync(int fd) { return failsHere() ? -1 : __real_fdatasync(fd); }
int __wrap_rename(const char* from, const char* to) {
  if (failsHere()) return -1;
  unsynced.expectSynced(from);
  unsynced.names = true;
  return __real_rename(from, to);
}
int __wrap_renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  if (failsHere()) return -1;
  unsynced.expectSynced(from);
  unsynced.names = true;
  return __real_renameat2(a, from, b, to, flags);
}
int __wrap_unlink(const char* path) {
  if (failsHere()) return -1;
  unsynced.expectMayGo(path);
  return __real_unlink(path);
}
int __wrap_truncate(const char* path, off_t length) {
  return failsHere() ? -1 : __real_truncate(path, length);
}
int __wrap_fallocate(int fd, int mode, off_t at, off_t length) {
  return failsHere() ? -1 : __real_fallocate(fd, mode, at, length);
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

constexpr uint32_t kCapacity = 25;
constexpr int kTurns = 8;

/** The state of a pool as one number; what is done for that is no call of the life's. */
template <typename... Parts>
size_t hashOf(const Parts&... parts) {
  const bool counted = std::exchange(script.counts, false);
  const size_t hash = std::hash<std::string>()(stateOf(parts...));
  script.counts = counted;
  return hash;
}

/** There is one more state that may be found. */
void tellMoment(const Life& life) {
  Tale& told = *script.told;
  EXPECT(told.moments < kMostMoments);
  told.states[told.moments++] = hashOf(life);
}

/** What has been decided is written, or not; whoever was answered relies on it from now on. */
void endTurn(Life* life) {
  tellMoment(*life);
  const bool written = life->end();
  tellMoment(*life);
  if (written && life->store().counts().backlogBytes == 0) {
    script.told->promised = script.told->moments - 1;
  }
}

/** One run of a life, in its own process. */
void run(const Folder& folder, uint64_t seed, bool orderly) {
  const StateStoreOptions options = storeOptions(folder);
  Life life(seed, kCapacity, options, seed % 3 == 0 ? Where::kAlone : Where::kInWorld);
  unsynced = {};
  script.counts = true;
  if (!life.recover().ok()) _exit(kRefused);
  if (life.start() != 0) _exit(kRefused);
  for (int turn = 0; turn < kTurns; ++turn) {
    life.steps();
    endTurn(&life);
    if (turn % 3 == 2) {
      life.passTime();
      tellMoment(life);
      life.tryAgain();
      endTurn(&life);
    }
    if (turn == kTurns / 2) (void)life.store().compactNow();
  }
  if (orderly) {
    life.pool().seeAllOff();
    endTurn(&life);
    (void)life.finish();
  }
  script.counts = false;
}

/** Plays a life in a process of its own; how that ended. */
int play(const Folder& folder, uint64_t seed, uint64_t at, Fate fate) {
  fflush(stdout);
  const pid_t child = fork();
  EXPECT(child >= 0);
  if (child == 0) {
    script.at = at;
    script.fate = fate;
    script.told->calls = 0;
    run(folder, seed, false);
    run(folder, seed + 1, true);
    _exit(0);
  }
  int status;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
  const int code = WEXITSTATUS(status);
  EXPECT(code == 0 || code == kEnded || (code == kRefused && fate == Fate::kFails));
  return code;
}

/** Holds what is found to what was promised; twice, since a start repairs what it finds. */
void check(const Folder& folder) {
  const Tale& told = *script.told;
  for (int starts = 0; starts < 2; ++starts) {
    Pool pool(poolOptions(kCapacity), nullptr, 0);
    Shelf shelf;
    StateStore store(storeOptions(folder), &pool, &shelf);
    const Recovery recovery = store.recover(&shelf);
    if (!recovery.ok()) {
      fprintf(stderr, "%s: %s (%d), after call %" PRIu64 "\n", recovery.file.c_str(),
              recovery.problem.c_str(), recovery.error, script.told->calls);
    }
    EXPECT(recovery.ok() && (starts == 0 || recovery.torn == 0));
    const size_t found = hashOf(pool, shelf);
    bool known = false;
    for (uint64_t i = told.promised; i < told.moments; ++i) known |= told.states[i] == found;
    EXPECT(known);
    if (starts == 0) EXPECT(store.start() == 0);
  }
}

void beginTelling() {
  // An empty pool is where it begins, and where it is when nothing was promised.
  const Pool empty(poolOptions(kCapacity), nullptr, 0);
  *script.told = {};
  script.told->states[script.told->moments++] = hashOf(empty);
}

/** Every call of a life. @returns how many there are */
uint64_t everyCall(uint64_t seed, Fate fate) {
  for (uint64_t at = 1;; ++at) {
    beginTelling();
    const Folder folder;
    const int code = play(folder, seed, at, fate);
    check(folder);
    if (script.told->calls < at && code == 0) return at - 1;
  }
}

/** Processes that end in a row, each somewhere, on the same files. */
uint64_t inARow(uint64_t seed, uint64_t calls) {
  std::mt19937_64 random(seed);
  const Folder folder;
  beginTelling();
  for (int i = 0; i < 30; ++i) {
    // One state is there, and is promised; only the next life adds to it.
    Pool pool(poolOptions(kCapacity), nullptr, 0);
    Shelf shelf;
    StateStore store(storeOptions(folder), &pool, &shelf);
    EXPECT(store.recover(&shelf).ok());
    const size_t found = hashOf(pool, shelf);
    *script.told = {};
    script.told->states[script.told->moments++] = found;
    play(folder, random(), random() % calls + 1, random() % 2 ? Fate::kEnds : Fate::kTears);
    check(folder);
  }
  return 30;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t lives = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : std::random_device{}();
  printf("crash_test: %" PRIu64 " lives, seed %" PRIu64 "\n", lives, seed);
  // The page cache is what a killed process leaves: a file system in memory shows as much, sooner.
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
  void* const memory =
      mmap(nullptr, sizeof(Tale), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT(memory != MAP_FAILED);
  script.told = new (memory) Tale{};
  uint64_t ended = 0;
  uint64_t torn = 0;
  uint64_t failed = 0;
  uint64_t rows = 0;
  for (uint64_t i = 0; i < lives; ++i) {
    const uint64_t calls = everyCall(seed + i, Fate::kEnds);
    ended += calls;
    torn += everyCall(seed + i, Fate::kTears);
    failed += everyCall(seed + i, Fate::kFails);
    rows += inARow(seed + i, calls);
  }
  printf("crash_test: ended at %" PRIu64 " calls, torn at %" PRIu64 ", failed at %" PRIu64
         ", %" PRIu64 " ends in a row\n",
         ended, torn, failed, rows);
  EXPECT(ended > 40 * lives && torn == ended);
  return 0;
}
