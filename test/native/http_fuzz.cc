// Fuzzes the readers of requests under the sanitizers, without Node. Every input is read whole and
// as each of its beginnings, from copies of exactly their length. What must hold:
//  - the verdicts on the beginnings are waits, until one verdict, which then stands;
//  - a hot request's numbers fit its bytes: the head ends with the first empty line, its spans lie
//    within it, there is a body only where one belongs.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/feed_names.h"
#include "fuzz.h"
#include "http/chunks.h"
#include "http/http_reader.h"
#include "http/request_reader.h"

using server::HotRequest;
using server::Route;
using server::Verdict;
using server::test::ExactCopy;

namespace {

constexpr uint64_t kCount = 20000;
constexpr uint64_t kNumberMax = (uint64_t{1} << 53) - 1;

Verdict read(const std::string& input, size_t length, HotRequest* request) {
  const ExactCopy copy(input.data(), length);
  return server::readHead(copy.data(), copy.length(), request);
}

void checkSpan(const std::string& input, const HotRequest& request, server::HeadSpan span) {
  if (span.length == 0) return;
  if (span.offset + span.length > request.headLength) server::test::fail("a wild span", input);
  const std::string_view value(input.data() + span.offset, span.length);
  const auto isBlank = [](char c) { return c == ' ' || c == '\t'; };
  if (isBlank(value.front()) || isBlank(value.back())) {
    server::test::fail("blanks around a span", input);
  }
  if (value.find('\r') != value.npos) server::test::fail("a span over lines", input);
}

void checkHot(const std::string& input, const HotRequest& request) {
  const size_t end = input.find("\r\n\r\n");
  if (end == input.npos || request.headLength != end + 4) {
    server::test::fail("a head that ends elsewhere", input);
  }
  if (request.headLength > server::kHotHeadBytes) server::test::fail("a long head", input);
  const bool isList = request.route == Route::kFeeds && request.key.length > 0;
  if (request.bodyLength > 0 && request.route != Route::kThrow && request.route != Route::kInput &&
      (request.route != Route::kFeeds || isList)) {
    server::test::fail("a body where none belongs", input);
  }
  if (request.ack > kNumberMax || request.number > kNumberMax) {
    server::test::fail("a number too large", input);
  }
  const bool isFeed = request.route == Route::kFeed;
  const bool isGet = isFeed || isList || request.route == Route::kPoll ||
                     request.route == Route::kPlace || request.route == Route::kStatus ||
                     request.route == Route::kFixed;
  if (input[0] != (isGet ? 'G' : 'P')) server::test::fail("another method", input);
  if ((request.route == Route::kFixed) != (request.path.length > 0)) {
    server::test::fail("a path of nothing, or none", input);
  }
  if (request.path.length > server::kPathBytes) server::test::fail("a long path", input);
  if (isFeed && !server::isFeedKey({input.data() + request.key.offset, request.key.length})) {
    server::test::fail("a key that is none", input);
  }
  const std::string_view after(input.data() + request.after.offset, request.after.length);
  if (!after.empty() && !server::isCursor(after))
    server::test::fail("a cursor that is none", input);
  checkSpan(input, request, request.path);
  checkSpan(input, request, request.forwardedFor);
  checkSpan(input, request, request.forwarded);
}

/** Reads the input as it may arrive, byte by byte; returns the verdict on the whole. */
Verdict check(const std::string& input) {
  HotRequest whole;
  const Verdict verdict = read(input, input.size(), &whole);
  if (verdict == Verdict::kHot) checkHot(input, whole);

  const size_t longest = std::min(input.size(), server::kHotHeadBytes + 2);
  for (size_t length = 0; length <= longest; ++length) {
    HotRequest part;
    const Verdict early = read(input, length, &part);
    if (early == Verdict::kIncomplete) {
      if (length >= server::kHotHeadBytes) server::test::fail("a wait without a bound", input);
      if (verdict == Verdict::kHot && length >= whole.headLength) {
        server::test::fail("a wait behind the end", input);
      }
      continue;
    }
    if (early != verdict) server::test::fail("a verdict that changed", input);
    if (early == Verdict::kHot && part != whole) {
      server::test::fail("a request that changed", input);
    }
    // From here on the verdict must stand; a few longer beginnings show it.
    length += (longest - length) / 4;
  }
  return verdict;
}

/** A chunked body in these pieces: the verdict, and what came of it. */
std::pair<server::Chunks::State, std::string> chunksOf(const std::string& text, size_t piece) {
  server::Chunks chunks;
  std::pair<server::Chunks::State, std::string> read = {server::Chunks::State::kMore, {}};
  for (size_t at = 0; at < text.size() && read.first == server::Chunks::State::kMore; at += piece) {
    const ExactCopy copy(text.data() + at, std::min(piece, text.size() - at));
    std::string_view data(copy.data(), copy.length());
    read.first = chunks.take(&data, 5000, &read.second);
  }
  return read;
}

/** The reader of every request: it takes what is hot, whatever comes first, and cuts change
 * nothing. */
void checkAny(const std::string& input, bool hot) {
  using server::Reading;
  server::RequestHead head;
  const Reading whole = server::readRequest(input, server::kHotHeadBytes, &head);
  const std::string body = whole == Reading::kRead ? input.substr(head.headLength) : input;
  // The reader of hot requests does not look into a Host.
  const bool agree = whole == Reading::kBad || (whole == Reading::kRead && head.stays);
  if (hot && !agree) server::test::fail("hot, and read otherwise", input);
  for (size_t length = 0; length < input.size(); length += 1 + length / 8) {
    const ExactCopy copy(input.data(), length);
    server::RequestHead early;
    const Reading verdict =
        server::readRequest({copy.data(), copy.length()}, server::kHotHeadBytes, &early);
    if (verdict != Reading::kIncomplete && verdict != whole) {
      server::test::fail("another verdict on a beginning", input);
    }
  }
  const auto once = chunksOf(body, body.size());
  for (const size_t piece : {1, 2, 3, 7, 64}) {
    if (chunksOf(body, piece) != once) server::test::fail("chunks that change by a cut", input);
  }
}

const std::vector<std::string> kWords = {
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    " ",
    "\t",
    ":",
    ",",
    "?",
    "&",
    "=",
    std::string(1, '\0'),
    "\x7f",
    "\xff",
    "GET ",
    "POST ",
    " HTTP/1.1",
    "?ack=1",
    "&hold=30",
    "?n=3",
    "GET /feed/a",
    "POST /arena/hall/",
    "?after=e7-42",
    "GET /feeds?watch=a:e7-42,b:",
    "&watch=a:",
    "&turn=5x",
    "&delta=1",
    "/..",
    "Accept: text/event-stream\r\n",
    "Accept-Encoding: gzip\r\n",
    "Last-Event-ID: e1-2\r\n",
    "0",
    "1",
    "9",
    "99999999",
    "Host: a\r\n",
    "TE: a\r\n",
    "Expect: a",
    "keep-alive",
    "close",
    "identity",
    "Content-Length: 7\r\n",
    "X-Forwarded-For: \t10.0.0.1 \r\n",
    "Forwarded: for=a\t\r\n",
    "Transfer-Encoding: chunked\r\n",
    "\r\n\r\n5;a=b\r\nabcde\r\n0\r\nA: b\r\n\r\n",
    "5\r\nabcde\r\n",
    std::string(300, 'x'),
    std::string(4000, 'y'),
};

}  // namespace

int main(int argc, char** argv) {
  const auto options = server::test::optionsOf(argc, argv, kCount);
  const auto seeds = server::test::readTexts(options.seeds, "http");
  for (const auto& seed : seeds) {
    if (check(seed) != Verdict::kHot) server::test::fail("a real request that is not hot", seed);
  }
  server::test::Random random(options.seed);
  uint64_t hot = 0;
  for (uint64_t i = 0; i < options.count; ++i) {
    const auto input = server::test::mutate(random, random.pick(seeds), seeds, kWords);
    const Verdict verdict = check(input);
    if (verdict == Verdict::kHot) ++hot;
    checkAny(input, verdict == Verdict::kHot);
  }
  printf("http: %llu inputs with all their beginnings, %llu of them hot\n",
         static_cast<unsigned long long>(options.count), static_cast<unsigned long long>(hot));
  if (options.count >= 1000 && hot < options.count / 20) {
    server::test::fail("too little that is hot", "");
  }
  return 0;
}
