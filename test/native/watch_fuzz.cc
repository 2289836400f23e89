// Fuzzes the readers of POST /feeds and of the list of GET /feeds under the sanitizers, from copies
// of exactly their length. What must hold of one that is taken: between one feed and as many as one
// poll may ask for, each a key that is there once, each cursor one or empty, and all of them within
// its text.
#include <functional>
#include <set>
#include <string_view>

#include "fuzz.h"
#include "http/watch_reader.h"

using server::WatchRequest;
using server::test::ExactCopy;
using server::test::fail;

namespace {

constexpr uint64_t kCount = 300000;

using Read = bool(std::string_view, WatchRequest*);

bool check(const std::string& input, Read* read) {
  const ExactCopy copy(input);
  WatchRequest watch;
  if (!read({copy.data(), copy.length()}, &watch)) return false;
  if (watch.count == 0 || watch.count > server::kFeedsAtOnce) fail("a wrong count", input);
  const auto within = [&](std::string_view text) {
    const std::less_equal<const char*> notBehind;
    return notBehind(copy.data(), text.data()) &&
           notBehind(text.data() + text.size(), copy.data() + copy.length());
  };
  std::set<std::string_view> keys;
  for (uint32_t i = 0; i < watch.count; ++i) {
    const auto& [key, after, problem] = watch.wanted[i];
    if (problem != server::Outcome::kOk) fail("a problem that is not found before", input);
    if (!within(key) || !within(after)) fail("a text of somewhere else", input);
    if (!server::isFeedKey(key)) fail("a key that is none", input);
    if (!after.empty() && !server::isCursor(after)) fail("a cursor that is none", input);
    if (!keys.insert(key).second) fail("a key twice", input);
  }
  return true;
}

bool check(const std::string& input) {
  const bool isList = check(input, server::readWatchList);
  return check(input, server::readWatch) || isList;
}

const std::vector<std::string> kWords = {
    "{",
    "}",
    ":",
    ",",
    "\"",
    "\\",
    " ",
    "\n",
    "\"hold\":",
    "\"delta\":true",
    "\"feeds\":{",
    "\"a\":\"\"",
    ",\"b/c\":\"e1-2\"",
    "a:e1-2,b/c:",
    "/..",
    "//",
    "true",
    "false",
    "null",
    "[]",
    "0",
    "4294967294",
    "4294967295",
    "-1",
    "1e1",
    "\\u0061",
    std::string(1, '\0'),
    "\xff",
    std::string(201, 'k'),
    std::string(41, 'c'),
};

}  // namespace

int main(int argc, char** argv) {
  const auto options = server::test::optionsOf(argc, argv, kCount);
  const auto seeds = server::test::readTexts(options.seeds, "watch");
  for (const auto& seed : seeds) {
    if (!check(seed)) fail("a plain body handed over", seed);
    // Whatever is left of it when the rest is missing.
    for (size_t length = 0; length < seed.size(); ++length) check(seed.substr(0, length));
  }
  server::test::Random random(options.seed);
  uint64_t taken = 0;
  for (uint64_t i = 0; i < options.count; ++i) {
    if (check(server::test::mutate(random, random.pick(seeds), seeds, kWords))) ++taken;
  }
  printf("watch: %llu bodies, %llu of them taken\n", static_cast<unsigned long long>(options.count),
         static_cast<unsigned long long>(taken));
  if (options.count >= 1000 && taken < options.count / 50) fail("too little that is taken", "");
  return 0;
}
