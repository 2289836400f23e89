// Which feeds are meant: a key, "team/*" for all keys below a prefix, or "*" for all of them. As
// lib/grants/patterns.js has it.
#ifndef SPRITES_KEY_PATTERNS_H_
#define SPRITES_KEY_PATTERNS_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace server {

class KeyPatterns {
 public:
  KeyPatterns() = default;
  explicit KeyPatterns(std::vector<std::string> all) : all_(std::move(all)) {}

  /** Bytes that it takes. */
  size_t size() const {
    size_t sum = 0;
    for (const std::string& one : all_) sum += sizeof(std::string) + one.capacity();
    return sum;
  }

  /** Whether a key is meant. */
  bool covers(std::string_view key) const {
    return std::any_of(all_.begin(), all_.end(),
                       [key](std::string_view one) { return isOf(one, key); });
  }

 private:
  static bool isOf(std::string_view pattern, std::string_view key) {
    if (pattern.back() != '*') return pattern == key;
    pattern.remove_suffix(1);
    return key.size() > pattern.size() && key.starts_with(pattern);
  }

  std::vector<std::string> all_;
};

}  // namespace server

#endif  // SPRITES_KEY_PATTERNS_H_
