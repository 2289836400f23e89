// Event streams, and answers of polls, in gzip (RFC 1952). Each event is compressed by itself: it
// refers to no earlier event and ends at a byte (RFC 1951, section 3.2), so that all streams get
// the same bytes.
//
//   head │ event: a block, and an empty one that ends at a byte │ event │ …
//
// A stream ends with its last chunk and has no trailer, since that would differ for each stream.
// The answer of a poll is a whole member: head, one event, an empty last block, trailer. Rejected:
// a history for each stream (a third fewer bytes for short events, but some 40 kB and a compression
// for each watcher), consecutive gzip members (browsers read only the first).
#ifndef SPRITES_EVENT_GZIP_H_
#define SPRITES_EVENT_GZIP_H_

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace server {

constexpr std::string_view kGzipHead{"\x1f\x8b\x08\0\0\0\0\0\0\xff", 10};

/**
 * Bounds, in bytes, of what is compressed: shorter events get hardly smaller, longer ones take too
 * much of a turn.
 */
constexpr uint64_t kMinCompressedEvent = 256;
constexpr uint64_t kMaxCompressedEvent = 16384;

/** Most bytes of a stored block, and bytes of its head. */
constexpr uint32_t kMaxStoredBlock = 65535;
constexpr uint32_t kStoredHeadBytes = 5;

/** Appends the end of a member whose only event is `text`. */
inline void appendGzipEnd(std::string* to, std::string_view text) {
  to->append({'\3', '\0'});
  const auto* bytes = reinterpret_cast<const Bytef*>(text.data());
  const auto sum = static_cast<uint32_t>(crc32(0, bytes, static_cast<uInt>(text.size())));
  for (const uint32_t word : {sum, static_cast<uint32_t>(text.size())}) {
    for (uint32_t shift = 0; shift < 32; shift += 8) {
      to->push_back(static_cast<char>(word >> shift & 255));
    }
  }
}

inline void appendStoredHead(std::string* to, uint32_t length) {
  const auto low = static_cast<char>(length & 255);
  const auto high = static_cast<char>(length >> 8);
  to->append({'\0', low, high, static_cast<char>(~low), static_cast<char>(~high)});
}

class EventCompressor {
 public:
  // A window of 8 kB and little other memory: it is cleared for each event.
  EventCompressor()
      : initialized_(deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -13, 6,
                                  Z_DEFAULT_STRATEGY) == Z_OK) {}
  ~EventCompressor() {
    if (initialized_) deflateEnd(&stream_);
  }
  EventCompressor(const EventCompressor&) = delete;
  EventCompressor& operator=(const EventCompressor&) = delete;

  /** Returns the event's block, valid until the next call; empty: it would not be smaller. */
  std::string_view operator()(std::string_view event) {
    if (!initialized_ || deflateReset(&stream_) != Z_OK) return {};
    block_.resize(event.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(event.data()));
    stream_.avail_in = static_cast<uInt>(event.size());
    stream_.next_out = reinterpret_cast<Bytef*>(block_.data());
    stream_.avail_out = static_cast<uInt>(block_.size());
    if (deflate(&stream_, Z_SYNC_FLUSH) != Z_OK || stream_.avail_out == 0) return {};
    return std::string_view(block_).substr(0, block_.size() - stream_.avail_out);
  }

 private:
  z_stream stream_ = {};
  const bool initialized_;
  std::string block_;
};

}  // namespace server

#endif  // SPRITES_EVENT_GZIP_H_
