// The JSON check: one pass over the bytes, one word of memory.
//
//   {"kind":"ball","path":[1,2]}          opened_  (one bit per open bracket, newest lowest)
//   ^ open        ^ open     ^            1        in the object
//                                         10       in the array in the object
//                                         1        back in the object
//
// One loop: a value begins, a value ends, its brackets close, a comma brings the next. The
// innermost bracket alone decides what a comma or a bracket means, so the whole stack is a word of
// bits and its depth a counter. No recursion: a stranger's nesting costs no stack. Grammar: RFC
// 8259; UTF-8 as the table in RFC 3629, section 4, which leaves out overlong forms, surrogates and
// everything above U+10FFFF. An escaped lone surrogate ("\ud800") is good JSON by the grammar, and
// JSON.parse takes it.
//
// Costs: most bytes of a sprite lie in strings, and those are skipped eight at a time by
// arithmetic on one word. A 200-byte sprite takes some 200 ns (make -C test/native bench).
//
// Rejected: simdjson and its like (an index of the text is built before it is checked; a sprite is
// shorter than the set-up), a parser that builds values (they are not read here: the bytes are
// relayed as they came), and handing the text to V8 (a throw enters no JavaScript).
#include "json_reader.h"

#include <bit>
#include <cstring>

namespace base {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kHighs = 0x8080808080808080;

/** The high bit of each byte of `word` that is zero; exact up to and including the lowest one. */
inline uint64_t zeroBytes(uint64_t word) { return (word - kOnes) & ~word & kHighs; }

/**
 * Skips bytes that stand for themselves inside a string: printable ASCII but for `"` and `\`.
 * Returns where the first other byte is, or `end`.
 */
inline const char* skipPlain(const char* at, const char* end) {
  if constexpr (std::endian::native == std::endian::little) {
    while (end - at >= 8) {
      uint64_t word;
      memcpy(&word, at, sizeof word);
      const uint64_t control = (word - kOnes * 0x20) & ~word & kHighs;
      const uint64_t other = (word & kHighs) | control | zeroBytes(word ^ (kOnes * '"')) |
                             zeroBytes(word ^ (kOnes * '\\'));
      if (other != 0) return at + (std::countr_zero(other) >> 3);
      at += 8;
    }
  }
  while (at != end) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\') break;
    ++at;
  }
  return at;
}

inline bool isDigit(char c) { return c >= '0' && c <= '9'; }

inline bool isHexDigit(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

inline const char* skipSpace(const char* at, const char* end) {
  if (at != end && static_cast<unsigned char>(*at) > ' ') return at;  // nearly always
  while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
  return at;
}

inline const char* skipDigits(const char* at, const char* end) {
  while (at != end && isDigit(*at)) ++at;
  return at;
}

/** Skips one character above U+007F (RFC 3629); nullptr when it is no such character. */
const char* skipUtf8(const char* at, const char* end) {
  const auto lead = static_cast<unsigned char>(*at);
  // The second byte's range carries all the exceptions: overlong forms, surrogates, the last plane.
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  ptrdiff_t more;
  if (lead >= 0xc2 && lead <= 0xdf) {
    more = 1;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    more = 2;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    more = 3;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return nullptr;
  }
  if (end - at <= more) return nullptr;
  const auto second = static_cast<unsigned char>(at[1]);
  if (second < low || second > high) return nullptr;
  for (ptrdiff_t i = 2; i <= more; ++i) {
    if ((static_cast<unsigned char>(at[i]) & 0xc0) != 0x80) return nullptr;
  }
  return at + more + 1;
}

/** Skips what follows a backslash; nullptr when no escape does. */
const char* skipEscape(const char* at, const char* end) {
  if (at == end) return nullptr;
  switch (*at) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
      return at + 1;
    case 'u':
      if (end - at < 5) return nullptr;
      for (int i = 1; i <= 4; ++i) {
        if (!isHexDigit(at[i])) return nullptr;
      }
      return at + 5;
    default:
      return nullptr;
  }
}

