// The reader of hot requests: one pass, front to back, no memory but the request it fills.
//
//   POST /throw/5f0c…/left?n=7 HTTP/1.1   requestLine(): literals, a uuid, an edge, numbers
//   Host: sprites.example                 header(): a name, and the check that the name needs
//   Content-Length: 112                     .
//   (empty line)                          finish(): exactly one Host
//
// Every step returns a Verdict. Here kHot means "as expected so far, go on"; kIncomplete: the bytes
// ended where a hot request may still go on; kNotHot: the request can't be hot, whatever follows.
// The first byte that decides sets the verdict, so more bytes never change it, and a bad head is
// refused without waiting for its end.
//
// The reader is a subset of Node's parser (llhttp with no lenient flag), held to it by
// test/fuzz/http.js. It leaves a request out for one of three reasons:
//  - the framing has two possible readings (Transfer-Encoding, a repeated or decorated
//    Content-Length, bare LF or CR, folded lines, space before the colon: RFC 9112, sections 2.2,
//    5.1, 5.2, 6 and 11.2);
//  - the connection does not simply go on after the request (Connection: close, Upgrade, Expect,
//    HTTP/1.0), or the answer would differ (a body where none belongs);
//  - it is rare, and JavaScript answers it under the same contract.
//
// Header names are not looked up: only names that could change the meaning are recognised, by their
// length and then by their letters. Names are checked by a table of 256 bytes, values eight bytes
// at a time by arithmetic on a word. A head of curl takes some 150 ns, that of a browser 500 ns
// (make -C test/native bench).
//
// Rejected: llhttp itself (its events have to be gathered into a request, it keeps a state for each
// connection, and the list of refusals stays the same), a lenient reader that repairs requests (two
// readings of one request are how requests are smuggled), and a state kept between the pieces of a
// head (a head in pieces is rare and short; reading it again is cheaper than another 40 bytes for
// each of a million connections).
#include "http_reader.h"

#include <bit>
#include <cstring>

#include "characters.h"
#include "feed_grammar.h"

namespace server {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kHighs = 0x8080808080808080;
constexpr uint64_t kMaxNumber = (uint64_t{1} << 53) - 1;
constexpr size_t kLengthDigits = 9;
constexpr size_t kUuidChars = 36;
inline bool isPathChar(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '/' || c == '_';
}

/** Whether a uuid has a hyphen at the index `i`. */
constexpr bool isHyphenPlace(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

/** Skips plain bytes of a header value: all but controls (including tab) and DEL. */
inline const char* skipText(const char* at, const char* end) {
  if constexpr (std::endian::native == std::endian::little) {
    while (end - at >= 8) {
      uint64_t word;
      memcpy(&word, at, sizeof word);
      const uint64_t del = word ^ (kOnes * 0x7f);
      const uint64_t other =
          ((word - kOnes * 0x20) & ~word & kHighs) | ((del - kOnes) & ~del & kHighs);
      if (other != 0) return at + (std::countr_zero(other) >> 3);
      at += 8;
    }
  }
  while (at != end) {
    const auto byte = static_cast<uint8_t>(*at);
    if (byte < 0x20 || byte == 0x7f) break;
    ++at;
  }
  return at;
}

/** Compares a token with a lower-case word of letters, digits and hyphens, ignoring case. */
inline bool isName(const char* name, const char* word, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    // Only letters become a letter by setting this bit; digits and hyphens have it already.
    if ((name[i] | 0x20) != word[i]) return false;
  }
  return true;
}

/** The header names that matter to the reader. */
enum class Name : uint8_t {
  kIgnored,  // any other name: the value is skipped
  kHost,
  kContentLength,
  kContentEncoding,
  kConnection,
  kForwardedFor,
  kForwarded,
  kAccept,
  kAcceptEncoding,
  kLastEventId,
  kIfNoneMatch,
  kAuthorization,
  kNotHot,  // a request with it is not hot
};

/** Recognises a name: by length first, which excludes nearly all others. */
inline Name recognise(const char* name, size_t length) {
  const auto is = [&](const char* word) { return isName(name, word, length); };
  const auto notHotIf = [](bool found) { return found ? Name::kNotHot : Name::kIgnored; };
  switch (length) {
    case 2:
      return notHotIf(is("te"));
    case 4:
      return is("host") ? Name::kHost : Name::kIgnored;
    case 6:
      return is("accept") ? Name::kAccept : notHotIf(is("expect"));
    case 7:
      return notHotIf(is("upgrade") || is("trailer"));
    case 9:
      return is("forwarded") ? Name::kForwarded : Name::kIgnored;
    case 10:
      return is("connection") ? Name::kConnection : notHotIf(is("keep-alive"));
    case 13:
      if (is("if-none-match")) return Name::kIfNoneMatch;
      if (is("last-event-id")) return Name::kLastEventId;
      return is("authorization") ? Name::kAuthorization : Name::kIgnored;
    case 14:
      return is("content-length") ? Name::kContentLength : notHotIf(is("http2-settings"));
    case 15:
      if (is("accept-encoding")) return Name::kAcceptEncoding;
      return is("x-forwarded-for") ? Name::kForwardedFor : Name::kIgnored;
    case 16:
      return is("content-encoding") ? Name::kContentEncoding : notHotIf(is("proxy-connection"));
    case 17:
      return notHotIf(is("transfer-encoding"));
    default:
      return Name::kIgnored;
  }
}

/** Reads a head. Each method reads on from `at_` and returns whether to go on. */
class HeadReader {
 public:
  HeadReader(const char* data, size_t length, HotRequest* out)
      : begin_(data), at_(data), end_(data + length), out_(out) {}

