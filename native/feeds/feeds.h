// Feeds: JSON documents under keys, and their watchers.
//
//   "scores" ─▶ feed   [ epoch │ version │ value │ compressed │ patches … ]
//                        │ parked: has the newest     ─publish─▶ due: to be answered, in shares
//                        │ unready: waits for a first value, or for the compressed one
//                        ▼
//   watcher n          [ its list │ feed │ token │ sibling │ version it has │ what it can take ]
//   wheel              [ the one timer of a poll: its hold; of an event stream: its next comment ]
//
// Lifecycle of a watcher: a poll that has something newer to hear is answered at once, or comes to
// the due ones when the value is large; any other parks. A publication makes one list of another,
// in constant time, and `step` answers the due ones, a bounded time in every turn of the loop, feed
// by feed in turn. Every answer has the version that is newest when it is written: a watcher that
// is still due when the next version is published skips one. A poll is over with its answer. An
// event stream parks again, or is in no list while its reader is slow, and gets the newest version
// when the reader has read on
// (`writable`). A poll for many feeds has one watcher for each of them, linked in a circle: the
// first feed with news ends the poll.
//
// Where a state is kept a publication is written to the journal first, and staged: no watcher is
// answered with it, and a request is answered with the version before, until the turn says that it
// is written (`reveal`). So no cursor that a watcher has seen is lost with the process.
//
// Lifecycle of a feed: its first value, or a request for it where there is an upstream; then
// versions, counted up within an epoch; then its end, which its watchers are told before it goes.
// One that is not published is `awaited`: it is here for the watchers that wait for its first
// value, goes with the last of them, and takes no place of a published one. There may be as many
// awaited feeds as others, and each counts for the address that asked first.
//
// Patches are kept one behind the other in one run of bytes, so that what leads from any remembered
// version to the newest is the rest of that run: an answer names it, and copies nothing. They are
// kept up to half the length of the value.
//
//   log   [ ,{"op":…},{"op":…} │ ,{"op":…} │ ,{"op":…} │ room ]
//           ▲ from 39 to 40      ▲ 41        ▲ 42: the newest
//
// Cost: 32 bytes a watcher and 12 for its timer. An answer to a thousand watchers is one shared
// value, and the JSON around it (the envelope). Publishing to a million watchers takes as long as a
// million writes do, but no turn of the loop takes longer than its share. Rejected: a list of
// watchers for each version (every parked one has the newest: there is but one), a queue for each
// watcher (other servers stack up memory for slow ones so), answering the due ones by a timer
// (they would wait while the loop is idle), a ring of separate patches (an answer over many
// versions would be a list of thousands of pieces).
#ifndef SPRITES_FEEDS_H_
#define SPRITES_FEEDS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/journal.h"
#include "base/outcome.h"
#include "base/reserve.h"
#include "base/wheel.h"
#include "feed.h"
#include "grants.h"

