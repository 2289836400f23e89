// The parts of a hot request that only feeds have: the key and the query of GET /feed/{key}, and
// the headers Accept, Accept-Encoding and Last-Event-ID. Part of http_reader.h, and as strict.
#ifndef SPRITES_FEED_GRAMMAR_H_
#define SPRITES_FEED_GRAMMAR_H_

#include <cstdint>
#include <string_view>

#include "http_reader.h"

namespace server {

/**
 * Reads `scores?after=e7-42&hold=30&delta=1` from `*at` on, up to the blank behind it, where it
 * leaves `*at`. `begin` is where spans count from. kHot: go on.
 */
Verdict readFeedTarget(const char* begin, const char** at, const char* end, HotRequest* out);

/**
 * What headers say. `whole` tells that the value ends there; one that does not may still go on.
 * False: Node is to judge it.
 */
bool readAccept(std::string_view value, bool whole, HotRequest* out);
bool readAcceptEncoding(std::string_view value, bool whole, HotRequest* out);
bool readLastEventId(std::string_view value);

}  // namespace server

#endif  // SPRITES_FEED_GRAMMAR_H_