  Verdict read() {
    if (Verdict v = requestLine(); v != kGoOn) return v;
    for (unsigned count = 0;; ++count) {
      if (at_ == end_) return Verdict::kIncomplete;
      if (*at_ == '\r') return finish();
      if (count == kHotHeaders) return Verdict::kNotHot;
      if (Verdict v = header(); v != kGoOn) return v;
    }
  }

 private:
  template <size_t Size>
  Verdict literal(const char (&word)[Size]) {
    constexpr size_t length = Size - 1;
    const auto left = static_cast<size_t>(end_ - at_);
    if (left >= length) {
      if (memcmp(at_, word, length) != 0) return Verdict::kNotHot;
      at_ += length;
      return kGoOn;
    }
    return memcmp(at_, word, left) == 0 ? Verdict::kIncomplete : Verdict::kNotHot;
  }

  Verdict requestLine() {
    if (at_ == end_) return Verdict::kIncomplete;
    if (*at_ == 'G') {
      if (Verdict v = literal("GET /"); v != kGoOn) return v;
      if (Verdict v = getTarget(); v != kGoOn) return v;
      return literal(" HTTP/1.1\r\n");
    }
    if (Verdict v = literal("POST /"); v != kGoOn) return v;
    if (at_ == end_) return Verdict::kIncomplete;
    switch (*at_) {
      case 't':
        out_->route = Route::kThrow;
        if (Verdict v = literal("throw/"); v != kGoOn) return v;
        if (Verdict v = uuid(); v != kGoOn) return v;
        if (Verdict v = edge(); v != kGoOn) return v;
        if (Verdict v = throwQuery(); v != kGoOn) return v;
        break;
      case 'l':
        out_->route = Route::kLeave;
        if (Verdict v = literal("leave/"); v != kGoOn) return v;
        if (Verdict v = uuid(); v != kGoOn) return v;
        break;
      case 'a':
        out_->route = Route::kInput;
        if (Verdict v = literal("arena/"); v != kGoOn) return v;
        if (Verdict v = arenaName(); v != kGoOn) return v;
        if (Verdict v = uuid(); v != kGoOn) return v;
        if (Verdict v = throwQuery(); v != kGoOn) return v;
        break;
      case 'f':
        out_->route = Route::kFeeds;
        if (Verdict v = literal("feeds"); v != kGoOn) return v;
        break;
      default:
        out_->route = Route::kJoin;
        if (Verdict v = literal("join"); v != kGoOn) return v;
    }
    return literal(" HTTP/1.1\r\n");
  }