namespace server {

/** Milliseconds for which a stream may be quiet: a comment then says that it still stands. */
constexpr uint32_t kCommentEvery = 25000;

/** Milliseconds of one tick of the wheel: a hold ends up to three of them late. */
constexpr uint32_t kFeedTick = 100;

/**
 * Milliseconds after the last request or watcher that takes patches of a feed, in which they are
 * made for it to come back to.
 */
constexpr uint32_t kPatchesKept = 60000;

/** The most feeds one poll may ask for. */
constexpr uint32_t kFeedsAtOnce = 32;

/** One feed that a request asks for. */
struct Wanted {
  std::string_view key;    // isFeedKey
  std::string_view after;  // isCursor, or empty
  // Why it may not be read, whether there is one or not; kOk: it may.
  Outcome problem = Outcome::kOk;
};

constexpr uint32_t kNoFeedHold = UINT32_MAX;  // not given

// In WatchHow::last, beside a number of items.
constexpr uint32_t kNotLast = UINT32_MAX;
constexpr uint32_t kFromStart = 0;

/** What a watcher asks for, and can read. */
struct WatchHow {
  uint32_t hold = kNoFeedHold;  // seconds
  bool delta = false;           // patches
  bool gzip = false;            // it can read what is compressed
  bool stream = false;          // events, without an end; of one feed
  bool many = false;            // the answer is {"items":[…]}
  bool posted = false;          // asked for by POST: no cache keeps the answer
  // So many items back in a log, or all that are kept, at once; not of many feeds.
  uint32_t last = kNotLast;
  std::string_view noneMatch = {};        // If-None-Match: the tags of the answers that a cache has
  uint32_t grant = Grants::kNone;         // by which it is watched, and with which that ends
  const GrantRights* verified = nullptr;  // the same, not taken yet; without a key: the token
                                          // is no grant; lives for the call only
  Address from = {};  // a feed without a value counts for the address that asked first
};

/** A piece of an answer's body: some text, some shared bytes, some text. */
struct FeedItem {
  std::string_view before;
  const base::Bytes* bytes;  // nullptr: none
  uint32_t begin, end;
  std::string_view after;
};

/** What is written to one watcher; everything in it lives for the call only. */
struct FeedAnswer {
  Outcome outcome = Outcome::kOk;   // any other: the problem; a stream has it as items too
  const FeedItem* items = nullptr;  // the body; none: a comment in a stream
  uint32_t count = 0;
  bool gzip = false;        // the body is compressed; of a stream: it is to be
  bool packs = false;       // the body may be compressed: patches, items, or many feeds
  bool stream = false;      // an event
  bool ends = false;        // the stream ends with it
  std::string_view cursor;  // of an event; may be empty
  uint32_t retry = 0;       // of a stream that ends: milliseconds to wait before coming back
  uint32_t fresh = 0;       // seconds for which a cache may give it to others; 0: it may not
  std::string_view tag;     // where a cache may: names these bytes

  uint64_t length() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) {
      sum += items[i].before.size() + items[i].after.size();
      if (items[i].bytes != nullptr) sum += items[i].end - items[i].begin;
    }
    return sum;
  }
};

/** Writes the answers to watchers. */
class FeedResponder {
 public:
  virtual ~FeedResponder() = default;

  /** What became of an answer. */
  enum class Taken : uint8_t {
    kWhole,   // a stream can take more
    kInPart,  // a stream can't take more now: Feeds::writable is called when it can
    kLost,    // the connection is gone
  };

  /** Writes an answer. A poll is over then. Must not call Feeds. */
  virtual Taken answer(uint32_t token, const FeedAnswer& answer) = 0;

  /** Prefetches what an answer reads; one may come. */
  virtual void prefetch(uint32_t) const {}
};

class Feeds;

struct FeedsOptions {
  uint32_t hold;          // seconds
  uint32_t feeds;         // at most
  uint64_t memory;        // bytes of all values, their compressed forms and patches
  uint32_t watchers;      // at most
  bool upstream = false;  // feeds without a publisher are fetched
  // The table of the main thread whose feeds this one shows, to a worker's watchers; nullptr: it is
  // that itself. It outlives this one.
  const Feeds* shows = nullptr;
  std::shared_ptr<const KeyPatterns> privates = {};  // feeds that only a grant may read
  bool shared = false;  // other servers publish the same feeds: a watcher may know a version first
  LogBounds log = {};
  uint32_t answerBytes = 65536;  // of items in one answer; one is always sent
  uint32_t cache = 0;  // seconds for which a cache in front may keep an answer; 0: none is there
  bool named = false;  // there are grants, which may name watchers
  uint64_t lease = 30000;   // milliseconds for which a watcher that has gone is shown as present
  uint32_t names = 100000;  // the most that are kept, of all feeds
};

struct FeedCounts {
  uint64_t published, unchanged, deleted;
  uint64_t polls, pings;        // of feeds; those that ended with nothing new
  uint64_t documents, patches;  // values, and patches, that answers and events have taken
  uint64_t skipped;             // versions that a watcher has not seen, because it was slow
  uint64_t memory;              // bytes of all feeds
  uint32_t feeds;               // those that are awaited are not among them
  uint32_t awaited;             // feeds that are watched and not yet published
  uint32_t presences;           // feeds that tell of others' watchers; among neither
  uint32_t watching;            // watchers now; one of many feeds counts for each
  uint32_t streams;             // of them, event streams
};

