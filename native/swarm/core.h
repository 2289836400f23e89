// What every part of the engine shares: the options, the poll set, the deadlines, and what is
// counted. One engine has one of these, on the stack of main(); nothing here is global.
#ifndef SPRITES_SWARM_CORE_H_
#define SPRITES_SWARM_CORE_H_

#include <sys/epoll.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "account.h"
#include "base/wheel.h"
#include "histogram.h"
#include "options.h"
#include "process.h"
#include "socket.h"

namespace swarm {

/** Counts by name, for the few things that have names: problems, errors. Not for the hot path. */
class Tally {
 public:
  void add(std::string_view name);
  /** Appends `{"name":count,…}`. */
  void print(std::string* json) const;

 private:
  std::vector<std::pair<std::string, uint64_t>> counts_;
};

/** Everything that is counted, from the engine's start on; engine.cc has their names. */
struct Counters {
  uint64_t connections = 0;  ///< opened
  uint64_t closed = 0;       ///< connections that ended though the client did not end them
  uint64_t joined = 0;
  uint64_t rejoined = 0;  ///< joined again after unknown-client
  uint64_t left = 0;
  uint64_t answers = 0;  ///< of polls
  uint64_t empty = 0;    ///< answers without a sprite: the keep-alive ping
  uint64_t retries = 0;  ///< answers with "retry"
  uint64_t superseded = 0;
  uint64_t sent = 0;           ///< throws begun
  uint64_t resends = 0;        ///< requests written again after their connection broke
  uint64_t accepted = 0;       ///< answered 202
  uint64_t delivered = 0;      ///< … of these
  uint64_t queued = 0;         ///< … of these
  uint64_t duplicates = 0;     ///< … of these: a repeated throw the server knew
  uint64_t refused = 0;        ///< answered otherwise: the sprite stayed with its thrower
  uint64_t unsettled = 0;      ///< repeated, then answered so that the first time stays unknown
  uint64_t received = 0;       ///< different sprites, by this engine
  uint64_t resent = 0;         ///< in an answer that came again, told by (client, seq)
  uint64_t doubles = 0;        ///< received before under another (client, seq)
  uint64_t unackedLosses = 0;  ///< taken, then left or lost before the ack was seen: may come twice
  uint64_t foreign = 0;        ///< received, thrown by another program
  uint64_t mangled = 0;        ///< cut, padded, or in by the wrong side
  uint64_t badAnswers = 0;     ///< not by the contract
};

/** Which connection an event is for. The generation tells a reused place from an event that is
 * late. */
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

/** Nanoseconds of one tick of the wheel: a deadline is up to two of them late. */
constexpr uint64_t kTickNs = 10'000'000;

class Core {
 public:
  /** @param tls what connections go through, nullptr for plain TCP; outlives the core */
  explicit Core(const Options& options, Tls* tls);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /** Watches a socket, edge-triggered, for everything. @return false with errno set */
  bool watch(int fd, Token token);

  /** @return the wheel's item of a lane; a client's is its index */
  uint32_t laneItem(uint32_t lane) const { return options.clients + lane; }

  /** @return a number in [0, 1) at random */
  double fraction() { return std::generate_canonical<double, 53>(random); }

  /** A pause that grows with the attempts, 50 ms to 5 s, and is random by half. In nanoseconds. */
  uint64_t backoff(unsigned attempts);

  /** Nanoseconds for a Retry-After of `seconds`, or a second when there was none, plus up to half.
   */
  uint64_t retryPause(uint32_t seconds);

  /** Goes on with a connection that was begun; one that failed is counted among the errors. */
  Opening open(int fd);

  /** @return as send(2) */
  ssize_t send(int fd, std::string_view bytes);

  /** Reads what is there. @return as recv(2); the bytes are in `buffer` */
  ssize_t receive(int fd);

  void close(int fd);

  /**
   * Keeps a piece of an answer that is not whole yet, until `release`.
   * @return false when all connections together keep more than they may: the answer has to be given
   * up
   */
  bool keep(std::string* answer, std::string_view piece);

  /** What was kept is needed no more. */
  void release(std::string* answer);

  /** Nanoseconds in which a connection must be open: handshakes are work for both ends. */
  uint64_t openTime() const;

  const Options& options;
  Tls* tls;
  int epoll;
  uint64_t now;  ///< of the current turn of the loop
  base::Wheel<kTickNs> wheel;
  std::mt19937_64 random;
  Counters count;
  Tally refusals;       ///< of throws, by problem
  Tally problems;       ///< of other requests, by problem
  Tally connectErrors;  ///< by errno
  Account account;
  Batches batches;    ///< instead of it, where sprites are counted by batches
  Histogram arrival;  ///< from throw to arrival
  Histogram answer;   ///< from throw to its answer
  Histogram probe;    ///< of the probe's sprites, or of those that crossed
  std::vector<char> buffer;

 private:
  uint64_t held_ = 0;  // bytes of all that is kept
};

}  // namespace swarm

#endif  // SPRITES_SWARM_CORE_H_
