// Keys and cursors: which texts are one, and what a cursor says.
//
//   key      scores   matchesfeed/8/matchcentre        1 to 200 of A-Z a-z 0-9 . _ ~ - /
//            presence/scores                           tells of the watchers of scores
//   cursor   e3f9k2-42                                 an epoch in base 36, a version in base 10
//            none                                      of a client without a value, which waits for
//            the first
//
// An epoch is the life of a feed, from its first value to its end: versions of two epochs have
// nothing to do with each other. It is drawn at random: after a restart the cursors of earlier
// watchers must not look like versions of the new epoch.
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
constexpr size_t kTurnLength = 40;  // of the same characters

/** The cursor of a client that has no value, and waits for the first one where there is none. */
constexpr std::string_view kNoCursor = "none";

/** What the key of a feed begins with that tells of another's watchers. */
constexpr std::string_view kPresence = "presence/";

/** The key of the feed that this one tells of; empty: it tells of none. */
constexpr std::string_view toldBy(std::string_view key) {
  return key.starts_with(kPresence) ? key.substr(kPresence.size()) : std::string_view();
}

constexpr bool isKeyCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '~' || c == '-';
}

constexpr bool isCursorCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/** Whether it is a key: no segment empty, none that is "." or "..". */
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

/** Whether it may be a cursor, of whatever server; not the empty text. */
inline bool isCursor(std::string_view text) {
  if (text.empty() || text.size() > kCursorLength) return false;
  for (const char c : text) {
    if (!isCursorCharacter(c)) return false;
  }
  return true;
}

/** What a cursor says. Version 0: none; its holder has nothing yet. */
struct Cursor {
  uint64_t epoch = 0;
  uint64_t version = 0;

  /** Reads a cursor that this server has written; any other text gives version 0. */
  static Cursor of(std::string_view text) {
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
