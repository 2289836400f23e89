// The JSON check: one pass over the bytes, one word of memory (json_grammar.h).
//
// Cost: most bytes of a sprite are in strings, which are skipped eight at a time by arithmetic on
// one word. A 200-byte sprite takes some 200 ns (make -C test/native bench).
//
// Rejected: simdjson and similar readers (they build an index of the text first, which takes longer
// than the check of a sprite), a parser that builds values (nothing reads them here: the bytes are
// relayed unchanged), and passing the text to V8 (a throw enters no JavaScript).
#include "json_reader.h"

#include "json_grammar.h"

namespace base {
namespace {

/** Skips the parts of a text. */
struct SkippedParts {
  static void open(bool) {}
  static bool close(bool) { return true; }
  static void comma() {}
  static void colon() {}
  static const char* name(const char* at, const char* end) { return json::skipString(at, end); }
  static const char* scalar(const char* at, const char* end) {
    switch (*at) {
      case '"':
        return json::skipString(at + 1, end);
      case 't':
        return json::skipLiteral(at, end, "true");
      case 'f':
        return json::skipLiteral(at, end, "false");
      case 'n':
        return json::skipLiteral(at, end, "null");
      default:
        return *at == '-' || json::isDigit(*at) ? json::skipNumber(at, end) : nullptr;
    }
  }
};

}  // namespace

bool isJsonObject(const char* text, size_t length, unsigned depth) {
  const char* const end = text + length;
  const char* const at = json::skipSpace(text, end);
  SkippedParts parts;
  return at != end && *at == '{' && json::readJson(at, end, depth, parts);
}

}  // namespace base
