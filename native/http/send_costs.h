// What it takes to send a long message, copied or from a file (base/memory_file.h), on this
// machine.
//
// A copy takes what memory takes, a file what its pages take: of 165 KB 85 µs and 35 on one
// machine, 24 and 43 on another. So the door measures both, and long messages go the cheaper way.
// The first readers of a message have copies, which tells of these; every kLookEvery-th message
// goes from a file although files were dearer, which tells of those.
//
// Cost: two looks at the clock a long message. Rejected: a choice by the processor's name, a
// measurement at the start (a busy moment would decide for all time).
#ifndef SPRITES_SEND_COSTS_H_
#define SPRITES_SEND_COSTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace server {

enum class SendWay : uint8_t { kCopy, kFile };

class SendCosts {
 public:
  /** Bytes from which on a message is long: of shorter ones a file saves nothing. */
  static constexpr uint64_t kLong = 64 << 10;
  static constexpr uint32_t kLookEvery = 32;

  /** Whether the next long message is to have a file. */
  bool wantsFile() {
    return costOf(SendWay::kFile) <= costOf(SendWay::kCopy) || ++copied_ % kLookEvery == 0;
  }

  /** A message of `bytes` went to the kernel whole, in so many microseconds. */
  void took(SendWay way, uint64_t microseconds, uint64_t bytes) {
    double& cost = costOf(way);
    const double seen = static_cast<double>(microseconds) / static_cast<double>(bytes);
    // Another process may have had the core meanwhile.
    cost = cost == 0 ? seen : cost + (std::min(seen, kMostGrowth * cost) - cost) / kRemembered;
  }

 private:
  static constexpr double kMostGrowth = 4;
  static constexpr double kRemembered = 16;

  double& costOf(SendWay way) { return costs_[static_cast<size_t>(way)]; }

  std::array<double, 2> costs_ = {};  // microseconds a byte; 0: not known
  uint32_t copied_ = 0;               // messages, since the start
};

}  // namespace server

#endif  // SPRITES_SEND_COSTS_H_
