// What a connection's bytes go through where the server speaks TLS. The engine knows this interface
// alone; only the engine that runs inside Node has what implements it (tls/swarm_tls.cc).
#ifndef SPRITES_SWARM_SOCKET_H_
#define SPRITES_SWARM_SOCKET_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace swarm {

/** How far a connection has come. */
enum class Opening { kDone, kMore, kFailed };

/** Sessions by the descriptor of their socket. */
class Tls {
 public:
  virtual ~Tls() = default;

  /**
   * Begins the handshake on a connected socket, or goes on with it.
   *
   * @param why filled when it failed: a few words, for a count by name
   */
  virtual Opening open(int fd, std::string* why) = 0;

  /** @return as send(2); a request that was written in part is to be given again from there */
  virtual ssize_t send(int fd, const char* bytes, size_t length) = 0;

  /** @return as recv(2); less than `length` when nothing more is there for now */
  virtual ssize_t receive(int fd, char* bytes, size_t length) = 0;

  /** Ends the session, if there is one. The socket is to be closed after it. */
  virtual void end(int fd) = 0;
};

/** Makes the sessions' owner for a server of this name; throws std::runtime_error. */
using OpenTls = std::function<std::unique_ptr<Tls>(const std::string& serverName)>;

// TCP connections without waiting: numeric addresses, any number of loopback source addresses.
//
// A pair of addresses has some 28,000 ports, so a swarm against 127.0.0.0/8 binds its clients to
// 127.0.0.2, 127.0.0.3, …: never to the server's own address, or a client that calls a stopped
// server could be given the server's own port, connect to itself and keep the server from coming
// back. IP_BIND_ADDRESS_NO_PORT lets the kernel choose the port when it knows the other end.

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
