// Reads HTTP/1.1 answers in pieces: heads, bodies with a length, chunks, and the events of
// Server-Sent Events. It is the base of all protocols over HTTP.
#ifndef SPRITES_BENCH_HTTP_H_
#define SPRITES_BENCH_HTTP_H_

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "protocol.h"
#include "swarm/http.h"

namespace watchers {

class HttpProtocol : public Protocol {
 public:
  void read(Connection& connection, std::string_view data, Listener* listener) override {
    while (!data.empty()) {
      size_t used = 0;
      switch (connection.step) {
        case kHead:
          used = readHead(connection, data, listener);
          break;
        case kBody:
          used = std::min<uint64_t>(connection.bytesLeft, data.size());
          keepSample(connection, data.substr(0, used));
          connection.bytesLeft -= used;
          break;
        case kChunkLine:
          used = readChunkLine(connection, data, listener);
          break;
        case kChunk:
          used = std::min<uint64_t>(connection.bytesLeft, data.size());
          readEvents(connection, data.substr(0, used), listener);
          connection.bytesLeft -= used;
          if (connection.bytesLeft == 0) {
            connection.step = kChunkEnd;
            connection.bytesLeft = 2;
          }
          break;
        case kChunkEnd:
          used = std::min<uint64_t>(connection.bytesLeft, data.size());
          connection.bytesLeft -= used;
          if (connection.bytesLeft == 0) connection.step = kChunkLine;
          break;
        case kEvents:
          used = data.size();
          readEvents(connection, data, listener);
          break;
        default:
          used = readUpgraded(connection, data, listener);
      }
      data.remove_prefix(used);
      if (connection.step == kBody && connection.bytesLeft == 0) {
        connection.step = kHead;
        onBody(connection, listener);
        clearSample(connection);
      }
    }
  }

 protected:
  enum Step : uint8_t { kHead, kBody, kChunkLine, kChunk, kChunkEnd, kEvents, kUpgraded };

  /** Called with a whole head. The following bytes are read by its framing. */
  virtual void onHead(Connection&, const swarm::Head&) {}

  /** Called after a whole body with a length, which mostly is a message. */
  virtual void onBody(Connection&, Listener*) {}

  /** Called after a whole event or comment of a stream. */
  virtual void onEvent(Connection& connection, Listener* listener) {
    listener->onMessage(connection, connection.sample);
  }

  /** Reads bytes after a 101. @return the number of bytes used */
  virtual size_t readUpgraded(Connection&, std::string_view data, Listener*) { return data.size(); }

  /** @return the number of a message's last bytes to keep, besides the first ones */
  virtual size_t tailBytes() const { return 0; }

  /** Keeps the first and the last bytes of a message. */
  void keepSample(Connection& connection, std::string_view data) const {
    std::string& sample = connection.sample;
    if (sample.size() < kSample) sample.append(data.substr(0, kSample - sample.size()));
    if (tailBytes() == 0) return;
    std::string& last = connection.tail;
    last.append(data.substr(data.size() - std::min(data.size(), tailBytes())));
    last.erase(0, last.size() - std::min(last.size(), tailBytes()));
  }

  /** Clears the kept bytes of a message after its report. */
  static void clearSample(Connection& connection) {
    connection.sample.clear();
    connection.tail.clear();
  }

 private:
  size_t readHead(Connection& connection, std::string_view data, Listener* listener) {
    std::string& partial = connection.partial;
    const size_t before = partial.size();
    partial.append(data.substr(0, swarm::kLongestHead));
    swarm::Head found;
    const swarm::ReadState state = swarm::readHead(partial, &found);
    if (state == swarm::ReadState::kMore) return partial.size() - before;
    const bool isAccepted = found.status == 200 || found.status == 101 || found.status == 304;
    if (state == swarm::ReadState::kMalformed || !isAccepted) {
      listener->fail("an answer of " + partial.substr(0, 400));
    }
    onHead(connection, found);
    if (found.status == 101) {
      connection.step = kUpgraded;
    } else if (found.isChunked) {
      connection.step = kChunkLine;
    } else if (found.isEventStream) {
      connection.step = kEvents;  // up to the connection's end
    } else {
      const bool hasLength = found.contentLength != swarm::kNoContentLength;
      if (!hasLength && found.status == 200)
        listener->fail("no length in " + partial.substr(0, 400));
      connection.step = kBody;
      connection.bytesLeft = hasLength ? found.contentLength : 0;
    }
    partial.clear();
    return found.headBytes - before;
  }

