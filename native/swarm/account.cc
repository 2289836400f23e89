#include "account.h"

#include <algorithm>

#include "process.h"

namespace swarm {

namespace {

void writePages(const BitPages& pages, const char* set, uint32_t process, int fd) {
  for (const auto& [index, page] : pages.pages()) {
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

}  // namespace

Receipt BitPages::set(uint64_t bit, size_t* pagesLeft) {
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

Receipt Account::addReceived(uint32_t process, uint64_t sprite) {
  if (process >= kMaxProcesses || sprite >= kMaxSprites) return Receipt::kUnknown;
  if (process >= received_.size()) received_.resize(process + 1);
  return received_[process].set(sprite, &pagesLeft_);
}

void Account::write(uint32_t process, int fd) const {
  writePages(accepted_, "accepted", process, fd);
  for (uint32_t i = 0; i < received_.size(); i++) writePages(received_[i], "received", i, fd);
}

namespace {

constexpr uint64_t kMaxSpritesPerBatch = uint64_t{1} << Batches::kNumberBits;

/** Most batches that another swarm may be ahead: a new batch reaches some swarms late. */
constexpr uint64_t kMaxBatchesAhead = 4;

void printBatch(uint64_t number, uint64_t accepted, uint64_t received, std::string* json) {
  char separator = '[';
  for (const uint64_t value : {number, accepted, received}) {
    json->push_back(separator);
    json->append(std::to_string(value));
    separator = ',';
  }
  json->push_back(']');
}

}  // namespace

void Batches::begin(uint64_t batch) {
  if (batch <= currentBatch_) return;
  currentBatch_ = batch;
  thrownInBatch_ = 0;
}

uint64_t Batches::nextSprite() {
  thrownInBatch_ = std::min(thrownInBatch_ + 1, kMaxSpritesPerBatch);
  return currentBatch_ << kNumberBits | (thrownInBatch_ - 1);
}

Batches::Batch* Batches::findOrBegin(uint64_t number) {
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

void Batches::addAccepted(uint64_t sprite) { findOrBegin(sprite >> kNumberBits)->accepted++; }

Receipt Batches::addReceived(uint32_t process, uint64_t sprite) {
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

void Batches::print(std::string* json) const {
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

}  // namespace swarm
