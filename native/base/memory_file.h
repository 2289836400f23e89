// A file in memory, from which the kernel sends pages to sockets without copying them.
//
//   send      bytes ──copy──▶ [ pages of this reader's socket ] ──copy──▶ reader
//   sendfile  [ pages of the file ] ◀── the sockets of all readers ──copy──▶ reader
//
// Cost: making a file of 165 KB takes 120 µs. Then each reader takes some 35 µs of CPU instead of
// 85, so it pays from the third reader on. With 65 KB a reader takes 18 µs instead of 22; with 20
// KB there is no difference. On a machine with faster memory a copy is cheaper: http/send_costs.h
// decides.
//
// Bounds for the process: kMaxFiles and kMaxBytes. Above them no file is made, and bytes are
// copied. Rejected: MSG_ZEROCOPY (it copies on loopback, and reports the end of each send).
#ifndef SPRITES_BASE_MEMORY_FILE_H_
#define SPRITES_BASE_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace base {

class MemoryFile {
 public:
  static constexpr uint32_t kMaxFiles = 16;
  static constexpr uint64_t kMaxBytes = 16 << 20;

  MemoryFile() = default;
  ~MemoryFile() { close(); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /** Creates an empty file for `length` bytes. Returns false when it can't. */
  bool open(uint64_t length) {
    length_ = length;
    const uint32_t count = ++openFiles_;
    const uint64_t bytes = openBytes_ += length;
    if (count <= kMaxFiles && bytes <= kMaxBytes) fd_ = memfd_create("sprites-feed", MFD_CLOEXEC);
    if (fd_ < 0) uncount();
    return fd_ >= 0;
  }

  /** Appends bytes. Returns false when there is no memory; the file is closed then. */
  bool write(const char* bytes, size_t length) {
    if (fd_ >= 0 && ::write(fd_, bytes, length) != static_cast<ssize_t>(length)) close();
    return fd_ >= 0;
  }

  /** The descriptor; -1: no file. */
  int fd() const { return fd_; }

  /** Number of files in the process. */
  static uint32_t count() { return openFiles_; }

 private:
  void close() {
    if (fd_ < 0) return;
    ::close(fd_);
    fd_ = -1;
    uncount();
  }

  void uncount() const {
    --openFiles_;
    openBytes_ -= length_;
  }

  static inline std::atomic<uint32_t> openFiles_{0};
  static inline std::atomic<uint64_t> openBytes_{0};

  uint64_t length_ = 0;
  int fd_ = -1;
};

}  // namespace base

#endif  // SPRITES_BASE_MEMORY_FILE_H_