  size_t readChunkLine(Connection& connection, std::string_view data, Listener* listener) {
    const size_t end = data.find('\n');
    connection.partial.append(data.substr(0, end == data.npos ? data.size() : end));
    if (end == data.npos) return data.size();
    connection.bytesLeft = strtoull(connection.partial.c_str(), nullptr, 16);
    connection.partial.clear();
    if (connection.bytesLeft == 0) listener->fail("the end of a stream");
    connection.step = kChunk;
    return end + 1;
  }

  /** Reads events, which end with an empty line; `flag`: the last byte ended a line. */
  void readEvents(Connection& connection, std::string_view data, Listener* listener) {
    size_t begin = 0;
    for (size_t at = 0; at < data.size();) {
      if (data[at] == '\n' && connection.flag) {
        if (!connection.sample.empty() || at > begin) {
          keepSample(connection, data.substr(begin, at - begin));
          onEvent(connection, listener);
        }
        clearSample(connection);
        connection.flag = false;
        begin = ++at;
        continue;
      }
      const void* newline = memchr(data.data() + at, '\n', data.size() - at);
      connection.flag = newline != nullptr;
      at = newline == nullptr
               ? data.size()
               : static_cast<size_t>(static_cast<const char*>(newline) - data.data()) + 1;
    }
    keepSample(connection, data.substr(begin));
  }
};

// WebSocket (RFC 6455), the client's side: a short handshake, and the server's unmasked frames.

class WsProtocol : public HttpProtocol {
 public:
  explicit WsProtocol(std::string path) : path_(std::move(path)) {}

  void makeOpenRequest(Connection&, std::string* out) override {
    // One key for all connections: there is no proxy that it could mislead.
    *out = "GET " + path_ +
           " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  }

 protected:
  size_t readUpgraded(Connection& connection, std::string_view data, Listener* listener) override {
    std::string& head = connection.partial;
    if (!connection.flag) {
      // A head: two bytes, and further bytes by the second one.
      const size_t before = head.size();
      const size_t wanted = before < 2 ? 2 : headLength(static_cast<uint8_t>(head[1]));
      const size_t used = std::min(wanted - before, data.size());
      head.append(data.substr(0, used));
      if (head.size() < 2 || head.size() < headLength(static_cast<uint8_t>(head[1]))) return used;
      const auto second = static_cast<uint8_t>(head[1]);
      if ((second & 0x80) != 0) listener->fail("a frame that is masked");
      connection.bytesLeft = second;
      if (head.size() > 2) {
        connection.bytesLeft = 0;
        for (size_t i = 2; i < head.size(); ++i) {
          connection.bytesLeft = connection.bytesLeft << 8 | static_cast<uint8_t>(head[i]);
        }
      }
      connection.flag = true;
      if (connection.bytesLeft == 0) finishFrame(connection, listener);
      return used;
    }
    const size_t used = std::min<uint64_t>(connection.bytesLeft, data.size());
    keepSample(connection, data.substr(0, used));
    connection.bytesLeft -= used;
    if (connection.bytesLeft == 0) finishFrame(connection, listener);
    return used;
  }

  /** Sends a text frame of at most 125 bytes, with a mask of zeros. */
  static void sendText(Connection& connection, std::string_view text, Listener* listener) {
    std::string frame("\x81\x80\0\0\0\0", 6);
    frame[1] = static_cast<char>(0x80 | text.size());
    listener->send(connection, frame.append(text));
  }

  /** Called after a whole frame of text or bytes, which mostly is a message. */
  virtual void onFrame(Connection& connection, Listener* listener) {
    listener->onMessage(connection, connection.sample);
  }

 private:
  void finishFrame(Connection& connection, Listener* listener) {
    const auto first = static_cast<uint8_t>(connection.partial[0]);
    const bool final = (first & 0x80) != 0;
    const uint8_t opcode = first & 0x0f;
    connection.flag = false;
    connection.partial.clear();
    if (opcode == kClose) listener->fail("a close frame");
    if (opcode == kPing) {
      // A pong, with a mask of zeros.
      std::string pong("\x8a\x80\0\0\0\0", 6);
      pong[1] = static_cast<char>(0x80 | connection.sample.size());
      listener->send(connection, pong + connection.sample);
    } else if (final && opcode <= kBytes) {
      onFrame(connection, listener);
    }
    if (final) clearSample(connection);
  }

  enum Opcode : uint8_t { kContinues = 0, kText = 1, kBytes = 2, kClose = 8, kPing = 9 };

  /** @return the length of a frame's head, by its second byte */
  static size_t headLength(uint8_t second) {
    const uint8_t length = second & 0x7f;
    return length == 127 ? 10 : length == 126 ? 4 : 2;
  }

  const std::string path_;
};

}  // namespace watchers

#endif  // SPRITES_BENCH_HTTP_H_
