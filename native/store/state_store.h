// The state on disk, from one run of the server to the next, however a run ends.
//
//   FILE              the snapshot of generation g: the whole state up to where journal g begins
//   FILE.journal-g    what happened since; sealed when the next one is begun
//   FILE.journal-g+1  … the one that is being written
//   FILE.new          a snapshot that is being made; never read
//
//   loop     ──begin journal g+1──▶ records go there from now on
//   thread     snapshot g + journal g ──▶ a pool of its own ──▶ FILE.new ─rename─▶ FILE (g+1),
//   journal g goes start    snapshot g, then every journal from g on, in order
//
// A crash at any point leaves one whole state. The snapshot says which journals it contains
// (journals below its generation are left over, and are removed), and every journal says where the
// one before it ends. So a snapshot is made by the same code as a start after a crash, in a thread,
// from files that are no longer written. The loop only begins a file, and never waits for the rest.
//
// After a failed read, write or sync (EIO) a file is no longer written. The steps that it has not
// taken go into the next journal, at once and then every ten seconds, and a snapshot is made of all
// steps before. Until then nothing is promised.
//
// Files that were removed, or that can't be read back, are lost. Nothing is promised until the
// whole state is written again, from memory (`rescue`); the store's owner decides when that is
// tried.
//
// Cost: while a snapshot is made, a second pool (some 130 bytes a client, and the waiting sprites)
// and a processor, at a lower priority. Rejected: a walk through the living pool from tick to tick
// (every change to a record that is not written yet has to write it first: work on the hot path,
// and a second way to write a state, which only a crash would test); fork (copies the page tables
// of a million clients while all of them wait, and then a page for every write).
#ifndef SPRITES_STATE_STORE_H_
#define SPRITES_STATE_STORE_H_

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/journal.h"
#include "disk_sync.h"
#include "snapshot.h"
#include "torus/pool.h"

namespace server {

/** When written bytes are synced to the disk. */
enum class Sync : uint8_t { kNever, kSecond, kTurn };

struct StateStoreOptions {
  std::string path;
  uint64_t stateBytes;       // largest snapshot that is read or written
  uint64_t journalBytes;     // size at which a journal is sealed, and a snapshot made
  uint32_t snapshotSeconds;  // age at which it is sealed, too, if it has enough bytes
  Sync sync;
  uint64_t backlogBytes = kMaxJournalBacklog;  // most bytes in memory while the disk accepts none
};

/** What may go out after a turn. */
enum class Commit : uint8_t {
  kDone,        // its answers, and those of ready polls
  kAwaitsDisk,  // nothing before the disk has the turn: see onSynced
  kHoldsBack,   // its answers, since it promised nothing; ready polls wait for the disk
  kNotWritten,  // no answers: it is unknown whether the turn's decisions hold
};

/** The result of a start's reading. */
struct Recovery {
  SnapshotResult snapshot;
  uint64_t journals = 0;
  uint64_t records = 0;
  uint64_t tornBytes = 0;       // bytes cut from the end of the last journal
  uint64_t wholeBytes = 0;      // bytes of the last journal that count
  uint32_t run = 0;             // run of the server that wrote last; 0: not known
  uint64_t nextGeneration = 0;  // the generation of the journal to begin
  std::string file;             // the file that `problem` or `error` is about
  std::string problem;          // why the state is not used, in words; empty when all is well
  int error = 0;                // errno of what failed in the system
  bool doubtful = false;  // its end may be lost, or it is a copy: versions of feeds may have been
                          // used that are not in it

  bool ok() const { return error == 0 && problem.empty(); }
};

struct StateStoreCounts {
  uint64_t generation;       // of the journal that is being written
  uint64_t journalBytes;     // of that journal
  uint64_t batches;          // in that journal
  uint64_t snapshots;        // made since the start
  uint64_t snapshotsFailed;  // tried since the start, and not made
  uint64_t longestWrite;     // microseconds one write took
  uint64_t unsyncedBytes;    // written and not known to be on the disk
  uint64_t backlogBytes;     // in memory, since they could not be written
  uint64_t unsafe;           // milliseconds since all written bytes were on the disk
};

class StateStore {
 public:
  /**
   * Touches no file yet. `pool` and `feedsAndNotes`, which are written with the pool from
   * memory, must outlive the store.
   */
  StateStore(StateStoreOptions options, Pool* pool, const FeedsAndNotes* feedsAndNotes);
  ~StateStore();
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  /**
   * Restores to the pool, which must be new, and to `stored` what the last run has promised. Cuts a
   * torn end from the file. When the result is not ok, both must not be used, and the files are as
   * they were, but for journals that a power cut has emptied.
   */
  Recovery recover(StoredFeedsAndNotes* stored);

  /** Begins the journal of this run: from now on the pool's steps go there. Returns 0 or errno. */
  int start();

  /** Writes the steps of the turn. */
  Commit commit();

  /** Whether with Sync::kTurn something that was committed is not on the disk yet. */
  bool awaitsDisk() const {
    return options_.sync == Sync::kTurn && syncedBytes_ < committedBytes();
  }

