// Reads an HTTP/1.1 answer where it lies: heads of any server that is measured, and whole answers
// of the wire contract, which promises a status, Content-Length (204 may go without), Connection:
// close and Retry-After.
#ifndef SPRITES_SWARM_HTTP_H_
#define SPRITES_SWARM_HTTP_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace swarm {

/** A head's length of what follows it, where it names none. */
constexpr uint64_t kNoLength = UINT64_MAX;

/** No head is longer. */
constexpr size_t kLongestHead = 8192;

struct Head {
  size_t size = 0;  ///< bytes, with the empty line
  int status = 0;
  bool close = false;          ///< the server will close the connection
  bool chunked = false;        ///< it names a transfer encoding
  bool isEventStream = false;  ///< by its Content-Type
  uint32_t retryAfter = 0;     ///< seconds, 0 when absent
  uint64_t length = kNoLength;
  std::string_view lastModified, etag;  ///< point into the bytes given
};

struct Response : Head {
  std::string_view body;  ///< points into the bytes given
};

enum class ReadState { kMore, kDone, kBad };

/** No answer of the contract is longer: a poll answer has a byte bound at the server. */
constexpr size_t kLongestResponse = 16u << 20;

/** @return kMore until the head is whole; kBad when it is none */
ReadState readHead(std::string_view bytes, Head* head);

/**
 * @param bytes all that came in since the request was written
 * @param response filled when kDone; its body points into `bytes`
 * @return kMore until the answer is whole; kBad when it is no answer of the contract, as one in
 *     chunks, or when more bytes follow than were asked for
 */
ReadState readResponse(std::string_view bytes, Response* response);

}  // namespace swarm

#endif  // SPRITES_SWARM_HTTP_H_
