// Arrays that are reserved whole at the start and touched only as they fill.
//
// The tables of the server are sized once, for the capacity that the operator has set. Reserving
// that much address space costs nothing; a page becomes resident memory at the first write to it.
// So an idle server with room for a million clients stays small, nothing is allocated, moved or
// copied while it serves, and the address of an element never changes.
//
//     Reserved<Node>   [ used | used | never touched: no memory yet . . . . . . . . ]
//                      0                                                       size()
//
// The memory comes zero-filled. A table in which zero means "nothing" needs no initialisation,
// which would touch every page.
//
// Rejected: std::vector with reserve() (its allocator may touch or commit pages, and growing needs
// a size that the tables do not want), calloc (the same pages, but without a guarantee), growing by
// chunks (a second load for every access).
#ifndef SPRITES_BASE_RESERVE_H_
#define SPRITES_BASE_RESERVE_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "memory_parts.h"

namespace base {

/**
 * An array of `size()` elements, all zero bytes until written. It owns its mapping; elements are
 * never constructed or destroyed. An index out of bounds is undefined behavior.
 */
template <typename T>
class Reserved {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "elements are born of zero bytes and never destroyed");

 public:
  /** Reserves address space for `size` elements. Throws std::bad_alloc without it. */
  explicit Reserved(size_t size) : size_(size) {
    if (size > (SIZE_MAX >> 1) / sizeof(T)) throw std::bad_alloc();
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(memory);
  }

  ~Reserved() { unmapByParts(data_, bytes()); }

  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;

  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }

  T* data() { return data_; }
  const T* data() const { return data_; }

  /** Number of elements. */
  size_t size() const { return size_; }

 private:
  /** Mapped bytes: at least 1, since mmap refuses 0. */
  size_t bytes() const { return size_ == 0 ? 1 : size_ * sizeof(T); }

  size_t size_;
  T* data_;
};

}  // namespace base

#endif  // SPRITES_BASE_RESERVE_H_
