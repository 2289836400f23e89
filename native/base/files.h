// A lock that one process at a time holds, for as long as it lives: the kernel gives it back
// however the process ends (flock). The file it is on holds the process's number, for a person.
#ifndef SPRITES_FILES_H_
#define SPRITES_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace base {

/**
 * Takes the lock at `path`, whose file is made if need be; no link is followed. Children do not
 * inherit it. Returns the descriptor that holds it, or -errno: -EWOULDBLOCK when another process
 * has it.
 */
int takeFileLock(const std::string& path);

/** Whether the lock's file is still at `path`: where it was removed, another process may have it
 * too. */
bool holdsFileLock(int fd, const std::string& path);

/** Gives the lock back, and removes its file. */
void releaseFileLock(int fd, const std::string& path);

// Writing to a descriptor that another process reads, such as the log's, without ever waiting for
// it.

/**
 * Writes as much of `bytes` to `fd` as it takes at once. The descriptor's own mode stays as it is:
 * other processes share it.
 *
 * Returns the number of bytes written, or -errno: -EAGAIN where nothing can be written without
 * waiting (a pipe, a socket or a terminal that is not read). A regular file is written to in any
 * case, since the kernel takes that into its cache.
 */
long writeNow(int fd, std::string_view bytes);

/** The folder that a file is in. */
std::string directoryOf(const std::string& path);

/** Has the names in that folder written through to the disk. Returns 0 or errno. */
int syncDirectoryOf(const std::string& path);

// A file of the disk as bytes in memory, to be read.
//
// All of it is read when it is opened, part by part (memory_parts.h), so that a disk that fails is
// an errno then, and not a SIGBUS where the bytes are looked at (Linux 5.14 and later; before that
// it is read as it is looked at).

class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}

  /**
   * Opens `path`, once. Returns 0 or errno: ELOOP for a link, which is not followed, EINVAL for
   * what is no regular file, EFBIG above `most` bytes; `size` then says how many it has.
   */
  int open(const std::string& path, uint64_t most);

  std::string_view bytes() const {
    return {static_cast<const char*>(memory_), memory_ == nullptr ? 0 : size_};
  }

  uint64_t size() const { return size_; }

 private:
  int map(int fd, uint64_t most);

  void* memory_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace base

#endif  // SPRITES_FILES_H_
