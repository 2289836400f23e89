// The strict reader of the hot requests: join, poll, throw, leave, place, the counts by an id, both
// requests for feeds, a player's input, and the fixed answers: the page's files and the live
// counts. It reads a head exactly as the reader of all requests would (request_reader.h), or leaves
// it to that reader.
#ifndef SPRITES_HTTP_H_
#define SPRITES_HTTP_H_

#include <cstddef>
#include <cstdint>

#include "base/id.h"
#include "torus/torus.h"

namespace server {

/** Longest head of a hot request, in bytes. */
constexpr size_t kHotHeadBytes = 4096;

/** Longest path of a fixed answer, in bytes. */
constexpr size_t kPathBytes = 48;

/** Most header lines of a hot request. */
constexpr unsigned kHotHeaders = 64;

/** Longest name of an arena, in bytes. */
constexpr size_t kArenaNameBytes = 32;

enum class Route : uint8_t {
  kJoin,
  kPoll,
  kThrow,
  kLeave,
  kFeed,
  kFeeds,
  kPlace,
  kStatus,
  kFixed,
  kInput,
  kCold,  // any other: see request_reader.h
};

/** The reader's verdict on the bytes it was given. */
enum class Verdict : uint8_t {
  kIncomplete,  // a hot request so far; its head needs more bytes
  kHot,         // a complete hot head: HotRequest is filled
  kNotHot,      // unusual, malformed or not hot: for the reader of all requests
};

/** The verdict of a step while the request may be hot. */
constexpr Verdict kGoOn = Verdict::kHot;

/** A part of the head: its offset in the given bytes, and its length; length 0: absent. */
struct HeadSpan {
  uint16_t offset;
  uint16_t length;

  bool operator==(const HeadSpan&) const = default;
};

/** The head of a hot request. Spans refer to the given bytes. */
struct HotRequest {
  Route route;
  Edge edge;            // of a throw
  bool hasHold;         // hold was given
  bool hasNumber;       // n was given
  Id id;                // of poll, throw, leave, place and status; the player of an input
  uint64_t ack;         // of a poll; 0: not given. At most 2^53 - 1
  uint64_t number;      // n of a throw or an input. At most 2^53 - 1
  uint32_t hold;        // of a poll or a feed, in seconds; not checked against the server's bounds
  uint32_t headLength;  // bytes of head, the empty line included
  uint32_t bodyLength;  // Content-Length, 0 when there is none; at most 999,999,999
  HeadSpan forwardedFor;   // the X-Forwarded-For header's value, trimmed
  bool delta;              // of feeds: delta=1
  bool gzip;               // of feeds: Accept-Encoding has gzip
  bool stream;             // of a feed: Accept is text/event-stream
  HeadSpan key;            // of a feed; the list of GET /feeds; the arena of an input
  HeadSpan after;          // of a feed: the cursor; a stream's Last-Event-ID overrides the query
  HeadSpan authorization;  // the Authorization header's value, trimmed
  HeadSpan grant;          // of feeds: the grant in the query
  HeadSpan path;           // of kFixed: any other path, with its slash
  HeadSpan noneMatch;      // of feeds: the If-None-Match header's value, trimmed
  HeadSpan forwarded;      // the Forwarded header's value (RFC 7239), trimmed

  bool operator==(const HotRequest&) const = default;
};

/**
 * Reads one request head at the start of `data`, in one pass. To be called again, from the start,
 * when more bytes have come: with kHotHeadBytes or more the verdict is never kIncomplete, which
 * bounds the cost. More bytes never change a verdict of kHot or kNotHot. `out` is filled only with
 * kHot.
 */
Verdict readHead(const char* data, size_t length, HotRequest* out);

}  // namespace server

#endif  // SPRITES_HTTP_H_
