#include "account.h"

#include <algorithm>
#include <string>

#include "parent.h"

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
  if (bit >= kMostBits) return Receipt::kUnknown;
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
  if (process >= kMostProcesses) return Receipt::kUnknown;
  if (process >= received_.size()) received_.resize(process + 1);
  return received_[process].set(sprite, &room_);
}

void Account::write(uint32_t process, int fd) const {
  writePages(accepted_, "accepted", process, fd);
  for (uint32_t i = 0; i < received_.size(); i++) writePages(received_[i], "received", i, fd);
}

}  // namespace swarm
