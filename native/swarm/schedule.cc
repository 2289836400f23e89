#include "schedule.h"

#include <algorithm>
#include <cmath>

#include "core.h"

namespace swarm {

Schedule::Schedule(uint64_t start, double rate, double phase, const std::vector<Stage>& stages)
    : start_(start), phase_(phase) {
  double startSeconds = 0;
  double spritesBefore = 0;
  for (const Stage& stage : stages) {
    if (stage.seconds > 0) {
      segments_.push_back({startSeconds, spritesBefore, rate, (stage.rate - rate) / stage.seconds});
      startSeconds += stage.seconds;
      spritesBefore += (rate + stage.rate) / 2 * stage.seconds;
    }
    rate = stage.rate;
  }
  segments_.push_back({startSeconds, spritesBefore, rate, 0});
}

double Schedule::Segment::dueBy(double seconds) const {
  const double elapsed = seconds - startSeconds;
  return spritesBefore + (rate + slope / 2 * elapsed) * elapsed;
}

uint64_t Schedule::dueAt(uint64_t sprite) const {
  const double number = static_cast<double>(sprite) + phase_;
  const auto after = std::upper_bound(
      segments_.begin(), segments_.end(), number,
      [](double value, const Segment& segment) { return value < segment.spritesBefore; });
  const Segment& segment = after == segments_.begin() ? *after : *(after - 1);
  const double remaining = number - segment.spritesBefore;
  // The root of a quadratic equation, in the form without cancellation, which also allows slope 0.
  const double root =
      std::sqrt(std::max(0.0, segment.rate * segment.rate + 2 * segment.slope * remaining));
  if (segment.rate + root <= 0) {
    if (segment.slope == 0) return UINT64_MAX;
    return start_ + static_cast<uint64_t>(segment.startSeconds * kSecond);
  }
  return start_ + static_cast<uint64_t>(
                      (segment.startSeconds + 2 * remaining / (segment.rate + root)) * kSecond);
}

uint64_t Schedule::dueBy(uint64_t time) const {
  if (time < start_) return 0;
  const double seconds = static_cast<double>(time - start_) / kSecond;
  const Segment* segment = &segments_.front();
  for (const Segment& each : segments_) {
    if (each.startSeconds <= seconds) segment = &each;
  }
  return static_cast<uint64_t>(std::max(0.0, segment->dueBy(seconds) - phase_));
}

}  // namespace swarm