  /** Reads the target of a GET after its first slash. */
  Verdict getTarget() {
    if (const Verdict v = literal("poll/"); v != Verdict::kNotHot) {
      out_->route = Route::kPoll;
      if (v != kGoOn) return v;
      if (Verdict w = uuid(); w != kGoOn) return w;
      return pollQuery();
    }
    if (const Verdict v = literal("place/"); v != Verdict::kNotHot) {
      out_->route = Route::kPlace;
      return v == kGoOn ? uuid() : v;
    }
    if (const Verdict v = literal("status/"); v != Verdict::kNotHot) {
      out_->route = Route::kStatus;
      return v == kGoOn ? uuid() : v;
    }
    if (const Verdict v = literal("feed/"); v != Verdict::kNotHot) {
      out_->route = Route::kFeed;
      return v == kGoOn ? readFeedTarget(begin_, &at_, end_, out_) : v;
    }
    if (const Verdict v = literal("feeds?"); v != Verdict::kNotHot) {
      out_->route = Route::kFeeds;
      if (v != kGoOn) return v;
      --at_;
      return readFeedsQuery(begin_, &at_, end_, out_);
    }
    out_->route = Route::kFixed;
    return path();
  }

  /** Reads a path of letters, digits and a few signs that need no escape; no query. */
  Verdict path() {
    const char* const slash = at_ - 1;
    while (at_ != end_ && isPathChar(*at_)) ++at_;
    const auto length = static_cast<size_t>(at_ - slash);
    if (length > kPathBytes) return Verdict::kNotHot;
    if (at_ == end_) return Verdict::kIncomplete;
    out_->path = {static_cast<uint16_t>(slash - begin_), static_cast<uint16_t>(length)};
    return kGoOn;
  }

  /** Reads an arena's name, of a-z, 0-9 and - with a letter first, and the slash after it. */
  Verdict arenaName() {
    const char* const first = at_;
    while (at_ != end_ && (isDigit(*at_) || (*at_ >= 'a' && *at_ <= 'z') || *at_ == '-')) ++at_;
    const auto length = static_cast<size_t>(at_ - first);
    if (length > kArenaNameBytes) return Verdict::kNotHot;
    if (length > 0 && (*first < 'a' || *first > 'z')) return Verdict::kNotHot;
    if (at_ == end_) return Verdict::kIncomplete;
    if (length == 0) return Verdict::kNotHot;
    out_->key = {static_cast<uint16_t>(first - begin_), static_cast<uint16_t>(length)};
    return literal("/");
  }

  /** Reads 36 characters, 8-4-4-4-12 hexadecimal digits of either case, into `id`. */
  Verdict uuid() {
    const auto left = static_cast<size_t>(end_ - at_);
    if (left < kUuidChars) {
      for (size_t i = 0; i < left; ++i) {
        const bool good = isHyphenPlace(i) ? at_[i] == '-' : hexOf(at_[i]) != kNoHex;
        if (!good) return Verdict::kNotHot;
      }
      return Verdict::kIncomplete;
    }
    uint8_t bad = 0;
    size_t from = 0;
    for (size_t byte = 0; byte < sizeof out_->id.bytes; ++byte) {
      if (isHyphenPlace(from)) {
        if (at_[from] != '-') return Verdict::kNotHot;
        ++from;
      }
      const uint8_t high = hexOf(at_[from]);
      const uint8_t low = hexOf(at_[from + 1]);
      bad |= high | low;
      out_->id.bytes[byte] = static_cast<uint8_t>(high << 4 | (low & 0xf));
      from += 2;
    }
    if ((bad & 0xf0) != 0) return Verdict::kNotHot;
    at_ += kUuidChars;
    return kGoOn;
  }

  Verdict edge() {
    if (Verdict v = literal("/"); v != kGoOn) return v;
    if (at_ == end_) return Verdict::kIncomplete;
    switch (*at_) {
      case 'l':
        out_->edge = Edge::kLeft;
        return literal("left");
      case 'r':
        out_->edge = Edge::kRight;
        return literal("right");
      case 'u':
        out_->edge = Edge::kUp;
        return literal("up");
      default:
        out_->edge = Edge::kDown;
        return literal("down");
    }
  }

