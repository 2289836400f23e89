#include "state_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "journal_replay.h"

namespace server {

namespace {

constexpr char kJournalMark[] = ".journal-";

/** Fewest bytes of a journal that are a reason for a snapshot, however old the journal is. */
constexpr uint64_t kLeastForSnapshot = 64 << 10;

/** Milliseconds until a failed snapshot is tried again. */
constexpr uint64_t kSnapshotRetry = 10000;

/** Milliseconds between two syncs with Sync::kSecond. */
constexpr uint64_t kSyncEvery = 1000;

/** Milliseconds between two checks that the journal is still there. */
constexpr uint64_t kCheckEvery = 500;

/** Milliseconds a sync may take before the disk counts as too slow to promise anything. */
constexpr uint64_t kSlowSync = 5000;

/** Priority of the thread that makes snapshots: it uses what the loop leaves over. */
constexpr int kNice = 10;

uint64_t microseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * uint64_t{1000000} + now.tv_nsec / 1000;
}

std::string nameOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

/** Says in words what is wrong with a file: its problem, or the text of errno. */
std::string describeProblem(const std::string& file, int error, const std::string& problem) {
  return file + ": " + (problem.empty() ? strerror(error) : problem);
}

/** Returns a number for a run of the server that no other run has: never 0. */
uint32_t newRunNumber() {
  uint32_t number;
  do {
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
  } while (number == 0);
  return number;
}

/** One journal file on the disk: a sealed one, or the last. */
struct JournalFile {
  uint64_t generation;
  std::string path;
  base::MappedFile file;
  JournalHeader header;
  JournalOrigin origin;
};

/** Returns the machine's boot id; empty where there is none. */
std::string readBootId() {
  char text[sizeof(JournalOrigin::boot)] = {};
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t length = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return {text, length > 0 ? static_cast<size_t>(length) : 0};
}

/** Returns whether the machine was restarted since a journal was begun, or may have been. */
bool isOfOtherBoot(const JournalFile& journal) {
  const std::string bootId = readBootId();
  return bootId.empty() || memcmp(bootId.c_str(), journal.origin.boot, bootId.size() + 1) != 0;
}

/**
 * Returns whether a journal may be a copy. A copy that was written into the original file is not
 * noticed.
 */
bool mayBeCopy(const JournalFile& journal) {
  struct stat info;
  return journal.header.version < kWithFeeds || stat(journal.path.c_str(), &info) != 0 ||
         info.st_ino != journal.origin.inode;
}

/**
 * Returns whether the run of a journal may have shown more to clients than is in it: the machine
 * has lost bytes that were not on the disk, or the file is a copy.
 */
bool mayBeIncomplete(const JournalFile& journal) {
  return mayBeCopy(journal) || (journal.origin.synced != 1 && isOfOtherBoot(journal));
}

/**
 * Returns whether a journal older than the snapshot is from a backup during which a new snapshot
 * was made: the journal after that snapshot is missing. A killed process leaves the original file,
 * not a copy.
 */
bool isOfBackup(JournalFile* journal) {
  return journal->file.open(journal->path, UINT64_MAX) != 0 ||
         !readJournalHeader(journal->file.bytes(), &journal->header, &journal->origin).empty() ||
         mayBeCopy(*journal);
}

/**
 * Returns whether a journal says nothing, since its header was never on the disk: a crash came
 * between making and writing the file, or a power cut took the header, also from a longer file.
 */
bool lacksHeader(std::string_view bytes) {
  if (bytes.size() < sizeof(JournalBegin)) return true;
  const bool isZero = bytes.substr(0, sizeof(JournalBegin)).find_first_not_of('\0') == bytes.npos;
  return isZero && !provesOnDisk(bytes);
}

/**
 * Returns whether a power cut may have taken any part of a journal: nothing of it is known to have
 * been on the disk.
 */
bool mayBeLost(const JournalFile& journal) {
  return isOfOtherBoot(journal) && !provesOnDisk(journal.file.bytes());
}

/**
 * Returns how many journals count: the journals before the first one without a header. If a later
 * journal knows that it was on the disk, all count: the one without a header is damaged.
 */
size_t countWithHeader(std::vector<JournalFile>* journals) {
  const auto lacks = [](const JournalFile& one) { return lacksHeader(one.file.bytes()); };
  const auto first = std::find_if(journals->begin(), journals->end(), lacks);
  const bool all = std::all_of(first, journals->end(), [&](JournalFile& one) {
    return lacks(one) || (readJournalHeader(one.file.bytes(), &one.header, &one.origin).empty() &&
                          mayBeLost(one));
  });
  return all ? first - journals->begin() : journals->size();
}

/**
 * Drops the journals that continue one whose end a power cut has taken, and removes their files:
 * the system may write a later file first. Files are synced in their order, so the server never
 * knew that these journals were on the disk, and no batch says so; else the journal before is
 * damaged. Adds their bytes to `dropped`. Returns 0 or errno.
 */
int dropAfterLostEnd(std::vector<JournalFile>* journals, uint64_t* dropped) {
  size_t keptJournals = journals->size();
  while (keptJournals > 0 && mayBeLost((*journals)[keptJournals - 1])) --keptJournals;
  // None of these journals is known to have been on the disk, and the journal before them may lack
  // its end.
  for (size_t next = std::max<size_t>(1, keptJournals); next < journals->size(); ++next) {
    if (isWholeTo((*journals)[next - 1].file.bytes(), (*journals)[next].header.previous)) continue;
    for (; journals->size() > next; journals->pop_back()) {
      *dropped += journals->back().file.bytes().size();
      if (unlink(journals->back().path.c_str()) != 0) return errno;
    }
  }
  return 0;
}

/** Syncs a file to the disk. Returns 0 or errno. */
int syncFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = fdatasync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

}  // namespace

