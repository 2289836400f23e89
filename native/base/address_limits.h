// AddressLimits: the usage of shared resources by each source address, and its limits.
//
//   address ─hash─▶ bucket ─▶ [ source 7 ] ─next─▶ [ source 3 ]
//                              address │ connections │ clients │ waiting bytes │ …
//
// A source is a number: clients and waiting sprites remember their source by it, and are counted
// without a search. A connection or a join makes an entry. It goes when its counts are 0 and its
// allowance of joins is full again; its number is then reused.
//
// The limits bound the usage of one hostile address. They are not meant for one person: behind an
// address there may be an office or a university, so the defaults are generous (options.js).
//
// With workers (server/worker.h) several threads count here, under a lock that is held for some
// tens of nanoseconds; otherwise it is not taken.
//
// Cost: 64 bytes for each source and 4 for each bucket; the buckets are touched only as they fill.
// The hash has a random key, since strangers choose the addresses. Rejected: std::unordered_map (a
// second allocation for each entry, and a pause of 100 ms when a million entries are rehashed).
#ifndef SPRITES_ADDRESS_LIMITS_H_
#define SPRITES_ADDRESS_LIMITS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <vector>

#include "address.h"
#include "base/reserve.h"

namespace server {

/** The number of a source address, valid while something is counted for it. */
using Source = uint32_t;

/** The source of connections, clients and sprites without a known address: no limits. */
constexpr Source kNoSource = 0;

/** Most sources at a time: a waiting sprite has 24 bits for its source. */
constexpr uint32_t kMaxSources = (1 << 24) - 1;

/** Limits of one source address; 0: none. */
struct AddressLimitsOptions {
  uint32_t connections;  // at a time
  uint32_t clients;      // places in the torus, at a time
  uint32_t joinRate;     // joins for each second
  uint32_t joinBurst;    // joins at once, after a pause
  uint64_t spriteBytes;  // waiting sprites thrown by its clients, by Sprite::charge
  uint64_t heldBytes;    // input and output held for its connections
  uint32_t feeds;        // fetched feeds that its clients have asked for first, at a time
};

class AddressLimits {
 public:
  /** `maxSources`: most sources at a time; every request of a further address is refused. */
  explicit AddressLimits(const AddressLimitsOptions& options, uint32_t maxSources = kMaxSources)
      : options_(options),
        maxSources_(maxSources),
        hashKey_(std::random_device{}() | uint64_t{std::random_device{}()} << 32),
        buckets_(kBuckets),
        entries_(1) {}

  /** Makes each call take a lock, since several threads count here from now on. */
  void shareBetweenThreads() { isShared_ = true; }

  /**
   * Counts a further connection from `address`. Returns false, and counts nothing, above its limit
   * or when it is banned.
   */
  bool addConnection(const Address& address) {
    const Lock lock = lockIfShared();
    return !isBanned(address) && increase(address, &Entry::connections, 1, options_.connections);
  }

  /** Counts one connection fewer. */
  void removeConnection(const Address& address) {
    const Lock lock = lockIfShared();
    decrease(address, &Entry::connections, 1);
  }

  /**
   * Counts `bytes` held for a connection from `address`. Returns false, and counts nothing, above
   * its limit.
   */
  bool addHeldBytes(const Address& address, uint64_t bytes) {
    const Lock lock = lockIfShared();
    return increase(address, &Entry::heldBytes, bytes, options_.heldBytes);
  }

  /** Counts `bytes` fewer. */
  void removeHeldBytes(const Address& address, uint64_t bytes) {
    const Lock lock = lockIfShared();
    decrease(address, &Entry::heldBytes, bytes);
  }

  /**
   * Whether a client may join from `address` at `now`, in milliseconds; if so, uses its allowance.
   */
  bool tryJoin(const Address& address, uint64_t now) {
    const Lock lock = lockIfShared();
    now_ = std::max(now_, now);
    if (isBanned(address)) return false;
    if (options_.joinRate == 0) return true;
    const Source source = findOrAddUnlocked(address);
    if (source == kNoSource) return false;
    Entry& entry = entries_[source];
    // A token bucket as one number, in microseconds: see Pool::allowedToThrow.
    const uint64_t interval = 1000000 / options_.joinRate;
    const uint64_t micros = now_ * 1000;
    if (entry.nextJoin > micros + (options_.joinBurst - 1) * interval) return false;
    entry.nextJoin = std::max(entry.nextJoin, micros) + interval;
    if (!entry.isRecovering) recovering_.push_back(source);
    entry.isRecovering = true;
    return true;
  }