/** A new version. */
struct Publication {
  std::string_view key;
  Cursor cursor;           // of the feed's epoch, its next version; of a new one: any epoch, 1
  std::string_view value;  // canonical JSON
  // Operations from the version before, joined by commas; empty: none.
  std::string_view patch = {};
  std::string_view gzip = {};  // Feed::whole(cursor) compressed; empty: none
  bool upstream = false;       // fetched, not published
};

/** Watchers of a feed at a worker, and until when patches are made without one that takes them. */
struct FeedWatchers {
  uint32_t watching = 0;
  uint32_t patching = 0;
  uint64_t patchesUntil = 0;
};

/** What all tables of a server count together; any thread may. */
struct FeedsShared {
  base::Ledger ledger;            // bytes in use
  std::atomic<uint64_t> kept{0};  // of them, bytes of the feeds themselves
  std::atomic<uint32_t> watching{0};
  std::mutex mutex;
  std::vector<uint64_t> slowSince;  // of each table: see Feeds::areSlowest; under the lock
};

/** Is told of every change of a feed, where workers show it. */
class FeedsWatcher {
 public:
  virtual ~FeedsWatcher() = default;
  /** There is a new version. */
  virtual void published(const Feed& feed) = 0;
  /** The compressed form of the newest version has come; without one there will be none. */
  virtual void compressed(const Feed& feed) = 0;
  /** It is gone, or has no value, for `why`. */
  virtual void ended(std::string_view key, Outcome why) = 0;
};

class Feeds {
 public:
  /**
   * `now` in milliseconds, as for tick; `clock` in microseconds, never goes back. `limits`, which
   * outlive it, say what each source address may have; nullptr: anything.
   */
  Feeds(const FeedsOptions& options, uint64_t now, uint64_t (*clock)(),
        AddressLimits* limits = nullptr);
  ~Feeds();
  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;

  /** Registers what writes the answers; not owned. */
  void setResponder(FeedResponder* responder) { responder_ = responder; }

  /** Has `busy` called when there is something for `step` or `takeWants` to do. */
  void onBusy(std::function<void()> busy) { busy_ = std::move(busy); }

  /**
   * Answers at once, or parks. kOk: the responder has been or will be given an answer under
   * `token`; `watcher` is what to drop it by, kNoWatcher when it has been answered already.
   * Any other outcome has changed nothing.
   */
  Outcome watch(const Wanted* wanted, uint32_t count, const WatchHow& how, uint32_t token,
                uint32_t* watcher);
  static constexpr uint32_t kNoWatcher = UINT32_MAX;

  /**
   * Where a cache may keep the answer that this would be given at once: its tag, as
   * FeedAnswer::tag; else empty.
   */
  std::string tagNow(const Wanted* wanted, uint32_t count, const WatchHow& how);

  // ---- Grants

  /** Whether there are feeds that only a grant may read. */
  bool hasPrivate() const { return options_.privates != nullptr; }

  /** Whether only a grant may read this feed, or that of which it tells. */
  bool isPrivate(std::string_view key) const {
    if (!hasPrivate()) return false;
    return options_.privates->covers(key) || options_.privates->covers(toldBy(key));
  }

  /** Whether a grant reads this feed, or that of which it tells. */
  bool reads(uint32_t grant, std::string_view key) const {
    const std::string_view told = toldBy(key);
    return grants_.reads(grant, told.empty() ? key : told);
  }

  /** The number of a grant that holds, or kNone. */
  uint32_t findGrant(const TokenHash& token) const { return grants_.find(token, clockNow()); }

  /** Whether a token is known to be no grant; never for long. */
  bool isBadGrant(const TokenHash& token) const { return grants_.isBad(token, clockNow()); }

  /** Remembers that. */
  void refuseGrant(const TokenHash& token) { grants_.refuse(token, clockNow()); }

  /** Takes a grant; kNone: there is no room. */
  uint32_t takeGrant(const GrantRights& rights) { return grants_.take(rights, clockNow()); }

  /** Ends grants before their time: their watchers hear of it, with the next ticks. */
  void endGrants(GrantPart part, std::string_view name);

  /** The connection of a watcher is gone. */
  void drop(uint32_t watcher);

  /** A stream whose `answer` returned false can take more. */
  void writable(uint32_t watcher);

