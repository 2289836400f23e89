// The clock of a wrapped object: called by Node's loop at every tick, every kTickMilliseconds.
//
//   pool ──┬── 100 ms ──┬── 100 ms ──┬─────── up to 1 s ──────┬──     All of them are due in the
//   feeds ─┤            │            │ all are quiet          │       same turn of the loop: a
//   door ──┘            │            │                        │       wake-up costs some 70 µs.
//
// If no object has a deadline within kRestTicks, a loop that sleeps by itself (loop_turns.h) puts
// the ticks off to the next full second. After any wake-up it first makes up the missed ticks as
// one: no object's time is older than a tick when the object is called. Rejected: a timer for the
// next deadline (every poll moves one).
#ifndef SPRITES_TICKER_H_
#define SPRITES_TICKER_H_

#include <algorithm>
#include <vector>

#include "loop.h"
#include "torus/pool.h"

namespace server {

class Ticker {
 public:
  using Tick = void (*)(void* owner);

  /** Starts to call `tick(owner)`. The ticker does not keep the process alive. */
  Ticker(void* owner, Tick tick)
      : owner_(owner),
        tick_(tick),
        timer_(makeQuietHandle<uv_timer_t>(this, uv_timer_init)),
        tickedAt_(now()) {
    tickers_.push_back(this);
    startAfter(untilNext(kTickMilliseconds));
  }
  ~Ticker() { stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /** Stops the ticks permanently. */
  void stop() {
    timer_.reset();
    std::erase(tickers_, this);
    std::erase(resting_, this);
  }

  /** Makes the next tick come with the next turn of the loop. */
  void tickSoon() {
    if (timer_ != nullptr) startAfter(1);
  }

  /**
   * Sets whether the owner has nothing to do in the next kRestTicks. The owner calls it in its
   * tick.
   */
  void setQuiet(bool isQuiet) { isQuiet_ = isQuiet; }

  /** The planned time from the last tick to the current one, in milliseconds; at least a tick. */
  uint64_t plannedSpan() const { return plannedSpan_; }

  /** When the current tick was due, in microseconds of uv_hrtime. */
  uint64_t wasDueAt() const { return wasDueAt_; }

  // Called by a loop that sleeps by itself, which has all tickers:

  /** Puts the ticks off if all owners are quiet: the loop is about to sleep. */
  static void restIfQuiet() {
    if (!std::all_of(tickers_.begin(), tickers_.end(), [](Ticker* one) { return one->isQuiet_; }))
      return;
    resting_ = tickers_;
    for (Ticker* one : resting_) one->startAfter(one->untilNext(kRest));
  }

  /** Makes up the missed ticks: the loop has slept, and knows the time. */
  static void makeUpMissedTicks() {
    // A tick may end other tickers.
    while (!resting_.empty()) {
      Ticker* const one = resting_.back();
      resting_.pop_back();
      if (one->now() / kTickMilliseconds > one->tickedAt_ / kTickMilliseconds) {
        one->tick();
      } else {
        one->startAfter(one->untilNext(kTickMilliseconds));
      }
    }
  }

  /** Counts no owner as quiet before its next tick: owners may not know of what has happened. */
  static void clearQuiet() {
    for (Ticker* one : tickers_) one->isQuiet_ = false;
  }

 private:
  /**
   * Milliseconds of the loop's clock, shifted so that ticks are due at multiples of
   * kTickMilliseconds.
   */
  uint64_t now() const {
    static const uint64_t phase = uv_now(timer_->loop) % kTickMilliseconds;
    return uv_now(timer_->loop) - phase;
  }

  /** Milliseconds until the next multiple of `period`. */
  uint64_t untilNext(uint64_t period) const { return period - now() % period; }

  void startAfter(uint64_t milliseconds) {
    nextSpan_ = now() - tickedAt_ + milliseconds;
    dueAt_ = microseconds() + milliseconds * 1000;
    uv_timer_start(
        timer_.get(), [](uv_timer_t* timer) { static_cast<Ticker*>(timer->data)->tick(); },
        milliseconds, 0);
  }

  void tick() {
    plannedSpan_ = std::max(nextSpan_, uint64_t{kTickMilliseconds});
    wasDueAt_ = dueAt_;
    tickedAt_ = now();
    // The next tick is set first: the owner may be gone after this one.
    startAfter(untilNext(kTickMilliseconds));
    tick_(owner_);
  }

  static inline std::vector<Ticker*> tickers_;
  static inline std::vector<Ticker*> resting_;

  void* const owner_;
  const Tick tick_;
  LoopHandle<uv_timer_t> timer_;
  bool isQuiet_ = false;
  uint64_t tickedAt_;      // time of the last tick, by `now`
  uint64_t nextSpan_ = 0;  // milliseconds from the last tick to the next
  uint64_t dueAt_ = 0;     // microseconds: time of the next tick
  uint64_t plannedSpan_ = 0;
  uint64_t wasDueAt_ = 0;
};

}  // namespace server

#endif  // SPRITES_TICKER_H_