  /**
   * Counts a further client from `address`. Returns kNoSource, and counts nothing, above its limit.
   */
  Source addClient(const Address& address) {
    return addOne(address, &Entry::clients, options_.clients);
  }

  /** The source of `address`. Without counts it may be forgotten at the next call. */
  Source findOrAdd(const Address& address) {
    const Lock lock = lockIfShared();
    return findOrAddUnlocked(address);
  }

  /** Counts a further client of `source` above any limit: it comes from a saved state. */
  void addClientAnyway(Source source) {
    const Lock lock = lockIfShared();
    if (source != kNoSource) ++entries_[source].clients;
  }

  /** Counts one client fewer. */
  void removeClient(Source source) { removeOne(source, &Entry::clients); }

  /**
   * Counts a further feed fetched for `address`. Returns kNoSource, and counts nothing, above its
   * limit.
   */
  Source addFeed(const Address& address) { return addOne(address, &Entry::feeds, options_.feeds); }

  /** Counts one feed fewer. */
  void removeFeed(Source source) { removeOne(source, &Entry::feeds); }

  /**
   * Counts the bytes of a sprite that is to wait. Returns false, and counts nothing, above the
   * limit.
   */
  bool charge(Source source, uint32_t bytes) {
    const Lock lock = lockIfShared();
    if (source == kNoSource) return true;
    Entry& entry = entries_[source];
    if (!fits(entry.spriteBytes + bytes, options_.spriteBytes)) return false;
    entry.spriteBytes += bytes;
    return true;
  }

  /**
   * Counts the bytes of a sprite above any limit: `source` has left it, or it comes from a saved
   * state.
   */
  void chargeAnyway(Source source, uint32_t bytes) {
    const Lock lock = lockIfShared();
    if (source != kNoSource) entries_[source].spriteBytes += bytes;
  }

  /** Counts the bytes fewer when the sprite no longer waits. */
  void discharge(Source source, uint32_t bytes) {
    const Lock lock = lockIfShared();
    if (source == kNoSource) return;
    Entry& entry = entries_[source];
    entry.spriteBytes -= bytes;
    if (entry.spriteBytes == 0) eraseIfUnused(source);
  }

  /** Forgets sources without counts. */
  void tick(uint64_t now) {
    const Lock lock = lockIfShared();
    now_ = std::max(now_, now);
    for (size_t i = 0; i < recovering_.size();) {
      const Source source = recovering_[i];
      if (entries_[source].nextJoin > now_ * 1000) {
        ++i;
        continue;
      }
      entries_[source].isRecovering = false;
      eraseIfUnused(source);
      recovering_[i] = recovering_.back();
      recovering_.pop_back();
    }
  }

  /**
   * Refuses connections and joins from `address` for `milliseconds` from `now`; 0 ends a ban.
   * Returns false when there are too many bans.
   */
  bool ban(const Address& address, uint64_t milliseconds, uint64_t now) {
    const Lock lock = lockIfShared();
    now_ = std::max(now_, now);
    std::erase_if(bans_, [&](const Ban& ban) { return ban.address == address || ban.end <= now_; });
    if (milliseconds == 0) return true;
    if (bans_.size() == kMaxBans) return false;
    bans_.push_back({address, now_ + milliseconds});
    return true;
  }

  /** An address, and the end of its ban in milliseconds. */
  struct Ban {
    Address address;
    uint64_t end;
  };

  /** The bans; only for the thread that bans. */
  const std::vector<Ban>& bans() const { return bans_; }

  /** The address of a source. */
  Address addressOf(Source source) const {
    const Lock lock = lockIfShared();
    return entries_[source].address;
  }

  /** Most bans: each new connection is compared with all of them. */
  static constexpr size_t kMaxBans = 1000;

  /** Number of sources. */
  size_t size() const {
    const Lock lock = lockIfShared();
    return size_;
  }

  /** Number of sources whose allowance of joins is not full. */
  size_t recoveringCount() const {
    const Lock lock = lockIfShared();
    return recovering_.size();
  }