  /**
   * Takes a new version: kOk, kTooManyFeeds, kFeedMemoryFull or kStateUnwritable. `watching` is how
   * many will be told. Where there is a journal it is the newest version only after `reveal`, as is
   * the end of a feed.
   */
  Outcome publish(const Publication& publication, uint32_t* watching);

  /** The same for an item of a log, which is a version always; an empty one is none, and gives the
   * log another epoch. The feed is a log, or new; if `fresh`, it may be anything, and what it has
   * is forgotten. */
  Outcome append(std::string_view key, Cursor cursor, std::string_view item, uint32_t* watching,
                 bool fresh = false);

  /** From now on publications and ends are written to `journal`, which outlives the table. */
  void keepJournal(Journal* journal) { journal_ = journal; }

  /** What was published and removed so far is in the journal's file. */
  void written() { written_ = staged_.size(); }

  /** What was in the file at the last `written` is as safe as it is to be: now it holds. */
  void reveal();

  /** Whether a version of these lengths could be taken now: kOk, kTooManyFeeds or kFeedMemoryFull.
   */
  Outcome roomFor(std::string_view key, uint64_t value, uint64_t gzip) const;

  /** Whether the feed has this value already. */
  bool holds(std::string_view key, std::string_view value) const;

  /** Bytes of the answer to a client without a cursor, 0 where there is none; `tag` names them. */
  uint64_t answerLength(std::string_view key, std::string* tag) const;

  /** Counts a publication that changed nothing: kOk, or kStateUnwritable while a change is staged.
   */
  Outcome unchanged(std::string_view key);

  /** The whole answer of `cursor`'s version, compressed, has come; empty: there will be none. */
  void compressed(std::string_view key, Cursor cursor, std::string_view gzip);

  /** The same where the bytes are another table's; without any there will be none. */
  void showCompressed(std::string_view key, Cursor cursor, base::Ref<base::Bytes> gzip);

  /** Ends a feed: its watchers are told. kOk, kUnknownFeed or kStateUnwritable. */
  Outcome remove(std::string_view key);

  /** Forgets a fetched feed without watchers. False when it is not fetched, or is watched. */
  bool forget(std::string_view key);

  /**
   * A first value could not be fetched, for `why`: watchers that wait for it are told so, and those
   * that ask before `until`.
   */
  void fail(std::string_view key, uint64_t until, Outcome why = Outcome::kUpstreamFailed);

  // For a table that shows the feeds of another, and for that one.

  /** Shows a version, whose bytes are the other's. */
  void show(std::string_view key, FeedValue value, base::Ref<base::Bytes> gzip);

  /** It is not published there, but awaited: those that do not wait for that are told, and streams
   * are opened; or it is being fetched: lists do not wait for it. */
  void await(std::string_view key);

  /** Forgets a feed that is awaited, once it has no watchers. */
  bool forgetAwaited(std::string_view key);

  /** There is no such feed any more, or none to be had, for `why`: those that watch it or wait for
   * it are told. */
  void end(std::string_view key, Outcome why);

  /** All that any client may have heard before is shown: watchers that are ahead of it still have
   * no version of this server's. To be called in every turn, before requests are read. */
  void caughtUp();

  /** Has `watcher`, which outlives it, told of what becomes of feeds. */
  void watchFor(FeedsWatcher* watcher) { watcher_ = watcher; }

  /**
   * A client at `from` asks a worker, the `thread`, for a feed that has no value here: kOk when one
   * is being fetched or awaited, and FeedsWatcher will be told. What is awaited is there until
   * `leftAtWorker`.
   */
  Outcome askForWorker(std::string_view key, uint32_t thread, const Address& from, bool waits);

  /** A worker had the watchers `before`, and has those of `now`. */
  void watchedAtWorkers(std::string_view key, const FeedWatchers& before, const FeedWatchers& now);

  /** Whether a watcher of a thread has this name; a lease after the last one it has not. */
  void namedAtWorker(std::string_view key, std::string_view name, uint32_t thread, bool there);

  /** A thread does not show this feed any more, and has no watchers of it. */
  void leftAtWorker(std::string_view key, uint32_t thread);

  // For a world, whose servers tell each other of their watchers: `key` is a presence feed's.

  /** Another server asks for this one's share: Wants say it, now and when it has changed. */
  void askShare(std::string_view key);

  /** Another server's share; it is taken where there is such a feed. */
  void takeShare(std::string_view key, std::string_view server, Attendance share);

