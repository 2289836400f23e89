#include "account.h"

#include <algorithm>
#include <string>

#include "process.h"

namespace swarm {

namespace {

void writePages(const BitPages& pages, const char* set, uint32_t process, int fd) {
  for (const auto& [index, page] : pages.pages()) {
    const bool full =
        std::all_of(page->begin(), page->end(), [](uint64_t word) { return word == UINT64_MAX; });
    std::string frame = "{\"type\":\"page\",\"set\":\"" + std::string(set) +
                        "\",\"of\":" + std::to_string(process) +
                        ",\"page\":" + std::to_string(index) +
                        ",\"bytes\":" + std::to_string(full ? 0 : sizeof(*page)) + "}\n";
    if (!full) frame.append(reinterpret_cast<const char*>(page->data()), sizeof(*page));
    writeAll(fd, frame);
  }
}

}  // namespace

Receipt BitPages::set(uint64_t bit, size_t* room) {
  auto found = pages_.find(bit / kPageBits);
  if (found == pages_.end()) {
    if (*room == 0) return Receipt::kUnknown;
    (*room)--;
    found = pages_.emplace(bit / kPageBits, std::make_unique<Page>()).first;
  }
  uint64_t& word = (*found->second)[bit % kPageBits / 64];
  const uint64_t mask = uint64_t{1} << (bit % 64);
  const bool before = (word & mask) != 0;
  word |= mask;
  return before ? Receipt::kDouble : Receipt::kNew;
}

Receipt Account::received(uint32_t process, uint64_t sprite) {
  if (process >= kMostProcesses || sprite >= kMostSprites) return Receipt::kUnknown;
  if (process >= received_.size()) received_.resize(process + 1);
  return received_[process].set(sprite, &room_);
}

void Account::write(uint32_t process, int fd) const {
  writePages(accepted_, "accepted", process, fd);
  for (uint32_t i = 0; i < received_.size(); i++) writePages(received_[i], "received", i, fd);
}

namespace {

constexpr uint64_t kMostOfABatch = uint64_t{1} << Batches::kBits;

/** Most batches that another swarm may be ahead: a new batch reaches some swarms late. */
constexpr uint64_t kAhead = 4;

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
  if (batch <= now_) return;
  now_ = batch;
  thrown_ = 0;
}

uint64_t Batches::next() {
  thrown_ = std::min(thrown_ + 1, kMostOfABatch);
  return now_ << kBits | (thrown_ - 1);
}

Batches::Batch* Batches::find(uint64_t number) {
  Batch* batch = &kept_[number % kKept];
  if (number == batch->number) return batch;
  if (number < batch->number) return &older_;
  older_.number = std::max(older_.number, batch->number);
  older_.accepted += batch->accepted;
  older_.received += batch->received;
  *batch = Batch{};
  batch->number = number;
  return batch;
}

void Batches::accepted(uint64_t sprite) { find(sprite >> kBits)->accepted++; }

Receipt Batches::received(uint32_t process, uint64_t sprite) {
  if (sprite >> kBits > now_ + kAhead) return Receipt::kUnknown;
  Batch* batch = find(sprite >> kBits);
  if (batch != &older_) {
    const uint64_t bit = uint64_t{process} << kBits | (sprite & (kMostOfABatch - 1));
    const Receipt receipt = batch->pages.set(bit, &batch->room);
    if (receipt != Receipt::kNew) return receipt;
  }
  batch->received++;
  return Receipt::kNew;
}

void Batches::print(std::string* json) const {
  std::array<const Batch*, kKept> sorted;
  std::transform(kept_.begin(), kept_.end(), sorted.begin(),
                 [](const Batch& batch) { return &batch; });
  std::sort(sorted.begin(), sorted.end(),
            [](const Batch* a, const Batch* b) { return a->number < b->number; });
  json->append("[");
  printBatch(older_.number, older_.accepted, older_.received, json);
  for (const Batch* batch : sorted) {
    if (batch->number == 0) continue;
    json->append(",");
    printBatch(batch->number, batch->accepted, batch->received, json);
  }
  json->append("]");
}

}  // namespace swarm
