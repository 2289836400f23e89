// Shared by the tests of the state: a folder of their own, a pool that lives a random life with a
// store, and the contents of a pool as text, so that two can be compared.
#ifndef TEST_NATIVE_STATE_SCENE_H_
#define TEST_NATIVE_STATE_SCENE_H_

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "expect.h"
#include "fuzz.h"
#include "server/turn.h"
#include "world_steps.h"

namespace scene {

using namespace server;

/** Small bounds, so that old items are dropped. */
constexpr LogBounds kLogBounds = {.items = 5, .bytes = 60};

constexpr uint64_t kAnySize = uint64_t{1} << 40;

/** A folder that is removed with its owner. */
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "sprites-state-XXXXXX";
    EXPECT(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file() const { return path_ + "/state"; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/** Limits the files that this process writes to `bytes`. */
inline void limitFiles(rlim_t bytes) {
  rlimit limit;
  EXPECT(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/**
 * The files of a folder as they are now, to be put back: all that a power cut leaves, or a backup.
 */
class OldFiles {
 public:
  explicit OldFiles(const Folder& folder) { copy(folder, copy_); }

  const Folder& folder() const { return copy_; }

  /** Puts the files back. Call it when no program has the folder's files open. */
  void putBack(const Folder& folder) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      std::filesystem::remove_all(entry);
    }
    copy(copy_, folder);
  }

 private:
  static void copy(const Folder& from, const Folder& to) {
    std::filesystem::copy(from.path(), to.path(), std::filesystem::copy_options::recursive);
  }

  Folder copy_;
};

inline PoolOptions poolOptions(uint32_t capacity) {
  return {.capacity = capacity,
          .hold = 120,
          .lease = 5,
          .maxSprite = 4096,
          .mailboxSprites = 3,
          .mailboxBytes = 1 << 16,
          .mailboxMemory = 1 << 24,
          .answerBytes = 1 << 20};
}

inline StateStoreOptions storeOptions(const Folder& folder, Sync sync = Sync::kNever,
                                      uint64_t backlogBytes = kMaxJournalBacklog) {
  return {.path = folder.file(),
          .stateBytes = kAnySize,
          .journalBytes = kAnySize,
          .snapshotSeconds = 1 << 20,
          .sync = sync,
          .backlogBytes = backlogBytes};
}

/** Whether a life is in a world. */
enum class Where { kAlone, kInWorld };

/** Returns feeds and notes as text. */
template <typename FeedMap, typename NoteMap>
std::string feedsAndNotesText(const FeedMap& feeds, const NoteMap& notes) {
  std::string text;
  for (const auto& [key, feed] : feeds) {
    text += "\nfeed " + key + " ";
    feed.cursor.appendTo(&text);
    text += " ";
    text += feed.value->text();
    if (!feed.entryStarts.empty()) text += feed.history->text().substr(feed.entryStarts.front());
    text += " " + std::to_string(feed.entryStarts.size()) + (feed.isLog ? " items" : "");
  }
  for (const auto& [name, bytes] : notes) {
    for (const std::string_view part : {std::string_view("\nnote "), std::string_view(name),
                                        std::string_view(" "), std::string_view(bytes)}) {
      text += part;
    }
  }
  return text;
}

/** A server whose clients and publishers take random steps. Every delivery is remembered. */
class Life : private PollResponder {
 public:
  Life(uint64_t seed, uint32_t capacity, StateStoreOptions options, Where where = Where::kAlone)
      : random_(seed),
        inWorld_(where == Where::kInWorld),
        options_(std::move(options)),
        pool_(poolOptions(capacity), nullptr, 0),
        feeds_({.hold = 60, .feeds = 4, .memory = 1 << 20, .watchers = 10, .log = kLogBounds}, 0,
               [] { return uint64_t{0}; }),
        turn_(&pool_) {
    pool_.setResponder(PollHolder::kRoutes, this);
  }

  Pool& pool() { return pool_; }
  const Pool& pool() const { return pool_; }
  StateStore& store() { return *turn_.store(); }
  /** The ids of its clients, some of which have left. */
  const std::vector<Id>& ids() const { return ids_; }

  Recovery recover() {
    Recovery recovery = turn_.open(options_);
    if (!recovery.ok()) return recovery;
    std::string key;
    EXPECT(turn_.attach(&feeds_, &key) == Outcome::kOk);
    feeds_.forEach([this](const Feed& feed) { published_[feed.key] = feed; });
    return recovery;
  }

  int start() { return turn_.start({}); }
  SnapshotResult finish() { return turn_.finish(); }

  /** Returns the feeds that clients see once the turn is written, and the notes. */
  std::string feedsAndNotes() const { return feedsAndNotesText(published_, turn_.notes()); }

  /** Takes some steps of a turn, without a commit. */
  void turn() {
    steps();
    if (below(20) == 0) tick();
  }

  void steps() {
    if (inWorld_ && !world_) world_.emplace(&pool_);
    for (uint32_t n = below(8) + 1; n > 0; --n) step();
  }

  /** Lets time pass: leases end, and failed writes are tried again. */
  void tick() {
    now_ += below(3000);
    pool_.tick(now_);
    turn_.store()->tick(now_);
  }

  /** Ends a turn as the addon does. Returns whether it is written. */
  bool end() {
    const bool sent = turn_.end() == TurnEnd::kSend;
    if (sent && !turn_.store()->journal()->pending()) expectRevealed();
    return sent;
  }

  /** The table shows of each feed what was published. */
  void expectRevealed() const {
    for (const auto& [key, feed] : published_) {
      const Feed* const found = feeds_.find(key);
      EXPECT(found != nullptr && found->value->text() == feed.value->text());
      EXPECT(found->isLog == feed.isLog && found->cursor.version == feed.cursor.version);
      EXPECT(!feed.isLog || found->length() == feed.length());
    }
    EXPECT(feeds_.counts().feeds == published_.size());
  }

  /** A process that starts now knows all that clients were given. */
  void expectDeliveredIn(const Pool& later) const {
    for (const auto& [record, delivered] : delivered_) {
      Pool::View view;
      const bool known = later.readView(delivered.first, &view);
      EXPECT(!known || view.sequence >= delivered.second);
    }
  }

 private:
  void answer(uint32_t token, std::string_view body) override {
    const Id id = polls_[token];
    const uint64_t sequence = strtoull(body.data() + sizeof "{\"seq\":" - 1, nullptr, 10);
    delivered_[id.record()] = {id, sequence};
  }

  uint32_t below(uint32_t most) { return most == 0 ? 0 : random_() % most; }

  void step() {
    if (world_ && below(3) == 0) {
      world_->step([this](uint64_t most) { return uint64_t{below(static_cast<uint32_t>(most))}; });
      return;
    }
    const uint32_t choice = below(26);
    if (choice >= 20) {
      stepFeedsAndNotes(choice);
    } else if (choice < 3 || ids_.empty()) {
      Id id;
      const Address address = {.host = below(5)};
      if (pool_.join(address, 0, &id) == Outcome::kOk) ids_.push_back(id);
    } else if (choice == 3) {
      const size_t at = below(ids_.size());
      pool_.leave(ids_[at]);
      ids_.erase(ids_.begin() + at);
    } else if (choice < 14) {
      const std::string text = "{\"u\":" + std::to_string(++thrown_) + ",\"fill\":\"" +
                               std::string(below(40), 'x') + "\"}";
      const uint64_t number = below(3) == 0 ? kNoNumber : ++numbers_;
      pool_.throwSprite(ids_[below(ids_.size())], Edge{static_cast<uint8_t>(below(4))}, number,
                        text, now_ * 1000);
    } else {
      // The client polls, and at once acks some of its sprites.
      const Id id = ids_[below(ids_.size())];
      uint64_t& acked = acked_[id.record()];
      polls_[token_ + 1] = id;
      if (pool_.poll(id, acked, 0, PollHolder::kRoutes, ++token_).outcome == Outcome::kAckAhead) {
        acked = 0;
      }
      acked += below(3);
    }
  }

  void stepFeedsAndNotes(uint32_t choice) {
    const std::string key = std::string("feed/") + static_cast<char>('a' + below(5));
    const std::string name = "note/" + std::to_string(below(3));
    if (choice < 23 && below(2) == 0) {
      append(below(2) == 0 ? "log/a" : "log/b");
    } else if (choice < 23) {
      FeedValue& feed = published_[key];
      const Cursor cursor = {feed.value ? feed.cursor.epoch : below(1000) + 1,
                             feed.cursor.version + 1};
      // Values are long and short: the patches beside a long value may be longer than the next
      // value.
      const std::string value = "\"" +
                                std::string(below(2) == 0 ? 8 + below(8) : 40 + below(20), 'v') +
                                std::to_string(cursor.version) + "\"";
      const std::string patch = below(3) == 0 ? "" : "{" + std::to_string(cursor.version) + "}";
      uint32_t watching;
      if (feeds_.publish({key, cursor, value, patch, {}, false}, &watching) == Outcome::kOk) {
        feed.setValue(cursor, base::Bytes::copyOf(value, nullptr), patch, nullptr);
      } else if (!feed.value) {
        published_.erase(key);
      }
    } else if (choice == 23) {
      const std::string ended = below(3) == 0 ? "log/a" : key;
      if (feeds_.remove(ended) == Outcome::kOk) published_.erase(ended);
    } else if (choice == 24) {
      (void)turn_.note(name, std::to_string(below(100)));
    } else {
      (void)turn_.unnote(name);
    }
    // Without watchers an ended feed is gone with the next step.
    (void)feeds_.step(1000);
  }

  /** Appends an item, or now and then changes the epoch. */
  void append(const std::string& key) {
    FeedValue& feed = published_[key];
    const bool isNewEpoch = feed.value && below(8) == 0;
    const Cursor cursor = {feed.value && !isNewEpoch ? feed.cursor.epoch : below(1000) + 1,
                           feed.cursor.version + (isNewEpoch ? 0 : 1)};
    const std::string item =
        isNewEpoch ? ""
                   : "\"" + std::string(below(30), 'i') + std::to_string(cursor.version) + "\"";
    const uint32_t keptItems = isNewEpoch ? static_cast<uint32_t>(feed.entryStarts.size())
                                          : feed.itemCountWith(item.size(), kLogBounds);
    uint32_t watching;
    if (feeds_.append(key, cursor, item, &watching) == Outcome::kOk) {
      feed.append(cursor, item, keptItems, nullptr);
    } else if (!feed.value) {
      published_.erase(key);
    }
  }

  std::mt19937_64 random_;
  const bool inWorld_;
  const StateStoreOptions options_;
  Pool pool_;
  Feeds feeds_;
  Turn turn_;
  std::map<std::string, FeedValue> published_;
  std::optional<test::WorldSteps> world_;
  uint64_t now_ = 0;
  uint64_t thrown_ = 0;
  uint64_t numbers_ = 0;
  uint32_t token_ = 0;
  std::vector<Id> ids_;
  std::map<uint32_t, uint64_t> acked_;
  std::map<uint32_t, Id> polls_;                           // by token
  std::map<uint32_t, std::pair<Id, uint64_t>> delivered_;  // by record: up to this number
};

/** Checks the law of sprites. */
inline void expectLaw(const Pool& pool) {
  const PoolCounts& counts = pool.counts();
  EXPECT(counts.thrown + counts.crossedIn ==
         counts.acked + counts.waiting + counts.lost + counts.crossedOut);
}

/**
 * What a pool and the other servers of its world know of each other, field by field: a comparison
 * of snapshots as bytes would not notice a fact that both leave out.
 */
inline std::string worldOf(const Pool& pool) {
  const Seams* const seams = pool.ownedSeams();
  if (seams == nullptr) return {};
  std::string text;
  const auto add = [&text](auto... numbers) {
    ((text += std::to_string(static_cast<uint64_t>(numbers)) + " "), ...);
  };
  const PoolCounts& counts = pool.counts();
  add(seams->self().memory, seams->self().life);
  add(counts.crossedIn, counts.crossedOut, counts.crossedInDoubt, counts.waiting,
      counts.mailboxBytes);
  for (size_t number = 0; number < seams->size(); ++number) {
    const Peer& peer = seams->peer(static_cast<PeerNumber>(number));
    text += "\n" + peer.name + " ";
    add(peer.sender.life, peer.sender.memory, peer.lastTaken);
    add(peer.outbox.base(), peer.outbox.bytes(), peer.outbox.maybeSentAtRestart());
    peer.outbox.each([&](const Crosser& one) {
      add(one.row, one.exitEdge, one.round, one.hops, one.sprite->from);
      text += one.sprite->text();
    });
  }
  return text;
}

/**
 * All that a pool must bring over a restart: the bytes of its snapshot, and its knowledge of a
 * world. The number of sprites that no answer has carried yet is left out, since a journal does not
 * have it.
 */
inline std::string stateOf(const Pool& pool) {
  const Folder folder;
  EXPECT(Snapshot::save(pool, StoredFeedsAndNotes(), folder.file(), kAnySize, {}).ok());
  std::string bytes = test::readFile(folder.file());
  const auto number = [&bytes](size_t at) {
    uint32_t value;
    memcpy(&value, &bytes[at], sizeof value);
    return value;
  };
  // As in snapshot_format.h: a header of 104 bytes with the number of clients, and 16 bytes more
  // with the number of holes; clients of 56 bytes, each with its sprites behind it.
  const uint32_t clients = number(16);
  size_t at = 104 + 16 + 4 * size_t{number(104 + 8)};
  for (uint32_t i = 0; i < clients; ++i) {
    const uint32_t waiting = number(at + 48);
    memset(&bytes[at + 52], 0, 4);
    at += 56;
    for (uint32_t n = 0; n < waiting; ++n) at += 8 + size_t{number(at)};
  }
  // After the clients come the leaving ones and the other parts. The checksum is cut off, since it
  // covers the cleared numbers, too.
  bytes.resize(bytes.size() - 4);
  EXPECT(bytes.size() > at + 4 * size_t{number(104 + 12)});
  return bytes + worldOf(pool);
}

/** Returns the same with the feeds and notes beside the pool. */
inline std::string stateOf(const Life& life) { return stateOf(life.pool()) + life.feedsAndNotes(); }
inline std::string stateOf(const Pool& pool, StoredFeedsAndNotes stored) {
  return stateOf(pool) + feedsAndNotesText(stored.feeds(), stored.detachNotes());
}

/** A pool with a store: one life of a process. */
class StoredPool {
 public:
  explicit StoredPool(const StateStoreOptions& options)
      : pool_(poolOptions(100), nullptr, 0), store_(options, &pool_, &stored_) {
    EXPECT(store_.recover(&stored_).ok());
  }

  /** Ends a turn as the addon does. */
  Commit end() {
    const Commit commit = store_.commit();
    if (commit == Commit::kDone) pool_.answerPolls();
    return commit;
  }

  void tick() {
    now_ += kTickMilliseconds;
    pool_.tick(now_);
    store_.tick(now_);
    end();
  }

  Pool& pool() { return pool_; }
  StateStore& store() { return store_; }
  std::string state() const { return stateOf(pool_, stored_); }

 private:
  Pool pool_;
  StoredFeedsAndNotes stored_;
  StateStore store_;
  uint64_t now_ = 0;
};

/** The state that a process would find that starts now: it recovers a copy of the folder. */
class AfterACrash {
 public:
  explicit AfterACrash(const Folder& folder)
      : copy_(folder), recovered_(storeOptions(copy_.folder())) {}

  const Pool& pool() { return recovered_.pool(); }
  std::string state() const { return recovered_.state(); }

 private:
  const OldFiles copy_;
  StoredPool recovered_;
};

}  // namespace scene

#endif  // TEST_NATIVE_STATE_SCENE_H_
