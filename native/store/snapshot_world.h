// The addresses in a snapshot: a table of them, and for each client and each sprite, in the order
// of the snapshot, a number in it: 1 is the first, 0 none.
#ifndef SPRITES_SNAPSHOT_WORLD_H_
#define SPRITES_SNAPSHOT_WORLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/address_limits.h"
#include "snapshot_io.h"
#include "torus/pool.h"
#include "torus/seams.h"

namespace server {

class SnapshotSources {
 public:
  explicit SnapshotSources(const AddressLimits& limits) : limits_(limits) {}

  /** Adds the source of the next client or sprite. */
  void add(Source source) {
    if (source == kNoSource) return numbers_.push_back(0);
    const auto [found, isNew] = numberBySource_.try_emplace(source, table_.size() + 1);
    if (isNew) table_.push_back(limits_.addressOf(source));
    numbers_.push_back(found->second);
  }

  const std::vector<Address>& table() const { return table_; }
  const std::vector<uint32_t>& numbers() const { return numbers_; }

 private:
  const AddressLimits& limits_;
  std::unordered_map<Source, uint32_t> numberBySource_;
  std::vector<Address> table_;
  std::vector<uint32_t> numbers_;
};

// The world's part of a snapshot: the other servers, the sprites taken from each (by number), and
// the sprites that wait to cross. A server that was never in a world has no such part.

void writeWorld(const Seams& seams, const PoolCounts& counts, SnapshotWriter* writer);

/**
 * Reads the world's part into `seams`, and into `counts` the crossed sprites, the waiting ones and
 * their memory. `makeSprite` makes a sprite from its text and the edge that it enters by. Returns
 * what is wrong with the part, or nothing.
 */
std::string readWorld(SnapshotReader* reader,
                      const std::function<Sprite*(std::string_view text, Edge from)>& makeSprite,
                      std::unique_ptr<Seams>* seams, PoolCounts* counts);

}  // namespace server

#endif  // SPRITES_SNAPSHOT_WORLD_H_
