// A client's end of a connection, for the tests of the front door.
#ifndef SPRITES_TEST_NATIVE_WIRE_H_
#define SPRITES_TEST_NATIVE_WIRE_H_

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "expect.h"
#include "tls_client.h"

namespace server::test {

/** A port to connect to. */
struct Port {
  // NOLINTNEXTLINE(google-explicit-constructor): most are without TLS
  Port(uint16_t itsNumber, uint64_t* countOfItsWires = nullptr)
      : number(itsNumber), wireCount(countOfItsWires) {}

  uint16_t number;
  uint64_t* wireCount;  // number of its wires so far; nullptr: a port without TLS
};

/**
 * The client's end of a connection. With TLS every read also continues the handshake and sends
 * pending bytes.
 */
class Wire {
 public:
  explicit Wire(Port port, int receiveBuffer = 0) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    EXPECT(fd_ >= 0);
    const int one = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (receiveBuffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, sizeof receiveBuffer);
    }
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port.number);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // The kernel puts the connection into the backlog: the server need not accept it yet.
    EXPECT(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    fcntl(fd_, F_SETFL, O_NONBLOCK);
    if (port.wireCount == nullptr) return;
    tls_ =
        std::make_unique<ClientTls>(++*port.wireCount % 4 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
    send({});
  }
  ~Wire() { close(); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void send(std::string_view text) {
    if (!tls_) return sendRaw(text);
    tls_->queueText(text);
    sendRaw(tls_->outgoing());
  }

  /** Sends raw bytes, also on a TLS connection. */
  void sendRaw(std::string_view bytes) {
    // A close by the server is noticed by a read.
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    EXPECT(sent == static_cast<ssize_t>(bytes.size()) || errno == EPIPE || errno == ECONNRESET);
  }

  /** Whether the handshake is done, so that bytes are sent at once. */
  bool isHandshakeDone() {
    receive();
    return !tls_ || tls_->isHandshakeDone();
  }

  /** Removes one complete answer, if there is one: its head and its body. */
  bool readAnswer(std::string* head, std::string* body) {
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

  /** Reads the bytes that have come, in at most so many pieces, and returns all unread ones. */
  std::string& read(int pieces = INT_MAX) {
    receive(pieces);
    return text_;
  }

  /** Whether the server has closed the connection, as far as take or read have seen. */
  bool isClosed() const { return isClosed_; }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  /** Ends the client's half; it may still read. */
  void endHalf() {
    if (!tls_) return shutdownHalf();
    tls_->queueEnd();
    send({});
  }

  void reset() {
    const linger at = {1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at, sizeof at);
    close();
  }

 private:
  void shutdownHalf() const { EXPECT(shutdown(fd_, SHUT_WR) == 0 || errno == ENOTCONN); }

  void receive(int pieces = INT_MAX) {
    // Not on the stack: valgrind or a sanitizer would mark all of it at each call.
    static thread_local char buffer[65536];
    errno = 0;
    for (; pieces > 0; --pieces) {
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got == -1) break;
      if (got == 0) {
        isClosed_ = true;
        break;
      }
      if (tls_) {
        tls_->receive({buffer, static_cast<size_t>(got)}, &text_);
      } else {
        text_.append(buffer, got);
      }
    }
    if (errno == ECONNRESET) isClosed_ = true;
    if (!tls_ || isClosed_) return;
    isClosed_ = tls_->isClosed();
    send({});
  }

  int fd_;
  std::unique_ptr<ClientTls> tls_;
  std::string text_;
  bool isClosed_ = false;
};

inline std::string request(const std::string& method, const std::string& target,
                           const std::string& body = {}) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: sprites.test\r\n";
  if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

/** Id of no client. */
inline const std::string kNobodysId = "00000000-0000-4000-8000-000000000000";
/** A request that is served without any client: 204. */
inline const std::string kAnyRequest = request("POST", "/leave/" + kNobodysId);

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_WIRE_H_
