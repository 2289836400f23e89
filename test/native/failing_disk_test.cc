// A disk that fails for one file, once or permanently. The journal goes on in another file, and a
// snapshot is made of the earlier state. After a crash no promise is missing, and nothing counts as
// synced that may be lost. Over sockets the test checks the law of the turn: no answer is sent
// before the disk has its decision, and a decision that can't be written gets no answer.
//
//   failing_disk_test
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/files.h"
#include "door_options.h"
#include "server/front.h"
#include "state_scene.h"
#include "store/journal_replay.h"
#include "wire.h"

namespace {

using namespace scene;

/** Inode of the failing file; 0: none. */
std::atomic<ino_t> failingInode = 0;
/** Number of further syncs that fail. */
std::atomic<int> syncsThatFail = 0;
/** While true, syncs do not return. */
std::atomic<bool> syncsHang = false;
/** The number of the folder's sync that fails, counted from 1 (0: none), and its error. */
std::atomic<int> failingFolderSync = 0;
std::atomic<int> folderError = EIO;
/** Whether a signal interrupts the next fallocate. */
bool isInterrupted = false;
/** Whether the system refuses new threads. */
bool threadsFail = false;

bool isFailing(int fd) {
  struct stat info;
  return failingInode != 0 && fstat(fd, &info) == 0 && info.st_ino == failingInode;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
ssize_t __real_pwrite(int fd, const void* bytes, size_t length, off_t at);
int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_fallocate(int fd, int mode, off_t from, off_t length);
void __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, void** body, void (*depend)());

ssize_t __wrap_pwrite(int fd, const void* bytes, size_t length, off_t at) {
  if (!isFailing(fd)) return __real_pwrite(fd, bytes, length, at);
  // The write is cut short; the next one fails.
  if (length > 40) return __real_pwrite(fd, bytes, 40, at);
  errno = EIO;
  return -1;
}
int __wrap_fdatasync(int fd) {
  while (syncsHang) usleep(100);
  if (syncsThatFail <= 0 || syncsThatFail-- <= 0) return __real_fdatasync(fd);
  errno = EIO;
  return -1;
}
int __wrap_fsync(int fd) {
  struct stat info;
  const bool isFolder = fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
  if (!isFolder || failingFolderSync <= 0 || --failingFolderSync > 0) return __real_fsync(fd);
  errno = folderError.exchange(EIO);
  return -1;
}
int __wrap_fallocate(int fd, int mode, off_t from, off_t length) {
  if (!std::exchange(isInterrupted, false)) return __real_fallocate(fd, mode, from, length);
  errno = EINTR;
  return -1;
}
void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, void** body, void (*depend)()) {
  if (threadsFail) throw std::system_error(EAGAIN, std::generic_category());
  __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
      self, body, depend);
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

class Stage : public StoredPool {
 public:
  explicit Stage(const StateStoreOptions& options) : StoredPool(options) {
    EXPECT(store().start() == 0);
  }

  Outcome join() {
    Id id;
    return pool().join({}, 0, &id);
  }

  /** Joins a client, and writes the turn. */
  void joinAndCommit() {
    EXPECT(join() == Outcome::kOk);
    EXPECT(end() == Commit::kDone);
  }

