// The lanes: keep-alive connections for the short requests. A throw, a leave and, with a transient
// port, a join is an errand; an idle lane takes the next one that is due. Closed loop: a lane is
// one thrower's own connection and throws again as soon as it was answered. Open loop: sprite k is
// due by the clock (schedule.h), whether or not those before it were answered, and its time counts
// from then: a server that stalls is charged for every sprite that should have been thrown
// meanwhile (no coordinated omission).
//
//   idle ─▶ busy, connecting first where it must ─▶ idle      at most one errand on a lane
//            ▲   │
//       waiting ◀┘ connection lost: the same bytes again, with the same n
//
// A lane costs a buffer of one request (some 500 bytes and the sprite's size); there are as many as
// throwers.
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
  /** @param core, clients outlive the lanes */
  Lanes(Core* core, Clients* clients);

  /** Begins to throw, for `duration` nanoseconds at most. */
  void start(uint64_t duration);
  void stop();

  /** Throws by the clock from now on, for as long as the engine runs. @param rate sprites a second,
   * 0 for none */
  void setRate(double rate);

  /** Gives errands to idle lanes. */
  void pump();

  void timeout(uint32_t index);

  /** @return the nanoseconds until the next sprite is due, UINT64_MAX when none is */
  uint64_t untilDue() const;

  /** @return throws begun and not answered yet */
  uint32_t pending() const { return pending_; }

  /** @return open loop: sprites that were due and not thrown, for want of an idle lane or client */
  uint64_t behind() const { return behind_; }

  /** @return how often throwing has ended, by its time or by stop() */
  uint32_t over() const { return over_; }

 private:
  enum class Errand : uint8_t { kNone, kThrow, kJoin, kLeave };
  enum class State : uint8_t { kIdle, kBusy, kWaiting };

  struct Lane : Connection {
    State state = State::kIdle;
    Errand errand = Errand::kNone;
    uint8_t attempts = 0;
    bool listed = false;   // in idle_
    uint32_t repeats = 0;  // of this errand
    uint32_t client = 0;
    uint64_t number = 0;  // of the sprite
    uint64_t due = 0;     // when the throw was meant to happen
    uint32_t begin = 0;   // of the request in `request`
    uint32_t end = 0;
    uint32_t written = 0;  // up to where it was written
    std::vector<char> request;
  };

  Connection& at(uint32_t index) override { return lanes_[index]; }
  void opened(uint32_t index) override { writable(index); }
  void writable(uint32_t index) override;
  void answered(uint32_t index, const Response& response) override;
  void ended(uint32_t index) override;
  void lost(uint32_t index) override;

  void countBehind();
  bool assign(uint32_t index);
  bool assignThrow(uint32_t index);
  bool nextThrower(uint32_t index, uint32_t* client);
  void prepareThrow(Lane* lane, uint32_t client, uint64_t due);
  void prepare(Lane* lane, Errand errand, uint32_t client, std::string_view path);
  void place(Lane* lane, std::string_view head);
  void go(uint32_t index);
  void throwAnswered(uint32_t index, const Response& response);
  bool refused(uint32_t index, const Response& response);
  void finish(uint32_t index);
  void wait(uint32_t index, uint64_t nanoseconds);
  void forgetErrand(Lane* lane);

  Clients* clients_;
  std::vector<Lane> lanes_;
  std::deque<uint32_t> idle_;
  std::string headTail_;   // of a throw, from the version to the length
  std::string emptyTail_;  // of a request without a body
  Schedule schedule_;      // of an open loop
  bool throwing_ = false;
  uint64_t endsAt_ = 0;
  uint64_t issued_ = 0;  // open loop: sprites thrown or given up
  uint64_t behind_ = 0;
  uint64_t nextSprite_ = 0;
  uint32_t turn_ = 0;  // the client that throws next, where they take turns
  uint32_t pending_ = 0;
  uint32_t over_ = 0;
};

}  // namespace swarm

#endif  // SPRITES_SWARM_LANES_H_
