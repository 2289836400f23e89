// What was put away, as long as it can be had back: as on the web page, the last one first.
#ifndef SPRITES_DESKTOP_UNDOS_H_
#define SPRITES_DESKTOP_UNDOS_H_

#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "desktop.h"

namespace sprites::desktop {

/** How long. */
constexpr std::chrono::seconds kUndoTime{8};

class Undos {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /** `body` was put away at `now`. */
  void keep(Body body, Time now) { kept_.push_back({std::move(body), now + kUndoTime}); }

  /** The one that was put away last, which is kept no more; none when that is too long ago. */
  std::optional<Body> take(Time now) {
    while (!kept_.empty() && kept_.front().end <= now) kept_.pop_front();
    if (kept_.empty()) return std::nullopt;
    Body body = std::move(kept_.back().body);
    kept_.pop_back();
    return body;
  }

 private:
  struct Kept {
    Body body;
    Time end;
  };

  std::deque<Kept> kept_;
};

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_UNDOS_H_
