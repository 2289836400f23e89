// Large memory, taken and given back part by part.
//
// A thread that changes the address space of a process waits for one that is changing it: a munmap
// of 100 MB, or a mmap that fills as much, keeps a malloc in another thread waiting until it is
// done, and far longer where its thread has a low priority and the processor is busy. A part is
// done in some ten microseconds.
#ifndef SPRITES_BASE_MEMORY_PARTS_H_
#define SPRITES_BASE_MEMORY_PARTS_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace base {

/** Bytes of a part: the largest page there is on most machines, so that none is broken up. */
constexpr size_t kMemoryPart = 2 << 20;

/** Calls `act(memory, bytes)` for each part, in order, until it returns other than 0: that is
 * returned. */
template <typename Act>
int eachMemoryPart(void* memory, size_t bytes, Act&& act) {
  for (size_t at = 0; at < bytes;) {
    char* const part = static_cast<char*>(memory) + at;
    const size_t aligned = kMemoryPart - reinterpret_cast<uintptr_t>(part) % kMemoryPart;
    const size_t length = std::min(aligned, bytes - at);
    if (const int error = act(part, length)) return error;
    at += length;
  }
  return 0;
}

/** Ends a mapping that is not used any more. */
inline void unmapByParts(void* memory, size_t bytes) {
  eachMemoryPart(memory, bytes,
                 [](void* part, size_t length) { return madvise(part, length, MADV_DONTNEED); });
  munmap(memory, bytes);
}

}  // namespace base

#endif  // SPRITES_BASE_MEMORY_PARTS_H_
