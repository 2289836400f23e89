// Reads an HTTP/1.1 answer where it lies. Only what the wire contract promises is understood: a
// status, Content-Length (204 may go without), Connection: close, Retry-After. Anything else, above
// all a chunked body, is a broken promise and is reported as such.
#ifndef SPRITES_SWARM_RESPONSE_H_
#define SPRITES_SWARM_RESPONSE_H_

#include <cstdint>
#include <string_view>

namespace swarm {

struct Response {
  int status = 0;
  bool close = false;       ///< the server will close the connection
  uint32_t retryAfter = 0;  ///< seconds, 0 when absent
  std::string_view lastModified, etag;
  std::string_view body;  ///< points into the bytes given, as those do
};

enum class ReadState { kMore, kDone, kBad };

/** No answer of the contract is longer: a poll answer has a byte bound at the server. */
constexpr size_t kLongestResponse = 16u << 20;

/**
 * @param bytes all that came in since the request was written
 * @param response filled when kDone; its body points into `bytes`
 * @return kMore until the answer is whole; kBad when it is no answer of the contract, or when more
 *     bytes follow than were asked for
 */
ReadState readResponse(std::string_view bytes, Response* response);

}  // namespace swarm

#endif  // SPRITES_SWARM_RESPONSE_H_
