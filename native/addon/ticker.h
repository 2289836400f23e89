// The clock of a wrapped object: called by Node's loop at every tick, every kTickMilliseconds.
//
//   pool ──┬── 100 ms ──┬── 100 ms ──┬──     All of them are due in the same turn of the loop: an
//   feeds ─┤            │            │       idle server wakes up ten times a second, and each
//   door ──┘            │            │       wake-up costs some 50 µs.
#ifndef SPRITES_TICKER_H_
#define SPRITES_TICKER_H_

#include "loop_handle.h"
#include "torus/pool.h"

namespace server {

class Ticker {
 public:
  using Tick = void (*)(void* owner);

  /** Begins to call `tick(owner)`; it does not keep the process alive. */
  Ticker(void* owner, Tick tick)
      : owner_(owner), tick_(tick), timer_(makeQuietHandle<uv_timer_t>(this, uv_timer_init)) {
    startAfter(untilTick());
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /** Ends it for good. */
  void stop() { timer_.reset(); }

  /** The next tick comes with the next turn of the loop. */
  void hurry() {
    if (timer_ != nullptr) startAfter(1);
  }

  /** Milliseconds until the next tick. */
  uint64_t dueIn() const { return timer_ == nullptr ? 0 : uv_timer_get_due_in(timer_.get()); }

 private:
  /** Milliseconds until the next tick of all, by the loop's clock. */
  uint64_t untilTick() const {
    const uint64_t now = uv_now(timer_->loop);
    static const uint64_t phase = now % kTickMilliseconds;
    return kTickMilliseconds - (now - phase) % kTickMilliseconds;
  }

  void startAfter(uint64_t milliseconds) {
    uv_timer_start(
        timer_.get(),
        [](uv_timer_t* timer) {
          auto* const self = static_cast<Ticker*>(timer->data);
          // First: the owner may be gone after its tick.
          self->startAfter(self->untilTick());
          self->tick_(self->owner_);
        },
        milliseconds, 0);
  }

  void* const owner_;
  const Tick tick_;
  LoopHandle<uv_timer_t> timer_;
};

}  // namespace server

#endif  // SPRITES_TICKER_H_
