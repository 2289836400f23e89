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

#include <errno.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "answers.h"
#include "clients.h"
#include "connections.h"
#include "core.h"
#include "schedule.h"
#include "sprite.h"

namespace swarm {

constexpr uint64_t kAnswerTimeoutNs = 30 * kSecond;
constexpr uint64_t kBehindToleranceNs = 10 * kMs;
constexpr size_t kHeadRoom = 512;           // bytes before the sprite in a lane's buffer
constexpr uint32_t kMaxThrowerChecks = 64;  // most clients checked for a throw
// Most recorded times of due sprites that were not thrown.
constexpr uint64_t kMaxBehindTimes = 100'000;

class Lanes : public Connections {
 public:
  /** @param core, clients must outlive the lanes */
  Lanes(Core* core, Clients* clients)
      : Connections(core, Token::kLane, core->options.transientPort),
        clients_(clients),
        lanes_(core->options.lanes) {
    const Options& options = core->options;
    const std::string host =
        " HTTP/1.1\r\nHost: " + options.host + ":" + std::to_string(options.transientPort) + "\r\n";
    throwHeadTail_ = host + "Content-Type: application/json\r\nContent-Length: ";
    bodilessTail_ = host + "Content-Length: 0\r\n\r\n";
    for (uint32_t i = 0; i < lanes_.size(); i++) finishErrand(i);
  }

  /** Starts to throw, for at most `duration` nanoseconds. */
  void startThrowing(uint64_t duration) {
    const Options& options = core_->options;
    if (options.throwing == Throwing::kNone) {
      throwingEnds_++;
      return;
    }
    isThrowing_ = true;
    schedule_ = Schedule(core_->now, options.rate, options.phase, options.stages);
    endsAt_ = core_->now + duration;
    thrownSinceStart_ = 0;
  }

  void stopThrowing() {
    if (!isThrowing_) return;
    isThrowing_ = false;
    throwingEnds_++;
    if (core_->options.throwing == Throwing::kOpenLoop) countBehind();
  }

  /** Throws by the clock from now on, until the engine ends. @param rate sprites a second, 0 for
   * none */
  void setRate(double rate) {
    if (core_->options.throwing != Throwing::kOpenLoop) return;
    stopThrowing();
    if (rate <= 0) return;
    isThrowing_ = true;
    schedule_ = Schedule(core_->now, rate, 0, {});
    endsAt_ = UINT64_MAX;
    thrownSinceStart_ = 0;
  }

  /** Assigns due errands to idle lanes. */
  void pump() {
    if (isThrowing_ && core_->now >= endsAt_) stopThrowing();
    // In a closed loop each lane may throw for its own client: a held back client must not
    // block the other lanes.
    const bool hasOwnClients = isThrowing_ && core_->options.throwing == Throwing::kClosedLoop &&
                               !core_->options.everyClient;
    for (size_t checks = idle_.size(); checks > 0; checks--) {
      const uint32_t index = idle_.front();
      if (assign(index)) {
        idle_.pop_front();
        lanes_[index].isInIdle = false;
        sendErrand(index);
      } else if (hasOwnClients) {
        idle_.pop_front();
        idle_.push_back(index);
      } else {
        return;
      }
    }
  }

  void timeout(uint32_t index) {
    Lane& lane = lanes_[index];
    switch (lane.state) {
      case State::kIdle:
        return;
      case State::kWaiting:
        if (lane.errand == Errand::kNone) {
          finishErrand(index);
        } else {
          sendErrand(index);
        }
        return;
      case State::kBusy:
        return failTimedOut(index);
    }
  }

  /** @return the nanoseconds until the next sprite is due, UINT64_MAX when none is */
  uint64_t untilDue() const {
    if (!isThrowing_ || core_->options.throwing != Throwing::kOpenLoop || idle_.empty()) {
      return UINT64_MAX;
    }
    const uint64_t due = schedule_.dueAt(thrownSinceStart_);
    const uint64_t now = clockNow();
    // A due sprite is still unthrown: no client may throw now.
    return due > now ? due - now : kMs;
  }

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

  void onWritable(uint32_t index) override {
    Lane& lane = lanes_[index];
    while (lane.state == State::kBusy && lane.written < lane.end) {
      const ssize_t sent =
          core_->send(lane.fd, {lane.request.data() + lane.written, lane.end - lane.written});
      if (sent < 0 && errno == EAGAIN) return;
      if (sent < 0) return onEnd(index);
      lane.written += static_cast<uint32_t>(sent);
    }
  }

