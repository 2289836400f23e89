// Feeds: JSON documents under keys, and their watchers.
//
//   "scores" ─▶ feed   [ epoch │ version │ value │ compressed │ patches … ]
//                        │ parked: has the newest     ─publish─▶ due: waits for its answer
//                        │ unready: waits for a first value, or for the compressed one
//                        ▼
//   watcher n          [ its list │ feed │ token │ sibling │ version it has │ what it can take ]
//   wheel              [ the one timer of a poll: its hold; of an event stream: its next comment ]
//
// Lifecycle of a watcher: a poll for which there is a newer version is answered at once, or becomes
// due when the value is large. Any other poll parks. A publication moves the list of parked
// watchers to the list of due ones, in constant time. `step` answers due watchers for a bounded
// time in every turn of the loop, feed by feed. An answer has the version that is newest when it is
// written: a watcher that is still due at the next publication skips a version. An answer ends a
// poll. An event stream parks again. While its reader is slow it is in no list; it gets the newest
// version when the reader has read on (`writable`). A poll for many feeds has one watcher for each
// feed, linked in a circle: the first feed with news ends the poll.
//
// With a state, a publication is first written to the journal, and staged: no watcher gets it, and
// requests get the version before, until the turn has written it (`reveal`). So the process never
// loses a cursor that a watcher has seen.
//
// Lifecycle of a feed: it begins with its first value, or, with an upstream, with the first
// request. Its versions count up within an epoch. When it is deleted, its watchers are answered
// before it is removed. A feed that is not published is `awaited`: it exists for the watchers that
// wait for its first value, is removed with the last of them, and takes no place of a published
// feed. There may be as many awaited feeds as others. Each counts for the address that asked first.
//
// Patches are kept one after the other in one run of bytes. The patches from any remembered version
// to the newest are the rest of that run: an answer refers to them without a copy. They are kept up
// to half the length of the value.
//
//   log   [ ,{"op":…},{"op":…} │ ,{"op":…} │ ,{"op":…} │ room ]
//           ▲ from 39 to 40      ▲ 41        ▲ 42: the newest
//
// Cost: 32 bytes a watcher and 12 for its timer. An answer to a thousand watchers is one shared
// value, and the JSON around it (the envelope). A publication to a million watchers takes the time
// of a million writes, but no turn of the loop takes longer than its share. Rejected: a list of
// watchers for each version (all parked watchers have the newest, so there is only one), a queue
// for each watcher (memory grows with slow readers), a timer that answers due watchers (they would
// wait while the loop is idle), a ring of separate patches (an answer over many versions would be a
// list of thousands of pieces).
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

/** Longest quiet time of a stream, in milliseconds: then it gets a comment. */
constexpr uint32_t kCommentEvery = 25000;

/** One tick of the wheel, in milliseconds: a hold ends up to three ticks late. */
constexpr uint32_t kFeedTick = 100;

/**
 * How long patches of a feed are made after the last request or watcher that takes patches, in
 * milliseconds: that client may come back.
 */
constexpr uint32_t kPatchesKept = 60000;

/** Most feeds in one poll. */
constexpr uint32_t kFeedsAtOnce = 32;

/** A feed in a request. */
struct FeedRequest {
  std::string_view key;    // isFeedKey
  std::string_view after;  // isCursor, or empty
  // Why the client may not read the feed, even if there is none; kOk: it may.
  Outcome problem = Outcome::kOk;
};

constexpr uint32_t kNoFeedHold = UINT32_MAX;  // the request has no hold

// Special values of WatchOptions::lastItems.
constexpr uint32_t kNoLastItems = UINT32_MAX;
constexpr uint32_t kAllItems = 0;

/** How a watcher watches, and what it accepts. */
struct WatchOptions {
  uint32_t hold = kNoFeedHold;  // seconds
  bool delta = false;           // accepts patches
  bool gzip = false;            // accepts gzip
  bool stream = false;          // an event stream, of one feed
  bool hasManyFeeds = false;    // the answer is {"items":[…]}
  bool isPost = false;          // a POST: no cache keeps the answer
  // How many items from the end of a log, or kAllItems for all; not for many feeds.
  uint32_t lastItems = kNoLastItems;
  std::string_view noneMatch = {};  // If-None-Match: tags of the answers that a cache has
  uint32_t grant = Grants::kNone;   // the watcher ends with this grant
  const GrantRights* verifiedGrant = nullptr;  // the grant, not in the table yet; without a key:
                                               // the token is no grant; valid during the call only
  Address address = {};  // a feed without a value counts for the first asking address
};

