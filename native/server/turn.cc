#include "turn.h"

namespace server {

namespace {

/** Notes whose owner is the arena. */
bool isArenas(std::string_view name) {
  return name.starts_with("arena/") || name.starts_with("player/");
}

}  // namespace

// ---- The state ----------------------------------------------------------------------------------

Recovery Turn::open(const StateStoreOptions& options) {
  store_ = std::make_unique<StateStore>(options, pool_, static_cast<const Keepers*>(this));
  Recovery recovery = store_->recover(&left_);
  if (!recovery.ok()) {
    store_.reset();
    return recovery;
  }
  notes_ = left_.takeNotes();
  return recovery;
}

int Turn::start(std::function<void()> caughtUp) {
  store_->onSynced(std::move(caughtUp));
  return store_->start();
}

Outcome Turn::attach(Feeds* feeds, std::string* key) {
  for (const auto& [name, feed] : left_.feeds()) {
    const Outcome outcome = feeds->restore(name, feed);
    if (outcome == Outcome::kOk) continue;
    *key = name;
    return outcome;
  }
  left_ = {};
  feeds_ = feeds;
  if (store_) feeds->keepJournal(store_->journal());
  return Outcome::kOk;
}

void Turn::attach(Arena* arena) {
  Journal* const journal = store_ ? store_->journal() : nullptr;
  // From now on the arena itself knows them.
  std::erase_if(notes_, [&](const auto& note) {
    if (!isArenas(note.first)) return false;
    // A room that is not played in any more, or has fewer places: its players have left.
    const bool taken = arena != nullptr && arena->restore(note.first, note.second);
    if (!taken && journal != nullptr) journal->unnote(note.first);
    return true;
  });
  arena_ = arena;
  if (arena == nullptr) return;
  arena->settled();
  arena->keepJournal(journal);
}

bool Turn::note(std::string_view name, std::string_view bytes) {
  if (store_) {
    if (!store_->journal()->promising()) return false;
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
  // What the old file has not taken is in the snapshot.
  revealAll();
  std::string problem = store_->rescue();
  if (problem.empty()) endOwn();
  return problem;
}

SnapshotResult Turn::finish() {
  // What the journal has not taken yet is in the snapshot; no client hears of it in this run.
  revealAll();
  return store_->finish();
}

void Turn::close() {
  if (feeds_ != nullptr) feeds_->keepJournal(nullptr);
  if (arena_ != nullptr) arena_->keepJournal(nullptr);
  store_.reset();
}

SnapshotResult Turn::save(const std::string& path, uint64_t most) const {
  // Nothing may still be flying: the next run begins with every client at rest.
  pool_->seeAllOff();
  return Snapshot::save(*pool_, *this, path, most, {}, Replace::kNothing);
}

void Turn::each(Taker* taker) const {
  if (feeds_ == nullptr) {
    for (const auto& [key, feed] : left_.feeds()) taker->feed(key, feed);
  } else {
    feeds_->forEach([&](const Feed& feed) { taker->feed(feed.key, feed); });
  }
  for (const auto& [name, bytes] : notes_) taker->note(name, bytes);
  if (arena_ == nullptr) return;
  arena_->eachNote(
      [&](const std::string& name, std::string_view bytes) { taker->note(name, bytes); });
}

// ---- The turn -----------------------------------------------------------------------------------

TurnEnd Turn::end() {
  const Commit commit = store_ ? store_->commit() : Commit::kDone;
  // Writing takes its time.
  if (store_) pool_->forgetTime();
  if (feeds_ != nullptr && store_ && !store_->journal()->pending()) feeds_->written();
  switch (commit) {
    case Commit::kDone:
      release();
      return TurnEnd::kSend;
    case Commit::kHoldsBack:
      return TurnEnd::kSend;
    case Commit::kAwaitsDisk:
      wait(true);
      return TurnEnd::kWait;
    case Commit::kNotWritten:
      break;
  }
  return TurnEnd::kDrop;
}

TurnEnd Turn::endOwn() {
  const TurnEnd how = end();
  if (how == TurnEnd::kSend && ended_) ended_();
  return how;
}

/** What was published holds, written or not. */
void Turn::revealAll() {
  if (feeds_ == nullptr) return;
  feeds_->written();
  feeds_->reveal();
}

/** What was decided is as safe as it is to be: the parked polls are answered, publications hold. */
void Turn::release() {
  pool_->answerPolls();
  // Something may be pending that could not be written meanwhile: what was before it holds.
  if (feeds_ != nullptr) feeds_->reveal();
}

void Turn::caughtUp() {
  if (!store_ || store_->awaitsDisk()) return;
  release();
  endWait(TurnEnd::kSend);
}

void Turn::wait(bool whether) {
  waits_ = whether;
  if (tellWaits_) tellWaits_(whether);
}

void Turn::endWait(TurnEnd end) {
  if (!waits_) return;
  wait(false);
  for (const auto& released : released_) released(end);
}

bool Turn::tick(uint64_t now, uint64_t deadline) {
  const bool done = pool_->tick(deadline);
  if (store_) store_->tick(now);
  endOwn();
  // A disk that takes too long, or fails: the loop goes on without it.
  if (waits_ && store_->blocked() != 0) endWait(TurnEnd::kDrop);
  return done;
}

}  // namespace server
