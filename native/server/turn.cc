#include "turn.h"

namespace server {

namespace {

/** Whether a note belongs to the arena. */
bool isArenaNote(std::string_view name) {
  return name.starts_with("arena/") || name.starts_with("player/");
}

}  // namespace

// ---- The state ----------------------------------------------------------------------------------

Recovery Turn::open(const StateStoreOptions& options) {
  store_ = std::make_unique<StateStore>(options, pool_, static_cast<const FeedsAndNotes*>(this));
  Recovery recovery = store_->recover(&lastRun_);
  if (!recovery.ok()) {
    store_.reset();
    return recovery;
  }
  notes_ = lastRun_.detachNotes();
  return recovery;
}

int Turn::start(std::function<void()> onDiskCaughtUp) {
  store_->onSynced(std::move(onDiskCaughtUp));
  return store_->start();
}

Outcome Turn::attach(Feeds* feeds, std::string* key) {
  for (const auto& [name, feed] : lastRun_.feeds()) {
    const Outcome outcome = feeds->restore(name, feed);
    if (outcome == Outcome::kOk) continue;
    *key = name;
    return outcome;
  }
  lastRun_ = {};
  feeds_ = feeds;
  if (store_) feeds->keepJournal(store_->journal());
  return Outcome::kOk;
}

void Turn::attach(Arena* arena) {
  Journal* const journal = store_ ? store_->journal() : nullptr;
  // From now on the arena itself has its notes.
  std::erase_if(notes_, [&](const auto& note) {
    if (!isArenaNote(note.first)) return false;
    // An arena that is gone, or has fewer places now: its players have left.
    const bool isRestored = arena != nullptr && arena->restore(note.first, note.second);
    if (!isRestored && journal != nullptr) journal->unnote(note.first);
    return true;
  });
  arena_ = arena;
  if (arena == nullptr) return;
  arena->finishRestore();
  arena->keepJournal(journal);
}

bool Turn::note(std::string_view name, std::string_view bytes) {
  if (store_) {
    if (!store_->journal()->isPromising()) return false;
    store_->journal()->note(name, bytes);
  }
  notes_.insert_or_assign(std::string(name), bytes);
  return true;
}

bool Turn::unnote(std::string_view name) {
  const auto found = notes_.find(name);
  if (found == notes_.end()) return true;
  if (store_) {
    if (!store_->journal()->hasRoom()) return false;
    store_->journal()->unnote(name);
  }
  notes_.erase(found);
  return true;
}

std::string Turn::rescue() {
  // The snapshot has the records that the old file lacks.
  revealAll();
  std::string problem = store_->rescue();
  if (problem.empty()) endOutsideFront();
  return problem;
}

SnapshotResult Turn::finish() {
  // The snapshot has the records that the journal lacks; no client hears of them in this run.
  revealAll();
  return store_->finish();
}

void Turn::close() {
  if (feeds_ != nullptr) feeds_->keepJournal(nullptr);
  if (arena_ != nullptr) arena_->keepJournal(nullptr);
  store_.reset();
}

SnapshotResult Turn::save(const std::string& path, uint64_t most) const {
  // Sprites must not be in flight: the next run begins with every client at rest.
  pool_->freeAllLeaving();
  return Snapshot::save(*pool_, *this, path, most, {});
}

void Turn::each(Visitor* visitor) const {
  if (feeds_ == nullptr) {
    for (const auto& [key, feed] : lastRun_.feeds()) visitor->feed(key, feed);
  } else {
    feeds_->forEach([&](const Feed& feed) { visitor->feed(feed.key, feed); });
  }
  for (const auto& [name, bytes] : notes_) visitor->note(name, bytes);
  if (arena_ == nullptr) return;
  arena_->forEachNote(
      [&](const std::string& name, std::string_view bytes) { visitor->note(name, bytes); });
}

// ---- The turn -----------------------------------------------------------------------------------

TurnEnd Turn::end() {
  const Commit commit = store_ ? store_->commit() : Commit::kDone;
  // Writing takes time.
  if (store_) pool_->clearTurnTime();
  if (feeds_ != nullptr && store_ && !store_->journal()->pending()) feeds_->written();
  switch (commit) {
    case Commit::kDone:
      answerAndReveal();
      return TurnEnd::kSend;
    case Commit::kHoldsBack:
      return TurnEnd::kSend;
    case Commit::kAwaitsDisk:
      setWaiting(true);
      return TurnEnd::kWait;
    case Commit::kNotWritten:
      break;
  }
  return TurnEnd::kDrop;
}

TurnEnd Turn::endOutsideFront() {
  const TurnEnd turnEnd = end();
  if (turnEnd == TurnEnd::kSend && onEnded_) onEnded_();
  return turnEnd;
}

/** Reveals all publications, written or not. */
void Turn::revealAll() {
  if (feeds_ == nullptr) return;
  feeds_->written();
  feeds_->reveal();
}

/** Answers the parked polls and reveals publications: the decisions are as safe as they will be. */
void Turn::answerAndReveal() {
  pool_->answerPolls();
  // Later publications may wait for a stuck journal; the earlier ones hold.
  if (feeds_ != nullptr) feeds_->reveal();
}

void Turn::onDiskCaughtUp() {
  if (!store_ || store_->awaitsDisk()) return;
  answerAndReveal();
  endWait(TurnEnd::kSend);
}

void Turn::setWaiting(bool isWaiting) {
  waitsForDisk_ = isWaiting;
  if (onWaitChange_) onWaitChange_(isWaiting);
}

void Turn::endWait(TurnEnd end) {
  if (!waitsForDisk_) return;
  setWaiting(false);
  for (const auto& onReleased : onReleased_) onReleased(end);
}

bool Turn::tick(uint64_t now, uint64_t deadline) {
  const bool done = pool_->tick(deadline);
  if (store_) store_->tick(now);
  endOutsideFront();
  // The disk takes too long, or fails: the loop goes on without it.
  if (waitsForDisk_ && store_->blocked() != 0) endWait(TurnEnd::kDrop);
  return done;
}

}  // namespace server
