#include "feeds.h"

#include <chrono>

namespace server {

namespace {

/** Room for the longest envelope: 32 feeds, each with a key and two cursors. */
constexpr size_t kEnvelopeBytes = size_t{kFeedsAtOnce} * (kKeyLength + 2 * kCursorLength + 64) + 64;

/** Milliseconds since 1970. */
uint64_t wallClock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

size_t Feeds::Hash::operator()(std::string_view text) const {
  // The hash has a secret key, since strangers choose the keys of feeds. It multiplies eight bytes
  // a step to 128 bits and folds them.
  const auto mix = [](uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t sum = key ^ text.size();
  while (text.size() >= 8) {
    uint64_t word;
    memcpy(&word, text.data(), 8);
    sum = mix(sum ^ word, kOdd ^ key);
    text.remove_prefix(8);
  }
  uint64_t word = 0;
  memcpy(&word, text.data(), text.size());
  return mix(sum ^ word, kOdd ^ key);
}

Feeds::Feeds(const FeedsOptions& options, uint64_t now, uint64_t (*clock)(), AddressLimits* limits)
    : options_(options),
      clock_(clock),
      limits_(limits),
      sharedCounts_(options.mainTable == nullptr ? &ownCounts_ : options.mainTable->sharedCounts_),
      tableNumber_(sharedCounts_->slowSince.size()),
      random_(std::random_device{}()),
      byKey_(16, Hash{uint64_t{std::random_device{}()} << 32 | std::random_device{}()}),
      watchers_(options.watchers + 3 * size_t{options.feeds} * kLists),
      wheel_(options.watchers, now),
      now_(now),
      wallClockAtZero_(wallClock() - now) {
  envelope_.reserve(kEnvelopeBytes);
  pieces_.reserve(kFeedsAtOnce);
  // The other threads do not run yet.
  sharedCounts_->slowSince.push_back(UINT64_MAX);
}

Feeds::~Feeds() = default;

bool Feeds::hasSlowestReader(uint64_t since) {
  const std::lock_guard lock(sharedCounts_->mutex);
  sharedCounts_->slowSince[tableNumber_] = since;
  const std::vector<uint64_t>& all = sharedCounts_->slowSince;
  return since != UINT64_MAX && since <= *std::min_element(all.begin(), all.end());
}

// ---- The table ----------------------------------------------------------------------------------

Feed* Feeds::lookUp(std::string_view key) const {
  const auto found = byKey_.find(key);
  return found == byKey_.end() ? nullptr : found->second;
}

const Feed* Feeds::find(std::string_view key) const { return lookUp(key); }

/** Returns whether there is room for a further feed. Makes room if needed. */
bool Feeds::mayCreate(bool awaited) {
  if (awaited) return counts_.awaited < options_.feeds;
  return !isFull() || makeRoom();
}

/** Creates a feed without a value; nullptr: there is no room. */
Feed* Feeds::create(std::string_view key, bool awaited) {
  if (!mayCreate(awaited)) return nullptr;
  Feed* const feed = createUncounted(key);
  feed->isAwaited = awaited;
  ++countOf(*feed);
  return feed;
}

/** Creates a feed that is not counted yet. */
Feed* Feeds::createUncounted(std::string_view key) {
  uint32_t number;
  if (freeFeeds_.empty()) {
    number = static_cast<uint32_t>(feeds_.size());
    feeds_.emplace_back();
  } else {
    number = freeFeeds_.back();
    freeFeeds_.pop_back();
  }
  feeds_[number] = std::make_unique<Feed>();
  Feed* const feed = feeds_[number].get();
  feed->key = key;
  feed->number = number;
  feed->lastRequestAt = now_;
  byKey_.emplace(feed->key, feed);
  for (const List list : {List::kParked, List::kDue, List::kUnready}) {
    const uint32_t head = listOf(*feed, list);
    watchers_[head].next = watchers_[head].previous = head;
  }
  return feed;
}

/** Forgets the oldest feed that could not be fetched and has no watchers. */
bool Feeds::makeRoom() {
  while (!evictable_.empty()) {
    Feed* const feed = evictable_.front();
    unmarkEvictable(feed);
    if (feed->watching > 0 || feed->failedUntil == 0 || isStaged(feed->key)) continue;
    erase(feed);
    // A feed whose watchers are still to be answered frees its place in the next step.
    if (!isFull()) return true;
  }
  return false;
}

/** Keeps a feed that has a value or watchers, or is gone, from making room for others. */
void Feeds::unmarkEvictable(Feed* feed) {
  if (feed->isEvictable) evictable_.erase(feed->evictablePosition);
  feed->isEvictable = false;
}

/** Removes a feed from the table. It stays in memory until its watchers have their answers. */
void Feeds::erase(Feed* feed, Outcome why) {
  if (!feed->isDeleted) {
    makeDue(feed, List::kParked);
    makeDue(feed, List::kUnready);
    byKey_.erase(byKey_.find(std::string_view(feed->key)));
    const uint64_t before = feed->cost();
    feed->value.reset();
    feed->gzip.reset();
    feed->clearHistory();
    feed->isDeleted = true;
    unmarkEvictable(feed);
    feed->failure = static_cast<uint8_t>(why);
    releaseSource(feed);
    updateMemory(feed, before);
    removeAllNames(feed);
    deletePresenceOf(feed->key);
  }
  eraseIfUnused(feed);
}

void Feeds::eraseIfUnused(Feed* feed) {
  if (feed->watching > 0 || feed->isQueued) return;
  // A worker first reports to the main table: see removeAwaited.
  if (feed->isAwaited && !feed->isDeleted && feed->waitingWorkers.none() && !isWorkerTable())
    return erase(feed);
  if (!feed->isDeleted) return;
  const uint32_t number = feed->number;
  --countOf(*feed);
  feeds_[number].reset();
  freeFeeds_.push_back(number);
}

/** Takes a feed off the count of its address. */
void Feeds::releaseSource(Feed* feed) {
  if (limits_ != nullptr) limits_->removeFeed(feed->source);
  feed->source = kNoSource;
}

/** Updates the counted memory of `feed`, which was `before`. */
void Feeds::updateMemory(Feed* feed, uint64_t before) {
  if (isWorkerTable()) return;
  counts_.memory += feed->cost() - before;
  unledgeredBytes_ +=
      feed->unledgeredBytes() - std::exchange(feed->unledgeredCounted, feed->unledgeredBytes());
  sharedCounts_->feedBytes = counts_.memory - unledgeredBytes_;
}

// ---- Publishing ---------------------------------------------------------------------------------

/** Most memory of a value: its patches may take as much as the value. */
uint64_t Feeds::peakBytesOf(uint64_t value, uint64_t gzip) {
  return 2 * value + gzip + sizeof(base::Bytes) * 3;
}

/** Whether there is memory for a next version of up to `maxBytes` bytes; `feed` may be nullptr. */
bool Feeds::fits(const Feed* feed, uint64_t maxBytes) const {
  const uint64_t before = feed == nullptr ? 0 : feed->cost();
  return counts_.memory + stagedBytes_ - before + maxBytes <= options_.memory;
}

Outcome Feeds::roomFor(std::string_view key, uint64_t value, uint64_t gzip) const {
  const Feed* const feed = lookUp(key);
  if (!fits(feed, peakBytesOf(value, gzip))) return Outcome::kFeedMemoryFull;
  const bool full = !hasPlace(feed) && isFull() && evictable_.empty();
  return full ? Outcome::kTooManyFeeds : Outcome::kOk;
}

/** Whether a change of the feed waits for the journal. */
bool Feeds::isStaged(std::string_view key) const {
  return std::any_of(staged_.begin(), staged_.end(),
                     [key](const Staged& staged) { return staged.key == key; });
}

/** Whether a change of the feed may be staged: one at a time, since the next one builds on it. */
bool Feeds::mayStage(std::string_view key) const {
  if (journal_ == nullptr) return true;
  return journal_->isPromising() && !isStaged(key);
}

Outcome Feeds::publish(const Publication& publication, uint32_t* watching) {
  const auto& [key, cursor, value, patch, gzip, upstream] = publication;
  if (!mayStage(key)) return Outcome::kStateUnwritable;
  const Feed* const feed = lookUp(key);
  if (!fits(feed, peakBytesOf(value.size(), gzip.size()))) return Outcome::kFeedMemoryFull;
  if (!hasPlace(feed) && !mayCreate(false)) return Outcome::kTooManyFeeds;
  *watching = feed == nullptr ? 0 : feed->watchers();
  Staged staged = {.key = std::string(key),
                   .cursor = cursor,
                   .value = base::Bytes::copyOf(value, &sharedCounts_->ledger),
                   .patch = std::string(patch),
                   .upstream = upstream,
                   .isNew = !hasPlace(feed)};
  if (!gzip.empty()) staged.gzip = base::Bytes::copyOf(gzip, &sharedCounts_->ledger);
  if (journal_ != nullptr) journal_->publish(key, cursor, value, patch, upstream);
  stage(std::move(staged), value.size());
  return Outcome::kOk;
}

Outcome Feeds::append(std::string_view key, Cursor cursor, std::string_view item,
                      uint32_t* watching, bool replacesAll) {
  if (!mayStage(key)) return Outcome::kStateUnwritable;
  const Feed* const feed = lookUp(key);
  const bool continuesLog = feed != nullptr && feed->isLog && !replacesAll;
  const uint32_t itemCount =
      !item.empty()  ? (continuesLog ? feed->itemCountWith(item.size(), options_.log) : 1)
      : continuesLog ? static_cast<uint32_t>(feed->entryStarts.size())
                     : 0;
  if (itemCount == 0) return Outcome::kUnknownFeed;
  // The items move to a buffer of twice their length.
  const uint64_t length =
      item.size() + 1 + (continuesLog ? feed->bytesOfNewest(itemCount - !item.empty()) : 0);
  const uint64_t maxBytes = 2 * length + sizeof(base::Bytes) * 3 + itemCount * sizeof(uint32_t);
  if (!fits(feed, maxBytes)) return Outcome::kFeedMemoryFull;
  if (!hasPlace(feed) && !mayCreate(false)) return Outcome::kTooManyFeeds;
  *watching = feed == nullptr ? 0 : feed->watchers();
  if (journal_ != nullptr) journal_->append(key, cursor, item, itemCount);
  const uint64_t before = feed == nullptr ? 0 : feed->cost();
  stage({.key = std::string(key),
         .cursor = cursor,
         .value = base::Bytes::copyOf(item, &sharedCounts_->ledger),
         .isNew = !hasPlace(feed),
         .itemCount = itemCount},
        maxBytes > before ? maxBytes - before : 0);
  return Outcome::kOk;
}  // NOLINT(clang-analyzer-unix.Malloc): a reference is counted, not leaked

/** Applies a change once the journal has it; until then it takes `bytes` of memory. */
void Feeds::stage(Staged staged, uint64_t bytes) {
  if (journal_ == nullptr) return apply(staged);
  staged.reservedBytes = bytes;
  stagedBytes_ += bytes;
  stagedFeeds_ += staged.isNew;
  staged_.push_back(std::move(staged));
}

void Feeds::reveal() {
  if (writtenCount_ == 0) return;
  std::vector<Staged> staged = std::exchange(staged_, {});
  const auto end = staged.begin() + static_cast<ptrdiff_t>(std::exchange(writtenCount_, 0));
  staged_.assign(std::make_move_iterator(end), std::make_move_iterator(staged.end()));
  for (auto one = staged.begin(); one != end; ++one) {
    stagedBytes_ -= one->reservedBytes;
    stagedFeeds_ -= one->isNew;
    apply(*one);
    if (one->reportsChange) addTask({.key = one->key, .reportsChange = true});
  }
}

/** Applies a publication or deletion, which can't be refused any more. */
void Feeds::apply(const Staged& staged) {
  Feed* feed = lookUp(staged.key);
  if (staged.cursor.version == 0) {
    if (feed != nullptr) end(feed);
    return;
  }
  const bool isFirst = feed == nullptr || !feed->value;
  // A place was reserved.
  if (feed == nullptr) feed = create(staged.key);
  if (std::exchange(feed->isAwaited, false)) {
    --counts_.awaited;
    ++counts_.feeds;
  }
  const uint64_t before = feed->cost();
  if (feed->value && staged.cursor.epoch != feed->cursor.epoch) resetSeenVersions(*feed);
  if (staged.itemCount > 0) {
    feed->append(staged.cursor, staged.value->text(), staged.itemCount, &sharedCounts_->ledger);
  } else {
    feed->setValue(staged.cursor, staged.value, staged.patch, &sharedCounts_->ledger);
  }
  feed->gzip = staged.gzip;
  feed->upstream = staged.upstream;
  if (!feed->upstream) releaseSource(feed);
  unmarkEvictable(feed);
  feed->failedUntil = 0;
  feed->fetchRequested = false;
  feed->gzipRequested = feed->gzipFailed = false;
  feed->hasGzipReaders = false;
  updateMemory(feed, before);
  counts_.published += !feed->presence;
  makeWatchersDue(feed);
  if (observer_ != nullptr) observer_->published(*feed);
  if (isFirst && counts_.awaited > 0) {
    const Feed* const awaitedPresence = lookUp(std::string(kPresencePrefix) + staged.key);
    if (awaitedPresence != nullptr && awaitedPresence->isAwaited)
      createPresence(awaitedPresence->key);
  }
}

/** Makes the watchers of a new version due. */
void Feeds::makeWatchersDue(Feed* feed) {
  // Answered polls come back a moment later: the count must not drop in between.
  feed->peakWatchers = std::max(feed->peakWatchers, feed->watchers());
  feed->commentDueAt = now_ + kCommentEvery;
  makeDue(feed, List::kParked);
  if (deferredCursors_.empty()) {
    makeDue(feed, List::kUnready);
  } else {
    makeUnreadyDue(feed);
  }
}

/** Forgets the versions of the feed's watchers after a new epoch. Rare: it visits all watchers. */
void Feeds::resetSeenVersions(const Feed& feed) {
  for (uint32_t at = 0; at < used_; ++at) {
    Watcher& one = watchers_[at];
    if (!one.isLive || one.feed != feed.number) continue;
    one.hadCursor = one.hadCursor || one.seenVersion > 0;
    one.seenVersion = 0;
  }
}

bool Feeds::valueEquals(std::string_view key, std::string_view value) const {
  const Feed* const feed = lookUp(key);
  return feed != nullptr && feed->value && feed->value->text() == value;
}

uint64_t Feeds::answerLength(std::string_view key, std::string* tag) const {
  const Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->value) return 0;
  std::string head;
  if (!feed->isLog) {
    feed->appendHead(&head);
    feed->appendTag(tag, 0, false);
    return head.size() + feed->value->length() + 1;
  }
  const LogPart part = feed->partAfter(0, options_.answerBytes);
  feed->appendHead(&head, part);
  feed->appendTag(tag, part);
  return head.size() + part.end - part.begin + 2;
}

void Feeds::setCompressed(std::string_view key, Cursor cursor, std::string_view gzip) {
  base::Ref<base::Bytes> bytes;
  if (!gzip.empty() && counts_.memory + gzip.size() + sizeof(base::Bytes) <= options_.memory) {
    bytes = base::Bytes::copyOf(gzip, &sharedCounts_->ledger);
  }
  showCompressed(key, cursor, std::move(bytes));
}

void Feeds::showCompressed(std::string_view key, Cursor cursor, base::Ref<base::Bytes> gzip) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || feed->cursor.epoch != cursor.epoch ||
      feed->cursor.version != cursor.version) {
    return;
  }
  const uint64_t before = feed->cost();
  feed->gzip = std::move(gzip);
  feed->gzipFailed = !feed->gzip;
  updateMemory(feed, before);
  makeDue(feed, List::kUnready);
  if (observer_ != nullptr) observer_->compressed(*feed);
}

