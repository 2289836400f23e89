#include "clients.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "sprite.h"

namespace swarm {

namespace {

constexpr uint64_t kJoinNs = 30 * kSecond;
constexpr uint32_t kReturnsATurn = 512;
constexpr uint64_t kLongestRetryMs = 3600'000;
constexpr uint64_t kFarewellNs = 5 * kSecond;
constexpr uint32_t kNoHold = 120;         // assumed hold of a server that names none, in seconds
constexpr uint64_t kLongestHold = 86400;  // longest hold that is accepted, in seconds

/** @return the timeout of a poll, after which its server counts as lost, in nanoseconds */
uint64_t overdueAfter(uint64_t hold) {
  return (std::min(hold, kLongestHold) * 5 / 4 + 30) * kSecond;
}

/** Whether lanes join the clients: with a transient port a client connects once it has an id. */
bool joinsByLane(const Options& options) { return options.transientPort != options.port; }

std::string authority(const Options& options, uint16_t port) {
  return options.host + ":" + std::to_string(port);
}

/** Enters a received sprite into the account. @return false for a double or an unknown sprite */
bool isNew(Core* core, const Sprite& sprite) {
  const Receipt receipt = core->options.batched
                              ? core->batches.received(sprite.process, sprite.number)
                              : core->account.received(sprite.process, sprite.number);
  if (receipt == Receipt::kDouble) core->count.doubles++;
  if (receipt == Receipt::kUnknown) core->count.foreign++;
  return receipt == Receipt::kNew;
}

/** Counts a received sprite: checks its swarm, whether it is a double, its length and its side, and
 * records the time from throw to arrival. */
void takeSprite(Core* core, const Arrival& arrival, uint64_t now) {
  const Options& options = core->options;
  const ReadSprite read = readSprite(arrival.sprite, options.swarm);
  if (!read.ours) {
    core->count.foreign++;
    return;
  }
  const Sprite& sprite = read.sprite;
  if (!isNew(core, sprite)) return;
  core->count.received++;
  // The sprites of other swarms may have another size, and another machine's clock.
  const bool own = !options.batched || sprite.process == options.process;
  const bool whole = !own || options.size < kSpriteRoom || arrival.sprite.size() == options.size;
  const bool aside = !arrival.from.empty() && arrival.from != oppositeName(read.to);
  if (!whole || aside) core->count.mangled++;
  if (!own) return;
  const uint64_t latency = now > sprite.thrownAt ? now - sprite.thrownAt : 0;
  const bool crossed = options.apart && sprite.process != options.process;
  const bool probed = crossed || sprite.process == options.probeProcess;
  (probed ? core->probe : core->arrival).record(latency);
}

}  // namespace

Clients::Clients(Core* core)
    : Connections(core, Token::kClient, core->options.port),
      clients_(core->options.clients),
      aim_(core->options.clients),
      refilled_(core->now),
      overdue_(overdueAfter(core->options.hold == 0 ? kNoHold : core->options.hold)) {
  const Options& options = core->options;
  states_[kUnopened] = options.clients;
  const std::string host = "Host: " + authority(options, options.port) + "\r\n";
  joinRequest_ = "POST /join HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n";
  if (options.hold > 0) pollTail_ = "&hold=" + std::to_string(options.hold);
  pollTail_ += " HTTP/1.1\r\n" + host + "\r\n";
  if (options.nchan) cursors_.resize(options.clients);
}

void Clients::enter(uint32_t index, State state) {
  states_[clients_[index].state]--;
  states_[state]++;
  clients_[index].state = state;
}

void Clients::pump() {
  pumpOpening();
  pumpReturning();
}

void Clients::pumpOpening() {
  if (!opening_ || opened_ >= aim_) return;
  const double ramp = core_->options.ramp;
  tokens_ += static_cast<double>(core_->now - refilled_) / kSecond * ramp;
  refilled_ = core_->now;
  tokens_ = std::min(tokens_, std::max(1.0, ramp / 20));
  // The number of unfinished clients is bounded: beyond the listen backlog they would only wait for
  // repeated SYNs.
  // A client that is still leaving joins again once it has left.
  while (tokens_ >= 1 && opened_ < aim_ && clients_[opened_].state == kUnopened &&
         states_[kConnecting] + states_[kJoining] + states_[kJoinQueued] <
             core_->options.inFlight) {
    tokens_--;
    begin(opened_++);
  }
}

void Clients::begin(uint32_t index) {
  if (clients_[index].idLength == 0 && joinsByLane(core_->options)) {
    enter(index, kJoinQueued);
    joiners_.push_back(index);
  } else {
    dial(index);
  }
}

void Clients::dial(uint32_t index) {
  if (!connect(index)) return;
  enter(index, kConnecting);
  core_->wheel.arm(index, core_->now + core_->openTime());
}

void Clients::opened(uint32_t index) {
  if (clients_[index].idLength == 0) {
    sendJoin(index);
  } else {
    poll(index);
  }
}

void Clients::ask(uint32_t index, State state, uint64_t patience, std::string_view request) {
  enter(index, state);
  core_->wheel.arm(index, core_->now + patience);
  // A request is far smaller than any socket buffer: a partial write means a lost connection.
  const ssize_t sent = core_->send(clients_[index].fd, request);
  if (sent == static_cast<ssize_t>(request.size())) return;
  core_->count.closed++;
  lost(index);
}

void Clients::sendJoin(uint32_t index) { ask(index, kJoining, kJoinNs, joinRequest_); }

void Clients::poll(uint32_t index) {
  const Client& client = clients_[index];
  if (core_->options.nchan) {
    std::string request = "GET /poll/" + std::string(id(index)) + pollTail_;
    request.insert(request.size() - 2, cursors_[index]);
    return ask(index, kParked, overdue_, request);
  }
  char request[512];
  char* at = static_cast<char*>(mempcpy(request, "GET /poll/", 10));
  at = static_cast<char*>(mempcpy(at, client.id.data(), client.idLength));
  at = static_cast<char*>(mempcpy(at, "?ack=", 5));
  at = std::to_chars(at, at + 20, client.taken).ptr;
  at = static_cast<char*>(mempcpy(at, pollTail_.data(), pollTail_.size()));
  ask(index, kParked, overdue_, std::string_view(request, at - request));
}

void Clients::ended(uint32_t index) {
  if (clients_[index].state == kPausing) return disconnect(index);
  core_->count.closed++;
  lost(index);
}

void Clients::answered(uint32_t index, const Response& response) {
  Client& client = clients_[index];
  if (response.close) disconnect(index);
  switch (client.state) {
    case kParked:
      pollAnswered(index, response);
      return;
    case kJoining:
      if (response.status == 201 && keepId(index, response.body)) {
        client.attempts = 0;
        if (client.fd >= 0) {
          poll(index);
        } else {
          dial(index);
        }
      } else {
        const std::string_view problem = readProblem(response.body);
        core_->problems.add(problem.empty() ? "join " + std::to_string(response.status) : problem);
        pause(index, core_->retryPause(response.retryAfter));
      }
      return;
    default:
      broken(index);  // an answer without a request
  }
}

bool Clients::keepId(uint32_t index, std::string_view body) {
  JoinAnswer join;
  if (!readJoinAnswer(body, &join) || join.id.size() > kLongestId) return false;
  Client& client = clients_[index];
  std::copy(join.id.begin(), join.id.end(), client.id.begin());
  dropId(&client);
  client.idLength = static_cast<uint8_t>(join.id.size());
  members_ += client.idLength > 0 ? 1 : 0;
  client.taken = 0;
  core_->count.joined++;
  if (core_->options.hold == 0 && join.hold > 0) {
    overdue_ = overdueAfter(join.hold);
  }
  return true;
}

void Clients::forgetId(uint32_t index) {
  Client& client = clients_[index];
  core_->count.unackedLosses += client.unacked;
  client.unacked = 0;
  dropId(&client);
  client.taken = 0;
}

void Clients::dropId(Client* client) {
  if (client->idLength > 0) members_--;
  client->idLength = 0;
}

void Clients::pollAnswered(uint32_t index, const Response& response) {
  Client& client = clients_[index];
  if (response.status != 200) {
    refusedPoll(index, response);
    return;
  }
  if (core_->options.nchan ? !readNchan(index, response)
                           : !readPollAnswer(response.body, &answer_)) {
    broken(index);
    return;
  }
  client.attempts = 0;
  core_->count.answers++;
  take(index);
  if (client.leave == Leave::kTold) {
    left(index);
  } else if (client.leave == Leave::kDue && answer_.arrivals.empty()) {
    pause(index, kFarewellNs);  // the leave is under way, and this is the last answer
  } else if (answer_.superseded) {
    core_->count.superseded++;
    pause(index, kSecond);
  } else if (answer_.retry > 0) {
    core_->count.retries++;
    pause(index, std::min(answer_.retry, kLongestRetryMs) * 1'000'000);
  } else if (client.fd < 0) {
    dial(index);
  } else {
    poll(index);
  }
}

/**
 * Reads an answer of nginx with nchan, which the benchmark compares with this server
 * (test/bench/contenders/nchan.conf): the body is one bare sprite, and two headers are the cursor
 * of the next poll.
 */
bool Clients::readNchan(uint32_t index, const Response& response) {
  if (response.lastModified.empty() || response.etag.empty()) return false;
  std::string& cursor = cursors_[index];
  cursor.assign("If-Modified-Since: ").append(response.lastModified);
  cursor.append("\r\nIf-None-Match: ").append(response.etag).append("\r\n");
  answer_.seq = clients_[index].taken + 1;
  answer_.arrivals.assign({{answer_.seq, {}, response.body}});
  return true;
}

void Clients::take(uint32_t index) {
  Client& client = clients_[index];
  client.unacked = 0;
  if (answer_.arrivals.empty()) {
    core_->count.empty++;
    return;
  }
  const uint64_t now = clockNow();
  for (const Arrival& arrival : answer_.arrivals) {
    if (arrival.seq <= client.taken) {
      core_->count.resent++;
      continue;
    }
    client.taken = arrival.seq;
    if (!core_->options.nchan) client.unacked++;  // nchan has no acks
    takeSprite(core_, arrival, now);
  }
  // A client acks the seq of the answer, as in the contract.
  client.taken = std::max(client.taken, answer_.seq);
}

void Clients::refusedPoll(uint32_t index, const Response& response) {
  Client& client = clients_[index];
  const std::string_view problem = readProblem(response.body);
  if (response.status == 404 && client.leave != Leave::kNo) {
    left(index);
    return;
  }
  core_->problems.add(problem.empty() ? "poll " + std::to_string(response.status) : problem);
  if (problem == "unknown-client") {
    forgetId(index);
    core_->count.rejoined++;
    if (client.fd >= 0 && !joinsByLane(core_->options)) {
      sendJoin(index);
    } else {
      disconnect(index);
      begin(index);
    }
    return;
  }
  // The server does not know this ack: its numbers have begun again.
  if (problem == "ack-ahead") client.taken = 0;
  pause(index, core_->retryPause(response.retryAfter));
}

void Clients::pause(uint32_t index, uint64_t nanoseconds) {
  enter(index, kPausing);
  core_->wheel.arm(index, core_->now + nanoseconds);
}

void Clients::timeout(uint32_t index) {
  Client& client = clients_[index];
  switch (client.state) {
    case kWaiting:
      begin(index);
      return;
    case kPausing:
      if (client.fd < 0) {
        begin(index);
      } else if (client.idLength == 0) {
        sendJoin(index);
      } else {
        poll(index);
      }
      return;
    case kConnecting:
    case kJoining:
    case kParked:
      return client.leave == Leave::kTold ? left(index) : late(index);
    default:
      return;
  }
}

void Clients::lost(uint32_t index) {
  Client& client = clients_[index];
  disconnect(index);
  enter(index, kWaiting);
  core_->wheel.arm(index, core_->now + core_->backoff(client.attempts));
  if (client.attempts < 16) client.attempts++;
}

void Clients::drop() {
  opening_ = false;
  for (uint32_t i = 0; i < clients_.size(); i++) {
    if (clients_[i].state == kUnopened) continue;
    disconnect(i);
    core_->wheel.disarm(i);
    enter(i, kDropped);
  }
  joiners_.clear();
}

void Clients::back(uint64_t spread) {
  spread_ = spread;
  returner_ = 0;
}

void Clients::pumpReturning() {
  // A turn of the loop reconnects a bounded number, so that answers are read in between.
  for (uint32_t most = kReturnsATurn; most > 0 && returner_ < clients_.size(); returner_++) {
    const uint32_t i = returner_;
    if (clients_[i].state != kDropped) continue;
    most--;
    clients_[i].attempts = 0;
    if (spread_ == 0) {
      begin(i);
    } else {
      enter(i, kWaiting);
      core_->wheel.arm(i, core_->now + static_cast<uint64_t>(core_->fraction() * spread_));
    }
  }
}

bool Clients::nextJoiner(uint32_t* index) {
  while (!joiners_.empty()) {
    *index = joiners_.front();
    joiners_.pop_front();
    if (clients_[*index].state == kJoinQueued) return true;
  }
  return false;
}

void Clients::joined(uint32_t index, std::string_view body) {
  if (clients_[index].state != kJoinQueued) return;
  if (keepId(index, body)) {
    clients_[index].attempts = 0;
    dial(index);
  } else {
    broken(index);
  }
}

void Clients::joinRefused(uint32_t index, uint64_t wait) {
  if (clients_[index].state == kJoinQueued) pause(index, wait);
}

void Clients::holdBack(uint32_t index, uint64_t nanoseconds) {
  clients_[index].throwAfter = static_cast<uint32_t>((core_->now + nanoseconds) / kHoldBackNs + 1);
}

// The leave of clients above aim().

void Clients::aim(uint32_t count) {
  opening_ = true;
  aim_ = std::min(count, size());
  while (opened_ > aim_) dismiss(--opened_);
}

/** Lets a client leave: without a place at the server at once, while it is joining later. */
void Clients::dismiss(uint32_t index) {
  Client& client = clients_[index];
  if (client.idLength == 0 && client.state != kJoining && client.state != kJoinQueued) {
    left(index);
  } else if (client.leave == Leave::kNo) {
    client.leave = Leave::kDue;
    leavers_.push_back(index);
  }
}

bool Clients::nextLeaver(uint32_t* index) {
  for (size_t looks = leavers_.size(); looks > 0; looks--) {
    *index = leavers_.front();
    leavers_.pop_front();
    if (clients_[*index].leave == Leave::kNo) continue;
    if (clients_[*index].idLength > 0) return true;
    const State state = clients_[*index].state;
    if (state == kJoining || state == kJoinQueued) {
      leavers_.push_back(*index);
    } else {
      left(*index);
    }
  }
  return false;
}

/** Waits for the answer to the poll with the last ack; 404: the leave came before the ack. */
void Clients::leaveTold(uint32_t index) {
  Client& client = clients_[index];
  // The poll may have ended the client already, and a new client may have this index.
  if (client.leave == Leave::kNo) return;
  if (client.unacked == 0 || client.state != kParked) return left(index);
  client.leave = Leave::kTold;
  core_->wheel.arm(index, core_->now + kFarewellNs);
}

void Clients::left(uint32_t index) {
  disconnect(index);
  core_->wheel.disarm(index);
  Client& client = clients_[index];
  if (client.idLength > 0) core_->count.left++;
  forgetId(index);
  client.leave = Leave::kNo;
  enter(index, kUnopened);
}

}  // namespace swarm