  /**
   * Sets the callback for whenever the disk has caught up. It is called in another thread: check
   * awaitsDisk then.
   */
  void onSynced(std::function<void()> onSynced) { onSynced_ = std::move(onSynced); }

  /** Ends the thread that syncs. Call it while the callback of onSynced is still valid. */
  void stopSyncing() { sync_.stop(); }

  /**
   * Retries what failed, and begins syncs and snapshots that are due. Call it every
   * kTickMilliseconds.
   */
  void tick(uint64_t now);

  /** Returns whether nothing waits to be written, synced or retried. */
  bool isQuiet() const;

  /**
   * Returns errno of the failure because of which nothing is promised; ETIMEDOUT: a slow disk; 0:
   * no failure.
   */
  int blocked() const;

  /** Returns whether the files on the disk would be useless after a crash. */
  bool filesLost() const { return filesLost_; }

  /**
   * Writes the whole state from memory and begins a new journal. The loop stands still for it. Call
   * it only while no other process can have a state at this path. Returns what went wrong, or
   * nothing.
   */
  std::string rescue();

  /** Ends a run in order: one snapshot, no journal. After a failure the journal is still there. */
  SnapshotResult finish();

  StateStoreCounts counts() const;

  /** Why the last snapshot was not made; empty when it was. */
  const std::string& snapshotProblem() const { return snapshotProblem_; }

  Journal* journal() { return &journal_; }

  /** Makes a snapshot now and waits for it: for tests. Returns what went wrong, or nothing. */
  std::string compactNow();

 private:
  std::string journalPath(uint64_t generation) const;
  std::vector<uint64_t> journalsOnDisk(int* error) const;
  Recovery readFiles(Pool* pool, StoredFeedsAndNotes* stored, uint64_t upTo,
                     uint64_t lastBytes) const;
  void removeJournalsBelow(uint64_t generation) const;
  int openJournal(uint64_t generation, uint64_t previous);
  int flush();
  bool rotate();
  std::string compact(uint64_t upTo, uint64_t sealedBytes);
  void beginCompaction();
  void endCompaction();
  void requestSync();
  bool hasJournalFile() const;
  void updatePromises();

  /**
   * Whether a file has failed, so that a new file and a snapshot of all steps before are needed.
   */
  bool hasFailedFile() const { return journal_.blocked() == EIO || syncError_ != 0; }

  /** Bytes written in this run, of all its journals. */
  uint64_t committedBytes() const { return earlierBytes_ + journal_.bytes(); }
  /** Bytes of the open journal that are known to be on the disk. */
  uint64_t syncedInJournal() const {
    const uint64_t synced = syncedBytes_;
    return synced > earlierBytes_ ? synced - earlierBytes_ : 0;
  }

  const StateStoreOptions options_;
  const uint32_t run_;
  Pool* const pool_;
  const FeedsAndNotes* const feedsAndNotes_;
  Journal journal_;
  uint64_t generation_ = 0;                          // of the journal that is being written
  uint64_t previousBytes_ = 0;                       // bytes of the journal before it that count
  uint64_t snapshotGeneration_ = 0;                  // of the snapshot that was found
  Replaceable replaceable_ = Replaceable::kNothing;  // what a snapshot may replace at the path
  uint64_t now_ = 0;                                 // milliseconds, of the last tick
  uint64_t journalBegunAt_ = 0;                      // milliseconds, of the journal
  uint64_t retryAt_ = 0;                             // milliseconds: no snapshot is tried before
  uint64_t syncRequestedAt_ = 0;                     // milliseconds, of the last sync request
  uint64_t checkedAt_ = 0;  // milliseconds, of the last check that the file is there
  uint64_t longestWrite_ = 0;
  uint64_t snapshots_ = 0;
  uint64_t snapshotsFailed_ = 0;

  uint64_t compactingTo_ = 0;  // journals below this one go into the snapshot
  std::thread compactor_;
  std::atomic<bool> isCompacting_ = false;
  std::string compactionProblem_;  // what went wrong; the thread's while it runs
  bool wasUnreadable_ = false;     // whether that was the reading; the thread's while it runs
  bool filesLost_ = false;         // a file is gone, or can't be read
  std::string snapshotProblem_;

  std::function<void()> onSynced_;
  uint64_t earlierBytes_ = 0;              // bytes of the journals of this run before the open one
  std::atomic<uint64_t> syncedBytes_ = 0;  // bytes of this run that are on the disk
  std::atomic<uint64_t> safeAt_ = 0;       // milliseconds: all bytes from before are on the disk
  std::atomic<int> syncError_ = 0;         // errno of a failed sync, until a snapshot has all steps
  std::atomic<uint64_t> unsafeFile_ = 0;   // the newest journal that a sync has failed for
  DiskSync sync_;                          // last: its thread ends before anything it uses
};

}  // namespace server

#endif  // SPRITES_STATE_STORE_H_
