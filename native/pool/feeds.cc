#include "feeds.h"

#include <algorithm>
#include <charconv>

namespace server {

namespace {

/** Timers one tick looks at before it lets the loop turn. */
constexpr uint32_t kTickBudget = 8192;

/** A hold is lengthened by up to a sixteenth, so that polls that came together part. */
constexpr uint32_t kJitterShare = 16;

/** The shortest hold one may ask for, in seconds: as of a poll. */
constexpr uint32_t kShortestFeedHold = 5;

/** Milliseconds between two comments in an event stream. */
constexpr uint32_t kCommentEvery = 25000;

/** Watchers of one feed that are answered before the next feed has its turn. */
constexpr uint32_t kShare = 64;

/** A value as long as this is not written at once, but in the turn's share for what is due. */
constexpr uint32_t kLargeAnswer = 16384;

/** Room for the glue of the longest answer: 32 feeds, each with a key and two cursors. */
constexpr size_t kGlue = size_t{kFeedsAtOnce} * (kKeyLength + 2 * kCursorLength + 64) + 64;

void append(std::string* to, uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  to->append(digits, end - digits);
}

void appendFeed(std::string* to, std::string_view key) {
  *to += "{\"feed\":\"";
  *to += key;
  *to += '"';
}

void appendCursor(std::string* to, std::string_view name, Cursor cursor) {
  *to += ",\"";
  *to += name;
  *to += "\":\"";
  cursor.appendTo(to);
  *to += '"';
}

}  // namespace

size_t Feeds::Hash::operator()(std::string_view text) const {
  // Strangers choose the keys they ask for, where there is an upstream: the hash has a key of its
  // own. Eight bytes a step, multiplied to 128 bits and folded.
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

Feeds::Feeds(const FeedsOptions& options, uint64_t now, uint64_t (*clock)())
    : options_(options),
      clock_(clock),
      random_(std::random_device{}()),
      byKey_(16, Hash{uint64_t{std::random_device{}()} << 32 | std::random_device{}()}),
      watchers_(options.watchers + size_t{options.feeds} * kLists),
      wheel_(options.watchers, now),
      now_(now) {
  glue_.reserve(kGlue);
  items_.reserve(kFeedsAtOnce);
}

Feeds::~Feeds() = default;

void Feeds::setResponder(WatchHolder holder, FeedResponder* responder) {
  responders_[static_cast<size_t>(holder)] = responder;
}

// ---- The table ----------------------------------------------------------------------------------

Feed* Feeds::lookUp(std::string_view key) const {
  const auto found = byKey_.find(key);
  return found == byKey_.end() ? nullptr : found->second;
}

const Feed* Feeds::find(std::string_view key) const { return lookUp(key); }

Feed* Feeds::create(std::string_view key) {
  if (counts_.feeds >= options_.feeds && !makeRoom()) return nullptr;
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
  ++counts_.feeds;
  return feed;
}

/** Lets go of the oldest of those that could not be fetched and that nobody waits for. */
bool Feeds::makeRoom() {
  while (!failed_.empty()) {
    Feed* const feed = lookUp(failed_.front());
    failed_.pop_front();
    if (feed == nullptr || feed->value || feed->watching > 0 || feed->failedUntil == 0) continue;
    erase(feed);
    return true;
  }
  return false;
}

/** Nobody finds it any more; it is there until its watchers know. */
void Feeds::erase(Feed* feed) {
  if (!feed->gone) {
    byKey_.erase(byKey_.find(std::string_view(feed->key)));
    const uint64_t before = feed->cost();
    feed->value.reset();
    feed->gzip.reset();
    feed->forget();
    feed->gone = true;
    account(feed, before);
  }
  eraseIfOver(feed);
}

void Feeds::eraseIfOver(Feed* feed) {
  if (!feed->gone || feed->watching > 0 || feed->spreading) return;
  const uint32_t number = feed->number;
  feeds_[number].reset();
  freeFeeds_.push_back(number);
  --counts_.feeds;
}

/** Counts what the memory of `feed`, which was `before`, is now. */
void Feeds::account(Feed* feed, uint64_t before) { counts_.memory += feed->cost() - before; }

// ---- Publishing ---------------------------------------------------------------------------------

FeedOutcome Feeds::publish(const Publication& publication, uint32_t* watching) {
  Feed* feed = lookUp(publication.key);
  const uint64_t before = feed == nullptr ? 0 : feed->cost();
  // The patches may take as much as the value again.
  const uint64_t most =
      2 * publication.value.size() + publication.gzip.size() + sizeof(base::Bytes) * 3;
  if (counts_.memory - before + most > options_.memory) return FeedOutcome::kFeedMemoryFull;
  if (feed == nullptr) feed = create(publication.key);
  if (feed == nullptr) return FeedOutcome::kTooManyFeeds;

  const bool next = feed->value && publication.cursor.epoch == feed->cursor.epoch;
  feed->cursor = publication.cursor;
  feed->value = base::Bytes::copyOf(publication.value, &ledger_);
  feed->gzip.reset();
  if (!publication.gzip.empty()) feed->gzip = base::Bytes::copyOf(publication.gzip, &ledger_);
  if (next) {
    feed->remember(publication.patch, &ledger_);
  } else {
    feed->forget();
  }
  feed->upstream = publication.upstream;
  feed->failedUntil = 0;
  feed->wanted = false;
  feed->gzipWanted = false;
  feed->gzipAsked = false;
  account(feed, before);
  ++counts_.published;
  *watching = feed->watching;
  makeDue(feed, List::kParked);
  makeDue(feed, List::kUnready);
  return FeedOutcome::kOk;
}

void Feeds::compressed(std::string_view key, Cursor cursor, std::string_view gzip) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || feed->cursor.epoch != cursor.epoch ||
      feed->cursor.version != cursor.version) {
    return;
  }
  const uint64_t before = feed->cost();
  if (!gzip.empty() && counts_.memory + gzip.size() + sizeof(base::Bytes) <= options_.memory) {
    feed->gzip = base::Bytes::copyOf(gzip, &ledger_);
  }
  account(feed, before);
  makeDue(feed, List::kUnready);
}

