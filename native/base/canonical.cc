// Canonical JSON in one pass: each part is copied to the output as it is read. When an object with
// members out of order closes, its members are sorted in the output.
//
//   {"b":1,"a":2}      out   {"b":1,"a":2      members_  [ "b" at 1 ][ "a" at 7 ]
//               ^ here       {"a":2,"b":1
//
// A decimal of at most 15 significant digits is the shortest form of its double, which is what
// JavaScript writes. So it is canonical, except for zeros at the end of a fraction. Other numbers
// are read and written as doubles, which takes longer.
//
// Left to JavaScript, because these are rare and would need a table or more room here:
// - numbers that no double holds, and those whose JavaScript form is longer ("1e9").
// - numeric escapes of ASCII ("\u0041"), and of half a surrogate pair.
// - names with an escape, or above U+DFFF: their bytes are not in the order of their code units.
// - an object with the same name twice: the last member counts.
#include "canonical.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "json_grammar.h"

namespace base {
namespace {

/** Most significant digits with which a decimal is always the shortest form of its double. */
constexpr ptrdiff_t kSafeDigits = 15;

/** Most zeros after the point: JavaScript writes 0.000001, but 1e-7. */
constexpr ptrdiff_t kMaxZeros = 5;

/** Most digits of an integer that JavaScript writes without an exponent. */
constexpr int kMaxDigits = 21;

/** The smallest first byte of characters above U+DFFF. */
constexpr unsigned char kAboveSurrogates = 0xee;

/**
 * Writes a finite number as JavaScript does (ECMA-262, Number::toString), without its sign.
 *
 * @return the end of the text; `out` has room for kMaxDigits and 6 more
 */
char* writeMagnitude(double value, char* out) {
  // "d.ddde-xx", or "de-xx": the shortest digits of the double.
  std::array<char, 32> shortest;
  char* const begin = shortest.data();
  const char* const end =
      std::to_chars(begin, begin + shortest.size(), value, std::chars_format::scientific).ptr;
  const char* const exponentMark = std::find<const char*>(begin, end, 'e');
  const bool hasFraction = begin[1] == '.';
  if (hasFraction) begin[1] = begin[0];
  const char* const digits = hasFraction ? begin + 1 : begin;
  const auto count = static_cast<int>(exponentMark - digits);
  int exponent = 0;
  std::from_chars(exponentMark[1] == '+' ? exponentMark + 2 : exponentMark + 1, end, exponent);
  const int point = exponent + 1;  // digits before the point
  const auto putDigits = [&](int from, int to) {
    out = std::copy(digits + from, digits + to, out);
  };
  const auto putZeros = [&](int zeroCount) { out = std::fill_n(out, zeroCount, '0'); };
  if (point >= count && point <= kMaxDigits) {
    putDigits(0, count);
    putZeros(point - count);
  } else if (point > 0 && point <= kMaxDigits) {
    putDigits(0, point);
    *out++ = '.';
    putDigits(point, count);
  } else if (point <= 0 && -point <= kMaxZeros) {
    *out++ = '0';
    *out++ = '.';
    putZeros(-point);
    putDigits(0, count);
  } else {
    putDigits(0, 1);
    if (count > 1) *out++ = '.';
    putDigits(1, count);
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    out = std::to_chars(out, out + 3, std::abs(exponent)).ptr;
  }
  return out;
}

/** Writes the parts of a text. */
class CanonicalParts {
 public:
  explicit CanonicalParts(char* out) : begin_(out), out_(out) {}

  size_t written() const { return static_cast<size_t>(out_ - begin_); }

  void open(bool object) {
    put(object ? '{' : '[');
    objects_[++depth_] = {members_.size(), true};
  }

  bool close(bool object) {
    if (object && !sortMembers()) return false;
    --depth_;
    put(object ? '}' : ']');
    return true;
  }

  void comma() { put(','); }
  void colon() { put(':'); }

  const char* name(const char* at, const char* end) {
    const uint32_t begin = offset();
    put('"');
    const char* behind = copyPlain(at, end);
    const bool isPlain = behind != end && *behind == '"';
    behind = copyRestOfString(behind, end);
    if (behind == nullptr) return nullptr;
    const std::string_view text = nameOf(begin_, {begin, offset()});
    if (!isPlain && !std::all_of(text.begin(), text.end(), sortsLikeUtf16)) return nullptr;
    Object& object = objects_[depth_];
    if (members_.size() > object.firstMember) {
      Member& last = members_.back();
      last.end = begin - 1;
      if (nameOf(begin_, last) >= text) object.isInOrder = false;
    }
    members_.emplace_back(begin, offset());
    return behind;
  }

