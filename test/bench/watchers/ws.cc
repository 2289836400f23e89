#include "ws.h"

#include <algorithm>

namespace watchers {

namespace {

enum Opcode : uint8_t { kContinues = 0, kText = 1, kBytes = 2, kClose = 8, kPing = 9 };

/** Length of a frame's head, as far as its second byte says. */
size_t headLength(uint8_t second) {
  const uint8_t length = second & 0x7f;
  return length == 127 ? 10 : length == 126 ? 4 : 2;
}

}  // namespace

void WsProtocol::open(Connection&, std::string* out) {
  // The key is one for all: nobody here is between the two.
  *out = "GET " + path_ +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
}

void WsProtocol::publish(std::string_view document, std::string_view patch, std::string* out) {
  *out = withBody("POST /publish", "", patch.empty() ? document : patch);
}

size_t WsProtocol::upgraded(Connection& connection, std::string_view data, Listener* listener) {
  std::string& head = connection.kept;
  if (!connection.flag) {
    // A head: two bytes, and as many more as they say.
    const size_t before = head.size();
    const size_t wanted = before < 2 ? 2 : headLength(static_cast<uint8_t>(head[1]));
    const size_t used = std::min(wanted - before, data.size());
    head.append(data.substr(0, used));
    if (head.size() < 2 || head.size() < headLength(static_cast<uint8_t>(head[1]))) return used;
    const auto second = static_cast<uint8_t>(head[1]);
    if ((second & 0x80) != 0) listener->broken("a frame that is masked");
    connection.left = second;
    if (head.size() > 2) {
      connection.left = 0;
      for (size_t i = 2; i < head.size(); ++i) {
        connection.left = connection.left << 8 | static_cast<uint8_t>(head[i]);
      }
    }
    connection.flag = true;
    if (connection.left == 0) frameDone(connection, listener);
    return used;
  }
  const size_t used = std::min<uint64_t>(connection.left, data.size());
  keep(connection, data.substr(0, used));
  connection.left -= used;
  if (connection.left == 0) frameDone(connection, listener);
  return used;
}

void WsProtocol::sendText(Connection& connection, std::string_view text, Listener* listener) {
  std::string frame("\x81\x80\0\0\0\0", 6);
  frame[1] = static_cast<char>(0x80 | text.size());
  listener->send(connection, frame.append(text));
}

void WsProtocol::frameDone(Connection& connection, Listener* listener) {
  const auto first = static_cast<uint8_t>(connection.kept[0]);
  const bool final = (first & 0x80) != 0;
  const uint8_t opcode = first & 0x0f;
  connection.flag = false;
  connection.kept.clear();
  if (opcode == kClose) listener->broken("a close frame");
  if (opcode == kPing) {
    // A pong is masked, and by nothing.
    std::string pong("\x8a\x80\0\0\0\0", 6);
    pong[1] = static_cast<char>(0x80 | connection.sample.size());
    listener->send(connection, pong + connection.sample);
  } else if (final && opcode <= kBytes) {
    frame(connection, listener);
  }
  if (final) forget(connection);
}

std::unique_ptr<Protocol> makeWs(std::string_view name) {
  if (name != "ws") return nullptr;
  return std::make_unique<WsProtocol>("/");
}

}  // namespace watchers
