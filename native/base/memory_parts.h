// Large memory, allocated and freed part by part.
//
// A thread that changes the address space of a process waits for another thread that is changing
// it. A munmap of 100 MB, or a mmap that fills as much, blocks a malloc in another thread until it
// is done. That takes far longer if the unmapping thread has a low priority and the processor is
// busy. A part takes some ten microseconds.
#ifndef SPRITES_BASE_MEMORY_PARTS_H_
#define SPRITES_BASE_MEMORY_PARTS_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace base {

/** Bytes of a part: the largest page on most machines, so that no page is split. */
constexpr size_t kMemoryPartBytes = 2 << 20;

/**
 * Calls `act(memory, bytes)` for each part, in order, until one returns other than 0, and returns
 * that; otherwise 0.
 */
template <typename Act>
int forEachMemoryPart(void* memory, size_t bytes, Act&& act) {
  for (size_t at = 0; at < bytes;) {
    char* const part = static_cast<char*>(memory) + at;
    const size_t aligned = kMemoryPartBytes - reinterpret_cast<uintptr_t>(part) % kMemoryPartBytes;
    const size_t length = std::min(aligned, bytes - at);
    if (const int error = act(part, length)) return error;
    at += length;
  }
  return 0;
}

/** Unmaps memory that is not used any more. */
inline void unmapByParts(void* memory, size_t bytes) {
  forEachMemoryPart(memory, bytes,
                    [](void* part, size_t length) { return madvise(part, length, MADV_DONTNEED); });
  munmap(memory, bytes);
}

}  // namespace base

#endif  // SPRITES_BASE_MEMORY_PARTS_H_
