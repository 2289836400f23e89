// One deadline for each of a fixed number of items, in a wheel of 4,096 slots of 10 ms.
//
//   slot 0   1   2  ...        each slot: a doubly linked list threaded through the entries
//        │   └─▶ 17 ⇄ 4 ⇄ 90
//
// Setting a deadline later than the one already set only writes it down: the item is moved when its
// old slot comes round. That is what nearly every answered poll does, and it touches one cache
// line. An item whose deadline is more than one turn (41 s) away is looked at once a turn and
// stays. 16 bytes an item; a heap would need log n moves for each of a million deadlines that
// almost never come.
#ifndef SPRITES_SWARM_WHEEL_H_
#define SPRITES_SWARM_WHEEL_H_

#include <cstdint>
#include <vector>

namespace swarm {

class Wheel {
 public:
  static constexpr uint64_t kTickNs = 10'000'000;

  Wheel(uint32_t items, uint64_t now);

  /** Sets or moves an item's deadline; `at` in nanoseconds of the engine's clock. */
  void arm(uint32_t item, uint64_t at);

  void disarm(uint32_t item);

  /** Calls `fire(item)` for each item whose deadline has passed; the item is disarmed before. */
  template <typename Fire>
  void advance(uint64_t now, Fire fire) {
    const uint32_t last = tickOf(now);
    while (tick_ != last) {
      tick_++;
      const uint32_t slot = tick_ % kSlots;
      // The list is cut off first: what fires may arm itself again into this very slot.
      uint32_t item = slots_[slot];
      slots_[slot] = kNone;
      while (item != kNone) {
        const uint32_t next = entries_[item].next;
        entries_[item].slot = kNone;
        if (entries_[item].tick <= tick_) {
          if (next != kNone) entries_[next].previous = kNone;
          // Another item of the cut-off list may be disarmed by what fires: it unlinks itself from
          // the list, whose head is kept here.
          cut_ = next;
          fire(item);
          item = cut_;
        } else {
          if (next != kNone) entries_[next].previous = kNone;
          link(item);
          item = next;
        }
      }
      cut_ = kNone;
    }
  }

 private:
  static constexpr uint32_t kSlots = 4096;
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Entry {
    uint32_t next = kNone;
    uint32_t previous = kNone;
    uint32_t tick = 0;      // the deadline
    uint32_t slot = kNone;  // where it is linked
  };

  uint32_t tickOf(uint64_t at) const { return static_cast<uint32_t>((at - epoch_) / kTickNs); }
  void link(uint32_t item);
  void unlink(uint32_t item);

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;
  uint64_t epoch_;
  uint32_t tick_ = 0;
  uint32_t cut_ = kNone;
};

}  // namespace swarm

#endif  // SPRITES_SWARM_WHEEL_H_
