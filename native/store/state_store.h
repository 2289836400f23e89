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
// A crash at any point leaves one whole state: the snapshot says which journals it has in it
// already (those below its generation are left over, and are removed), and every journal says where
// the one before it ends. So making a snapshot is the same code as starting after a crash, on files
// that are not written any more, in a thread: the loop does nothing but begin a file, and never
// waits for the rest.
//
// After a failed read, write or sync (EIO) a file is not written any more: what it has not taken
// goes into the next journal, at once and then every ten seconds, and a snapshot is made of what
// was before; until then nothing is promised.
//
// Files that are taken away, or that can't be read back, are lost: nothing is promised until
// the whole state was written anew, from memory (`rescue`); its owner says when that is tried.
//
// Cost: while a snapshot is made, a second pool, some 130 bytes a client and what waits in the
// mailboxes; one processor for it, at a lower priority. Rejected: walking through the living pool
// from tick to tick (every change to a record that has not been written yet has to write it first:
// work on the hot path, and a second way to write a state, which a crash would test and nothing
// else); fork (copies the page tables of a million clients while all of them wait, and then a page
// for every write).
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

/** When what was written must be on the disk, too. */
enum class Sync : uint8_t { kNever, kSecond, kTurn };

struct StateStoreOptions {
  std::string path;
  uint64_t stateBytes;       // largest snapshot that is read or written
  uint64_t journalBytes;     // a journal of so many bytes is sealed, and a snapshot is made
  uint32_t snapshotSeconds;  // so is one of this age, if anything is in it
  Sync sync;
  uint64_t backlogBytes = kJournalBacklog;  // may wait in memory while the disk takes none
};

/** What became of a turn. */
enum class Commit : uint8_t {
  kDone,        // its answers may go out, and what is ready
  kAwaitsDisk,  // not before the disk has it: onSynced tells
  kHoldsBack,   // its answers may, nothing was promised; what is ready waits for the disk
  kNotWritten,  // none may: it is unknown whether what was decided holds
};

/** What a start found. */
struct Recovery {
  SnapshotResult snapshot;
  uint64_t journals = 0;
  uint64_t records = 0;
  uint64_t torn = 0;      // bytes cut from the end of the last journal
  uint64_t whole = 0;     // bytes of the last journal that count
  uint32_t run = 0;       // of the server that has written the last of it; 0: not known
  uint64_t next = 0;      // the generation of the journal to begin
  std::string file;       // the one that `problem` or `error` is about
  std::string problem;    // why the state is not used, for a person; empty when all is well
  int error = 0;          // errno of what failed in the system
  bool doubtful = false;  // the last of it may be lost, or it is a copy: versions of feeds may have
                          // been used that are not in it

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
  uint64_t backlogBytes;     // in memory, because they could not be written
  uint64_t unsafe;           // milliseconds since all that was written before was on the disk
};

class StateStore {
 public:
  /**
   * Touches nothing yet. `pool` outlives the store, and so does `beside`: what is to be written
   * with the pool from memory.
   */
  StateStore(StateStoreOptions options, Pool* pool, const Keepers* beside);
  ~StateStore();
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  /**
   * Brings the pool, which must be new, and `shelf` to where the last run has promised to be. A
   * torn end is cut from the file. When the result is not ok both are good for nothing, and the
   * files are as they were.
   */
  Recovery recover(Shelf* shelf);

  /** Begins the journal of this run: from now on the pool's steps go there. Returns 0 or errno. */
  int start();

  /** Writes what the turn has added. */
  Commit commit();

  /** Whether with Sync::kTurn something that was committed is not on the disk yet. */
  bool awaitsDisk() const { return options_.sync == Sync::kTurn && synced_ < committed(); }

  /** Called in another thread whenever the disk has caught up: look at awaitsDisk then. */
  void onSynced(std::function<void()> notify) { notify_ = std::move(notify); }

  /** Ends the thread that syncs, before what onSynced calls goes. */
  void stopSyncing() { sync_.stop(); }

  /** To be called every kTickMilliseconds: tries again what failed, begins what is due. */
  void tick(uint64_t now);

  /** Whether nothing waits to be written, synced or tried again. */
  bool isQuiet() const;

  /** errno of the failure for which nothing is promised, ETIMEDOUT for a slow disk; 0: no failure.
   */
  int blocked() const;

  /** Whether what is on the disk would be of no use after a crash. */
  bool lost() const { return lost_; }

  /**
   * Writes the whole state from memory and begins a new journal: the loop stands still for it. Only
   * while no other process can have a state in this place. Returns what went wrong, or nothing.
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
  Recovery read(Pool* pool, Shelf* shelf, uint64_t upTo, uint64_t count) const;
  void removeJournalsBelow(uint64_t generation) const;
  int openJournal(uint64_t generation, uint64_t previous);
  int flush();
  bool rotate();
  std::string compact(uint64_t upTo, uint64_t whole);
  void beginCompaction();
  void endCompaction();
  void requestSync();
  bool isThere() const;
  void takePromises();

  /** Whether a file has failed so that a new file and a snapshot of what was before are needed. */
  bool failed() const { return journal_.blocked() == EIO || syncError_ != 0; }

  /** Bytes written in this run, of all its journals. */
  uint64_t committed() const { return earlier_ + journal_.bytes(); }
  /** Bytes of the open journal that are known to be on the disk. */
  uint64_t syncedHere() const {
    const uint64_t synced = synced_;
    return synced > earlier_ ? synced - earlier_ : 0;
  }

  const StateStoreOptions options_;
  const uint32_t run_;
  Pool* const pool_;
  const Keepers* const beside_;
  Journal journal_;
  uint64_t generation_ = 0;              // of the journal that is being written
  uint64_t lastWhole_ = 0;               // bytes that count of the journal before it
  uint64_t snapshotGeneration_ = 0;      // of the snapshot that was found
  Replace replace_ = Replace::kNothing;  // what may lie at the path
  uint64_t now_ = 0;                     // milliseconds, of the last tick
  uint64_t begunAt_ = 0;                 // milliseconds, of the journal
  uint64_t retryAt_ = 0;                 // milliseconds: no snapshot is tried before
  uint64_t syncedAt_ = 0;                // milliseconds: when the last sync was asked for
  uint64_t lookedAt_ = 0;                // milliseconds: when it was seen whether the file is there
  uint64_t longestWrite_ = 0;
  uint64_t snapshots_ = 0;
  uint64_t snapshotsFailed_ = 0;

  uint64_t compactingTo_ = 0;  // the journals below go into the snapshot
  std::thread compactor_;
  std::atomic<bool> compacting_ = false;
  std::string compacted_;    // what went wrong: the thread's while it runs
  bool unreadable_ = false;  // and whether it was the reading: the thread's, too
  bool lost_ = false;        // a file is gone, or can't be read
  std::string snapshotProblem_;

  std::function<void()> notify_;
  uint64_t earlier_ = 0;              // bytes of the journals of this run before the open one
  std::atomic<uint64_t> synced_ = 0;  // of all bytes of this run, those on the disk
  std::atomic<uint64_t> safeAt_ = 0;  // milliseconds: all of before is on the disk
  std::atomic<int> syncError_ = 0;    // errno of a sync that failed, until a snapshot has it all
  std::atomic<uint64_t> unsafeFile_ = 0;  // the newest journal that a sync has failed for
  DiskSync sync_;                         // last: its thread ends before anything it uses
};

}  // namespace server

#endif  // SPRITES_STATE_STORE_H_