  void onAnswer(uint32_t index, const Response& response) override {
    Lane& lane = lanes_[index];
    if (lane.state != State::kBusy) return failBadAnswer(index);  // an answer without a request
    lane.attempts = 0;
    if (response.willClose) disconnect(index);
    if (lane.errand == Errand::kThrow) {
      onThrowAnswer(index, response);
      return;
    }
    const bool succeeded = response.status == (lane.errand == Errand::kJoin ? 201 : 204);
    if (!succeeded) {
      const std::string_view problem = readProblem(response.body);
      const bool isJoin = lane.errand == Errand::kJoin;
      core_->problems.add(problem.empty()
                              ? (isJoin ? "join " : "leave ") + std::to_string(response.status)
                              : problem);
    }
    if (lane.errand == Errand::kJoin) {
      if (succeeded) {
        clients_->onJoinAnswer(lane.client, response.body);
      } else {
        clients_->onJoinRefused(lane.client, core_->retryPause(response.retryAfter));
      }
    } else if (succeeded || response.status == 404) {
      clients_->onLeaveAnswer(lane.client);
    } else {
      pauseLane(index, core_->retryPause(response.retryAfter));
      return;
    }
    finishErrand(index);
  }

  void onEnd(uint32_t index) override {
    if (lanes_[index].state == State::kBusy) core_->count.closed++;
    onFailure(index);
  }

  void onFailure(uint32_t index) override {
    Lane& lane = lanes_[index];
    const bool wasSent = lane.state == State::kBusy && lane.written > lane.begin;
    disconnect(index);
    if (lane.errand == Errand::kNone) return;
    if (wasSent) {
      lane.repeats++;
      core_->count.resends++;
    }
    if (lane.state == State::kWaiting) return;
    pauseLane(index, core_->backoff(lane.attempts));
    if (lane.attempts < 16) lane.attempts++;
  }

  void countBehind() {
    // A sprite that was due within the last kBehindToleranceNs is not behind.
    const uint64_t until = std::min(core_->now, endsAt_) - kBehindToleranceNs;
    const uint64_t due = schedule_.dueBy(until);
    if (due <= thrownSinceStart_) return;
    behind_ += due - thrownSinceStart_;
    // Records how long each of them has waited at least, so that a stall at the end counts too.
    const Options& options = core_->options;
    Histogram& times =
        options.process == options.probeProcess ? core_->probeTimes : core_->arrivalTimes;
    const uint64_t step = 1 + (due - thrownSinceStart_) / kMaxBehindTimes;
    for (uint64_t i = thrownSinceStart_; i < due; i += step) {
      times.record(core_->now - schedule_.dueAt(i), std::min(step, due - i));
    }
  }

  bool assign(uint32_t index) {
    Lane& lane = lanes_[index];
    uint32_t client;
    if (clients_->popJoiner(&client)) {
      prepareErrand(&lane, Errand::kJoin, client, "join");
      return true;
    }
    if (clients_->popLeaver(&client)) {
      prepareErrand(&lane, Errand::kLeave, client, "leave/" + std::string(clients_->id(client)));
      return true;
    }
    return isThrowing_ && assignThrow(index);
  }

  bool assignThrow(uint32_t index) {
    const Options& options = core_->options;
    uint64_t due = clockNow();
    if (options.throwing == Throwing::kOpenLoop) {
      const uint64_t now = due;
      due = schedule_.dueAt(thrownSinceStart_);
      if (due > now) return false;
    }
    uint32_t client;
    if (!nextThrower(index, &client)) return false;
    thrownSinceStart_++;
    prepareThrow(&lanes_[index], client, due);
    return true;
  }

  bool nextThrower(uint32_t index, uint32_t* client) {
    const Options& options = core_->options;
    if (options.throwing == Throwing::kClosedLoop && !options.everyClient) {
      *client = index % clients_->size();
      return clients_->mayThrow(*client);
    }
    const uint32_t openedCount = clients_->openedCount();
    for (uint32_t tries = std::min(kMaxThrowerChecks, openedCount); tries > 0; tries--) {
      lastThrower_ = lastThrower_ + 1 < openedCount ? lastThrower_ + 1 : 0;
      if (clients_->mayThrow(lastThrower_)) {
        *client = lastThrower_;
        return true;
      }
    }
    return false;
  }

  void prepareThrow(Lane* lane, uint32_t client, uint64_t due) {
    const Options& options = core_->options;
    const size_t room = kHeadRoom + std::max<size_t>(options.size, kSpriteRoom);
    if (lane->request.size() < room) lane->request.resize(room);
    const uint64_t number = options.batched ? core_->batches.nextSprite() : nextSprite_++;
    const Sprite sprite = {options.process, client, number, due,
                           static_cast<Edge>(core_->random() >> 62)};
    const size_t size =
        writeSprite(sprite, options.swarm, options.size, lane->request.data() + kHeadRoom);
    char head[kHeadRoom];
    char* at = head;
    const auto put = [&at](std::string_view text) {
      at = static_cast<char*>(mempcpy(at, text.data(), text.size()));
    };
    put("POST /throw/");
    put(clients_->id(client));
    put("/");
    put(edgeName(sprite.edge));
    put("?n=");
    at = std::to_chars(at, at + 20, clients_->nextThrowNumber(client)).ptr;
    put(throwHeadTail_);
    at = std::to_chars(at, at + 20, size).ptr;
    put("\r\n\r\n");
    lane->errand = Errand::kThrow;
    lane->client = client;
    lane->number = sprite.number;
    lane->due = due;
    lane->end = static_cast<uint32_t>(kHeadRoom + size);
    prependHead(lane, std::string_view(head, at - head));
    pending_++;
    core_->count.sent++;
  }

