// The reader of all requests that are not hot: HTTP/1.1 and 1.0, by RFC 9112.
//
//   OPTIONS http://sprites.example/feed/a HTTP/1.1      any method, origin, absolute or other form
//   Host: sprites.example                               any fields; those that frame are judged
//   Transfer-Encoding: chunked
//   (empty line)
//   3;name=value … 0 … trailer fields                   ChunkDecoder
//
// It repairs nothing. A request with two possible readings is refused, and its connection closed:
// two readings of one request are how requests are smuggled.
#ifndef SPRITES_REQUEST_READER_H_
#define SPRITES_REQUEST_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace server {

/** A field line: the name as sent, the value without the blanks around it. */
struct Field {
  std::string_view name;
  std::string_view value;
};

/** How a body is delimited (RFC 9112, section 6). */
enum class Framing : uint8_t { kNone, kLength, kChunked };

/** A request's head. The views point into the bytes that were read. */
struct RequestHead {
  std::string_view method;
  std::string_view target;
  std::vector<Field> fields;
  uint64_t bodyLength;  // of kLength; at most 2^53
  uint32_t headLength;  // bytes of the head, with the empty lines before and after it
  Framing framing;
  bool isHttp10;
  bool keepsAlive;       // the connection may stay open after the answer
  bool expectsContinue;  // the client waits for 100 Continue before it sends the body

  /** The value of the last field with that name, which is in lower case; empty: none. */
  std::string_view lastValue(std::string_view name) const;
};

/** The reader's verdict on the bytes it was given. */
enum class ReadResult : uint8_t {
  kIncomplete,  // well-formed so far; more bytes are needed
  kComplete,
  kBad,          // 400
  kTooLarge,     // 431: the head is longer than the bound
  kExpectation,  // 417: an expectation other than 100-continue
};

/**
 * Reads a head of at most `maxBytes` bytes at the start of `data`, in one pass. To be called again,
 * from the start, when more bytes have come. `out` is filled only with kComplete.
 */
ReadResult readRequest(std::string_view data, size_t maxBytes, RequestHead* out);

/**
 * Reads one field line, its CRLF included, and moves `*at` behind it.
 *
 * @return kComplete, kIncomplete or kBad
 */
ReadResult readField(std::string_view data, size_t* at, Field* out);

/**
 * Decodes a chunked body as it arrives (section 7.1), in pieces of any size.
 *
 *   5;name="a;b"\r\n  h e l l o \r\n  0\r\n  Field: of the trailer\r\n  \r\n
 *   └ size line       └ data          └ last  └ read and dropped
 *
 * Bounds: kMaxExtraBytes for a line, and as many for all extensions and trailer fields together.
 */
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

#endif  // SPRITES_REQUEST_READER_H_
