// TCP connections without waiting: numeric addresses, any number of loopback source addresses.
//
// A pair of addresses has some 28,000 ports, so a swarm against 127.0.0.0/8 binds its clients to
// 127.0.0.2, 127.0.0.3, …: never to the server's own address, or a client that calls a stopped
// server could be given the server's own port, connect to itself and keep the server from coming
// back. IP_BIND_ADDRESS_NO_PORT lets the kernel choose the port when it knows the other end.
#ifndef SPRITES_SWARM_SOCKET_H_
#define SPRITES_SWARM_SOCKET_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace swarm {

class Target {
 public:
  /** @return false when `address` is no numeric IPv4 or IPv6 address */
  bool set(const std::string& address, uint16_t port);

  /**
   * Begins a connection.
   *
   * @param source number of the loopback source address, from 0; below 0 binds to none
   * @return the descriptor, or -1 with errno: EMFILE, ENFILE, EADDRNOTAVAIL, ECONNREFUSED, …
   */
  int connect(int64_t source) const;

 private:
  sockaddr_storage address_ = {};
  socklen_t length_ = 0;
};

/** @return what became of a connection begun: 0, or its errno */
int connectError(int fd);

}  // namespace swarm

#endif  // SPRITES_SWARM_SOCKET_H_