/** A piece of an answer's body: text, shared bytes, text. */
struct BodyPiece {
  std::string_view before;
  const base::Bytes* bytes;  // nullptr: none
  uint32_t begin, end;
  std::string_view after;
};

/** An answer to one watcher; valid during the call only. */
struct FeedAnswer {
  Outcome outcome = Outcome::kOk;     // any other: the problem; a stream has it in `pieces`, too
  const BodyPiece* pieces = nullptr;  // the body; nullptr: a comment in a stream
  uint32_t count = 0;
  bool gzip = false;          // the body is compressed; of a stream: the connection compresses it
  bool mayCompress = false;   // the connection may compress it: patches, items, or many feeds
  bool isEvent = false;       // an event
  bool endsStream = false;    // the stream ends with it
  std::string_view cursor;    // of an event; may be empty
  uint32_t retry = 0;         // of a stream that ends: milliseconds until the client reconnects
  uint32_t cacheSeconds = 0;  // seconds for which a cache may serve it; 0: not at all
  std::string_view tag;       // its ETag, where a cache may serve it

  uint64_t length() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) {
      sum += pieces[i].before.size() + pieces[i].after.size();
      if (pieces[i].bytes != nullptr) sum += pieces[i].end - pieces[i].begin;
    }
    return sum;
  }
};

/** Writes the answers to watchers. */
class FeedResponder {
 public:
  virtual ~FeedResponder() = default;

  /** The result of writing an answer. */
  enum class WriteResult : uint8_t {
    kWhole,   // written; a stream accepts more
    kInPart,  // a slow stream: Feeds::writable is called when it accepts more
    kLost,    // the connection is gone
  };

  /** Writes an answer, which ends a poll. Must not call Feeds. */
  virtual WriteResult answer(uint32_t token, const FeedAnswer& answer) = 0;

  /** Prefetches the memory that an answer reads: an answer may follow. */
  virtual void prefetch(uint32_t) const {}
};

class Feeds;

struct FeedsOptions {
  uint32_t hold;          // seconds
  uint32_t feeds;         // most feeds
  uint64_t memory;        // bytes of all values, their compressed forms and patches
  uint32_t watchers;      // most watchers
  bool upstream = false;  // unpublished feeds are fetched
  // Of a worker's table: the main thread's table, whose feeds it shows. That table outlives this
  // one. nullptr: this is the main thread's table.
  const Feeds* mainTable = nullptr;
  std::shared_ptr<const KeyPatterns> privatePatterns = {};  // feeds that only a grant may read
  bool inWorld = false;  // other servers publish the same feeds: a watcher may be ahead
  LogBounds log = {};
  uint32_t answerBytes = 65536;  // most bytes of items in one answer; one item is always sent
  uint32_t cache = 0;          // seconds for which a cache may keep an answer; 0: there is no cache
  bool hasGrants = false;      // there are grants, which may name watchers
  uint64_t lease = 30000;      // milliseconds for which presence shows a watcher that has gone
  uint32_t maxNames = 100000;  // most names of watchers of all feeds
};

struct FeedCounts {
  uint64_t published, unchanged, deleted;
  uint64_t polls, pings;        // polls of feeds; those that ended without news
  uint64_t documents, patches;  // values and patches in answers and events
  uint64_t skipped;             // versions that slow watchers have missed
  uint64_t memory;              // bytes of all feeds
  uint32_t feeds;               // without awaited feeds and presence feeds
  uint32_t awaited;             // feeds that are watched and not yet published
  uint32_t presences;           // presence feeds
  uint32_t watching;            // watchers; a poll for many feeds has one for each
  uint32_t streams;             // watchers that are event streams
};

/** A new version. */
struct Publication {
  std::string_view key;
  Cursor cursor;           // the next version in the feed's epoch; of a new feed: any epoch, 1
  std::string_view value;  // canonical JSON
  // Operations from the version before, joined by commas; empty: none.
  std::string_view patch = {};
  std::string_view gzip = {};  // the answer with the value, compressed; empty: none
  bool upstream = false;       // fetched, not published
};

/** Watchers of a feed at a worker, and the time until which patches are made without watchers. */
struct WatcherCounts {
  uint32_t watching = 0;
  uint32_t patching = 0;
  uint64_t patchesUntil = 0;
};

