// Keys and cursors of feeds: their form and meaning.
//
//   key      scores   matchesfeed/8/matchcentre        1 to 200 of A-Z a-z 0-9 . _ ~ - /
//            presence/scores                           the watchers of scores
//   cursor   e3f9k2-42                                 an epoch in base 36, a version in base 10
//            none                                      a client without a value, which waits for
//            one
//
// An epoch is the life of a feed, from its first value to its end. Versions of two epochs have no
// relation. An epoch is random: after a restart the cursors of earlier watchers must not look like
// versions of the new epoch.
#ifndef SPRITES_FEED_NAMES_H_
#define SPRITES_FEED_NAMES_H_

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/digits.h"

namespace server {

constexpr size_t kKeyLength = 200;
constexpr size_t kCursorLength = 40;
constexpr size_t kTurnLength = 40;  // of the characters of a cursor

/** The cursor of a client without a value. It waits for the first one if there is none. */
constexpr std::string_view kNoCursor = "none";

/** Prefix of the key of a presence feed. */
constexpr std::string_view kPresencePrefix = "presence/";

/** The key of the feed whose watchers this feed shows; empty: it is no presence feed. */
constexpr std::string_view presenceSubjectOf(std::string_view key) {
  return key.starts_with(kPresencePrefix) ? key.substr(kPresencePrefix.size()) : std::string_view();
}

constexpr bool isKeyCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '~' || c == '-';
}

constexpr bool isCursorCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/** Whether a text is a key: no segment is empty, "." or "..". */
inline bool isFeedKey(std::string_view key) {
  if (key.empty() || key.size() > kKeyLength) return false;
  size_t begin = 0;
  for (size_t i = 0; i <= key.size(); ++i) {
    if (i < key.size() && key[i] != '/') {
      if (!isKeyCharacter(key[i])) return false;
      continue;
    }
    const std::string_view segment = key.substr(begin, i - begin);
    if (segment.empty() || segment == "." || segment == "..") return false;
    begin = i + 1;
  }
  return true;
}

/** Whether a text may be a cursor, of any server; not the empty text. */
inline bool isCursor(std::string_view text) {
  if (text.empty() || text.size() > kCursorLength) return false;
  for (const char c : text) {
    if (!isCursorCharacter(c)) return false;
  }
  return true;
}

/** The parts of a cursor. Version 0: the client has no value. */
struct Cursor {
  uint64_t epoch = 0;
  uint64_t version = 0;

  /** Reads a cursor of this server; any other text returns version 0. */
  static Cursor parse(std::string_view text) {
    Cursor cursor;
    if (text.size() < 4 || text[0] != 'e') return {};
    const char* const end = text.data() + text.size();
    const auto epoch = std::from_chars(text.data() + 1, end, cursor.epoch, 36);
    if (epoch.ec != std::errc() || epoch.ptr == end || *epoch.ptr != '-') return {};
    const auto version = std::from_chars(epoch.ptr + 1, end, cursor.version, 10);
    if (version.ec != std::errc() || version.ptr != end) return {};
    return cursor;
  }

  void appendTo(std::string* text) const {
    if (version == 0) {
      *text += kNoCursor;
      return;
    }
    *text += 'e';
    base::appendDigits(text, epoch, 36);
    *text += '-';
    base::appendDigits(text, version);
  }
};

}  // namespace server

#endif  // SPRITES_FEED_NAMES_H_
