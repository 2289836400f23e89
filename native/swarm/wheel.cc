#include "wheel.h"

#include <algorithm>

namespace swarm {

Wheel::Wheel(uint32_t items, uint64_t now) : entries_(items), slots_(kSlots, kNone), epoch_(now) {}

void Wheel::arm(uint32_t item, uint64_t at) {
  Entry& entry = entries_[item];
  const uint32_t tick = std::max(tickOf(std::max(at, epoch_)), tick_) + 1;
  if (entry.slot != kNone && tick >= entry.tick) {
    entry.tick = tick;
    return;
  }
  if (entry.slot != kNone) unlink(item);
  entry.tick = tick;
  link(item);
}

void Wheel::disarm(uint32_t item) {
  if (entries_[item].slot != kNone) unlink(item);
}

void Wheel::link(uint32_t item) {
  Entry& entry = entries_[item];
  entry.slot = entry.tick % kSlots;
  entry.previous = kNone;
  entry.next = slots_[entry.slot];
  if (entry.next != kNone) entries_[entry.next].previous = item;
  slots_[entry.slot] = item;
}

void Wheel::unlink(uint32_t item) {
  Entry& entry = entries_[item];
  if (entry.previous != kNone) {
    entries_[entry.previous].next = entry.next;
  } else if (cut_ == item) {
    cut_ = entry.next;
  } else {
    slots_[entry.slot] = entry.next;
  }
  if (entry.next != kNone) entries_[entry.next].previous = entry.previous;
  entry.slot = kNone;
}

}  // namespace swarm
