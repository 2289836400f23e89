// The listening socket, and what to do when no file is left for another connection.
//
// When the process has no file descriptor left, accept fails and leaves the connection in the
// queue. A loop that asks again would use all of a core, and waiting clients would wait for ever.
// So the listener keeps a spare descriptor open. It closes the spare, accepts one connection with
// it, answers that connection 503, and accepts no more until the next tick.
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

  /** Accepts from `fd`, a socket that listens already: it is the listener's from now on. */
  void adopt(int fd);

  /** Gives the socket away, with the port it has: the caller closes it. */
  int release();

  /**
   * Takes a port that no other socket has, not even to share, without listening on it. `address` is
   * numeric, IPv4 or IPv6; `port` 0 takes a free one. Returns 0, or errno of what failed.
   */
  int reserve(const char* address, uint16_t port);

  /** Lets others of this process share the port that was reserved (SO_REUSEPORT, socket(7)). */
  int letShare();

  /** Takes a port that another listener lets it share: as `reserve`. */
  int share(const char* address, uint16_t port);

  /**
   * Listens on the port that was taken; a connection that has been silent for `keepIdle` seconds is
   * probed (TCP_KEEPIDLE). Returns 0, or errno.
   */
  int listenOn(int backlog, int keepIdle);

  /** The descriptor, for epoll; -1 when not listening. */
  int fd() const { return fd_; }

  /** The port it listens on. */
  uint16_t port() const;

  /** Takes one waiting connection, non-blocking; `address` is its client's. */
  Accepted accept(int* connection, sockaddr_storage* address);

  /**
   * Takes one waiting connection although no file is left, by way of the spare. The caller closes
   * it before the next call. Returns -1 when there was none after all.
   */
  int acceptOnSpare();

  /** Opens the spare again, if the kernel has a descriptor for it. */
  void restoreSpare();

  /** Closes the listening socket. */
  void close();

 private:
  /** Whether others may listen on the same port. */
  enum class Sharing { kAlone, kShared };

  int bind(const char* address, uint16_t port, Sharing sharing);

  int fd_ = -1;
  int spare_ = -1;
};

}  // namespace server

#endif  // SPRITES_LISTENER_H_
