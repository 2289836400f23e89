// A client's end of a connection, for the tests of the front door.
#ifndef SPRITES_TEST_NATIVE_PEER_H_
#define SPRITES_TEST_NATIVE_PEER_H_

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

#include "expect.h"

namespace server::test {

/** The client's end of a connection. */
class Wire {
 public:
  explicit Wire(uint16_t port, int receiveBuffer = 0) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    EXPECT(fd_ >= 0);
    const int one = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (receiveBuffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, sizeof receiveBuffer);
    }
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // The kernel takes it into the backlog: nobody need accept it yet.
    EXPECT(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    fcntl(fd_, F_SETFL, O_NONBLOCK);
  }
  ~Wire() { close(); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void send(std::string_view text) {
    // A server that has closed is noticed when it is read from.
    const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    EXPECT(sent == static_cast<ssize_t>(text.size()) || errno == EPIPE || errno == ECONNRESET);
  }

  /** Takes one whole answer, if there is one: its head and its body. */
  bool take(std::string* head, std::string* body) {
    receive();
    const size_t end = text_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const size_t field = text_.find("Content-Length: ");
    EXPECT(field < end);
    const size_t length = strtoul(text_.c_str() + field + 16, nullptr, 10);
    if (text_.size() < end + 4 + length) return false;
    *head = text_.substr(0, end);
    *body = text_.substr(end + 4, length);
    text_.erase(0, end + 4 + length);
    return true;
  }

  /** Reads what has come. */
  std::string& read() {
    receive();
    return text_;
  }

  /** The server has closed it, as far as take or read has seen. */
  bool over() const { return over_; }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  /** Ends its half: it may still read. */
  void end() { EXPECT(shutdown(fd_, SHUT_WR) == 0 || errno == ENOTCONN); }

  void reset() {
    const linger at = {1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at, sizeof at);
    close();
  }

 private:
  void receive() {
    // Not on the stack: what looks on would mark all of it at each call.
    static thread_local char buffer[65536];
    for (ssize_t got; (got = recv(fd_, buffer, sizeof buffer, 0)) != -1 || errno == EINTR;) {
      if (got == 0) {
        over_ = true;
        break;
      }
      text_.append(buffer, got);
    }
    if (errno == ECONNRESET) over_ = true;
  }

  int fd_;
  std::string text_;
  bool over_ = false;
};

inline std::string request(const std::string& method, const std::string& target,
                           const std::string& body = {}) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: sprites.test\r\n";
  if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_PEER_H_