/** Counts of all tables of a server; any thread may change them. */
struct SharedFeedCounts {
  base::Ledger ledger;                 // bytes in use
  std::atomic<uint64_t> feedBytes{0};  // bytes of the feeds themselves, a part of the ledger
  std::atomic<uint32_t> watching{0};
  std::mutex mutex;
  std::vector<uint64_t> slowSince;  // by table: see Feeds::hasSlowestReader; under the lock
};

/** Called at every change of a feed that workers show. */
class FeedsObserver {
 public:
  virtual ~FeedsObserver() = default;
  /** The feed has a new version. */
  virtual void published(const Feed& feed) = 0;
  /** The newest version is compressed; without `gzip` this has failed. */
  virtual void compressed(const Feed& feed) = 0;
  /** The feed is deleted, or has no value, for `why`. */
  virtual void ended(std::string_view key, Outcome why) = 0;
};

class Feeds {
 public:
  /**
   * `now` in milliseconds, as for tick; `clock` in microseconds, monotonic. `limits` are those of
   * the source addresses, and outlive the table; nullptr: none.
   */
  Feeds(const FeedsOptions& options, uint64_t now, uint64_t (*clock)(),
        AddressLimits* limits = nullptr);
  ~Feeds();
  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;

  /** Sets the writer of the answers; not owned. */
  void setResponder(FeedResponder* responder) { responder_ = responder; }

  /** Sets the callback for when `step` or `takeTasks` has something to do. */
  void onBusy(std::function<void()> busy) { onBusy_ = std::move(busy); }

  /**
   * Answers at once, or parks. kOk: the responder has got or will get an answer under `token`;
   * `watcher` is for `drop`, kNoWatcher after an answer. Any other outcome has changed nothing.
   */
  Outcome watch(const FeedRequest* requests, uint32_t count, const WatchOptions& how,
                uint32_t token, uint32_t* watcher);
  static constexpr uint32_t kNoWatcher = UINT32_MAX;

  /**
   * The tag of the answer that this watcher would get at once, if a cache may keep it; otherwise
   * empty.
   */
  std::string tagNow(const FeedRequest* requests, uint32_t count, const WatchOptions& how);

  // ---- Grants

  /** Whether there are private feeds. */
  bool hasPrivate() const { return options_.privatePatterns != nullptr; }

  /** Whether this feed, or the feed of this presence feed, is private. */
  bool isPrivate(std::string_view key) const {
    if (!hasPrivate()) return false;
    return options_.privatePatterns->covers(key) ||
           options_.privatePatterns->covers(presenceSubjectOf(key));
  }

  /** Whether a grant may read this feed, or the feed of this presence feed. */
  bool reads(uint32_t grant, std::string_view key) const {
    const std::string_view subject = presenceSubjectOf(key);
    return grants_.reads(grant, subject.empty() ? key : subject);
  }

  /** The number of a valid grant, or kNone. */
  uint32_t findGrant(const TokenHash& token) const { return grants_.find(token, clockNow()); }

  /** Whether a token is known to be no grant; the table forgets this soon. */
  bool isBadGrant(const TokenHash& token) const { return grants_.isBad(token, clockNow()); }

  /** Remembers that a token is no grant. */
  void rememberBadGrant(const TokenHash& token) { grants_.rememberBad(token, clockNow()); }

  /** Adds a grant; kNone: there is no room. */
  uint32_t addGrant(const GrantRights& rights) { return grants_.add(rights, clockNow()); }

  /** Ends grants before their time. Their watchers are answered with the next ticks. */
  void endGrants(GrantPart part, std::string_view name);

  /** Removes a watcher whose connection is gone. */
  void drop(uint32_t watcher);

  /** A stream that had answered kInPart accepts more. */
  void writable(uint32_t watcher);

  /**
   * Takes a new version: kOk, kTooManyFeeds, kFeedMemoryFull or kStateUnwritable. `watching` is the
   * number of watchers that will get it. With a journal, the version becomes the newest one with
   * `reveal`; a deletion takes effect then, too.
   */
  Outcome publish(const Publication& publication, uint32_t* watching);

  /** Takes an item of a log; every item is a version. An empty one only gives the log another
   * epoch. The feed is a log, or new; if `replacesAll`, it may be any feed, and its content is
   * forgotten.
   */
  Outcome append(std::string_view key, Cursor cursor, std::string_view item, uint32_t* watching,
                 bool replacesAll = false);

  /** Writes publications and deletions to `journal` from now on; it outlives the table. */
  void keepJournal(Journal* journal) { journal_ = journal; }

