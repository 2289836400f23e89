// The timer wheel: one coarse clock for many deadlines, most of which never fire.
//
//   slot  0    1    2    3  …  1023        an entry due at tick t is in slot t mod 1024, or in a
//         │    │    │    │                 slot that is swept before; an entry that is not due
//        e7   ─    e2   ─                  there moves to another slot
//         │         │
//        e9        e4 ── next, previous, due and slot: 12 bytes in an array beside the records
//
// Lifecycle: an entry is armed with a time, re-armed or disarmed in constant time, and fires once.
// The sweep moves the list of a slot aside and empties it from the front. So a callback may arm or
// disarm any entry, even swept ones, and a sweep may stop halfway when its budget is used up.
//
// An entry stays in its slot when it is disarmed, or re-armed with a later time. A client that
// polls again and again re-arms its entry twice for each poll, and with a million clients the
// neighboring entries of a list are not in the processor's caches.
//
// Cost: 12 bytes for each entry and 12 kB of slots; a sweep touches the entries of the slots it
// passes. Rejected: a heap (log n for each re-arm, and every poll re-arms), libuv timers (also a
// heap, and 100 bytes each), hierarchical wheels (cascades, only to skip the few entries that
// outlive a turn of the wheel).
#ifndef SPRITES_BASE_WHEEL_H_
#define SPRITES_BASE_WHEEL_H_

#include <algorithm>
#include <cstdint>

#include "reserve.h"

namespace base {

/** Times are in a unit of the caller; a tick has `kTick` of them. */
template <uint64_t kTick>
class Wheel {
 public:
  /** Most ticks between the last sweep and a time: a day with ticks of 100 ms. */
  static constexpr uint32_t kMaxTicksAhead = (1 << 20) - 1;

  /** Creates a wheel for entries 0 to `capacity` - 1; no later time may be before `start`. */
  Wheel(uint32_t capacity, uint64_t start)
      : links_(size_t{capacity} + kFirstEntry), start_(start), sweptTick_(tickOf(start)) {
    for (uint32_t list = kFirstSlot; list < kFirstEntry; ++list) makeEmpty(list);
  }

  /**
   * Lets `entry` fire in the first sweep after the tick of `time`: not before `time`, and at most a
   * tick later. Re-arms an armed entry.
   */
  void arm(uint32_t entry, uint64_t time) {
    const uint32_t at = entry + kFirstEntry;
    Link& link = links_[at];
    // An entry that is due already would otherwise wait a whole turn for its slot.
    const uint32_t due = std::clamp(tickOf(time), sweptTick_, sweptTick_ + kMaxTicksAhead - 1) + 1;
    link.due = due & kMaxTicksAhead;
    link.armed = true;
    if (link.list == kNoList) return insert(at, due);
    if (due - sweptTick_ >= ticksUntilSwept(link.list)) return;
    unlink(at);
    insert(at, due);
  }

  /** Disarms `entry`, if it is armed. */
  void disarm(uint32_t entry) { links_[entry + kFirstEntry].armed = false; }

  /** Prefetches the memory that arming `entry` reads. */
  void prefetch(uint32_t entry) const { __builtin_prefetch(&links_[entry + kFirstEntry]); }

  /** Whether `entry` is armed. */
  bool isArmed(uint32_t entry) const { return links_[entry + kFirstEntry].armed; }

  /** Whether the next `ticks` slots are empty, so that sweeping them fires nothing. */
  bool isQuiet(uint32_t ticks) const {
    for (uint32_t i = 1; i <= ticks; ++i) {
      if (!isEmpty(slotOf(sweptTick_ + i))) return false;
    }
    return isEmpty(kAside);
  }

  /**
   * Calls `fire(entry)` for entries due at `time`, and looks at most at `budget` entries. Returns
   * false when the budget was too small: sweep again with the same time soon.
   */
  template <typename Fire>
  bool sweep(uint64_t time, uint32_t budget, Fire&& fire) {
    const uint32_t now = tickOf(time);
    while (sweptTick_ < now || !isEmpty(kAside)) {
      if (isEmpty(kAside)) moveAside(slotOf(++sweptTick_));
      while (!isEmpty(kAside)) {
        if (budget-- == 0) return false;
        const uint32_t at = links_[kAside].next;
        Link& link = links_[at];
        unlink(at);
        link.list = kNoList;
        if (!link.armed) continue;
        const uint32_t ticksLeft = (link.due - sweptTick_) & kMaxTicksAhead;
        if (ticksLeft > 0) {
          insert(at, sweptTick_ + ticksLeft);
          continue;
        }
        link.armed = false;
        fire(at - kFirstEntry);
      }
    }
    return true;
  }

 private:
  /** Numbers of the lists: the slots, and the list that a sweep empties. */
  static constexpr uint32_t kNoList = 0;
  static constexpr uint32_t kFirstSlot = 1;
  static constexpr uint32_t kSlots = 1024;
  static constexpr uint32_t kAside = kFirstSlot + kSlots;
  static constexpr uint32_t kFirstEntry = kAside + 1;

  /**
   * An entry, or the head of a list. Zeroed memory is an entry that is not armed and in no list.
   */
  struct Link {
    uint32_t next;
    uint32_t previous;
    uint32_t due : 20;   // last bits of its tick
    uint32_t list : 11;  // its slot, or the one it was moved aside from
    bool armed : 1;
  };
  static_assert(sizeof(Link) == 12, "the cost that is named above");
  static_assert(kAside < 1 << 11, "a list fits into a Link");

  uint32_t tickOf(uint64_t time) const { return static_cast<uint32_t>((time - start_) / kTick); }

  static uint32_t slotOf(uint32_t tick) { return kFirstSlot + tick % kSlots; }

  /** Ticks until the sweep of a slot. Entries moved aside are swept before. */
  uint32_t ticksUntilSwept(uint32_t list) const {
    return 1 + (list - kFirstSlot - (sweptTick_ + 1)) % kSlots;
  }

  bool isEmpty(uint32_t list) const { return links_[list].next == list; }

  void makeEmpty(uint32_t list) { links_[list].next = links_[list].previous = list; }

  void insert(uint32_t at, uint32_t due) {
    const uint32_t list = slotOf(due);
    const uint32_t last = links_[list].previous;
    links_[at].next = list;
    links_[at].previous = last;
    links_[at].list = list;
    links_[last].next = at;
    links_[list].previous = at;
  }

  void unlink(uint32_t at) {
    const Link link = links_[at];
    links_[link.previous].next = link.next;
    links_[link.next].previous = link.previous;
  }

  void moveAside(uint32_t slot) {
    if (isEmpty(slot)) return;
    const Link list = links_[slot];
    links_[kAside].next = list.next;
    links_[kAside].previous = list.previous;
    links_[list.next].previous = kAside;
    links_[list.previous].next = kAside;
    makeEmpty(slot);
  }

  Reserved<Link> links_;
  const uint64_t start_;
  uint32_t sweptTick_;  // the slots up to this tick were moved aside
};

}  // namespace base

#endif  // SPRITES_BASE_WHEEL_H_
