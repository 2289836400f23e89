// The measured cost of sending a long message on this machine, by copy or from a file
// (base/memory_file.h).
//
// The cost of a copy depends on the memory, that of a file on its pages: for 165 KB, 85 µs and 35
// µs on one machine, 24 µs and 43 µs on another. So the door measures both, and sends long messages
// the cheaper way. The first readers of a message get copies, which measures copies. Every
// kProbeEvery-th message is sent from a file even if files cost more, which measures files.
//
// Cost: two reads of the clock for each long message. Rejected: a choice by the processor's name, a
// measurement at the start (one busy moment would decide for the whole run).
#ifndef SPRITES_SEND_COSTS_H_
#define SPRITES_SEND_COSTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace server {

enum class SendMethod : uint8_t { kCopy, kFile };

class SendCosts {
 public:
  /** Shortest long message, in bytes: for shorter ones a file saves nothing. */
  static constexpr uint64_t kLongMessage = 64 << 10;
  static constexpr uint32_t kProbeEvery = 32;

  /** Returns whether the next long message should have a file. */
  bool wantsFile() {
    return costOf(SendMethod::kFile) <= costOf(SendMethod::kCopy) ||
           ++copiedMessages_ % kProbeEvery == 0;
  }

  /** Counts a message of `bytes` that the kernel accepted whole, after so many microseconds. */
  void addMeasurement(SendMethod method, uint64_t microseconds, uint64_t bytes) {
    double& cost = costOf(method);
    const double measured = static_cast<double>(microseconds) / static_cast<double>(bytes);
    // Bounds an outlier: another process may have had the core meanwhile.
    cost = cost == 0 ? measured
                     : cost + (std::min(measured, kMaxGrowth * cost) - cost) / kAveragedMessages;
  }

 private:
  static constexpr double kMaxGrowth = 4;
  static constexpr double kAveragedMessages = 16;

  double& costOf(SendMethod method) { return costs_[static_cast<size_t>(method)]; }

  std::array<double, 2> costs_ = {};  // microseconds for a byte; 0: not known
  uint32_t copiedMessages_ = 0;       // messages sent by copy since the start
};

}  // namespace server

#endif  // SPRITES_SEND_COSTS_H_
