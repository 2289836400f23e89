#include "account.h"

#include <algorithm>
#include <string>

#include "parent.h"

namespace swarm {

namespace {

void writePages(const BitPages& pages, const char* set, uint32_t process, int fd) {
  for (size_t i = 0; i < pages.pages(); i++) {
    const BitPages::Page* page = pages.page(i);
    if (page == nullptr) continue;
    const bool full =
        std::all_of(page->begin(), page->end(), [](uint64_t word) { return word == UINT64_MAX; });
    std::string frame = "{\"type\":\"page\",\"set\":\"" + std::string(set) +
                        "\",\"of\":" + std::to_string(process) + ",\"page\":" + std::to_string(i) +
                        ",\"bytes\":" + std::to_string(full ? 0 : sizeof(*page)) + "}\n";
    if (!full) frame.append(reinterpret_cast<const char*>(page->data()), sizeof(*page));
    writeAll(fd, frame);
  }
}

}  // namespace

bool BitPages::set(uint64_t bit) {
  if (bit >= kMostBits) return false;
  const size_t index = bit / kPageBits;
  if (index >= pages_.size()) pages_.resize(index + 1);
  if (!pages_[index]) pages_[index] = std::make_unique<Page>();
  uint64_t& word = (*pages_[index])[bit % kPageBits / 64];
  const uint64_t mask = uint64_t{1} << (bit % 64);
  const bool before = (word & mask) != 0;
  word |= mask;
  return before;
}

bool Account::received(uint32_t process, uint64_t sprite) {
  if (process >= kMostProcesses) return false;
  if (process >= received_.size()) received_.resize(process + 1);
  return received_[process].set(sprite);
}

void Account::write(uint32_t process, int fd) const {
  writePages(accepted_, "accepted", process, fd);
  for (uint32_t i = 0; i < received_.size(); i++) writePages(received_[i], "received", i, fd);
}

}  // namespace swarm
