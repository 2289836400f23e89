// The protocols of the measured servers: one class a protocol.
//
//   connection ──open──▶ request ─▶ server ─▶ bytes ──read──▶ messages ─▶ Listener
//
// A message is a document with any wrapping of the server. Only its first bytes are kept, which
// contain the stamp of the publisher (Stamp): a reader of documents of 165 KB must not copy them.
//
// To add a protocol: a subclass in protocols.cc, and its name in `makeProtocol`.
#ifndef SPRITES_BENCH_PROTOCOL_H_
#define SPRITES_BENCH_PROTOCOL_H_

#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "swarm/process.h"

namespace watchers {

/** Number of a message's first bytes that are kept. */
constexpr size_t kSample = 2048;

/** One watcher. The first part belongs to the crowd, the other parts to the protocol. */
struct Connection {
  int fd = -1;
  uint64_t seenVersion = 0;       // the version it has
  uint64_t firstOpenVersion = 0;  // the newest there was when it was first opened
  uint64_t reopenVersion = 0;     // the newest when it came again; 0: it has got something since
  uint64_t lastOpenVersion = 0;   // the newest there was when it was last opened
  uint64_t reopenedAt = 0;        // when it came again, microseconds
  bool isStalled = false;         // it reads no more after its first document
  bool isSilent = false;          // it came again, and the server has said nothing yet
  // Where all ask once before they watch: until it is answered. Only so many may be. A connection
  // is open before the server has taken it, and the kernel resets those above its backlog.
  bool isOpening = false;

  uint8_t step = 0;
  bool flag = false;
  uint64_t bytesLeft = 0;  // bytes left of the current body, chunk or frame
  std::string partial;     // an incomplete head or line
  std::string sample;      // the first bytes of the current message
  std::string tail;        // its last bytes, if the protocol needs them

  // What it will ask with, also after it has lost its connection.
  std::string cursor;
  std::string tag;

  /** Forgets what was being read: the next bytes are of a new connection. */
  void resetReader() {
    step = 0;
    flag = false;
    bytesLeft = 0;
    partial.clear();
    sample.clear();
    tail.clear();
  }
};

/** Receives the messages that a protocol reads. */
class Listener {
 public:
  virtual ~Listener() = default;

  /** Called with each whole message. */
  virtual void onMessage(Connection& connection, std::string_view sample) = 0;

  /** Sends at most a few hundred bytes. */
  virtual void send(Connection& connection, std::string_view bytes) = 0;

  /** Ends the program, since the server broke its protocol. */
  [[noreturn]] virtual void fail(const std::string& why) = 0;
};

/** Returns a request with a body. */
inline std::string withBody(std::string_view firstLine, std::string_view headers,
                            std::string_view body) {
  std::string text(firstLine);
  text += " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  text += headers;
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  text += body;
  return text;
}

class Protocol {
 public:
  virtual ~Protocol() = default;

  /** The first request of a connection, or of one that comes again. */
  virtual void makeOpenRequest(Connection& connection, std::string* out) = 0;

  /** Reads received bytes. */
  virtual void read(Connection& connection, std::string_view data, Listener* listener) = 0;

  /** Sets `out` to the request that publishes a document. */
  virtual void makePublishRequest(std::string_view document, std::string* out) {
    *out = withBody("POST /publish", "Content-Type: application/json\r\n", document);
  }
};

/** @return the protocol of this name, or nothing */
std::unique_ptr<Protocol> makeProtocol(std::string_view name, const std::string& token);

// The stamp in every document: its version and the time of its publication.
//
//   @42:8123456789@     version 42, microseconds of the monotonic clock

struct Stamp {
  uint64_t version = 0;  // 0: no stamp
  uint64_t time = 0;

  std::string text() const {
    std::string text(1, '@');
    text.append(std::to_string(version)).append(1, ':');
    return text.append(std::to_string(time)).append(1, '@');
  }

  /** @return the last stamp in a text; joined patches have several */
  static Stamp in(std::string_view text) {
    Stamp stamp;
    const size_t end = text.rfind('@');
    if (end == text.npos || end == 0) return {};
    const size_t begin = text.rfind('@', end - 1);
    if (begin == text.npos) return {};
    const char* const last = text.data() + end;
    const auto version = std::from_chars(text.data() + begin + 1, last, stamp.version);
    if (version.ec != std::errc() || *version.ptr != ':') return {};
    const auto time = std::from_chars(version.ptr + 1, last, stamp.time);
    return time.ec == std::errc() && time.ptr == last ? stamp : Stamp{};
  }
};

/** Microseconds of the monotonic clock. */
inline uint64_t microseconds() { return swarm::clockNow() / 1000; }

}  // namespace watchers

#endif  // SPRITES_BENCH_PROTOCOL_H_
