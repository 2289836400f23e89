// The account of every sprite, in bitmaps.
//
// Each engine numbers its sprites 0, 1, 2 … over all its throwers. So "accepted" is one bitmap, and
// "received" is one bitmap for each engine of the swarm, since a sprite may land at a client of any
// engine:
//
//   accepted            1 1 1 0 1 1 …     (0: refused, or never answered)
//   received of 0       1 1 1 0 0 1 …     ─┐ the parent ORs these over the engines:
//   received of 1       0 1 0 0 0 0 …     ─┘ an accepted sprite in none of them is missing,
//                                            a sprite in two of them is a double
//
// Bitmaps have pages of 65,536 bits (8 KB), made at their first use: a minute of 10,000 sprites a
// second takes 75 KB a map, and 1,000 million sprites take 120 MB, whatever the number of clients.
// A page that is all ones is sent to the parent as its number alone. Sorted ranges per thrower were
// rejected on paper: four neighbors in several processes make holes in every range, and a million
// throwers make a million small sets.
#ifndef SPRITES_SWARM_ACCOUNT_H_
#define SPRITES_SWARM_ACCOUNT_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "process.h"

namespace swarm {

/** The kind of a received sprite. kUnknown: no swarm can have thrown it, or the pages are full. */
enum class Receipt : uint8_t { kNew, kDouble, kUnknown };

class BitPages {
 public:
  static constexpr uint32_t kPageBits = 65536;
  using Page = std::array<uint64_t, kPageBits / 64>;

  /** Sets a bit. @param pagesLeft number of further pages allowed; a new page decrements it */
  Receipt set(uint64_t bit, size_t* pagesLeft) {
    auto found = pages_.find(bit / kPageBits);
    if (found == pages_.end()) {
      if (*pagesLeft == 0) return Receipt::kUnknown;
      (*pagesLeft)--;
      found = pages_.emplace(bit / kPageBits, std::make_unique<Page>()).first;
    }
    uint64_t& word = (*found->second)[bit % kPageBits / 64];
    const uint64_t mask = uint64_t{1} << (bit % 64);
    const bool wasSet = (word & mask) != 0;
    word |= mask;
    return wasSet ? Receipt::kDouble : Receipt::kNew;
  }

  /** Writes the pages to the parent: a JSON line for each page, then its bytes. */
  void write(const char* set, uint32_t process, int fd) const {
    for (const auto& [index, page] : pages_) {
      const bool isFull =
          std::all_of(page->begin(), page->end(), [](uint64_t word) { return word == UINT64_MAX; });
      std::string frame = "{\"type\":\"page\",\"set\":\"" + std::string(set) +
                          "\",\"of\":" + std::to_string(process) +
                          ",\"page\":" + std::to_string(index) +
                          ",\"bytes\":" + std::to_string(isFull ? 0 : sizeof(*page)) + "}\n";
      if (!isFull) frame.append(reinterpret_cast<const char*>(page->data()), sizeof(*page));
      writeAll(fd, frame);
    }
  }

 private:
  std::map<size_t, std::unique_ptr<Page>> pages_;  // the pages in use
};
class Account {
 public:
  static constexpr uint32_t kMaxProcesses = 1024;
  /** No run throws more: at 100,000 sprites a second it would take a day. */
  static constexpr uint64_t kMaxSprites = uint64_t{1} << 33;

  /** @param bytes most memory of the pages: 512 MB hold 2,000 million sprites, accepted and
   * received */
  explicit Account(uint64_t bytes) : pagesLeft_(bytes / sizeof(BitPages::Page)) {}

  void addAccepted(uint64_t sprite) { accepted_.set(sprite, &pagesLeft_); }

  /** @return kDouble when this engine has received the sprite before */
  Receipt addReceived(uint32_t process, uint64_t sprite) {
    if (process >= kMaxProcesses || sprite >= kMaxSprites) return Receipt::kUnknown;
    if (process >= received_.size()) received_.resize(process + 1);
    return received_[process].set(sprite, &pagesLeft_);
  }

  /** Writes all pages to the parent. */
  void write(uint32_t process, int fd) const {
    accepted_.write("accepted", process, fd);
    for (uint32_t i = 0; i < received_.size(); i++) received_[i].write("received", i, fd);
  }