bool Feeds::remove(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->value) return false;
  ++counts_.deleted;
  makeDue(feed, List::kParked);
  makeDue(feed, List::kUnready);
  erase(feed);
  return true;
}

bool Feeds::forget(std::string_view key) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->upstream || feed->watching > 0) return false;
  erase(feed);
  return true;
}

void Feeds::fail(std::string_view key, uint64_t until) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || feed->value) return;
  feed->wanted = false;
  feed->failedUntil = until;
  failed_.emplace_back(key);
  makeDue(feed, List::kUnready);
}

FeedOutcome Feeds::restore(const Publication& newest, std::string_view log,
                           const std::vector<uint32_t>& patches) {
  if (counts_.memory + newest.value.size() + log.size() > options_.memory) {
    return FeedOutcome::kFeedMemoryFull;
  }
  Feed* const feed = create(newest.key);
  if (feed == nullptr) return FeedOutcome::kTooManyFeeds;
  feed->cursor = newest.cursor;
  feed->value = base::Bytes::copyOf(newest.value, &ledger_);
  feed->upstream = newest.upstream;
  if (!patches.empty()) {
    feed->log = base::Bytes::copyOf(log, &ledger_);
    feed->patches.assign(patches.begin(), patches.end());
  }
  account(feed, 0);
  return FeedOutcome::kOk;
}

// ---- Watching -----------------------------------------------------------------------------------

/** Finds a feed that is asked for; has its first value fetched where there is an upstream. */
FeedOutcome Feeds::ask(std::string_view key, Feed** found) {
  Feed* feed = lookUp(key);
  if (feed == nullptr) {
    if (!options_.upstream) return FeedOutcome::kUnknownFeed;
    if (draining()) return FeedOutcome::kDraining;
    feed = create(key);
    if (feed == nullptr) return FeedOutcome::kTooManyFeeds;
    feed->upstream = true;
  }
  *found = feed;
  feed->askedAt = now_;
  if (feed->value || feed->wanted) return FeedOutcome::kOk;
  if (feed->failedUntil > now_) return FeedOutcome::kUpstreamFailed;
  feed->wanted = true;
  feed->failedUntil = 0;
  want({feed->key, true, {}});
  return FeedOutcome::kOk;
}

