// Fuzzes the JSON check under the sanitizers, without Node, against a second check written as the
// grammar is: by recursion, a byte at a time; and the canonical writer, against the check and
// itself (test/fuzz/canonical.js asks JavaScript). Texts are given as copies of exactly their
// length.
#include <memory>

#include "base/canonical.h"
#include "base/json_reader.h"
#include "fuzz.h"

namespace {

constexpr uint64_t kCount = 300000;

/** RFC 8259 and RFC 3629 as they are printed. Slow, and deep where the text is. */
class Grammar {
 public:
  Grammar(const std::string& text, unsigned depth) : text_(text), depth_(depth) {}

  bool text() {
    space();
    if (peek() != '{' || !value(1)) return false;
    space();
    return at_ == text_.size();
  }

 private:
  static constexpr int kEnd = -1;

  int peek() const { return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : kEnd; }
  bool take(int c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool takeRange(int low, int high) {
    if (peek() < low || peek() > high) return false;
    ++at_;
    return true;
  }
  bool take(const char* word) {
    while (*word != '\0') {
      if (!take(*word++)) return false;
    }
    return true;
  }
  void space() {
    while (take(' ') || take('\t') || take('\n') || take('\r')) {
    }
  }
  bool digits() {
    if (!takeRange('0', '9')) return false;
    while (takeRange('0', '9')) {
    }
    return true;
  }

  bool value(unsigned level) {
    switch (peek()) {
      case '{':
        return level <= depth_ && object(level);
      case '[':
        return level <= depth_ && array(level);
      case '"':
        return string();
      case 't':
        return take("true");
      case 'f':
        return take("false");
      case 'n':
        return take("null");
      default:
        return number();
    }
  }
  bool object(unsigned level) {
    ++at_;
    space();
    if (take('}')) return true;
    do {
      space();
      if (!string()) return false;
      space();
      if (!take(':')) return false;
      space();
      if (!value(level + 1)) return false;
      space();
    } while (take(','));
    return take('}');
  }
  bool array(unsigned level) {
    ++at_;
    space();
    if (take(']')) return true;
    do {
      space();
      if (!value(level + 1)) return false;
      space();
    } while (take(','));
    return take(']');
  }
  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }
  bool string() {
    if (!take('"')) return false;
    while (!take('"')) {
      if (!character()) return false;
    }
    return true;
  }
  bool character() {
    if (take('\\')) {
      if (!take('u')) {
        for (const char c : {'"', '\\', '/', 'b', 'f', 'n', 'r', 't'}) {
          if (take(c)) return true;
        }
        return false;
      }
      for (int i = 0; i < 4; ++i) {
        if (!takeRange('0', '9') && !takeRange('a', 'f') && !takeRange('A', 'F')) return false;
      }
      return true;
    }
    const auto tail = [&] { return takeRange(0x80, 0xbf); };
    if (takeRange(0x20, 0x7f)) return true;
    if (takeRange(0xc2, 0xdf)) return tail();
    if (take(0xe0)) return takeRange(0xa0, 0xbf) && tail();
    if (takeRange(0xe1, 0xec)) return tail() && tail();
    if (take(0xed)) return takeRange(0x80, 0x9f) && tail();
    if (takeRange(0xee, 0xef)) return tail() && tail();
    if (take(0xf0)) return takeRange(0x90, 0xbf) && tail() && tail();
    if (takeRange(0xf1, 0xf3)) return tail() && tail() && tail();
    if (take(0xf4)) return takeRange(0x80, 0x8f) && tail() && tail();
    return false;
  }

  const std::string& text_;
  const unsigned depth_;
  size_t at_ = 0;
};

/** What is written canonically, into room for exactly as many bytes; empty: JavaScript is asked. */
std::string canonicalOf(const std::string& input, unsigned depth) {
  const server::test::ExactCopy copy(input);
  const std::unique_ptr<char[]> out(new char[input.size()]);
  return {out.get(), base::canonical(copy.data(), copy.length(), depth, out.get())};
}

bool check(const std::string& input, unsigned depth) {
  const server::test::ExactCopy copy(input);
  const bool said = base::isJsonObject(copy.data(), copy.length(), depth);
  if (said != Grammar(input, depth).text()) {
    server::test::fail(said ? "a text taken that is none" : "a text refused", input);
  }
  const std::string text = canonicalOf(input, depth);
  const bool object = text.starts_with('{');
  if (object && (!said || canonicalOf(text, depth) != text)) {
    server::test::fail("a canonical form of another text", input);
  }
  return said;
}

const std::vector<std::string> kWords = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "{\"a\":",
    "[[[[",
    "]]]]",
    "true",
    "false",
    "null",
    "0",
    "-1.5e+3",
    "01",
    ".5",
    "1.",
    "1e",
    " \t\r\n",
    "\\u00e9",
    "\\ud800",
    "\\u12",
    "\\\"",
    "\\x",
    "\xef\xbb\xbf",
    "\xc3\xa9",
    "\xe2\x82\xac",
    "\xf0\x9f\x8e\x88",
    "\xc0\xaf",
    "\xed\xa0\x80",
    "\xf4\x90\x80\x80",
    "\xe2\x82",
    "\x80",
    std::string(1, '\0'),
    "\x1f",
    "\x7f",
    "01234567",
    ",\"b\":[{}]",
};

std::string nest(server::test::Random& random) {
  std::string before = "{\"a\":";
  std::string behind = "}";
  for (size_t depth = 28 + random.below(6); depth > 0; --depth) {
    const bool object = random.oneIn(2);
    before += object ? "{\"b\":" : "[";
    behind.insert(0, object ? "}" : "]");
  }
  return before + "1" + behind;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = server::test::optionsOf(argc, argv, kCount);
  const auto seeds = server::test::readTexts(options.seeds, "json");
  for (const auto& seed : seeds) {
    if (!check(seed, base::kSpriteDepth)) server::test::fail("a real sprite refused", seed);
    for (size_t length = 0; length < seed.size(); ++length) {
      check(seed.substr(0, length), base::kSpriteDepth);
    }
  }
  server::test::Random random(options.seed);
  uint64_t good = 0;
  for (uint64_t i = 0; i < options.count; ++i) {
    std::string input = random.oneIn(8) ? nest(random) : random.pick(seeds);
    if (!random.oneIn(8)) input = server::test::mutate(random, input, seeds, kWords);
    if (check(input, random.oneIn(2) ? base::kSpriteDepth : 1 + random.below(64))) ++good;
  }
  printf("json: %llu texts, %llu of them sprites\n", static_cast<unsigned long long>(options.count),
         static_cast<unsigned long long>(good));
  if (options.count >= 1000 && good < options.count / 20) {
    server::test::fail("too few good texts", "");
  }
  return 0;
}
