// A lock that one process at a time holds, for as long as it lives: the kernel releases it however
// the process ends (flock). The locked file has the process id, for people.
#ifndef SPRITES_FILES_H_
#define SPRITES_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace base {

/**
 * Takes the lock at `path`. Creates the file if needed; follows no link. Children do not inherit
 * the lock. Returns the descriptor that holds it, or -errno: -EWOULDBLOCK when another process has
 * it.
 */
int acquireFileLock(const std::string& path);

/**
 * Whether the lock's file is still at `path`: if it was removed, another process may have a lock
 * too.
 */
bool isFileLockInPlace(int fd, const std::string& path);

/** Releases the lock, and removes its file. */
void releaseFileLock(int fd, const std::string& path);

// Writes that never wait for the reader of a descriptor, such as the log's.

/**
 * Writes as much of `bytes` to `fd` as it accepts at once. The descriptor's mode stays as it is,
 * since other processes share it.
 *
 * Returns the number of bytes written, or -errno: -EAGAIN when nothing can be written without
 * waiting (a pipe, a socket or a terminal that is not read). A regular file is written in any case,
 * since the kernel writes to its cache.
 */
long writeWithoutWaiting(int fd, std::string_view bytes);

/** The folder of a file. */
std::string directoryOf(const std::string& path);

/** Writes the names in that folder through to the disk. Returns 0 or errno. */
int syncDirectoryOf(const std::string& path);

// A file as read-only bytes in memory.
//
// `open` reads the whole file, part by part (memory_parts.h), so that a failing disk is an errno
// there, and no SIGBUS at a later access (Linux 5.14 and later; before that the file is read at
// each access).

class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}

  /**
   * Opens `path`; to be called once. Returns 0 or errno: ELOOP for a link, which is not followed,
   * EINVAL for anything but a regular file, EFBIG above `maxBytes`; `size` then has its length.
   */
  int open(const std::string& path, uint64_t maxBytes);

  std::string_view bytes() const {
    return {static_cast<const char*>(memory_), memory_ == nullptr ? 0 : size_};
  }

  uint64_t size() const { return size_; }

 private:
  int map(int fd, uint64_t maxBytes);

  void* memory_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace base

#endif  // SPRITES_FILES_H_
