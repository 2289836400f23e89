// A file of the disk as bytes in memory, to be read.
//
// All of it is read when it is opened, part by part (memory_parts.h), so that a disk that fails is
// an errno then, and not a SIGBUS where the bytes are looked at (Linux 5.14 and later; before that
// it is read as it is looked at).
#ifndef SPRITES_BASE_MAPPED_FILE_H_
#define SPRITES_BASE_MAPPED_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace base {

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

#endif  // SPRITES_BASE_MAPPED_FILE_H_
