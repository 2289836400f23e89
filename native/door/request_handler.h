// The handler: who decides on the hot requests that the front door reads.
#ifndef SPRITES_REQUEST_HANDLER_H_
#define SPRITES_REQUEST_HANDLER_H_

#include <optional>
#include <string_view>

#include "http_reader.h"
#include "pool/address.h"
#include "pool/address_limits.h"
#include "pool/pool.h"

namespace server {

/** Names one request of one connection, while it waits for its outcome. */
struct Ticket {
  uint32_t connection;
  uint32_t generation;  // of the connection: a later one in the same place is another
};

/**
 * Decides on hot requests: the pool itself in the main process, a relay to it in a worker.
 * An outcome may come later: then nothing is returned, and Door::settle is told.
 */
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  /** Whether polls can be parked here; if not, the front door hands them over to Node. */
  virtual bool takesPolls() const = 0;

  /** A place for a newcomer at `address`: kOk fills `id`. */
  virtual std::optional<Outcome> join(Ticket ticket, const Address& address, Id* id) = 0;

  /** A throw; `text` lives for the call only. */
  virtual std::optional<Outcome> throwSprite(Ticket ticket, const HotRequest& request,
                                             std::string_view text) = 0;

  /** An end: kOk, always. */
  virtual std::optional<Outcome> leave(Ticket ticket, const Id& id) = 0;

  /**
   * A poll: kOk parks it under `connection`, or has answered it already; `record` is what to drop
   * it by.
   */
  virtual Outcome poll(uint32_t connection, const HotRequest& request, uint32_t* record) = 0;

  /** The connection of a parked poll is gone. */
  virtual void drop(uint32_t record, uint32_t connection) = 0;
};

/** The pool, in its own process. */
class PoolHandler : public RequestHandler {
 public:
  /** `pool` and `limits` outlive the handler; `clock` gives microseconds and never goes back. */
  PoolHandler(Pool* pool, AddressLimits* limits, uint64_t (*clock)())
      : pool_(pool), limits_(limits), clock_(clock) {}

  bool takesPolls() const override { return true; }

  std::optional<Outcome> join(Ticket, const Address& address, Id* id) override {
    if (!limits_->join(address, clock_() / 1000)) {
      return pool_->refuse(Outcome::kTooManyJoins);
    }
    return pool_->join(id);
  }

  std::optional<Outcome> throwSprite(Ticket, const HotRequest& request,
                                     std::string_view text) override {
    const uint64_t number = request.hasNumber ? request.number : kNoNumber;
    return pool_->throwSprite(request.id, request.edge, number, text, clock_());
  }

  std::optional<Outcome> leave(Ticket, const Id& id) override {
    pool_->leave(id);
    return Outcome::kOk;
  }

  Outcome poll(uint32_t connection, const HotRequest& request, uint32_t* record) override {
    *record = pool_->find(request.id);
    const uint32_t hold = request.hasHold ? request.hold : kNoHold;
    if (request.hasHold && hold == kNoHold) return pool_->refuse(Outcome::kBadHold);
    return pool_->poll(request.id, request.ack, hold, PollHolder::kDoor, connection);
  }

  void drop(uint32_t record, uint32_t connection) override {
    pool_->drop(record, PollHolder::kDoor, connection);
  }

 private:
  Pool* pool_;
  AddressLimits* limits_;
  uint64_t (*clock_)();
};

}  // namespace server

#endif  // SPRITES_REQUEST_HANDLER_H_
