// The state that all parts of the engine share: the options, the epoll set, the deadlines, and the
// counts. An engine has one Core, on the stack of run(); nothing is global.
#ifndef SPRITES_SWARM_CORE_H_
#define SPRITES_SWARM_CORE_H_

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "account.h"
#include "base/wheel.h"
#include "histogram.h"
#include "options.h"
#include "process.h"
#include "socket.h"

namespace swarm {

/** Counts by name, for the few named things: problems and errors. Slow: not for the hot path. */
class Tally {
 public:
  void add(std::string_view name) {
    for (auto& [known, count] : counts_) {
      if (known == name) {
        count++;
        return;
      }
    }
    // The names come from the server: their number is bounded, and only plain JSON text is
    // accepted.
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == ' ';
    });
    if (counts_.size() >= 64 || !plain || name.size() > 64) {
      if (name != "other") add("other");
      return;
    }
    counts_.emplace_back(name, 1);
  }
  /** Appends `{"name":count,…}`. */
  void print(std::string* json) const {
    json->push_back('{');
    for (const auto& [name, count] : counts_) {
      if (json->back() != '{') json->push_back(',');
      json->append("\"" + name + "\":" + std::to_string(count));
    }
    json->push_back('}');
  }

 private:
  std::vector<std::pair<std::string, uint64_t>> counts_;
};
/** All counts since the engine's start; engine.cc has their names. */
struct Counters {
  uint64_t connections = 0;  ///< connections opened
  uint64_t closed = 0;       ///< connections that the client did not end itself
  uint64_t joined = 0;
  uint64_t rejoined = 0;  ///< clients that join again after unknown-client
  uint64_t left = 0;
  uint64_t answers = 0;  ///< answers to polls
  uint64_t empty = 0;    ///< answers without a sprite: the keep-alive ping
  uint64_t retries = 0;  ///< answers with "retry"
  uint64_t superseded = 0;
  uint64_t sent = 0;           ///< throws begun
  uint64_t resends = 0;        ///< requests written again after their connection broke
  uint64_t accepted = 0;       ///< throws answered 202
  uint64_t delivered = 0;      ///< accepted, with the state delivered
  uint64_t queued = 0;         ///< accepted, with the state queued
  uint64_t duplicates = 0;     ///< accepted, as a repeated throw that the server knew
  uint64_t refused = 0;        ///< throws with any other answer: the sprite stayed here
  uint64_t unsettled = 0;      ///< repeats refused: the fate of the first try is unknown
  uint64_t received = 0;       ///< different sprites that this engine received
  uint64_t resent = 0;         ///< sprites of a repeated answer, with a known (client, seq)
  uint64_t doubles = 0;        ///< sprites received again under another (client, seq)
  uint64_t unackedLosses = 0;  ///< sprites of clients that left or were lost before their ack
                               ///< was confirmed: they may come twice
  uint64_t foreign = 0;        ///< sprites of other programs
  uint64_t mangled = 0;        ///< sprites cut, padded, or from the wrong side
  uint64_t badAnswers = 0;     ///< answers that break the contract
};

/** The connection of an event. A stale event of a closed connection has an older generation. */
struct Token {
  enum Kind : uint8_t { kClient, kLane, kParent };
  Kind kind;
  uint16_t generation;
  uint32_t index;

  uint64_t pack() const {
    return uint64_t{index} << 32 | uint64_t{generation} << 8 | static_cast<uint64_t>(kind);
  }
  static Token unpack(uint64_t data) {
    return {static_cast<Kind>(data & 0xff), static_cast<uint16_t>(data >> 8),
            static_cast<uint32_t>(data >> 32)};
  }
};

/** Length of a tick of the wheel, in nanoseconds: a deadline is up to two ticks late. */
constexpr uint64_t kTickNs = 10'000'000;

constexpr size_t kReadBytes = 256 << 10;
constexpr uint64_t kConnectTimeoutNs = 15'000 * kMs;
constexpr uint64_t kHandshakeTimeoutNs = 60'000 * kMs;

class Core {
 public:
  /** @param tls sessions of the connections, nullptr for plain TCP; outlives the core */
  explicit Core(const Options& options, Tls* tls)
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

  ~Core() { ::close(epoll); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /** Watches all events of a socket, edge-triggered. @return false with errno set */
  bool watch(int fd, Token token) {
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.u64 = token.pack();
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
  }

  /** @return a lane's item in the wheel; a client's item is its index */
  uint32_t laneItem(uint32_t lane) const { return options.clients + lane; }

  /** @return a random number in [0, 1) */
  double randomFraction() { return std::generate_canonical<double, 53>(random); }

  /** @return a backoff of 50 ms to 5 s that doubles with the attempts, half of it random, in ns */
  uint64_t backoff(unsigned attempts) {
    const uint64_t most = std::min<uint64_t>(5000, uint64_t{100} << std::min(attempts, 6u)) * kMs;
    return most / 2 + static_cast<uint64_t>(randomFraction() * most / 2);
  }

  /** @return the pause in ns for a Retry-After of `seconds` (0: none, 1 s), and up to half more */
  uint64_t retryPause(uint32_t seconds) {
    const uint64_t least = uint64_t{seconds == 0 ? 1 : seconds} * 1000 * kMs;
    return least + static_cast<uint64_t>(randomFraction() * least / 2);
  }

  /** Continues to open a connection. Counts a failure among the connect errors. */
  OpenState open(int fd) {
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

  /** @return as send(2) */
  ssize_t send(int fd, std::string_view bytes) {
    if (tls != nullptr) return tls->send(fd, bytes.data(), bytes.size());
    return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  /** Reads available bytes into `buffer`. @return as recv(2) */
  ssize_t receive(int fd) {
    if (tls != nullptr) return tls->receive(fd, buffer.data(), buffer.size());
    return recv(fd, buffer.data(), buffer.size(), 0);
  }

  void close(int fd) {
    if (tls != nullptr) tls->endSession(fd);
    ::close(fd);
  }

  /**
   * Appends a piece to an incomplete answer, which is kept until `releasePieces`.
   * @return false when the pieces of all connections exceed options.heldLimit: the answer must be
   * given up
   */
  bool appendPiece(std::string* answer, std::string_view piece) {
    answer->append(piece);
    pieceBytes_ += piece.size();
    return pieceBytes_ <= options.heldLimit;
  }

  /** Frees a kept answer. */
  void releasePieces(std::string* answer) {
    pieceBytes_ -= answer->size();
    answer->clear();
    answer->shrink_to_fit();
  }

  /** @return the timeout of opening, in ns; longer with TLS: handshakes are work for both ends */
  uint64_t openTimeout() const { return tls == nullptr ? kConnectTimeoutNs : kHandshakeTimeoutNs; }

  const Options& options;
  Tls* tls;
  int epoll;
  uint64_t now;  ///< time of the current turn of the loop
  base::Wheel<kTickNs> wheel;
  std::mt19937_64 random;
  Counters count;
  Tally refusals;       ///< refused throws, by problem
  Tally problems;       ///< other failed requests, by problem
  Tally connectErrors;  ///< failed connections, by error
  Account account;
  Batches batches;         ///< used instead of `account` with options.batched
  Histogram arrivalTimes;  ///< times from throw to arrival
  Histogram answerTimes;   ///< times from throw to answer
  Histogram probeTimes;    ///< times from throw to arrival of the probe's or crossed sprites
  std::vector<char> buffer;

 private:
  uint64_t pieceBytes_ = 0;  // bytes of all kept pieces
};
}  // namespace swarm

#endif  // SPRITES_SWARM_CORE_H_
