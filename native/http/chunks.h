// Decodes a chunked body as it arrives (RFC 9112, section 7.1), in pieces of any size.
//
//   5;name="a;b"\r\n  h e l l o \r\n  0\r\n  Field: of the trailer\r\n  \r\n
//   └ size line       └ data          └ last  └ read and dropped
//
// Bounds: kMaxExtraBytes for a line, and as many for all extensions and trailer fields together.
#ifndef SPRITES_CHUNKS_H_
#define SPRITES_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace server {

class ChunkDecoder {
 public:
  static constexpr size_t kMaxExtraBytes = 4096;

  enum class State : uint8_t { kIncomplete, kWhole, kTooLong, kBad };

  /**
   * Decodes from `*data`, and moves it behind the bytes read. Appends at most `maxBytes` bytes to
   * `body`.
   */
  State decode(std::string_view* data, size_t maxBytes, std::string* body);

 private:
  enum class Part : uint8_t { kSize, kData, kDataEnd, kTrailer, kEnd };

  State readLine(std::string_view* data);
  State parseSize();
  State parseTrailer();

  Part part_ = Part::kSize;
  uint64_t chunkBytesLeft_ = 0;  // bytes of the chunk that are still to come
  size_t extraBytes_ = 0;        // bytes of extensions and trailer so far
  std::string line_;             // the line being read, without its CRLF
};

}  // namespace server

#endif  // SPRITES_CHUNKS_H_
