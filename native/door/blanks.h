// Optional white space around what a header says (RFC 9110, section 5.6.3).
#ifndef SPRITES_BLANKS_H_
#define SPRITES_BLANKS_H_

#include <string_view>

namespace server {

constexpr bool isBlank(char c) { return c == ' ' || c == '\t'; }

constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && isBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace server

#endif  // SPRITES_BLANKS_H_