FeedOutcome Feeds::watch(const Wanted* wanted, uint32_t count, const WatchHow& how,
                         WatchHolder holder, uint32_t token, uint32_t* watcher) {
  *watcher = kNoWatcher;
  const uint32_t hold = how.hold == kNoFeedHold ? options_.hold : how.hold;
  if (hold > options_.hold || hold < std::min(kShortestFeedHold, options_.hold)) {
    return FeedOutcome::kBadHold;
  }
  if (counts_.watching + count > options_.watchers) return FeedOutcome::kTooManyWatchers;
  Feed* feeds[kFeedsAtOnce];
  FeedOutcome problems[kFeedsAtOnce];
  bool unknown = false;
  for (uint32_t i = 0; i < count; ++i) {
    problems[i] = ask(wanted[i].key, &feeds[i]);
    if (problems[i] == FeedOutcome::kOk) continue;
    if (!how.many) return problems[i];
    unknown = true;
  }
  ++counts_.polls;

  // A watcher for each feed, in a circle; and whether one of them has something to hear.
  uint32_t first = kNoWatcher;
  uint32_t last = kNoWatcher;
  bool news = unknown || draining();
  bool large = false;
  for (uint32_t i = 0; i < count; ++i) {
    if (problems[i] != FeedOutcome::kOk) continue;
    const uint32_t number = newWatcher();
    Watcher& one = watchers_[number];
    const Cursor after = Cursor::of(wanted[i].after);
    one.feed = feeds[i]->number;
    one.token = token;
    one.holder = holder;
    one.delta = how.delta;
    one.gzip = how.gzip && !how.stream && !how.many;
    one.stream = how.stream;
    one.many = how.many;
    // A version that is still to come is none of ours.
    const bool ours = feeds[i]->value && after.epoch == feeds[i]->cursor.epoch &&
                      after.version <= feeds[i]->cursor.version;
    one.seen = ours ? after.version : 0;
    one.sibling = number;
    if (first == kNoWatcher) {
      first = number;
      one.first = true;
    } else {
      watchers_[last].sibling = number;
      one.sibling = first;
    }
    last = number;
    ++feeds[i]->watching;
    ++counts_.watching;
    if (how.stream) ++counts_.streams;
    if (hasNews(one)) {
      news = true;
      large = large || feeds[i]->value->length() >= kLargeAnswer;
    }
  }
  if (unknown) {
    // What is not there is said at once, with all else there is to say.
    begin();
    uint32_t at = first;
    for (uint32_t i = 0; i < count; ++i) {
      if (problems[i] != FeedOutcome::kOk) {
        addProblem(wanted[i].key, problems[i]);
        continue;
      }
      if (hasNews(watchers_[at])) addNews(watchers_[at]);
      at = watchers_[at].sibling;
    }
    tie();
    deliver(holder, token, {});
    if (first != kNoWatcher) release(first);
    return FeedOutcome::kOk;
  }
  *watcher = first;
  arm(first,
      how.stream ? kCommentEvery : hold * uint64_t{1000} + random(hold * 1000 / kJitterShare));
  const bool opens = how.stream && feeds[0]->value;  // its head goes out at once
  const bool compression = awaitsCompression(watchers_[first]);
  const bool waits = compression || (!news && !opens);
  for (uint32_t at = first;;) {
    const uint32_t sibling = watchers_[at].sibling;
    park(at);
    at = sibling;
    if (at == first) break;
  }
  if (waits && !draining()) return FeedOutcome::kOk;
  if (large && !draining()) {
    // A turn of the loop may serve hundreds of requests: large answers are given their share.
    Feed* const feed = feeds_[watchers_[first].feed].get();
    unhang(first);
    hang(first, List::kDue);
    spread(feed);
    return FeedOutcome::kOk;
  }
  // The answer ends a poll: what to drop it by is gone with it.
  *watcher = how.stream ? first : kNoWatcher;
  serve(first);
  if (how.stream && !watchers_[first].live) *watcher = kNoWatcher;
  return FeedOutcome::kOk;
}

void Feeds::drop(uint32_t watcher) {
  if (watcher < used_ && watchers_[watcher].live) release(watcher);
}

void Feeds::ready(uint32_t watcher) {
  Watcher& one = watchers_[watcher];
  if (!one.live || one.hung) return;
  Feed* const feed = feeds_[one.feed].get();
  if (hasNews(one) || feed->gone) {
    hang(watcher, List::kDue);
    spread(feed);
  } else {
    hang(watcher, List::kParked);
  }
}

