// TLS by OpenSSL, as a client: the server's certificate is checked against the authorities given,
// and against its name. Every connection makes a whole handshake: none is resumed, as after a
// restart of all desktops. A parked session keeps no buffers (SSL_MODE_RELEASE_BUFFERS).
#ifndef SPRITES_SWARM_OPENSSL_TLS_H_
#define SPRITES_SWARM_OPENSSL_TLS_H_

#include <string>
#include <vector>

#include "swarm/socket.h"

struct ssl_st;
struct ssl_ctx_st;

namespace swarm {

class OpensslTls : public Tls {
 public:
  /**
   * @param serverName host name or address that the certificate must be for
   * @param authorities PEM of those to believe; empty believes any certificate
   */
  OpensslTls(std::string serverName, const std::string& authorities);
  ~OpensslTls() override;
  OpensslTls(const OpensslTls&) = delete;
  OpensslTls& operator=(const OpensslTls&) = delete;

  Opening open(int fd, std::string* why) override;
  ssize_t send(int fd, const char* bytes, size_t length) override;
  ssize_t receive(int fd, char* bytes, size_t length) override;
  void end(int fd) override;

 private:
  ssl_st* begin(int fd);
  static ssize_t failed(ssl_st* session, int result);

  std::string serverName_;
  bool isAddress_;
  ssl_ctx_st* context_;
  std::vector<ssl_st*> sessions_;  // by descriptor
};

}  // namespace swarm

#endif  // SPRITES_SWARM_OPENSSL_TLS_H_
