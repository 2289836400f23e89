// Sends answers: the one place that writes to connections.
//
//   answer ──▶ send ──▶ [ the kernel's buffer ] ──▶ client
//                │
//                └─ what the kernel does not take ─▶ output ──writable──▶ flush ──▶ …
//
//   output   [ message │ how much of it has been sent ]
//
// Lifecycle of an answer: `send` gives it to the kernel. Mostly that is all. What the kernel does
// not take is the connection's output: a reference to the message, which many may have, and how far
// this one is. The connection's next request waits until `flush` has sent the rest. While there is
// an output the client must read something within writeTime, or is closed.
//
// An answer of a connection's own is not made a message before it must be: only the rest of it is.
//
// A last answer is followed by the end of our half of the connection. The client then has a second
// to read it and to close: closing at once, with bytes of the client's still unread, would send a
// reset, which may overtake the answer.
//
// Cost: one system call an answer; memory only for clients that read slowly, 48 bytes and what they
// alone are to get. Rejected: gathering the answers of a connection to write them together (a
// connection has one request at a time), a buffer in each connection (most never need one), a copy
// of the rest for each (a document of 165 kB to a thousand slow readers is 165 MB).
#ifndef SPRITES_ANSWERS_H_
#define SPRITES_ANSWERS_H_

#include <cstdint>
#include <string_view>

#include "base/message.h"
#include "connections.h"

namespace server {

/** A place in the row of slow readers; out of it when it goes. */
struct SlowReader {
  SlowReader* older = this;
  SlowReader* newer = this;

  SlowReader() = default;
  SlowReader(const SlowReader&) = delete;
  SlowReader& operator=(const SlowReader&) = delete;
  ~SlowReader() {
    older->newer = newer;
    newer->older = older;
  }

  /** Becomes the newest in the row that `end` closes. */
  void join(SlowReader* end) {
    older = end->older;
    newer = end;
    older->newer = newer->older = this;
  }
};

struct Output : SlowReader {
  base::Ref<base::Message> message;
  uint64_t sent;
  uint32_t shared : 1;  // with others: none of its bytes are held for this connection alone
  uint32_t since : 31;  // the lowest bits of the millisecond at which the client became slow
  uint32_t connection;  // whose it is

  uint64_t cost() const { return sizeof(Output) + (shared ? 0 : message->length()); }
};

class Answers {
 public:
  /**
   * `connections` outlives them. `idleTime`, milliseconds: what a client has after an answer to
   * send its next request. `writeTime`, milliseconds: in which a client must read something.
   */
  Answers(Connections* connections, uint32_t idleTime, uint32_t writeTime)
      : connections_(connections), idleTime_(idleTime), writeTime_(writeTime) {}

  /**
   * Sends an answer; `bytes` live for the call only. Returns whether all of it is with the kernel:
   * else the next request waits for `flush`, or the connection is closed.
   */
  bool send(Connection& connection, std::string_view bytes);

  /** The same with a message that others get as well; held while it is needed. */
  bool send(Connection& connection, base::Ref<base::Message> message);

  /**
   * Sends what comes before an answer (100 Continue). Returns false when the kernel has no room for
   * it: the connection is closed then.
   */
  bool announce(Connection& connection, std::string_view bytes);

  /**
   * Sends what is left, where the client has read. Returns whether that was all of an answer: the
   * next request may be served.
   */
  bool flush(Connection& connection);

  /**
   * Closes the connection that has been slow for the longest in what others get as well. False when
   * there is none.
   */
  bool closeSlowest();

  /** The millisecond at which that one became slow; UINT64_MAX: there is none. */
  uint64_t slowestSince() const;

  /**
   * Sends a last answer, then closes once the client has, or a second later. Where many are closing
   * already (one address that connects and connects), it closes at once: their places are others'.
   */
  void sendLast(Connection& connection, std::string_view bytes);

  /**
   * Sends a last answer by a socket that is no connection, and closes it. There is one try: what
   * the kernel does not take is lost.
   */
  static void sendAndClose(int fd, std::string_view bytes);

 private:
  bool sent(Connection& connection);
  void keepOutput(Connection& connection, base::Ref<base::Message> message, uint64_t sent,
                  bool shared);
  void endOurHalf(Connection& connection);

  Connections* const connections_;
  SlowReader slow_;  // the end of the row of slow readers of shared messages
  const uint32_t idleTime_;
  const uint32_t writeTime_;
};

}  // namespace server

#endif  // SPRITES_ANSWERS_H_