/** Whether the newest version is news to the watcher. */
bool Feeds::hasNews(const Watcher& watcher) const {
  const Feed& feed = *feeds_[watcher.feed];
  return feed.value && watcher.seen != feed.cursor.version;
}

/** Whether the answer is to be compressed, and the compressed value still to come: asks for it. */
bool Feeds::awaitsCompression(const Watcher& watcher) {
  Feed& feed = *feeds_[watcher.feed];
  if (!watcher.gzip || !feed.value || feed.value->length() < Feed::kCompressFrom) return false;
  feed.gzipAsked = true;
  if (feed.gzip || !hasNews(watcher) || (watcher.delta && feed.remembers(watcher.seen))) {
    return false;
  }
  if (!feed.gzipWanted) {
    feed.gzipWanted = true;
    want({feed.key, false, feed.cursor});
  }
  return true;
}

void Feeds::want(Want want) {
  wants_.push_back(std::move(want));
  if (busy_) busy_();
}

void Feeds::park(uint32_t watcher) {
  const Watcher& one = watchers_[watcher];
  const Feed& feed = *feeds_[one.feed];
  const bool waits = !feed.value || hasNews(one);
  hang(watcher, waits ? List::kUnready : List::kParked);
}

// ---- The lists of watchers ----------------------------------------------------------------------

uint32_t Feeds::newWatcher() {
  uint32_t number;
  if (freeWatcher_ != 0) {
    number = freeWatcher_ - 1;
    freeWatcher_ = watchers_[number].next;
  } else {
    number = used_++;
  }
  watchers_[number] = Watcher{};
  watchers_[number].live = true;
  return number;
}

/** Ends the poll, or the stream, that `watcher` is one of. */
void Feeds::release(uint32_t watcher) {
  for (uint32_t at = watcher;;) {
    Watcher& one = watchers_[at];
    const uint32_t sibling = one.sibling;
    Feed* const feed = feeds_[one.feed].get();
    unhang(at);
    if (one.first) wheel_.disarm(at);
    --feed->watching;
    --counts_.watching;
    if (one.stream) --counts_.streams;
    feed->askedAt = now_;
    one.live = false;
    one.next = freeWatcher_;
    freeWatcher_ = at + 1;
    eraseIfOver(feed);
    if (sibling == watcher) return;
    at = sibling;
  }
}

uint32_t Feeds::listOf(const Feed& feed, List list) const {
  return options_.watchers + feed.number * kLists + static_cast<uint32_t>(list);
}

bool Feeds::empty(uint32_t list) const { return watchers_[list].next == list; }

/** Puts a watcher at the end of a list of its feed. */
void Feeds::hang(uint32_t watcher, List which) {
  Watcher& one = watchers_[watcher];
  const uint32_t list = listOf(*feeds_[one.feed], which);
  const uint32_t last = watchers_[list].previous;
  one.next = list;
  one.previous = last;
  one.hung = true;
  watchers_[last].next = watcher;
  watchers_[list].previous = watcher;
}

void Feeds::unhang(uint32_t watcher) {
  Watcher& one = watchers_[watcher];
  if (!one.hung) return;
  watchers_[one.previous].next = one.next;
  watchers_[one.next].previous = one.previous;
  one.hung = false;
}

/** All who are in `which` are due, behind those who are. Constant time, however many they are. */
void Feeds::makeDue(Feed* feed, List which) {
  const uint32_t from = listOf(*feed, which);
  if (empty(from)) return;
  const uint32_t due = listOf(*feed, List::kDue);
  const uint32_t first = watchers_[from].next;
  const uint32_t last = watchers_[from].previous;
  const uint32_t before = watchers_[due].previous;
  watchers_[before].next = first;
  watchers_[first].previous = before;
  watchers_[last].next = due;
  watchers_[due].previous = last;
  watchers_[from].next = watchers_[from].previous = from;
  spread(feed);
}

/** Has `step` see to the feed's due watchers. */
void Feeds::spread(Feed* feed) {
  if (feed->spreading) return;
  feed->spreading = true;
  spreading_.push_back(feed);
  if (busy_) busy_();
}