  /** The journal's file has all publications and deletions so far. */
  void written() { writtenCount_ = staged_.size(); }

  /** What the file had at the last `written` is as safe as --sync wants: it takes effect. */
  void reveal();

  /** Whether a version of these lengths has room: kOk, kTooManyFeeds or kFeedMemoryFull. */
  Outcome roomFor(std::string_view key, uint64_t value, uint64_t gzip) const;

  /** Whether the feed has this value. */
  bool valueEquals(std::string_view key, std::string_view value) const;

  /** Length of the answer to a client without a cursor, 0 without a value; `tag` is its ETag. */
  uint64_t answerLength(std::string_view key, std::string* tag) const;

  /** Counts a publication without a change: kOk, or kStateUnwritable while one is staged. */
  Outcome countUnchanged(std::string_view key);

  /** Takes the compressed answer of `cursor`'s version; empty: compression has failed. */
  void setCompressed(std::string_view key, Cursor cursor, std::string_view gzip);

  /** The same with another table's bytes; nullptr: compression has failed. */
  void showCompressed(std::string_view key, Cursor cursor, base::Ref<base::Bytes> gzip);

  /** Deletes a feed and answers its watchers: kOk, kUnknownFeed or kStateUnwritable. */
  Outcome remove(std::string_view key);

  /** Forgets a fetched feed without watchers. False: it is published, or watched. */
  bool removeFetched(std::string_view key);

  /**
   * The first fetch of a feed has failed, for `why`: its watchers get this answer, and so do
   * requests before `until`.
   */
  void fail(std::string_view key, uint64_t until, Outcome why = Outcome::kUpstreamFailed);

  // ---- Between the main thread's table and the tables of workers, which show its feeds

  /** Shows a version with the main table's bytes. */
  void show(std::string_view key, FeedValue value, base::Ref<base::Bytes> gzip);

  /** The main table awaits the feed, or fetches it: watchers that do not wait for a first value are
   * answered, streams are opened, and lists do not wait for it. */
  void markAwaited(std::string_view key);

  /** Forgets an awaited feed without watchers. */
  bool removeAwaited(std::string_view key);

  /** The feed is deleted, or has no value, for `why`: its watchers are answered. */
  void end(std::string_view key, Outcome why);

  /** This table shows all versions that a client may have seen before: a watcher that is still
   * ahead has no version of this server. Called in every turn, before requests are read. */
  void resolveAhead();

  /** Sets the watcher of all changes, which outlives the table. */
  void setObserver(FeedsObserver* watcher) { observer_ = watcher; }

  /**
   * A client at `from` asks the worker `thread` for a feed without a value: kOk when the feed is
   * fetched or awaited, so that FeedsObserver will be called. An awaited feed exists until
   * `detachWorker`.
   */
  Outcome requestForWorker(std::string_view key, uint32_t thread, const Address& from, bool waits);

  /** The watchers of a worker have changed from `before` to `now`. */
  void updateWorkerWatchers(std::string_view key, const WatcherCounts& before,
                            const WatcherCounts& now);

  /** A thread has its first watcher with this name, or, a lease after its last one, none. */
  void setNameAtWorker(std::string_view key, std::string_view name, uint32_t thread, bool there);

  /** A thread does not show this feed any more, and has no watchers of the feed. */
  void detachWorker(std::string_view key, uint32_t thread);

  // ---- Between the servers of a world; `key` is that of a presence feed

  /** Another server asks for this server's share: a Task has it, now and after each change. */
  void answerShareRequest(std::string_view key);

  /** Takes another server's share, if there is such a feed. */
  void setShare(std::string_view key, std::string_view server, Attendance share);

  /** Forgets the shares of a server that has gone. */
  void removeShares(std::string_view server);

  /** Calls `visit(key, name, there)` for each name that has come or gone since the last call. */
  template <typename Visit>
  void takeNameChanges(Visit&& visit) {
    for (const auto& [key, name, there] : std::exchange(nameChanges_, {})) visit(key, name, there);
  }

  /** A watcher of a worker takes this version compressed: the next version is compressed, too. */
  void keepCompressing(std::string_view key);

  /** A watcher of a worker waits for the compressed version: FeedsObserver will be called, at once
   * if compression has failed. */
  void requestCompressed(std::string_view key);