  /** Reads `?ack=N`, `?hold=N`, both in either order, or no query. */
  Verdict pollQuery() {
    bool hasAck = false;
    if (at_ == end_) return Verdict::kIncomplete;
    if (*at_ != '?') return kGoOn;
    do {
      ++at_;
      if (at_ == end_) return Verdict::kIncomplete;
      if (*at_ == 'a' && !hasAck) {
        hasAck = true;
        if (Verdict v = literal("ack="); v != kGoOn) return v;
        if (Verdict v = number(&out_->ack, kMaxNumber); v != kGoOn) return v;
      } else if (*at_ == 'h' && !out_->hasHold) {
        out_->hasHold = true;
        uint64_t hold = 0;
        if (Verdict v = literal("hold="); v != kGoOn) return v;
        if (Verdict v = number(&hold, UINT32_MAX); v != kGoOn) return v;
        out_->hold = static_cast<uint32_t>(hold);
      } else {
        return Verdict::kNotHot;
      }
    } while (*at_ == '&' && !(hasAck && out_->hasHold));
    return kGoOn;
  }

  /** Reads `?n=N`, or no query. */
  Verdict throwQuery() {
    if (at_ == end_) return Verdict::kIncomplete;
    if (*at_ != '?') return kGoOn;
    out_->hasNumber = true;
    if (Verdict v = literal("?n="); v != kGoOn) return v;
    return number(&out_->number, kMaxNumber);
  }

  /**
   * Reads plain decimal digits without leading zeros, up to `max` (at most kMaxNumber, so the sum
   * can't overflow). Stops at the first other byte, which must be there to go on.
   */
  Verdict number(uint64_t* out, uint64_t max) {
    const char* const first = at_;
    uint64_t value = 0;
    while (at_ != end_ && isDigit(*at_)) {
      if (at_ != first && value == 0) return Verdict::kNotHot;
      value = value * 10 + static_cast<uint64_t>(*at_ - '0');
      if (value > max) return Verdict::kNotHot;
      ++at_;
    }
    if (at_ == end_) return Verdict::kIncomplete;
    *out = value;
    return at_ == first ? Verdict::kNotHot : kGoOn;
  }

  /** Reads a header line with its CRLF. */
  Verdict header() {
    const char* const name = at_;
    while (at_ != end_ && isToken(*at_)) ++at_;
    if (at_ == end_) return Verdict::kIncomplete;
    if (*at_ != ':' || at_ == name) return Verdict::kNotHot;
    const Name recognised = recognise(name, static_cast<size_t>(at_ - name));
    ++at_;
    if (recognised != Name::kIgnored && !mayOccur(recognised)) return Verdict::kNotHot;

    while (at_ != end_ && isBlank(*at_)) ++at_;
    const char* const value = at_;
    at_ = skipText(at_, end_);
    while (at_ != end_ && *at_ == '\t') at_ = skipText(at_ + 1, end_);
    const bool whole = at_ != end_;
    if (whole && *at_ != '\r') return Verdict::kNotHot;
    if (recognised != Name::kIgnored && !readValue(recognised, value, whole))
      return Verdict::kNotHot;
    return literal("\r\n");
  }

  /** Whether a header of this name may be here: some may be there once, others not at all. */
  bool mayOccur(Name name) {
    if (name == Name::kNotHot) return false;
    const auto bit = static_cast<uint16_t>(1u << static_cast<unsigned>(name));
    const bool first = (seenNames_ & bit) == 0;
    seenNames_ |= bit;
    return first;
  }

