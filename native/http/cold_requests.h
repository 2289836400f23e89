// The requests that are not hot, on their way to JavaScript: those whose body is incomplete, and
// those that wait for a share of a turn (turn_share.h). Hot requests are served in between.
//
//   head ─▶ arrival ──body, by its length or in chunks──▶ whole ─┬─ share left ─▶ JavaScript
//                                                                └─ queue ─▶ a later turn's share
//
// Cost: memory only while a request arrives or waits, counted for its address. Rejected: a field in
// each connection (most never need one).
#ifndef SPRITES_COLD_REQUESTS_H_
#define SPRITES_COLD_REQUESTS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "request_reader.h"

namespace server {

/** The body of a request, as far as it is known. */
struct Body {
  enum class State : uint8_t {
    kWhole,
    kTooLong,  // longer than its bound, and not read
    kAwaited,  // the client sends it after 100 Continue (Expect: 100-continue)
  };
  State state;
  std::string_view bytes = {};
};

/** A request that arrives, or waits for its turn. */
struct ColdRequest {
  std::string head;
  std::string body;
  Framing framing = Framing::kNone;
  uint64_t bodyLength = 0;    // of the body, if the framing gives it
  uint32_t maxBodyBytes = 0;  // most bytes of the body
  ChunkDecoder chunks;
  Body::State bodyState = Body::State::kWhole;  // of a request that waits for its turn
  uint64_t countedBytes = 0;                    // bytes counted for its address

  /** Reads the body from `*data`, and moves it behind the bytes read. */
  ChunkDecoder::State readBody(std::string_view* data) {
    if (framing == Framing::kChunked) return chunks.decode(data, maxBodyBytes, &body);
    if (body.empty()) body.reserve(bodyLength);
    const size_t more = std::min<uint64_t>(bodyLength - body.size(), data->size());
    body.append(data->data(), more);
    data->remove_prefix(more);
    return body.size() == bodyLength ? ChunkDecoder::State::kWhole
                                     : ChunkDecoder::State::kIncomplete;
  }
};

}  // namespace server

#endif  // SPRITES_COLD_REQUESTS_H_
