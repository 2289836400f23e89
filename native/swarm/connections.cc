#include "connections.h"

#include <errno.h>

#include <cstring>
#include <stdexcept>

namespace swarm {

namespace {

constexpr uint32_t kEndEvents = EPOLLRDHUP | EPOLLERR | EPOLLHUP;

}  // namespace

Connections::Connections(Core* core, Token::Kind kind, uint16_t port) : core_(core), kind_(kind) {
  if (target_.set(core->options.address, port)) return;
  throw std::invalid_argument("no numeric address: " + core->options.address);
}

bool Connections::connect(uint32_t index) {
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

void Connections::disconnect(uint32_t index) {
  Connection& connection = connectionAt(index);
  if (connection.fd >= 0) core_->close(connection.fd);
  connection.fd = -1;
  if (auto extracted = partialAnswers_.extract(index)) core_->releasePieces(&extracted.mapped());
}

void Connections::failTimedOut(uint32_t index) {
  if (connectionAt(index).isOpen) {
    core_->problems.add("no answer in time");
  } else {
    core_->connectErrors.add(strerror(ETIMEDOUT));
  }
  onFailure(index);
}

void Connections::failBadAnswer(uint32_t index) {
  core_->count.badAnswers++;
  onFailure(index);
}

void Connections::handle(uint32_t index, uint16_t generation, uint32_t events) {
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

void Connections::read(uint32_t index, uint32_t events) {
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
bool Connections::parsePiece(uint32_t index, std::string_view bytes) {
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

}  // namespace swarm
