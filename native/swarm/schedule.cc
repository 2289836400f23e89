#include "schedule.h"

#include <algorithm>
#include <cmath>

#include "core.h"

namespace swarm {

Schedule::Schedule(uint64_t start, double rate, double phase, const std::vector<Stage>& stages)
    : start_(start), phase_(phase) {
  double from = 0;
  double count = 0;
  for (const Stage& stage : stages) {
    if (stage.seconds > 0) {
      lines_.push_back({from, count, rate, (stage.rate - rate) / stage.seconds});
      from += stage.seconds;
      count += (rate + stage.rate) / 2 * stage.seconds;
    }
    rate = stage.rate;
  }
  lines_.push_back({from, count, rate, 0});
}

double Schedule::Line::dueBy(double seconds) const {
  const double passed = seconds - from;
  return count + (rate + slope / 2 * passed) * passed;
}

uint64_t Schedule::dueAt(uint64_t sprite) const {
  const double number = static_cast<double>(sprite) + phase_;
  const auto after =
      std::upper_bound(lines_.begin(), lines_.end(), number,
                       [](double value, const Line& line) { return value < line.count; });
  const Line& line = after == lines_.begin() ? *after : *(after - 1);
  const double rest = number - line.count;
  // The root of a quadratic equation, in the form without cancellation, which also allows slope 0.
  const double root = std::sqrt(std::max(0.0, line.rate * line.rate + 2 * line.slope * rest));
  if (line.rate + root <= 0) {
    if (line.slope == 0) return UINT64_MAX;
    return start_ + static_cast<uint64_t>(line.from * kSecond);
  }
  return start_ + static_cast<uint64_t>((line.from + 2 * rest / (line.rate + root)) * kSecond);
}

uint64_t Schedule::dueBy(uint64_t time) const {
  if (time < start_) return 0;
  const double seconds = static_cast<double>(time - start_) / kSecond;
  const Line* line = &lines_.front();
  for (const Line& each : lines_) {
    if (each.from <= seconds) line = &each;
  }
  return static_cast<uint64_t>(std::max(0.0, line->dueBy(seconds) - phase_));
}

}  // namespace swarm