StateStore::StateStore(StateStoreOptions options, Pool* pool, const FeedsAndNotes* feedsAndNotes)
    : options_(std::move(options)),
      run_(newRunNumber()),
      pool_(pool),
      feedsAndNotes_(feedsAndNotes),
      journal_(run_, options_.backlogBytes) {}

StateStore::~StateStore() {
  if (compactor_.joinable()) compactor_.join();
  sync_.stop();
  pool_->keepJournal(nullptr);
  // A failed start leaves no file.
  const bool empty = journal_.isOpen() && journal_.batches() == 0 && !journal_.pending();
  if (empty && hasJournalFile()) unlink(journalPath(generation_).c_str());
}

std::string StateStore::journalPath(uint64_t generation) const {
  return options_.path + kJournalMark + std::to_string(generation);
}

/** Returns the generations of the journals on the disk, in rising order. */
std::vector<uint64_t> StateStore::journalsOnDisk(int* error) const {
  std::vector<uint64_t> found;
  DIR* const directory = opendir(base::directoryOf(options_.path).c_str());
  *error = directory == nullptr ? errno : 0;
  if (directory == nullptr) return found;
  const std::string prefix = nameOf(options_.path) + kJournalMark;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    const std::string_view digits = name.substr(prefix.size());
    uint64_t generation;
    const auto [end, bad] = std::from_chars(digits.begin(), digits.end(), generation);
    if (bad == std::errc() && end == digits.end()) found.push_back(generation);
  }
  closedir(directory);
  std::sort(found.begin(), found.end());
  return found;
}

// ---- Reading ------------------------------------------------------------------------------------

/**
 * Restores `pool` and `stored` as of the end of the journals below `upTo`. `lastBytes`: how many
 * bytes of the last one count; UINT64_MAX: it may have a torn end, which is cut from the file.
 */
