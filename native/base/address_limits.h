// AddressLimits: what each source address has of what all share, and may have.
//
//   address ─hash─▶ bucket ─▶ [ source 7 ] ─next─▶ [ source 3 ]
//                              address │ connections │ clients │ bytes that wait │ …
//
// A source is a number: a client and a waiting sprite remember their source by it, and charge it
// without a search. An entry is made by a connection or a join, and goes when nothing of its source
// is left to count and its allowance of joins is whole again; its number is then used again.
//
// The shares bound what one hostile address can take. They are no bound of a person: behind one
// address there may be an office or a university, so that the defaults are generous (options.js).
//
// Where workers have connections (server/worker.h) several threads count here, under one lock that
// is held for some tens of nanoseconds; else it is not taken.
//
// Cost: 64 bytes a source and 4 a bucket; the buckets are touched only as they fill. The hash is
// keyed with random bits, since strangers choose the addresses. Rejected: std::unordered_map (a
// second allocation each, and a pause of 100 ms where a million entries are hashed anew).
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

/** Names a source address while something of it is counted. */
using Source = uint32_t;

/** The source of what came from no address, or from one no longer known: without bounds. */
constexpr Source kNoSource = 0;

/** Source addresses there may be at once: a waiting sprite names its own in 24 bits. */
constexpr uint32_t kMostSources = (1 << 24) - 1;

/** Shares of one source address; 0: any number. */
struct AddressLimitsOptions {
  uint32_t connections;  // at once
  uint32_t clients;      // places in the torus, at once
  uint32_t joinRate;     // joins a second
  uint32_t joinBurst;    // joins at once, after a rest
  uint64_t spriteBytes;  // of waiting sprites that its clients have thrown, by Sprite::charge
  uint64_t heldBytes;    // of input and output that the front door holds for its connections
  uint32_t feeds;        // that are fetched because its clients have asked first, at once
};

class AddressLimits {
 public:
  /** `most` source addresses are known at once; every request of a further one is refused. */
  explicit AddressLimits(const AddressLimitsOptions& options, uint32_t most = kMostSources)
      : options_(options),
        most_(most),
        key_(std::random_device{}() | uint64_t{std::random_device{}()} << 32),
        buckets_(kBuckets),
        entries_(1) {}

  /** From now on several threads count here: each call takes a lock. */
  void share() { shared_ = true; }

  /** Counts one more connection from `address`; false, and not counted, when it has enough. */
  bool open(const Address& address) {
    const Lock lock = own();
    return !isBanned(address) && add(address, &Entry::connections, 1, options_.connections);
  }

  /** Counts one fewer. */
  void close(const Address& address) {
    const Lock lock = own();
    take(address, &Entry::connections, 1);
  }

  /** Counts `bytes` held for a connection from `address`; false, and not counted: it has enough. */
  bool hold(const Address& address, uint64_t bytes) {
    const Lock lock = own();
    return add(address, &Entry::heldBytes, bytes, options_.heldBytes);
  }

  /** Counts as many fewer. */
  void release(const Address& address, uint64_t bytes) {
    const Lock lock = own();
    take(address, &Entry::heldBytes, bytes);
  }

  /** Whether a client may join from `address` now, in milliseconds; spends its allowance if so. */
  bool mayJoin(const Address& address, uint64_t now) {
    const Lock lock = own();
    now_ = std::max(now_, now);
    if (isBanned(address)) return false;
    if (options_.joinRate == 0) return true;
    const Source source = make(address);
    if (source == kNoSource) return false;
    Entry& entry = entries_[source];
    // A token bucket in one number, in microseconds: see Pool::allowedToThrow.
    const uint64_t interval = 1000000 / options_.joinRate;
    const uint64_t micros = now_ * 1000;
    if (entry.nextJoin > micros + (options_.joinBurst - 1) * interval) return false;
    entry.nextJoin = std::max(entry.nextJoin, micros) + interval;
    if (!entry.resting) resting_.push_back(source);
    entry.resting = true;
    return true;
  }

  /** Counts one more client from `address`; kNoSource, and not counted, when it has enough. */
  Source enter(const Address& address) {
    return oneMore(address, &Entry::clients, options_.clients);
  }

  /** The source of `address`; one with nothing counted may be forgotten at the next call. */
  Source know(const Address& address) {
    const Lock lock = own();
    return make(address);
  }

  /** Counts one more client of `source`, whatever its share: a state has brought it. */
  void settle(Source source) {
    const Lock lock = own();
    if (source != kNoSource) ++entries_[source].clients;
  }

  /** Counts one fewer. */
  void leave(Source source) { oneFewer(source, &Entry::clients); }

  /** Counts one more feed that is fetched for `address`; kNoSource, and not counted: it has enough.
   */
  Source fetch(const Address& address) { return oneMore(address, &Entry::feeds, options_.feeds); }

  /** Counts one fewer. */
  void forget(Source source) { oneFewer(source, &Entry::feeds); }

  /** Charges `source` for a sprite that is to wait; false, and not charged, when it has enough. */
  bool charge(Source source, uint32_t bytes) {
    const Lock lock = own();
    if (source == kNoSource) return true;
    Entry& entry = entries_[source];
    if (!fits(entry.spriteBytes + bytes, options_.spriteBytes)) return false;
    entry.spriteBytes += bytes;
    return true;
  }

  /** Charges `source`, whatever its share, for a sprite that it has left or a state has brought. */
  void chargeAnyway(Source source, uint32_t bytes) {
    const Lock lock = own();
    if (source != kNoSource) entries_[source].spriteBytes += bytes;
  }

