#include "parent.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

namespace swarm {

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(written);
    } else if (errno == EAGAIN) {
      pollfd wait = {fd, POLLOUT, 0};
      poll(&wait, 1, 1000);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool Commands::read() {
  char bytes[4096];
  const ssize_t got = ::read(fd_, bytes, sizeof(bytes));
  if (got > 0) buffer_.append(bytes, got);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

bool Commands::next(std::string* line) {
  const size_t end = buffer_.find('\n');
  if (end == std::string::npos) return false;
  line->assign(buffer_, 0, end);
  buffer_.erase(0, end + 1);
  return true;
}

}  // namespace swarm
