// The client's state machine: what to ask the server next, and what its answers mean.
//
//   any thread                      the engine's thread (the client's own, or perform()'s caller)
//   ─────────────                   ─────────────────────────────────────────────────────────────
//   throwSprite ─┐                  ┌─▶ throws_ ── POST /throw ─┐
//   leave ───────┼─▶ inbox (mutex) ─┤                           ├─▶ transport ─▶ replies ─▶ events_
//   wake ────────┘    + wake-up     └─▶ join, poll, leave ──────┘                              │
//                                                                  callbacks, no lock held ◀───┘
//
// Everything but the inbox and the published state belongs to the engine's thread and needs no
// lock. One turn() takes the inbox, starts what is due, moves bytes, reads replies, and only then
// calls back, so that an event is never called from half-changed state; the next poll, which acks,
// starts after the callbacks of what it acks have returned.
//
// Sprites in, exactly once: lastSeq_ is the highest sequence number handed over. The poll asks with
// ack=lastSeq_, and what comes at or below it is a repetition. It starts at 0 with each new place.
//
// Sprites out, at most once: a throw gets its number n with the place it is first sent from, and
// keeps both while it may have been taken (`maybeTaken`). Until then nothing is at stake and a
// failure gives it back to the caller at once; from then on only an answer, or the end of the
// patience, settles it. Of the numbers only a window of 64 is alive at a time, as the server
// remembers no more.
//
// Rejected: blocking calls on two threads (one polling, one throwing). A throw's time-out would
// hold up all others, leaving would have to wait for a parked poll, and a program with a loop of
// its own could not do without threads.
#ifndef SPRITES_CLIENT_ENGINE_H_
#define SPRITES_CLIENT_ENGINE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "answers.h"
#include "sprites/client.h"
#include "transport.h"

namespace sprites {

class Engine {
 public:
  /** Throws as Client's constructor does. */
  explicit Engine(Options options);

  // For any thread.
  bool throwSprite(Edge edge, std::string json, ThrowCallback result);
  bool place(PlaceCallback result);
  bool status(StatusCallback result);
  void leave();
  void wake();
  State state() const;
  Counts counts() const;

  /** One turn of at most `timeout`; false once the client has left. For one thread at a time. */
  bool turn(Millis timeout);

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /** One throw from its acceptance to its result. */
  struct Throw {
    Edge edge = Edge::kLeft;
    std::string json;
    ThrowCallback result;
    std::string place;  // the id it is sent with; empty until it first is
    uint64_t n = 0;
    RequestId request = 0;  // 0: not on the wire
    unsigned tries = 0;     // times it was sent
    unsigned attempts = 0;  // of those, the ones that failed though there was contact
    bool maybeTaken = false;
    Time due;       // not to be sent before
    Time deadline;  // to be settled by
  };
  using Throws = std::list<Throw>;

  /** A question of the program's about something beside sprites: one of the two is asked. */
  struct Look {
    PlaceCallback place;
    StatusCallback status;
    RequestId request = 0;
  };

  /** How far leaving has come. */
  enum class Leaving : uint8_t { kNo, kThrows, kAck, kTelling };

  void takeInbox(Time now);
  void startDue(Time now);
  void startJoin();
  RequestId startPoll(unsigned hold);
  unsigned pollHold() const;
  void startThrows(Time now);
  bool sendThrow(Throw* pending, Time now);
  bool mayNumber() const;
  bool look(Look look);
  void startLooks();
  void onLook(Look look, const Reply& reply);
  void startLeaving(Time now);
  void tellLeaving(Time now);
  void handOver(const Arrival& arrival, uint64_t place);
  void readReplies(Time now);
  void onJoin(const Reply& reply, Time now);
  void onPoll(const Reply& reply, Time now);
  void onPollRefused(const Reply& reply, Time now);
  void onThrow(Throws::iterator pending, const Reply& reply, Time now);
  void onThrowUnanswered(Throws::iterator pending, const Reply& reply, Time now);
  void onThrowRefused(Throws::iterator pending, const Reply& reply, Time now);
  void onLeave(const Reply& reply, Time now);
  void postpone(Throws::iterator pending, Millis least, Time now);
  Throws::iterator settle(Throws::iterator pending, ThrowResult result);
  void settleWaiting(const ThrowResult& result);
  void loseContact(const std::string& why, Millis least, Time now);
  void losePlace(const std::string& why, Time now);
  void finish();
  void setState(StateChange change);
  bool leaveAsked() const;
  template <typename Change>
  void count(Change change);
  void callBack() noexcept;
  Millis backoff(unsigned failures);
  Millis untilNext(Time now) const;

  const Options options_;
  Transport transport_;

  mutable std::mutex mutex_;
  std::vector<Throw> inbox_;          // under mutex_
  std::vector<Look> lookInbox_;       // under mutex_
  size_t looking_ = 0;                // under mutex_: looks accepted and not answered
  bool leaveAsked_ = false;           // under mutex_
  size_t pending_ = 0;                // under mutex_: throws accepted and not settled
  State state_ = State::kConnecting;  // under mutex_
  Counts counts_;                     // under mutex_

  // The engine's thread only.
  std::vector<std::function<void()>> events_;
  std::mt19937 random_;
  std::string id_;  // empty: no place
  unsigned serverHold_ = 0;
  size_t maxSprite_ = 0;
  bool newPlace_ = false;     // joined, and not yet told
  bool holdRefused_ = false;  // this server wants no hold of ours
  uint64_t place_ = 0;        // how many places were lost: tells one place's events from another's
  uint64_t lastSeq_ = 0;      // handed over
  uint64_t ackTaken_ = 0;     // of a poll that was answered
  uint64_t lastNumber_ = 0;
  unsigned failures_ = 0;  // of contact, in a row
  Time nextContact_;
  Time throwsOpen_;  // 429, 503: nothing new is thrown before
  RequestId join_ = 0;
  Time pollStarted_;
  RequestId poll_ = 0;     // acks lastSeq_, always: only its own answer moves that on
  RequestId ackPoll_ = 0;  // a second one while leaving, which makes the server answer the first
  RequestId leave_ = 0;
  Throws throws_;
  std::vector<Look> looks_;
  Leaving leaving_ = Leaving::kNo;
  Time leaveDeadline_;
  Time leaveDue_;
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_ENGINE_H_
