#include "watch_reader.h"

#include "base/json_grammar.h"

namespace server {

namespace {

WatchRequest emptyRequest() {
  WatchRequest watch = {};
  watch.hold = kNoFeedHold;
  return watch;
}

/**
 * Adds a feed. Returns false when the key or cursor is invalid, the key is there already, or there
 * are too many.
 */
bool addFeed(std::string_view key, std::string_view after, WatchRequest* watch) {
  if (watch->count == kFeedsAtOnce || !isFeedKey(key)) return false;
  if (!after.empty() && !isCursor(after)) return false;
  for (uint32_t i = 0; i < watch->count; ++i) {
    if (watch->wanted[i].key == key) return false;
  }
  watch->wanted[watch->count++] = {key, after};
  return true;
}

/** Reads a body; each method reads on and returns whether it found its part. */
class WatchReader {
 public:
  WatchReader(std::string_view body, WatchRequest* watch)
      : at_(body.data()), end_(body.data() + body.size()), watch_(watch) {}

  bool read() {
    *watch_ = emptyRequest();
    bool hasHold = false;
    bool hasDelta = false;
    if (!acceptSign('{')) return false;
    do {
      std::string_view name;
      if (!readText(&name) || !acceptSign(':')) return false;
      // A repeated name would count as the last one: JavaScript decides.
      if (name == "hold" && !hasHold) {
        hasHold = true;
        if (!readNumber(&watch_->hold)) return false;
      } else if (name == "delta" && !hasDelta) {
        hasDelta = true;
        if (!readFlag(&watch_->delta)) return false;
      } else if (name == "feeds" && watch_->count == 0) {
        if (!readFeeds()) return false;
      } else {
        return false;
      }
    } while (acceptSign(','));
    return acceptSign('}') && isAtEnd() && watch_->count > 0;
  }

 private:
  void skipBlanks() { at_ = base::json::skipSpace(at_, end_); }

  bool isAtEnd() {
    skipBlanks();
    return at_ == end_;
  }

  bool acceptSign(char sign) {
    skipBlanks();
    if (at_ == end_ || *at_ != sign) return false;
    ++at_;
    return true;
  }

  /** Reads a string without escapes; the caller checks its characters. */
  bool readText(std::string_view* out) {
    if (!acceptSign('"')) return false;
    const char* const first = at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
    if (at_ == end_ || *at_ == '\\') return false;
    *out = {first, static_cast<size_t>(at_ - first)};
    ++at_;
    return true;
  }

  bool readNumber(uint32_t* out) {
    skipBlanks();
    const char* const first = at_;
    uint64_t value = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      if (at_ != first && value == 0) return false;
      value = value * 10 + static_cast<uint64_t>(*at_ - '0');
      if (value >= kNoFeedHold) return false;
    }
    *out = static_cast<uint32_t>(value);
    return at_ != first;
  }

  bool acceptWord(std::string_view word) {
    if (std::string_view(at_, end_ - at_).substr(0, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool readFlag(bool* out) {
    skipBlanks();
    *out = acceptWord("true");
    return *out || acceptWord("false");
  }

  bool readFeeds() {
    if (!acceptSign('{')) return false;
    do {
      std::string_view key;
      std::string_view after;
      if (!readText(&key) || !acceptSign(':') || !readText(&after) || !addFeed(key, after, watch_))
        return false;
    } while (acceptSign(','));
    return acceptSign('}');
  }

  const char* at_;
  const char* const end_;
  WatchRequest* const watch_;
};

}  // namespace

bool readWatch(std::string_view body, WatchRequest* watch) {
  return WatchReader(body, watch).read();
}

bool readWatchList(std::string_view list, WatchRequest* watch) {
  *watch = emptyRequest();
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view one = list.substr(0, comma);
    const size_t colon = one.find(':');
    if (colon == std::string_view::npos) return false;
    if (!addFeed(one.substr(0, colon), one.substr(colon + 1), watch)) return false;
    if (comma == std::string_view::npos) return true;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace server
