// The common base of clients and lanes: connections to one port of the server, each with one
// request at a time, whose answer may come in pieces. A waiting connection has no buffer: bytes are
// read and parsed in the engine's buffer, and only the pieces of an incomplete answer are kept.
#ifndef SPRITES_SWARM_CONNECTIONS_H_
#define SPRITES_SWARM_CONNECTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core.h"
#include "http.h"
#include "socket.h"

namespace swarm {

class Connections {
 public:
  virtual ~Connections() = default;
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /** Handles the epoll events of a connection. */
  void handle(uint32_t index, uint16_t generation, uint32_t events);

 protected:
  struct Connection {
    int fd = -1;
    uint16_t generation = 0;
    bool isOpen = false;  // the handshake is done, and requests can be written
  };

  /** @param core outlives this; @throw std::invalid_argument when its address is not numeric */
  Connections(Core* core, Token::Kind kind, uint16_t port);

  virtual Connection& connectionAt(uint32_t index) = 0;
  /** Called when the connection is open. */
  virtual void onOpen(uint32_t index) = 0;
  /** Called when the connection may be writable again. */
  virtual void onWritable(uint32_t) {}
  /** Called with a whole answer. Its views are valid during the call. */
  virtual void onAnswer(uint32_t index, const Response& response) = 0;
  /** Called when the server has closed the connection. */
  virtual void onEnd(uint32_t index) = 0;
  /** Called when the connection failed, or could not be opened. */
  virtual void onFailure(uint32_t index) = 0;

  /** Begins to connect. @return false when the connection failed at once, after onFailure() */
  bool connect(uint32_t index);
  void disconnect(uint32_t index);
  /** Counts a timeout, and calls onFailure(). */
  void failTimedOut(uint32_t index);
  /** Counts a broken contract, and calls onFailure(). */
  void failBadAnswer(uint32_t index);

  Core* core_;

 private:
  void read(uint32_t index, uint32_t events);
  bool parsePiece(uint32_t index, std::string_view bytes);

  const Token::Kind kind_;
  Target target_;
  std::unordered_map<uint32_t, std::string> partialAnswers_;  // incomplete answers, by connection
};

}  // namespace swarm

#endif  // SPRITES_SWARM_CONNECTIONS_H_
