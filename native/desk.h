// The desk: who decides on the hot requests that the front door reads.
#ifndef SPRITES_DESK_H_
#define SPRITES_DESK_H_

#include <optional>
#include <string_view>

#include "address.h"
#include "clients.h"
#include "http.h"
#include "sources.h"

namespace sprites {

/** Names one request of one connection, while it waits for its outcome. */
struct Ticket {
  uint32_t connection;
  uint32_t generation;  // of the connection: a later one in the same place is another
};

/**
 * Decides on hot requests: the pool itself in the main process, a relay to it in a worker.
 * An outcome may come later: then nothing is returned, and Front::settle is told.
 */
class Desk {
 public:
  virtual ~Desk() = default;

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
class PoolDesk : public Desk {
 public:
  /** `clients` and `sources` outlive the desk; `clock` gives microseconds and never goes back. */
  PoolDesk(Clients* clients, Sources* sources, uint64_t (*clock)())
      : clients_(clients), sources_(sources), clock_(clock) {}

  bool takesPolls() const override { return true; }

  std::optional<Outcome> join(Ticket, const Address& address, Id* id) override {
    if (!sources_->join(address, clock_() / 1000)) {
      return clients_->refuse(Outcome::kTooManyJoins);
    }
    return clients_->join(id);
  }

  std::optional<Outcome> throwSprite(Ticket, const HotRequest& request,
                                     std::string_view text) override {
    const uint64_t number = request.hasNumber ? request.number : kNoNumber;
    return clients_->throwSprite(request.id, request.edge, number, text, clock_());
  }

  std::optional<Outcome> leave(Ticket, const Id& id) override {
    clients_->leave(id);
    return Outcome::kOk;
  }

  Outcome poll(uint32_t connection, const HotRequest& request, uint32_t* record) override {
    *record = clients_->find(request.id);
    const uint32_t hold = request.hasHold ? request.hold : kNoHold;
    if (request.hasHold && hold == kNoHold) return clients_->refuse(Outcome::kBadHold);
    return clients_->poll(request.id, request.ack, hold, CarriedBy::kFront, connection);
  }

  void drop(uint32_t record, uint32_t connection) override {
    clients_->drop(record, CarriedBy::kFront, connection);
  }

 private:
  Clients* clients_;
  Sources* sources_;
  uint64_t (*clock_)();
};

}  // namespace sprites

#endif  // SPRITES_DESK_H_