Recovery StateStore::readFiles(Pool* pool, StoredFeedsAndNotes* stored, uint64_t upTo,
                               uint64_t lastBytes) const {
  const bool mayTruncate = lastBytes == UINT64_MAX;
  Recovery recovery;
  const auto fail = [&](const std::string& file, int error, std::string problem) {
    recovery.file = file;
    recovery.error = error;
    recovery.problem = std::move(problem);
    return recovery;
  };
  recovery.snapshot = Snapshot::load(pool, stored, options_.path, options_.stateBytes);
  const bool isNew = recovery.snapshot.error == ENOENT;
  if (isNew) recovery.snapshot = {};
  if (!recovery.snapshot.ok()) {
    return fail(options_.path, recovery.snapshot.error, recovery.snapshot.problem);
  }
  recovery.nextGeneration = recovery.snapshot.generation;
  recovery.run = recovery.snapshot.run;

  int error;
  std::vector<JournalFile> journals;
  bool hasBackupJournals = false;
  for (const uint64_t generation : journalsOnDisk(&error)) {
    JournalFile one = {generation, journalPath(generation), {}, {}, {}};
    if (generation < recovery.snapshot.generation) {
      hasBackupJournals = hasBackupJournals || isOfBackup(&one);
      continue;
    }
    if (generation >= upTo) continue;
    // A journal may have any length: only the state that it leads to is bounded.
    if (const int failed = one.file.open(one.path, UINT64_MAX)) {
      const bool isFile = failed != EINVAL;
      return fail(one.path, isFile ? failed : 0, isFile ? "" : "it is no regular file");
    }
    journals.push_back(std::move(one));
  }
  if (error != 0) return fail(options_.path, error, "");
  recovery.doubtful = hasBackupJournals && journals.empty();
  const size_t countedJournals = mayTruncate ? countWithHeader(&journals) : journals.size();
  while (journals.size() > countedJournals) {
    recovery.tornBytes += journals.back().file.bytes().size();
    // The journal's process may have shown its contents to clients.
    recovery.doubtful = true;
    if (unlink(journals.back().path.c_str()) != 0) return fail(journals.back().path, errno, "");
    journals.pop_back();
  }
  for (JournalFile& one : journals) {
    std::string problem = readJournalHeader(one.file.bytes(), &one.header, &one.origin);
    if (problem.empty() && one.header.generation != one.generation) {
      problem = "it is the journal of generation " + std::to_string(one.header.generation);
    }
    if (problem.empty() && one.generation != recovery.nextGeneration) {
      problem = "it goes on from " + journalPath(recovery.nextGeneration) + ", which is not there";
    }
    if (!problem.empty()) return fail(one.path, 0, problem);
    ++recovery.nextGeneration;
  }
  if (mayTruncate) {
    const size_t all = journals.size();
    error = dropAfterLostEnd(&journals, &recovery.tornBytes);
    if (error != 0) return fail(journals.back().path, error, "");
    recovery.nextGeneration -= all - journals.size();
  }
  for (size_t i = 0; i < journals.size(); ++i) {
    const bool isLast = i + 1 == journals.size();
    const uint64_t countedBytes = isLast ? lastBytes : journals[i + 1].header.previous;
    const ReplayResult result = replayJournal(journals[i].file.bytes(), countedBytes, pool, stored);
    if (!result.problem.empty()) return fail(journals[i].path, 0, result.problem);
    ++recovery.journals;
    // A run that has written nothing does not count. Neither does a run of this version, if an
    // earlier version's files beside the state have outlived it: it ended while it took them over.
    const bool isRun = result.batches > 0 && journals[i].header.version < kWithFeeds;
    if (isRun) recovery.run = journals[i].header.run;
    recovery.doubtful = recovery.doubtful || mayBeIncomplete(journals[i]);
    recovery.records += result.records;
    recovery.tornBytes += result.tornBytes;
    recovery.wholeBytes = result.wholeBytes;
    if (isLast && result.tornBytes > 0 &&
        truncate(journals[i].path.c_str(), static_cast<off_t>(result.wholeBytes)) != 0) {
      return fail(journals[i].path, errno, "");
    }
  }
  if (recovery.journals > 0) finishReplay(pool);
  return recovery;
}

Recovery StateStore::recover(StoredFeedsAndNotes* stored) {
  Recovery recovery = readFiles(pool_, stored, UINT64_MAX, UINT64_MAX);
  generation_ = recovery.nextGeneration;
  previousBytes_ = recovery.wholeBytes;
  snapshotGeneration_ = recovery.snapshot.generation;
  replaceable_ = recovery.snapshot.bytes > 0 ? Replaceable::kOwn : Replaceable::kNothing;
  return recovery;
}

// ---- Writing ------------------------------------------------------------------------------------

void StateStore::removeJournalsBelow(uint64_t generation) const {
  int error;
  for (const uint64_t one : journalsOnDisk(&error)) {
    if (one < generation) unlink(journalPath(one).c_str());
  }
}

