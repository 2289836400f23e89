// The client's state machine: the next requests to the server, and the meaning of its answers.
// lib/client/README.md specifies the behavior of every client.
//
//   any thread                      the engine's thread (the client's own, or perform()'s caller)
//   ─────────────                   ─────────────────────────────────────────────────────────────
//   throwSprite ─┐                  ┌▶ throws_ ── POST /throw ──┐
//   place, status┼─▶ inbox (mutex) ─┤                           ├▶ transport ─▶ replies
//   leave, tryNow┘    + wake-up     └▶ join, proof, poll, leave ┘                  │
//                                            called with no lock held ◀─ callbacks_┘
//
// Everything but the inbox and the published state belongs to the engine's thread and needs no
// lock. One turn() takes the inbox, starts due requests, moves bytes, reads replies, and only then
// calls back, so that no callback sees half-changed state. The next poll, which acks sprites,
// starts after their callbacks have returned. (Only onResume is called earlier: a throw is sent
// after onResume has returned. No callback can reach the engine's own state.)
//
// Sprites in, exactly once: place_.ack is the highest sequence number passed to onSprite. Each poll
// carries it, and a sprite at or below it is a repetition. It starts at 0 with each new place.
//
// Sprites out, at most once: a throw gets its number n with the place that first sends it, and
// keeps both while the server may have accepted it (`mayBeAccepted`). Before that, a failure
// returns the sprite to the caller at once; after that, only an answer or the end of the patience
// settles the throw. The numbers in use span less than 64, as the server remembers no more.
//
// engine.cc has the turn, the leave, and the queries for place and counts; contact.cc join, proof
// and poll; throws.cc the throws.
//
// Rejected: blocking calls on two threads (one polling, one throwing). A throw's time-out would
// hold up all others, leaving would have to wait for a parked poll, and a program with a loop of
// its own could not do without threads.
#ifndef SPRITES_CLIENT_ENGINE_H_
#define SPRITES_CLIENT_ENGINE_H_

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "engine_base.h"
#include "grant.h"
#include "sprites/client.h"

namespace sprites {

class Engine : public EngineBase {
 public:
  /** Throws as Client's constructor does. */
  Engine(Options options, GrantCallback grant);

  // For any thread.
  bool throwSprite(Edge edge, std::string json, ThrowCallback result);
  bool place(PlaceCallback result);
  bool status(StatusCallback result);
  void leave();
  State state() const { return readLocked(state_); }
  Counts counts() const { return readLocked(counts_); }
  std::optional<Resume> resume() const { return readLocked(resume_); }
  bool isFinished() const { return readLocked(isFinished_); }  // left: nothing more happens

  /** Runs a turn of at most `timeout`; false once the client has left. For one thread at a time. */
  bool turn(Millis timeout);

  // For the thread that runs the turns: see Client.
  Millis timeout();

 private:
  /** One throw from its acceptance to its result. */
  struct Throw {
    Edge edge = Edge::kLeft;
    std::string json;
    ThrowCallback onResult;
    std::string placeId;  // the id that it is sent with; empty until it is first sent
    uint64_t n = 0;
    RequestId request = 0;  // 0: not on the wire
    unsigned timesSent = 0;
    unsigned failedAttempts = 0;  // sent without an answer though online, or from a lost place
    bool mayBeAccepted = false;
    bool isSentWhileLeaving = false;  // then it is not sent again
    Time due;                         // the earliest time to send it
    Time deadline;                    // the latest time to settle it
  };
  using Throws = std::list<Throw>;

  /** The program's query for the place or for the counts: one of the callbacks is set. */
  struct Query {
    PlaceCallback onPlace;
    StatusCallback onStatus;
    RequestId request = 0;
    std::string placeId;  // of the place that it is asked from
  };

  /** The step of leaving. */
  enum class LeaveStep : uint8_t { kNotLeaving, kThrows, kAck, kRequest };

  // engine.cc
  void readInbox(Time now) override;
  void startDueRequests(Time now) override;
  void readReplies(Time now) override;
  void setState(State state, const Reason& reason = {}, Millis retry = Millis(0),
                bool newPlace = false);
  void reportResume();
  bool isLeaveRequested() const { return readLocked(leaveRequested_); }
  template <typename Change>
  void updateCounts(Change change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change(&counts_);
  }
  Millis timeUntilDue(Time now) const override;

