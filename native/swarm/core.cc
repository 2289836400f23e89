#include "core.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "socket.h"

namespace swarm {

namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr uint64_t kConnectTimeoutNs = 15'000 * kMs;
constexpr uint64_t kHandshakeTimeoutNs = 60'000 * kMs;

}  // namespace

void Tally::add(std::string_view name) {
  for (auto& [known, count] : counts_) {
    if (known == name) {
      count++;
      return;
    }
  }
  // The names come from the server: their number is bounded, and only plain JSON text is accepted.
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == ' ';
  });
  if (counts_.size() >= 64 || !plain || name.size() > 64) {
    if (name != "other") add("other");
    return;
  }
  counts_.emplace_back(name, 1);
}

void Tally::print(std::string* json) const {
  json->push_back('{');
  for (const auto& [name, count] : counts_) {
    if (json->back() != '{') json->push_back(',');
    json->append("\"" + name + "\":" + std::to_string(count));
  }
  json->push_back('}');
}

Core::Core(const Options& options, Tls* tls)
    : options(options),
      tls(tls),
      epoll(epoll_create1(EPOLL_CLOEXEC)),
      now(clockNow()),
      wheel(options.clients + options.lanes, now),
      random(options.seed + uint64_t{options.process} * 7919),
      account(options.heldLimit),
      buffer(kReadBytes) {
  if (epoll < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
}

Core::~Core() { ::close(epoll); }

bool Core::watch(int fd, Token token) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = token.pack();
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

uint64_t Core::backoff(unsigned attempts) {
  const uint64_t most = std::min<uint64_t>(5000, uint64_t{100} << std::min(attempts, 6u)) * kMs;
  return most / 2 + static_cast<uint64_t>(randomFraction() * most / 2);
}

uint64_t Core::retryPause(uint32_t seconds) {
  const uint64_t least = uint64_t{seconds == 0 ? 1 : seconds} * 1000 * kMs;
  return least + static_cast<uint64_t>(randomFraction() * least / 2);
}

OpenState Core::open(int fd) {
  const int error = connectError(fd);
  if (error != 0) {
    connectErrors.add(strerror(error));
    return OpenState::kFailed;
  }
  if (tls == nullptr) return OpenState::kDone;
  std::string why;
  const OpenState state = tls->open(fd, &why);
  if (state == OpenState::kFailed) connectErrors.add(why);
  return state;
}

ssize_t Core::send(int fd, std::string_view bytes) {
  if (tls != nullptr) return tls->send(fd, bytes.data(), bytes.size());
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

ssize_t Core::receive(int fd) {
  if (tls != nullptr) return tls->receive(fd, buffer.data(), buffer.size());
  return recv(fd, buffer.data(), buffer.size(), 0);
}

void Core::close(int fd) {
  if (tls != nullptr) tls->endSession(fd);
  ::close(fd);
}

bool Core::appendPiece(std::string* answer, std::string_view piece) {
  answer->append(piece);
  pieceBytes_ += piece.size();
  return pieceBytes_ <= options.heldLimit;
}

void Core::releasePieces(std::string* answer) {
  pieceBytes_ -= answer->size();
  answer->clear();
  answer->shrink_to_fit();
}

uint64_t Core::openTimeout() const {
  return tls == nullptr ? kConnectTimeoutNs : kHandshakeTimeoutNs;
}

}  // namespace swarm