Outcome Feeds::countUnchanged(std::string_view key) {
  if (isStaged(key)) return Outcome::kStateUnwritable;
  ++counts_.unchanged;
  return Outcome::kOk;
}

Outcome Feeds::remove(std::string_view key) {
  // The staged change may be the first version: kUnknownFeed would soon be wrong.
  if (isStaged(key)) return Outcome::kStateUnwritable;
  Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->value) return Outcome::kUnknownFeed;
  if (journal_ == nullptr) {
    end(feed);
    return Outcome::kOk;
  }
  if (!mayStage(key)) return Outcome::kStateUnwritable;
  journal_->unpublish(key);
  staged_.push_back({.key = std::string(key)});
  return Outcome::kOk;
}

/** Deletes a feed with a value, and makes its watchers due. */
void Feeds::end(Feed* feed) {
  counts_.deleted += !feed->presence;
  if (observer_ != nullptr) observer_->ended(feed->key, Outcome::kUnknownFeed);
  erase(feed);
}

bool Feeds::removeFetched(std::string_view key) {
  Feed* const feed = lookUp(key);
  // A staged change builds on the feed, or replaces it.
  if (feed == nullptr || !feed->upstream || feed->watchers() > 0 || isStaged(key)) return false;
  if (journal_ != nullptr && feed->value) {
    if (!journal_->hasRoom()) return false;
    journal_->unpublish(key);
  }
  if (observer_ != nullptr) observer_->ended(key, Outcome::kUnknownFeed);
  erase(feed);
  return true;
}