bool Feeds::step(uint64_t budget) {
  const uint64_t end = clock_() + budget;
  while (!spreading_.empty()) {
    Feed* const feed = spreading_.front();
    spreading_.pop_front();
    const uint32_t due = listOf(*feed, List::kDue);
    bool late = false;
    for (uint32_t share = kShare; share > 0 && !late && !empty(due); --share) {
      const uint32_t watcher = watchers_[due].next;
      serve(firstOf(watcher));
      late = clock_() >= end;
    }
    if (!empty(due)) {
      spreading_.push_back(feed);
    } else {
      feed->spreading = false;
      eraseIfOver(feed);
    }
    if (late) break;
  }
  return !spreading_.empty();
}

// ---- Answering ----------------------------------------------------------------------------------

/** The watcher of a poll that has its timer, from any of them. */
uint32_t Feeds::firstOf(uint32_t watcher) const {
  while (!watchers_[watcher].first) watcher = watchers_[watcher].sibling;
  return watcher;
}

/** Begins an answer's body. */
void Feeds::begin() {
  glue_.clear();
  items_.clear();
  gzip_ = false;
}

/** Glue is written behind what is there, whose room never changes: earlier pieces stay valid. */
template <typename Write>
std::string_view Feeds::glue(Write&& write) {
  const size_t begin = glue_.size();
  write(&glue_);
  return std::string_view(glue_).substr(begin);
}

void Feeds::addText(std::string_view text) { items_.push_back({text, nullptr, 0, 0, {}}); }

/** What is newest, for one who has `watcher.seen`. */
void Feeds::addNews(const Watcher& watcher) {
  Feed& feed = *feeds_[watcher.feed];
  if (watcher.seen > 0 && watcher.seen < feed.cursor.version) {
    counts_.skipped += feed.cursor.version - watcher.seen - 1;
  }
  if (watcher.delta && feed.remembers(watcher.seen)) {
    ++counts_.patches;
    const auto begin = static_cast<uint32_t>(feed.patchesFrom(watcher.seen)) + 1;
    const auto before = glue([&](std::string* text) {
      appendFeed(text, feed.key);
      appendCursor(text, "from", {feed.cursor.epoch, watcher.seen});
      appendCursor(text, "cursor", feed.cursor);
      *text += ",\"patch\":[";
    });
    items_.push_back({before, feed.log.get(), begin, feed.log->length(), "]}"});
    return;
  }
  ++counts_.documents;
  if (watcher.gzip && feed.gzip) {
    gzip_ = true;
    items_.push_back({{}, feed.gzip.get(), 0, feed.gzip->length(), {}});
    return;
  }
  const auto before = glue([&](std::string* text) { feed.appendHead(text); });
  items_.push_back({before, feed.value.get(), 0, feed.value->length(), "}"});
}

void Feeds::addProblem(std::string_view key, FeedOutcome problem) {
  addText(glue([&](std::string* text) {
    appendFeed(text, key);
    *text += ",\"problem\":\"";
    *text += kFeedOutcomeNames[static_cast<size_t>(problem)];
    *text += "\"}";
  }));
}

/** Ties the items of an answer for many feeds into one document. */
void Feeds::tie() {
  const auto end = glue([&](std::string* text) {
    *text += ']';
    appendRetry(text);
    *text += '}';
  });
  tied_.clear();
  tied_.push_back({"{\"items\":[", nullptr, 0, 0, {}});
  for (size_t i = 0; i < items_.size(); ++i) {
    if (i > 0) tied_.push_back({",", nullptr, 0, 0, {}});
    tied_.push_back(items_[i]);
  }
  tied_.push_back({end, nullptr, 0, 0, {}});
  items_.swap(tied_);
}

/** While the server ends, an answer says when to come back. */
void Feeds::appendRetry(std::string* text) {
  if (!draining()) return;
  *text += ",\"retry\":";
  append(text, retry());
}

FeedResponder::Taken Feeds::deliver(WatchHolder holder, uint32_t token, FeedAnswer answer) {
  answer.items = items_.data();
  answer.count = static_cast<uint32_t>(items_.size());
  answer.gzip = gzip_;
  return responders_[static_cast<size_t>(holder)]->answer(token, answer);
}

/** Answers the poll, or writes to the stream, of `first`, whose turn has come. */
void Feeds::serve(uint32_t first) {
  if (watchers_[first].stream) {
    serveStream(first);
  } else {
    servePoll(first);
  }
}

