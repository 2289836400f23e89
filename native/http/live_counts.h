// The live counts for requests of /status. JavaScript makes them, a bounded number of times between
// two ticks. So a storm of requests costs JavaScript little, and a single request gets fresh
// counts.
#ifndef SPRITES_LIVE_COUNTS_H_
#define SPRITES_LIVE_COUNTS_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace server {

class LiveCounts {
 public:
  /** Returns the counts as JSON text; empty: not possible now. */
  using MakeText = std::function<std::string()>;

  /**
   * Most calls of `ask` between two ticks. A call takes some 80 us, so a storm takes 8% of a core.
   * A request now and then always gets fresh counts.
   */
  static constexpr unsigned kMaxCallsPerTick = 100;

  explicit LiveCounts(MakeText ask) : makeText_(std::move(ask)) {}

  /** The counts, at most a tick old; empty: none. Valid until the next call. */
  std::string_view text() {
    if (makeText_ && (callsThisTick_ < kMaxCallsPerTick || text_.empty())) {
      ++callsThisTick_;
      text_ = makeText_();
    }
    return text_;
  }

  /** The last result of `text`. */
  std::string_view lastText() const { return text_; }

  void tick() { callsThisTick_ = 0; }

 private:
  const MakeText makeText_;
  std::string text_;
  unsigned callsThisTick_ = 0;  // calls since the tick
};

}  // namespace server

#endif  // SPRITES_LIVE_COUNTS_H_