  /** Lets time pass until `holds`. */
  void until(const std::function<bool()>& holds) {
    for (int i = 0; i < 2000 && !holds(); ++i) {
      tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (!holds()) fprintf(stderr, "%d: %s\n", store().blocked(), store().snapshotProblem().c_str());
    EXPECT(holds());
  }
};

/** A stage with a folder of its own and a client. */
class BegunStage : public Folder, public Stage {
 public:
  explicit BegunStage(Sync sync = Sync::kNever) : Stage(storeOptions(*this, sync)) {
    joinAndCommit();
  }
};

std::string journalOf(const Folder& folder, uint64_t generation) {
  return folder.file() + ".journal-" + std::to_string(generation);
}

/** Makes the first journal fail. */
void failFirstJournal(const Folder& folder) {
  struct stat info;
  EXPECT(stat(journalOf(folder, 0).c_str(), &info) == 0);
  failingInode = info.st_ino;
}

std::string afterACrash(const Folder& folder) { return AfterACrash(folder).state(); }

/** The server replaces a failing file by another one. */
void aFileThatFails() {
  BegunStage stage;
  const std::string before = stateOf(stage.pool());
  failFirstJournal(stage);
  EXPECT(stage.join() == Outcome::kOk);
  EXPECT(stage.end() == Commit::kNotWritten);
  EXPECT(stage.store().blocked() == EIO);
  EXPECT(stage.join() == Outcome::kStateUnwritable);
  EXPECT(afterACrash(stage) == before);

  stage.until([&] { return stage.store().counts().snapshots == 1; });
  EXPECT(stage.store().blocked() == 0);
  EXPECT(stage.store().counts().generation == 1);
  EXPECT(access(journalOf(stage, 0).c_str(), F_OK) != 0);
  stage.joinAndCommit();
  EXPECT(stage.pool().counts().clients == 3);
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
  failingInode = 0;
}

/** Until the next snapshot the intact part of the failed file counts. */
void aFileThatFailedIsReadAgain() {
  BegunStage stage;
  // In the place of the snapshot: it can't be made.
  EXPECT(mkdir((stage.file() + ".new").c_str(), S_IRWXU) == 0);
  failFirstJournal(stage);
  EXPECT(stage.join() == Outcome::kOk);
  EXPECT(stage.end() == Commit::kNotWritten);
  stage.until([&] { return stage.store().counts().snapshotsFailed == 1; });
  EXPECT(stage.store().counts().generation == 1);
  EXPECT(stage.pool().counts().clients == 2);
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
  failingInode = 0;
}

/** A failed sync may have lost writes, even if the next sync succeeds. */
void aSyncThatFails() {
  BegunStage stage(Sync::kSecond);
  stage.until([&] { return stage.store().counts().unsyncedBytes == 0; });
  syncsThatFail = 1;
  stage.joinAndCommit();
  stage.until([&] { return stage.store().counts().snapshots == 1; });
  EXPECT(syncsThatFail <= 0 && stage.store().blocked() == 0);
  EXPECT(stage.store().counts().generation == 1);
  stage.until([&] { return stage.join() == Outcome::kOk; });
  EXPECT(stage.end() == Commit::kDone);
  stage.until([&] { return stage.store().counts().unsyncedBytes == 0; });
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
}

/** Writes are synced also when the system has no more descriptors. */
void noDescriptor() {
  BegunStage stage(Sync::kSecond);
  stage.until([&] { return stage.store().counts().unsyncedBytes == 0; });
  rlimit before;
  EXPECT(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = dup(STDERR_FILENO);
  EXPECT(close(static_cast<int>(none.rlim_cur)) == 0);
  EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
  stage.joinAndCommit();
  stage.until([&] { return stage.store().counts().unsyncedBytes == 0; });
  EXPECT(stage.store().blocked() == 0);
  EXPECT(setrlimit(RLIMIT_NOFILE, &before) == 0);
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
}

/** While the folder fails too, the server begins one new file, and the next one after a while. */
void aDiskThatFails() {
  BegunStage stage(Sync::kSecond);
  // In the place of the snapshot: it can't be made.
  EXPECT(mkdir((stage.file() + ".new").c_str(), S_IRWXU) == 0);
  syncsThatFail = 1;
  stage.until([&] { return stage.store().counts().snapshotsFailed == 3; });
  EXPECT(stage.store().blocked() == EIO);
  EXPECT(stage.store().counts().generation == 1);
  EXPECT(stage.store().counts().unsyncedBytes > 0);
  EXPECT(stage.join() == Outcome::kStateUnwritable);
  EXPECT(rmdir((stage.file() + ".new").c_str()) == 0);
  stage.until([&] { return stage.store().blocked() == 0; });
  EXPECT(stage.store().counts().generation == 1);
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
}

/** A snapshot whose folder could not be synced is the server's own: the next one replaces it. */
void aFolderThatFails() {
  BegunStage stage;
  // The first sync comes before the snapshot.
  failingFolderSync = 2;
  EXPECT(!stage.store().compactNow().empty());
  EXPECT(failingFolderSync == 0 && std::filesystem::exists(stage.file()));
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
  EXPECT(stage.store().compactNow().empty());
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
}

/** A signal is no disk failure, nor is a file system that can't sync folders. */
void noFailure() {
  const Folder folder;
  isInterrupted = true;
  folderError = EINVAL;
  failingFolderSync = 1;
  Stage stage(storeOptions(folder));
  EXPECT(!isInterrupted && failingFolderSync == 0 && stage.store().blocked() == 0);
}

/** Checks that the server promises nothing that is not in the files, until all is written again. */
void isRescued(BegunStage& stage) {
  stage.until([&] { return stage.store().filesLost(); });
  EXPECT(stage.store().blocked() == ENOENT);
  EXPECT(stage.join() == Outcome::kStateUnwritable);
  EXPECT(stage.store().rescue().empty());
  EXPECT(!stage.store().filesLost() && stage.store().blocked() == 0);
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
  stage.joinAndCommit();
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
  base::MappedFile file;
  EXPECT(file.open(journalOf(stage, stage.store().counts().generation), UINT64_MAX) == 0);
  EXPECT(!provesOnDisk(file.bytes()));  // The file was not synced.
  EXPECT(stage.store().compactNow().empty());
  EXPECT(afterACrash(stage) == stateOf(stage.pool()));
}

/** A removed journal still accepts writes, which are lost: the server begins another one. */
void aFileThatGoes() {
  BegunStage stage;
  EXPECT(unlink(journalOf(stage, 0).c_str()) == 0);
  isRescued(stage);
}

/** The server also begins another journal when its file was replaced. */
void aFileThatIsReplaced() {
  BegunStage stage;
  const std::string copy = stage.file() + ".copy";
  std::filesystem::copy(journalOf(stage, 0), copy);
  std::filesystem::rename(copy, journalOf(stage, 0));
  isRescued(stage);
}

/** The same when the whole folder is removed. Decisions made meanwhile are not forgotten. */
void aFolderThatGoes() {
  BegunStage stage;
  stage.joinAndCommit();
  std::filesystem::remove_all(stage.path());
  stage.until([&] { return stage.store().filesLost(); });
  EXPECT(!stage.store().rescue().empty());
  EXPECT(stage.store().blocked() == ENOENT);
  std::filesystem::create_directory(stage.path());
  isRescued(stage);
  EXPECT(stage.pool().counts().clients == 3);
}

/** A damaged file is detected when a snapshot is made of it. */
void aFileThatIsDamaged() {
  for (const bool isRemoved : {false, true}) {
    BegunStage stage;
    EXPECT(stage.store().compactNow().empty());
    stage.joinAndCommit();
    if (isRemoved) {
      EXPECT(unlink(stage.file().c_str()) == 0 && unlink(journalOf(stage, 1).c_str()) == 0);
    } else {
      EXPECT(truncate(stage.file().c_str(), 100) == 0);
    }
    EXPECT(!stage.store().compactNow().empty());
    EXPECT(access(stage.file().c_str(), F_OK) == (isRemoved ? -1 : 0));
    isRescued(stage);
  }
}

/** A journal may be longer than any state: it is read, and a snapshot is made of it. */
void aJournalThatIsLong() {
  const Folder folder;
  StateStoreOptions options = storeOptions(folder);
  options.stateBytes = 4 << 10;
  for (int run = 0; run < 2; ++run) {
    Stage stage(options);
    while (stage.store().counts().journalBytes < 2 * options.stateBytes) {
      Id id;
      EXPECT(stage.pool().join({}, 0, &id) == Outcome::kOk);
      EXPECT(stage.pool().leave(id) == Outcome::kOk);
      EXPECT(stage.end() == Commit::kDone);
    }
    if (run > 0) EXPECT(stage.store().compactNow().empty());
  }
}

/** A snapshot for which there is no thread is made later. */
void noThread() {
  const Folder folder;
  StateStoreOptions options = storeOptions(folder);
  options.journalBytes = sizeof(JournalBegin) + 1;  // any journal with content
  Stage stage(options);
  threadsFail = true;
  EXPECT(stage.join() == Outcome::kOk);
  stage.until([&] { return stage.store().counts().snapshotsFailed == 1; });
  EXPECT(stage.store().blocked() == 0 && !stage.store().filesLost());
  threadsFail = false;
  stage.joinAndCommit();
  stage.until([&] { return stage.store().counts().snapshots == 1; });
  // No other snapshot may be under way while the files are copied: its files come and go.
  EXPECT(stage.store().counts().generation == 2);
  EXPECT(afterACrash(folder) == stateOf(stage.pool()));
}

/** A start without a thread fails, and leaves no file. */
void noThreadToStartWith() {
  const Folder folder;
  {
    StoredPool pool(storeOptions(folder, Sync::kSecond));
    threadsFail = true;
    EXPECT(pool.store().start() == EAGAIN);
    threadsFail = false;
  }
  EXPECT(std::filesystem::is_empty(folder.path()));
}

/** A server that ends in order closes every file, which matters in a program that goes on. */
void nothingIsLeftOpen() {
  const auto countOpen = [] {
    const auto all = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const Folder folder;
  const auto before = countOpen();
  {
    Stage stage(storeOptions(folder, Sync::kTurn));
    EXPECT(stage.join() == Outcome::kOk);
    (void)stage.end();
    stage.store().stopSyncing();
    EXPECT(stage.join() == Outcome::kOk);
    EXPECT(stage.store().finish().ok());
  }
  EXPECT(countOpen() == before);
}

/**
 * Notes outlive a crash and an end in order, until they are removed. None is taken that can't be
 * written.
 */
void notesAreKept(bool isFinished) {
  using server::Turn, server::TurnEnd;
  const Folder folder;
  const auto begin = [&](Turn* turn) {
    EXPECT(turn->open(storeOptions(folder)).ok() && turn->start([] {}) == 0);
  };
  AddressLimits limits{AddressLimitsOptions{}};
  Pool pool(poolOptions(100), &limits, 0), next(poolOptions(100), &limits, 0);
  Turn turn(&pool), again(&next);
  begin(&turn);
  EXPECT(turn.note("gone", "1") && turn.note("kept", "1") && turn.note("kept", "2"));
  EXPECT(turn.end() == TurnEnd::kSend);
  EXPECT(turn.unnote("gone") && turn.unnote("unknown") && turn.end() == TurnEnd::kSend);
  if (isFinished) {
    EXPECT(turn.finish().ok());
  } else {
    failFirstJournal(folder);
    EXPECT(turn.note("late", "1") && turn.end() == TurnEnd::kDrop && !turn.note("late", "2"));
    failingInode = 0;
  }
  turn.close();
  begin(&again);
  EXPECT(again.notes().size() == 1 && again.notes().at("kept") == "2");
}

/** A publication that the journal can't take is in the state that is written from memory. */
void publicationsAreKept(bool isFinished) {
  using server::Turn, server::TurnEnd, server::Feeds;
  const Folder folder;
  AddressLimits limits{AddressLimitsOptions{}};
  const FeedsOptions options = {.hold = 60, .feeds = 4, .memory = 1 << 20, .watchers = 10};
  struct Run {
    Pool pool;
    Feeds feeds;
    Turn turn{&pool};
  };
  const auto begin = [&](Run* run) {
    std::string key;
    EXPECT(run->turn.open(storeOptions(folder)).ok());
    EXPECT(run->turn.attach(&run->feeds, &key) == Outcome::kOk && run->turn.start([] {}) == 0);
  };
  const auto clock = [] { return uint64_t{0}; };
  Run run{{poolOptions(100), &limits, 0}, {options, 0, clock}};
  Run next{{poolOptions(100), &limits, 0}, {options, 0, clock}};
  begin(&run);
  failFirstJournal(folder);
  uint32_t watching;
  EXPECT(run.feeds.publish({.key = "news", .cursor = {1, 7}, .value = "{}"}, &watching) ==
         Outcome::kOk);
  EXPECT(run.turn.end() == TurnEnd::kDrop && run.feeds.find("news") == nullptr);
  EXPECT(isFinished ? run.turn.finish().ok() : run.turn.rescue().empty());
  failingInode = 0;
  run.turn.close();
  begin(&next);
  EXPECT(next.feeds.find("news") != nullptr && next.feeds.find("news")->cursor.version == 7);
}

// ---- Over sockets -------------------------------------------------------------------------------

using server::test::request;
using server::test::Wire;

/** A front with a state, as in the main process. */
class StatefulFront {
 public:
  StatefulFront(const Folder& folder, Sync sync, uint32_t workers)
      : pool_(poolOptions(100), &limits_, 0),
        turn_(&pool_),
        feeds_({.hold = 30, .feeds = 8, .memory = 1 << 20, .watchers = 8}, 0, EventSet::now),
        front_(test::doorOptions(16, 1000), parts(workers), test::doorReplies(),
               {.ask = {}, .gone = {}, .bodies = {}}, 0) {
    EXPECT(turn_.open(storeOptions(folder, sync)).ok());
    EXPECT(turn_.start([this] { synced_ = true; }) == 0);
    front_.onWaitChange([this](bool whether) { waitsForDisk_ = whether; });
    EXPECT(front_.listen(
               {.address = "127.0.0.1", .port = 0, .backlog = 16, .tls = false, .transient = false},
               &port_) == 0);
  }
  ~StatefulFront() { turn_.store()->stopSyncing(); }

  uint16_t port() const { return port_; }
  uint32_t clients() const { return pool_.counts().clients; }
  bool waitsForDisk() const { return waitsForDisk_; }
  server::Turn& turn() { return turn_; }

  /** Runs the turns of the loop that are due until `holds`. */
  void until(const std::function<bool()>& holds) {
    for (int looks = 0; !holds(); ++looks) {
      EXPECT(looks < 20000);
      pollfd due = {.fd = front_.events()->fd(), .events = POLLIN, .revents = 0};
      if (poll(&due, 1, 1) == 1 && !waitsForDisk_) front_.turn();
      if (synced_.exchange(false)) turn_.onDiskCaughtUp();
    }
  }

  /** Sends a text. Returns the status of the next answer, and its body. */
  std::string answerTo(Wire* wire, const std::string& text, std::string* body) {
    wire->send(text);
    std::string head;
    until([&] { return wire->readAnswer(&head, body); });
    return head.substr(9, 3);
  }

 private:
  FrontParts parts(uint32_t workers) {
    return {.limits = &limits_,
            .feeds = &feeds_,
            .clock = [] { return uint64_t{1'000'000}; },
            .counts = [] { return std::string("{}"); },
            .turn = &turn_,
            .pool = &pool_,
            .workers = workers};
  }

  AddressLimits limits_{AddressLimitsOptions{}};
  Pool pool_;
  Turn turn_;
  Feeds feeds_;
  Front front_;
  std::atomic<bool> synced_ = false;
  bool waitsForDisk_ = false;
  uint16_t port_ = 0;
};

void theDiskIsWaitedFor(uint32_t workers) {
  const Folder folder;
  StatefulFront server(folder, Sync::kTurn, workers);
  Wire wire(server.port());
  std::string id;
  EXPECT(server.answerTo(&wire, request("POST", "/join"), &id) == "201");
  syncsHang = true;
  wire.send(request("POST", "/join"));
  server.until([&] { return server.waitsForDisk(); });
  EXPECT(server.clients() == 2);
  // The disk had only earlier turns.
  server.turn().onDiskCaughtUp();
  EXPECT(server.waitsForDisk() && wire.read().empty());
  syncsHang = false;
  server.until([&] { return wire.read().starts_with("HTTP/1.1 201"); });
}

void whatIsNotSyncedIsNotAnswered(uint32_t workers) {
  const Folder folder;
  StatefulFront server(folder, Sync::kTurn, workers);
  Wire wire(server.port());
  std::string id;
  EXPECT(server.answerTo(&wire, request("POST", "/join"), &id) == "201");
  syncsThatFail = 1;
  wire.send(request("POST", "/join"));
  server.until([&] { return server.waitsForDisk(); });
  server.until([&] {
    server.turn().tick(server::EventSet::now() / 1000, 0);
    EXPECT(wire.read().empty());
    return wire.isClosed();
  });
}

void whatIsNotWrittenIsNotAnswered(uint32_t workers) {
  const Folder folder;
  StatefulFront server(folder, Sync::kNever, workers);
  Wire first(server.port());
  std::string id;
  EXPECT(server.answerTo(&first, request("POST", "/join"), &id) == "201");
  failFirstJournal(folder);
  Wire second(server.port());
  second.send(request("POST", "/join"));
  server.until([&] { return (second.read(), second.isClosed()); });
  EXPECT(second.read().empty());
  // From now on requests get the refusal.
  std::string body;
  EXPECT(server.answerTo(&first, request("POST", "/throw/" + id + "/left", "{}"), &body) == "400");
  failingInode = 0;
  EXPECT(AfterACrash(folder).pool().counts().clients == 1);
}

}  // namespace

int main() {
  aFileThatFails();
  aFileThatFailedIsReadAgain();
  aSyncThatFails();
  noDescriptor();
  aDiskThatFails();
  aFolderThatFails();
  noFailure();
  aFileThatGoes();
  aFileThatIsReplaced();
  aFolderThatGoes();
  aFileThatIsDamaged();
  aJournalThatIsLong();
  noThread();
  noThreadToStartWith();
  nothingIsLeftOpen();
  for (const bool isFinished : {false, true}) {
    notesAreKept(isFinished);
    publicationsAreKept(isFinished);
  }
  for (const uint32_t workers : {0, 1}) {
    theDiskIsWaitedFor(workers);
    whatIsNotSyncedIsNotAnswered(workers);
    whatIsNotWrittenIsNotAnswered(workers);
  }
  printf("failing_disk_test: a file, a sync, a disk; what goes or is damaged; what is answered\n");
  return 0;
}
