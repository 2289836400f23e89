// The handlers, which decide on the hot requests of the front door.
#ifndef SPRITES_REQUEST_HANDLER_H_
#define SPRITES_REQUEST_HANDLER_H_

#include <optional>
#include <string_view>

#include "arena/arena.h"
#include "base/address.h"
#include "http_reader.h"
#include "torus/pool.h"

namespace server {

/** Names a request of a connection that waits for its outcome. */
struct Ticket {
  uint32_t connection;
  uint32_t generation;  // of the connection: a later connection in the same place has another

  bool operator==(const Ticket&) const = default;
};

/** The result of a question that a handler may answer later. */
enum class LookupResult : uint8_t { kFound, kUnknown, kLater };

/**
 * Decides on joins, throws, leaves and inputs, parks polls, and knows the clients' places and the
 * live counts: the pool in the main thread, asks to the main thread in a worker. Without a returned
 * outcome, Door::complete is called later.
 */
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  /** Whether requests may be read now. If not, they wait in the kernel. */
  virtual bool hasRoom() const { return true; }

  /** Decides on a join from `address`. kOk: `id` is set. */
  virtual std::optional<Outcome> join(Ticket ticket, const Address& address, Id* id) = 0;

  /** Decides on a throw; `text` lives for the call only. */
  virtual std::optional<Outcome> throwSprite(Ticket ticket, const HotRequest& request,
                                             std::string_view text) = 0;

  /** Decides on a leave: kOk, or kStateUnwritable. */
  virtual std::optional<Outcome> leave(Ticket ticket, const Id& id) = 0;

  /** Whether inputs of players are decided here. If not, JavaScript handles them. */
  virtual bool decidesInputs() const = 0;

  /** Decides on an input to the named arena; `text` lives for the call only. */
  virtual std::optional<Outcome> input(Ticket ticket, const HotRequest& request,
                                       std::string_view arena, std::string_view text) = 0;

  /** Answers a poll in its result, or parks it under `ticket`. */
  virtual PollResult poll(Ticket ticket, const HotRequest& request) = 0;

  /** Drops a parked poll, whose connection is gone. */
  virtual void dropPoll(uint32_t record, Ticket ticket) = 0;

  /**
   * Called when the client of a parked poll has ended its half. Returns whether the poll may be
   * dropped now. If not, an answer may be on its way; without one, Door::closeParkedPoll is called
   * later.
   */
  virtual bool mayDropEndedPoll(Ticket) { return true; }

  /** Finds a client's place. kLater: Door::answer or Door::complete is called later. */
  virtual LookupResult findPlace(Ticket ticket, const Id& id, Place* place) = 0;

  /** Asks for the live counts, if they come later, by Door::answer. */
  virtual void requestCounts(Ticket) {}

  /**
   * Asks for the live counts for the client `id`, by Door::answer. An unknown client is reported to
   * Door::complete.
   */
  virtual void requestCountsOf(Ticket, const Id&) {}
};

/** The hold of a poll, for the pool. An explicit 0 becomes a hold that the pool refuses. */
inline uint32_t holdOf(const HotRequest& request) {
  if (!request.hasHold) return kNoHold;
  return request.hold == kNoHold ? UINT32_MAX : request.hold;
}

/** The pool, in the main thread. */
class PoolHandler : public RequestHandler {
 public:
  /** `pool` and `arena` outlive the handler; `clock` returns microseconds and never goes back. */
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

  bool decidesInputs() const override { return arena_ != nullptr; }

  std::optional<Outcome> input(Ticket, const HotRequest& request, std::string_view arena,
                               std::string_view text) override {
    const uint64_t number = request.hasNumber ? request.number : kNoNumber;
    return arena_->input(arena, request.id, number, text, clock_());
  }

  PollResult poll(Ticket ticket, const HotRequest& request) override {
    return pool_->poll(request.id, request.ack, holdOf(request), PollHolder::kDoor,
                       ticket.connection);
  }

  void dropPoll(uint32_t record, Ticket ticket) override {
    pool_->drop(record, PollHolder::kDoor, ticket.connection);
  }

  LookupResult findPlace(Ticket, const Id& id, Place* place) override {
    return pool_->place(id, place) ? LookupResult::kFound : LookupResult::kUnknown;
  }

 private:
  Pool* pool_;
  uint64_t (*clock_)();
  Arena* arena_;  // nullptr: JavaScript handles inputs
};

}  // namespace server

#endif  // SPRITES_REQUEST_HANDLER_H_
