#include "json.h"

#include <cmath>
#include <limits>
#include <locale>
#include <sstream>

namespace sprites::json {

namespace {

constexpr size_t kMalformed = std::string_view::npos;

size_t skipSpace(std::string_view text, size_t at) {
  while (at < text.size() &&
         (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')) {
    at++;
  }
  return at;
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }

int hexDigit(char c) {
  if (isDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/** Returns the end of the string that opens at `at`, or kMalformed. */
size_t scanString(std::string_view text, size_t at) {
  if (at >= text.size() || text[at] != '"') return kMalformed;
  for (at++; at < text.size(); at++) {
    const char c = text[at];
    if (c == '"') return at + 1;
    if (static_cast<unsigned char>(c) < 0x20) return kMalformed;
    if (c != '\\') continue;
    if (++at >= text.size()) return kMalformed;
    if (text[at] == 'u') {
      for (int i = 0; i < 4; i++) {
        if (++at >= text.size() || hexDigit(text[at]) < 0) return kMalformed;
      }
    } else if (std::string_view("\"\\/bfnrt").find(text[at]) == std::string_view::npos) {
      return kMalformed;
    }
  }
  return kMalformed;
}

size_t scanDigits(std::string_view text, size_t at) {
  const size_t from = at;
  while (at < text.size() && isDigit(text[at])) at++;
  return at == from ? kMalformed : at;
}

size_t scanNumber(std::string_view text, size_t at) {
  if (at < text.size() && text[at] == '-') at++;
  if (at < text.size() && text[at] == '0') {
    at++;
  } else {
    at = scanDigits(text, at);
    if (at == kMalformed) return kMalformed;
  }
  if (at < text.size() && text[at] == '.') {
    at = scanDigits(text, at + 1);
    if (at == kMalformed) return kMalformed;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    at++;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) at++;
    at = scanDigits(text, at);
  }
  return at;
}

size_t scanWord(std::string_view text, size_t at, std::string_view word) {
  return text.substr(at, word.size()) == word ? at + word.size() : kMalformed;
}

/** Returns the end of the value that begins at `at` (no white space before it), or kMalformed. */
size_t scanValue(std::string_view text, size_t at, unsigned depth) {
  if (at >= text.size()) return kMalformed;
  switch (text[at]) {
    case '"':
      return scanString(text, at);
    case 't':
      return scanWord(text, at, "true");
    case 'f':
      return scanWord(text, at, "false");
    case 'n':
      return scanWord(text, at, "null");
    case '{':
    case '[':
      break;
    default:
      return scanNumber(text, at);
  }
  if (depth >= kMaxDepth) return kMalformed;
  const bool object = text[at] == '{';
  const char close = object ? '}' : ']';
  at = skipSpace(text, at + 1);
  if (at < text.size() && text[at] == close) return at + 1;
  for (;;) {
    if (object) {
      at = scanString(text, at);
      if (at == kMalformed) return kMalformed;
      at = skipSpace(text, at);
      if (at >= text.size() || text[at] != ':') return kMalformed;
      at = skipSpace(text, at + 1);
    }
    at = scanValue(text, at, depth + 1);
    if (at == kMalformed) return kMalformed;
    at = skipSpace(text, at);
    if (at >= text.size()) return kMalformed;
    if (text[at] == close) return at + 1;
    if (text[at] != ',') return kMalformed;
    at = skipSpace(text, at + 1);
  }
}

void appendUtf8(std::string* out, uint32_t point) {
  constexpr uint32_t kLeads[] = {0, 0xC0, 0xE0, 0xF0};
  const unsigned continuations = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  out->push_back(static_cast<char>(kLeads[continuations] | (point >> (6 * continuations))));
  for (unsigned remaining = continuations; remaining-- > 0;) {
    out->push_back(static_cast<char>(0x80 | ((point >> (6 * remaining)) & 0x3F)));
  }
}

/** Returns the number in the four hex digits at `at`, which scanString has checked. */
uint32_t hexUnit(std::string_view text, size_t at) {
  uint32_t unit = 0;
  for (size_t i = 0; i < 4; i++) {
    unit = (unit << 4) | static_cast<uint32_t>(hexDigit(text[at + i]));
  }
  return unit;
}

}  // namespace

bool isUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      at++;
      continue;
    }
    size_t continuations = 0;
    uint32_t leastPoint = 0;
    uint32_t point = 0;
    if (lead >= 0xC2 && lead <= 0xDF) {
      continuations = 1, leastPoint = 0x80, point = lead & 0x1FU;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      continuations = 2, leastPoint = 0x800, point = lead & 0x0FU;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      continuations = 3, leastPoint = 0x10000, point = lead & 0x07U;
    } else {
      return false;
    }
    if (text.size() - at <= continuations) return false;
    for (size_t i = 1; i <= continuations; i++) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      if ((next & 0xC0) != 0x80) return false;
      point = (point << 6) | (next & 0x3FU);
    }
    if (point < leastPoint || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
      return false;
    at += continuations + 1;
  }
  return true;
}