void Feeds::servePoll(uint32_t first) {
  const Watcher one = watchers_[first];
  const Feed& feed = *feeds_[one.feed];
  begin();
  FeedAnswer answer;
  if (one.many) {
    for (uint32_t at = first;;) {
      const Watcher& each = watchers_[at];
      const Feed& its = *feeds_[each.feed];
      if (its.gone) {
        addProblem(its.key, FeedOutcome::kUnknownFeed);
      } else if (!its.value && its.failedUntil > 0) {
        addProblem(its.key, FeedOutcome::kUpstreamFailed);
      } else if (hasNews(each)) {
        addNews(each);
      }
      at = each.sibling;
      if (at == first) break;
    }
    if (items_.empty()) ++counts_.pings;
    tie();
  } else if (feed.gone) {
    answer.outcome = FeedOutcome::kUnknownFeed;
  } else if (!feed.value) {
    // Its hold is over before the first fetch has come to an end: that has failed, for him.
    answer.outcome = draining() ? FeedOutcome::kDraining : FeedOutcome::kUpstreamFailed;
  } else if (hasNews(one)) {
    addNews(one);
  } else {
    ++counts_.pings;
    addText(glue([&](std::string* text) {
      appendFeed(text, feed.key);
      appendCursor(text, "cursor", feed.cursor);
      appendRetry(text);
      *text += '}';
    }));
  }
  // The answer points into the feed, which may go with its last watcher: released last.
  deliver(one.holder, one.token, answer);
  release(first);
}

void Feeds::serveStream(uint32_t first) {
  Watcher& one = watchers_[first];
  const Feed& feed = *feeds_[one.feed];
  begin();
  FeedAnswer answer;
  answer.stream = true;
  if (feed.gone) {
    answer.outcome = FeedOutcome::kUnknownFeed;
  } else if (!feed.value) {
    answer.outcome = FeedOutcome::kUpstreamFailed;
  } else if (draining()) {
    answer.ends = true;
    answer.retry = retry();
  } else if (hasNews(one)) {
    answer.cursor = glue([&](std::string* text) { feed.cursor.appendTo(text); });
    addNews(one);
    one.seen = feed.cursor.version;
  }
  if (answer.outcome != FeedOutcome::kOk) {
    addProblem(feed.key, answer.outcome);
    answer.ends = true;
  }
  unhang(first);
  const WatchHolder holder = one.holder;
  const uint32_t token = one.token;
  if (answer.ends) {
    deliver(holder, token, answer);
    release(first);
    return;
  }
  switch (deliver(holder, token, answer)) {
    case FeedResponder::Taken::kWhole:
      return hang(first, List::kParked);
    case FeedResponder::Taken::kInPart:
      return;
    case FeedResponder::Taken::kLost:
      return release(first);
  }
}

// ---- Time ---------------------------------------------------------------------------------------

void Feeds::arm(uint32_t watcher, uint64_t milliseconds) {
  // Never early, however far now_ lags behind.
  wheel_.arm(watcher, now_ + milliseconds + 2 * kFeedTick);
}

uint32_t Feeds::random(uint32_t below) {
  return below == 0 ? 0 : std::uniform_int_distribution<uint32_t>(0, below - 1)(random_);
}

bool Feeds::tick(uint64_t now) {
  now_ = now;
  return wheel_.sweep(now, kTickBudget, [this](uint32_t watcher) { fire(watcher); });
}

void Feeds::fire(uint32_t watcher) {
  Watcher& one = watchers_[watcher];
  if (one.stream) {
    arm(watcher, kCommentEvery);
    // To a reader who is slow there is enough to read.
    if (!one.hung) return;
  }
  serve(watcher);
}

void Feeds::drain(uint32_t window) {
  drainWindow_ = window;
  drainEnd_ = now_ + window + 1;
  for (uint32_t watcher = 0; watcher < used_; ++watcher) {
    if (watchers_[watcher].live && watchers_[watcher].first) arm(watcher, random(window));
  }
}

/** Milliseconds after which one who is told so comes back: behind the window, in a second one. */
uint32_t Feeds::retry() {
  return static_cast<uint32_t>((drainEnd_ > now_ ? drainEnd_ - now_ : 0) +
                               random(drainWindow_ + 1));
}

}  // namespace server
