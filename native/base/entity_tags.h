// The list of entity tags in If-None-Match (RFC 9110, sections 8.8.3 and 13.1.2).
#ifndef SPRITES_BASE_ENTITY_TAGS_H_
#define SPRITES_BASE_ENTITY_TAGS_H_

#include <algorithm>
#include <string_view>

namespace base {

/**
 * Whether a list of tags contains `tag`, weak or strong, or is "*". A list counts up to its first
 * mistake.
 */
inline bool hasTag(std::string_view list, std::string_view tag) {
  if (list == "*") return true;
  const auto skip = [&list](std::string_view characters) {
    list.remove_prefix(std::min(list.find_first_not_of(characters), list.size()));
  };
  do {
    skip(" \t,");
    if (list.starts_with("W/")) list.remove_prefix(2);
    const size_t end = list.find('"', 1);
    if (end == std::string_view::npos || list.front() != '"') return false;
    if (list.substr(1, end - 1) == tag) return true;
    list.remove_prefix(end + 1);
    skip(" \t");
  } while (!list.empty() && list.front() == ',');
  return false;
}

}  // namespace base

#endif  // SPRITES_BASE_ENTITY_TAGS_H_