  const char* scalar(const char* at, const char* end) {
    const char c = *at;
    if (c == '"') return copyString(at + 1, end);
    if (c == '-' || json::isDigit(c)) return writeNumber(at, end);
    const char* const behind = c == 't'   ? json::skipLiteral(at, end, "true")
                               : c == 'f' ? json::skipLiteral(at, end, "false")
                               : c == 'n' ? json::skipLiteral(at, end, "null")
                                          : nullptr;
    if (behind != nullptr) copy(at, behind);
    return behind;
  }

 private:
  /** A member of an open object: offsets of its parts in the output. */
  struct Member {
    Member(uint32_t from, uint32_t behindName) : begin(from), nameEnd(behindName) {}
    uint32_t begin, nameEnd;
    uint32_t end = 0;
  };

  /** An open object. An array has an entry too, unused. */
  struct Object {
    size_t firstMember;  // index of its first member
    bool isInOrder;
  };

  /** Whether a byte of a name sorts like UTF-16's code units. */
  static bool sortsLikeUtf16(char c) {
    return c != '\\' && static_cast<unsigned char>(c) < kAboveSurrogates;
  }

  /** Returns a member's name without its quotes; `text` begins at the offset `from`. */
  static std::string_view nameOf(const char* text, const Member& member, uint32_t from = 0) {
    return {text + (member.begin - from) + 1, member.nameEnd - member.begin - 2};
  }

  uint32_t offset() const { return static_cast<uint32_t>(out_ - begin_); }
  void put(char c) { *out_++ = c; }
  void copy(const char* from, const char* to) {
    const auto length = static_cast<size_t>(to - from);
    memcpy(out_, from, length);
    out_ += length;
  }

  /** Copies plain bytes while it checks them: a tenth faster for a text. */
  const char* copyPlain(const char* at, const char* end) {
    if constexpr (std::endian::native == std::endian::little) {
      // The text is at least as long as its output, so there is room for a word.
      while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        memcpy(out_, &word, sizeof word);
        const uint64_t other = json::notPlainMask(word);
        const int plainBytes = other == 0 ? 8 : std::countr_zero(other) >> 3;
        at += plainBytes;
        out_ += plainBytes;
        if (other != 0) return at;
      }
    }
    const char* const to = json::skipPlain(at, end);
    copy(at, to);
    return to;
  }

  /** Copies a string after its opening quote. */
  const char* copyString(const char* at, const char* end) {
    put('"');
    return copyRestOfString(copyPlain(at, end), end);
  }

  /** Copies the rest of a string from its first byte that is not plain. */
  const char* copyRestOfString(const char* at, const char* end) {
    for (;;) {
      if (at == end) return nullptr;
      if (*at == '"') {
        put('"');
        return at + 1;
      }
      const char* to;
      if (*at == '\\') {
        to = writeEscape(at + 1, end);
      } else {
        to = static_cast<unsigned char>(*at) >= 0x80 ? json::skipUtf8(at, end) : nullptr;
        if (to != nullptr) copy(at, to);
      }
      if (to == nullptr) return nullptr;
      at = copyPlain(to, end);
    }
  }

  /** Writes an escape, from after its backslash, as JavaScript writes it. */
  const char* writeEscape(const char* at, const char* end) {
    const char* const behind = json::skipEscape(at, end);
    if (behind == nullptr) return nullptr;
    if (*at == 'u') return writeCharacter(at + 1, behind, end);
    if (*at != '/') put('\\');
    put(*at);
    return behind;
  }