  /** Calls `visit(feed)` for each feed with requests or changed watchers since the last call. */
  template <typename Visit>
  void takeDirty(Visit&& visit) {
    for (const uint32_t number : dirtyFeeds_) {
      Feed* const feed = feeds_[number].get();
      if (feed == nullptr || !feed->isDirty) continue;
      feed->isDirty = false;
      visit(*feed);
    }
    dirtyFeeds_.clear();
  }

  /** Forgets the feeds without a request in `idle` milliseconds, and calls `onRemoved(key)`. */
  template <typename OnRemoved>
  void removeIdle(uint64_t idle, OnRemoved&& onRemoved) {
    for (size_t number = 0; number < feeds_.size(); ++number) {
      Feed* const feed = feeds_[number].get();
      if (feed == nullptr || feed->isDeleted || feed->watching > 0 || feed->fetchRequested)
        continue;
      if (feed->names) continue;
      if (feed->lastRequestAt + idle > now_) continue;
      onRemoved(std::string_view(feed->key));
      erase(feed);
    }
  }

  /** The feed, or nullptr. A feed without a value is in the table only while it is fetched. */
  const Feed* find(std::string_view key) const;

  /** The same. Creates the presence feed of an existing feed. */
  const Feed* findOrCreatePresence(std::string_view key);

  /** The same. A Task reports the next version of a presence feed, or of a feed with a staged
   * change. */
  const Feed* reportNextChange(std::string_view key);

  /** Calls `visit(feed)` for every feed with a value, except for presence feeds. */
  template <typename Visit>
  void forEach(Visit&& visit) const {
    for (const auto& entry : byKey_) {
      if (entry.second->value && !entry.second->presence) visit(*entry.second);
    }
  }

  /** Restores a feed of the last run; the table must not have this key. */
  Outcome restore(std::string_view key, const FeedValue& feed);

  /** A request to JavaScript: to fetch, to compress, or to send to other servers. */
  struct Task {
    std::string key;
    bool fetch = false;         // fetch a first value; otherwise compress the version of `cursor`
    Source source = kNoSource;  // of the first asking client
    Cursor cursor = {};
    uint32_t number = 0;         // with `fetch`: the Feed's `fetchTaskNumber`
    Address address = {};        // of the asking client
    bool waitsForFirst = false;  // the client waits for a first version
    bool reportsChange = false;  // report that the feed of a `reportNextChange` has another version
    bool asksForShares = false;  // ask the other servers for their shares of the feed
    std::optional<Attendance> ownShare = {};  // send this server's share to the other servers
  };
  bool hasTasks() const { return !tasks_.empty(); }
  std::vector<Task> takeTasks() { return std::exchange(tasks_, {}); }

  /**
   * Answers due watchers for `budget` microseconds, and one more. Returns whether some are left.
   */
  bool step(uint64_t budget);

  /** Whether `step`, `takeTasks` or `resolveAhead` has something to do. */
  bool hasWork() const {
    return !feedsWithDue_.empty() || !tasks_.empty() || !watchersAhead_.empty();
  }

  /** Ends the holds that are over at `now`; false: call again soon. */
  bool tick(uint64_t now);

  /** Whether the next `ticks` have nothing to do without new requests. */
  bool isQuiet(uint32_t ticks) const {
    return grantScanFrom_ >= used_ && nameLeases_.empty() && presenceSchedule_.empty() &&
           wheel_.isQuiet(ticks);
  }

  /**
   * Begins the end: answers every watcher within `window` milliseconds, at a random moment, with a
   * retry after the window. New watchers get this answer at once.
   */
  void drain(uint32_t window);

  const FeedCounts& counts() const { return counts_; }
  const FeedsOptions& options() const { return options_; }

  /** The options of a worker's table that shows these feeds. */
  FeedsOptions workerOptions() const {
    FeedsOptions options = options_;
    options.mainTable = this;
    options.feeds *= 2;  // it may show the presence feed of each feed too
    return options;
  }

  /** Number of feeds that could not be fetched, and make room for others. */
  size_t evictableCount() const { return evictable_.size(); }

  /** Bytes that only unsent answers hold, of all tables. */
  uint64_t unsentBytes() const { return sharedCounts_->ledger.bytes - sharedCounts_->feedBytes; }

  /**
   * For when answers hold too much memory: whether the slowest reader of this table, slow since
   * that millisecond, is the slowest of all tables, by what they have reported.
   */
  bool hasSlowestReader(uint64_t since);

  /** Watchers of all tables. */
  uint32_t watchingInAll() const { return sharedCounts_->watching; }

