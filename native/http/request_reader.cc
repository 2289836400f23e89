#include "request_reader.h"

#include <algorithm>

#include "characters.h"

namespace server {

namespace {

constexpr uint64_t kLengthMax = uint64_t{1} << 53;

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

  Reading read() {
    // Empty lines before a request are skipped (RFC 9112, section 2.2).
    while (at_ < data_.size() && data_[at_] == '\r') {
      if (const Reading line = literal("\r\n"); line != Reading::kRead) return line;
    }
    if (const Reading line = requestLine(); line != Reading::kRead) return line;
    for (;;) {
      if (at_ == data_.size()) return Reading::kIncomplete;
      if (data_[at_] == '\r') return finish();
      Field field;
      if (const Reading line = readField(data_, &at_, &field); line != Reading::kRead) return line;
      if (!judge(field)) return Reading::kBad;
      out_->fields.push_back(field);
    }
  }

 private:
  Reading literal(std::string_view word) {
    const std::string_view left = data_.substr(at_, word.size());
    if (left != word.substr(0, left.size())) return Reading::kBad;
    if (left.size() < word.size()) return Reading::kIncomplete;
    at_ += word.size();
    return Reading::kRead;
  }

  /** Reads characters of one kind, at least one, and the blank after them. */
  template <typename Is>
  Reading word(Is&& is, std::string_view* out) {
    const size_t first = at_;
    while (at_ < data_.size() && is(data_[at_])) ++at_;
    if (at_ == data_.size()) return Reading::kIncomplete;
    if (at_ == first || data_[at_] != ' ') return Reading::kBad;
    *out = data_.substr(first, at_ - first);
    ++at_;
    return Reading::kRead;
  }

  Reading requestLine() {
    if (const Reading v = word(isToken, &out_->method); v != Reading::kRead) return v;
    if (const Reading v = word(isVisible, &out_->target); v != Reading::kRead) return v;
    if (const Reading v = literal("HTTP/1."); v != Reading::kRead) return v;
    if (at_ == data_.size()) return Reading::kIncomplete;
    if (data_[at_] != '0' && data_[at_] != '1') return Reading::kBad;
    out_->http10 = data_[at_++] == '0';
    return literal("\r\n");
  }

  /**
   * Reads the fields that affect the framing or the connection. Returns false for an invalid one.
   */
  bool judge(const Field& field) {
    switch (field.name.size()) {
      case 4:
        return !isWord(field.name, "host") || (++hosts_ == 1 && isHost(field.value));
      case 6:
        if (isWord(field.name, "expect")) takeExpectation(field.value);
        return true;
      case 10:
        if (isWord(field.name, "connection")) takeConnection(field.value);
        return true;
      case 14:
        return !isWord(field.name, "content-length") || takeLength(field.value);
      case 17:
        return !isWord(field.name, "transfer-encoding") || takeCoding(field.value);
      default:
        return true;
    }
  }

  void takeExpectation(std::string_view value) {
    (isWord(value, "100-continue") ? out_->expects : strange_) = true;
  }

  /** Reads a list of options (RFC 9110, section 7.6.1); `close` overrides `keep-alive`. */
  void takeConnection(std::string_view list) {
    while (!list.empty()) {
      const size_t comma = std::min(list.find(','), list.size());
      const std::string_view option = trimmed(list.substr(0, comma));
      closes_ = closes_ || isWord(option, "close");
      keeps_ = keeps_ || isWord(option, "keep-alive");
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
  }

  /** Reads a plain number; a repeated length has two readings (RFC 9112, section 6.3). */
  bool takeLength(std::string_view value) {
    if (out_->framing != Framing::kNone || value.empty()) return false;
    uint64_t sum = 0;
    for (const char c : value) {
      if (!isDigit(c)) return false;
      sum = std::min(sum * 10 + static_cast<uint64_t>(c - '0'), kLengthMax);
    }
    out_->framing = Framing::kLength;
    out_->bodyLength = sum;
    return true;
  }

  /** Accepts only chunked, without a length, and not in 1.0 (RFC 9112, section 6.1). */
  bool takeCoding(std::string_view value) {
    if (out_->framing != Framing::kNone || out_->http10) return false;
    out_->framing = Framing::kChunked;
    return isWord(value, "chunked");
  }

  /** Reads the empty line and checks the head. */
  Reading finish() {
    if (const Reading v = literal("\r\n"); v != Reading::kRead) return v;
    if (hosts_ == 0 && !out_->http10) return Reading::kBad;
    out_->headLength = static_cast<uint32_t>(at_);
    out_->stays = !closes_ && (!out_->http10 || keeps_) && out_->method != "CONNECT";
    // 1.0 has no expectations (RFC 9110, section 10.1.1).
    if (out_->http10) {
      out_->expects = false;
    } else if (strange_) {
      return Reading::kExpectation;
    }
    return Reading::kRead;
  }

  const std::string_view data_;
  RequestHead* const out_;
  size_t at_ = 0;
  unsigned hosts_ = 0;
  bool closes_ = false;
  bool keeps_ = false;
  bool strange_ = false;  // there is an unknown expectation
};

}  // namespace

std::string_view RequestHead::last(std::string_view name) const {
  const auto found = std::find_if(fields.rbegin(), fields.rend(),
                                  [name](const Field& field) { return isWord(field.name, name); });
  return found == fields.rend() ? std::string_view() : found->value;
}

Reading readField(std::string_view data, size_t* at, Field* out) {
  const size_t first = *at;
  size_t end = first;
  while (end < data.size() && isToken(data[end])) ++end;
  if (end == data.size()) return Reading::kIncomplete;
  // No blank before the colon, and no folded line (RFC 9112, sections 5.1 and 5.2).
  if (end == first || data[end] != ':') return Reading::kBad;
  out->name = data.substr(first, end - first);
  const size_t value = ++end;
  while (end < data.size() && isText(data[end])) ++end;
  if (end == data.size()) return Reading::kIncomplete;
  if (data[end] != '\r') return Reading::kBad;
  out->value = trimmed(data.substr(value, end - value));
  if (end + 1 == data.size()) return Reading::kIncomplete;
  if (data[end + 1] != '\n') return Reading::kBad;
  *at = end + 2;
  return Reading::kRead;
}

Reading readRequest(std::string_view data, size_t most, RequestHead* out) {
  *out = RequestHead{};
  const Reading reading = Reader(data.substr(0, most), out).read();
  return reading == Reading::kIncomplete && data.size() >= most ? Reading::kTooLarge : reading;
}

}  // namespace server
