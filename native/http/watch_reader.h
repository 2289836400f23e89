// What a request for several feeds asks for. The body of POST /feeds is read as every client writes
// it: {"hold":60,"delta":true,"feeds":{…}}, its members in any order, no escapes in its strings;
// the list of GET /feeds is scores:e7-41,table:. JavaScript reads any other.
#ifndef SPRITES_WATCH_READER_H_
#define SPRITES_WATCH_READER_H_

#include <cstdint>
#include <string_view>

#include "feeds/feeds.h"

namespace server {

/** The longest body that is read here, in bytes; JavaScript refuses longer ones. */
constexpr uint32_t kWatchBytes = 16384;

/** What is asked for. The string views point into the text that was read. */
struct WatchRequest {
  Wanted wanted[kFeedsAtOnce];
  uint32_t count;
  uint32_t hold;  // seconds, or kNoFeedHold
  bool delta;
};

/** Reads a body. @return false when it has another form or an error: JavaScript decides */
bool readWatch(std::string_view body, WatchRequest* watch);

/** The same of a list, which says no hold and no delta. */
bool readWatchList(std::string_view list, WatchRequest* watch);

}  // namespace server

#endif  // SPRITES_WATCH_READER_H_
