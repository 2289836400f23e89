// Fuzzes the readers under the sanitizers, without Node, on copies of exactly the input's length.
//
//   readers_fuzz FILE-OF-SEEDS [COUNT [SEED]]
//
// Requests: every input is read whole and as each of its prefixes. The rules:
//  - the verdict on a prefix is to wait, until one verdict, which then never changes;
//  - a hot request's numbers match its bytes: the head ends with the first empty line, its spans
//    are within it, and only some routes have a body.
// JSON: the check of a sprite, the canonical writer, and the readers of POST /feeds and of the list
// of GET /feeds. test/fuzz compares the results of all of them with those of JavaScript.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/canonical.h"
#include "base/feed_names.h"
#include "base/json_reader.h"
#include "fuzz.h"
#include "http/http_reader.h"
#include "http/request_reader.h"
#include "http/watch_reader.h"

using server::HotRequest;
using server::Route;
using server::Verdict;
using server::test::ExactCopy;
using server::test::fail;
using server::test::Random;

namespace {

constexpr uint64_t kCount = 300000;

/** Texts for each request: a request costs more, since each of its prefixes is read. */
constexpr uint64_t kTextsARequest = 15;

// ---- Requests -----------------------------------------------------------------------------------

constexpr uint64_t kMaxNumber = (uint64_t{1} << 53) - 1;

Verdict readHot(const std::string& input, size_t length, HotRequest* request) {
  const ExactCopy copy(input.data(), length);
  return server::readHead(copy.data(), copy.length(), request);
}

void checkSpan(const std::string& input, const HotRequest& request, server::HeadSpan span) {
  if (span.length == 0) return;
  if (span.offset + span.length > request.headLength) fail("a wild span", input);
  const std::string_view value(input.data() + span.offset, span.length);
  const auto isBlank = [](char c) { return c == ' ' || c == '\t'; };
  if (isBlank(value.front()) || isBlank(value.back())) fail("blanks around a span", input);
  if (value.find('\r') != value.npos) fail("a span over lines", input);
}

void checkHot(const std::string& input, const HotRequest& request) {
  const size_t end = input.find("\r\n\r\n");
  if (end == input.npos || request.headLength != end + 4) {
    fail("a head that ends elsewhere", input);
  }
  if (request.headLength > server::kHotHeadBytes) fail("a long head", input);
  const bool isList = request.route == Route::kFeeds && request.key.length > 0;
  if (request.bodyLength > 0 && request.route != Route::kThrow && request.route != Route::kInput &&
      (request.route != Route::kFeeds || isList)) {
    fail("a body where none belongs", input);
  }
  if (request.ack > kMaxNumber || request.number > kMaxNumber) {
    fail("a number too large", input);
  }
  const bool isFeed = request.route == Route::kFeed;
  const bool isGet = isFeed || isList || request.route == Route::kPoll ||
                     request.route == Route::kPlace || request.route == Route::kStatus ||
                     request.route == Route::kFixed;
  if (input[0] != (isGet ? 'G' : 'P')) fail("another method", input);
  if ((request.route == Route::kFixed) != (request.path.length > 0)) {
    fail("a path of nothing, or none", input);
  }
  if (request.path.length > server::kPathBytes) fail("a long path", input);
  if (isFeed && !server::isFeedKey({input.data() + request.key.offset, request.key.length})) {
    fail("a key that is none", input);
  }
  const std::string_view after(input.data() + request.after.offset, request.after.length);
  if (!after.empty() && !server::isCursor(after)) fail("a cursor that is none", input);
  checkSpan(input, request, request.path);
  checkSpan(input, request, request.forwardedFor);
  checkSpan(input, request, request.forwarded);
}

/** Reads the input byte by byte. Returns the verdict on the whole input. */
Verdict check(const std::string& input) {
  HotRequest whole;
  const Verdict verdict = readHot(input, input.size(), &whole);
  if (verdict == Verdict::kHot) checkHot(input, whole);

  const size_t longest = std::min(input.size(), server::kHotHeadBytes + 2);
  for (size_t length = 0; length <= longest; ++length) {
    HotRequest part;
    const Verdict early = readHot(input, length, &part);
    if (early == Verdict::kIncomplete) {
      if (length >= server::kHotHeadBytes) fail("a wait without a bound", input);
      if (verdict == Verdict::kHot && length >= whole.headLength) {
        fail("a wait behind the end", input);
      }
      continue;
    }
    if (early != verdict) fail("a verdict that changed", input);
    if (early == Verdict::kHot && part != whole) {
      fail("a request that changed", input);
    }
    // From here on the verdict must not change; a few longer prefixes show that.
    length += (longest - length) / 4;
  }
  return verdict;
}

/** Reads a chunked body in these pieces. Returns the verdict and the body. */
std::pair<server::ChunkDecoder::State, std::string> chunksOf(const std::string& text,
                                                             size_t piece) {
  server::ChunkDecoder chunks;
  std::pair<server::ChunkDecoder::State, std::string> read = {
      server::ChunkDecoder::State::kIncomplete, {}};
  for (size_t at = 0; at < text.size() && read.first == server::ChunkDecoder::State::kIncomplete;
       at += piece) {
    const ExactCopy copy(text.data() + at, std::min(piece, text.size() - at));
    std::string_view data(copy.data(), copy.length());
    read.first = chunks.decode(&data, 5000, &read.second);
  }
  return read;
}

/** Checks the reader of all requests: it accepts every hot request, and cuts change nothing. */
void checkAny(const std::string& input, bool hot) {
  using server::ReadResult;
  server::RequestHead head;
  const ReadResult wholeResult = server::readRequest(input, server::kHotHeadBytes, &head);
  const std::string body =
      wholeResult == ReadResult::kComplete ? input.substr(head.headLength) : input;
  // The reader of hot requests does not check the value of Host.
  const bool agree =
      wholeResult == ReadResult::kBad || (wholeResult == ReadResult::kComplete && head.keepsAlive);
  if (hot && !agree) fail("hot, and read otherwise", input);
  for (size_t length = 0; length < input.size(); length += 1 + length / 8) {
    const ExactCopy copy(input.data(), length);
    server::RequestHead early;
    const ReadResult verdict =
        server::readRequest({copy.data(), copy.length()}, server::kHotHeadBytes, &early);
    if (verdict != ReadResult::kIncomplete && verdict != wholeResult) {
      fail("another verdict on a beginning", input);
    }
  }
  const auto once = chunksOf(body, body.size());
  for (const size_t piece : {1, 2, 3, 7, 64}) {
    if (chunksOf(body, piece) != once) fail("chunks that change by a cut", input);
  }
}

const std::vector<std::string> kHeadWords = {
    // Parts of lines.
    "\r\n", "\n", "\r", "\r\n\r\n", " ", "\t", ":", ",", "?", "&", "=", std::string(1, '\0'),
    "\x7f", "\xff", std::string(300, 'x'), std::string(4000, 'y'),
    // Parts of first lines.
    "GET ", "POST ", " HTTP/1.1", "?ack=1", "&hold=30", "?n=3", "GET /feed/a", "POST /arena/hall/",
    "?after=e7-42", "GET /feeds?watch=a:e7-42,b:", "&watch=a:", "&turn=5x", "&delta=1", "/..",
    // Headers.
    "Accept: text/event-stream\r\n", "Accept-Encoding: gzip\r\n", "Last-Event-ID: e1-2\r\n", "0",
    "1", "9", "99999999", "Host: a\r\n", "TE: a\r\n", "Expect: a", "keep-alive", "close",
    "identity", "Content-Length: 7\r\n", "X-Forwarded-For: \t10.0.0.1 \r\n",
    "Forwarded: for=a\t\r\n", "Transfer-Encoding: chunked\r\n",
    // Bodies.
    "\r\n\r\n5;a=b\r\nabcde\r\n0\r\nA: b\r\n\r\n", "5\r\nabcde\r\n"};

void fuzzRequests(const server::test::Options& options) {
  const uint64_t count = options.count / kTextsARequest;
  const auto seeds = server::test::readTexts(options.seeds, "http");
  for (const auto& seed : seeds) {
    if (check(seed) != Verdict::kHot) fail("a real request that is not hot", seed);
  }
  Random random(options.seed);
  uint64_t hot = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto input = server::test::mutate(random, random.pick(seeds), seeds, kHeadWords);
    const Verdict verdict = check(input);
    if (verdict == Verdict::kHot) ++hot;
    checkAny(input, verdict == Verdict::kHot);
  }
  printf("http: %llu inputs with all their beginnings, %llu of them hot\n",
         static_cast<unsigned long long>(count), static_cast<unsigned long long>(hot));
  if (count >= 1000 && hot < count / 20) fail("too little that is hot", "");
}

