// The addresses in a snapshot: a table of them, and for each client and each sprite, in the order
// of the snapshot, a number in it: 1 is the first, 0 nobody.
#ifndef SPRITES_SNAPSHOT_SOURCES_H_
#define SPRITES_SNAPSHOT_SOURCES_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/address_limits.h"

namespace server {

class SnapshotSources {
 public:
  explicit SnapshotSources(const AddressLimits& limits) : limits_(limits) {}

  /** The source of the next client or sprite. */
  void add(Source source) {
    if (source == kNoSource) return numbers_.push_back(0);
    const auto [found, isNew] = found_.try_emplace(source, table_.size() + 1);
    if (isNew) table_.push_back(limits_.addressOf(source));
    numbers_.push_back(found->second);
  }

  const std::vector<Address>& table() const { return table_; }
  const std::vector<uint32_t>& numbers() const { return numbers_; }

  /** Bytes of all of it in a snapshot. */
  uint64_t bytes() const {
    return sizeof(uint32_t) + table_.size() * sizeof(Address) + numbers_.size() * sizeof(uint32_t);
  }

 private:
  const AddressLimits& limits_;
  std::unordered_map<Source, uint32_t> found_;
  std::vector<Address> table_;
  std::vector<uint32_t> numbers_;
};

}  // namespace server

#endif  // SPRITES_SNAPSHOT_SOURCES_H_
