#include "feeds.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace server {

namespace {

/** Room for the longest envelope: 32 feeds, each with a key and two cursors. */
constexpr size_t kEnvelope = size_t{kFeedsAtOnce} * (kKeyLength + 2 * kCursorLength + 64) + 64;

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
      shared_(options.shows == nullptr ? &own_ : options.shows->shared_),
      number_(shared_->slowSince.size()),
      random_(std::random_device{}()),
      byKey_(16, Hash{uint64_t{std::random_device{}()} << 32 | std::random_device{}()}),
      watchers_(options.watchers + 3 * size_t{options.feeds} * kLists),
      wheel_(options.watchers, now),
      now_(now),
      wallAt_(wallClock() - now) {
  envelope_.reserve(kEnvelope);
  items_.reserve(kFeedsAtOnce);
  // The other threads do not run yet.
  shared_->slowSince.push_back(UINT64_MAX);
}

Feeds::~Feeds() = default;

bool Feeds::areSlowest(uint64_t since) {
  const std::lock_guard lock(shared_->mutex);
  shared_->slowSince[number_] = since;
  const std::vector<uint64_t>& all = shared_->slowSince;
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
  Feed* const feed = make(key);
  feed->awaited = awaited;
  ++placesOf(*feed);
  return feed;
}

/** Creates a feed that is not counted yet. */
Feed* Feeds::make(std::string_view key) {
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
  feed->askedAt = now_;
  byKey_.emplace(feed->key, feed);
  for (const List list : {List::kParked, List::kDue, List::kUnready}) {
    const uint32_t head = listOf(*feed, list);
    watchers_[head].next = watchers_[head].previous = head;
  }
  return feed;
}

/** Forgets the oldest feed that could not be fetched and has no watchers. */
bool Feeds::makeRoom() {
  while (!failed_.empty()) {
    Feed* const feed = failed_.front();
    needNotMakeRoom(feed);
    if (feed->watching > 0 || feed->failedUntil == 0 || isStaged(feed->key)) continue;
    erase(feed);
    // A feed whose watchers are still to be answered frees its place in the next step.
    if (!isFull()) return true;
  }
  return false;
}

/** Keeps a feed that has a value or watchers, or is gone, from making room for others. */
void Feeds::needNotMakeRoom(Feed* feed) {
  if (feed->mayMakeRoom) failed_.erase(feed->among);
  feed->mayMakeRoom = false;
}

/** Removes a feed from the table. It stays in memory until its watchers have their answers. */
void Feeds::erase(Feed* feed, Outcome why) {
  if (!feed->gone) {
    makeDue(feed, List::kParked);
    makeDue(feed, List::kUnready);
    byKey_.erase(byKey_.find(std::string_view(feed->key)));
    const uint64_t before = feed->cost();
    feed->value.reset();
    feed->gzip.reset();
    feed->forget();
    feed->gone = true;
    needNotMakeRoom(feed);
    feed->failure = static_cast<uint8_t>(why);
    giveBack(feed);
    account(feed, before);
    forgetNames(feed);
    endPresenceOf(feed->key);
  }
  eraseIfOver(feed);
}

void Feeds::eraseIfOver(Feed* feed) {
  if (feed->watching > 0 || feed->spreading) return;
  // A worker first reports to the main table: see forgetAwaited.
  if (feed->awaited && !feed->gone && feed->threads.none() && !shows()) return erase(feed);
  if (!feed->gone) return;
  const uint32_t number = feed->number;
  --placesOf(*feed);
  feeds_[number].reset();
  freeFeeds_.push_back(number);
}

/** Takes a feed off the count of its address. */
void Feeds::giveBack(Feed* feed) {
  if (limits_ != nullptr) limits_->forget(feed->source);
  feed->source = kNoSource;
}

/** Updates the counted memory of `feed`, which was `before`. */
void Feeds::account(Feed* feed, uint64_t before) {
  if (shows()) return;
  counts_.memory += feed->cost() - before;
  places_ += feed->places() - std::exchange(feed->placesCounted, feed->places());
  shared_->kept = counts_.memory - places_;
}

// ---- Publishing ---------------------------------------------------------------------------------

/** Most memory of a value: its patches may take as much as the value. */
uint64_t Feeds::mostOf(uint64_t value, uint64_t gzip) {
  return 2 * value + gzip + sizeof(base::Bytes) * 3;
}

/** Whether there is memory for a next version of up to `most` bytes; `feed` may be nullptr. */
bool Feeds::fits(const Feed* feed, uint64_t most) const {
  const uint64_t before = feed == nullptr ? 0 : feed->cost();
  return counts_.memory + stagedBytes_ - before + most <= options_.memory;
}

Outcome Feeds::roomFor(std::string_view key, uint64_t value, uint64_t gzip) const {
  const Feed* const feed = lookUp(key);
  if (!fits(feed, mostOf(value, gzip))) return Outcome::kFeedMemoryFull;
  const bool full = !hasPlace(feed) && isFull() && failed_.empty();
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
  return journal_->promising() && !isStaged(key);
}

Outcome Feeds::publish(const Publication& publication, uint32_t* watching) {
  const auto& [key, cursor, value, patch, gzip, upstream] = publication;
  if (!mayStage(key)) return Outcome::kStateUnwritable;
  const Feed* const feed = lookUp(key);
  if (!fits(feed, mostOf(value.size(), gzip.size()))) return Outcome::kFeedMemoryFull;
  if (!hasPlace(feed) && !mayCreate(false)) return Outcome::kTooManyFeeds;
  *watching = feed == nullptr ? 0 : feed->watchers();
  Staged staged = {.key = std::string(key),
                   .cursor = cursor,
                   .value = base::Bytes::copyOf(value, &shared_->ledger),
                   .patch = std::string(patch),
                   .upstream = upstream,
                   .isNew = !hasPlace(feed)};
  if (!gzip.empty()) staged.gzip = base::Bytes::copyOf(gzip, &shared_->ledger);
  if (journal_ != nullptr) journal_->publish(key, cursor, value, patch, upstream);
  stage(std::move(staged), value.size());
  return Outcome::kOk;
}

Outcome Feeds::append(std::string_view key, Cursor cursor, std::string_view item,
                      uint32_t* watching, bool fresh) {
  if (!mayStage(key)) return Outcome::kStateUnwritable;
  const Feed* const feed = lookUp(key);
  const bool goesOn = feed != nullptr && feed->isLog && !fresh;
  const uint32_t kept = !item.empty() ? (goesOn ? feed->keptWith(item.size(), options_.log) : 1)
                        : goesOn      ? static_cast<uint32_t>(feed->patches.size())
                                      : 0;
  if (kept == 0) return Outcome::kUnknownFeed;
  // The items move to a buffer of twice their length.
  const uint64_t length = item.size() + 1 + (goesOn ? feed->bytesOf(kept - !item.empty()) : 0);
  const uint64_t most = 2 * length + sizeof(base::Bytes) * 3 + kept * sizeof(uint32_t);
  if (!fits(feed, most)) return Outcome::kFeedMemoryFull;
  if (!hasPlace(feed) && !mayCreate(false)) return Outcome::kTooManyFeeds;
  *watching = feed == nullptr ? 0 : feed->watchers();
  if (journal_ != nullptr) journal_->append(key, cursor, item, kept);
  const uint64_t before = feed == nullptr ? 0 : feed->cost();
  stage({.key = std::string(key),
         .cursor = cursor,
         .value = base::Bytes::copyOf(item, &shared_->ledger),
         .isNew = !hasPlace(feed),
         .items = kept},
        most > before ? most - before : 0);
  return Outcome::kOk;
}  // NOLINT(clang-analyzer-unix.Malloc): a reference is counted, not leaked

/** Applies a change once the journal has it; until then it takes `bytes` of memory. */
void Feeds::stage(Staged staged, uint64_t bytes) {
  if (journal_ == nullptr) return apply(staged);
  staged.bytes = bytes;
  stagedBytes_ += bytes;
  stagedFeeds_ += staged.isNew;
  staged_.push_back(std::move(staged));
}

void Feeds::reveal() {
  if (written_ == 0) return;
  std::vector<Staged> staged = std::exchange(staged_, {});
  const auto end = staged.begin() + static_cast<ptrdiff_t>(std::exchange(written_, 0));
  staged_.assign(std::make_move_iterator(end), std::make_move_iterator(staged.end()));
  for (auto one = staged.begin(); one != end; ++one) {
    stagedBytes_ -= one->bytes;
    stagedFeeds_ -= one->isNew;
    apply(*one);
    if (one->heard) want({.key = one->key, .heard = true});
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
  if (std::exchange(feed->awaited, false)) {
    --counts_.awaited;
    ++counts_.feeds;
  }
  const uint64_t before = feed->cost();
  if (feed->value && staged.cursor.epoch != feed->cursor.epoch) forgetSeen(*feed);
  if (staged.items > 0) {
    feed->append(staged.cursor, staged.value->text(), staged.items, &shared_->ledger);
  } else {
    feed->take(staged.cursor, staged.value, staged.patch, &shared_->ledger);
  }
  feed->gzip = staged.gzip;
  feed->upstream = staged.upstream;
  if (!feed->upstream) giveBack(feed);
  needNotMakeRoom(feed);
  feed->failedUntil = 0;
  feed->wanted = false;
  feed->gzipWanted = feed->gzipFailed = false;
  feed->gzipAsked = false;
  account(feed, before);
  counts_.published += !feed->presence;
  spreadNews(feed);
  if (watcher_ != nullptr) watcher_->published(*feed);
  if (isFirst && counts_.awaited > 0) {
    const Feed* const waiting = lookUp(std::string(kPresence) + staged.key);
    if (waiting != nullptr && waiting->awaited) beginPresence(waiting->key);
  }
}

/** Makes the watchers of a new version due. */
void Feeds::spreadNews(Feed* feed) {
  // Answered polls come back a moment later: the count must not drop in between.
  feed->most = std::max(feed->most, feed->watchers());
  feed->quietAt = now_ + kCommentEvery;
  makeDue(feed, List::kParked);
  if (afters_.empty()) {
    makeDue(feed, List::kUnready);
  } else {
    arrive(feed);
  }
}

/** Forgets the versions of the feed's watchers after a new epoch. Rare: it visits all watchers. */
void Feeds::forgetSeen(const Feed& feed) {
  for (uint32_t at = 0; at < used_; ++at) {
    Watcher& one = watchers_[at];
    if (!one.live || one.feed != feed.number) continue;
    one.knew = one.knew || one.seen > 0;
    one.seen = 0;
  }
}

bool Feeds::holds(std::string_view key, std::string_view value) const {
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

void Feeds::compressed(std::string_view key, Cursor cursor, std::string_view gzip) {
  base::Ref<base::Bytes> bytes;
  if (!gzip.empty() && counts_.memory + gzip.size() + sizeof(base::Bytes) <= options_.memory) {
    bytes = base::Bytes::copyOf(gzip, &shared_->ledger);
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
  account(feed, before);
  makeDue(feed, List::kUnready);
  if (watcher_ != nullptr) watcher_->compressed(*feed);
}

Outcome Feeds::unchanged(std::string_view key) {
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
  if (watcher_ != nullptr) watcher_->ended(feed->key, Outcome::kUnknownFeed);
  erase(feed);
}

bool Feeds::forget(std::string_view key) {
  Feed* const feed = lookUp(key);
  // A staged change builds on the feed, or replaces it.
  if (feed == nullptr || !feed->upstream || feed->watchers() > 0 || isStaged(key)) return false;
  if (journal_ != nullptr && feed->value) {
    if (!journal_->hasRoom()) return false;
    journal_->unpublish(key);
  }
  if (watcher_ != nullptr) watcher_->ended(key, Outcome::kUnknownFeed);
  erase(feed);
  return true;
}

void Feeds::fail(std::string_view key, uint64_t until, Outcome why) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || feed->value) return;
  feed->wanted = false;
  feed->failedUntil = until;
  feed->failure = static_cast<uint8_t>(why);
  if (!feed->mayMakeRoom) feed->among = failed_.insert(failed_.end(), feed);
  feed->mayMakeRoom = true;
  makeDue(feed, List::kUnready);
  if (watcher_ != nullptr) watcher_->ended(key, why);
}

Outcome Feeds::restore(std::string_view key, const FeedValue& kept) {
  // An old version published this key before it was reserved.
  if (!toldBy(key).empty()) return Outcome::kOk;
  const std::string_view log = kept.log ? kept.log->text() : std::string_view();
  if (counts_.memory + kept.value->length() + log.size() > options_.memory) {
    return Outcome::kFeedMemoryFull;
  }
  Feed* const feed = create(key);
  if (feed == nullptr) return Outcome::kTooManyFeeds;
  feed->restore(kept.cursor, kept.value->text(), log, kept.patches, &shared_->ledger);
  feed->upstream = kept.upstream;
  feed->isLog = kept.isLog;
  if (feed->isLog) feed->keepWithin(options_.log);
  // Clients that take patches will come back.
  feed->patchesUntil = now_ + kPatchesKept;
  account(feed, 0);
  return Outcome::kOk;
}

// ---- A worker's table
// ----------------------------------------------------------------------------

void Feeds::show(std::string_view key, FeedValue value, base::Ref<base::Bytes> gzip) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr) return;
  if (feed->value && value.cursor.epoch != feed->cursor.epoch) forgetSeen(*feed);
  static_cast<FeedValue&>(*feed) = std::move(value);
  feed->upstream = true;  // it is had from elsewhere
  feed->gzip = std::move(gzip);
  if (std::exchange(feed->awaited, false)) {
    --counts_.awaited;
    ++counts_.feeds;
  }
  needNotMakeRoom(feed);
  feed->failedUntil = 0;
  feed->wanted = feed->wantedByWaiter = false;
  feed->gzipWanted = feed->gzipFailed = feed->gzipAsked = false;
  spreadNews(feed);
}