// ---- JSON ---------------------------------------------------------------------------------------

/** Returns a text about as deep as a sprite may be. */
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
  // The output has room for exactly as many bytes.
  const std::unique_ptr<char[]> out(new char[input.size()]);
  base::canonical(copy.data(), copy.length(), depth, out.get());
  return base::isJsonObject(copy.data(), copy.length(), depth);
}

bool readWatch(const std::string& input, Random&) {
  const ExactCopy copy(input);
  bool isAccepted = false;
  for (const auto read : {server::readWatchList, server::readWatch}) {
    server::WatchRequest watch;
    if (!read({copy.data(), copy.length()}, &watch)) continue;
    isAccepted = true;
    // Reads each byte of them.
    for (uint32_t i = 0; i < watch.count; ++i) {
      const auto& [key, after, problem] = watch.wanted[i];
      if (!server::isFeedKey(key)) fail("a key that is none", input);
      if (!after.empty() && !server::isCursor(after)) fail("a cursor that is none", input);
    }
  }
  return isAccepted;
}

const std::vector<std::string> kWords = {
    "{", "}", "[", "]", ",", ":", "\"", "\\", " ", "\n", " \t\r\n",
    // Parts of any text.
    "{\"a\":", "[[[[", "]]]]", "true", "false", "null", "[]", "0", "-1.5e+3", "01", ".5", "1.",
    "1e", "\\u00e9", "\\ud800", "\\u12", "\\\"", "\\x", "01234567", ",\"b\":[{}]",
    // Parts of requests for feeds.
    "\"hold\":", "\"delta\":true", "\"feeds\":{", "\"a\":\"\"", ",\"b/c\":\"e1-2\"",
    "a:e1-2,b/c:", "/..", "//", "4294967294", "4294967295", "-1", "1e1", "\\u0061",
    std::string(201, 'k'), std::string(41, 'c'),
    // Bytes that are not, or rarely, valid UTF-8.
    "\xef\xbb\xbf", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8e\x88", "\xc0\xaf", "\xed\xa0\x80",
    "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\xff", std::string(1, '\0'), "\x1f", "\x7f"};

