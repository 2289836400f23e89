#include "lanes.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "answers.h"
#include "sprite.h"

namespace swarm {

namespace {

constexpr uint64_t kAnswerNs = 30 * kSecond;
constexpr uint64_t kMomentNs = 10'000'000;
constexpr size_t kHeadRoom = 512;  // before the sprite in a lane's buffer
constexpr uint32_t kTries = 64;    // clients looked at for one that may throw

}  // namespace

Lanes::Lanes(Core* core, Clients* clients)
    : core_(core), clients_(clients), lanes_(core->options.lanes) {
  const Options& options = core->options;
  if (!target_.set(options.address, options.transientPort)) {
    throw std::invalid_argument("no numeric address: " + options.address);
  }
  const std::string host =
      " HTTP/1.1\r\nHost: " + options.host + ":" + std::to_string(options.transientPort) + "\r\n";
  headTail_ = host + "Content-Type: application/json\r\nContent-Length: ";
  emptyTail_ = host + "Content-Length: 0\r\n\r\n";
  for (uint32_t i = 0; i < lanes_.size(); i++) finish(i);
}

Lanes::~Lanes() {
  for (const Lane& lane : lanes_) {
    if (lane.fd >= 0) core_->close(lane.fd);
  }
}

void Lanes::start(uint64_t duration) {
  if (core_->options.throwing == Throwing::kNone) return;
  throwing_ = true;
  const Options& options = core_->options;
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
  if (core_->options.throwing == Throwing::kOpenLoop) countBehind();
}

void Lanes::countBehind() {
  // What came due in the last moment is not behind, only next.
  const uint64_t until = std::min(core_->now, endsAt_) - kMomentNs;
  const uint64_t due = schedule_.dueBy(until);
  if (due > issued_) behind_ += due - issued_;
}

uint64_t Lanes::untilDue() const {
  if (!throwing_ || core_->options.throwing != Throwing::kOpenLoop || idle_.empty()) {
    return UINT64_MAX;
  }
  const uint64_t due = schedule_.dueAt(issued_);
  const uint64_t now = clockNow();
  // Due already and still here: nobody may throw just now.
  return due > now ? due - now : kSecond / 1000;
}

void Lanes::pump() {
  if (throwing_ && core_->now >= endsAt_) stop();
  // In a closed loop where each lane throws for its own client one may be held back and the next
  // not.
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
    leaving_++;
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
    core_->count.skipped++;
  }
  return false;
}

void Lanes::prepareThrow(Lane* lane, uint32_t client, uint64_t due) {
  const Options& options = core_->options;
  const size_t room = kHeadRoom + std::max<size_t>(options.size, kSpriteRoom);
  if (lane->request.size() < room) lane->request.resize(room);
  const uint64_t number = options.batched ? core_->batches.next() : nextSprite_++;
  const Sprite sprite = {options.process, client, number, due,
                         static_cast<Edge>(core_->random.next() >> 62)};
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

/** Puts the head right before the body, so that one write sends both. */
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
  if (lane.fd >= 0) {
    lane.state = State::kBusy;
    write(index);
    return;
  }
  // Before the try: one that fails at once is lost like any other, and waits its backoff.
  lane.state = State::kConnecting;
  const uint32_t sources = core_->options.sources;
  lane.fd = target_.connect(
      sources == 0 ? -1 : (static_cast<int64_t>(core_->options.firstClient) + index) % sources);
  const Token token = {Token::kLane, ++lane.generation, index};
  if (lane.fd < 0 || !core_->watch(lane.fd, token)) {
    core_->connectErrors.add(strerror(errno));
    lost(index);
  }
}

void Lanes::write(uint32_t index) {
  Lane& lane = lanes_[index];
  while (lane.written < lane.end) {
    const ssize_t sent =
        core_->send(lane.fd, {lane.request.data() + lane.written, lane.end - lane.written});
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) {
      core_->count.closed++;
      lost(index);
      return;
    }
    lane.written += static_cast<uint32_t>(sent);
  }
}

void Lanes::handle(uint32_t index, uint16_t generation, uint32_t events) {
  Lane& lane = lanes_[index];
  if (lane.fd < 0 || lane.generation != generation) return;
  if (lane.state == State::kConnecting) {
    const Opening opening = core_->open(lane.fd);
    if (opening == Opening::kFailed) lost(index);
    if (opening != Opening::kDone) return;
    core_->count.connections++;
    lane.state = State::kBusy;
    events |= EPOLLOUT;  // the handshake's last event was something that came in
  }
  if (lane.state == State::kBusy && (events & EPOLLOUT) != 0 && lane.written < lane.end) {
    write(index);
    if (lane.fd < 0 || lane.generation != generation) return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0) read(index, events);
}