 private:
  /** The lists of a feed. Each is a circle that starts at a sentinel behind all watchers. */
  enum class List : uint8_t { kParked, kDue, kUnready };
  static constexpr uint32_t kLists = 3;

  /** How long a cache may keep the answer to a watcher. */
  enum class CacheLifetime : uint8_t {
    kNone,
    kShort,  // the newest version: valid for a moment
    kLong,   // a version newer than a cursor: always valid, but maybe not the newest
  };

  struct Watcher {
    uint32_t next;  // in its list; of a free watcher: the next free one + 1
    uint32_t previous;
    uint32_t feed;
    uint32_t token;
    uint32_t sibling;  // the next watcher of the same poll, in a circle
    bool isLive : 1;
    bool isListed : 1;  // in a list; only a stream with a slow reader is in none
    bool isFirst : 1;   // of its poll: it has the timer
    bool takesPatches : 1;
    bool acceptsGzip : 1;
    bool isStream : 1;
    bool hasManyFeeds : 1;
    bool waitsForFirst : 1;  // waits for the first version of an unpublished feed
    bool readsLog : 1;       // reads a log from `last`: it is answered in any case
    bool hadCursor : 1;      // came with a cursor; with one of another epoch `seen` is 0
    CacheLifetime cacheLifetime : 2;
    uint32_t grant : 20;   // its grant, or kNone
    uint64_t seenVersion;  // its version, 0 for none
  };
  static_assert(sizeof(Watcher) == 32, "the memory figures in README count on it");

  struct Hash {
    uint64_t key;
    using is_transparent = void;
    size_t operator()(std::string_view text) const;
  };
  using ByKey = std::unordered_map<std::string, Feed*, Hash, std::equal_to<>>;

  /** A publication or deletion that the journal may not have yet. */
  struct Staged {
    std::string key;
    Cursor cursor = {};  // version 0: a deletion
    base::Ref<base::Bytes> value = {};
    base::Ref<base::Bytes> gzip = {};  // may be missing
    std::string patch = {};
    bool upstream = false;
    bool isNew = false;          // a new feed: a place is reserved for it
    uint32_t itemCount = 0;      // number of items of a log, the newest is `value`; 0: no log
    uint64_t reservedBytes = 0;  // its part of stagedBytes_
    bool reportsChange = false;  // a Task reports when it takes effect
  };