/** A kind of input, with its reader. */
struct Kind {
  const char* name;
  bool (*read)(const std::string& input, Random& random);
  std::string (*generate)(Random& random);  // nullptr: only seeds
  uint64_t minShare;                        // of so many one at least is taken
};

constexpr Kind kKinds[] = {{"json", readJson, nest, 20}, {"watch", readWatch, nullptr, 50}};

void fuzz(const Kind& kind, const server::test::Options& options) {
  const auto seeds = server::test::readTexts(options.seeds, kind.name);
  Random random(options.seed);
  for (const auto& seed : seeds) {
    // Each prefix of the seed.
    for (size_t length = 0; length <= seed.size(); ++length) {
      kind.read(seed.substr(0, length), random);
    }
  }
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < options.count; ++i) {
    const bool isGenerated = kind.generate != nullptr && random.oneIn(8);
    std::string input = isGenerated ? kind.generate(random) : random.pick(seeds);
    if (!random.oneIn(8)) input = server::test::mutate(random, input, seeds, kWords);
    accepted += kind.read(input, random) ? 1 : 0;
  }
  printf("%s: %llu texts, %llu of them taken\n", kind.name,
         static_cast<unsigned long long>(options.count), static_cast<unsigned long long>(accepted));
  if (options.count >= 1000 && accepted < options.count / kind.minShare)
    fail("too little taken", "");
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = server::test::optionsOf(argc, argv, kCount);
  fuzzRequests(options);
  for (const Kind& kind : kKinds) fuzz(kind, options);
  return 0;
}
