// How a server is spoken to: one class a protocol, one file a family of them.
//
//   connection ──open──▶ request ─▶ server ─▶ bytes ──read──▶ messages ─▶ Listener
//
// A message is a document as the server sends it, in whatever it is wrapped. What is known of it is
// its first bytes, in which the stamp of the publisher is (stamp.h): a reader of documents of 165
// KB must not copy them.
//
// To add a protocol: a subclass in a file of its own, its name in `makeProtocol` (main.cc), its
// file in binding.gyp.
#ifndef SPRITES_BENCH_PROTOCOL_H_
#define SPRITES_BENCH_PROTOCOL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace watchers {

/** First bytes of a message that are kept. */
constexpr size_t kSample = 2048;

/** One watcher. The first part is the crowd's, the others the protocol's. */
struct Connection {
  int fd = -1;
  uint64_t seen = 0;     // the version it has
  uint64_t since = 0;    // the newest there was when it was first opened
  uint64_t target = 0;   // the newest there was when it came again; 0: it has got something since
  uint64_t away = 0;     // the newest there was when it was last opened
  uint64_t came = 0;     // when it came again, microseconds
  bool stalled = false;  // it reads no more after its first document
  // Where all ask once before they watch: until it is answered. Only so many may be. A connection
  // is open before the server has taken it, and the kernel resets those above its backlog.
  bool opening = false;

  uint8_t step = 0;
  bool flag = false;
  uint64_t left = 0;   // bytes still to come of what is being read
  std::string kept;    // a head or a line that is not whole yet
  std::string sample;  // the first bytes of the message that is being read
  std::string tail;    // its last bytes, where the protocol wants them

  // What it will ask with, also after it has lost its connection.
  std::string cursor;
  std::string tag;

  /** Forgets what was being read: the next bytes are of a new connection. */
  void fresh() {
    step = 0;
    flag = false;
    left = 0;
    kept.clear();
    sample.clear();
    tail.clear();
  }
};

/** Is told what a protocol reads. */
class Listener {
 public:
  virtual ~Listener() = default;

  /** A message is whole. */
  virtual void message(Connection& connection, std::string_view sample) = 0;

  /** Sends something, a few hundred bytes at most. */
  virtual void send(Connection& connection, std::string_view bytes) = 0;

  /** The server did what it should not: ends the program. */
  [[noreturn]] virtual void broken(const std::string& why) = 0;
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  /** The first request of a connection, or of one that comes again. */
  virtual void open(Connection& connection, std::string* out) = 0;

  /** Takes what has come. */
  virtual void read(Connection& connection, std::string_view data, Listener* listener) = 0;

  /**
   * The request that publishes: the whole document, or, when `patch` is not empty, what has changed
   * in it (RFC 6902), which a server that knows no documents sends on as it is.
   */
  virtual void publish(std::string_view document, std::string_view patch, std::string* out) = 0;
};

/** A request with a body. */
std::string withBody(std::string_view firstLine, std::string_view headers, std::string_view body);

// Each makes the protocol of a name, or nothing when it is not its.
std::unique_ptr<Protocol> makeSprites(std::string_view name, const std::string& token);
std::unique_ptr<Protocol> makeWs(std::string_view name);
std::unique_ptr<Protocol> makeFramed(std::string_view name);
std::unique_ptr<Protocol> makeSse(std::string_view name);
std::unique_ptr<Protocol> makeNchan(std::string_view name);

}  // namespace watchers

#endif  // SPRITES_BENCH_PROTOCOL_H_
