#include "connections.h"

#include <errno.h>

#include <cstring>
#include <stdexcept>

namespace swarm {

namespace {

constexpr uint32_t kEnds = EPOLLRDHUP | EPOLLERR | EPOLLHUP;

}  // namespace

Connections::Connections(Core* core, Token::Kind kind, uint16_t port) : core_(core), kind_(kind) {
  if (target_.set(core->options.address, port)) return;
  throw std::invalid_argument("no numeric address: " + core->options.address);
}

bool Connections::connect(uint32_t index) {
  const Options& options = core_->options;
  Connection& one = at(index);
  const int64_t number = static_cast<int64_t>(options.firstClient) + index;
  one.fd = target_.connect(options.sources == 0 ? -1 : number % options.sources);
  one.isOpen = false;
  const Token token = {kind_, ++one.generation, index};
  if (one.fd >= 0 && core_->watch(one.fd, token)) return true;
  core_->connectErrors.add(strerror(errno));
  lost(index);
  return false;
}

void Connections::disconnect(uint32_t index) {
  Connection& one = at(index);
  if (one.fd >= 0) core_->close(one.fd);
  one.fd = -1;
  if (auto held = pieces_.extract(index)) core_->release(&held.mapped());
}

void Connections::late(uint32_t index) {
  if (at(index).isOpen) {
    core_->problems.add("no answer in time");
  } else {
    core_->connectErrors.add(strerror(ETIMEDOUT));
  }
  lost(index);
}

void Connections::broken(uint32_t index) {
  core_->count.badAnswers++;
  lost(index);
}

void Connections::handle(uint32_t index, uint16_t generation, uint32_t events) {
  Connection& one = at(index);
  const auto isGone = [&] { return one.fd < 0 || one.generation != generation; };
  if (isGone()) return;
  if (!one.isOpen) {
    // A writable socket is connected; a handshake continues when bytes come in.
    const Opening opening = core_->open(one.fd);
    if (opening == Opening::kFailed) lost(index);
    if (opening != Opening::kDone) return;
    one.isOpen = true;
    core_->count.connections++;
    opened(index);
  } else if ((events & EPOLLOUT) != 0) {
    writable(index);
  }
  if (!isGone() && (events & (EPOLLIN | kEnds)) != 0) read(index, events);
}

void Connections::read(uint32_t index, uint32_t events) {
  // After a short read only the connection's end may be left to read, if its edge is in `events`.
  const bool isEnding = (events & kEnds) != 0;
  Connection& one = at(index);
  const uint16_t generation = one.generation;
  while (one.fd >= 0 && one.generation == generation) {
    const ssize_t got = core_->receive(one.fd);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return ended(index);
    if (!readPiece(index, {core_->buffer.data(), static_cast<size_t>(got)})) return broken(index);
    if (static_cast<size_t>(got) < core_->buffer.size() && !isEnding) return;
  }
}

/** Parses received bytes. @return false for an invalid answer, or too many kept bytes */
bool Connections::readPiece(uint32_t index, std::string_view bytes) {
  const auto kept = pieces_.empty() ? pieces_.end() : pieces_.find(index);
  const bool isFirst = kept == pieces_.end();
  if (!isFirst) {
    if (!core_->keep(&kept->second, bytes)) return false;
    bytes = kept->second;
  }
  Response response;
  const ReadState state = readResponse(bytes, &response);
  if (state == ReadState::kMore && bytes.size() <= kLongestResponse) {
    return !isFirst || core_->keep(&pieces_[index], bytes);
  }
  if (state != ReadState::kDone) return false;
  // The answer's views point into the kept pieces, which a disconnect() within answered() would
  // free.
  auto held = isFirst ? decltype(pieces_)::node_type() : pieces_.extract(kept);
  answered(index, response);
  if (!held.empty()) core_->release(&held.mapped());
  return true;
}

}  // namespace swarm
