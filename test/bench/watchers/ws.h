// WebSocket (RFC 6455), the client's side: a short handshake, and frames that are not masked.
#ifndef SPRITES_BENCH_WS_H_
#define SPRITES_BENCH_WS_H_

#include "http.h"

namespace watchers {

class WsProtocol : public HttpProtocol {
 public:
  explicit WsProtocol(std::string path) : path_(std::move(path)) {}

  void open(Connection& connection, std::string* out) override;
  void publish(std::string_view document, std::string_view patch, std::string* out) override;

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

#endif  // SPRITES_BENCH_WS_H_
