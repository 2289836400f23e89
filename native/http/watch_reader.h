// The body of POST /feeds, read as every client writes it: {"hold":60,"delta":true,"feeds":{…}},
// its members in any order, no escapes in its strings. JavaScript reads any other body.
#ifndef SPRITES_WATCH_READER_H_
#define SPRITES_WATCH_READER_H_

#include <cstdint>
#include <string_view>

#include "feeds/feeds.h"

namespace server {

/** The longest body that is read here, in bytes; JavaScript refuses longer ones. */
constexpr uint32_t kWatchBytes = 16384;

/** What a body asks for. The string views point into the body. */
struct WatchWish {
  Wanted wanted[kFeedsAtOnce];
  uint32_t count;
  uint32_t hold;  // seconds, or kNoFeedHold
  bool delta;
};

/** Reads a body. @return false when it has another form or an error: JavaScript decides */
bool readWatch(std::string_view body, WatchWish* wish);

}  // namespace server

#endif  // SPRITES_WATCH_READER_H_
