// The hot requests' reader: one pass, front to back, no memory but the request it fills.
//
//   POST /throw/5f0c…/left?n=7 HTTP/1.1   requestLine(): literals, a uuid, an edge, numbers
//   Host: sprites.example                 header(): a name, then what the name asks of its value
//   Content-Length: 112                     .
//   (empty line)                          finish(): exactly one Host
//
// Every step answers with a Verdict. Here kHot means "as expected so far, go on"; kIncomplete that
// the bytes ran out at a place where a hot request may still go on; kNotHot that they can't be
// one, whatever follows. A verdict is reached at the first byte that decides it, so more bytes
// never change it, and a bad head is refused without waiting for its end.
//
// The reader is a subset of Node's parser (llhttp with no lenient flag), held to it by
// test/fuzz/http.js. What it leaves out is left out for one of three reasons:
//  - the framing may be read in two ways (Transfer-Encoding, a repeated or decorated
//    Content-Length, bare LF or CR, folded lines, space before the colon: RFC 9112, sections 2.2,
//    5.1, 5.2, 6 and 11.2);
//  - the connection does not simply go on behind the request (Connection: close, Upgrade, Expect,
//    HTTP/1.0), or the answer would be another one (a body where none belongs);
//  - it is rare, and JavaScript answers it under the same contract.
//
// Header names are not looked up: only those that could change the meaning are recognised, by
// their length and then by their letters. Names are checked by one table of 256 bytes, values
// eight bytes at a time by arithmetic on a word. A head of curl's takes some 150 ns, a browser's
// 500 ns (make -C test/native bench).
//
// Rejected: llhttp itself (its events have to be gathered into a request, it keeps a state for each
// connection, and the list of things to refuse stays the same), a lenient reader that mends what it
// finds (two readings of one request are how requests are smuggled), and a state kept between the
// pieces of a head (a head in pieces is rare and short; reading it again is cheaper than another
// 40 bytes for each of a million connections).
#include "http_reader.h"

#include <bit>
#include <cstring>

#include "characters.h"
#include "feed_grammar.h"

namespace server {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kHighs = 0x8080808080808080;
constexpr uint64_t kNumberMax = (uint64_t{1} << 53) - 1;
constexpr size_t kLengthDigits = 9;
constexpr size_t kUuidChars = 36;
inline bool isPathChar(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '/' || c == '_';
}

/** Whether the hyphens of a uuid stand before its character `i`. */
constexpr bool isHyphenPlace(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

/** Skips bytes of a header value that need no look: all but controls (tab is one here) and DEL. */
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

/** Compares a token with a lower-case word of letters, digits and hyphens; case does not count. */
inline bool isName(const char* name, const char* word, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    // No token character but a letter turns into a letter by this bit, and hyphens have it.
    if ((name[i] | 0x20) != word[i]) return false;
  }
  return true;
}

/** What a header's name asks of the reader. */
enum class Name : uint8_t {
  kPlain,  // nothing: the value is skipped
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
  kNotHot,  // its presence alone makes the request another than a hot one
};

/** Recognises the names that matter: by length first, which nearly all others fail. */
inline Name recognise(const char* name, size_t length) {
  const auto is = [&](const char* word) { return isName(name, word, length); };
  const auto notHotIf = [](bool found) { return found ? Name::kNotHot : Name::kPlain; };
  switch (length) {
    case 2:
      return notHotIf(is("te"));
    case 4:
      return is("host") ? Name::kHost : Name::kPlain;
    case 6:
      return is("accept") ? Name::kAccept : notHotIf(is("expect"));
    case 7:
      return notHotIf(is("upgrade") || is("trailer"));
    case 9:
      return is("forwarded") ? Name::kForwarded : Name::kPlain;
    case 10:
      return is("connection") ? Name::kConnection : notHotIf(is("keep-alive"));
    case 13:
      if (is("if-none-match")) return Name::kIfNoneMatch;
      if (is("last-event-id")) return Name::kLastEventId;
      return is("authorization") ? Name::kAuthorization : Name::kPlain;
    case 14:
      return is("content-length") ? Name::kContentLength : notHotIf(is("http2-settings"));
    case 15:
      if (is("accept-encoding")) return Name::kAcceptEncoding;
      return is("x-forwarded-for") ? Name::kForwardedFor : Name::kPlain;
    case 16:
      return is("content-encoding") ? Name::kContentEncoding : notHotIf(is("proxy-connection"));
    case 17:
      return notHotIf(is("transfer-encoding"));
    default:
      return Name::kPlain;
  }
}

/** One head being read. Each method reads on from `at_` and says whether to go on. */
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

  /** What is behind the first slash of a GET. */
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

