// The handlers: they decide on the hot requests that the front door reads.
#ifndef SPRITES_REQUEST_HANDLER_H_
#define SPRITES_REQUEST_HANDLER_H_

#include <optional>
#include <string_view>

#include "arena/arena.h"
#include "base/address.h"
#include "http_reader.h"
#include "torus/pool.h"

namespace server {

/** Names one request of one connection, while it waits for its outcome. */
struct Ticket {
  uint32_t connection;
  uint32_t generation;  // of the connection: a later one in the same place is another

  bool operator==(const Ticket&) const = default;
};

/** What became of a question that a handler may answer later. */
enum class Found : uint8_t { kHere, kNowhere, kLater };

/**
 * Decides on joins, throws and leaves, parks polls, and knows the clients' places and the live
 * counts: the pool itself in the main thread, asks to it in a worker. An outcome may come later:
 * then nothing is returned, and Door::complete is told.
 */
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  /** Whether requests may be read now; those that may not wait in the kernel. */
  virtual bool hasRoom() const { return true; }

  /** A place for a newcomer at `address`: kOk fills `id`. */
  virtual std::optional<Outcome> join(Ticket ticket, const Address& address, Id* id) = 0;

  /** A throw; `text` lives for the call only. */
  virtual std::optional<Outcome> throwSprite(Ticket ticket, const HotRequest& request,
                                             std::string_view text) = 0;

  /** A leave: kOk, or kStateUnwritable. */
  virtual std::optional<Outcome> leave(Ticket ticket, const Id& id) = 0;

  /** Whether inputs of players are decided here; else JavaScript handles them. */
  virtual bool takesInputs() const = 0;

  /** An input to the arena of that name; `text` lives for the call only. */
  virtual std::optional<Outcome> input(Ticket ticket, const HotRequest& request,
                                       std::string_view arena, std::string_view text) = 0;

  /** A poll: answered in the result, or parked under `ticket`. */
  virtual PollResult poll(Ticket ticket, const HotRequest& request) = 0;

  /** The connection of a parked poll is gone. */
  virtual void drop(uint32_t record, Ticket ticket) = 0;

  /**
   * The client of a parked poll has ended its half. Returns whether the poll may be dropped now; if
   * not, its answer may be on its way, and Door::over is told where
   * none comes.
   */
  virtual bool ended(Ticket) { return true; }

  /** A client's place; kLater: Door::answer or Door::complete is told. */
  virtual Found place(Ticket ticket, const Id& id, Place* place) = 0;

  /** Asks for the live counts, where they are told later: by Door::answer. */
  virtual void counts(Ticket) {}

  /** The same, where this client is one; else Door::complete is told that. */
  virtual void countsOf(Ticket, const Id&) {}
};

/** The hold of a poll, for the pool; a 0 that is given is none that it grants. */
inline uint32_t holdOf(const HotRequest& request) {
  if (!request.hasHold) return kNoHold;
  return request.hold == kNoHold ? UINT32_MAX : request.hold;
}

/** The pool, in its own thread. */
class PoolHandler : public RequestHandler {
 public:
  /** `pool` and `arena` outlive the handler; `clock` gives microseconds and never goes back. */
  PoolHandler(Pool* pool, uint64_t (*clock)(), Arena* arena = nullptr)
      : pool_(pool), clock_(clock), arena_(arena) {}

  std::optional<Outcome> join(Ticket, const Address& address, Id* id) override {
    return pool_->join(address, clock_(), id);
  }

  std::optional<Outcome> throwSprite(Ticket, const HotRequest& request,
                                     std::string_view text) override {
    const uint64_t number = request.hasNumber ? request.number : kNoNumber;
    return pool_->throwSprite(request.id, request.edge, number, text, clock_());
  }

  std::optional<Outcome> leave(Ticket, const Id& id) override { return pool_->leave(id); }

  bool takesInputs() const override { return arena_ != nullptr; }

  std::optional<Outcome> input(Ticket, const HotRequest& request, std::string_view arena,
                               std::string_view text) override {
    const uint64_t number = request.hasNumber ? request.number : kNoNumber;
    return arena_->input(arena, request.id, number, text, clock_());
  }

  PollResult poll(Ticket ticket, const HotRequest& request) override {
    return pool_->poll(request.id, request.ack, holdOf(request), PollHolder::kDoor,
                       ticket.connection);
  }

  void drop(uint32_t record, Ticket ticket) override {
    pool_->drop(record, PollHolder::kDoor, ticket.connection);
  }

  Found place(Ticket, const Id& id, Place* place) override {
    return pool_->place(id, place) ? Found::kHere : Found::kNowhere;
  }

 private:
  Pool* pool_;
  uint64_t (*clock_)();
  Arena* arena_;  // nullptr: inputs are JavaScript's
};

}  // namespace server

#endif  // SPRITES_REQUEST_HANDLER_H_
