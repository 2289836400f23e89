// A chunked body, decoded as it comes (RFC 9112, section 7.1), however it is cut.
//
//   5;name="a;b"\r\n  h e l l o \r\n  0\r\n  Field: of the trailer\r\n  \r\n
//   └ size line       └ data          └ last  └ read and thrown away
//
// Bounds: a line, and all extensions and trailer fields together, each kExtraBytes.
#ifndef SPRITES_CHUNKS_H_
#define SPRITES_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace server {

class Chunks {
 public:
  static constexpr size_t kExtraBytes = 4096;

  enum class State : uint8_t { kMore, kWhole, kTooMuch, kBad };

  /** Decodes from `*data` on, which it moves behind what it took, up to `most` bytes in `body`. */
  State take(std::string_view* data, size_t most, std::string* body);

 private:
  enum class Part : uint8_t { kSize, kData, kDataEnd, kTrailer, kEnd };

  State takeLine(std::string_view* data);
  State takeSize();
  State takeTrailer();

  Part part_ = Part::kSize;
  uint64_t left_ = 0;      // bytes of the chunk that have not come
  size_t extraBytes_ = 0;  // of extensions and trailer, so far
  std::string line_;       // that is coming, without its CRLF
};

}  // namespace server

#endif  // SPRITES_CHUNKS_H_
