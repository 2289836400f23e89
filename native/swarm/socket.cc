#include "socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cstring>

namespace swarm {

namespace {

void enable(int fd, int level, int option) {
  const int on = 1;
  // Errors are ignored: each option is an improvement that a kernel may lack.
  setsockopt(fd, level, option, &on, sizeof(on));
}

/** Returns 127.0.0.2 and up, without the target and addresses that end in 0 or 255. */
uint32_t sourceAddress(int64_t source, uint32_t target) {
  constexpr uint32_t kLoopback = 0x7f000000;
  auto number = static_cast<uint32_t>(source);
  uint32_t address = kLoopback + number / 252 % 65536 * 256 + number % 252 + 2;
  // The target's address is replaced by .254, which no number maps to.
  if (address == target) address = (address & 0xffffff00) + 254;
  return address;
}

int closeKeepingErrno(int fd) {
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

bool Target::set(const std::string& address, uint16_t port) {
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address_);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address_);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    length_ = sizeof(*v4);
    return true;
  }
  if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    length_ = sizeof(*v6);
    return true;
  }
  return false;
}

int Target::connect(int64_t source) const {
  const int fd = socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  enable(fd, IPPROTO_TCP, TCP_NODELAY);
  if (source >= 0 && address_.ss_family == AF_INET) {
    // With SO_REUSEADDR a restarting server can bind an ephemeral port that these sockets use.
    enable(fd, SOL_SOCKET, SO_REUSEADDR);
    enable(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
    const auto& target = reinterpret_cast<const sockaddr_in&>(address_);
    sockaddr_in from = {};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(sourceAddress(source, ntohl(target.sin_addr.s_addr)));
    if (bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof(from)) < 0)
      return closeKeepingErrno(fd);
  }
  const auto* to = reinterpret_cast<const sockaddr*>(&address_);
  if (::connect(fd, to, length_) < 0 && errno != EINPROGRESS) return closeKeepingErrno(fd);
  return fd;
}

int connectError(int fd) {
  int error = 0;
  socklen_t length = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? errno : error;
}

}  // namespace swarm
