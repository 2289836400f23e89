// Sends answers: the one place that writes to connections.
//
//   answer ──▶ send ──▶ [ the kernel's buffer ] ──▶ peer
//                │
//                └─ what the kernel does not take ─▶ output ──writable──▶ flush ──▶ …
//
//   output   [ length │ sent ][ bytes of the answer that were not taken at once ]
//
// Lifecycle of an answer: `send` gives it to the kernel. Mostly that is all. What the kernel does
// not take is copied to an output, and the connection's next request waits until `flush` has sent
// it. While there is an output the peer must read something within writeTime, or is closed.
//
// A last answer is followed by the end of our half of the connection. The peer then has a second to
// read it and to close: closing at once, with bytes of the peer's still unread, would send a reset,
// which may overtake the answer.
//
// Cost: one system call an answer; memory only for peers that read slowly, 8 bytes and the rest of
// the answer. Rejected: gathering the answers of a connection to write them together (a connection
// has one request at a time), a buffer in each connection (most never need one).
#ifndef SPRITES_ANSWERS_H_
#define SPRITES_ANSWERS_H_

#include <cstdint>
#include <string_view>

#include "connections.h"

namespace server {

struct Output {
  uint32_t length;
  uint32_t sent;

  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};

class Answers {
 public:
  /**
   * `connections` outlives them. `idleTime`, milliseconds: what a peer has after an answer to send
   * its next request. `writeTime`, milliseconds: in which a peer must read something.
   */
  Answers(Connections* connections, uint32_t idleTime, uint32_t writeTime)
      : connections_(connections), idleTime_(idleTime), writeTime_(writeTime) {}

  /**
   * Sends an answer; `bytes` live for the call only. Returns whether all of it is with the kernel:
   * else the next request waits for `flush`, or the connection is closed.
   */
  bool send(Connection& connection, std::string_view bytes);

  /**
   * Sends what is left, where the peer has read. Returns whether that was all of an answer: the
   * next request may be served.
   */
  bool flush(Connection& connection);

  /**
   * Sends a last answer, then closes once the peer has, or a second later. Where many are closing
   * already (one address that connects and connects), it closes at once: their places are others'.
   */
  void sendLast(Connection& connection, std::string_view bytes);

  /**
   * Sends a last answer by a socket that is no connection, and closes it. There is one try: what
   * the kernel does not take is lost.
   */
  static void sendAndClose(int fd, std::string_view bytes);

 private:
  void keepOutput(Connection& connection, std::string_view bytes);
  void endOurHalf(Connection& connection);

  Connections* const connections_;
  const uint32_t idleTime_;
  const uint32_t writeTime_;
};

}  // namespace server

#endif  // SPRITES_ANSWERS_H_
