// Fuzzes the readers of JSON under the sanitizers, from copies of exactly their length: the check
// of a sprite, the canonical writer, and the readers of POST /feeds and of the list of GET /feeds.
// That what they read is what JavaScript reads, test/fuzz asks (json.js, watch.js).
#include <memory>

#include "base/canonical.h"
#include "base/json_reader.h"
#include "fuzz.h"
#include "http/watch_reader.h"

using server::test::ExactCopy;
using server::test::fail;
using server::test::Random;

namespace {

constexpr uint64_t kCount = 300000;

/** A text about as deep as a sprite may be. */
std::string nest(Random& random) {
  std::string text = "1";
  for (size_t depth = 28 + random.below(6); depth > 0; --depth) {
    const bool object = random.oneIn(2);
    text.insert(0, object ? "{\"b\":" : "[").append(object ? "}" : "]");
  }
  return "{\"a\":" + text + "}";
}

bool readJson(const std::string& input, Random& random) {
  const ExactCopy copy(input);
  const unsigned depth = random.oneIn(2) ? base::kSpriteDepth : 1 + random.below(64);
  // It is written into room for exactly as many bytes.
  const std::unique_ptr<char[]> out(new char[input.size()]);
  base::canonical(copy.data(), copy.length(), depth, out.get());
  return base::isJsonObject(copy.data(), copy.length(), depth);
}

bool readWatch(const std::string& input, Random&) {
  const ExactCopy copy(input);
  bool isTaken = false;
  for (const auto read : {server::readWatchList, server::readWatch}) {
    server::WatchRequest watch;
    if (!read({copy.data(), copy.length()}, &watch)) continue;
    isTaken = true;
    // Each of their bytes is looked at.
    for (uint32_t i = 0; i < watch.count; ++i) {
      const auto& [key, after, problem] = watch.wanted[i];
      if (!server::isFeedKey(key)) fail("a key that is none", input);
      if (!after.empty() && !server::isCursor(after)) fail("a cursor that is none", input);
    }
  }
  return isTaken;
}

const std::vector<std::string> kWords = {
    "{", "}", "[", "]", ",", ":", "\"", "\\", " ", "\n", " \t\r\n",
    // Of any text.
    "{\"a\":", "[[[[", "]]]]", "true", "false", "null", "[]", "0", "-1.5e+3", "01", ".5", "1.",
    "1e", "\\u00e9", "\\ud800", "\\u12", "\\\"", "\\x", "01234567", ",\"b\":[{}]",
    // Of requests for feeds.
    "\"hold\":", "\"delta\":true", "\"feeds\":{", "\"a\":\"\"", ",\"b/c\":\"e1-2\"",
    "a:e1-2,b/c:", "/..", "//", "4294967294", "4294967295", "-1", "1e1", "\\u0061",
    std::string(201, 'k'), std::string(41, 'c'),
    // Bytes that are no UTF-8, or seldom.
    "\xef\xbb\xbf", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8e\x88", "\xc0\xaf", "\xed\xa0\x80",
    "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\xff", std::string(1, '\0'), "\x1f", "\x7f"};

/** What is read by one of them. */
struct Kind {
  const char* name;
  bool (*read)(const std::string& input, Random& random);
  std::string (*grow)(Random& random);  // nullptr: there are the seeds alone
  uint64_t share;                       // of so many one at least is taken
};

constexpr Kind kKinds[] = {{"json", readJson, nest, 20}, {"watch", readWatch, nullptr, 50}};

void fuzz(const Kind& kind, const server::test::Options& options) {
  const auto seeds = server::test::readTexts(options.seeds, kind.name);
  Random random(options.seed);
  for (const auto& seed : seeds) {
    // Whatever is left of it when the rest is missing.
    for (size_t length = 0; length <= seed.size(); ++length) {
      kind.read(seed.substr(0, length), random);
    }
  }
  uint64_t taken = 0;
  for (uint64_t i = 0; i < options.count; ++i) {
    const bool grows = kind.grow != nullptr && random.oneIn(8);
    std::string input = grows ? kind.grow(random) : random.pick(seeds);
    if (!random.oneIn(8)) input = server::test::mutate(random, input, seeds, kWords);
    taken += kind.read(input, random) ? 1 : 0;
  }
  printf("%s: %llu texts, %llu of them taken\n", kind.name,
         static_cast<unsigned long long>(options.count), static_cast<unsigned long long>(taken));
  if (options.count >= 1000 && taken < options.count / kind.share) fail("too little taken", "");
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = server::test::optionsOf(argc, argv, kCount);
  for (const Kind& kind : kKinds) fuzz(kind, options);
  return 0;
}