  Feed* lookUp(std::string_view key) const;
  bool isStaged(std::string_view key) const;
  bool mayStage(std::string_view key) const;
  void apply(const Staged& staged);
  void makeWatchersDue(Feed* feed);
  void end(Feed* feed);
  bool isFull() const { return counts_.feeds + stagedFeeds_ >= options_.feeds; }
  static bool hasPlace(const Feed* feed) { return feed != nullptr && !feed->isAwaited; }
  bool mayCreate(bool awaited);
  Feed* create(std::string_view key, bool awaited = false);
  Feed* createUncounted(std::string_view key);
  /** The count that includes a feed. */
  uint32_t& countOf(const Feed& feed) {
    if (feed.presence) return counts_.presences;
    return feed.isAwaited ? counts_.awaited : counts_.feeds;
  }
  void stage(Staged staged, uint64_t bytes);
  static uint64_t peakBytesOf(uint64_t value, uint64_t gzip);
  bool fits(const Feed* feed, uint64_t maxBytes) const;
  bool makeRoom();
  void unmarkEvictable(Feed* feed);
  void erase(Feed* feed, Outcome why = Outcome::kUnknownFeed);
  void eraseIfUnused(Feed* feed);
  Outcome findOrRequest(const FeedRequest& request, const WatchOptions& how, Feed** found);
  void releaseSource(Feed* feed);
  void noteRequest(Feed* feed, bool delta);
  void makeUnreadyDue(Feed* feed);
  /** Whether `predicate(watcher, feed)` holds for a watcher of a poll. */
  template <typename Predicate>
  bool isAnyOfPoll(uint32_t first, Predicate&& predicate) const {
    for (uint32_t at = first;;) {
      const Watcher& one = watchers_[at];
      if (predicate(one, *feeds_[one.feed])) return true;
      at = one.sibling;
      if (at == first) return false;
    }
  }
  bool awaitsValue(uint32_t first) const;
  bool awaitsMainTable(const Feed& feed) const;
  bool pollAwaitsMainTable(uint32_t first) const;
  static bool waitsForFirst(const FeedRequest& request, const WatchOptions& how) {
    return how.stream || request.after == kNoCursor;
  }
  static bool isUnknown(const Feed& feed, const Watcher& watcher) {
    return feed.isAwaited && !feed.value && !watcher.waitsForFirst;
  }
  bool isWorkerTable() const { return options_.mainTable != nullptr; }
  bool mayBeFetched(std::string_view key) const {
    return options_.upstream && presenceSubjectOf(key).empty();
  }
  bool mayBeBehind() const { return isWorkerTable() || options_.inWorld; }
  uint32_t listOf(const Feed& feed, List list) const;
  bool isEmpty(uint32_t list) const;
  void prefetch(uint32_t watcher) const;
  void addToList(uint32_t watcher, List which);
  void removeFromList(uint32_t watcher);
  void makeDue(Feed* feed, List which);
  void queueForStep(Feed* feed);
  void addTask(Task want);
  uint32_t addWatcher(Feed* feed, const FeedRequest& request, const WatchOptions& how);
  void release(uint32_t watcher);
  uint64_t seenVersionOf(const Feed& feed, const Watcher& watcher, Cursor after) const;
  static Cursor cursorOf(const FeedRequest& request, const WatchOptions& how) {
    return how.lastItems == kNoLastItems ? Cursor::parse(request.after)
                                         : Cursor{.version = how.lastItems};
  }
  void applyDeferredCursor(uint32_t watcher);
  bool noteAhead(uint32_t watcher);
  bool hasNews(const Watcher& watcher) const;
  Watcher watcherOf(const Feed& feed, const FeedRequest& request, const WatchOptions& how) const;
  /** Whether an answer with a value has the compressed form. */
  static bool takesGzip(const Watcher& watcher) {
    return watcher.acceptsGzip && !watcher.isStream && !watcher.hasManyFeeds;
  }
  CacheLifetime cacheLifetimeOf(const FeedRequest* requests, uint32_t count,
                                const WatchOptions& how) const;
  void appendTag(std::string* text, uint32_t place, const Watcher& watcher) const;
  static std::string shortTag(std::string_view text);
  void appendTurn(std::string* text) const;
  uint64_t patchFor(const Feed& feed, const Watcher& watcher) const;
  bool awaitsCompression(const Watcher& watcher);
  bool isUpToDate(uint32_t first) const;
  void resetSeenVersions(const Feed& feed);
  void park(uint32_t watcher);
  void parkAll(uint32_t first);
  uint32_t firstOf(uint32_t watcher) const;
  void serve(uint32_t first);
  void serveStream(uint32_t first);
  void servePoll(uint32_t first);
  void beginAnswer();
  template <typename Write>
  std::string_view appendToEnvelope(Write&& write);
  uint64_t addNews(const Watcher& watcher);
  LogPart partFor(const Feed& feed, const Watcher& watcher) const;
  uint32_t newsLength(const Watcher& watcher) const;
  static bool isNoLog(const Feed& feed, const Watcher& watcher) {
    return watcher.readsLog && feed.value && !feed.isLog;
  }
  void addProblem(std::string_view key, Outcome problem);
  void addTextPiece(std::string_view text);
  void joinPieces(bool turns);
  void appendTurnOrRetry(std::string* text, bool turns);
  FeedResponder::WriteResult deliver(uint32_t token, FeedAnswer answer);
  void onTimer(uint32_t watcher);
  void arm(uint32_t watcher, uint64_t milliseconds);
  uint32_t random(uint32_t below);
  uint32_t retryDelay();
  void updateMemory(Feed* feed, uint64_t before);
  bool draining() const { return drainEnd_ != 0; }
  uint64_t clockNow() const { return clock_() / 1000; }
  Outcome grantProblem(const Watcher& watcher) const {
    if (watcher.grant == Grants::kNone) return Outcome::kOk;
    return grants_.problemOf(watcher.grant, clockNow());
  }
  uint64_t limitToGrant(const Watcher& watcher, uint64_t milliseconds) const {
    if (watcher.grant == Grants::kNone) return milliseconds;
    return std::min(milliseconds, grants_.timeLeft(watcher.grant, clockNow()));
  }
  void serveEndedGrants();
  uint32_t bindingGrant(const FeedRequest* requests, uint32_t count, uint32_t grant) const;
  std::string_view watcherName(std::string_view key, uint32_t grant) const;
  PresentName* findOrAddName(Feed* feed, std::string_view name);
  void addNamedWatcher(Feed* feed, std::string_view name);
  void removeNamedWatcher(Feed* feed, uint32_t grant);
  void endName(Feed* feed, Names::iterator one);
  void removeNameIfUnused(Feed* feed, Names::iterator one);
  void removeAllNames(Feed* feed);
  void endNameLeases();
  void removeShare(Presence* presence, std::string_view server);
  void exchangeShares(Feed* feed, const Attendance& here);
  bool isRecentlyWatched(const Feed& presence) const;
  Attendance ownShare(Feed* of, Presence* presence) const;
  Outcome createPresence(std::string_view key, uint64_t askAt = 0);
  void publishPresence(Feed* feed, Cursor cursor, Attendance attendance, std::string_view value,
                       std::string patch);
  void updatePresence(Feed* feed);
  void schedulePresence(Feed* feed);
  void updateDuePresences();
  void deletePresenceOf(std::string_view key);