  RequestId startPlaceRequest(Method method, const std::string& path, Millis timeout);

  // contact.cc
  void startContact(Time now);
  void startJoin();
  void startProof();
  RequestId startPoll(unsigned hold);
  unsigned pollHold() const;
  void onJoin(const Reply& reply, Time now);
  void onProof(const Reply& reply, Time now);
  void onPoll(const Reply& reply, Time now);
  void onPollFailed(const Reply& reply, Time now);
  void passToProgram(const std::vector<Arrival>& arrivals, uint64_t placeNumber, bool isEarly);
  bool losePlaceIfUnknown(const Reply& reply, const Problem& problem, Time now);
  void scheduleRetry(const Reply& reply, Time now);
  void goOffline(const Reason& reason, Time now);
  void retryContact(Time now);
  void onUnknownPlace(const std::string& id, Time now);
  void losePlace(State state, const Reason& reason, Time now);

  // throws.cc
  void startThrows(Time now);
  bool settleUnsent(Throws::iterator pending, Time now);
  bool sendThrow(Throw* pending, Time now);
  bool canUseNextNumber() const;
  void onThrow(Throws::iterator pending, const Reply& reply, Time now);
  void onThrowUnanswered(Throws::iterator pending, const Reply& reply, const Reason& reason,
                         Time now);
  void onThrowBusy(Throws::iterator pending, const Reply& reply, const Problem& problem, Time now);
  void onThrowForgotten(Throws::iterator pending, Time now);
  Throws::iterator settle(Throws::iterator pending, ThrowResult result);
  void settleWaiting(const std::string& detail, Millis retry);
  Time earliestThrowOver(Edge edge) const;

  // Place and counts.
  bool addQuery(Query query);
  void startQueries(Time now);
  void onQueryReply(Query query, const Reply& reply, Time now);

  // The leave.
  void startLeaving(Time now);
  void sendLeave(Time now);
  void onAckPoll(const Reply& reply, Time now);
  void onLeave(const Reply& reply, Time now);
  void finish();

  const Options options_;
  std::vector<Throw> throwInbox_;  // under mutex_
  std::vector<Query> queryInbox_;  // under mutex_
  size_t openQueries_ = 0;         // under mutex_: queries accepted and not answered
  bool leaveRequested_ = false;    // under mutex_
  size_t pendingThrows_ = 0;       // under mutex_: throws accepted and not settled
  State state_ = State::kLeft;     // under mutex_
  bool isFinished_ = false;        // under mutex_
  Counts counts_;                  // under mutex_
  std::optional<Resume> resume_;   // under mutex_: as last reported

  // The engine's thread only.
  Grant grant_;  // to join with
  bool hasBegun_ = false;
  Resume place_;               // id: empty without a place; ack: passed to onSprite; n: last used
  uint64_t placeNumber_ = 0;   // counts places, to recognize the callbacks of an earlier one
  uint64_t confirmedAck_ = 0;  // the ack of the last answered poll
  bool needsProof_ = false;    // that the server still has the place
  unsigned pollFailures_ = 0;  // in a row
  unsigned notFoundAnswers_ = 0;  // 404 answers in a row without `unknown-client`
  Time nextContact_;
  bool isServerWait_ = false;  // the server asked for the wait until nextContact_
  Time earliestPoll_;          // the earliest next poll, by the "retry" of an answer
  std::array<Time, 4> earliestThrowByEdge_{};  // by edge: the earliest next throw over it
  Time earliestThrow_;                         // the earliest next throw over any edge
  RequestId join_ = 0;
  RequestId proof_ = 0;
  Time pollStarted_;
  RequestId poll_ = 0;     // always acks place_.ack: only its own answer raises that
  RequestId ackPoll_ = 0;  // a second poll while leaving, which makes the server answer the first
  RequestId leave_ = 0;
  Throws throws_;
  std::vector<Query> queries_;
  LeaveStep leaveStep_ = LeaveStep::kNotLeaving;
  Time leaveDeadline_;
  Time leaveDue_;
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_ENGINE_H_