  /** Whether the value from `value` to `at_` is valid for its header; `whole`: it ends there. */
  bool readValue(Name name, const char* value, bool whole) {
    const auto length = static_cast<size_t>(at_ - value);
    switch (name) {
      case Name::kHost:
        return isHost({value, length}) && (length > 0 || !whole);
      // llhttp 9.3 refuses a tab after a Content-Length, 9.4 accepts it: no blanks are allowed
      // after these.
      case Name::kContentLength:
        return contentLength(value, length, whole);
      case Name::kConnection:
        return isWord(value, length, "keep-alive", whole);
      case Name::kContentEncoding:
        return isWord(value, length, "identity", whole);
      case Name::kForwardedFor:
        out_->forwardedFor = trimmed(value);
        return true;
      case Name::kAuthorization:
        out_->authorization = trimmed(value);
        return true;
      case Name::kForwarded:
        out_->forwarded = trimmed(value);
        return true;
      // Only requests for feeds use these; with any other request they may have any value.
      case Name::kAccept:
        return !isFeed() || readAccept({value, length}, whole, out_);
      case Name::kAcceptEncoding:
        return !isForFeeds() || readAcceptEncoding({value, length}, whole, out_);
      case Name::kLastEventId:
        lastEventId_ = trimmed(value);
        return !isFeed() || readLastEventId({value, length});
      case Name::kIfNoneMatch:
        if (isFeed() || isList()) out_->noneMatch = trimmed(value);
        return true;
      default:
        return false;
    }
  }

  /** Reads plain digits without leading zeros; 0 if the route has no body. */
  bool contentLength(const char* value, size_t length, bool whole) {
    if (length == 0) return !whole;
    if (length > kLengthDigits || (length > 1 && value[0] == '0')) return false;
    uint32_t sum = 0;
    for (size_t i = 0; i < length; ++i) {
      if (!isDigit(value[i])) return false;
      sum = sum * 10 + static_cast<uint32_t>(value[i] - '0');
    }
    out_->bodyLength = sum;
    return sum == 0 || out_->route == Route::kThrow || out_->route == Route::kInput ||
           (out_->route == Route::kFeeds && !isList());
  }

  bool isFeed() const { return out_->route == Route::kFeed; }
  bool isForFeeds() const { return isFeed() || out_->route == Route::kFeeds; }

  /** Whether it is GET /feeds. */
  bool isList() const { return out_->route == Route::kFeeds && out_->key.length > 0; }

  /**
   * Whether the value equals the word, of letters and hyphens, ignoring case; or, without `whole`,
   * begins it.
   */
  template <size_t Size>
  static bool isWord(const char* value, size_t length, const char (&word)[Size], bool whole) {
    if (length > Size - 1 || (whole && length < Size - 1)) return false;
    for (size_t i = 0; i < length; ++i) {
      const char c = value[i] >= 'A' && value[i] <= 'Z' ? value[i] + ('a' - 'A') : value[i];
      if (c != word[i]) return false;
    }
    return true;
  }

  /** Returns the span from `value` to `at_` without the blanks at its end. */
  HeadSpan trimmed(const char* value) const {
    const char* last = at_;
    while (last != value && isBlank(last[-1])) --last;
    return {static_cast<uint16_t>(value - begin_), static_cast<uint16_t>(last - value)};
  }

  /** Reads the empty line; a request without Host is not hot (RFC 9112, section 3.2). */
  Verdict finish() {
    if ((seenNames_ & 1u << static_cast<unsigned>(Name::kHost)) == 0) return Verdict::kNotHot;
    if (Verdict v = literal("\r\n"); v != kGoOn) return v;
    out_->headLength = static_cast<uint32_t>(at_ - begin_);
    if (out_->stream && (seenNames_ & 1u << static_cast<unsigned>(Name::kLastEventId)) != 0) {
      out_->after = lastEventId_;
    }
    return Verdict::kHot;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  HotRequest* const out_;
  uint16_t seenNames_ = 0;  // one bit for each Name
  HeadSpan lastEventId_ = {};
};

}  // namespace

Verdict readHead(const char* data, size_t length, HotRequest* out) {
  *out = HotRequest{};
  const size_t readable = length < kHotHeadBytes ? length : kHotHeadBytes;
  const Verdict verdict = HeadReader(data, readable, out).read();
  const bool tooLong = verdict == Verdict::kIncomplete && readable == kHotHeadBytes;
  return tooLong ? Verdict::kNotHot : verdict;
}

}  // namespace server