  /** A server is gone, and with it its shares. */
  void forgetShares(std::string_view server);

  /** Calls `visit(key, name, there)` for each name that has come or gone since the last call. */
  template <typename Visit>
  void takeNamed(Visit&& visit) {
    for (const auto& [key, name, there] : std::exchange(named_, {})) visit(key, name, there);
  }

  /** A watcher of a worker takes this version compressed: so the next one is compressed,
   * too. */
  void askCompressed(std::string_view key);

  /** A watcher of a worker waits for this version to be compressed: FeedsWatcher will be
   * told, at once where that has failed. */
  void wantCompressed(std::string_view key);

  /** Calls `visit(feed)` for each feed whose watchers have changed, or that was asked for, since
   * the last call. */
  template <typename Visit>
  void takeTouched(Visit&& visit) {
    for (const uint32_t number : touched_) {
      Feed* const feed = feeds_[number].get();
      if (feed == nullptr || !feed->touched) continue;
      feed->touched = false;
      visit(*feed);
    }
    touched_.clear();
  }

  /** Forgets the feeds without a request in `idle` milliseconds, and calls `gone(key)`. */
  template <typename Gone>
  void forgetIdle(uint64_t idle, Gone&& gone) {
    for (size_t number = 0; number < feeds_.size(); ++number) {
      Feed* const feed = feeds_[number].get();
      if (feed == nullptr || feed->gone || feed->watching > 0 || feed->wanted) continue;
      if (feed->names) continue;
      if (feed->askedAt + idle > now_) continue;
      gone(std::string_view(feed->key));
      erase(feed);
    }
  }

  /** The feed, or nullptr. A feed without a value is in the table only while it is being fetched.
   */
  const Feed* find(std::string_view key) const;

  /** The same; one that tells of a feed that is there begins with that. */
  const Feed* seek(std::string_view key);

  /** The same; a Want says when it has another version, where it tells of another feed, or where a
   * change of it is staged. */
  const Feed* hear(std::string_view key);

  /** Calls `visit(feed)` for every feed that has a value and tells of no other. */
  template <typename Visit>
  void forEach(Visit&& visit) const {
    for (const auto& entry : byKey_) {
      if (entry.second->value && !entry.second->presence) visit(*entry.second);
    }
  }

  /** Takes over a feed of the last run; the table must have no feed of this key. */
  Outcome restore(std::string_view key, const FeedValue& feed);

  /** Something that JavaScript has to fetch or to compress. */
  struct Want {
    std::string key;
    bool fetch = false;         // a first value; else the compressed form of `cursor`
    Source source = kNoSource;  // of the client that asked first
    Cursor cursor = {};
    uint32_t number = 0;  // of a first value: the Feed's `want`
    Address from = {};    // of the client that asks now
    bool waits = false;   // for a first version
    bool heard = false;   // neither: the feed, that `hear` was called for, has another version
    bool asks = false;    // the same: the other servers are to be asked for their shares of it
    std::optional<Attendance> share = {};  // the same: they are to be told this one's
  };
  bool wants() const { return !wants_.empty(); }
  std::vector<Want> takeWants() { return std::exchange(wants_, {}); }

  /**
   * Answers watchers that are due, for `budget` microseconds and one answer more. Returns whether
   * some are left.
   */
  bool step(uint64_t budget);

  /** Whether watchers are due, something is wanted, or `caughtUp` is. */
  bool busy() const { return !spreading_.empty() || !wants_.empty() || !ahead_.empty(); }

  /** Ends the holds that are due at `now`; false: call again soon. */
  bool tick(uint64_t now);

  /** Whether the next `ticks` have nothing to do, if nothing else comes. */
  bool isQuiet(uint32_t ticks) const {
    return lookFrom_ >= used_ && leaving_.empty() && telling_.empty() && wheel_.isQuiet(ticks);
  }

  /**
   * Begins the end: every watcher is answered within `window` milliseconds, each at a moment of its
   * own, and told to come back after it. Watchers that come from now on are told so at once.
   */
  void drain(uint32_t window);

  const FeedCounts& counts() const { return counts_; }
  const FeedsOptions& options() const { return options_; }

