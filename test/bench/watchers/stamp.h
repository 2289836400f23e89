// The mark in every document: its version, and when it was published.
//
//   @42:8123456789@     version 42, microseconds of the monotonic clock
#ifndef SPRITES_BENCH_STAMP_H_
#define SPRITES_BENCH_STAMP_H_

#include <time.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace watchers {

struct Stamp {
  uint64_t version = 0;  // 0: there is none
  uint64_t time = 0;

  std::string text() const {
    std::string text(1, '@');
    text.append(std::to_string(version)).append(1, ':');
    return text.append(std::to_string(time)).append(1, '@');
  }

  /** The last one in a text; patches that were joined have several. */
  static Stamp in(std::string_view text) {
    Stamp stamp;
    const size_t end = text.rfind('@');
    if (end == text.npos || end == 0) return {};
    const size_t begin = text.rfind('@', end - 1);
    if (begin == text.npos) return {};
    const char* const last = text.data() + end;
    const auto version = std::from_chars(text.data() + begin + 1, last, stamp.version);
    if (version.ec != std::errc() || *version.ptr != ':') return {};
    const auto time = std::from_chars(version.ptr + 1, last, stamp.time);
    return time.ec == std::errc() && time.ptr == last ? stamp : Stamp{};
  }
};

/** Microseconds of the monotonic clock. */
inline uint64_t microseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace watchers

#endif  // SPRITES_BENCH_STAMP_H_
