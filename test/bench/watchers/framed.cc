// What libraries send in WebSocket frames: Engine.IO, Socket.IO on it, Primus, SockJS. The
// handshake is the shortest each knows: straight to the WebSocket, no polling before it.
#include "ws.h"

namespace watchers {

namespace {

/** Engine.IO 4: the first character of a frame is its type. */
class EngineIo : public WsProtocol {
 public:
  EngineIo() : WsProtocol("/engine.io/?EIO=4&transport=websocket") {}

 protected:
  explicit EngineIo(std::string path) : WsProtocol(std::move(path)) {}

  void frame(Connection& connection, Listener* listener) override {
    switch (connection.sample.empty() ? '?' : connection.sample[0]) {
      case '0':
        return ready(connection, listener);
      case '2':
        return sendText(connection, "3", listener);  // a ping
      case '4':
        return packet(connection, listener);
      default:
        listener->broken("a frame of Engine.IO: " + connection.sample);
    }
  }

  virtual void ready(Connection&, Listener*) {}
  virtual void packet(Connection& connection, Listener* listener) {
    listener->message(connection, connection.sample);
  }
};

/**
 * Socket.IO 5, in packets of Engine.IO. Its recovery of a connection's state wants what the session
 * was called (`pid`), and the last of an event's arguments, which is its offset.
 */
class SocketIo : public EngineIo {
 public:
  SocketIo() : EngineIo("/socket.io/?EIO=4&transport=websocket") {}

 protected:
  size_t tail() const override { return 64; }

  void ready(Connection& connection, Listener* listener) override {
    if (connection.tag.empty()) return sendText(connection, "40", listener);
    sendText(connection,
             R"(40{"pid":")" + connection.tag + R"(","offset":")" + connection.cursor + "\"}",
             listener);
  }

  void packet(Connection& connection, Listener* listener) override {
    const std::string& sample = connection.sample;
    if (sample.starts_with("40")) {
      connection.tag = between(sample, R"("pid":")");
    } else if (sample.starts_with("42")) {
      const std::string& tail = connection.tail;
      if (tail.ends_with("\"]") && !connection.tag.empty()) {
        const size_t begin = tail.rfind(",\"");
        if (begin != tail.npos) connection.cursor = tail.substr(begin + 2, tail.size() - begin - 4);
      }
      listener->message(connection, sample);
    } else {
      listener->broken("a packet of Socket.IO: " + sample);
    }
  }

 private:
  static std::string between(const std::string& text, std::string_view name) {
    const size_t at = text.find(name);
    if (at == text.npos) return {};
    const size_t begin = at + name.size();
    return text.substr(begin, text.find('"', begin) - begin);
  }
};

class Primus : public WsProtocol {
 public:
  Primus() : WsProtocol("/primus/?_primuscb=bench") {}

 protected:
  void frame(Connection& connection, Listener* listener) override {
    constexpr std::string_view kPing = "\"primus::ping::";
    const std::string& sample = connection.sample;
    if (sample.starts_with(kPing)) {
      return sendText(connection, "\"primus::pong::" + sample.substr(kPing.size()), listener);
    }
    listener->message(connection, sample);
  }
};

/** SockJS: `o` opens, `h` is a heartbeat, `a[…]` messages, `c[…]` the end. */
class SockJs : public WsProtocol {
 public:
  SockJs() : WsProtocol("") {}

  void open(Connection& connection, std::string* out) override {
    // A session is named by its client, and lives as long as its connection.
    WsProtocol at("/feed/000/s" + std::to_string(connection.fd) + "/websocket");
    at.open(connection, out);
  }

 protected:
  void frame(Connection& connection, Listener* listener) override {
    const char type = connection.sample.empty() ? '?' : connection.sample[0];
    if (type == 'a') return listener->message(connection, connection.sample);
    if (type != 'o' && type != 'h') listener->broken("a frame of SockJS: " + connection.sample);
  }
};

}  // namespace

std::unique_ptr<Protocol> makeFramed(std::string_view name) {
  if (name == "engine.io") return std::make_unique<EngineIo>();
  if (name == "socket.io") return std::make_unique<SocketIo>();
  if (name == "primus") return std::make_unique<Primus>();
  if (name == "sockjs") return std::make_unique<SockJs>();
  return nullptr;
}

}  // namespace watchers
