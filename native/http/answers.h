// Sends answers: the only place that writes to connections.
//
//   answer ──▶ send ──▶ [ the kernel's buffer ] ──▶ client
//                │
//                └─ bytes that the kernel does not accept ─▶ output ──writable──▶ flush ──▶ …
//
//   output   [ message │ bytes sent ]
//
// Lifecycle of an answer: `send` passes it to the kernel, which mostly accepts all of it. The rest
// becomes the connection's output: a reference to the message, which many connections may share,
// and the number of bytes sent. The connection's next request waits until `flush` has sent the
// rest. While there is an output the client must read some bytes within writeTime, or its
// connection is closed.
//
// An answer for one connection is made a message only if the kernel does not accept all of it, and
// only its rest.
//
// After a last answer the server ends its half of the connection. The client then has a second to
// read the answer and to close. Closing at once, with unread bytes of the client, would send a
// reset, which may overtake the answer.
//
// Cost: one system call for each answer; memory only for clients that read slowly: 48 bytes, and
// the bytes that only this client gets. Rejected: gathering the answers of a connection to write
// them together (a connection has one request at a time), a buffer in each connection (most never
// need one), a copy of the rest for each (a document of 165 kB to a thousand slow readers is 165
// MB).
#ifndef SPRITES_ANSWERS_H_
#define SPRITES_ANSWERS_H_

#include <cstdint>
#include <string_view>

#include "base/message.h"
#include "connections.h"

namespace server {

/** A place in the list of slow readers. The destructor removes it. */
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

  /** Joins the list that `end` closes, as its newest. */
  void linkAsNewest(SlowReader* end) {
    older = end->older;
    newer = end;
    older->newer = newer->older = this;
  }
};

struct Output : SlowReader {
  base::Ref<base::Message> message;
  uint64_t sent;
  uint32_t isShared : 1;    // the message is shared: its bytes are not counted for this connection
  uint32_t slowSince : 31;  // when the client became slow: the lowest bits of the millisecond
  uint32_t connection;      // index of the connection

  uint64_t cost() const { return sizeof(Output) + (isShared ? 0 : message->length()); }
};

class Answers {
 public:
  /**
   * `connections` outlives the object. `idleTime`: milliseconds after an answer until the client's
   * next request. `writeTime`: milliseconds within which a client must read some bytes.
   */
  Answers(Connections* connections, uint32_t idleTime, uint32_t writeTime)
      : connections_(connections), idleTime_(idleTime), writeTime_(writeTime) {}

  /**
   * Sends an answer; `bytes` live for the call only. Returns whether the kernel has accepted all of
   * it. If not, the next request waits for `flush`, or the connection is closed.
   */
  bool send(Connection& connection, std::string_view bytes);

  /** Sends a message that other connections may share. Holds a reference while it is needed. */
  bool send(Connection& connection, base::Ref<base::Message> message);

  /**
   * Sends an interim answer (100 Continue). Returns false when the kernel has no room for it: the
   * connection is closed then.
   */
  bool sendInterim(Connection& connection, std::string_view bytes);

  /**
   * Sends more of the output, when the socket is writable again. Returns whether an answer is
   * complete, so that the next request may be served.
   */
  bool flush(Connection& connection);

  /**
   * Closes the connection that has been slow with a shared message for the longest time. Returns
   * false when there is none.
   */
  bool closeSlowest();

  /** The millisecond at which that connection became slow; UINT64_MAX: there is none. */
  uint64_t slowestSince() const;

  /**
   * Sends a last answer. Closes when the client has closed, or a second later. Where many
   * connections are closing already (one address that connects again and again), it closes at once,
   * to free their places for others.
   */
  void sendLast(Connection& connection, std::string_view bytes);

  /**
   * Sends a last answer by a socket outside the table of connections, and closes it. It tries once:
   * bytes that the kernel does not accept are lost.
   */
  static void sendAndClose(int fd, std::string_view bytes);

 private:
  bool afterSending(Connection& connection);
  void storeOutput(Connection& connection, base::Ref<base::Message> message, uint64_t sent,
                   bool isShared);
  void endOurHalf(Connection& connection);

  Connections* const connections_;
  SlowReader slowReaders_;  // ends of the list of slow readers of shared messages
  const uint32_t idleTime_;
  const uint32_t writeTime_;
};

}  // namespace server

#endif  // SPRITES_ANSWERS_H_
