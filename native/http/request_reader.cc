#include "request_reader.h"

#include <algorithm>

#include "characters.h"

namespace server {

namespace {

constexpr uint64_t kMaxLength = uint64_t{1} << 53;

/**
 * Whether a character may be in a field's value (RFC 9110, section 5.5); bytes above 127 are
 * obs-text.
 */
bool isText(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
}

/** Whether a character is visible US-ASCII, as in a target. */
bool isVisible(char c) { return c > 0x20 && c < 0x7f; }

/** Reads a head; `at_` is the current position. */
class Reader {
 public:
  Reader(std::string_view data, RequestHead* out) : data_(data), out_(out) {}

  ReadResult read() {
    // Empty lines before a request are skipped (RFC 9112, section 2.2).
    while (at_ < data_.size() && data_[at_] == '\r') {
      if (const ReadResult line = literal("\r\n"); line != ReadResult::kComplete) return line;
    }
    if (const ReadResult line = requestLine(); line != ReadResult::kComplete) return line;
    for (;;) {
      if (at_ == data_.size()) return ReadResult::kIncomplete;
      if (data_[at_] == '\r') return finish();
      Field field;
      if (const ReadResult line = readField(data_, &at_, &field); line != ReadResult::kComplete)
        return line;
      if (!readMeaning(field)) return ReadResult::kBad;
      out_->fields.push_back(field);
    }
  }

 private:
  ReadResult literal(std::string_view word) {
    const std::string_view left = data_.substr(at_, word.size());
    if (left != word.substr(0, left.size())) return ReadResult::kBad;
    if (left.size() < word.size()) return ReadResult::kIncomplete;
    at_ += word.size();
    return ReadResult::kComplete;
  }

  /** Reads characters of one kind, at least one, and the blank after them. */
  template <typename Is>
  ReadResult word(Is&& is, std::string_view* out) {
    const size_t first = at_;
    while (at_ < data_.size() && is(data_[at_])) ++at_;
    if (at_ == data_.size()) return ReadResult::kIncomplete;
    if (at_ == first || data_[at_] != ' ') return ReadResult::kBad;
    *out = data_.substr(first, at_ - first);
    ++at_;
    return ReadResult::kComplete;
  }

  ReadResult requestLine() {
    if (const ReadResult v = word(isToken, &out_->method); v != ReadResult::kComplete) return v;
    if (const ReadResult v = word(isVisible, &out_->target); v != ReadResult::kComplete) return v;
    if (const ReadResult v = literal("HTTP/1."); v != ReadResult::kComplete) return v;
    if (at_ == data_.size()) return ReadResult::kIncomplete;
    if (data_[at_] != '0' && data_[at_] != '1') return ReadResult::kBad;
    out_->isHttp10 = data_[at_++] == '0';
    return literal("\r\n");
  }

  /**
   * Reads the fields that affect the framing or the connection. Returns false for an invalid one.
   */
  bool readMeaning(const Field& field) {
    switch (field.name.size()) {
      case 4:
        return !isWord(field.name, "host") || (++hostCount_ == 1 && isHost(field.value));
      case 6:
        if (isWord(field.name, "expect")) readExpectation(field.value);
        return true;
      case 10:
        if (isWord(field.name, "connection")) readConnection(field.value);
        return true;
      case 14:
        return !isWord(field.name, "content-length") || readLength(field.value);
      case 17:
        return !isWord(field.name, "transfer-encoding") || readCoding(field.value);
      default:
        return true;
    }
  }

  void readExpectation(std::string_view value) {
    (isWord(value, "100-continue") ? out_->expectsContinue : hasUnknownExpectation_) = true;
  }

