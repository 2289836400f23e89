// HTTP/1.1 answers as they come in pieces: heads, bodies with a length, chunks; and the events of
// Server-Sent Events in them. A base for the protocols that speak it.
#ifndef SPRITES_BENCH_HTTP_H_
#define SPRITES_BENCH_HTTP_H_

#include <string>
#include <string_view>

#include "protocol.h"
#include "swarm/http.h"

namespace watchers {

class HttpProtocol : public Protocol {
 public:
  void read(Connection& connection, std::string_view data, Listener* listener) override;

 protected:
  enum Step : uint8_t { kHead, kBody, kChunkLine, kChunk, kChunkEnd, kEvents, kUpgraded };

  /** A head is whole; what follows it is read as it says. */
  virtual void head(Connection&, const swarm::Head&) {}

  /** A body with a length is whole: a message, mostly. */
  virtual void body(Connection&, Listener*) {}

  /** An event of a stream is whole, or a comment. */
  virtual void event(Connection& connection, Listener* listener) {
    listener->message(connection, connection.sample);
  }

  /** Takes what has come behind 101: how many bytes of it. */
  virtual size_t upgraded(Connection&, std::string_view data, Listener*) { return data.size(); }

  /** How many of a message's last bytes are to be kept, besides the first ones. */
  virtual size_t tail() const { return 0; }

  /** Keeps the first bytes of a message, and the last. */
  void keep(Connection& connection, std::string_view data) const;

  /** Forgets a message that was told of. */
  static void forget(Connection& connection) {
    connection.sample.clear();
    connection.tail.clear();
  }

 private:
  size_t readHead(Connection& connection, std::string_view data, Listener* listener);
  size_t readChunkLine(Connection& connection, std::string_view data, Listener* listener);
  void readEvents(Connection& connection, std::string_view data, Listener* listener);
};

// WebSocket (RFC 6455), the client's side: a short handshake, and frames that are not masked.

class WsProtocol : public HttpProtocol {
 public:
  explicit WsProtocol(std::string path) : path_(std::move(path)) {}

  void open(Connection& connection, std::string* out) override;

 protected:
  size_t upgraded(Connection& connection, std::string_view data, Listener* listener) override;

  /** Sends a frame of text, at most 125 bytes long; it is masked, and by nothing. */
  static void sendText(Connection& connection, std::string_view text, Listener* listener);

  /** A frame of text or bytes is whole: mostly a message. */
  virtual void frame(Connection& connection, Listener* listener) {
    listener->message(connection, connection.sample);
  }

 private:
  void frameDone(Connection& connection, Listener* listener);

  const std::string path_;
};

}  // namespace watchers

#endif  // SPRITES_BENCH_HTTP_H_