  void prepareErrand(Lane* lane, Errand errand, uint32_t client, std::string_view path) {
    if (lane->request.size() < kHeadRoom) lane->request.resize(kHeadRoom);
    lane->errand = errand;
    lane->client = client;
    lane->end = kHeadRoom;
    prependHead(lane, "POST /" + std::string(path) + bodilessTail_);
  }

  /** Copies the head right before the body, so that one write sends both. */
  void prependHead(Lane* lane, std::string_view head) {
    lane->begin = static_cast<uint32_t>(kHeadRoom - head.size());
    memcpy(lane->request.data() + lane->begin, head.data(), head.size());
  }

  void sendErrand(uint32_t index) {
    Lane& lane = lanes_[index];
    lane.written = lane.begin;
    core_->wheel.arm(core_->laneItem(index), core_->now + kAnswerTimeoutNs);
    // Set before connect(): a connection that fails at once is lost as any other, with a backoff.
    lane.state = State::kBusy;
    if (lane.fd >= 0) {
      onWritable(index);
    } else {
      connect(index);
    }
  }

  void onThrowAnswer(uint32_t index, const Response& response) {
    Lane& lane = lanes_[index];
    Counters& count = core_->count;
    const bool isNchan = core_->options.nchan;
    if (response.status != 202 && !(isNchan && response.status == 201)) {
      if (onThrowRefused(index, response)) finishErrand(index);
      return;
    }
    const std::string_view state = readState(response.body);
    count.accepted++;
    if (state == "delivered") {
      count.delivered++;
    } else if (state == "queued") {
      count.queued++;
    } else if (state == "duplicate") {
      count.duplicates++;
    } else if (!isNchan) {
      count.badAnswers++;
    }
    if (core_->options.batched) {
      core_->batches.addAccepted(lane.number);
    } else {
      core_->account.addAccepted(lane.number);
    }
    const uint64_t now = clockNow();
    core_->answerTimes.record(now > lane.due ? now - lane.due : 0);
    finishErrand(index);
    // A closed loop throws again at once if no other lane is idle; joins and leaves come first.
    if (isThrowing_ && core_->options.throwing == Throwing::kClosedLoop && core_->now < endsAt_ &&
        idle_.size() == 1 && assign(index)) {
      idle_.clear();
      lane.isInIdle = false;
      sendErrand(index);
    }
  }

  /** Handles a refused throw. @return false when the lane waits, to repeat the errand or to pause
   */
  bool onThrowRefused(uint32_t index, const Response& response) {
    Lane& lane = lanes_[index];
    const std::string_view problem = readProblem(response.body);
    const bool isRetryable = response.status == 429 || response.status == 503;
    const uint64_t pause = core_->retryPause(response.retryAfter);
    if (isRetryable && lane.repeats > 0) {
      // The first try may have been accepted: only a final answer to a repeat tells.
      pauseLane(index, pause);
      return false;
    }
    if (lane.repeats > 0) {
      core_->count.unsettled++;
    } else {
      core_->count.refused++;
      core_->refusals.add(problem.empty() ? "throw " + std::to_string(response.status) : problem);
    }
    if (response.status == 429 || problem == "neighbor-busy") {
      clients_->holdBack(lane.client, pause);
    } else if (isRetryable) {
      // The whole server is busy: this lane pauses for its Retry-After.
      clearErrand(&lane);
      pauseLane(index, pause);
      return false;
    } else if (response.status == 404) {
      // The client's poll will get 404 too, and join again.
      clients_->holdBack(lane.client, kSecond);
    }
    return true;
  }

  void finishErrand(uint32_t index) {
    Lane& lane = lanes_[index];
    clearErrand(&lane);
    lane.state = State::kIdle;
    if (lane.isInIdle) return;
    lane.isInIdle = true;
    idle_.push_back(index);
  }

  void pauseLane(uint32_t index, uint64_t nanoseconds) {
    lanes_[index].state = State::kWaiting;
    core_->wheel.arm(core_->laneItem(index), core_->now + nanoseconds);
  }

  void clearErrand(Lane* lane) {
    if (lane->errand == Errand::kThrow) pending_--;
    lane->errand = Errand::kNone;
    lane->repeats = 0;
  }

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