int StateStore::openJournal(uint64_t generation, uint64_t previous) {
  JournalOrigin origin = {
      .boot = {}, .inode = 0, .synced = options_.sync == Sync::kTurn ? 1U : 0U, .checksum = 0};
  const std::string bootId = readBootId();
  memcpy(origin.boot, bootId.data(), std::min(bootId.size(), sizeof origin.boot));
  return journal_.open(journalPath(generation), generation, previous, origin);
}

/** Allows promises while they can be written. */
void StateStore::updatePromises() {
  const bool taken = blocked() == 0;
  journal_.setPromising(taken);
  pool_->takePromises(taken);
}

int StateStore::start() {
  // A crash has left these journals over after the snapshot that contains them, perhaps before the
  // snapshot's name was on the disk.
  if (const int error = base::syncDirectoryOf(options_.path)) return error;
  removeJournalsBelow(snapshotGeneration_);
  // A killed process has left these journals to the system. After a power cut this run's journal
  // must not go on from more than the disk has.
  for (uint64_t left = snapshotGeneration_; left < generation_; ++left) {
    if (const int error = syncFile(journalPath(left))) return error;
  }
  if (const int error = openJournal(generation_, previousBytes_)) return error;
  if (const int error = base::syncDirectoryOf(options_.path)) return error;
  pool_->keepJournal(&journal_);
  // A disk without room for one turn is noticed at once.
  updatePromises();
  if (options_.sync != Sync::kNever) {
    if (const int error = sync_.start()) return error;
    requestSync();
  }
  return 0;
}

Commit StateStore::commit() {
  const bool promised = pool_->promising();
  // While a batch is stuck, nothing is promised and nothing new is delivered. Acks and leaves wait
  // in memory, and refusals are answered. The tick tries again.
  if (journal_.pending() && !journal_.isStuck() && flush() != 0) return Commit::kNotWritten;
  if (!awaitsDisk()) return Commit::kDone;
  return promised ? Commit::kAwaitsDisk : Commit::kHoldsBack;
}

/** Writes the batch. Returns 0 or errno: then the batch is kept, and its answers are held back. */
int StateStore::flush() {
  const uint64_t before = microseconds();
  const uint64_t bytes = committedBytes();
  int error = journal_.write(syncedInJournal());
  if (error == 0) pool_->releaseHeldBack();
  // Clients that catch up add steps of their own.
  if (error == 0 && journal_.pending()) error = journal_.write(syncedInJournal());
  longestWrite_ = std::max(longestWrite_, microseconds() - before);
  journal_.forEachStuck([this](const JournalRecord& record) {
    const bool hasLanded =
        (record.step == JournalStep::kCrossIn || record.step == JournalStep::kTurnBack) &&
        record.record != kNoLanding;
    if (record.step == JournalStep::kThrow || record.step == JournalStep::kFly) {
      pool_->holdBackSprites(record.other);
    } else if (record.step == JournalStep::kMoveUp || hasLanded) {
      pool_->holdBackSprites(record.record);
    }
  });
  if (options_.sync == Sync::kTurn && committedBytes() > bytes) requestSync();
  updatePromises();
  return error;
}

/** Requests a sync of all bytes in the file. */
void StateStore::requestSync() {
  const uint64_t upTo = committedBytes();
  syncRequestedAt_ = now_;
  sync_.requestSync(generation_, journal_.file(),
                    [this, upTo, requestedAt = now_, generation = generation_](int error) {
                      // After a failed sync the system may have dropped the pages, and the next
                      // sync reports success. So nothing counts as synced until a snapshot has it.
                      // Files are synced in their order.
                      if (error != 0) {
                        unsafeFile_ = generation;
                        syncError_ = error;
                      } else if (syncError_ == 0) {
                        syncedBytes_ = upTo;
                        safeAt_ = requestedAt;
                      }
                      if (onSynced_) onSynced_();
                    });
}

/** Returns whether a start would find the journal: bytes in a file without a name are lost. */
bool StateStore::hasJournalFile() const {
  struct stat named;
  struct stat open;
  if (stat(journalPath(generation_).c_str(), &named) != 0) {
    return errno != ENOENT && errno != ENOTDIR;
  }
  return fstat(*journal_.file(), &open) != 0 ||
         (named.st_dev == open.st_dev && named.st_ino == open.st_ino);
}