void Feeds::await(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || feed->value) return;
  feed->wanted = feed->wantedByWaiter = false;
  const bool isFetched = mayBeFetched(key);
  if (!isFetched && !std::exchange(feed->awaited, true)) {
    --counts_.feeds;
    ++counts_.awaited;
  }
  const uint32_t list = listOf(*feed, List::kUnready);
  for (uint32_t at = watchers_[list].next; at != list;) {
    const uint32_t watcher = at;
    const Watcher& one = watchers_[watcher];
    at = one.next;
    // For a list of feeds there may be other news.
    if (!one.many && (isFetched || (one.waits && !one.stream))) continue;
    unhang(watcher);
    hang(watcher, List::kDue);
  }
  spread(feed);
  // All watchers may have gone meanwhile: the feed is marked as touched.
  asked(feed, false);
}

bool Feeds::forgetAwaited(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->awaited || feed->watching > 0) return false;
  erase(feed);
  return true;
}

/** Sets the version of a watcher that came before the value, from its cursor. */
void Feeds::takeAfter(uint32_t watcher) {
  if (afters_.empty()) return;
  Watcher& one = watchers_[watcher];
  const Feed& feed = *feeds_[one.feed];
  const auto found = afters_.find(watcher);
  if (found == afters_.end() || !feed.value) return;
  one.seen = seenOf(feed, one, found->second);
  afters_.erase(found);
  noteAhead(watcher);
}

