// The turn: no answer is sent before its decision is in the journal.
//
//   read ─▶ decide ─▶ end(): write to the store ─┬─ kSend: answers are sent, publications
//                                                │         become visible
//                                                ├─ kWait: waits for the disk, then the same
//                                                └─ kDrop: the turn is not answered
//
// A turn is the work between two looks at the sockets: some hundred requests, or one call from
// JavaScript, or a tick of the clock. The code that has decided something ends the turn here, and
// answers as `end` returns. Without a kept state every turn ends with kSend.
//
// It owns the store, and knows the parts that the store writes: the pool, the feeds, the arena, and
// the notes (feeds_and_notes.h) of JavaScript's parts. No sockets, no V8.
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
#include "store/feeds_and_notes.h"
#include "store/state_store.h"
#include "torus/pool.h"

namespace server {

/** The fate of the answers of a turn. */
enum class TurnEnd : uint8_t {
  kSend,  // they may be sent; parked polls were answered, or wait for the disk
  kWait,  // they wait for the disk: onReleased reports its end
  kDrop,  // the journal could not be written: none may be sent, since it is unknown whether the
          // decisions hold
};

class Turn : private FeedsAndNotes {
 public:
  /** `pool` outlives the turn. */
  explicit Turn(Pool* pool) : pool_(pool) {}
  ~Turn() override { close(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // ---- The state

  /** Restores the state of the last run into the pool, which must be new. */
  Recovery open(const StateStoreOptions& options);

  /**
   * Starts writing every step. `onDiskCaughtUp` is called in another thread when the disk has
   * caught up. Returns 0 or errno.
   */
  int start(std::function<void()> onDiskCaughtUp);

  /**
   * Attaches the feeds, which must be new and outlive the turn, and restores those of the last run.
   * Any outcome but kOk: the feed of `key` has no room.
   */
  Outcome attach(Feeds* feeds, std::string* key);

  /**
   * Attaches the arenas in the same way, after their games were chosen; nullptr: none in this run.
   */
  void attach(Arena* arena);

  /**
   * Writes a note, or removes it. The caller then ends the turn. Returns false when it can't be
   * written.
   */
  bool note(std::string_view name, std::string_view bytes);
  bool unnote(std::string_view name);

  /** The notes, with those of the last run; without those of the arena once that is attached. */
  const StoredFeedsAndNotes::NoteMap& notes() const { return notes_; }

  /** The store; nullptr: no state is kept. */
  StateStore* store() { return store_.get(); }
  const StateStore* store() const { return store_.get(); }

  /** Writes the whole state again from memory. Returns the error, or an empty text. */
  std::string rescue();

  /** Ends the run properly: see StateStore::finish. */
  SnapshotResult finish();

  /** Stops writing. */
  void close();

  /** Writes the whole state to a separate file: see Snapshot. */
  SnapshotResult save(const std::string& path, uint64_t most) const;

  // ---- The turn

  /** Writes the decisions, and answers the parked polls. */
  TurnEnd end();

  /** Ends a turn that the front does not end. With kSend, calls `onEnded`. */
  TurnEnd endOutsideFront();

  /** To be called when the disk may have caught up. */
  void onDiskCaughtUp();

  /**
   * To be called every kTickMilliseconds; false: call again soon. `deadline`: see
   * base::DeadlineClock.
   */
  bool tick(uint64_t now, uint64_t deadline);

  /** Whether the next `ticks` have nothing to do, unless an event comes. */
  bool isQuiet(uint32_t ticks) const {
    return (store_ == nullptr || store_->isQuiet()) && pool_->isQuiet(ticks);
  }

  /** Adds a function that is called when a turn that was kWait is over, with kSend or kDrop. */
  void onReleased(std::function<void(TurnEnd)> onReleased) {
    onReleased_.push_back(std::move(onReleased));
  }

  /** Sets a function that `endOutsideFront` calls after kSend. */
  void onEnded(std::function<void()> onEnded) { onEnded_ = std::move(onEnded); }

  /**
   * Sets a function that is called with true when a turn begins to wait for the disk, and with
   * false when that is over.
   */
  void onWaitChange(std::function<void(bool)> onWaitChange) {
    onWaitChange_ = std::move(onWaitChange);
  }

 private:
  void each(Visitor* visitor) const override;
  void revealAll();
  void answerAndReveal();
  void setWaiting(bool isWaiting);
  void endWait(TurnEnd end);

  Pool* const pool_;
  Feeds* feeds_ = nullptr;  // until they are attached
  Arena* arena_ = nullptr;
  StoredFeedsAndNotes::NoteMap notes_;
  StoredFeedsAndNotes lastRun_;  // the feeds of the last run, until they are attached
  bool waitsForDisk_ = false;
  std::vector<std::function<void(TurnEnd)>> onReleased_;
  std::function<void()> onEnded_;
  std::function<void(bool)> onWaitChange_;
  std::unique_ptr<StateStore> store_;  // nullptr: no state is kept
};

}  // namespace server

#endif  // SPRITES_TURN_H_