void Lanes::read(uint32_t index, uint32_t events) {
  const bool ending = (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
  Lane& lane = lanes_[index];
  const uint16_t generation = lane.generation;
  for (;;) {
    const ssize_t got = core_->receive(lane.fd);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      if (lane.state == State::kBusy) core_->count.closed++;
      lost(index);
      return;
    }
    if (!readPiece(index, {core_->buffer.data(), static_cast<size_t>(got)})) {
      core_->count.badAnswers++;
      lost(index);
      return;
    }
    if (static_cast<size_t>(got) < core_->buffer.size() && !ending) return;
    if (lane.fd < 0 || lane.generation != generation) return;
  }
}

/** @return false for what is no answer, too much of one, or one that nobody has asked for */
bool Lanes::readPiece(uint32_t index, std::string_view bytes) {
  Lane& lane = lanes_[index];
  const bool first = lane.answer.empty();
  if (!first) {
    if (!core_->keep(&lane.answer, bytes)) return false;
    bytes = lane.answer;
  }
  Response response;
  const ReadState state = readResponse(bytes, &response);
  if (state == ReadState::kMore && bytes.size() <= kLongestResponse) {
    return !first || core_->keep(&lane.answer, bytes);
  }
  if (state != ReadState::kDone || lane.state != State::kBusy) return false;
  answered(index, response);
  if (!lane.answer.empty()) core_->release(&lane.answer);
  return true;
}

void Lanes::answered(uint32_t index, const Response& response) {
  Lane& lane = lanes_[index];
  lane.attempts = 0;
  if (response.close) disconnect(&lane);
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
    clients_->left(lane.client);
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
  // A closed loop goes on at once, without a turn of the queue; joins and leaves come first.
  if (throwing_ && core_->options.throwing == Throwing::kClosedLoop && core_->now < endsAt_ &&
      idle_.size() == 1 && assign(index)) {
    idle_.clear();
    lane.listed = false;
    go(index);
  }
}

/** @return whether the errand is over; false when it will be repeated */
bool Lanes::refused(uint32_t index, const Response& response) {
  Lane& lane = lanes_[index];
  const std::string_view problem = readProblem(response.body);
  const bool later = response.status == 429 || response.status == 503;
  const uint64_t pause = core_->retryPause(response.retryAfter);
  if (later && lane.repeats > 0) {
    // The first time may have been accepted: only "duplicate" or an acceptance says so.
    wait(index, pause);
    return false;
  }
  if (lane.repeats > 0) {
    core_->count.unsettled++;
  } else {
    core_->count.refused++;
  }
  core_->refusals.add(problem.empty() ? "throw " + std::to_string(response.status) : problem);
  if (response.status == 429 || problem == "neighbor-busy") {
    clients_->holdBack(lane.client, pause);
  } else if (later) {
    // The whole server is busy: this lane stays away for as long as it was told.
    forgetErrand(&lane);
    wait(index, pause);
    return false;
  } else if (response.status == 404) {
    // Its poll will learn it too, and join again.
    clients_->holdBack(lane.client, kSecond);
  }
  return true;
}

void Lanes::forgetErrand(Lane* lane) {
  if (lane->errand == Errand::kThrow) pending_--;
  if (lane->errand == Errand::kLeave) leaving_--;
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
  core_->wheel.disarm(core_->laneItem(index));
  core_->wheel.arm(core_->laneItem(index), core_->now + nanoseconds);
}

void Lanes::disconnect(Lane* lane) {
  if (lane->fd >= 0) core_->close(lane->fd);
  lane->fd = -1;
}

void Lanes::lost(uint32_t index) {
  Lane& lane = lanes_[index];
  const bool started = lane.state == State::kBusy && lane.written > lane.begin;
  disconnect(&lane);
  core_->release(&lane.answer);
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
    case State::kConnecting:
      core_->connectErrors.add(strerror(ETIMEDOUT));
      lost(index);
      return;
    case State::kBusy:
      core_->problems.add("no answer in time");
      lost(index);
      return;
  }
}

}  // namespace swarm
