// Sprites: long polls and event streams, each whole or with patches; and connections that have
// asked for a feed once, and watch no more, beside which the memory of watching is measured.
#include "http.h"

namespace watchers {

namespace {

class SpritesProtocol : public HttpProtocol {
 public:
  SpritesProtocol(bool once, bool stream, bool delta, std::string token)
      : once_(once), stream_(stream), delta_(delta), token_(std::move(token)) {}

  void open(Connection& connection, std::string* out) override { ask(connection, out); }

  void publish(std::string_view document, std::string_view patch, std::string* out) override {
    const std::string authorization = "Authorization: Bearer " + token_ + "\r\n";
    *out = patch.empty()
               ? withBody("PUT /feed/bench", authorization, document)
               : withBody("PATCH /feed/bench",
                          authorization + "Content-Type: application/json-patch+json\r\n", patch);
  }

 protected:
  // Patches of several versions, joined, are longer than a sample: the newest is at their end.
  size_t tail() const override { return delta_ ? 128 : 0; }

  void event(Connection& connection, Listener* listener) override {
    if (!connection.sample.starts_with(':')) takeCursor(connection, listener);
    tell(connection, listener);
  }

  void body(Connection& connection, Listener* listener) override {
    takeCursor(connection, listener);
    tell(connection, listener);
    if (once_) return;
    std::string request;
    ask(connection, &request);
    listener->send(connection, request);
  }

 private:
  static void tell(Connection& connection, Listener* listener) {
    if (connection.tail.empty()) return listener->message(connection, connection.sample);
    listener->message(connection, connection.sample + connection.tail);
  }

  static void takeCursor(Connection& connection, Listener* listener) {
    constexpr std::string_view kCursor = "\"cursor\":\"";
    const size_t at = connection.sample.find(kCursor);
    if (at == std::string::npos) listener->broken("no cursor in " + connection.sample);
    const size_t begin = at + kCursor.size();
    connection.cursor = connection.sample.substr(begin, connection.sample.find('"', begin) - begin);
  }

  void ask(const Connection& connection, std::string* out) const {
    *out += "GET /feed/bench?after=" + connection.cursor + (delta_ ? "&delta=1" : "");
    *out += " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    if (stream_) *out += "Accept: text/event-stream\r\n";
    *out += "\r\n";
  }

  const bool once_;
  const bool stream_;
  const bool delta_;
  const std::string token_;
};

}  // namespace

std::unique_ptr<Protocol> makeSprites(std::string_view name, const std::string& token) {
  const bool delta = name.ends_with("-delta");
  if (delta) name.remove_suffix(6);
  const bool once = name == "sprites-once";
  const bool stream = name == "sprites-stream";
  if (!once && !stream && name != "sprites-poll") return nullptr;
  return std::make_unique<SpritesProtocol>(once, stream, delta, token);
}

}  // namespace watchers
