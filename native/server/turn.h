// The turn: the law that what was decided is in the journal before its answers go out.
//
//   read ─▶ decide ─▶ end(): write to the store ─┬─ kSend: the answers go out, publications are
//   seen
//                                                ├─ kWait: the disk is waited for, then the same
//                                                └─ kDrop: nothing of it is answered
//
// A turn is what comes between two looks at the sockets: some hundred requests, or one call from
// JavaScript, or a tick of the clock. What has decided something ends the turn here, and answers
// only as `end` says. Where no state is kept every turn ends with kSend.
//
// It owns the store, and has what the store writes: the pool, the feeds, the arena, and the notes
// (shelf.h) of JavaScript's parts. No sockets, no V8.
#ifndef SPRITES_TURN_H_
#define SPRITES_TURN_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arena/arena.h"
#include "feeds/feeds.h"
#include "store/shelf.h"
#include "store/state_store.h"
#include "torus/pool.h"

namespace server {

/** What becomes of the answers of a turn. */
enum class TurnEnd : uint8_t {
  kSend,  // they may go out; those of parked polls have, or wait for the disk
  kWait,  // not before the disk has it: onReleased tells
  kDrop,  // it could not be written: nothing of it may be answered: it is unknown whether it holds
};

class Turn : private Keepers {
 public:
  /** `pool` outlives it. */
  explicit Turn(Pool* pool) : pool_(pool) {}
  ~Turn() override { close(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // ---- The state

  /** Brings the pool, which must be new, to where the last run has promised to be. */
  Recovery open(const StateStoreOptions& options);

  /** From now on every step is written; `caughtUp` is called in another thread when the disk is. */
  int start(std::function<void()> caughtUp);

  /**
   * Takes in the feeds, which must be new and outlive it, and gives them what the last run has
   * left. Any other outcome than kOk: the feed of `key` does not fit.
   */
  Outcome attach(Feeds* feeds, std::string* key);

  /** The same for the arenas, whose games are chosen; nullptr: there are none in this run. */
  void attach(Arena* arena);

  /** Writes a name's note, or removes it: the turn is to be ended. False: it can't be written. */
  bool note(std::string_view name, std::string_view bytes);
  bool unnote(std::string_view name);

  /** The notes, those of the last run too; once it is attached none of the arena's. */
  const Shelf::NoteMap& notes() const { return notes_; }

  /** nullptr where no state is kept. */
  StateStore* store() { return store_.get(); }
  const StateStore* store() const { return store_.get(); }

  /** Writes the whole state anew, from memory; returns what went wrong, or nothing. */
  std::string rescue();

  /** Ends a run in order: see StateStore::finish. */
  SnapshotResult finish();

  /** Nothing is written from now on. */
  void close();

  /** Writes all of it to a file of its own: see Snapshot. */
  SnapshotResult save(const std::string& path, uint64_t most) const;

  // ---- The turn

  /** Writes what was decided, and answers the parked polls. */
  TurnEnd end();

  /** The same where nothing else ends with it; tells `onEnded`, where it was kSend. */
  TurnEnd endOwn();

  /** The disk may have caught up. */
  void caughtUp();

  /** To be called every kTickMilliseconds; false: soon again. `deadline`: see base::DeadlineClock.
   */
  bool tick(uint64_t now, uint64_t deadline);

  /** Whether the next `ticks` have nothing to do, if nothing else comes. */
  bool isQuiet(uint32_t ticks) const {
    return (store_ == nullptr || store_->isQuiet()) && pool_->isQuiet(ticks);
  }

  /** Has `released(end)` called when a turn that was kWait is over: kSend or kDrop. */
  void onReleased(std::function<void(TurnEnd)> released) {
    released_.push_back(std::move(released));
  }

  /** Has `ended` called after a turn that no other caller has ended. */
  void onEnded(std::function<void()> ended) { ended_ = std::move(ended); }

  /** Has `waits(whether)` called when a turn begins to wait for the disk, and when that is over. */
  void onWaits(std::function<void(bool)> waits) { tellWaits_ = std::move(waits); }

 private:
  void each(Taker* taker) const override;
  void revealAll();
  void release();
  void wait(bool whether);
  void endWait(TurnEnd end);

  Pool* const pool_;
  Feeds* feeds_ = nullptr;
  Arena* arena_ = nullptr;
  Shelf::NoteMap notes_;
  Shelf left_;  // the feeds that the last run has left, until they are attached
  bool waits_ = false;
  std::vector<std::function<void(TurnEnd)>> released_;
  std::function<void()> ended_;
  std::function<void(bool)> tellWaits_;
  std::unique_ptr<StateStore> store_;  // nullptr: no state is kept
};

}  // namespace server

#endif  // SPRITES_TURN_H_
