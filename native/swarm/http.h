// Reads HTTP/1.1 answers without copies: heads of any measured server, and whole answers of the
// wire contract, which promises a status, Content-Length (optional for 204), Connection: close and
// Retry-After.
#ifndef SPRITES_SWARM_HTTP_H_
#define SPRITES_SWARM_HTTP_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace swarm {

/** Head::contentLength of a head without Content-Length. */
constexpr uint64_t kNoContentLength = UINT64_MAX;

/** Longest head, in bytes. */
constexpr size_t kLongestHead = 8192;

struct Head {
  size_t headBytes = 0;  ///< length of the head with the empty line, in bytes
  int status = 0;
  bool willClose = false;      ///< the server will close the connection
  bool isChunked = false;      ///< the head has a Transfer-Encoding
  bool isEventStream = false;  ///< the Content-Type is text/event-stream
  uint32_t retryAfter = 0;     ///< seconds; 0: absent
  uint64_t contentLength = kNoContentLength;
  std::string_view lastModified, etag;  ///< views of the read bytes
};

struct Response : Head {
  std::string_view body;  ///< a view of the read bytes
};

enum class ReadState { kMore, kDone, kMalformed };

/** Longest answer of the contract, in bytes: the server bounds its poll answers. */
constexpr size_t kLongestResponse = 16u << 20;

/** @return kMore: the head is incomplete; kMalformed: it is no head */
ReadState readHead(std::string_view bytes, Head* head);

/**
 * @param bytes all bytes received since the request
 * @param response filled when kDone; its body is a view of `bytes`
 * @return kMore: the answer is incomplete; kMalformed: it is no answer of the contract, such as a
 *     chunked one, or further bytes follow it
 */
ReadState readResponse(std::string_view bytes, Response* response);

}  // namespace swarm

#endif  // SPRITES_SWARM_HTTP_H_
