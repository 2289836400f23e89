#include "write_now.h"

#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace base {

long writeNow(int fd, std::string_view bytes) {
  struct stat info;
  if (fstat(fd, &info) != 0) return -errno;
  ssize_t wrote;
  if (S_ISREG(info.st_mode)) {
    wrote = write(fd, bytes.data(), bytes.size());
  } else {
    const iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
    wrote = pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
    if (wrote < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
      // Terminals, and pipes before Linux 6.4. One that is ready takes PIPE_BUF bytes; another
      // writer may come in between, which only a kernel that knows RWF_NOWAIT can exclude.
      pollfd ready = {fd, POLLOUT, 0};
      if (poll(&ready, 1, 0) <= 0) return -EAGAIN;
      wrote = write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    }
  }
  return wrote < 0 ? -errno : wrote;
}

}  // namespace base
