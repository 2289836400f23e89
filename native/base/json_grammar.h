// The grammar of JSON (RFC 8259), and the loop over a text that all readers share: json_reader.cc,
// canonical.cc.
//
//   {"kind":"ball","path":[1,2]}          openBits_  (one bit per open bracket, newest lowest)
//   ^ open        ^ open     ^            1        in the object
//                                         10       in the array in the object
//                                         1        back in the object
//
// A value begins, a value ends, brackets close, a comma starts the next value. Only the innermost
// bracket decides on the meaning of a comma or a bracket, so the stack is a word of bits, and its
// depth a counter. UTF-8 is checked by the table in RFC 3629, section 4, which excludes overlong
// forms, surrogates and everything above U+10FFFF. An escaped lone surrogate ("\ud800") is valid in
// the grammar and in JSON.parse.
#ifndef SPRITES_BASE_JSON_GRAMMAR_H_
#define SPRITES_BASE_JSON_GRAMMAR_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace base {

/** Largest depth for readJson: the open brackets are bits of one word. */
constexpr unsigned kMaxJsonDepth = 64;

namespace json {

constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kHighs = 0x8080808080808080;

/** Returns the high bit of each zero byte of `word`; exact up to the lowest one. */
inline uint64_t zeroBytes(uint64_t word) { return (word - kOnes) & ~word & kHighs; }

/**
 * Marks the bytes of `word` that are not plain inside a string: all but printable ASCII, and `"`
 * and `\`. The lowest mark is exact.
 */
inline uint64_t notPlainMask(uint64_t word) {
  const uint64_t control = (word - kOnes * 0x20) & ~word & kHighs;
  return (word & kHighs) | control | zeroBytes(word ^ (kOnes * '"')) |
         zeroBytes(word ^ (kOnes * '\\'));
}

/** Skips plain bytes of a string, up to the first other byte or `end`. */
inline const char* skipPlain(const char* at, const char* end) {
  if constexpr (std::endian::native == std::endian::little) {
    while (end - at >= 8) {
      uint64_t word;
      memcpy(&word, at, sizeof word);
      const uint64_t other = notPlainMask(word);
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

/** Skips one character above U+007F (RFC 3629); nullptr: malformed. */
inline const char* skipUtf8(const char* at, const char* end) {
  const auto lead = static_cast<unsigned char>(*at);
  // The range of the second byte has all the exceptions: overlong forms, surrogates, the last
  // plane.
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  ptrdiff_t continuationBytes;
  if (lead >= 0xc2 && lead <= 0xdf) {
    continuationBytes = 1;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    continuationBytes = 2;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    continuationBytes = 3;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return nullptr;
  }
  if (end - at <= continuationBytes) return nullptr;
  const auto second = static_cast<unsigned char>(at[1]);
  if (second < low || second > high) return nullptr;
  for (ptrdiff_t i = 2; i <= continuationBytes; ++i) {
    if ((static_cast<unsigned char>(at[i]) & 0xc0) != 0x80) return nullptr;
  }
  return at + continuationBytes + 1;
}

/** Skips an escape after its backslash; nullptr: malformed. */
inline const char* skipEscape(const char* at, const char* end) {
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

/** Skips a string after its opening quote; nullptr: malformed, or without an end. */
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

/** Skips a number from its first character, a digit or `-`; nullptr: malformed. */
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

/** Skips the word `literal`; nullptr: other text. */
template <size_t Size>
inline const char* skipLiteral(const char* at, const char* end, const char (&literal)[Size]) {
  constexpr size_t length = Size - 1;
  if (static_cast<size_t>(end - at) < length || memcmp(at, literal, length) != 0) return nullptr;
  return at + length;
}

/** The open brackets, newest in the lowest bit: 1 an object, 0 an array. */
class Brackets {
 public:
  explicit Brackets(unsigned bound) : maxDepth_(bound < kMaxJsonDepth ? bound : kMaxJsonDepth) {}

  bool open(bool object) {
    if (depth_ == maxDepth_) return false;
    ++depth_;
    openBits_ = openBits_ << 1 | (object ? 1 : 0);
    return true;
  }
  void close() {
    --depth_;
    openBits_ >>= 1;
  }
  bool inObject() const { return (openBits_ & 1) != 0; }
  char closer() const { return inObject() ? '}' : ']'; }
  bool areAllClosed() const { return depth_ == 0; }

 private:
  uint64_t openBits_ = 0;
  unsigned depth_ = 0;
  const unsigned maxDepth_;
};

/**
 * Reads exactly one JSON text, nested at most to `depth`, and calls `parts` for each of its parts,
 * in order:
 *
 *   void open(bool object), bool close(bool object), void comma(), void colon()
 *   const char* name(at, end)     begins after the opening quote; returns the end of the name
 *   const char* scalar(at, end)   a value without parts; returns its end
 *
 * nullptr or false from one of them ends the reading. Returns whether the text was read to its end.
 * O(length), no recursion: deep nesting costs no stack.
 */
template <typename Parts>
inline bool readJson(const char* at, const char* end, unsigned depth, Parts& parts) {
  // Skips a member's name, its colon and the white space around both.
  const auto nameAt = [&parts, end](const char* from) -> const char* {
    if (from == end || *from != '"') return nullptr;
    from = parts.name(from + 1, end);
    if (from == nullptr) return nullptr;
    from = skipSpace(from, end);
    if (from == end || *from != ':') return nullptr;
    parts.colon();
    return skipSpace(from + 1, end);
  };
  Brackets brackets(depth);
  at = skipSpace(at, end);
  for (;;) {
    // A value begins here. The white space before it is skipped, here and wherever `at` stops.
    if (at == end) return false;
    if (*at == '{' || *at == '[') {
      const bool object = *at == '{';
      if (!brackets.open(object)) return false;
      parts.open(object);
      at = skipSpace(at + 1, end);
      const bool empty = at != end && *at == brackets.closer();
      if (!empty) {
        if (object) at = nameAt(at);
        if (at == nullptr) return false;
        continue;
      }
    } else {
      at = parts.scalar(at, end);
      if (at == nullptr) return false;
      at = skipSpace(at, end);
      if (brackets.areAllClosed()) return at == end;
    }

    // A value has ended here, or an empty object or array ends next.
    while (at != end && *at == brackets.closer()) {
      if (!parts.close(brackets.inObject())) return false;
      at = skipSpace(at + 1, end);
      brackets.close();
      if (brackets.areAllClosed()) return at == end;
    }
    if (at == end || *at != ',') return false;
    parts.comma();
    at = skipSpace(at + 1, end);
    if (brackets.inObject()) at = nameAt(at);
    if (at == nullptr) return false;
  }
}

}  // namespace json
}  // namespace base

#endif  // SPRITES_BASE_JSON_GRAMMAR_H_
