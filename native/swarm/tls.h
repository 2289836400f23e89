// What a connection's bytes go through where the server speaks TLS. The engine knows this interface
// alone; native/swarm/openssl_tls.h is the only one that implements it, and only the engine that
// runs inside Node has it (native/addon/swarm_tls.cc).
#ifndef SPRITES_SWARM_TLS_H_
#define SPRITES_SWARM_TLS_H_

#include <sys/types.h>

#include <cstddef>
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

}  // namespace swarm

#endif  // SPRITES_SWARM_TLS_H_