  /** Reads a list of options (RFC 9110, section 7.6.1); `close` overrides `keep-alive`. */
  void readConnection(std::string_view list) {
    while (!list.empty()) {
      const size_t comma = std::min(list.find(','), list.size());
      const std::string_view option = trimmed(list.substr(0, comma));
      hasClose_ = hasClose_ || isWord(option, "close");
      hasKeepAlive_ = hasKeepAlive_ || isWord(option, "keep-alive");
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
  }

  /** Reads a plain number; a repeated length has two readings (RFC 9112, section 6.3). */
  bool readLength(std::string_view value) {
    if (out_->framing != Framing::kNone || value.empty()) return false;
    uint64_t sum = 0;
    for (const char c : value) {
      if (!isDigit(c)) return false;
      sum = std::min(sum * 10 + static_cast<uint64_t>(c - '0'), kMaxLength);
    }
    out_->framing = Framing::kLength;
    out_->bodyLength = sum;
    return true;
  }

  /** Accepts only chunked, without a length, and not in 1.0 (RFC 9112, section 6.1). */
  bool readCoding(std::string_view value) {
    if (out_->framing != Framing::kNone || out_->isHttp10) return false;
    out_->framing = Framing::kChunked;
    return isWord(value, "chunked");
  }

  /** Reads the empty line and checks the head. */
  ReadResult finish() {
    if (const ReadResult v = literal("\r\n"); v != ReadResult::kComplete) return v;
    if (hostCount_ == 0 && !out_->isHttp10) return ReadResult::kBad;
    out_->headLength = static_cast<uint32_t>(at_);
    out_->keepsAlive =
        !hasClose_ && (!out_->isHttp10 || hasKeepAlive_) && out_->method != "CONNECT";
    // 1.0 has no expectations (RFC 9110, section 10.1.1).
    if (out_->isHttp10) {
      out_->expectsContinue = false;
    } else if (hasUnknownExpectation_) {
      return ReadResult::kExpectation;
    }
    return ReadResult::kComplete;
  }

  const std::string_view data_;
  RequestHead* const out_;
  size_t at_ = 0;
  unsigned hostCount_ = 0;
  bool hasClose_ = false;
  bool hasKeepAlive_ = false;
  bool hasUnknownExpectation_ = false;  // there is an unknown expectation
};

}  // namespace

std::string_view RequestHead::lastValue(std::string_view name) const {
  const auto found = std::find_if(fields.rbegin(), fields.rend(),
                                  [name](const Field& field) { return isWord(field.name, name); });
  return found == fields.rend() ? std::string_view() : found->value;
}

ReadResult readField(std::string_view data, size_t* at, Field* out) {
  const size_t first = *at;
  size_t end = first;
  while (end < data.size() && isToken(data[end])) ++end;
  if (end == data.size()) return ReadResult::kIncomplete;
  // No blank before the colon, and no folded line (RFC 9112, sections 5.1 and 5.2).
  if (end == first || data[end] != ':') return ReadResult::kBad;
  out->name = data.substr(first, end - first);
  const size_t value = ++end;
  while (end < data.size() && isText(data[end])) ++end;
  if (end == data.size()) return ReadResult::kIncomplete;
  if (data[end] != '\r') return ReadResult::kBad;
  out->value = trimmed(data.substr(value, end - value));
  if (end + 1 == data.size()) return ReadResult::kIncomplete;
  if (data[end + 1] != '\n') return ReadResult::kBad;
  *at = end + 2;
  return ReadResult::kComplete;
}

ReadResult readRequest(std::string_view data, size_t maxBytes, RequestHead* out) {
  *out = RequestHead{};
  const ReadResult reading = Reader(data.substr(0, maxBytes), out).read();
  return reading == ReadResult::kIncomplete && data.size() >= maxBytes ? ReadResult::kTooLarge
                                                                       : reading;
}

// ---- Chunked bodies -----------------------------------------------------------------------------

namespace {

/** Most digits of a size: more than any body here needs. */
constexpr size_t kMaxSizeDigits = 12;

/**
 * Whether the text after a size is empty or extensions. Their content is not checked. Blanks may
 * only stand before them.
 */
bool areExtensions(std::string_view text) {
  if (text.empty()) return true;
  while (!text.empty() && isBlank(text.front())) text.remove_prefix(1);
  return text.starts_with(';') && std::all_of(text.begin(), text.end(), isText);
}

}  // namespace

ChunkDecoder::State ChunkDecoder::decode(std::string_view* data, size_t maxBytes,
                                         std::string* body) {
  while (!data->empty()) {
    if (part_ == Part::kData) {
      const size_t length = std::min<uint64_t>(chunkBytesLeft_, data->size());
      if (length > maxBytes - body->size()) return State::kTooLong;
      body->append(data->data(), length);
      data->remove_prefix(length);
      chunkBytesLeft_ -= length;
      if (chunkBytesLeft_ == 0) part_ = Part::kDataEnd;
      continue;
    }
    if (const State line = readLine(data); line != State::kWhole) return line;
    switch (part_) {
      case Part::kSize:
        if (parseSize() == State::kBad) return State::kBad;
        // The size exceeds the bound: fails before the data come.
        if (chunkBytesLeft_ > maxBytes - body->size()) return State::kTooLong;
        break;
      case Part::kDataEnd:
        if (!line_.empty()) return State::kBad;
        part_ = Part::kSize;
        break;
      default:
        if (parseTrailer() == State::kBad) return State::kBad;
        if (part_ == Part::kEnd) return State::kWhole;
    }
    line_.clear();
  }
  return State::kIncomplete;
}

/** Reads more of a line; kWhole: `line_` has all of it. */
ChunkDecoder::State ChunkDecoder::readLine(std::string_view* data) {
  while (!data->empty()) {
    const char c = data->front();
    data->remove_prefix(1);
    const bool followsCr = !line_.empty() && line_.back() == '\r';
    if (followsCr != (c == '\n')) return State::kBad;  // no CR alone, no LF alone
    if (followsCr) {
      line_.pop_back();
      return State::kWhole;
    }
    if (line_.size() == kMaxExtraBytes) return State::kBad;
    line_ += c;
  }
  return State::kIncomplete;
}

ChunkDecoder::State ChunkDecoder::parseSize() {
  size_t digits = 0;
  chunkBytesLeft_ = 0;
  for (; digits < line_.size() && hexOf(line_[digits]) != kNoHex; ++digits) {
    if (digits == kMaxSizeDigits) return State::kBad;
    chunkBytesLeft_ = chunkBytesLeft_ << 4 | hexOf(line_[digits]);
  }
  const std::string_view extensions = std::string_view(line_).substr(digits);
  extraBytes_ += extensions.size();
  if (digits == 0 || extraBytes_ > kMaxExtraBytes || !areExtensions(extensions)) return State::kBad;
  part_ = chunkBytesLeft_ > 0 ? Part::kData : Part::kTrailer;
  return State::kIncomplete;
}

ChunkDecoder::State ChunkDecoder::parseTrailer() {
  if (line_.empty()) {
    part_ = Part::kEnd;
    return State::kWhole;
  }
  extraBytes_ += line_.size();
  line_ += "\r\n";
  size_t at = 0;
  Field field;
  const bool isValid =
      extraBytes_ <= kMaxExtraBytes && readField(line_, &at, &field) == ReadResult::kComplete;
  return isValid ? State::kIncomplete : State::kBad;
}

}  // namespace server
