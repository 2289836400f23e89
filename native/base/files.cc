#include "files.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "memory_parts.h"

namespace base {

namespace {

/** Whether `path` still leads to the file of `fd`: the last holder may have removed it. */
bool isFileAt(int fd, const std::string& path) {
  struct stat held;
  struct stat named;
  return fstat(fd, &held) == 0 && lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace

int acquireFileLock(const std::string& path) {
  for (;;) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                        S_IRUSR | S_IWUSR);
    if (fd < 0) return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      close(fd);
      return -error;
    }
    if (isFileAt(fd, path)) {
      const std::string holder = std::to_string(getpid()) + "\n";
      // Only for people: the lock is valid without the process id.
      const bool isWritten =
          ftruncate(fd, 0) == 0 && pwrite(fd, holder.data(), holder.size(), 0) > 0;
      static_cast<void>(isWritten);
      return fd;
    }
    close(fd);
  }
}

bool isFileLockInPlace(int fd, const std::string& path) { return isFileAt(fd, path); }

void releaseFileLock(int fd, const std::string& path) {
  // Removed while the lock is held: a process that opened the file before finds it gone, and
  // creates a new one. The file of another process is not removed.
  if (isFileAt(fd, path)) unlink(path.c_str());
  close(fd);
}

long writeWithoutWaiting(int fd, std::string_view bytes) {
  struct stat info;
  if (fstat(fd, &info) != 0) return -errno;
  ssize_t written;
  if (S_ISREG(info.st_mode)) {
    written = write(fd, bytes.data(), bytes.size());
  } else {
    const iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
    written = pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
    if (written < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
      // Terminals, and pipes before Linux 6.4. A ready one accepts PIPE_BUF bytes. Another writer
      // may come in between; only a kernel that knows RWF_NOWAIT excludes that.
      pollfd ready = {fd, POLLOUT, 0};
      if (poll(&ready, 1, 0) <= 0) return -EAGAIN;
      written = write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    }
  }
  return written < 0 ? -errno : written;
}

std::string directoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

int syncDirectoryOf(const std::string& path) {
  const int fd = ::open(directoryOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  // EINVAL: the file system can't sync folders (such as folders shared with a virtual machine).
  const int error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  ::close(fd);
  return error;
}

namespace {

/** MADV_POPULATE_READ, which older headers lack. */
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

int MappedFile::open(const std::string& path, uint64_t maxBytes) {
  // O_NONBLOCK: does not wait for the other end of a pipe, which is refused anyway.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = map(fd, maxBytes);
  close(fd);
  return error;
}

int MappedFile::map(int fd, uint64_t maxBytes) {
  struct stat info;
  if (fstat(fd, &info) != 0) return errno;
  if (!S_ISREG(info.st_mode)) return EINVAL;
  size_ = info.st_size;
  if (size_ > maxBytes) return EFBIG;
  if (size_ == 0) return 0;
  void* const memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return errno;
  memory_ = memory;
  return forEachMemoryPart(memory_, size_, readPart);
}

}  // namespace base
