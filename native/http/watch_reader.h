// Reads a request for several feeds. The body of POST /feeds has the form that all clients write:
// {"hold":60,"delta":true,"feeds":{…}}, with the members in any order and no escapes in the
// strings. The list of GET /feeds is scores:e7-41,table:. JavaScript reads any other form.
#ifndef SPRITES_WATCH_READER_H_
#define SPRITES_WATCH_READER_H_

#include <cstdint>
#include <string_view>

#include "feeds/feeds.h"

namespace server {

/** Longest body, in bytes; JavaScript refuses longer ones. */
constexpr uint32_t kWatchBytes = 16384;

/** A request for feeds. The string views point into the text that was read. */
struct WatchRequest {
  FeedRequest wanted[kFeedsAtOnce];
  uint32_t count;
  uint32_t hold;  // seconds, or kNoFeedHold
  bool delta;
};

/**
 * Reads a body.
 *
 * @return false when the body has another form or an error: JavaScript decides
 */
bool readWatch(std::string_view body, WatchRequest* watch);

/** Reads a list in the same way. It has no hold and no delta. */
bool readWatchList(std::string_view list, WatchRequest* watch);

}  // namespace server

#endif  // SPRITES_WATCH_READER_H_