void Feeds::fail(std::string_view key, uint64_t until, Outcome why) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || feed->value) return;
  feed->fetchRequested = false;
  feed->failedUntil = until;
  feed->failure = static_cast<uint8_t>(why);
  if (!feed->isEvictable) feed->evictablePosition = evictable_.insert(evictable_.end(), feed);
  feed->isEvictable = true;
  makeDue(feed, List::kUnready);
  if (observer_ != nullptr) observer_->ended(key, why);
}

Outcome Feeds::restore(std::string_view key, const FeedValue& saved) {
  // An old version published this key before it was reserved.
  if (!presenceSubjectOf(key).empty()) return Outcome::kOk;
  const std::string_view savedHistory = saved.history ? saved.history->text() : std::string_view();
  if (counts_.memory + saved.value->length() + savedHistory.size() > options_.memory) {
    return Outcome::kFeedMemoryFull;
  }
  Feed* const feed = create(key);
  if (feed == nullptr) return Outcome::kTooManyFeeds;
  feed->restore(saved.cursor, saved.value->text(), savedHistory, saved.entryStarts,
                &sharedCounts_->ledger);
  feed->upstream = saved.upstream;
  feed->isLog = saved.isLog;
  if (feed->isLog) feed->trimTo(options_.log);
  // Clients that take patches will come back.
  feed->patchesUntil = now_ + kPatchesKept;
  updateMemory(feed, 0);
  return Outcome::kOk;
}

