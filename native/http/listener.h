// The listening socket, and the answer to a connection when the process has no file descriptor
// left.
//
// Without a free file descriptor, accept fails and leaves the connection in the queue. A loop that
// tries again would use a whole core, and clients would wait forever. So the listener keeps a spare
// descriptor open. It closes the spare, accepts one connection with it, answers 503, and accepts no
// more until the next tick.
#ifndef SPRITES_LISTENER_H_
#define SPRITES_LISTENER_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace server {

class Listener {
 public:
  enum class Accepted { kConnection, kNone, kOutOfFiles };

  ~Listener() { close(); }

  /** Accepts from `fd`, a listening socket, which the listener owns from now on. */
  void adopt(int fd);

  /** Returns the socket, which the caller owns and closes from now on. */
  int release();

  /**
   * Binds a port that no other socket has, not even shared, without listening on it. `address` is
   * numeric, IPv4 or IPv6; `port` 0: any free one. Returns 0 or errno.
   */
  int reserve(const char* address, uint16_t port);

  /** Lets other listeners of this process share the reserved port (SO_REUSEPORT, socket(7)). */
  int allowSharing();

  /** Binds a port that another listener shares, as `reserve` does. */
  int bindShared(const char* address, uint16_t port);

  /**
   * Listens on the bound port. A connection that has been silent for `keepIdle` seconds is probed
   * (TCP_KEEPIDLE). Returns 0 or errno.
   */
  int listenOn(int backlog, int keepIdle);

  /** The descriptor, for epoll; -1 when not listening. */
  int fd() const { return fd_; }

  /** The port it listens on. */
  uint16_t port() const;

  /** Accepts a waiting connection, as non-blocking; `address` is the client's. */
  Accepted accept(int* connection, sockaddr_storage* address);

  /**
   * Accepts a waiting connection with the spare descriptor. The caller closes it before the next
   * call. Returns -1 when none was waiting.
   */
  int acceptOnSpare();

  /** Opens the spare again, if the kernel has a descriptor for it. */
  void restoreSpare();

  /** Closes the listening socket. */
  void close();

 private:
  /** Whether other sockets may share the port. */
  enum class Sharing { kAlone, kShared };

  int bind(const char* address, uint16_t port, Sharing sharing);

  int fd_ = -1;
  int spare_ = -1;
};

}  // namespace server

#endif  // SPRITES_LISTENER_H_
