// The strict reader of the hot requests: join, poll, throw, leave, place, the counts by an id, the
// two that watch feeds, a player's input, and the fixed answers, the page's files and the
// live counts. It either reads a request head exactly as the reader of every request would
// (request_reader.h), or leaves it to that one.
#ifndef SPRITES_HTTP_H_
#define SPRITES_HTTP_H_

#include <cstddef>
#include <cstdint>

#include "base/id.h"
#include "torus/torus.h"

namespace server {

/** A head longer than this is not hot. */
constexpr size_t kHotHeadBytes = 4096;

/** A path longer than this is none of a fixed answer. */
constexpr size_t kPathBytes = 48;

/** A head of more header lines than this is not hot. */
constexpr unsigned kHotHeaders = 64;

/** The longest name of an arena. */
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

/** What the reader says of the bytes it was given. */
enum class Verdict : uint8_t {
  kIncomplete,  // so far a hot request; more bytes are needed to end its head
  kHot,         // a whole head, all of it understood: HotRequest is filled
  kNotHot,      // unusual, malformed or another: for the reader of every request
};

/** What each step of the reading says while nothing speaks against the request. */
constexpr Verdict kGoOn = Verdict::kHot;

/** A piece of the head: where it begins in the bytes given, and its bytes; 0 long when absent. */
struct HeadSpan {
  uint16_t offset;
  uint16_t length;

  bool operator==(const HeadSpan&) const = default;
};

/** A hot request's head, as numbers. Spans point into the bytes given. */
struct HotRequest {
  Route route;
  Edge edge;        // of a throw
  bool hasHold;     // hold was given
  bool hasNumber;   // n was given
  Id id;            // of poll, throw, leave, place and status; of an input: the player
  uint64_t ack;     // of a poll; 0 when not given. Up to 2^53 - 1
  uint64_t number;  // of a throw or an input: its n. Up to 2^53 - 1
  uint32_t
      hold;  // of a poll or a feed, seconds, as asked; not yet held against the server's bounds
  uint32_t headLength;     // bytes of head, the empty line included
  uint32_t bodyLength;     // Content-Length, 0 when there is none; at most 999,999,999
  HeadSpan forwardedFor;   // the X-Forwarded-For header's value, white space around it trimmed
  bool delta;              // of feeds: delta=1
  bool gzip;               // of feeds: Accept-Encoding has gzip
  bool stream;             // of a feed: Accept is text/event-stream
  HeadSpan key;            // of a feed; of GET /feeds: its list; of an input: the arena's name
  HeadSpan after;          // of a feed: the cursor; a stream's Last-Event-ID goes before the query
  HeadSpan authorization;  // the Authorization header's value, trimmed
  HeadSpan grant;          // of feeds: the grant in the query
  HeadSpan path;           // of kFixed: any path that is none of the others', its slash included
  HeadSpan noneMatch;      // of feeds: the If-None-Match header's value, trimmed
  HeadSpan forwarded;      // the Forwarded header's value (RFC 7239), trimmed alike

  bool operator==(const HotRequest&) const = default;
};

/**
 * Reads one request head at the start of `data`.
 * Costs one pass over the head; called again from the start as more bytes come, which a caller
 * bounds by kHotHeadBytes: from there on the verdict is never kIncomplete. More bytes never change
 * a verdict of kHot or kNotHot. `out` holds a request only when the verdict is kHot.
 */
Verdict readHead(const char* data, size_t length, HotRequest* out);

}  // namespace server

#endif  // SPRITES_HTTP_H_