  static unsigned codeUnit(const char* digits) {
    unsigned unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = digits[i];
      unit = unit << 4 | static_cast<unsigned>(json::isDigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return unit;
  }

  /** Writes a character given by its code units, the first one in `digits`. */
  const char* writeCharacter(const char* digits, const char* behind, const char* end) {
    const unsigned unit = codeUnit(digits);
    if (unit < 0x80) return nullptr;
    if (unit < 0x800) {
      put(static_cast<char>(0xc0 | unit >> 6));
    } else if (unit < 0xd800 || unit > 0xdfff) {
      put(static_cast<char>(0xe0 | unit >> 12));
      put(static_cast<char>(0x80 | (unit >> 6 & 0x3f)));
    } else {
      const bool pair = unit < 0xdc00 && end - behind >= 6 && behind[0] == '\\' &&
                        behind[1] == 'u' && json::skipEscape(behind + 1, end) != nullptr;
      const unsigned low = pair ? codeUnit(behind + 2) : 0;
      if (low < 0xdc00 || low > 0xdfff) return nullptr;
      const unsigned point = 0x10000 + ((unit & 0x3ff) << 10 | (low & 0x3ff));
      put(static_cast<char>(0xf0 | point >> 18));
      put(static_cast<char>(0x80 | (point >> 12 & 0x3f)));
      put(static_cast<char>(0x80 | (point >> 6 & 0x3f)));
      put(static_cast<char>(0x80 | (point & 0x3f)));
      return behind + 6;
    }
    put(static_cast<char>(0x80 | (unit & 0x3f)));
    return behind;
  }

  /** Writes a number as JavaScript writes its double. */
  const char* writeAsDouble(const char* at, const char* behind) {
    double value;
    if (std::from_chars(at, behind, value).ec != std::errc()) return nullptr;
    std::array<char, kMaxDigits + 7> text;
    char* last = text.data();
    if (value < 0) *last++ = '-';
    last = writeMagnitude(std::abs(value), last);
    if (last - text.data() > behind - at) return nullptr;
    copy(text.data(), last);
    return behind;
  }

  /**
   * Copies a number that is canonical except for zeros at the end of a fraction; passes other
   * numbers to writeAsDouble.
   */
  const char* writeNumber(const char* at, const char* end) {
    const char* const behind = json::skipNumber(at, end);
    if (behind == nullptr) return nullptr;
    const char* const whole = *at == '-' ? at + 1 : at;
    const char* const point = json::skipDigits(whole, behind);
    const char* last = behind;
    if (point != behind) {
      if (*point != '.' || json::skipDigits(point + 1, behind) != behind) {
        return writeAsDouble(at, behind);
      }
      while (last[-1] == '0') --last;
      if (last - 1 == point) last = point;
    }
    if (last == point) {
      if (point - whole > kSafeDigits) return writeAsDouble(at, behind);
      if (*whole == '0') at = whole;  // -0 becomes 0
    } else {
      // Leading zeros, as in 0.001, are not significant.
      const char* first = whole;
      if (*first == '0') {
        first = point + 1;
        while (*first == '0') ++first;
        if (first - point - 1 > kMaxZeros) return writeAsDouble(at, behind);
      }
      const ptrdiff_t digits = last - first - (first < point ? 1 : 0);
      if (digits > kSafeDigits) return writeAsDouble(at, behind);
    }
    copy(at, last);
    return behind;
  }

  /** Sorts the members of a closing object. Returns false when two have the same name. */
  bool sortMembers() {
    const Object& object = objects_[depth_];
    const auto first = members_.begin() + static_cast<ptrdiff_t>(object.firstMember);
    if (!object.isInOrder) {
      members_.back().end = offset();
      const uint32_t from = first->begin;
      unsorted_.assign(begin_ + from, out_);
      const auto name = [this, from](const Member& member) {
        return nameOf(unsorted_.data(), member, from);
      };
      std::sort(first, members_.end(),
                [&name](const Member& a, const Member& b) { return name(a) < name(b); });
      out_ = begin_ + from;
      for (auto one = first; one != members_.end(); ++one) {
        if (one != first) {
          if (name(one[-1]) == name(*one)) return false;
          put(',');
        }
        copy(&unsorted_[one->begin - from], unsorted_.data() + (one->end - from));
      }
    }
    members_.erase(first, members_.end());
    return true;
  }

  char* const begin_;
  char* out_;
  unsigned depth_ = 0;
  std::array<Object, kMaxJsonDepth + 1> objects_ = {};  // by depth; 0: unused
  std::vector<Member> members_;                         // of all open objects
  std::string unsorted_;  // copy of an object whose members are being sorted
};

}  // namespace

size_t canonical(const char* text, size_t length, unsigned depth, char* out) {
  const char* const end = text + length;
  CanonicalParts parts(out);
  return json::readJson(text, end, depth, parts) ? parts.written() : 0;
}

}  // namespace base