  /** Feeds that could not be fetched and may make room for others. */
  size_t failed() const { return failed_.size(); }

  /** Bytes that only answers under way hold, of all tables. */
  uint64_t held() const { return shared_->ledger.bytes - shared_->kept; }

  /**
   * Where too much is held: whether the slowest reader of this table's watchers, slow since that
   * millisecond, is the slowest of those of all tables, as far as they have said.
   */
  bool areSlowest(uint64_t since);

  /** Watchers of all tables. */
  uint32_t watchingInAll() const { return shared_->watching; }

 private:
  /** The lists of a feed; each is a circle that begins at a watcher of its own, behind all others.
   */
  enum class List : uint8_t { kParked, kDue, kUnready };
  static constexpr uint32_t kLists = 3;

  /** How long a cache may keep the news that a watcher is answered with. */
  enum class Keep : uint8_t {
    kNot,
    kShort,  // what is newest: true for a moment
    kLong,   // what is newer than a cursor: true for ever, but the client may have farther to go
  };

  struct Watcher {
    uint32_t next;  // in its list; of a free one: the next free one + 1
    uint32_t previous;
    uint32_t feed;
    uint32_t token;
    uint32_t sibling;  // the next watcher of the same poll; itself when there is no other
    bool live : 1;
    bool listed : 1;  // in a list; only a stream whose reader is slow is in none
    bool first : 1;   // of its poll: it has the timer
    bool delta : 1;
    bool gzip : 1;
    bool stream : 1;
    bool many : 1;
    bool waits : 1;  // for the first version of a feed that is not published
    bool reads : 1;  // a log, from a place of its own: an answer comes in any case
    bool knew : 1;   // a version, which may be of another life: then seen is 0
    Keep keep : 2;
    uint32_t grant : 20;  // by which it watches, or kNone
    uint64_t seen;        // the version it has, 0 for none
  };
  static_assert(sizeof(Watcher) == 32, "the memory figures in README count on it");

  struct Hash {
    uint64_t key;
    using is_transparent = void;
    size_t operator()(std::string_view text) const;
  };
  using ByKey = std::unordered_map<std::string, Feed*, Hash, std::equal_to<>>;

  /** A publication, or the end of a feed, that is not known to be in the journal. */
  struct Staged {
    std::string key;
    Cursor cursor = {};  // version 0: the end
    base::Ref<base::Bytes> value = {};
    base::Ref<base::Bytes> gzip = {};  // may be missing
    std::string patch = {};
    bool upstream = false;
    bool isNew = false;  // a place is kept for it
    uint32_t items = 0;  // of a log, whose newest is `value`; 0: it is none
    uint64_t bytes = 0;  // of stagedBytes_
    bool heard = false;  // a Want is to say when it holds
  };

