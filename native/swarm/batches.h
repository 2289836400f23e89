// Where the sprites of many swarms are, by when they were thrown: for load that goes on as long as
// somebody wants, steered from elsewhere. One hand tells every swarm (and every phone) the number
// of the batch that is on, and each sprite carries it, so that all of them count the same sprites:
//
//   number of a sprite   batch << 20 | which one of the batch
//
//   batch            17    18    19    20 (now)
//   accepted       2000  2000  1999   512     those this engine threw
//   received       1990  2010  1000   700     those that came to its clients, whoever threw them
//
// Summed over all who take part, accepted − received of a batch that is some seconds old is what is
// missing.
//
// A bit a sprite tells one that came twice, in pages of 65,536 (8 KB) for each thrower. The last
// kKept batches are kept, with kMostPages pages each: 32 MB at the most, whatever strangers throw.
// Older ones are two sums.
#ifndef SPRITES_SWARM_BATCHES_H_
#define SPRITES_SWARM_BATCHES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "account.h"

namespace swarm {

class Batches {
 public:
  static constexpr uint32_t kBits = 20;
  static constexpr uint64_t kKept = 32;
  static constexpr size_t kMostPages = 128;

  /** Another batch is on; one that is not above it changes nothing. */
  void begin(uint64_t batch);

  /** @return a number for the next sprite; the last one again when a batch has a million */
  uint64_t next();

  void accepted(uint64_t sprite);

  /** @return kUnknown for what no swarm can have thrown yet, too */
  Receipt received(uint32_t process, uint64_t sprite);

  /** Appends `[[batch,accepted,received],…]`, the first of them the sum of all older ones. */
  void print(std::string* json) const;

 private:
  struct Batch {
    uint64_t number = 0;
    uint64_t accepted = 0;
    uint64_t received = 0;
    std::unordered_map<uint64_t, std::unique_ptr<BitPages::Page>> pages;  // by thrower and page
  };

  Batch* find(uint64_t number);

  std::array<Batch, kKept> kept_;
  Batch older_;
  uint64_t now_ = 0;
  uint64_t thrown_ = 0;
};

}  // namespace swarm

#endif  // SPRITES_SWARM_BATCHES_H_
