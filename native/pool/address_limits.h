// AddressLimits: how many connections and how many joins each source address may have.
//
//   address ─▶ [ connections │ when its allowance of joins is whole again ]
//
// A connection or a join makes an entry. The entry is erased when its last connection has closed
// and its allowance is whole again. So there are no more entries than connections, plus the joins
// of the time that makes an allowance whole, which the number of clients bounds.
//
// Cost: 64 bytes a source. The table's hash is keyed with random bits, since strangers choose the
// addresses.
#ifndef SPRITES_ADDRESS_LIMITS_H_
#define SPRITES_ADDRESS_LIMITS_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "address.h"

namespace server {

struct AddressLimitsOptions {
  uint32_t connections;  // from one address, 0: any number
  uint32_t joinRate;     // joins a second from one address, 0: any number
  uint32_t joinBurst;    // joins at once, after a rest
};

class AddressLimits {
 public:
  explicit AddressLimits(const AddressLimitsOptions& options)
      : options_(options), limits_(16, Hash{std::random_device{}(), std::random_device{}()}) {}

  /** Counts one more connection from `address`; false, and not counted, when it has enough. */
  bool open(const Address& address) {
    if (options_.connections == 0) return true;
    Source& source = limits_[address];
    if (source.connections >= options_.connections) return false;
    ++source.connections;
    return true;
  }

  /** Counts one fewer. */
  void close(const Address& address) {
    if (options_.connections == 0) return;
    const auto found = limits_.find(address);
    if (found == limits_.end() || found->second.connections == 0) return;
    if (--found->second.connections == 0) eraseIfUnused(found);
  }

  /** Whether a client may join from `address` now, in milliseconds; spends its allowance if so. */
  bool join(const Address& address, uint64_t now) {
    if (options_.joinRate == 0) return true;
    now_ = std::max(now_, now);
    Source& source = limits_[address];
    // A token bucket in one number, in microseconds: see Pool::allowedToThrow.
    const uint64_t interval = 1000000 / options_.joinRate;
    const uint64_t micros = now_ * 1000;
    if (source.nextJoin > micros + (options_.joinBurst - 1) * interval) return false;
    if (source.nextJoin <= micros) resting_.push_back(address);
    source.nextJoin = std::max(source.nextJoin, micros) + interval;
    return true;
  }

  /** Lets go of addresses that have nothing to count any more. */
  void tick(uint64_t now) {
    now_ = std::max(now_, now);
    for (size_t i = 0; i < resting_.size();) {
      const auto found = limits_.find(resting_[i]);
      if (found != limits_.end() && found->second.nextJoin > now_ * 1000) {
        ++i;
        continue;
      }
      if (found != limits_.end()) eraseIfUnused(found);
      resting_[i] = resting_.back();
      resting_.pop_back();
    }
  }

  size_t size() const { return limits_.size(); }

 private:
  struct Source {
    uint32_t connections = 0;
    uint64_t nextJoin = 0;  // microseconds
  };

  struct Hash {
    uint64_t key;
    uint64_t other;

    size_t operator()(const Address& address) const {
      uint64_t mixed = (address.network ^ key) * 0x9e3779b97f4a7c15;
      mixed ^= (mixed >> 32) ^ address.host ^ other;
      mixed *= 0xd6e8feb86659fd93;
      return mixed ^ mixed >> 32;
    }
  };

  using Table = std::unordered_map<Address, Source, Hash>;

  void eraseIfUnused(Table::iterator found) {
    if (found->second.connections == 0 && found->second.nextJoin <= now_ * 1000) {
      limits_.erase(found);
    }
  }

  const AddressLimitsOptions options_;
  Table limits_;
  std::vector<Address> resting_;  // joined lately: their allowance is not whole yet
  uint64_t now_ = 0;              // milliseconds
};

}  // namespace server

#endif  // SPRITES_ADDRESS_LIMITS_H_
