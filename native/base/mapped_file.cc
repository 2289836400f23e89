#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "memory_parts.h"

namespace base {

namespace {

/** MADV_POPULATE_READ: older headers do not have it. */
constexpr int kPopulateRead = 22;

/** Reads a part of a mapping. Returns 0 or errno. */
int readPart(void* part, size_t length) {
  if (madvise(part, length, kPopulateRead) == 0 || errno == EINVAL || errno == EINTR) return 0;
  return errno == EFAULT ? EIO : errno;
}

}  // namespace

MappedFile::~MappedFile() {
  if (memory_ != nullptr) unmapByParts(memory_, size_);
}

int MappedFile::open(const std::string& path, uint64_t most) {
  // Not to wait for the other end of a pipe, which is refused anyway.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = map(fd, most);
  close(fd);
  return error;
}

int MappedFile::map(int fd, uint64_t most) {
  struct stat info;
  if (fstat(fd, &info) != 0) return errno;
  if (!S_ISREG(info.st_mode)) return EINVAL;
  size_ = info.st_size;
  if (size_ > most) return EFBIG;
  if (size_ == 0) return 0;
  void* const memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return errno;
  memory_ = memory;
  return eachMemoryPart(memory_, size_, readPart);
}

}  // namespace base
