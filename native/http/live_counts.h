// The live counts, for every request of /status: what JavaScript says of them, asked for a
// bounded number of times. So a storm of such requests costs no JavaScript each, and one request
// now and then gets counts that are new.
#ifndef SPRITES_LIVE_COUNTS_H_
#define SPRITES_LIVE_COUNTS_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace server {

class LiveCounts {
 public:
  /** Says the counts as JSON text; an empty one where that is not possible. */
  using Ask = std::function<std::string()>;

  /**
   * How often `ask` is called from one tick to the next at the most: it takes some 80 us, so that a
   * storm takes 8% of a core. A request now and then always gets the present counts.
   */
  static constexpr unsigned kAsksPerTick = 100;

  explicit LiveCounts(Ask ask) : ask_(std::move(ask)) {}

  /** The counts, a tick old at the most; empty where there are none. Valid until the next call. */
  std::string_view text() {
    if (ask_ && (asked_ < kAsksPerTick || text_.empty())) {
      ++asked_;
      text_ = ask_();
    }
    return text_;
  }

  /** What `text` gave last. */
  std::string_view last() const { return text_; }

  void tick() { asked_ = 0; }

 private:
  const Ask ask_;
  std::string text_;
  unsigned asked_ = 0;  // since the tick
};

}  // namespace server

#endif  // SPRITES_LIVE_COUNTS_H_
