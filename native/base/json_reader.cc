// The JSON check: one pass over the bytes, one word of memory (json_grammar.h).
//
// Costs: most bytes of a sprite lie in strings, and those are skipped eight at a time by
// arithmetic on one word. A 200-byte sprite takes some 200 ns (make -C test/native bench).
//
// Rejected: simdjson and its like (an index of the text is built before it is checked; a sprite is
// shorter than the set-up), a parser that builds values (they are not read here: the bytes are
// relayed as they came), and handing the text to V8 (a throw enters no JavaScript).
#include "json_reader.h"

#include "json_grammar.h"

namespace base {
namespace {

/** Takes the parts of a text by skipping them. */
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