 private:
  struct Entry {
    Address address = {};
    uint64_t nextJoin = 0;  // microseconds
    uint64_t spriteBytes = 0;
    uint64_t heldBytes = 0;
    uint32_t connections = 0;
    uint32_t clients = 0;
    uint32_t feeds = 0;
    Source next = kNoSource;    // the next in the bucket, or the next free entry
    bool isRecovering = false;  // in recovering_: its allowance of joins is not full yet
  };
  static_assert(sizeof(Entry) == 64, "the cost that is named above");

  static constexpr size_t kBuckets = 1 << 20;

  using Lock = std::unique_lock<std::mutex>;

  /** Takes the lock if there are other threads. */
  Lock lockIfShared() const { return isShared_ ? Lock(mutex_) : Lock(); }

  bool isBanned(const Address& address) const {
    return std::any_of(bans_.begin(), bans_.end(),
                       [&](const Ban& ban) { return ban.address == address && ban.end > now_; });
  }

  static bool fits(uint64_t count, uint64_t limit) { return limit == 0 || count <= limit; }

  Source& bucketOf(const Address& address) {
    uint64_t mixed = (address.network ^ hashKey_) * 0x9e3779b97f4a7c15;
    mixed ^= (mixed >> 32) ^ address.host ^ hashKey_ >> 32;
    mixed *= 0xd6e8feb86659fd93;
    return buckets_[(mixed ^ mixed >> 32) % kBuckets];
  }

  Source find(const Address& address) {
    Source source = bucketOf(address);
    while (source != kNoSource && !(entries_[source].address == address)) {
      source = entries_[source].next;
    }
    return source;
  }

  /** The source of `address`, existing or new; kNoSource when there are too many. */
  Source findOrAddUnlocked(const Address& address) {
    if (const Source found = find(address); found != kNoSource) return found;
    if (size_ == maxSources_) return kNoSource;
    Source source = firstFree_;
    if (source == kNoSource) {
      source = entries_.size();
      entries_.emplace_back();
    } else {
      firstFree_ = entries_[source].next;
    }
    Source& bucket = bucketOf(address);
    entries_[source] = Entry{.address = address, .next = bucket};
    bucket = source;
    ++size_;
    return source;
  }

  template <typename Count>
  bool increase(const Address& address, Count Entry::*counter, uint64_t amount, uint64_t limit) {
    const Source source = findOrAddUnlocked(address);
    if (source == kNoSource) return false;
    Entry& entry = entries_[source];
    const bool isAllowed = fits(entry.*counter + amount, limit);
    if (isAllowed) {
      entry.*counter += amount;
    } else {
      eraseIfUnused(source);
    }
    return isAllowed;
  }

  template <typename Count>
  void decrease(const Address& address, Count Entry::*counter, uint64_t amount) {
    const Source source = find(address);
    if (source == kNoSource) return;
    Count& count = entries_[source].*counter;
    count -= std::min<uint64_t>(count, amount);
    eraseIfUnused(source);
  }

  Source addOne(const Address& address, uint32_t Entry::*counter, uint64_t limit) {
    const Lock lock = lockIfShared();
    return increase(address, counter, 1, limit) ? find(address) : kNoSource;
  }

  void removeOne(Source source, uint32_t Entry::*counter) {
    const Lock lock = lockIfShared();
    if (source == kNoSource) return;
    --(entries_[source].*counter);
    eraseIfUnused(source);
  }

  /** Forgets a source without counts. */
  void eraseIfUnused(Source source) {
    Entry& entry = entries_[source];
    if (entry.connections != 0 || entry.clients != 0 || entry.feeds != 0 ||
        entry.spriteBytes != 0 || entry.heldBytes != 0 || entry.isRecovering) {
      return;
    }
    Source* link = &bucketOf(entry.address);
    while (*link != source) link = &entries_[*link].next;
    *link = entry.next;
    entry.next = firstFree_;
    firstFree_ = source;
    --size_;
  }

  const AddressLimitsOptions options_;
  const uint32_t maxSources_;
  const uint64_t hashKey_;
  base::Reserved<Source> buckets_;
  std::deque<Entry> entries_;  // the first is kNoSource's, and stays 0
  std::vector<Source> recovering_;
  Source firstFree_ = kNoSource;  // the first free entry
  size_t size_ = 0;
  std::vector<Ban> bans_;
  uint64_t now_ = 0;          // milliseconds
  bool isShared_ = false;     // written before there are other threads
  mutable std::mutex mutex_;  // guards all other fields
};

}  // namespace server

#endif  // SPRITES_ADDRESS_LIMITS_H_
