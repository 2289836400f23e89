#include "http.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace watchers {

std::string withBody(std::string_view firstLine, std::string_view headers, std::string_view body) {
  std::string text(firstLine);
  text += " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  text += headers;
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  text += body;
  return text;
}

void HttpProtocol::read(Connection& connection, std::string_view data, Listener* listener) {
  while (!data.empty()) {
    size_t used = 0;
    switch (connection.step) {
      case kHead:
        used = readHead(connection, data, listener);
        break;
      case kBody:
        used = std::min<uint64_t>(connection.left, data.size());
        keep(connection, data.substr(0, used));
        connection.left -= used;
        break;
      case kChunkLine:
        used = readChunkLine(connection, data, listener);
        break;
      case kChunk:
        used = std::min<uint64_t>(connection.left, data.size());
        readEvents(connection, data.substr(0, used), listener);
        connection.left -= used;
        if (connection.left == 0) {
          connection.step = kChunkEnd;
          connection.left = 2;
        }
        break;
      case kChunkEnd:
        used = std::min<uint64_t>(connection.left, data.size());
        connection.left -= used;
        if (connection.left == 0) connection.step = kChunkLine;
        break;
      case kEvents:
        used = data.size();
        readEvents(connection, data, listener);
        break;
      default:
        used = upgraded(connection, data, listener);
    }
    data.remove_prefix(used);
    if (connection.step == kBody && connection.left == 0) {
      connection.step = kHead;
      body(connection, listener);
      forget(connection);
    }
  }
}

void HttpProtocol::keep(Connection& connection, std::string_view data) const {
  std::string& sample = connection.sample;
  if (sample.size() < kSample) sample.append(data.substr(0, kSample - sample.size()));
  if (tail() == 0) return;
  std::string& last = connection.tail;
  last.append(data.substr(data.size() - std::min(data.size(), tail())));
  last.erase(0, last.size() - std::min(last.size(), tail()));
}

size_t HttpProtocol::readHead(Connection& connection, std::string_view data, Listener* listener) {
  std::string& kept = connection.kept;
  const size_t before = kept.size();
  kept.append(data.substr(0, swarm::kLongestHead));
  swarm::Head found;
  const swarm::ReadState state = swarm::readHead(kept, &found);
  if (state == swarm::ReadState::kMore) return kept.size() - before;
  const bool isTaken = found.status == 200 || found.status == 101 || found.status == 304;
  if (state == swarm::ReadState::kBad || !isTaken) {
    listener->broken("an answer of " + kept.substr(0, 400));
  }
  head(connection, found);
  if (found.status == 101) {
    connection.step = kUpgraded;
  } else if (found.chunked) {
    connection.step = kChunkLine;
  } else if (found.isEventStream) {
    connection.step = kEvents;  // up to the connection's end
  } else {
    const bool hasLength = found.length != swarm::kNoLength;
    if (!hasLength && found.status == 200) listener->broken("no length in " + kept.substr(0, 400));
    connection.step = kBody;
    connection.left = hasLength ? found.length : 0;
  }
  kept.clear();
  return found.size - before;
}

size_t HttpProtocol::readChunkLine(Connection& connection, std::string_view data,
                                   Listener* listener) {
  const size_t end = data.find('\n');
  connection.kept.append(data.substr(0, end == data.npos ? data.size() : end));
  if (end == data.npos) return data.size();
  connection.left = strtoull(connection.kept.c_str(), nullptr, 16);
  connection.kept.clear();
  if (connection.left == 0) listener->broken("the end of a stream");
  connection.step = kChunk;
  return end + 1;
}

/** An event ends with an empty line; `flag` says that the last byte ended a line. */
void HttpProtocol::readEvents(Connection& connection, std::string_view data, Listener* listener) {
  size_t begin = 0;
  for (size_t at = 0; at < data.size();) {
    if (data[at] == '\n' && connection.flag) {
      if (!connection.sample.empty() || at > begin) {
        keep(connection, data.substr(begin, at - begin));
        event(connection, listener);
      }
      forget(connection);
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
  keep(connection, data.substr(begin));
}

namespace {

enum Opcode : uint8_t { kContinues = 0, kText = 1, kBytes = 2, kClose = 8, kPing = 9 };

/** Length of a frame's head, as far as its second byte says. */
size_t headLength(uint8_t second) {
  const uint8_t length = second & 0x7f;
  return length == 127 ? 10 : length == 126 ? 4 : 2;
}

}  // namespace

void WsProtocol::open(Connection&, std::string* out) {
  // One key for all: there is no proxy here to mislead.
  *out = "GET " + path_ +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
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

}  // namespace watchers