// ---- A worker's table
// ----------------------------------------------------------------------------

void Feeds::show(std::string_view key, FeedValue value, base::Ref<base::Bytes> gzip) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr) return;
  if (feed->value && value.cursor.epoch != feed->cursor.epoch) resetSeenVersions(*feed);
  static_cast<FeedValue&>(*feed) = std::move(value);
  feed->upstream = true;  // it is had from elsewhere
  feed->gzip = std::move(gzip);
  if (std::exchange(feed->isAwaited, false)) {
    --counts_.awaited;
    ++counts_.feeds;
  }
  unmarkEvictable(feed);
  feed->failedUntil = 0;
  feed->fetchRequested = feed->fetchRequestedByWaiter = false;
  feed->gzipRequested = feed->gzipFailed = feed->hasGzipReaders = false;
  makeWatchersDue(feed);
}

void Feeds::markAwaited(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || feed->value) return;
  feed->fetchRequested = feed->fetchRequestedByWaiter = false;
  const bool isFetched = mayBeFetched(key);
  if (!isFetched && !std::exchange(feed->isAwaited, true)) {
    --counts_.feeds;
    ++counts_.awaited;
  }
  const uint32_t list = listOf(*feed, List::kUnready);
  for (uint32_t at = watchers_[list].next; at != list;) {
    const uint32_t watcher = at;
    const Watcher& one = watchers_[watcher];
    at = one.next;
    // For a list of feeds there may be other news.
    if (!one.hasManyFeeds && (isFetched || (one.waitsForFirst && !one.isStream))) continue;
    removeFromList(watcher);
    addToList(watcher, List::kDue);
  }
  queueForStep(feed);
  // All watchers may have gone meanwhile: the feed is marked as touched.
  noteRequest(feed, false);
}

