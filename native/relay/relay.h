// The relay: how a worker's requests reach the pool in the main process, and their outcomes return.
//
//   worker                                            main process
//   front door ─▶ RelayHandler ─▶ [frame│frame│…] ─socket pair─▶ RelayServer ─▶ pool
//   front door ◀─ complete ◀─── [reply│reply│…] ◀─socket pair─ RelayServer ◀──┘
//
// Requests gather for one turn of the worker's loop and cross in one buffer; their replies come
// back in one. A frame is a fixed head and the sprite's text behind it; a reply is of fixed size.
// Both are in the machine's own byte order: they never leave it. When a worker dies, its open
// requests were either served or not. Its clients repeat their throws with the same number: a throw
// that was served is answered "duplicate".
//
// A reply goes out when the turn that has decided it is written: who sends calls `settle` before.
//
// Cost: 64 bytes and the text a throw, copied once; one system call a batch at each end.
// Rejected: JSON over Node's own channel (parsing costs more than the throw), shared memory (a
// second allocator and its locks, to save one copy of 200 bytes).
#ifndef SPRITES_RELAY_H_
#define SPRITES_RELAY_H_

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "door/request_handler.h"

namespace server {

/** The head of a request's frame; `length` bytes of text follow it. */
struct RelayFrame {
  uint32_t length;
  Ticket ticket;
  Route route;
  Edge edge;
  uint16_t unused;
  uint64_t number;  // kNoNumber: none
  Address address;  // of a join
  Id id;            // of a throw or leave
};
static_assert(sizeof(RelayFrame) == 56, "what crosses has no room for surprises");

/** What became of the requests of a turn: what they were told, or nobody knows. */
enum class Settled : uint8_t { kHolds, kUnknown };

struct RelayReply {
  Ticket ticket;
  Outcome outcome;
  Settled settled;  // kUnknown: it may not be answered
  uint8_t unused[2];
  Id id;  // of a join that was kOk
};
static_assert(sizeof(RelayReply) == 28, "what crosses has no room for surprises");

/** The connection of a ticket that JavaScript holds, for a request that Node's server read. */
constexpr uint32_t kScriptConnection = UINT32_MAX;

/** One end of a relay; links.h sends and receives for it. */
class RelayEnd {
 public:
  virtual ~RelayEnd() = default;

  /** Takes what has come, whole messages or pieces. */
  virtual void receive(std::string_view bytes) = 0;

  /** What is to be sent; the link takes from its front what the kernel has taken. */
  std::string& outgoing() { return outgoing_; }

 private:
  std::string outgoing_;
};

/** Keeps the beginning of a message until the rest of it has arrived. */
class RelayBuffer {
 public:
  /**
   * Calls `take(bytes)` with all that is there, which returns how many it has dealt with; the rest
   * is kept for the next time.
   */
  template <typename Take>
  void feed(std::string_view bytes, Take&& take) {
    if (!rest_.empty()) {
      rest_.append(bytes);
      bytes = rest_;
    }
    const size_t taken = take(bytes);
    if (rest_.empty()) {
      rest_ = bytes.substr(taken);
    } else {
      rest_.erase(0, taken);
    }
  }

 private:
  std::string rest_;
};

/** The worker's end. */
class RelayHandler : public RequestHandler, public RelayEnd {
 public:
  /** Told of a reply; without an outcome it may not be answered; `id` is a join's that was kOk. */
  using OnReply = std::function<void(Ticket ticket, std::optional<Outcome> outcome, const Id& id)>;

  explicit RelayHandler(uint32_t maxSprite) : maxSprite_(maxSprite) {}

  /** Who is told of replies: to JavaScript's requests, and to the front door's. */
  void setOnReply(OnReply toScript, OnReply toDoor) {
    toScript_ = std::move(toScript);
    toDoor_ = std::move(toDoor);
  }

  std::optional<Outcome> join(Ticket ticket, const Address& address, Id* id) override;
  std::optional<Outcome> throwSprite(Ticket ticket, const HotRequest& request,
                                     std::string_view text) override;
  std::optional<Outcome> leave(Ticket ticket, const Id& id) override;

  /** A throw as the handler's, for JavaScript; `number` may be kNoNumber. */
  std::optional<Outcome> throwSprite(Ticket ticket, const Id& id, Edge edge, uint64_t number,
                                     std::string_view text);

  void receive(std::string_view bytes) override;

  /** Counts a request that is refused on this side, for `reason`, and gives that back. */
  Outcome refuse(Outcome reason) {
    ++refused_[static_cast<size_t>(reason)];
    return reason;
  }

  /** Requests refused on this side, which the main process does not know of. */
  const std::array<uint64_t, kOutcomes>& refused() const { return refused_; }

 private:
  void add(const RelayFrame& frame, std::string_view text);

  const uint32_t maxSprite_;
  OnReply toScript_;
  OnReply toDoor_;
  RelayBuffer replies_;
  std::array<uint64_t, kOutcomes> refused_ = {};
};

/** The main process's end, one for each worker. */
class RelayServer : public RelayEnd {
 public:
  /** `pool` outlives the server; `clock` as for PoolHandler. */
  RelayServer(Pool* pool, uint64_t (*clock)()) : pool_(pool), clock_(clock) {}

  void receive(std::string_view bytes) override;

  /** Ends a turn: what was decided since the last call holds, or may not be answered. */
  void settle(Settled settled);

 private:
  RelayReply serve(const RelayFrame& frame, std::string_view text);

  Pool* const pool_;
  uint64_t (*const clock_)();
  RelayBuffer frames_;
  size_t decided_ = 0;  // bytes at the end of what is outgoing: the replies of this turn
};

}  // namespace server

#endif  // SPRITES_RELAY_H_
