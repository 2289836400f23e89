// The protocols of all contenders.
//
// Sprites: long polls, also as behind a cache, and event streams, with whole values or patches; and
// connections that request a feed once and do not watch, with which the memory of watching is
// compared.
#include "http.h"

namespace watchers {

namespace {

/** Returns the text of a member, empty for none; `name` includes the value's first quote. */
std::string textOf(const std::string& json, std::string_view name) {
  const size_t at = json.find(name);
  if (at == json.npos) return {};
  const size_t begin = at + name.size();
  return json.substr(begin, json.find('"', begin) - begin);
}

class SpritesProtocol : public HttpProtocol {
 public:
  struct Variant {
    bool once, stream, delta, granted;  // `granted`: the token is a grant, which also reads
    bool cached;                        // polls as the clients do behind a cache
  };

  SpritesProtocol(Variant variant, const std::string& token)
      : asksOnce_(variant.once),
        isStream_(variant.stream),
        wantsDelta_(variant.delta),
        isCached_(variant.cached),
        authorization_("Authorization: Bearer " + token + "\r\n"),
        readHeaders_(variant.granted ? authorization_ : "") {}

  void makeOpenRequest(Connection& connection, std::string* out) override {
    appendRequest(connection, out);
  }

  void makePublishRequest(std::string_view document, std::string* out) override {
    *out = withBody("PUT /feed/bench", authorization_, document);
  }

 protected:
  // Joined patches of several versions may exceed a sample: the newest is at their end.
  size_t tailBytes() const override { return wantsDelta_ ? 128 : 0; }

  void onEvent(Connection& connection, Listener* listener) override {
    if (!connection.sample.starts_with(':')) readCursor(connection, listener);
    report(connection, listener);
  }

  void onBody(Connection& connection, Listener* listener) override {
    readCursor(connection, listener);
    report(connection, listener);
    if (asksOnce_) return;
    std::string request;
    appendRequest(connection, &request);
    listener->send(connection, request);
  }

 private:
  static void report(Connection& connection, Listener* listener) {
    if (connection.tail.empty()) return listener->onMessage(connection, connection.sample);
    listener->onMessage(connection, connection.sample + connection.tail);
  }

  static void readCursor(Connection& connection, Listener* listener) {
    connection.cursor = textOf(connection.sample, R"("cursor":")");
    if (connection.cursor.empty()) listener->fail("no cursor in " + connection.sample);
    connection.tag = textOf(connection.sample, R"("turn":")");
  }

  void appendRequest(const Connection& connection, std::string* out) const {
    const bool waitsForFirst = isCached_ && connection.cursor.empty();
    *out += "GET /feed/bench?after=" + (waitsForFirst ? "none" : connection.cursor);
    if (isCached_) *out += "&hold=55";
    if (wantsDelta_) *out += "&delta=1";
    if (isCached_ && !connection.tag.empty()) *out += "&turn=" + connection.tag;
    *out += " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + readHeaders_;
    if (isStream_) *out += "Accept: text/event-stream\r\n";
    *out += "\r\n";
  }

  const bool asksOnce_;
  const bool isStream_;
  const bool wantsDelta_;
  const bool isCached_;
  const std::string authorization_;
  const std::string readHeaders_;
};

// Event streams of a server that knows nothing else: node:http's, in transports/servers.js.

class SseProtocol : public HttpProtocol {
 public:
  void makeOpenRequest(Connection&, std::string* out) override {
    *out = "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n";
  }
};

// nchan, the module of nginx: event streams, WebSockets and long polls of one channel.

class NchanStream : public HttpProtocol {
 public:
  void makeOpenRequest(Connection& connection, std::string* out) override {
    *out = "GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n";
    if (!connection.cursor.empty()) *out += "Last-Event-ID: " + connection.cursor + "\r\n";
    *out += "\r\n";
  }

 protected:
  void onEvent(Connection& connection, Listener* listener) override {
    constexpr std::string_view kId = "id: ";
    const std::string& sample = connection.sample;
    if (sample.starts_with(kId)) {
      connection.cursor = sample.substr(kId.size(), sample.find_first_of("\r\n") - kId.size());
    }
    listener->onMessage(connection, sample);
  }
};

class NchanPoll : public HttpProtocol {
 public:
  void makeOpenRequest(Connection& connection, std::string* out) override {
    appendRequest(connection, out);
  }

 protected:
  void onHead(Connection& connection, const swarm::Head& head) override {
    connection.cursor = head.lastModified;
    connection.tag = head.etag;
  }
  void onBody(Connection& connection, Listener* listener) override {
    listener->onMessage(connection, connection.sample);
    std::string request;
    appendRequest(connection, &request);
    listener->send(connection, request);
  }