bool Feeds::removeAwaited(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->isAwaited || feed->watching > 0) return false;
  erase(feed);
  return true;
}

/** Sets the version of a watcher that came before the value, from its cursor. */
void Feeds::applyDeferredCursor(uint32_t watcher) {
  if (deferredCursors_.empty()) return;
  Watcher& one = watchers_[watcher];
  const Feed& feed = *feeds_[one.feed];
  const auto found = deferredCursors_.find(watcher);
  if (found == deferredCursors_.end() || !feed.value) return;
  one.seenVersion = seenVersionOf(feed, one, found->second);
  deferredCursors_.erase(found);
  noteAhead(watcher);
}

/** Returns whether a watcher is ahead of this table: another thread may have shown it more. */
bool Feeds::noteAhead(uint32_t watcher) {
  const Watcher& one = watchers_[watcher];
  const Feed& feed = *feeds_[one.feed];
  const bool canTell = isWorkerTable() && !options_.inWorld && feed.value;
  if (!canTell || one.seenVersion <= feed.cursor.version) return false;
  watchersAhead_.push_back(watcher);
  return true;
}

void Feeds::resolveAhead() {
  for (const uint32_t watcher : std::exchange(watchersAhead_, {})) {
    Watcher& one = watchers_[watcher];
    Feed* const feed = feeds_[one.feed].get();
    const bool isAhead = feed->value && one.seenVersion > feed->cursor.version;
    if (isAhead) one.seenVersion = 0;
    // For a list of feeds, news of the other feeds have waited. A stream with a slow reader is
    // served when it accepts more.
    if (!one.isListed || !(isAhead || one.hasManyFeeds)) continue;
    removeFromList(watcher);
    if (awaitsCompression(one)) {
      park(watcher);
    } else {
      addToList(watcher, List::kDue);
    }
  }
}