  Feed* lookUp(std::string_view key) const;
  bool isStaged(std::string_view key) const;
  bool mayStage(std::string_view key) const;
  void apply(const Staged& staged);
  void spreadNews(Feed* feed);
  void end(Feed* feed);
  bool isFull() const { return counts_.feeds + stagedFeeds_ >= options_.feeds; }
  static bool hasPlace(const Feed* feed) { return feed != nullptr && !feed->awaited; }
  bool mayCreate(bool awaited);
  Feed* create(std::string_view key, bool awaited = false);
  Feed* make(std::string_view key);
  /** What counts a feed. */
  uint32_t& placesOf(const Feed& feed) {
    if (feed.presence) return counts_.presences;
    return feed.awaited ? counts_.awaited : counts_.feeds;
  }
  void stage(Staged staged, uint64_t bytes);
  static uint64_t mostOf(uint64_t value, uint64_t gzip);
  bool fits(const Feed* feed, uint64_t most) const;
  bool makeRoom();
  void needNotMakeRoom(Feed* feed);
  void erase(Feed* feed, Outcome why = Outcome::kUnknownFeed);
  void eraseIfOver(Feed* feed);
  Outcome ask(const Wanted& wanted, const WatchHow& how, Feed** found);
  void giveBack(Feed* feed);
  void asked(Feed* feed, bool delta);
  void arrive(Feed* feed);
  /** Whether `is(watcher, feed)` of any watcher of a poll. */
  template <typename Is>
  bool isAny(uint32_t first, Is&& is) const {
    for (uint32_t at = first;;) {
      const Watcher& one = watchers_[at];
      if (is(one, *feeds_[one.feed])) return true;
      at = one.sibling;
      if (at == first) return false;
    }
  }
  bool awaitsValue(uint32_t first) const;
  bool isUnheard(const Feed& feed) const;
  bool awaitsWord(uint32_t first) const;
  static bool waitsFor(const Wanted& wanted, const WatchHow& how) {
    return how.stream || wanted.after == kNoCursor;
  }
  static bool isUnknown(const Feed& feed, const Watcher& watcher) {
    return feed.awaited && !feed.value && !watcher.waits;
  }
  bool shows() const { return options_.shows != nullptr; }
  bool mayBeFetched(std::string_view key) const { return options_.upstream && toldBy(key).empty(); }
  bool mayBeBehind() const { return shows() || options_.shared; }
  uint32_t listOf(const Feed& feed, List list) const;
  bool empty(uint32_t list) const;
  void prefetch(uint32_t watcher) const;
  void hang(uint32_t watcher, List which);
  void unhang(uint32_t watcher);
  void makeDue(Feed* feed, List which);
  void spread(Feed* feed);
  void want(Want want);
  uint32_t newWatcher();
  void release(uint32_t watcher);
  uint64_t seenOf(const Feed& feed, const Watcher& watcher, Cursor after) const;
  static Cursor afterOf(const Wanted& wanted, const WatchHow& how) {
    return how.last == kNotLast ? Cursor::of(wanted.after) : Cursor{.version = how.last};
  }
  void takeAfter(uint32_t watcher);
  bool noteAhead(uint32_t watcher);
  bool hasNews(const Watcher& watcher) const;
  Watcher watcherOf(const Feed& feed, const Wanted& wanted, const WatchHow& how) const;
  /** Whether what it is answered with a value is that value's compressed form. */
  static bool takesGzip(const Watcher& watcher) {
    return watcher.gzip && !watcher.stream && !watcher.many;
  }
  Keep keepOf(const Wanted* wanted, uint32_t count, const WatchHow& how) const;
  void appendTag(std::string* text, uint32_t place, const Watcher& watcher) const;
  static std::string shortTag(std::string_view text);
  void appendTurn(std::string* text) const;
  uint64_t patchFor(const Feed& feed, const Watcher& watcher) const;
  bool awaitsCompression(const Watcher& watcher);
  bool knowsAll(uint32_t first) const;
  void forgetSeen(const Feed& feed);
  void park(uint32_t watcher);
  void parkAll(uint32_t first);
  uint32_t firstOf(uint32_t watcher) const;
  void serve(uint32_t first);
  void serveStream(uint32_t first);
  void servePoll(uint32_t first);
  void begin();
  template <typename Write>
  std::string_view envelope(Write&& write);
  uint64_t addNews(const Watcher& watcher);
  LogPart partFor(const Feed& feed, const Watcher& watcher) const;
  uint32_t newsLength(const Watcher& watcher) const;
  static bool isNoLog(const Feed& feed, const Watcher& watcher) {
    return watcher.reads && feed.value && !feed.isLog;
  }
  void addProblem(std::string_view key, Outcome problem);
  void addText(std::string_view text);
  void joinItems(bool turns);
  void appendNext(std::string* text, bool turns);
  FeedResponder::Taken deliver(uint32_t token, FeedAnswer answer);
  void fire(uint32_t watcher);
  void arm(uint32_t watcher, uint64_t milliseconds);
  uint32_t random(uint32_t below);
  uint32_t retry();
  void account(Feed* feed, uint64_t before);
  bool draining() const { return drainEnd_ != 0; }
  uint64_t clockNow() const { return clock_() / 1000; }
  Outcome grantOver(const Watcher& watcher) const {
    if (watcher.grant == Grants::kNone) return Outcome::kOk;
    return grants_.over(watcher.grant, clockNow());
  }
  uint64_t withinGrant(const Watcher& watcher, uint64_t milliseconds) const {
    if (watcher.grant == Grants::kNone) return milliseconds;
    return std::min(milliseconds, grants_.left(watcher.grant, clockNow()));
  }
  void endOver();
  uint32_t bindingOf(const Wanted* wanted, uint32_t count, uint32_t grant) const;
  std::string_view nameOf(std::string_view key, uint32_t grant) const;
  Present* presentIn(Feed* feed, std::string_view name);
  void come(Feed* feed, std::string_view name);
  void go(Feed* feed, uint32_t grant);
  void leave(Feed* feed, Names::iterator one);
  void forgetName(Feed* feed, Names::iterator one);
  void forgetNames(Feed* feed);
  void endLeases();
  void forgetShare(Presence* presence, std::string_view server);
  void share(Feed* feed, const Attendance& here);
  bool isAsked(const Feed& presence) const;
  Attendance presentHere(Feed* of, Presence* presence) const;
  Outcome beginPresence(std::string_view key, uint64_t askAt = 0);
  void tell(Feed* feed, Cursor cursor, Attendance told, std::string_view value, std::string patch);
  void tellAgain(Feed* feed);
  void tellLater(Feed* feed);
  void tellDue();
  void endPresenceOf(std::string_view key);