/** Returns whether a watcher is ahead of this table: another thread may have shown it more. */
bool Feeds::noteAhead(uint32_t watcher) {
  const Watcher& one = watchers_[watcher];
  const Feed& feed = *feeds_[one.feed];
  const bool known = shows() && !options_.shared && feed.value;
  if (!known || one.seen <= feed.cursor.version) return false;
  ahead_.push_back(watcher);
  return true;
}

void Feeds::caughtUp() {
  for (const uint32_t watcher : std::exchange(ahead_, {})) {
    Watcher& one = watchers_[watcher];
    Feed* const feed = feeds_[one.feed].get();
    const bool isAhead = feed->value && one.seen > feed->cursor.version;
    if (isAhead) one.seen = 0;
    // For a list of feeds, news of the other feeds have waited. A stream with a slow reader is
    // served when it accepts more.
    if (!one.listed || !(isAhead || one.many)) continue;
    unhang(watcher);
    if (awaitsCompression(one)) {
      park(watcher);
    } else {
      hang(watcher, List::kDue);
      spread(feed);
    }
  }
}

/**
 * Takes the first value of a feed. Watchers that have it already, or wait for the compressed one,
 * are not due.
 */
void Feeds::arrive(Feed* feed) {
  const uint32_t list = listOf(*feed, List::kUnready);
  std::vector<uint32_t> waiting;
  for (uint32_t at = watchers_[list].next; at != list;) {
    const uint32_t watcher = at;
    Watcher& one = watchers_[watcher];
    at = one.next;
    if (!afters_.contains(watcher)) continue;
    takeAfter(watcher);
    // The head of a stream is sent at once in any case; for a list of feeds there may be other
    // news.
    if (!one.stream && !one.many && (!hasNews(one) || awaitsCompression(one))) {
      unhang(watcher);
      waiting.push_back(watcher);
    }
  }
  makeDue(feed, List::kUnready);
  for (const uint32_t watcher : waiting) park(watcher);
}

