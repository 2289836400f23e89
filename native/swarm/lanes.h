// The lanes: keep-alive connections for the short requests. A throw, a leave and, with a transient
// port, a join is an errand; an idle lane takes the next due errand. Closed loop: a lane is the
// connection of one thrower, and throws again after each answer. Open loop: sprite k is due by the
// clock (schedule.h), whether or not the earlier ones were answered. Its time counts from the due
// time, so that a stall of the server counts for every sprite that was due meanwhile (no
// coordinated omission).
//
//   idle ─▶ busy, connecting first if needed ─▶ idle      at most one errand on a lane
//            ▲   │
//       waiting ◀┘ connection lost: the same bytes again, with the same n
//
// A lane costs a buffer of one request (some 500 bytes and the sprite's size). There are as many
// lanes as throwers.
#ifndef SPRITES_SWARM_LANES_H_
#define SPRITES_SWARM_LANES_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "clients.h"
#include "connections.h"
#include "core.h"
#include "schedule.h"

namespace swarm {

class Lanes : public Connections {
 public:
  /** @param core, clients must outlive the lanes */
  Lanes(Core* core, Clients* clients);

  /** Starts to throw, for at most `duration` nanoseconds. */
  void startThrowing(uint64_t duration);
  void stopThrowing();

  /** Throws by the clock from now on, until the engine ends. @param rate sprites a second, 0 for
   * none */
  void setRate(double rate);

  /** Assigns due errands to idle lanes. */
  void pump();

  void timeout(uint32_t index);

  /** @return the nanoseconds until the next sprite is due, UINT64_MAX when none is */
  uint64_t untilDue() const;

  /** @return the number of throws without an answer yet */
  uint32_t pending() const { return pending_; }

  /** @return open loop: number of due sprites that no idle lane or client could throw */
  uint64_t behind() const { return behind_; }

  /** @return how often throwing has ended, by its duration or by stopThrowing() */
  uint32_t throwingEnds() const { return throwingEnds_; }

 private:
  enum class Errand : uint8_t { kNone, kThrow, kJoin, kLeave };
  enum class State : uint8_t { kIdle, kBusy, kWaiting };

  struct Lane : Connection {
    State state = State::kIdle;
    Errand errand = Errand::kNone;
    uint8_t attempts = 0;
    bool isInIdle = false;  // in idle_
    uint32_t repeats = 0;   // repeats of this errand
    uint32_t client = 0;
    uint64_t number = 0;  // number of the sprite
    uint64_t due = 0;     // due time of the throw
    uint32_t begin = 0;   // start of the bytes in `request`
    uint32_t end = 0;
    uint32_t written = 0;  // end of the written bytes
    std::vector<char> request;
  };

  Connection& connectionAt(uint32_t index) override { return lanes_[index]; }
  void onOpen(uint32_t index) override { onWritable(index); }
  void onWritable(uint32_t index) override;
  void onAnswer(uint32_t index, const Response& response) override;
  void onEnd(uint32_t index) override;
  void onFailure(uint32_t index) override;

  void countBehind();
  bool assign(uint32_t index);
  bool assignThrow(uint32_t index);
  bool nextThrower(uint32_t index, uint32_t* client);
  void prepareThrow(Lane* lane, uint32_t client, uint64_t due);
  void prepareErrand(Lane* lane, Errand errand, uint32_t client, std::string_view path);
  void prependHead(Lane* lane, std::string_view head);
  void sendErrand(uint32_t index);
  void onThrowAnswer(uint32_t index, const Response& response);
  bool onThrowRefused(uint32_t index, const Response& response);
  void finishErrand(uint32_t index);
  void pauseLane(uint32_t index, uint64_t nanoseconds);
  void clearErrand(Lane* lane);

  Clients* clients_;
  std::vector<Lane> lanes_;
  std::deque<uint32_t> idle_;
  std::string throwHeadTail_;  // a throw's head, from the HTTP version to the length
  std::string bodilessTail_;   // the rest of the head of a request without a body
  Schedule schedule_;          // open loop
  bool isThrowing_ = false;
  uint64_t endsAt_ = 0;
  uint64_t thrownSinceStart_ = 0;  // open loop: sprites thrown since the start
  uint64_t behind_ = 0;
  uint64_t nextSprite_ = 0;
  uint32_t lastThrower_ = 0;  // last thrower, where the clients throw in turn
  uint32_t pending_ = 0;
  uint32_t throwingEnds_ = 0;
};

}  // namespace swarm

#endif  // SPRITES_SWARM_LANES_H_
