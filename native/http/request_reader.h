// The reader of every request that is not hot: all of HTTP/1.1 and 1.0, as RFC 9112 has it.
//
//   OPTIONS http://sprites.example/feed/a HTTP/1.1      any method, origin, absolute or other form
//   Host: sprites.example                               any fields; those that frame are judged
//   Transfer-Encoding: chunked
//   (empty line)
//   3;name=value … 0 … trailer fields                   chunks.h
//
// It mends nothing: whatever could be read in two ways is refused, and its connection closed (two
// readings of one request are how requests are smuggled).
#ifndef SPRITES_REQUEST_READER_H_
#define SPRITES_REQUEST_READER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace server {

/** A field line: its name as it was sent, its value without the blanks around it. */
struct Field {
  std::string_view name;
  std::string_view value;
};

/** How a body is delimited (RFC 9112, section 6). */
enum class Framing : uint8_t { kNone, kLength, kChunked };

/** A request's head. The views point into the bytes it was read from. */
struct RequestHead {
  std::string_view method;
  std::string_view target;
  std::vector<Field> fields;
  uint64_t bodyLength;  // of kLength; at most 2^53
  uint32_t headLength;  // bytes of head, empty lines before and behind it included
  Framing framing;
  bool http10;
  bool stays;    // the connection may go on behind the answer
  bool expects;  // the client waits for 100 Continue before it sends the body

  /** The value of the last field of that name, in lower case; empty where there is none. */
  std::string_view last(std::string_view name) const;
};

/** What the reader says of the bytes it was given. */
enum class Reading : uint8_t {
  kIncomplete,  // well formed so far; more bytes are needed
  kRead,
  kBad,          // 400
  kTooLarge,     // 431: the head is longer than `most`
  kExpectation,  // 417: an expectation other than 100-continue
};

/**
 * Reads a head at the start of `data`, of `most` bytes at most. Costs one pass; called again from
 * the start as more bytes come. `out` is filled only when it was read.
 */
Reading readRequest(std::string_view data, size_t most, RequestHead* out);

/**
 * Reads one field line, its CRLF included, and moves `*at` behind it.
 *
 * @return kRead, kIncomplete or kBad
 */
Reading readField(std::string_view data, size_t* at, Field* out);

}  // namespace server

#endif  // SPRITES_REQUEST_READER_H_
