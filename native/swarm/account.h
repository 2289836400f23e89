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
#include <memory>
#include <vector>

namespace swarm {

class BitPages {
 public:
  static constexpr uint32_t kPageBits = 65536;
  using Page = std::array<uint64_t, kPageBits / 64>;

  /** No run throws more (it would take a day at a hundred thousand a second). */
  static constexpr uint64_t kMostBits = uint64_t{1} << 33;

  /** @return whether the bit was set before; a bit from kMostBits on is ignored and false */
  bool set(uint64_t bit);

  /** @return the page, or nullptr where nothing was ever set */
  const Page* page(size_t index) const { return pages_[index].get(); }
  size_t pages() const { return pages_.size(); }

 private:
  std::vector<std::unique_ptr<Page>> pages_;
};

class Account {
 public:
  static constexpr uint32_t kMostProcesses = 1024;

  void accepted(uint64_t sprite) { accepted_.set(sprite); }

  /** @return whether this engine has received the sprite before */
  bool received(uint32_t process, uint64_t sprite);

  /** Writes all pages to the parent: a JSON line for each, then its bytes. */
  void write(uint32_t process, int fd) const;

 private:
  BitPages accepted_;
  std::vector<BitPages> received_;  // by the engine that threw
};

}  // namespace swarm

#endif  // SPRITES_SWARM_ACCOUNT_H_
