#include "lanes.h"

#include <errno.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "answers.h"
#include "sprite.h"

namespace swarm {

namespace {

constexpr uint64_t kAnswerNs = 30 * kSecond;
constexpr uint64_t kMomentNs = 10 * kMs;
constexpr size_t kHeadRoom = 512;     // bytes before the sprite in a lane's buffer
constexpr uint32_t kTries = 64;       // most clients checked for a throw
constexpr uint64_t kTimed = 100'000;  // most recorded times of due sprites that were not thrown

}  // namespace

Lanes::Lanes(Core* core, Clients* clients)
    : Connections(core, Token::kLane, core->options.transientPort),
      clients_(clients),
      lanes_(core->options.lanes) {
  const Options& options = core->options;
  const std::string host =
      " HTTP/1.1\r\nHost: " + options.host + ":" + std::to_string(options.transientPort) + "\r\n";
  headTail_ = host + "Content-Type: application/json\r\nContent-Length: ";
  emptyTail_ = host + "Content-Length: 0\r\n\r\n";
  for (uint32_t i = 0; i < lanes_.size(); i++) finish(i);
}

void Lanes::start(uint64_t duration) {
  const Options& options = core_->options;
  if (options.throwing == Throwing::kNone) {
    over_++;
    return;
  }
  throwing_ = true;
  schedule_ = Schedule(core_->now, options.rate, options.phase, options.stages);
  endsAt_ = core_->now + duration;
  issued_ = 0;
}

void Lanes::setRate(double rate) {
  if (core_->options.throwing != Throwing::kOpenLoop) return;
  stop();
  if (rate <= 0) return;
  throwing_ = true;
  schedule_ = Schedule(core_->now, rate, 0, {});
  endsAt_ = UINT64_MAX;
  issued_ = 0;
}

void Lanes::stop() {
  if (!throwing_) return;
  throwing_ = false;
  over_++;
  if (core_->options.throwing == Throwing::kOpenLoop) countBehind();
}

void Lanes::countBehind() {
  // A sprite that was due within the last kMomentNs is not behind.
  const uint64_t until = std::min(core_->now, endsAt_) - kMomentNs;
  const uint64_t due = schedule_.dueBy(until);
  if (due <= issued_) return;
  behind_ += due - issued_;
  // Records how long each of them has waited at least, so that a stall at the end counts too.
  const Options& options = core_->options;
  Histogram& times = options.process == options.probeProcess ? core_->probe : core_->arrival;
  const uint64_t step = 1 + (due - issued_) / kTimed;
  for (uint64_t i = issued_; i < due; i += step) {
    times.record(core_->now - schedule_.dueAt(i), std::min(step, due - i));
  }
}

uint64_t Lanes::untilDue() const {
  if (!throwing_ || core_->options.throwing != Throwing::kOpenLoop || idle_.empty()) {
    return UINT64_MAX;
  }
  const uint64_t due = schedule_.dueAt(issued_);
  const uint64_t now = clockNow();
  // A due sprite is still unthrown: no client may throw now.
  return due > now ? due - now : kMs;
}

void Lanes::pump() {
  if (throwing_ && core_->now >= endsAt_) stop();
  // In a closed loop each lane may throw for its own client: a held back client must not block the
  // other lanes.
  const bool own =
      throwing_ && core_->options.throwing == Throwing::kClosedLoop && !core_->options.everyClient;
  for (size_t looks = idle_.size(); looks > 0; looks--) {
    const uint32_t index = idle_.front();
    if (assign(index)) {
      idle_.pop_front();
      lanes_[index].listed = false;
      go(index);
    } else if (own) {
      idle_.pop_front();
      idle_.push_back(index);
    } else {
      return;
    }
  }
}

bool Lanes::assign(uint32_t index) {
  Lane& lane = lanes_[index];
  uint32_t client;
  if (clients_->nextJoiner(&client)) {
    prepare(&lane, Errand::kJoin, client, "join");
    return true;
  }
  if (clients_->nextLeaver(&client)) {
    prepare(&lane, Errand::kLeave, client, "leave/" + std::string(clients_->id(client)));
    return true;
  }
  return throwing_ && assignThrow(index);
}

bool Lanes::assignThrow(uint32_t index) {
  const Options& options = core_->options;
  uint64_t due = clockNow();
  if (options.throwing == Throwing::kOpenLoop) {
    const uint64_t now = due;
    due = schedule_.dueAt(issued_);
    if (due > now) return false;
  }
  uint32_t client;
  if (!nextThrower(index, &client)) return false;
  issued_++;
  prepareThrow(&lanes_[index], client, due);
  return true;
}

bool Lanes::nextThrower(uint32_t index, uint32_t* client) {
  const Options& options = core_->options;
  if (options.throwing == Throwing::kClosedLoop && !options.everyClient) {
    *client = index % clients_->size();
    return clients_->mayThrow(*client);
  }
  const uint32_t opened = clients_->opened();
  for (uint32_t tries = std::min(kTries, opened); tries > 0; tries--) {
    turn_ = turn_ + 1 < opened ? turn_ + 1 : 0;
    if (clients_->mayThrow(turn_)) {
      *client = turn_;
      return true;
    }
  }
  return false;
}

void Lanes::prepareThrow(Lane* lane, uint32_t client, uint64_t due) {
  const Options& options = core_->options;
  const size_t room = kHeadRoom + std::max<size_t>(options.size, kSpriteRoom);
  if (lane->request.size() < room) lane->request.resize(room);
  const uint64_t number = options.batched ? core_->batches.next() : nextSprite_++;
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
  at = std::to_chars(at, at + 20, clients_->nextNumber(client)).ptr;
  put(headTail_);
  at = std::to_chars(at, at + 20, size).ptr;
  put("\r\n\r\n");
  lane->errand = Errand::kThrow;
  lane->client = client;
  lane->number = sprite.number;
  lane->due = due;
  lane->end = static_cast<uint32_t>(kHeadRoom + size);
  place(lane, std::string_view(head, at - head));
  pending_++;
  core_->count.sent++;
}

/** Copies the head right before the body, so that one write sends both. */
void Lanes::place(Lane* lane, std::string_view head) {
  lane->begin = static_cast<uint32_t>(kHeadRoom - head.size());
  memcpy(lane->request.data() + lane->begin, head.data(), head.size());
}

void Lanes::prepare(Lane* lane, Errand errand, uint32_t client, std::string_view path) {
  if (lane->request.size() < kHeadRoom) lane->request.resize(kHeadRoom);
  lane->errand = errand;
  lane->client = client;
  lane->end = kHeadRoom;
  place(lane, "POST /" + std::string(path) + emptyTail_);
}

void Lanes::go(uint32_t index) {
  Lane& lane = lanes_[index];
  lane.written = lane.begin;
  core_->wheel.arm(core_->laneItem(index), core_->now + kAnswerNs);
  // Set before connect(): a connection that fails at once is lost as any other, with a backoff.
  lane.state = State::kBusy;
  if (lane.fd >= 0) {
    writable(index);
  } else {
    connect(index);
  }
}

void Lanes::writable(uint32_t index) {
  Lane& lane = lanes_[index];
  while (lane.state == State::kBusy && lane.written < lane.end) {
    const ssize_t sent =
        core_->send(lane.fd, {lane.request.data() + lane.written, lane.end - lane.written});
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return ended(index);
    lane.written += static_cast<uint32_t>(sent);
  }
}

void Lanes::ended(uint32_t index) {
  if (lanes_[index].state == State::kBusy) core_->count.closed++;
  lost(index);
}

void Lanes::answered(uint32_t index, const Response& response) {
  Lane& lane = lanes_[index];
  if (lane.state != State::kBusy) return broken(index);  // an answer without a request
  lane.attempts = 0;
  if (response.close) disconnect(index);
  if (lane.errand == Errand::kThrow) {
    throwAnswered(index, response);
    return;
  }
  const bool done = response.status == (lane.errand == Errand::kJoin ? 201 : 204);
  if (!done) {
    const std::string_view problem = readProblem(response.body);
    const bool join = lane.errand == Errand::kJoin;
    core_->problems.add(
        problem.empty() ? (join ? "join " : "leave ") + std::to_string(response.status) : problem);
  }
  if (lane.errand == Errand::kJoin) {
    if (done) {
      clients_->joined(lane.client, response.body);
    } else {
      clients_->joinRefused(lane.client, core_->retryPause(response.retryAfter));
    }
  } else if (done || response.status == 404) {
    clients_->leaveTold(lane.client);
  } else {
    wait(index, core_->retryPause(response.retryAfter));
    return;
  }
  finish(index);
}

void Lanes::throwAnswered(uint32_t index, const Response& response) {
  Lane& lane = lanes_[index];
  Counters& count = core_->count;
  const bool isNchan = core_->options.nchan;
  if (response.status != 202 && !(isNchan && response.status == 201)) {
    if (refused(index, response)) finish(index);
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
    core_->batches.accepted(lane.number);
  } else {
    core_->account.accepted(lane.number);
  }
  const uint64_t now = clockNow();
  core_->answer.record(now > lane.due ? now - lane.due : 0);
  finish(index);
  // A closed loop throws again at once if no other lane is idle; joins and leaves come first.
  if (throwing_ && core_->options.throwing == Throwing::kClosedLoop && core_->now < endsAt_ &&
      idle_.size() == 1 && assign(index)) {
    idle_.clear();
    lane.listed = false;
    go(index);
  }
}

/** Handles a refused throw. @return false when the lane waits, to repeat the errand or to pause */
bool Lanes::refused(uint32_t index, const Response& response) {
  Lane& lane = lanes_[index];
  const std::string_view problem = readProblem(response.body);
  const bool later = response.status == 429 || response.status == 503;
  const uint64_t pause = core_->retryPause(response.retryAfter);
  if (later && lane.repeats > 0) {
    // The first try may have been accepted: only a final answer to a repeat tells.
    wait(index, pause);
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
  } else if (later) {
    // The whole server is busy: this lane pauses for its Retry-After.
    forgetErrand(&lane);
    wait(index, pause);
    return false;
  } else if (response.status == 404) {
    // The client's poll will get 404 too, and join again.
    clients_->holdBack(lane.client, kSecond);
  }
  return true;
}

void Lanes::forgetErrand(Lane* lane) {
  if (lane->errand == Errand::kThrow) pending_--;
  lane->errand = Errand::kNone;
  lane->repeats = 0;
}

void Lanes::finish(uint32_t index) {
  Lane& lane = lanes_[index];
  forgetErrand(&lane);
  lane.state = State::kIdle;
  if (lane.listed) return;
  lane.listed = true;
  idle_.push_back(index);
}

void Lanes::wait(uint32_t index, uint64_t nanoseconds) {
  lanes_[index].state = State::kWaiting;
  core_->wheel.arm(core_->laneItem(index), core_->now + nanoseconds);
}

void Lanes::lost(uint32_t index) {
  Lane& lane = lanes_[index];
  const bool started = lane.state == State::kBusy && lane.written > lane.begin;
  disconnect(index);
  if (lane.errand == Errand::kNone) return;
  if (started) {
    lane.repeats++;
    core_->count.resends++;
  }
  if (lane.state == State::kWaiting) return;
  wait(index, core_->backoff(lane.attempts));
  if (lane.attempts < 16) lane.attempts++;
}

void Lanes::timeout(uint32_t index) {
  Lane& lane = lanes_[index];
  switch (lane.state) {
    case State::kIdle:
      return;
    case State::kWaiting:
      if (lane.errand == Errand::kNone) {
        finish(index);
      } else {
        go(index);
      }
      return;
    case State::kBusy:
      return late(index);
  }
}

}  // namespace swarm
