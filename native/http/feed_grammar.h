// The parts of a hot request that only feeds have: key and query of GET /feed/{key}, the query of
// GET /feeds, and the headers Accept, Accept-Encoding and Last-Event-ID. Part of http_reader.h, and
// as strict.
#ifndef SPRITES_FEED_GRAMMAR_H_
#define SPRITES_FEED_GRAMMAR_H_

#include <string_view>

#include "http_reader.h"

namespace server {

/**
 * Reads `scores?after=e7-42&hold=30&delta=1&turn=9x` from `*at`, and moves `*at` to the blank after
 * it. Spans in `out` count from `begin`.
 *
 * @return kHot when it was read; otherwise the verdict on the whole request
 */
Verdict readFeedTarget(const char* begin, const char** at, const char* end, HotRequest* out);

/** Reads the query of GET /feeds in the same way: `?watch=scores:e7-42,table:&hold=30`. */
Verdict readFeedsQuery(const char* begin, const char** at, const char* end, HotRequest* out);

/**
 * Each reads the value of one header. `whole`: `value` is complete; otherwise more of it may come.
 *
 * @return false when the request is not hot
 */
bool readAccept(std::string_view value, bool whole, HotRequest* out);
bool readAcceptEncoding(std::string_view value, bool whole, HotRequest* out);
bool readLastEventId(std::string_view value);

}  // namespace server

#endif  // SPRITES_FEED_GRAMMAR_H_