int StateStore::blocked() const {
  if (filesLost_) return ENOENT;
  if (const int error = journal_.blocked()) return error;
  if (const int error = syncError_) return error;
  const uint64_t since = sync_.busySince();
  return since != 0 && syncClock() > since + kSlowSync ? ETIMEDOUT : 0;
}

void StateStore::tick(uint64_t now) {
  now_ = now;
  if (!journal_.isOpen()) return;
  if (journalBegunAt_ == 0) journalBegunAt_ = now;
  if (committedBytes() <= syncedBytes_) safeAt_ = now;
  if (journal_.pending() || journal_.blocked() != 0 || pool_->isHoldingBack()) (void)flush();
  updatePromises();
  if (options_.sync != Sync::kNever && committedBytes() > syncedBytes_ &&
      now >= syncRequestedAt_ + kSyncEvery && sync_.busySince() == 0) {
    requestSync();
  }
  if (compactor_.joinable() && !isCompacting_.load(std::memory_order_acquire)) endCompaction();
  if (now >= checkedAt_ + kCheckEvery) {
    checkedAt_ = now;
    filesLost_ = filesLost_ || !hasJournalFile();
  }
  if (filesLost_) return updatePromises();
  const bool isDue = journal_.bytes() >= options_.journalBytes ||
                     (journal_.bytes() >= kLeastForSnapshot &&
                      now >= journalBegunAt_ + options_.snapshotSeconds * uint64_t{1000});
  if (!(isDue || hasFailedFile()) || now < retryAt_ || compactor_.joinable()) return;
  // After a failure a journal is left for a new one only if its own file has failed.
  const bool isJournalSound =
      hasFailedFile() && journal_.blocked() != EIO && unsafeFile_ != generation_;
  if (isJournalSound || rotate()) beginCompaction();
}

bool StateStore::isQuiet() const {
  const bool isSafe = options_.sync == Sync::kNever || committedBytes() <= syncedBytes_;
  const bool isBusy = journal_.pending() || compactor_.joinable() || sync_.busySince() != 0;
  return isSafe && !isBusy && blocked() == 0 && !hasFailedFile() && !pool_->isHoldingBack();
}

/**
 * Seals the journal and begins the next one. The batch that a failing file has not taken whole goes
 * into the new one.
 */
bool StateStore::rotate() {
  if (flush() != 0 && journal_.blocked() != EIO) return false;
  if (options_.sync != Sync::kNever) requestSync();
  const uint64_t sealedBytes = journal_.bytes();
  if (const int error = openJournal(generation_ + 1, sealedBytes)) {
    snapshotProblem_ = journalPath(generation_ + 1) + ": " + strerror(error);
    ++snapshotsFailed_;
    retryAt_ = now_ + kSnapshotRetry;
    return false;
  }
  earlierBytes_ += sealedBytes;
  previousBytes_ = sealedBytes;
  ++generation_;
  journalBegunAt_ = now_;
  if (journal_.pending()) (void)flush();
  return true;
}

// ---- Snapshots ----------------------------------------------------------------------------------

/**
 * Makes the snapshot of all steps before journal `upTo`, which include `sealedBytes` of the journal
 * before it. Returns what went wrong, or nothing.
 */
std::string StateStore::compact(uint64_t upTo, uint64_t sealedBytes) {
  wasUnreadable_ = false;
  // After a crash the new journal must be found, before the journals that it continues are removed.
  if (const int error = base::syncDirectoryOf(options_.path)) return strerror(error);
  Pool pool(pool_->options(), nullptr, 0);
  StoredFeedsAndNotes stored;
  const Recovery recovery = readFiles(&pool, &stored, upTo, sealedBytes);
  if (!recovery.ok()) {
    wasUnreadable_ = recovery.error == 0 || recovery.error == ENOENT || recovery.error == EIO;
    return describeProblem(recovery.file, recovery.error, recovery.problem);
  }
  if (recovery.nextGeneration != upTo) {
    wasUnreadable_ = true;
    return journalPath(recovery.nextGeneration) + ": it is not there";
  }
  const SnapshotResult saved =
      Snapshot::save(pool, stored, options_.path, options_.stateBytes, {upTo, run_, replaceable_});
  // The snapshot is in place, even if its directory could not be synced.
  if (saved.generation == upTo) replaceable_ = Replaceable::kOwn;
  if (!saved.ok()) return describeProblem(options_.path, saved.error, saved.problem);
  removeJournalsBelow(upTo);
  return {};
}