  /** A name whose lease is looked at; its feed may be another one by then. */
  struct Leaving {
    uint32_t feed;
    std::string name;
  };

  /** A name that has come to this table, or gone. */
  struct Named {
    std::string key, name;
    bool there;
  };

  const FeedsOptions options_;
  uint64_t (*const clock_)();
  AddressLimits* const limits_;
  FeedsShared own_;  // of the table that others show
  FeedsShared* const shared_;
  const size_t number_;  // of this table among them
  std::minstd_rand random_;
  ByKey byKey_;
  std::vector<std::unique_ptr<Feed>> feeds_;  // by number
  std::vector<uint32_t> freeFeeds_;
  uint64_t places_ = 0;  // bytes of all feeds that are in no ledger
  // Of watchers that wait for a value to show; of one that reads a log the version is
  // WatchHow::last.
  std::unordered_map<uint32_t, Cursor> afters_;
  // Where this shows another: of a poll for many, what was known at once and waits for the rest.
  std::unordered_map<uint32_t, std::vector<std::pair<std::string, Outcome>>> refused_;
  std::vector<uint32_t> ahead_;    // where this shows another: watchers that may be ahead of it
  std::vector<uint32_t> touched_;  // where this shows another: numbers of feeds; some may be gone
  base::Reserved<Watcher> watchers_;
  base::Wheel<kFeedTick> wheel_;
  FeedResponder* responder_ = nullptr;
  std::function<void()> busy_;
  FeedsWatcher* watcher_ = nullptr;
  Journal* journal_ = nullptr;
  std::vector<Staged> staged_;   // in their order
  size_t written_ = 0;           // of them, those that the journal's file has
  uint64_t stagedBytes_ = 0;     // of their values
  uint32_t stagedFeeds_ = 0;     // of them, new feeds
  std::deque<Feed*> spreading_;  // feeds with watchers that are due
  std::vector<Want> wants_;
  uint32_t lastWant_ = 0;         // its number
  std::list<Feed*> failed_;       // that could not be fetched and may make room, the oldest first
  std::string envelope_;          // of the answer being composed
  std::vector<FeedItem> items_;   // its pieces
  std::vector<FeedItem> joined_;  // of joinItems
  bool gzip_ = false;             // the body is compressed
  bool packs_ = false;            // the body may be compressed
  FeedCounts counts_ = {};
  uint64_t now_;              // milliseconds, of the last tick
  const uint64_t wallAt_;     // milliseconds since 1970 when now_ was 0
  uint32_t used_ = 0;         // watchers ever used
  uint32_t freeWatcher_ = 0;  // the first free one among them + 1
  Grants grants_;
  // The watcher from which on those whose grant has ended are looked for; used_: none are.
  uint32_t lookFrom_ = UINT32_MAX;
  uint32_t names_ = 0;                        // that are kept, of all feeds
  std::multimap<uint64_t, Leaving> leaving_;  // by the millisecond when their leases are over
  std::vector<Named> named_;                  // where this shows another
  std::deque<std::pair<uint64_t, uint32_t>> telling_;  // presence feeds, by when they are told
  uint64_t drainEnd_ = 0;                              // milliseconds; 0: not draining
  uint32_t drainWindow_ = 0;
};

}  // namespace server

#endif  // SPRITES_FEEDS_H_
