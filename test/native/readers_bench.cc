// Measures the strict readers: nanoseconds for real heads of the corpus, and for a sprite, as the
// server calls them. The result of a run is its fastest round: the cost of the code when the
// machine does nothing else.
#include <algorithm>
#include <chrono>
#include <string>

#include "base/json_reader.h"
#include "fuzz.h"
#include "http/http_reader.h"
#include "sprite_text.h"

namespace {

constexpr int kRounds = 400;
constexpr int kCalls = 1000;

template <typename Call>
double nanoseconds(Call call) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

void report(const std::string& name, size_t bytes, double took) {
  printf("%-44s %5zu bytes %6.0f ns %6.2f ns/byte\n", name.c_str(), bytes, took,
         took / static_cast<double>(bytes));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s SEEDS\n", argv[0]);
    return 2;
  }
  const auto heads = server::test::readSeeds(argv[1], "http");
  volatile unsigned sink = 0;  // keeps the compiler from dropping calls
  for (const std::string name :
       {"libcurl-poll", "curl-poll", "curl-throw", "python-http-client-throw", "undici-fetch-throw",
        "firefox-fetch-poll", "chromium-same-origin-poll", "chromium-same-origin-throw"}) {
    const std::string& head = heads.at(name);
    server::HotRequest request;
    if (server::readHead(head.data(), head.size(), &request) != server::Verdict::kHot) return 1;
    report("head: " + name, request.headLength, nanoseconds([&] {
             server::readHead(head.data(), head.size(), &request);
             sink = request.headLength;
           }));
  }
  if (!base::isJsonObject(kSprite.data(), kSprite.size())) return 1;
  report("sprite", kSprite.size(),
         nanoseconds([&] { sink = base::isJsonObject(kSprite.data(), kSprite.size()); }));
  return 0;
}
