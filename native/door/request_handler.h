// The handlers: they decide on the hot requests that the front door reads.
#ifndef SPRITES_REQUEST_HANDLER_H_
#define SPRITES_REQUEST_HANDLER_H_

#include <optional>
#include <string_view>

#include "http_reader.h"
#include "pool/address.h"
#include "pool/pool.h"

namespace server {

/** Names one request of one connection, while it waits for its outcome. */
struct Ticket {
  uint32_t connection;
  uint32_t generation;  // of the connection: a later one in the same place is another

  bool operator==(const Ticket&) const = default;
};

/**
 * Decides on joins, throws and leaves: the pool itself in the main process, a relay to it in a
 * worker. An outcome may come later: then nothing is returned, and Door::complete is told.
 */
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  /** A place for a newcomer at `address`: kOk fills `id`. */
  virtual std::optional<Outcome> join(Ticket ticket, const Address& address, Id* id) = 0;

  /** A throw; `text` lives for the call only. */
  virtual std::optional<Outcome> throwSprite(Ticket ticket, const HotRequest& request,
                                             std::string_view text) = 0;

  /** A leave: kOk, or kStateUnwritable. */
  virtual std::optional<Outcome> leave(Ticket ticket, const Id& id) = 0;
};

/**
 * Parks polls, and knows the clients' places. Where there is none, the front door hands polls and
 * questions for a place over to Node's server.
 */
class PollHandler {
 public:
  virtual ~PollHandler() = default;

  /** A poll: answered in the result, or parked under `connection`. */
  virtual PollResult poll(uint32_t connection, const HotRequest& request) = 0;

  /** The connection of a parked poll is gone. */
  virtual void drop(uint32_t record, uint32_t connection) = 0;

  /** A client's place; false when there is no such client. */
  virtual bool place(const Id& id, Place* place) const = 0;
};

/** The pool, in its own process. */
class PoolHandler : public RequestHandler, public PollHandler {
 public:
  /** `pool` outlives the handler; `clock` gives microseconds and never goes back. */
  PoolHandler(Pool* pool, uint64_t (*clock)()) : pool_(pool), clock_(clock) {}

  std::optional<Outcome> join(Ticket, const Address& address, Id* id) override {
    return pool_->join(address, clock_(), id);
  }

  std::optional<Outcome> throwSprite(Ticket, const HotRequest& request,
                                     std::string_view text) override {
    const uint64_t number = request.hasNumber ? request.number : kNoNumber;
    return pool_->throwSprite(request.id, request.edge, number, text, clock_());
  }

  std::optional<Outcome> leave(Ticket, const Id& id) override { return pool_->leave(id); }

  PollResult poll(uint32_t connection, const HotRequest& request) override {
    const uint32_t hold = request.hasHold ? request.hold : kNoHold;
    if (request.hasHold && hold == kNoHold) return {pool_->count(Outcome::kBadHold), 0, {}};
    return pool_->poll(request.id, request.ack, hold, PollHolder::kDoor, connection);
  }

  void drop(uint32_t record, uint32_t connection) override {
    pool_->drop(record, PollHolder::kDoor, connection);
  }

  bool place(const Id& id, Place* place) const override { return pool_->place(id, place); }

 private:
  Pool* pool_;
  uint64_t (*clock_)();
};

}  // namespace server

#endif  // SPRITES_REQUEST_HANDLER_H_