 private:
  static void appendRequest(const Connection& connection, std::string* out) {
    *out += "GET /poll HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    if (!connection.cursor.empty()) {
      *out += "If-Modified-Since: " + connection.cursor + "\r\nIf-None-Match: " + connection.tag;
      *out += "\r\n";
    }
    *out += "\r\n";
  }
};

// What libraries send in WebSocket frames: Engine.IO, Socket.IO on it, Primus, SockJS. The
// handshake is the shortest each knows: straight to the WebSocket, no polling before it.

/** Engine.IO 4: the first character of a frame is its type. */
class EngineIo : public WsProtocol {
 public:
  EngineIo() : WsProtocol("/engine.io/?EIO=4&transport=websocket") {}

 protected:
  explicit EngineIo(std::string path) : WsProtocol(std::move(path)) {}

  void onFrame(Connection& connection, Listener* listener) override {
    switch (connection.sample.empty() ? '?' : connection.sample[0]) {
      case '0':
        return onReady(connection, listener);
      case '2':
        return sendText(connection, "3", listener);  // a ping
      case '4':
        return onPacket(connection, listener);
      default:
        listener->fail("a frame of Engine.IO: " + connection.sample);
    }
  }

  virtual void onReady(Connection&, Listener*) {}
  virtual void onPacket(Connection& connection, Listener* listener) {
    listener->onMessage(connection, connection.sample);
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
  size_t tailBytes() const override { return 64; }

  void onReady(Connection& connection, Listener* listener) override {
    if (connection.tag.empty()) return sendText(connection, "40", listener);
    sendText(connection,
             R"(40{"pid":")" + connection.tag + R"(","offset":")" + connection.cursor + "\"}",
             listener);
  }

  void onPacket(Connection& connection, Listener* listener) override {
    const std::string& sample = connection.sample;
    if (sample.starts_with("40")) {
      connection.tag = textOf(sample, R"("pid":")");
    } else if (sample.starts_with("42")) {
      const std::string& tail = connection.tail;
      if (tail.ends_with("\"]") && !connection.tag.empty()) {
        const size_t begin = tail.rfind(",\"");
        if (begin != tail.npos) connection.cursor = tail.substr(begin + 2, tail.size() - begin - 4);
      }
      listener->onMessage(connection, sample);
    } else {
      listener->fail("a packet of Socket.IO: " + sample);
    }
  }
};

class Primus : public WsProtocol {
 public:
  Primus() : WsProtocol("/primus/?_primuscb=bench") {}

 protected:
  void onFrame(Connection& connection, Listener* listener) override {
    constexpr std::string_view kPing = "\"primus::ping::";
    const std::string& sample = connection.sample;
    if (sample.starts_with(kPing)) {
      return sendText(connection, "\"primus::pong::" + sample.substr(kPing.size()), listener);
    }
    listener->onMessage(connection, sample);
  }
};

/** SockJS: `o` opens, `h` is a heartbeat, `a[…]` messages, `c[…]` the end. */
class SockJs : public WsProtocol {
 public:
  SockJs() : WsProtocol("") {}

  void makeOpenRequest(Connection& connection, std::string* out) override {
    // A session is named by its client, and lives as long as its connection.
    WsProtocol path("/feed/000/s" + std::to_string(connection.fd) + "/websocket");
    path.makeOpenRequest(connection, out);
  }

 protected:
  void onFrame(Connection& connection, Listener* listener) override {
    const char type = connection.sample.empty() ? '?' : connection.sample[0];
    if (type == 'a') return listener->onMessage(connection, connection.sample);
    if (type != 'o' && type != 'h') listener->fail("a frame of SockJS: " + connection.sample);
  }
};

}  // namespace

std::unique_ptr<Protocol> makeProtocol(std::string_view name, const std::string& token) {
  if (name == "ws") return std::make_unique<WsProtocol>("/");
  if (name == "sse") return std::make_unique<SseProtocol>();
  if (name == "nchan-stream") return std::make_unique<NchanStream>();
  if (name == "nchan-ws") return std::make_unique<WsProtocol>("/ws");
  if (name == "nchan-poll") return std::make_unique<NchanPoll>();
  if (name == "engine.io") return std::make_unique<EngineIo>();
  if (name == "socket.io") return std::make_unique<SocketIo>();
  if (name == "primus") return std::make_unique<Primus>();
  if (name == "sockjs") return std::make_unique<SockJs>();
  const bool delta = name.ends_with("-delta");
  if (delta) name.remove_suffix(6);
  const bool granted = name.ends_with("-grant");
  if (granted) name.remove_suffix(6);
  const bool once = name == "sprites-once";
  const bool stream = name == "sprites-stream";
  const bool cached = name == "sprites-cached";
  if (!once && !stream && !cached && name != "sprites-poll") return nullptr;
  const SpritesProtocol::Variant variant{once, stream, delta, granted, cached};
  return std::make_unique<SpritesProtocol>(variant, token);
}

}  // namespace watchers