/** Skips a string from behind its opening quote; nullptr when it is broken or never ends. */
inline const char* skipString(const char* at, const char* end) {
  while (at != nullptr) {
    at = skipPlain(at, end);
    if (at == end) return nullptr;
    if (*at == '"') return at + 1;
    if (*at == '\\') {
      at = skipEscape(at + 1, end);
    } else {
      at = static_cast<unsigned char>(*at) >= 0x80 ? skipUtf8(at, end) : nullptr;
    }
  }
  return nullptr;
}

/** Skips a number from its first character, a digit or `-`; nullptr when it is none. */
inline const char* skipNumber(const char* at, const char* end) {
  if (*at == '-') ++at;
  if (at == end || !isDigit(*at)) return nullptr;
  at = *at == '0' ? at + 1 : skipDigits(at, end);
  if (at != end && *at == '.') {
    const char* fraction = at + 1;
    at = skipDigits(fraction, end);
    if (at == fraction) return nullptr;
  }
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end && (*at == '+' || *at == '-')) ++at;
    const char* exponent = at;
    at = skipDigits(exponent, end);
    if (at == exponent) return nullptr;
  }
  return at;
}

/** Skips the word `literal`; nullptr when it is not there. */
template <size_t Size>
inline const char* skipLiteral(const char* at, const char* end, const char (&literal)[Size]) {
  constexpr size_t length = Size - 1;
  if (static_cast<size_t>(end - at) < length || memcmp(at, literal, length) != 0) return nullptr;
  return at + length;
}

/** Skips a value that holds no others; nullptr when there is none. */
inline const char* skipScalar(const char* at, const char* end) {
  switch (*at) {
    case '"':
      return skipString(at + 1, end);
    case 't':
      return skipLiteral(at, end, "true");
    case 'f':
      return skipLiteral(at, end, "false");
    case 'n':
      return skipLiteral(at, end, "null");
    default:
      return *at == '-' || isDigit(*at) ? skipNumber(at, end) : nullptr;
  }
}

/**
 * Skips a member's name, its colon and the white space around both; nullptr when one is missing.
 * `at` is behind any white space before the name.
 */
inline const char* skipName(const char* at, const char* end) {
  if (at == end || *at != '"') return nullptr;
  at = skipString(at + 1, end);
  if (at == nullptr) return nullptr;
  at = skipSpace(at, end);
  if (at == end || *at != ':') return nullptr;
  return skipSpace(at + 1, end);
}

/** The open brackets, newest in the lowest bit: 1 an object, 0 an array. */
class Brackets {
 public:
  explicit Brackets(unsigned bound) : bound_(bound < kJsonDepthMax ? bound : kJsonDepthMax) {}

  bool open(bool object) {
    if (depth_ == bound_) return false;
    ++depth_;
    opened_ = opened_ << 1 | (object ? 1 : 0);
    return true;
  }
  void close() {
    --depth_;
    opened_ >>= 1;
  }
  bool inObject() const { return (opened_ & 1) != 0; }
  char closer() const { return inObject() ? '}' : ']'; }
  bool allClosed() const { return depth_ == 0; }

 private:
  uint64_t opened_ = 0;
  unsigned depth_ = 0;
  const unsigned bound_;
};

}  // namespace

bool isJsonObject(const char* text, size_t length, unsigned depth) {
  const char* const end = text + length;
  const char* at = skipSpace(text, end);
  if (at == end || *at != '{') return false;

  Brackets brackets(depth);
  for (;;) {
    // Here a value begins. White space before it is behind us, here and wherever `at` rests.
    if (at == end) return false;
    if (*at == '{' || *at == '[') {
      if (!brackets.open(*at == '{')) return false;
      at = skipSpace(at + 1, end);
      const bool empty = at != end && *at == brackets.closer();
      if (!empty) {
        if (brackets.inObject()) at = skipName(at, end);
        if (at == nullptr) return false;
        continue;
      }
    } else {
      at = skipScalar(at, end);
      if (at == nullptr) return false;
      at = skipSpace(at, end);
    }

    // Here a value ended, or an empty object or array is about to.
    while (at != end && *at == brackets.closer()) {
      at = skipSpace(at + 1, end);
      brackets.close();
      if (brackets.allClosed()) return at == end;
    }
    if (at == end || *at != ',') return false;
    at = skipSpace(at + 1, end);
    if (brackets.inObject()) at = skipName(at, end);
    if (at == nullptr) return false;
  }
}

}  // namespace base
