// The body of POST /feeds, read as every client writes it: {"hold":60,"delta":true,"feeds":{…}},
// its members in any order, no escapes in its texts. Anything else is Node's to judge.
#ifndef SPRITES_WATCH_READER_H_
#define SPRITES_WATCH_READER_H_

#include <cstdint>
#include <string_view>

#include "pool/feeds.h"

namespace server {

/** A body longer than this is Node's to refuse. */
constexpr uint32_t kWatchBytes = 16384;

/** What a body asks for; the texts are those of the body. */
struct WatchWish {
  Wanted wanted[kFeedsAtOnce];
  uint32_t count;
  uint32_t hold;  // seconds, or kNoFeedHold
  bool delta;
};

/** Reads a body; false when it is not of the plain form, or not well. */
bool readWatch(std::string_view body, WatchWish* wish);

}  // namespace server

#endif  // SPRITES_WATCH_READER_H_
