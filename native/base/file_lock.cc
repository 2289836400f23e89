#include "file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace base {

namespace {

/** Whether `path` still leads to the file that `fd` has open: its last holder may have removed it.
 */
bool isStillThere(int fd, const std::string& path) {
  struct stat held;
  struct stat named;
  return fstat(fd, &held) == 0 && lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace

int takeFileLock(const std::string& path) {
  for (;;) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                        S_IRUSR | S_IWUSR);
    if (fd < 0) return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      close(fd);
      return -error;
    }
    if (isStillThere(fd, path)) {
      const std::string holder = std::to_string(getpid()) + "\n";
      // For a person alone: a lock without its number is a lock.
      const bool said = ftruncate(fd, 0) == 0 && pwrite(fd, holder.data(), holder.size(), 0) > 0;
      static_cast<void>(said);
      return fd;
    }
    close(fd);
  }
}

bool holdsFileLock(int fd, const std::string& path) { return isStillThere(fd, path); }

void releaseFileLock(int fd, const std::string& path) {
  // Removed while it is held: who opened it before finds it gone, and makes a new one. Another's is
  // not removed.
  if (isStillThere(fd, path)) unlink(path.c_str());
  close(fd);
}

}  // namespace base
