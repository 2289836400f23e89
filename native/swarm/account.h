// Where every sprite is, one bit at a time.
//
// Each engine numbers its sprites 0, 1, 2 … over all its throwers, so that "accepted" is one
// bitmap, and "received" is one bitmap for each engine of the swarm (a sprite may land at a client
// of any engine):
//
//   accepted            1 1 1 0 1 1 …     (0: refused, or never answered)
//   received of 0       1 1 1 0 0 1 …     ─┐ the parent ORs these over the engines:
//   received of 1       0 1 0 0 0 0 …     ─┘ accepted and in none of them is missing, in two is a
//   double
//
// Bitmaps come in pages of 65,536 bits (8 KB), made when first touched: a minute of 10,000 sprites
// a second takes 75 KB a map, a thousand million sprites 120 MB, whatever the number of clients.
// Pages that are all ones travel to the parent as their number alone. Counters per thrower with
// sorted ranges were tried on paper: four neighbors in several processes punch holes in every
// range, and a million throwers make a million little sets.
#ifndef SPRITES_SWARM_ACCOUNT_H_
#define SPRITES_SWARM_ACCOUNT_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace swarm {

/** What a sprite that has come is: kUnknown for what no swarm can have thrown, or more than can be
 * told apart. */
enum class Receipt : uint8_t { kNew, kDouble, kUnknown };

class BitPages {
 public:
  static constexpr uint32_t kPageBits = 65536;
  using Page = std::array<uint64_t, kPageBits / 64>;

  /** @param room how many more pages there may be; a page that is made takes one of them */
  Receipt set(uint64_t bit, size_t* room);

  const std::map<size_t, std::unique_ptr<Page>>& pages() const { return pages_; }

 private:
  std::map<size_t, std::unique_ptr<Page>> pages_;  // those of which anything was ever set
};

class Account {
 public:
  static constexpr uint32_t kMostProcesses = 1024;
  /** No run throws more (it would take a day at a hundred thousand a second). */
  static constexpr uint64_t kMostSprites = uint64_t{1} << 33;

  /** @param bytes that pages may take: 512 MB are two thousand million sprites accepted and
   * received */
  explicit Account(uint64_t bytes) : room_(bytes / sizeof(BitPages::Page)) {}

  void accepted(uint64_t sprite) { accepted_.set(sprite, &room_); }

  /** @return kDouble where this engine has received the sprite before */
  Receipt received(uint32_t process, uint64_t sprite);

  /** Writes all pages to the parent: a JSON line for each, then its bytes. */
  void write(uint32_t process, int fd) const;

 private:
  BitPages accepted_;
  size_t room_;                     // pages that there may be
  std::vector<BitPages> received_;  // by the engine that threw
};

// Where the sprites of many swarms are, by when they were thrown: for a load without an end. The
// panel tells every swarm (and every phone) the number of the current batch, and each sprite
// carries it, so that all of them count the same sprites:
//
//   number of a sprite   batch << 20 | which one of the batch
//
//   batch            17    18    19    20 (now)
//   accepted       2000  2000  1999   512     thrown by this engine
//   received       1990  2010  1000   700     arrived at its clients, from any thrower
//
// Summed over all swarms, accepted − received of a batch that is some seconds old is what is
// missing.
//
// A bit a sprite tells one that came twice, in pages of 65,536 (8 KB) for each thrower. The last
// kKept batches are kept, with kMostPages pages each: 32 MB at the most, whatever strangers throw.
// Older ones are two sums.

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
    BitPages pages;  // by thrower and sprite of the batch
    size_t room = kMostPages;
  };

  Batch* find(uint64_t number);

  std::array<Batch, kKept> kept_;
  Batch older_;
  uint64_t now_ = 0;
  uint64_t thrown_ = 0;
};

}  // namespace swarm

#endif  // SPRITES_SWARM_ACCOUNT_H_