  /** A name whose lease will end; its feed number may be reused by then. */
  struct NameLease {
    uint32_t feed;
    std::string name;
  };

  /** A name that has been added to this table, or removed. */
  struct NameChange {
    std::string key, name;
    bool isPresent;
  };

  const FeedsOptions options_;
  uint64_t (*const clock_)();
  AddressLimits* const limits_;
  SharedFeedCounts ownCounts_;  // used by the main table and shared with those of workers
  SharedFeedCounts* const sharedCounts_;
  const size_t tableNumber_;  // of this table
  std::minstd_rand random_;
  ByKey byKey_;
  std::vector<std::unique_ptr<Feed>> feeds_;  // by number
  std::vector<uint32_t> freeFeeds_;
  uint64_t unledgeredBytes_ = 0;  // bytes of all feeds that no ledger has
  // Cursors of watchers that wait for a first value here; for a reader of a log the version is
  // WatchOptions::lastItems.
  std::unordered_map<uint32_t, Cursor> deferredCursors_;
  // At a worker: problems of a poll for many feeds that wait for the rest of the answer.
  std::unordered_map<uint32_t, std::vector<std::pair<std::string, Outcome>>> deferredProblems_;
  std::vector<uint32_t> watchersAhead_;  // at a worker: watchers that may be ahead of this table
  std::vector<uint32_t> dirtyFeeds_;     // at a worker: numbers of touched feeds; some may be gone
  base::Reserved<Watcher> watchers_;
  base::Wheel<kFeedTick> wheel_;
  FeedResponder* responder_ = nullptr;
  std::function<void()> onBusy_;
  FeedsObserver* observer_ = nullptr;
  Journal* journal_ = nullptr;
  std::vector<Staged> staged_;      // in order
  size_t writtenCount_ = 0;         // how many of them the journal's file has
  uint64_t stagedBytes_ = 0;        // of their values
  uint32_t stagedFeeds_ = 0;        // how many of them are new feeds
  std::deque<Feed*> feedsWithDue_;  // feeds with due watchers
  std::vector<Task> tasks_;
  uint32_t lastFetchTask_ = 0;           // number of the last Task
  std::list<Feed*> evictable_;           // feeds that could not be fetched, the oldest first
  std::string envelope_;                 // of the answer under way
  std::vector<BodyPiece> pieces_;        // pieces of this answer
  std::vector<BodyPiece> joinedPieces_;  // of joinPieces
  bool isCompressed_ = false;            // the body is compressed
  bool mayCompress_ = false;             // the body may be compressed
  FeedCounts counts_ = {};
  uint64_t now_;                    // milliseconds, of the last tick
  const uint64_t wallClockAtZero_;  // milliseconds since 1970 when now_ was 0
  uint32_t used_ = 0;               // watchers ever used
  uint32_t freeWatcher_ = 0;        // the first free watcher + 1
  Grants grants_;
  // The next watcher of the search for ended grants; used_ and above: no search.
  uint32_t grantScanFrom_ = UINT32_MAX;
  uint32_t nameCount_ = 0;                         // of all feeds
  std::multimap<uint64_t, NameLease> nameLeases_;  // by the millisecond when their leases end
  std::vector<NameChange> nameChanges_;            // at a worker
  std::deque<std::pair<uint64_t, uint32_t>>
      presenceSchedule_;   // presence feeds, by their next version
  uint64_t drainEnd_ = 0;  // milliseconds; 0: not draining
  uint32_t drainWindow_ = 0;
};

}  // namespace server

#endif  // SPRITES_FEEDS_H_
