#include "chunks.h"

#include <algorithm>

#include "characters.h"
#include "request_reader.h"

namespace server {

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
  return text.starts_with(';') && std::all_of(text.begin(), text.end(), [](char c) {
           return (static_cast<uint8_t>(c) >= 0x20 && c != 0x7f) || c == '\t';
         });
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
