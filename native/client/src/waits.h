// How long to wait before asking again; the same for every client, see lib/client/README.md.
#ifndef SPRITES_CLIENT_WAITS_H_
#define SPRITES_CLIENT_WAITS_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "transport.h"

namespace sprites {

constexpr Millis kWaitFirst{500};        // the longest wait after the first failure
constexpr Millis kWaitMost{15000};       // of any: below a lease, to be back in time for the place
constexpr Millis kWaitServer{600000};    // of what a server may ask for
constexpr Millis kWaitSmallTorus{1000};  // the least bound where it is known how many clients are

constexpr unsigned kShortestHold = 5;  // seconds; the server's lower bound
constexpr unsigned kUsualHold = 120;   // seconds, where the server did not tell
constexpr Millis kPollSlack{15000};
constexpr Millis kQuick{1000};  // an empty answer sooner than this counts as a failure for the wait
constexpr Millis kLong{10000};  // a poll parked so long tells whether the network lets it park
constexpr unsigned kCutsMost = 2;  // polls in a row that were cut off: then the hold is shortened
constexpr Millis kLeaveReserve{1500};  // of the time to leave this is kept for telling the server

/**
 * The longest wait after so many failures in a row, from 1. Where it is known how many clients
 * there are it is bounded by a millisecond for each: a small torus finds its server within a
 * second.
 */
inline Millis longestWait(uint64_t failures, std::optional<uint64_t> clients, Millis most) {
  const uint64_t doublings = std::min<uint64_t>(failures > 0 ? failures - 1 : 0, 16);
  if (clients) {
    const Millis each(static_cast<Millis::rep>(std::min<uint64_t>(*clients, 1U << 30)));
    most = std::min(most, std::max(each, kWaitSmallTorus));
  }
  return std::min(kWaitFirst * (1U << doublings), most);
}

/** How long the answer to a poll of so many seconds may take. */
inline Millis pollTimeout(unsigned hold) {
  const Millis held = std::chrono::seconds(hold);
  return held + held / 4 + Millis(15000);
}

/** The hold to ask for, in seconds, where polls are cut off that were parked for so long. */
template <typename Duration>
unsigned shorterHold(Duration parked) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(parked).count();
  return std::max(kShortestHold, static_cast<unsigned>(seconds * 3 / 4));
}

}  // namespace sprites

#endif  // SPRITES_CLIENT_WAITS_H_
