#include "listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace server {

namespace {

// A client may vanish without closing (a closed lid, a cut cable). That is noticed when its poll is
// answered, at the latest after a hold: no kernel acknowledges the answer (kUserTimeout). Keepalive
// probes are only for connections that are silent for longer than a hold. A healthy parked client
// must never be probed: a million of them would mean bursts of thousands of packets, some of which
// are dropped, and with TCP_USER_TIMEOUT set one lost probe ends the connection, whatever
// TCP_KEEPCNT says (tcp_keepalive_timer in net/ipv4/tcp_timer.c).
constexpr int kKeepInterval = 15;
constexpr int kKeepCount = 4;

/** Milliseconds an answer may stay without an acknowledgement from the client's kernel (tcp(7)). */
constexpr int kUserTimeout = 30000;

struct Setting {
  int level;
  int name;
  int value;
};

// Set on the listener: accepted connections inherit all of them on Linux, which saves six system
// calls for each.
constexpr Setting kSettings[] = {
    {SOL_SOCKET, SO_REUSEADDR, 1},          {IPPROTO_TCP, TCP_NODELAY, 1},
    {SOL_SOCKET, SO_KEEPALIVE, 1},          {IPPROTO_TCP, TCP_KEEPINTVL, kKeepInterval},
    {IPPROTO_TCP, TCP_KEEPCNT, kKeepCount}, {IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeout},
};

/** Reads a numeric address. Returns the length of `out`, or 0. */
socklen_t readAddress(const char* text, uint16_t port, sockaddr_storage* out) {
  memset(out, 0, sizeof *out);
  auto* v4 = reinterpret_cast<sockaddr_in*>(out);
  if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return sizeof *v4;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(out);
  if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return sizeof *v6;
  }
  return 0;
}

}  // namespace

int Listener::bind(const char* address, uint16_t port, Sharing sharing) {
  sockaddr_storage name;
  const socklen_t length = readAddress(address, port, &name);
  if (length == 0) return EINVAL;
  fd_ = socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return errno;
  for (const Setting& setting : kSettings) {
    if (setsockopt(fd_, setting.level, setting.name, &setting.value, sizeof setting.value) != 0) {
      const int error = errno;
      close();
      return error;
    }
  }
  const int shared = sharing == Sharing::kShared ? 1 : 0;
  if (setsockopt(fd_, SOL_SOCKET, SO_REUSEPORT, &shared, sizeof shared) != 0 ||
      ::bind(fd_, reinterpret_cast<sockaddr*>(&name), length) != 0) {
    const int error = errno;
    close();
    return error;
  }
  return 0;
}

int Listener::listenOn(int backlog, int keepIdle) {
  const bool listens =
      setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &keepIdle, sizeof keepIdle) == 0 &&
      ::listen(fd_, backlog) == 0;
  return listens ? 0 : errno;
}

void Listener::adopt(int fd) {
  close();
  fd_ = fd;
  restoreSpare();
}

int Listener::release() { return std::exchange(fd_, -1); }

int Listener::reserve(const char* address, uint16_t port) {
  return bind(address, port, Sharing::kAlone);
}

int Listener::allowSharing() {
  // Only after `reserve`: otherwise another server of this kind would share the port.
  const int shared = 1;
  const int set = setsockopt(fd_, SOL_SOCKET, SO_REUSEPORT, &shared, sizeof shared);
  return set == 0 ? 0 : errno;
}

int Listener::bindShared(const char* address, uint16_t port) {
  return bind(address, port, Sharing::kShared);
}

uint16_t Listener::port() const {
  sockaddr_storage name;
  socklen_t length = sizeof name;
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &length) != 0) return 0;
  return ntohs(name.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&name)->sin_port
                                         : reinterpret_cast<sockaddr_in6*>(&name)->sin6_port);
}

Listener::Accepted Listener::accept(int* connection, sockaddr_storage* address) {
  for (;;) {
    socklen_t length = sizeof *address;
    *connection =
        accept4(fd_, reinterpret_cast<sockaddr*>(address), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (*connection >= 0) return Accepted::kConnection;
    switch (errno) {
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        return Accepted::kOutOfFiles;
      case EINTR:
      case ECONNABORTED:  // gone while it waited: others may wait behind it (accept(2))
      case EPROTO:
        continue;
      default:
        return Accepted::kNone;
    }
  }
}

int Listener::acceptOnSpare() {
  if (spare_ < 0) return -1;
  ::close(spare_);
  spare_ = -1;
  return accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

void Listener::restoreSpare() {
  if (spare_ < 0) spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void Listener::close() {
  if (fd_ >= 0) ::close(fd_);
  if (spare_ >= 0) ::close(spare_);
  fd_ = spare_ = -1;
}

}  // namespace server
