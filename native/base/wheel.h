// The timer wheel: one coarse clock for many deadlines, of which most never come.
//
//   slot  0    1    2    3  …  1023        an entry due at tick t hangs in slot t mod 1024;
//         │    │    │    │                 one due more than a turn ahead is passed over
//        e7   ─    e2   ─                  until its turn comes
//         │         │
//        e9        e4 ── due, next, previous: 12 bytes in an array beside the records
//
// Lifecycle: an entry is armed with a time, re-armed or disarmed in constant time, and fires once.
// The sweep moves a slot's whole list aside and takes it apart from the front, so a callback may
// arm or disarm any entry, the swept ones included, and may stop the sweep halfway.
//
// Cost: 12 bytes an entry and 12 kB of slots; a sweep touches what hangs in the slots it passes.
// Rejected: a heap (log n a re-arm, and every poll re-arms), libuv timers (a heap too, and 100
// bytes each), hierarchical wheels (cascades, to save passing over the few that outlive a turn).
#ifndef SPRITES_BASE_WHEEL_H_
#define SPRITES_BASE_WHEEL_H_

#include <cstdint>

#include "reserve.h"

namespace base {

/** Times are in a unit of the caller's; a tick is `kTick` of them. */
template <uint64_t kTick>
class Wheel {
 public:
  /** Room for entries 0 to `capacity` - 1; no time given later is before `start`. */
  Wheel(uint32_t capacity, uint64_t start)
      : links_(size_t{capacity} + kFirstEntry), start_(start), swept_(tickOf(start)) {
    for (uint32_t slot = 0; slot < kFirstEntry; ++slot) links_[slot] = {slot, slot, 0};
  }

  /**
   * Fires `entry` in the first sweep after the tick in which `time` lies: not before that time, and
   * a tick later at the most. Re-arms it if it is armed.
   */
  void arm(uint32_t entry, uint64_t time) {
    disarm(entry);
    const uint32_t at = entry + kFirstEntry;
    const uint32_t due = tickOf(time) + 1;
    links_[at].due = due;
    // What is due already would otherwise wait a whole turn for its slot to come by again.
    hang(at, due > swept_ ? due : swept_ + 1);
  }

  /** Forgets `entry`; nothing happens when it is not armed. */
  void disarm(uint32_t entry) {
    const uint32_t at = entry + kFirstEntry;
    if (links_[at].due == 0) return;
    unlink(at);
    links_[at].due = 0;
  }

  /** Prefetches what arming `entry` reads first, and then what lies around that. */
  void prefetch(uint32_t entry) const { __builtin_prefetch(&links_[entry + kFirstEntry]); }
  void prefetchAround(uint32_t entry) const {
    const Link& link = links_[entry + kFirstEntry];
    __builtin_prefetch(&links_[link.previous]);
    __builtin_prefetch(&links_[link.next]);
  }

  /** Whether `entry` is armed. */
  bool armed(uint32_t entry) const { return links_[entry + kFirstEntry].due != 0; }

  /**
   * Fires, through `fire(entry)`, what is due at `time`, at most `budget` entries looked at.
   * Returns false when the budget ran out first: sweep again with the same time soon.
   */
  template <typename Fire>
  bool sweep(uint64_t time, uint32_t budget, Fire&& fire) {
    const uint32_t now = tickOf(time);
    while (swept_ < now || !empty(kAside)) {
      if (empty(kAside)) moveAside(++swept_ % kSlots);
      while (!empty(kAside)) {
        if (budget-- == 0) return false;
        const uint32_t at = links_[kAside].next;
        unlink(at);
        if (links_[at].due > swept_) {
          hang(at, links_[at].due);
          continue;
        }
        links_[at].due = 0;
        fire(at - kFirstEntry);
      }
    }
    return true;
  }

 private:
  struct Link {
    uint32_t next;
    uint32_t previous;
    uint32_t due;  // 0: not armed
  };

  static constexpr uint32_t kSlots = 1024;
  static constexpr uint32_t kAside = kSlots;  // the list a sweep is taking apart
  static constexpr uint32_t kFirstEntry = kSlots + 1;

  /** Ticks are counted from 1: 0 says of an entry that it is not armed. */
  uint32_t tickOf(uint64_t time) const {
    return static_cast<uint32_t>((time - start_) / kTick) + 1;
  }

  bool empty(uint32_t list) const { return links_[list].next == list; }

  void hang(uint32_t at, uint32_t due) {
    const uint32_t slot = due % kSlots;
    const uint32_t last = links_[slot].previous;
    links_[at].next = slot;
    links_[at].previous = last;
    links_[last].next = at;
    links_[slot].previous = at;
  }

  void unlink(uint32_t at) {
    const Link link = links_[at];
    links_[link.previous].next = link.next;
    links_[link.next].previous = link.previous;
  }

  void moveAside(uint32_t slot) {
    if (empty(slot)) return;
    const Link list = links_[slot];
    links_[kAside] = {list.next, list.previous, 0};
    links_[list.next].previous = kAside;
    links_[list.previous].next = kAside;
    links_[slot] = {slot, slot, 0};
  }

  Reserved<Link> links_;
  const uint64_t start_;
  uint32_t swept_;  // every slot up to this tick has been moved aside
};

}  // namespace base

#endif  // SPRITES_BASE_WHEEL_H_