std::optional<std::string_view> value(std::string_view text, unsigned depth) {
  const size_t from = skipSpace(text, 0);
  const size_t to = scanValue(text, from, kMaxDepth - depth);
  if (to == kMalformed || skipSpace(text, to) != text.size()) return std::nullopt;
  return text.substr(from, to - from);
}

Items::Items(std::string_view text, char open, char close)
    : text_(text), offset_(skipSpace(text, 0)), close_(close) {
  if (offset_ >= text_.size() || text_[offset_] != open) {
    stop(false);
  } else {
    offset_++;
  }
}

bool Items::stop(bool ok) {
  ok_ = ok;
  hasEnded_ = true;
  return false;
}

bool Items::step() {
  if (hasEnded_) return false;
  offset_ = skipSpace(text_, offset_);
  if (offset_ < text_.size() && text_[offset_] == close_) return stop(true);
  if (!first_) {
    if (offset_ >= text_.size() || text_[offset_] != ',') return stop(false);
    offset_ = skipSpace(text_, offset_ + 1);
  }
  first_ = false;
  return true;
}

bool Items::readValue(std::string_view* value) {
  const size_t end = scanValue(text_, offset_, 0);
  if (end == kMalformed) return stop(false);
  *value = text_.substr(offset_, end - offset_);
  offset_ = end;
  return true;
}

Members::Members(std::string_view object) : Items(object, '{', '}') {}

bool Members::next(std::string_view* name, std::string_view* value) {
  if (!step()) return false;
  const size_t nameEnd = scanString(text_, offset_);
  if (nameEnd == kMalformed) return stop(false);
  *name = text_.substr(offset_ + 1, nameEnd - offset_ - 2);
  offset_ = skipSpace(text_, nameEnd);
  if (offset_ >= text_.size() || text_[offset_] != ':') return stop(false);
  offset_ = skipSpace(text_, offset_ + 1);
  return readValue(value);
}

Elements::Elements(std::string_view array) : Items(array, '[', ']') {}

bool Elements::next(std::string_view* value) { return step() && readValue(value); }

std::string_view raw(std::string_view slice) {
  if (slice.size() < 2 || slice.front() != '"') return {};
  return slice.substr(1, slice.size() - 2);
}

bool members(std::string_view object, const MemberVisitor& visit) {
  Members walk(object);
  std::string_view rawName;
  std::string_view value;
  while (walk.next(&rawName, &value)) {
    const bool plain = rawName.find('\\') == std::string_view::npos;
    // string() needs the quotes, which are around `rawName` in the text.
    const std::string name =
        plain ? std::string(rawName)
              : string(std::string_view(rawName.data() - 1, rawName.size() + 2)).value_or("");
    if (!visit(name, value)) return false;
  }
  return walk.ok();
}

bool elements(std::string_view array, const ElementVisitor& visit) {
  Elements walk(array);
  std::string_view value;
  while (walk.next(&value)) {
    if (!visit(value)) return false;
  }
  return walk.ok();
}

std::optional<std::string> string(std::string_view slice) {
  if (slice.size() < 2 || scanString(slice, 0) != slice.size()) return std::nullopt;
  std::string out;
  out.reserve(slice.size() - 2);
  for (size_t at = 1; at + 1 < slice.size(); at++) {
    if (slice[at] != '\\') {
      out.push_back(slice[at]);
      continue;
    }
    const size_t shortEscape = std::string_view("bfnrt").find(slice[++at]);
    if (slice[at] == 'u') {
      uint32_t point = hexUnit(slice, at + 1);
      at += 4;
      if (point >= 0xD800 && point <= 0xDBFF && slice.substr(at + 1, 2) == "\\u") {
        const uint32_t low = hexUnit(slice, at + 3);
        if (low >= 0xDC00 && low <= 0xDFFF) {
          point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
          at += 6;
        }
      }
      if (point >= 0xD800 && point <= 0xDFFF) point = 0xFFFD;
      appendUtf8(&out, point);
    } else {
      out.push_back(shortEscape == std::string_view::npos ? slice[at] : "\b\f\n\r\t"[shortEscape]);
    }
  }
  return out;
}

// Reads by a stream, because strtod() follows the program's locale, and from_chars for doubles is
// missing from libraries in use.
std::optional<double> number(std::string_view slice) {
  if (slice.empty() || scanNumber(slice, 0) != slice.size()) return std::nullopt;
  std::istringstream text{std::string(slice)};
  text.imbue(std::locale::classic());
  double result = 0;
  text >> result;
  // A number that is too large reads as the largest double, one that is too small as zero.
  if (std::abs(result) >= std::numeric_limits<double>::max()) return std::nullopt;
  return result;
}

std::optional<uint64_t> count(std::string_view slice) {
  constexpr uint64_t kMax = (uint64_t{1} << 53) - 1;
  if (slice.empty() || slice.size() > 16) return std::nullopt;
  if (slice.size() > 1 && slice[0] == '0') return std::nullopt;
  uint64_t result = 0;
  for (const char c : slice) {
    if (!isDigit(c)) return std::nullopt;
    result = result * 10 + static_cast<uint64_t>(c - '0');
  }
  if (result > kMax) return std::nullopt;
  return result;
}

std::string quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace sprites::json
