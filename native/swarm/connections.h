// The common base of clients and lanes: connections to one port of the server, each with one
// request at a time, whose answer may come in pieces. A waiting connection has no buffer: bytes are
// read and parsed in the engine's buffer, and only the pieces of an incomplete answer are kept.
#ifndef SPRITES_SWARM_CONNECTIONS_H_
#define SPRITES_SWARM_CONNECTIONS_H_

#include <errno.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core.h"
#include "http.h"
#include "socket.h"

namespace swarm {

constexpr uint32_t kEndEvents = EPOLLRDHUP | EPOLLERR | EPOLLHUP;

class Connections {
 public:
  virtual ~Connections() = default;
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /** Handles the epoll events of a connection. */
  void handle(uint32_t index, uint16_t generation, uint32_t events) {
    Connection& connection = connectionAt(index);
    const auto isStale = [&] { return connection.fd < 0 || connection.generation != generation; };
    if (isStale()) return;
    if (!connection.isOpen) {
      // A writable socket is connected; a handshake continues when bytes come in.
      const OpenState state = core_->open(connection.fd);
      if (state == OpenState::kFailed) onFailure(index);
      if (state != OpenState::kDone) return;
      connection.isOpen = true;
      core_->count.connections++;
      onOpen(index);
    } else if ((events & EPOLLOUT) != 0) {
      onWritable(index);
    }
    if (!isStale() && (events & (EPOLLIN | kEndEvents)) != 0) read(index, events);
  }

 protected:
  struct Connection {
    int fd = -1;
    uint16_t generation = 0;
    bool isOpen = false;  // the handshake is done, and requests can be written
  };

  /** @param core outlives this; @throw std::invalid_argument when its address is not numeric */
  Connections(Core* core, Token::Kind kind, uint16_t port) : core_(core), kind_(kind) {
    if (target_.set(core->options.address, port)) return;
    throw std::invalid_argument("no numeric address: " + core->options.address);
  }

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
  bool connect(uint32_t index) {
    const Options& options = core_->options;
    Connection& connection = connectionAt(index);
    const int64_t number = static_cast<int64_t>(options.firstClient) + index;
    connection.fd = target_.connect(options.sources == 0 ? -1 : number % options.sources);
    connection.isOpen = false;
    const Token token = {kind_, ++connection.generation, index};
    if (connection.fd >= 0 && core_->watch(connection.fd, token)) return true;
    core_->connectErrors.add(strerror(errno));
    onFailure(index);
    return false;
  }

  void disconnect(uint32_t index) {
    Connection& connection = connectionAt(index);
    if (connection.fd >= 0) core_->close(connection.fd);
    connection.fd = -1;
    if (auto extracted = partialAnswers_.extract(index)) core_->releasePieces(&extracted.mapped());
  }
  /** Counts a timeout, and calls onFailure(). */
  void failTimedOut(uint32_t index) {
    if (connectionAt(index).isOpen) {
      core_->problems.add("no answer in time");
    } else {
      core_->connectErrors.add(strerror(ETIMEDOUT));
    }
    onFailure(index);
  }
  /** Counts a broken contract, and calls onFailure(). */
  void failBadAnswer(uint32_t index) {
    core_->count.badAnswers++;
    onFailure(index);
  }

  Core* core_;

 private:
  void read(uint32_t index, uint32_t events) {
    // After a short read only the connection's end may be left to read, if its edge is in `events`.
    const bool isEnding = (events & kEndEvents) != 0;
    Connection& connection = connectionAt(index);
    const uint16_t generation = connection.generation;
    while (connection.fd >= 0 && connection.generation == generation) {
      const ssize_t received = core_->receive(connection.fd);
      if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (received <= 0) return onEnd(index);
      if (!parsePiece(index, {core_->buffer.data(), static_cast<size_t>(received)}))
        return failBadAnswer(index);
      if (static_cast<size_t>(received) < core_->buffer.size() && !isEnding) return;
    }
  }

  /** Parses received bytes. @return false for an invalid answer, or too many kept bytes */
  bool parsePiece(uint32_t index, std::string_view bytes) {
    const auto partial =
        partialAnswers_.empty() ? partialAnswers_.end() : partialAnswers_.find(index);
    const bool isFirst = partial == partialAnswers_.end();
    if (!isFirst) {
      if (!core_->appendPiece(&partial->second, bytes)) return false;
      bytes = partial->second;
    }
    Response response;
    const ReadState state = readResponse(bytes, &response);
    if (state == ReadState::kMore && bytes.size() <= kLongestResponse) {
      return !isFirst || core_->appendPiece(&partialAnswers_[index], bytes);
    }
    if (state != ReadState::kDone) return false;
    // The answer's views point into the kept pieces, which a disconnect() within onAnswer() would
    // free.
    auto extracted =
        isFirst ? decltype(partialAnswers_)::node_type() : partialAnswers_.extract(partial);
    onAnswer(index, response);
    if (!extracted.empty()) core_->releasePieces(&extracted.mapped());
    return true;
  }

  const Token::Kind kind_;
  Target target_;
  std::unordered_map<uint32_t, std::string> partialAnswers_;  // incomplete answers, by connection
};
}  // namespace swarm

#endif  // SPRITES_SWARM_CONNECTIONS_H_