 private:
  BitPages accepted_;
  size_t pagesLeft_;                // further pages allowed
  std::vector<BitPages> received_;  // by the engine that threw
};
// The account of many swarms' sprites, by the time of the throw: for a load without an end. The
// panel sends every swarm (and every phone) the number of the current batch, and each sprite
// carries this number, so that all of them count the same sprites:
//
//   number of a sprite   batch << 20 | number within the batch
//
//   batch            17    18    19    20 (now)
//   accepted       2000  2000  1999   512     thrown by this engine
//   received       1990  2010  1000   700     arrived at this engine's clients, from any thrower
//
// The missing sprites are accepted − received of the batches that are some seconds old, summed over
// all swarms.
//
// A bit for each sprite detects doubles, in pages of 65,536 bits (8 KB) for each thrower. The last
// kKeptBatches batches are kept, with kMaxPages pages each: at most 32 MB, whatever strangers
// throw. Of older batches two sums are kept.

class Batches {
 public:
  static constexpr uint32_t kNumberBits = 20;
  static constexpr uint64_t kMaxSpritesPerBatch = uint64_t{1} << kNumberBits;
  /** Most batches that another swarm may be ahead of one without contact for a lease. */
  static constexpr uint64_t kMaxBatchesAhead = 16;
  static constexpr uint64_t kKeptBatches = 32;
  static constexpr size_t kMaxPages = 128;

  /** Sets the current batch. A number that is not higher than the current one is ignored. */
  void begin(uint64_t batch) {
    if (batch <= currentBatch_) return;
    currentBatch_ = batch;
    thrownInBatch_ = 0;
  }

  /** @return the number of the next sprite; the last number again in a batch of 2^20 sprites */
  uint64_t nextSprite() {
    thrownInBatch_ = std::min(thrownInBatch_ + 1, kMaxSpritesPerBatch);
    return currentBatch_ << kNumberBits | (thrownInBatch_ - 1);
  }

  void addAccepted(uint64_t sprite) { findOrBegin(sprite >> kNumberBits)->accepted++; }

  /** @return kUnknown also for a batch that no swarm can have begun yet */
  Receipt addReceived(uint32_t process, uint64_t sprite) {
    if (sprite >> kNumberBits > currentBatch_ + kMaxBatchesAhead) return Receipt::kUnknown;
    Batch* batch = findOrBegin(sprite >> kNumberBits);
    if (batch != &olderSum_) {
      const uint64_t bit = uint64_t{process} << kNumberBits | (sprite & (kMaxSpritesPerBatch - 1));
      const Receipt receipt = batch->pages.set(bit, &batch->pagesLeft);
      if (receipt != Receipt::kNew) return receipt;
    }
    batch->received++;
    return Receipt::kNew;
  }

  /** Appends `[[batch,accepted,received],…]`; the first entry is the sum of all older batches. */
  void print(std::string* json) const {
    std::array<const Batch*, kKeptBatches> sorted;
    std::transform(recentBatches_.begin(), recentBatches_.end(), sorted.begin(),
                   [](const Batch& batch) { return &batch; });
    std::sort(sorted.begin(), sorted.end(),
              [](const Batch* a, const Batch* b) { return a->number < b->number; });
    json->append("[");
    printBatch(olderSum_.number, olderSum_.accepted, olderSum_.received, json);
    for (const Batch* batch : sorted) {
      if (batch->number == 0) continue;
      json->append(",");
      printBatch(batch->number, batch->accepted, batch->received, json);
    }
    json->append("]");
  }

 private:
  struct Batch {
    uint64_t number = 0;
    uint64_t accepted = 0;
    uint64_t received = 0;
    BitPages pages;  // by thrower and number within the batch
    size_t pagesLeft = kMaxPages;
  };

  static void printBatch(uint64_t number, uint64_t accepted, uint64_t received, std::string* json) {
    char separator = '[';
    for (const uint64_t value : {number, accepted, received}) {
      json->push_back(separator);
      json->append(std::to_string(value));
      separator = ',';
    }
    json->push_back(']');
  }

  Batch* findOrBegin(uint64_t number) {
    Batch* batch = &recentBatches_[number % kKeptBatches];
    if (number == batch->number) return batch;
    if (number < batch->number) return &olderSum_;
    olderSum_.number = std::max(olderSum_.number, batch->number);
    olderSum_.accepted += batch->accepted;
    olderSum_.received += batch->received;
    *batch = Batch{};
    batch->number = number;
    return batch;
  }

  std::array<Batch, kKeptBatches> recentBatches_;
  Batch olderSum_;
  uint64_t currentBatch_ = 0;
  uint64_t thrownInBatch_ = 0;
};
}  // namespace swarm

#endif  // SPRITES_SWARM_ACCOUNT_H_
