// What clients and lanes have in common: connections to one port of the server, each with one
// request out at a time, whose answers may come in pieces. A connection that waits costs no buffer:
// what is read is parsed in the engine's one, and only an answer that comes in pieces is kept until
// it is whole.
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

  /** Takes what epoll says of a connection. */
  void handle(uint32_t index, uint16_t generation, uint32_t events);

 protected:
  struct Connection {
    int fd = -1;
    uint16_t generation = 0;
    bool isOpen = false;  // it can be written to: its handshake is done
  };

  /** @param core outlives them; @throw std::invalid_argument where its address is none */
  Connections(Core* core, Token::Kind kind, uint16_t port);

  virtual Connection& at(uint32_t index) = 0;
  /** It can be written to for the first time. */
  virtual void opened(uint32_t index) = 0;
  /** It can be written to again, maybe. */
  virtual void writable(uint32_t) {}
  /** An answer is whole. Its views last as long as the call. */
  virtual void answered(uint32_t index, const Response& response) = 0;
  /** The server has ended it. */
  virtual void ended(uint32_t index) = 0;
  /** It is of no use any more, or never came to be. */
  virtual void lost(uint32_t index) = 0;

  /** Begins a connection. @return false when it is lost already */
  bool connect(uint32_t index);
  void disconnect(uint32_t index);
  /** What was waited for did not happen: it is lost. */
  void late(uint32_t index);
  /** The server did not keep to the contract: it is lost. */
  void broken(uint32_t index);

  Core* core_;

 private:
  void read(uint32_t index, uint32_t events);
  bool readPiece(uint32_t index, std::string_view bytes);

  const Token::Kind kind_;
  Target target_;
  std::unordered_map<uint32_t, std::string> pieces_;  // of answers that are not whole yet
};

}  // namespace swarm

#endif  // SPRITES_SWARM_CONNECTIONS_H_