/**
 * Takes the first value of a feed. Watchers that have it already, or wait for the compressed one,
 * are not due.
 */
void Feeds::makeUnreadyDue(Feed* feed) {
  const uint32_t list = listOf(*feed, List::kUnready);
  std::vector<uint32_t> toPark;
  for (uint32_t at = watchers_[list].next; at != list;) {
    const uint32_t watcher = at;
    Watcher& one = watchers_[watcher];
    at = one.next;
    if (!deferredCursors_.contains(watcher)) continue;
    applyDeferredCursor(watcher);
    // The head of a stream is sent at once in any case; for a list of feeds there may be other
    // news.
    if (!one.isStream && !one.hasManyFeeds && (!hasNews(one) || awaitsCompression(one))) {
      removeFromList(watcher);
      toPark.push_back(watcher);
    }
  }
  makeDue(feed, List::kUnready);
  for (const uint32_t watcher : toPark) park(watcher);
}

void Feeds::end(std::string_view key, Outcome why) {
  Feed* const feed = lookUp(key);
  if (feed != nullptr) erase(feed, why);
}

Outcome Feeds::requestForWorker(std::string_view key, uint32_t thread, const Address& from,
                                bool waits) {
  Feed* feed = nullptr;
  const Outcome outcome =
      findOrRequest({key, waits ? kNoCursor : std::string_view()}, {.address = from}, &feed);
  if (feed != nullptr) feed->waitingWorkers.set(thread);
  return outcome;
}

void Feeds::updateWorkerWatchers(std::string_view key, const WatcherCounts& before,
                                 const WatcherCounts& now) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr) return;
  const auto adjusted = [](uint32_t count, uint32_t from, uint32_t to) {
    return static_cast<uint32_t>(std::max<int64_t>(0, int64_t{count} - from + to));
  };
  feed->lastRequestAt = now_;
  feed->atWorkers = adjusted(feed->atWorkers, before.watching, now.watching);
  feed->patchingAtWorkers = adjusted(feed->patchingAtWorkers, before.patching, now.patching);
  feed->patchesUntil = std::max(feed->patchesUntil, now.patchesUntil);
}

void Feeds::keepCompressing(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed != nullptr) feed->hasGzipReaders = true;
}

void Feeds::requestCompressed(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->value) return;
  if (feed->gzipFailed && observer_ != nullptr) observer_->compressed(*feed);
  if (feed->gzipRequested) return;
  feed->hasGzipReaders = feed->gzipRequested = true;
  addTask({feed->key, false, feed->source, feed->cursor});
}

/** Notes a request or the end of a watcher; `delta`: the client takes patches. */
void Feeds::noteRequest(Feed* feed, bool delta) {
  feed->lastRequestAt = now_;
  if (delta) feed->patchesUntil = now_ + kPatchesKept;
  if (!isWorkerTable() || feed->isDirty) return;
  feed->isDirty = true;
  dirtyFeeds_.push_back(feed->number);
}

}  // namespace server
