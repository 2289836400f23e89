// The TLS of connections, as an interface. Only the engine that runs inside Node has an
// implementation (tls/swarm_tls.cc).
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

/** The state of opening a connection. */
enum class OpenState { kDone, kPending, kFailed };

/** TLS sessions, by the descriptors of their sockets. */
class Tls {
 public:
  virtual ~Tls() = default;

  /**
   * Begins the handshake on a connected socket, or continues it.
   *
   * @param why filled with a few words on failure, for a count by name
   */
  virtual OpenState open(int fd, std::string* why) = 0;

  /** @return as send(2); after a partial write the next call continues from there */
  virtual ssize_t send(int fd, const char* bytes, size_t length) = 0;

  /** @return as recv(2); less than `length` when no more bytes are available now */
  virtual ssize_t receive(int fd, char* bytes, size_t length) = 0;

  /** Ends the session, if there is one. The caller closes the socket afterwards. */
  virtual void endSession(int fd) = 0;
};

/** Makes the TLS for a server of this name; throws std::runtime_error. */
using TlsFactory = std::function<std::unique_ptr<Tls>(const std::string& serverName)>;

// Non-blocking TCP connections to numeric addresses, from any number of loopback source addresses.
//
// A pair of addresses has some 28,000 ports, so a swarm against 127.0.0.0/8 binds its clients to
// 127.0.0.2, 127.0.0.3, …, but never to the server's own address: there a client of a stopped
// server could get the server's own port, connect to itself, and keep the server from restarting.
// IP_BIND_ADDRESS_NO_PORT lets the kernel choose the port once it knows the other end.

class Target {
 public:
  /** Sets the address. @return false when `address` is no numeric IPv4 or IPv6 address */
  bool set(const std::string& address, uint16_t port);

  /**
   * Begins to connect.
   *
   * @param source number of the loopback source address, from 0; below 0: not bound
   * @return the descriptor, or -1 with errno: EMFILE, ENFILE, EADDRNOTAVAIL, ECONNREFUSED, …
   */
  int connect(int64_t source) const;

 private:
  sockaddr_storage address_ = {};
  socklen_t length_ = 0;
};

/** @return the result of connecting: 0 or an errno */
int connectError(int fd);

}  // namespace swarm

#endif  // SPRITES_SWARM_SOCKET_H_