  /** Letters, digits and a few signs, and nothing that would need an escape; no query. */
  Verdict path() {
    const char* const slash = at_ - 1;
    while (at_ != end_ && isPathChar(*at_)) ++at_;
    const auto length = static_cast<size_t>(at_ - slash);
    if (length > kPathBytes) return Verdict::kNotHot;
    if (at_ == end_) return Verdict::kIncomplete;
    out_->path = {static_cast<uint16_t>(slash - begin_), static_cast<uint16_t>(length)};
    return kGoOn;
  }

  /** a-z, 0-9 and -, a letter first, and the slash behind it. */
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

  /** 36 characters, 8-4-4-4-12 hexadecimal digits of either case, into `id`. */
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

  /** `?ack=N`, `?hold=N`, or both in either order, or nothing. */
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
        if (Verdict v = number(&out_->ack, kNumberMax); v != kGoOn) return v;
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

  /** `?n=N`, or nothing. */
  Verdict throwQuery() {
    if (at_ == end_) return Verdict::kIncomplete;
    if (*at_ != '?') return kGoOn;
    out_->hasNumber = true;
    if (Verdict v = literal("?n="); v != kGoOn) return v;
    return number(&out_->number, kNumberMax);
  }

  /**
   * Plain decimal digits, no zero in front of others, up to `max` (kNumberMax or less, so the sum
   * can't overflow). Ends before the first byte that is no digit; goes on only when it is there.
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

  /** One header line, its CRLF included. */
  Verdict header() {
    const char* const name = at_;
    while (at_ != end_ && isToken(*at_)) ++at_;
    if (at_ == end_) return Verdict::kIncomplete;
    if (*at_ != ':' || at_ == name) return Verdict::kNotHot;
    const Name known = recognise(name, static_cast<size_t>(at_ - name));
    ++at_;
    if (known != Name::kPlain && !admit(known)) return Verdict::kNotHot;

    while (at_ != end_ && isBlank(*at_)) ++at_;
    const char* const value = at_;
    at_ = skipText(at_, end_);
    while (at_ != end_ && *at_ == '\t') at_ = skipText(at_ + 1, end_);
    const bool whole = at_ != end_;
    if (whole && *at_ != '\r') return Verdict::kNotHot;
    if (known != Name::kPlain && !judge(known, value, whole)) return Verdict::kNotHot;
    return literal("\r\n");
  }

  /** Whether a header of this name may stand here: not at all, or once. */
  bool admit(Name name) {
    if (name == Name::kNotHot) return false;
    const auto bit = static_cast<uint16_t>(1u << static_cast<unsigned>(name));
    const bool first = (seen_ & bit) == 0;
    seen_ |= bit;
    return first;
  }

  /** Whether the value from `value` to `at_` suits its header; `whole` tells that it ends there. */
  bool judge(Name name, const char* value, bool whole) {
    const auto length = static_cast<size_t>(at_ - value);
    switch (name) {
      case Name::kHost:
        return isHost({value, length}) && (length > 0 || !whole);
      // llhttp 9.3 refuses a tab behind a Content-Length, 9.4 takes it: no blanks behind these.
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
      // What only feeds ask about: of any other request they may be whatever they are.
      case Name::kAccept:
        return !isFeed() || readAccept({value, length}, whole, out_);
      case Name::kAcceptEncoding:
        return !watches() || readAcceptEncoding({value, length}, whole, out_);
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

  /** Digits alone, no zero in front of others, and 0 where the route takes no body. */
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
  bool watches() const { return isFeed() || out_->route == Route::kFeeds; }

  /** Whether it is GET /feeds. */
  bool isList() const { return out_->route == Route::kFeeds && out_->key.length > 0; }

  /** Whether the value is the word, of letters and hyphens in any case; or its start. */
  template <size_t Size>
  static bool isWord(const char* value, size_t length, const char (&word)[Size], bool whole) {
    if (length > Size - 1 || (whole && length < Size - 1)) return false;
    for (size_t i = 0; i < length; ++i) {
      const char c = value[i] >= 'A' && value[i] <= 'Z' ? value[i] + ('a' - 'A') : value[i];
      if (c != word[i]) return false;
    }
    return true;
  }

  /** The span from `value` to `at_` without the blanks at its end. */
  HeadSpan trimmed(const char* value) const {
    const char* last = at_;
    while (last != value && isBlank(last[-1])) --last;
    return {static_cast<uint16_t>(value - begin_), static_cast<uint16_t>(last - value)};
  }

  /** The empty line; a request without Host is refused (RFC 9112, section 3.2). */
  Verdict finish() {
    if ((seen_ & 1u << static_cast<unsigned>(Name::kHost)) == 0) return Verdict::kNotHot;
    if (Verdict v = literal("\r\n"); v != kGoOn) return v;
    out_->headLength = static_cast<uint32_t>(at_ - begin_);
    if (out_->stream && (seen_ & 1u << static_cast<unsigned>(Name::kLastEventId)) != 0) {
      out_->after = lastEventId_;
    }
    return Verdict::kHot;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  HotRequest* const out_;
  uint16_t seen_ = 0;  // one bit per Name
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