void StateStore::beginCompaction() {
  isCompacting_.store(true, std::memory_order_release);
  compactingTo_ = generation_;
  const auto run = [this, upTo = generation_, sealedBytes = previousBytes_] {
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
    try {
      compactionProblem_ = compact(upTo, sealedBytes);
    } catch (const std::bad_alloc&) {
      compactionProblem_ = "no memory for a second pool";
    }
    isCompacting_.store(false, std::memory_order_release);
  };
  try {
    compactor_ = std::thread(run);
  } catch (const std::system_error&) {
    compactionProblem_ = "no thread for it";
    wasUnreadable_ = false;
    endCompaction();
  }
}

void StateStore::endCompaction() {
  if (compactor_.joinable()) compactor_.join();
  snapshotProblem_ = std::move(compactionProblem_);
  if (snapshotProblem_.empty()) {
    ++snapshots_;
    const int error = syncError_.exchange(0);
    if (error != 0 && unsafeFile_ >= compactingTo_) syncError_ = error;
  } else {
    ++snapshotsFailed_;
    retryAt_ = now_ + kSnapshotRetry;
    filesLost_ = filesLost_ || wasUnreadable_;
  }
}

std::string StateStore::rescue() {
  if (compactor_.joinable()) endCompaction();
  const uint64_t next = generation_ + 1;
  // A file there belongs to no server: the new state goes on in a file of its own.
  if (unlink(journalPath(next).c_str()) != 0 && errno != ENOENT) return strerror(errno);
  const SnapshotResult saved = Snapshot::save(*pool_, *feedsAndNotes_, options_.path,
                                              options_.stateBytes, {next, run_, Replaceable::kOwn});
  if (!saved.ok()) return describeProblem(options_.path, saved.error, saved.problem);
  // The snapshot has the steps that the old file has not taken.
  journal_.discardPending();
  const uint64_t sealedBytes = journal_.bytes();
  if (const int error = openJournal(next, 0)) {
    return journalPath(next) + ": " + strerror(error);
  }
  earlierBytes_ += sealedBytes;
  generation_ = next;
  journalBegunAt_ = now_;
  removeJournalsBelow(next);
  if (const int error = base::syncDirectoryOf(options_.path)) return strerror(error);
  syncedBytes_ = earlierBytes_;
  syncError_ = 0;
  filesLost_ = false;
  // The new journal is not on the disk yet.
  if (options_.sync != Sync::kNever) requestSync();
  replaceable_ = Replaceable::kOwn;
  ++snapshots_;
  snapshotProblem_.clear();
  pool_->releaseHeldBack();
  updatePromises();
  return {};
}

std::string StateStore::compactNow() {
  if (compactor_.joinable()) endCompaction();
  if (!rotate()) return snapshotProblem_;
  compactionProblem_ = compact(generation_, previousBytes_);
  filesLost_ = filesLost_ || wasUnreadable_;
  updatePromises();
  return compactionProblem_;
}

SnapshotResult StateStore::finish() {
  if (compactor_.joinable()) endCompaction();
  // Steps that can't be written any more are in the snapshot, or were never promised.
  if (flush() != 0) pool_->keepJournal(nullptr);
  pool_->freeAllLeaving();
  (void)flush();
  SnapshotResult result =
      Snapshot::save(*pool_, *feedsAndNotes_, options_.path, options_.stateBytes,
                     {generation_ + 1, run_, replaceable_});
  if (result.ok()) {
    pool_->keepJournal(nullptr);
    journal_.close();
    removeJournalsBelow(generation_ + 1);
  }
  return result;
}

StateStoreCounts StateStore::counts() const {
  const uint64_t unsynced = committedBytes() - std::min(committedBytes(), syncedBytes_.load());
  return {.generation = generation_,
          .journalBytes = journal_.bytes(),
          .batches = journal_.batches(),
          .snapshots = snapshots_,
          .snapshotsFailed = snapshotsFailed_,
          .longestWrite = longestWrite_,
          .unsyncedBytes = unsynced,
          .backlogBytes = journal_.stuckBytes(),
          .unsafe = unsynced == 0 ? 0 : now_ - std::min(now_, safeAt_.load())};
}

}  // namespace server