void Feeds::end(std::string_view key, Outcome why) {
  Feed* const feed = lookUp(key);
  if (feed != nullptr) erase(feed, why);
}

Outcome Feeds::askForWorker(std::string_view key, uint32_t thread, const Address& from,
                            bool waits) {
  Feed* feed = nullptr;
  const Outcome outcome = ask({key, waits ? kNoCursor : std::string_view()}, {.from = from}, &feed);
  if (feed != nullptr) feed->threads.set(thread);
  return outcome;
}

void Feeds::watchedAtWorkers(std::string_view key, const FeedWatchers& before,
                             const FeedWatchers& now) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr) return;
  const auto changed = [](uint32_t count, uint32_t from, uint32_t to) {
    return static_cast<uint32_t>(std::max<int64_t>(0, int64_t{count} - from + to));
  };
  feed->askedAt = now_;
  feed->atWorkers = changed(feed->atWorkers, before.watching, now.watching);
  feed->patchingAtWorkers = changed(feed->patchingAtWorkers, before.patching, now.patching);
  feed->patchesUntil = std::max(feed->patchesUntil, now.patchesUntil);
}

void Feeds::askCompressed(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed != nullptr) feed->gzipAsked = true;
}

void Feeds::wantCompressed(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->value) return;
  if (feed->gzipFailed && watcher_ != nullptr) watcher_->compressed(*feed);
  if (feed->gzipWanted) return;
  feed->gzipAsked = feed->gzipWanted = true;
  want({feed->key, false, feed->source, feed->cursor});
}

/** Notes a request or the end of a watcher; `delta`: the client takes patches. */
void Feeds::asked(Feed* feed, bool delta) {
  feed->askedAt = now_;
  if (delta) feed->patchesUntil = now_ + kPatchesKept;
  if (!shows() || feed->touched) return;
  feed->touched = true;
  touched_.push_back(feed->number);
}

}  // namespace server
