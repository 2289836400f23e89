#include "feed_grammar.h"

#include <algorithm>

#include "base/feed_names.h"
#include "characters.h"

namespace server {

namespace {

bool hasWord(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

/** Reads a target; each method reads on from `at` and returns whether to go on. */
struct TargetReader {
  const char* const begin;
  const char* at;
  const char* const end;
  HotRequest* const out;

  HeadSpan spanFrom(const char* first) const {
    return {static_cast<uint16_t>(first - begin), static_cast<uint16_t>(at - first)};
  }

  Verdict literal(std::string_view word) {
    const std::string_view left(at, end - at);
    const size_t length = std::min(left.size(), word.size());
    if (left.substr(0, length) != word.substr(0, length)) return Verdict::kNotHot;
    if (length < word.size()) return Verdict::kIncomplete;
    at += length;
    return kGoOn;
  }

  /** Reads a key, as isFeedKey accepts it; decides at the first byte that can't be part of one. */
  Verdict key() {
    const char* const first = at;
    const char* segment = at;
    const auto isSegment = [&] {
      const std::string_view text(segment, at - segment);
      return !text.empty() && text != "." && text != "..";
    };
    for (; at != end && *at != '?' && *at != ' '; ++at) {
      if (static_cast<size_t>(at - first) == kKeyLength) return Verdict::kNotHot;
      if (*at == '/') {
        if (!isSegment()) return Verdict::kNotHot;
        segment = at + 1;
      } else if (!isKeyCharacter(*at)) {
        return Verdict::kNotHot;
      }
    }
    if (at == end) {
      const bool full = static_cast<size_t>(at - first) == kKeyLength;
      return full && !isSegment() ? Verdict::kNotHot : Verdict::kIncomplete;
    }
    if (!isSegment()) return Verdict::kNotHot;
    out->key = spanFrom(first);
    return kGoOn;
  }

  Verdict cursor() {
    const char* const first = at;
    while (at != end && isCursorCharacter(*at)) {
      if (static_cast<size_t>(++at - first) > kCursorLength) return Verdict::kNotHot;
    }
    if (at == end) return Verdict::kIncomplete;
    out->after = spanFrom(first);
    return kGoOn;
  }

  /** Reads plain decimal digits without leading zeros. */
  Verdict hold() {
    const char* const first = at;
    uint64_t value = 0;
    for (; at != end && *at >= '0' && *at <= '9'; ++at) {
      if (at != first && value == 0) return Verdict::kNotHot;
      value = value * 10 + static_cast<uint64_t>(*at - '0');
      if (value > UINT32_MAX) return Verdict::kNotHot;
    }
    if (at == end) return Verdict::kIncomplete;
    out->hold = static_cast<uint32_t>(value);
    return at == first ? Verdict::kNotHot : kGoOn;
  }

  Verdict delta() {
    if (at == end) return Verdict::kIncomplete;
    if (*at != '0' && *at != '1') return Verdict::kNotHot;
    out->delta = *at++ == '1';
    return at == end ? Verdict::kIncomplete : kGoOn;
  }

  /** Reads `turn`, which only makes the URL unique: its value is ignored. */
  Verdict turn() {
    const char* const first = at;
    while (at != end && isCursorCharacter(*at)) {
      if (static_cast<size_t>(++at - first) > kTurnLength) return Verdict::kNotHot;
    }
    if (at == end) return Verdict::kIncomplete;
    return at == first ? Verdict::kNotHot : kGoOn;
  }

  /** Reads a list of keys and cursors by their characters only: watch_reader.h reads its items. */
  Verdict list() {
    const char* const first = at;
    const auto isOfList = [](char c) {
      return isKeyCharacter(c) || c == '/' || c == ':' || c == ',';
    };
    while (at != end && isOfList(*at)) ++at;
    if (at == end) return Verdict::kIncomplete;
    out->key = spanFrom(first);
    return at == first ? Verdict::kNotHot : kGoOn;
  }

  /** Reads a grant: the characters of a token, at least one. */
  Verdict grant() {
    const char* const first = at;
    while (at != end && (isCursorCharacter(*at) || *at == '.' || *at == '_')) ++at;
    if (at == end) return Verdict::kIncomplete;
    out->grant = spanFrom(first);
    return at == first ? Verdict::kNotHot : kGoOn;
  }

  /**
   * Reads `after` (of several feeds: `watch`), `hold`, `delta`, `turn` and `grant`, each at most
   * once, in any order; or no query.
   */
  Verdict query() {
    const bool ofMany = out->route == Route::kFeeds;
    bool hasAfter = false;
    bool hasDelta = false;
    bool hasTurn = false;
    if (*at != '?') return kGoOn;
    do {
      ++at;
      if (at == end) return Verdict::kIncomplete;
      Verdict verdict;
      if (*at == 'w' && ofMany && out->key.length == 0) {
        verdict = literal("watch=");
        if (verdict == kGoOn) verdict = list();
      } else if (*at == 'a' && !ofMany && !hasAfter) {
        hasAfter = true;
        verdict = literal("after=");
        if (verdict == kGoOn) verdict = cursor();
      } else if (*at == 'h' && !out->hasHold) {
        out->hasHold = true;
        verdict = literal("hold=");
        if (verdict == kGoOn) verdict = hold();
      } else if (*at == 'd' && !hasDelta) {
        hasDelta = true;
        verdict = literal("delta=");
        if (verdict == kGoOn) verdict = delta();
      } else if (*at == 't' && !hasTurn) {
        hasTurn = true;
        verdict = literal("turn=");
        if (verdict == kGoOn) verdict = turn();
      } else if (*at == 'g' && out->grant.length == 0) {
        verdict = literal("grant=");
        if (verdict == kGoOn) verdict = grant();
      } else {
        verdict = Verdict::kNotHot;
      }
      if (verdict != kGoOn) return verdict;
    } while (*at == '&');
    return *at == ' ' ? kGoOn : Verdict::kNotHot;
  }
};

}  // namespace

Verdict readFeedTarget(const char* begin, const char** at, const char* end, HotRequest* out) {
  TargetReader target = {begin, *at, end, out};
  Verdict verdict = target.key();
  if (verdict == kGoOn) verdict = target.query();
  *at = target.at;
  return verdict;
}

Verdict readFeedsQuery(const char* begin, const char** at, const char* end, HotRequest* out) {
  TargetReader target = {begin, *at, end, out};
  const Verdict verdict = target.query();
  *at = target.at;
  return verdict == kGoOn && out->key.length == 0 ? Verdict::kNotHot : verdict;
}

bool readAccept(std::string_view value, bool whole, HotRequest* out) {
  value = trimmed(value);
  // An event source sends it alone; in a list it may have a weight.
  if (isWord(value, "text/event-stream")) {
    out->stream = whole;
    return true;
  }
  return !hasWord(value, "text/event-stream");
}

bool readAcceptEncoding(std::string_view value, bool whole, HotRequest* out) {
  while (true) {
    const size_t comma = value.find(',');
    const std::string_view member = trimmed(value.substr(0, comma));
    const size_t parameters = member.find(';');
    if (parameters != std::string_view::npos &&
        isWord(trimmed(member.substr(0, parameters)), "gzip")) {
      return false;
    }
    if (isWord(member, "gzip")) out->gzip = whole;
    if (comma == std::string_view::npos) return true;
    value.remove_prefix(comma + 1);
  }
}

bool readLastEventId(std::string_view value) {
  value = trimmed(value);
  if (value.size() > kCursorLength) return false;
  return std::all_of(value.begin(), value.end(), isCursorCharacter);
}

}  // namespace server