  /** Takes the charge back: the sprite waits no more. */
  void discharge(Source source, uint32_t bytes) {
    const Lock lock = own();
    if (source == kNoSource) return;
    Entry& entry = entries_[source];
    entry.spriteBytes -= bytes;
    if (entry.spriteBytes == 0) eraseIfUnused(source);
  }

  /** Lets go of sources that have nothing to count any more. */
  void tick(uint64_t now) {
    const Lock lock = own();
    now_ = std::max(now_, now);
    for (size_t i = 0; i < resting_.size();) {
      const Source source = resting_[i];
      if (entries_[source].nextJoin > now_ * 1000) {
        ++i;
        continue;
      }
      entries_[source].resting = false;
      eraseIfUnused(source);
      resting_[i] = resting_.back();
      resting_.pop_back();
    }
  }

  /**
   * Refuses connections and joins from `address` for `milliseconds` from `now` on, 0 for no longer.
   * Returns false when there are as many bans as there may be.
   */
  bool ban(const Address& address, uint64_t milliseconds, uint64_t now) {
    const Lock lock = own();
    now_ = std::max(now_, now);
    std::erase_if(bans_, [&](const Ban& ban) { return ban.address == address || ban.end <= now_; });
    if (milliseconds == 0) return true;
    if (bans_.size() == kBans) return false;
    bans_.push_back({address, now_ + milliseconds});
    return true;
  }

  /** An address, and the millisecond at which its ban ends. */
  struct Ban {
    Address address;
    uint64_t end;
  };

  /** For the thread that bans. */
  const std::vector<Ban>& bans() const { return bans_; }

  /** The address of a source. */
  Address addressOf(Source source) const {
    const Lock lock = own();
    return entries_[source].address;
  }

  /** Bans there may be: each newcomer is held against all of them. */
  static constexpr size_t kBans = 1000;

  /** Sources that something is counted of. */
  size_t size() const {
    const Lock lock = own();
    return size_;
  }

  /** Those of them whose allowance of joins is not whole. */
  size_t resting() const {
    const Lock lock = own();
    return resting_.size();
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
    Source next = kNoSource;  // in the bucket, or of the free entries
    bool resting = false;     // in resting_: its allowance of joins is not whole yet
  };
  static_assert(sizeof(Entry) == 64, "the cost that is named above");

  static constexpr size_t kBuckets = 1 << 20;

  using Lock = std::unique_lock<std::mutex>;

  /** Keeps other threads out, where there are any. */
  Lock own() const { return shared_ ? Lock(mutex_) : Lock(); }

  bool isBanned(const Address& address) const {
    return std::any_of(bans_.begin(), bans_.end(),
                       [&](const Ban& ban) { return ban.address == address && ban.end > now_; });
  }

  static bool fits(uint64_t count, uint64_t most) { return most == 0 || count <= most; }

  Source& bucketOf(const Address& address) {
    uint64_t mixed = (address.network ^ key_) * 0x9e3779b97f4a7c15;
    mixed ^= (mixed >> 32) ^ address.host ^ key_ >> 32;
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

  /** The source of `address`, known or new; kNoSource when there are as many as there may be. */
  Source make(const Address& address) {
    if (const Source found = find(address); found != kNoSource) return found;
    if (size_ == most_) return kNoSource;
    Source source = free_;
    if (source == kNoSource) {
      source = entries_.size();
      entries_.emplace_back();
    } else {
      free_ = entries_[source].next;
    }
    Source& bucket = bucketOf(address);
    entries_[source] = Entry{.address = address, .next = bucket};
    bucket = source;
    ++size_;
    return source;
  }

  template <typename Count>
  bool add(const Address& address, Count Entry::*what, uint64_t more, uint64_t most) {
    const Source source = make(address);
    if (source == kNoSource) return false;
    Entry& entry = entries_[source];
    const bool may = fits(entry.*what + more, most);
    if (may) {
      entry.*what += more;
    } else {
      eraseIfUnused(source);
    }
    return may;
  }

  template <typename Count>
  void take(const Address& address, Count Entry::*what, uint64_t fewer) {
    const Source source = find(address);
    if (source == kNoSource) return;
    Count& count = entries_[source].*what;
    count -= std::min<uint64_t>(count, fewer);
    eraseIfUnused(source);
  }

  Source oneMore(const Address& address, uint32_t Entry::*what, uint64_t most) {
    const Lock lock = own();
    return add(address, what, 1, most) ? find(address) : kNoSource;
  }

  void oneFewer(Source source, uint32_t Entry::*what) {
    const Lock lock = own();
    if (source == kNoSource) return;
    --(entries_[source].*what);
    eraseIfUnused(source);
  }

  /** Forgets a source that nothing is counted of. */
  void eraseIfUnused(Source source) {
    Entry& entry = entries_[source];
    if (entry.connections != 0 || entry.clients != 0 || entry.feeds != 0 ||
        entry.spriteBytes != 0 || entry.heldBytes != 0 || entry.resting) {
      return;
    }
    Source* link = &bucketOf(entry.address);
    while (*link != source) link = &entries_[*link].next;
    *link = entry.next;
    entry.next = free_;
    free_ = source;
    --size_;
  }

  const AddressLimitsOptions options_;
  const uint32_t most_;
  const uint64_t key_;
  base::Reserved<Source> buckets_;
  std::deque<Entry> entries_;  // the first is kNoSource's, and counts nothing
  std::vector<Source> resting_;
  Source free_ = kNoSource;  // the first entry that is free
  size_t size_ = 0;
  std::vector<Ban> bans_;
  uint64_t now_ = 0;          // milliseconds
  bool shared_ = false;       // written before there are other threads
  mutable std::mutex mutex_;  // of all the rest
};

}  // namespace server

#endif  // SPRITES_ADDRESS_LIMITS_H_
