// The clients: each client joins, then keeps one long poll parked. It takes the sprites of an
// answer, and acks them with the next poll on the same connection.
//
//   unopened ─▶ connecting ─▶ joining ─▶ parked ─┐        an answer: take, poll again
//                  ▲                        ▲ └──┘
//                  │ backoff                │ retry, Retry-After
//               waiting ◀── connection ── pausing
//                              lost
//
// With a transient port the joins are errands of the lanes (kJoinQueued), and a client connects
// once it has an id. A client joins again after the answer unknown-client. Clients reconnect until
// the end of the run.
//
// A parked client costs 72 bytes here, 12 in the wheel, and its socket; it has no buffers. Requests
// are built on the stack and fit into any socket's buffer; connections.h describes the answers.
#ifndef SPRITES_SWARM_CLIENTS_H_
#define SPRITES_SWARM_CLIENTS_H_

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "answers.h"
#include "connections.h"
#include "core.h"
#include "sprite.h"

namespace swarm {

constexpr uint64_t kJoinTimeoutNs = 30 * kSecond;
constexpr uint32_t kReconnectsPerTurn = 512;
constexpr uint64_t kLongestRetryMs = 3600'000;
constexpr uint64_t kLeaveTimeoutNs = 5 * kSecond;
constexpr uint32_t kAssumedHold = 120;    // assumed hold of a server that names none, in seconds
constexpr uint64_t kLongestHold = 86400;  // longest hold that is accepted, in seconds

/** @return the timeout of a poll, after which its server counts as lost, in nanoseconds */
inline uint64_t pollTimeoutFor(uint64_t hold) {
  return (std::min(hold, kLongestHold) * 5 / 4 + 30) * kSecond;
}

/** Whether lanes join the clients: with a transient port a client connects once it has an id. */
inline bool joinsByLane(const Options& options) { return options.transientPort != options.port; }

inline std::string authority(const Options& options, uint16_t port) {
  return options.host + ":" + std::to_string(port);
}

/** Enters a received sprite into the account. @return false for a double or an unknown sprite */
inline bool addToAccount(Core* core, const Sprite& sprite) {
  const Receipt receipt = core->options.batched
                              ? core->batches.addReceived(sprite.process, sprite.number)
                              : core->account.addReceived(sprite.process, sprite.number);
  if (receipt == Receipt::kDouble) core->count.doubles++;
  if (receipt == Receipt::kUnknown) core->count.foreign++;
  return receipt == Receipt::kNew;
}

/** Counts a received sprite: checks its swarm, whether it is a double, its length and its side, and
 * records the time from throw to arrival. */
inline void countSprite(Core* core, const Arrival& arrival, uint64_t now) {
  const Options& options = core->options;
  const ParsedSprite parsed = readSprite(arrival.sprite, options.swarm);
  if (!parsed.isOurs) {
    core->count.foreign++;
    return;
  }
  const Sprite& sprite = parsed.sprite;
  if (!addToAccount(core, sprite)) return;
  core->count.received++;
  // The sprites of other swarms may have another size, and another machine's clock.
  const bool isOwn = !options.batched || sprite.process == options.process;
  const bool isWhole =
      !isOwn || options.size < kSpriteRoom || arrival.sprite.size() == options.size;
  const bool isWrongSide = !arrival.from.empty() && arrival.from != oppositeName(parsed.to);
  if (!isWhole || isWrongSide) core->count.mangled++;
  if (!isOwn) return;
  const uint64_t latency = now > sprite.thrownAt ? now - sprite.thrownAt : 0;
  const bool hasCrossed = options.apart && sprite.process != options.process;
  const bool isProbed = hasCrossed || sprite.process == options.probeProcess;
  (isProbed ? core->probeTimes : core->arrivalTimes).record(latency);
}

class Clients : public Connections {
 public:
  enum State : uint8_t {
    kUnopened,
    kWaiting,
    kConnecting,
    kJoinQueued,
    kJoining,
    kParked,
    kPausing,
    kDropped,
    kStates
  };

  /** @param core outlives the clients */
  explicit Clients(Core* core)
      : Connections(core, Token::kClient, core->options.port),
        clients_(core->options.clients),
        clientCount_(core->options.clients),
        refilledAt_(core->now),
        pollTimeout_(pollTimeoutFor(core->options.hold == 0 ? kAssumedHold : core->options.hold)) {
    const Options& options = core->options;
    stateCounts_[kUnopened] = options.clients;
    const std::string host = "Host: " + authority(options, options.port) + "\r\n";
    joinRequest_ = "POST /join HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n";
    if (options.hold > 0) pollTail_ = "&hold=" + std::to_string(options.hold);
    pollTail_ += " HTTP/1.1\r\n" + host + "\r\n";
    if (options.nchan) cursors_.resize(options.clients);
  }

  /** Starts to open the clients; pump() continues. */
  void open() { isOpening_ = true; }

  /**
   * Sets the number of parked clients: opens further clients, or lets the last ones leave. A client
   * that is joining leaves once it has joined.
   */
  void setClientCount(uint32_t count) {
    isOpening_ = true;
    clientCount_ = std::min(count, size());
    while (openedCount_ > clientCount_) beginLeave(--openedCount_);
  }

  /** Opens as many clients as the ramp and the bound on unfinished ones allow. */
  void pump() {
    pumpOpening();
    pumpReconnects();
  }

  void timeout(uint32_t index) {
    Client& client = clients_[index];
    switch (client.state) {
      case kWaiting:
        joinOrDial(index);
        return;
      case kPausing:
        if (client.fd < 0) {
          joinOrDial(index);
        } else if (client.idLength == 0) {
          sendJoin(index);
        } else {
          sendPoll(index);
        }
        return;
      case kConnecting:
      case kJoining:
      case kParked:
        return client.leave == Leave::kAnswered ? finishLeave(index) : failTimedOut(index);
      default:
        return;
    }
  }

  /** Closes the connections of all clients. They do not reconnect until reconnect(). */
  void drop() {
    isOpening_ = false;
    for (uint32_t i = 0; i < clients_.size(); i++) {
      if (clients_[i].state == kUnopened) continue;
      disconnect(i);
      core_->wheel.disarm(i);
      setState(i, kDropped);
    }
    joiners_.clear();
  }

  /**
   * Starts to reconnect the dropped clients; pump() continues.
   *
   * @param spread the clients reconnect at random within this time, in nanoseconds; 0: at once
   */
  void reconnect(uint64_t spread) {
    reconnectSpread_ = spread;
    nextToReconnect_ = 0;
  }

  /** @return whether pump() has further clients to reconnect at once */
  bool isReconnecting() const { return nextToReconnect_ < clients_.size(); }

  /** Finds a client that has to leave. @return false when there is none */
  bool popLeaver(uint32_t* index) {
    for (size_t checks = leavers_.size(); checks > 0; checks--) {
      *index = leavers_.front();
      leavers_.pop_front();
      if (clients_[*index].leave == Leave::kNo) continue;
      if (clients_[*index].idLength > 0) return true;
      const State state = clients_[*index].state;
      if (state == kJoining || state == kJoinQueued) {
        leavers_.push_back(*index);
      } else {
        finishLeave(*index);
      }
    }
    return false;
  }

  /** Finds a client that waits for a lane to join it. @return false when there is none */
  bool popJoiner(uint32_t* index) {
    while (!joiners_.empty()) {
      *index = joiners_.front();
      joiners_.pop_front();
      if (clients_[*index].state == kJoinQueued) return true;
    }
    return false;
  }

  /** Takes the answer of a join by a lane. */
  void onJoinAnswer(uint32_t index, std::string_view body) {
    if (clients_[index].state != kJoinQueued) return;
    if (acceptId(index, body)) {
      clients_[index].attempts = 0;
      dial(index);
    } else {
      failBadAnswer(index);
    }
  }
  /** Retries a join that was refused to a lane after `wait` nanoseconds. */
  void onJoinRefused(uint32_t index, uint64_t wait) {
    if (clients_[index].state == kJoinQueued) pause(index, wait);
  }

  /**
   * Ends a client whose leave the server has answered, once its last acks are settled: waits for
   * the answer to the poll with the last ack; 404: the leave came before the ack.
   */
  void onLeaveAnswer(uint32_t index) {
    Client& client = clients_[index];
    // The poll may have ended the client already, and a new client may have this index.
    if (client.leave == Leave::kNo) return;
    if (client.unacked == 0 || client.state != kParked) return finishLeave(index);
    client.leave = Leave::kAnswered;
    core_->wheel.arm(index, core_->now + kLeaveTimeoutNs);
  }

  /** @return the client's id; empty: it has none (yet) */
  std::string_view id(uint32_t index) const {
    return {clients_[index].id.data(), clients_[index].idLength};
  }
  /** @return the client's number for its next throw, from 1 */
  uint32_t nextThrowNumber(uint32_t index) { return ++clients_[index].throwCount; }

  /** Keeps the client from throwing for a time. */
  void holdBack(uint32_t index, uint64_t nanoseconds) {
    clients_[index].throwAfter =
        static_cast<uint32_t>((core_->now + nanoseconds) / kHoldBackUnitNs + 1);
  }
  bool mayThrow(uint32_t index) const {
    const Client& client = clients_[index];
    return client.idLength > 0 && client.leave == Leave::kNo &&
           client.throwAfter <= core_->now / kHoldBackUnitNs;
  }

  /** @return the number of opened clients, which have the lowest indices */
  uint32_t openedCount() const { return openedCount_; }
  uint32_t size() const { return static_cast<uint32_t>(clients_.size()); }
  uint32_t countIn(State state) const { return stateCounts_[state]; }
  /** @return the number of clients with an id, connected or not: their places in the torus */
  uint32_t members() const { return members_; }

 private:
  static constexpr size_t kLongestId = 43;
  static constexpr uint64_t kHoldBackUnitNs = 100'000'000;

  /** kDue: the leave is due or under way; kAnswered: only the answer to the last ack is missing. */
  enum class Leave : uint8_t { kNo, kDue, kAnswered };

  struct Client : Connection {
    State state = kUnopened;
    uint64_t lastSeq = 0;  // highest seq received: the next ack
    uint32_t throwCount = 0;
    uint32_t throwAfter = 0;  // in units of kHoldBackUnitNs
    uint16_t unacked = 0;     // sprites of the last answer, until the next answer confirms the ack
    uint8_t attempts = 0;
    uint8_t idLength = 0;
    Leave leave = Leave::kNo;
    std::array<char, kLongestId> id;
  };
  static_assert(sizeof(Client) == 72, "the cost that is named above");

  Connection& connectionAt(uint32_t index) override { return clients_[index]; }

  void onOpen(uint32_t index) override {
    if (clients_[index].idLength == 0) {
      sendJoin(index);
    } else {
      sendPoll(index);
    }
  }

  void onAnswer(uint32_t index, const Response& response) override {
    Client& client = clients_[index];
    if (response.willClose) disconnect(index);
    switch (client.state) {
      case kParked:
        onPollAnswer(index, response);
        return;
      case kJoining:
        if (response.status == 201 && acceptId(index, response.body)) {
          client.attempts = 0;
          if (client.fd >= 0) {
            sendPoll(index);
          } else {
            dial(index);
          }
        } else {
          const std::string_view problem = readProblem(response.body);
          core_->problems.add(problem.empty() ? "join " + std::to_string(response.status)
                                              : problem);
          pause(index, core_->retryPause(response.retryAfter));
        }
        return;
      default:
        failBadAnswer(index);  // an answer without a request
    }
  }

  void onEnd(uint32_t index) override {
    if (clients_[index].state == kPausing) return disconnect(index);
    core_->count.closed++;
    onFailure(index);
  }

  void onFailure(uint32_t index) override {
    Client& client = clients_[index];
    disconnect(index);
    setState(index, kWaiting);
    core_->wheel.arm(index, core_->now + core_->backoff(client.attempts));
    if (client.attempts < 16) client.attempts++;
  }

  /** Lets a client leave: without a place at the server at once, while it is joining later. */
  void beginLeave(uint32_t index) {
    Client& client = clients_[index];
    if (client.idLength == 0 && client.state != kJoining && client.state != kJoinQueued) {
      finishLeave(index);
    } else if (client.leave == Leave::kNo) {
      client.leave = Leave::kDue;
      leavers_.push_back(index);
    }
  }

  void finishLeave(uint32_t index) {
    disconnect(index);
    core_->wheel.disarm(index);
    Client& client = clients_[index];
    if (client.idLength > 0) core_->count.left++;
    abandonId(index);
    client.leave = Leave::kNo;
    setState(index, kUnopened);
  }

  void pumpOpening() {
    if (!isOpening_ || openedCount_ >= clientCount_) return;
    const double ramp = core_->options.ramp;
    rampTokens_ += static_cast<double>(core_->now - refilledAt_) / kSecond * ramp;
    refilledAt_ = core_->now;
    rampTokens_ = std::min(rampTokens_, std::max(1.0, ramp / 20));
    // The number of unfinished clients is bounded: beyond the listen backlog they would only wait
    // for repeated SYNs. A client that is still leaving joins again once it has left.
    while (rampTokens_ >= 1 && openedCount_ < clientCount_ &&
           clients_[openedCount_].state == kUnopened &&
           stateCounts_[kConnecting] + stateCounts_[kJoining] + stateCounts_[kJoinQueued] <
               core_->options.inFlight) {
      rampTokens_--;
      joinOrDial(openedCount_++);
    }
  }

  void pumpReconnects() {
    // A turn of the loop reconnects a bounded number, so that answers are read in between.
    for (uint32_t budget = kReconnectsPerTurn; budget > 0 && nextToReconnect_ < clients_.size();
         nextToReconnect_++) {
      const uint32_t i = nextToReconnect_;
      if (clients_[i].state != kDropped) continue;
      budget--;
      clients_[i].attempts = 0;
      if (reconnectSpread_ == 0) {
        joinOrDial(i);
      } else {
        setState(i, kWaiting);
        core_->wheel.arm(
            i, core_->now + static_cast<uint64_t>(core_->randomFraction() * reconnectSpread_));
      }
    }
  }

  void setState(uint32_t index, State state) {
    stateCounts_[clients_[index].state]--;
    stateCounts_[state]++;
    clients_[index].state = state;
  }

  void joinOrDial(uint32_t index) {
    if (clients_[index].idLength == 0 && joinsByLane(core_->options)) {
      setState(index, kJoinQueued);
      joiners_.push_back(index);
    } else {
      dial(index);
    }
  }

  void dial(uint32_t index) {
    if (!connect(index)) return;
    setState(index, kConnecting);
    core_->wheel.arm(index, core_->now + core_->openTimeout());
  }

  void sendJoin(uint32_t index) { sendRequest(index, kJoining, kJoinTimeoutNs, joinRequest_); }

  void sendPoll(uint32_t index) {
    const Client& client = clients_[index];
    if (core_->options.nchan) {
      std::string request = "GET /poll/" + std::string(id(index)) + pollTail_;
      request.insert(request.size() - 2, cursors_[index]);
      return sendRequest(index, kParked, pollTimeout_, request);
    }
    char request[512];
    char* at = static_cast<char*>(mempcpy(request, "GET /poll/", 10));
    at = static_cast<char*>(mempcpy(at, client.id.data(), client.idLength));
    at = static_cast<char*>(mempcpy(at, "?ack=", 5));
    at = std::to_chars(at, at + 20, client.lastSeq).ptr;
    at = static_cast<char*>(mempcpy(at, pollTail_.data(), pollTail_.size()));
    sendRequest(index, kParked, pollTimeout_, std::string_view(request, at - request));
  }

  void sendRequest(uint32_t index, State state, uint64_t timeoutNs, std::string_view request) {
    setState(index, state);
    core_->wheel.arm(index, core_->now + timeoutNs);
    // A request is far smaller than any socket buffer: a partial write means a lost connection.
    const ssize_t sent = core_->send(clients_[index].fd, request);
    if (sent == static_cast<ssize_t>(request.size())) return;
    core_->count.closed++;
    onFailure(index);
  }

  void onPollAnswer(uint32_t index, const Response& response) {
    Client& client = clients_[index];
    if (response.status != 200) {
      onPollRefused(index, response);
      return;
    }
    if (core_->options.nchan ? !readNchan(index, response)
                             : !readPollAnswer(response.body, &answer_)) {
      failBadAnswer(index);
      return;
    }
    client.attempts = 0;
    core_->count.answers++;
    acceptArrivals(index);
    if (client.leave == Leave::kAnswered) {
      finishLeave(index);
    } else if (client.leave == Leave::kDue && answer_.arrivals.empty()) {
      pause(index, kLeaveTimeoutNs);  // the leave is under way, and this is the last answer
    } else if (answer_.superseded) {
      core_->count.superseded++;
      pause(index, kSecond);
    } else if (answer_.retry > 0) {
      core_->count.retries++;
      pause(index, std::min(answer_.retry, kLongestRetryMs) * 1'000'000);
    } else if (client.fd < 0) {
      dial(index);
    } else {
      sendPoll(index);
    }
  }

  /**
   * Reads an answer of nginx with nchan, which the benchmark compares with this server
   * (test/bench/contenders/nchan.conf): the body is one bare sprite, and two headers are the cursor
   * of the next poll.
   */
  bool readNchan(uint32_t index, const Response& response) {
    if (response.lastModified.empty() || response.etag.empty()) return false;
    std::string& cursor = cursors_[index];
    cursor.assign("If-Modified-Since: ").append(response.lastModified);
    cursor.append("\r\nIf-None-Match: ").append(response.etag).append("\r\n");
    answer_.seq = clients_[index].lastSeq + 1;
    answer_.arrivals.assign({{answer_.seq, {}, response.body}});
    return true;
  }

  void acceptArrivals(uint32_t index) {
    Client& client = clients_[index];
    client.unacked = 0;
    if (answer_.arrivals.empty()) {
      core_->count.empty++;
      return;
    }
    const uint64_t now = clockNow();
    for (const Arrival& arrival : answer_.arrivals) {
      if (arrival.seq <= client.lastSeq) {
        core_->count.resent++;
        continue;
      }
      client.lastSeq = arrival.seq;
      if (!core_->options.nchan) client.unacked++;  // nchan has no acks
      countSprite(core_, arrival, now);
    }
    // A client acks the seq of the answer, as in the contract.
    client.lastSeq = std::max(client.lastSeq, answer_.seq);
  }

  void onPollRefused(uint32_t index, const Response& response) {
    Client& client = clients_[index];
    const std::string_view problem = readProblem(response.body);
    if (response.status == 404 && client.leave != Leave::kNo) {
      finishLeave(index);
      return;
    }
    core_->problems.add(problem.empty() ? "poll " + std::to_string(response.status) : problem);
    if (problem == "unknown-client") {
      abandonId(index);
      core_->count.rejoined++;
      if (client.fd >= 0 && !joinsByLane(core_->options)) {
        sendJoin(index);
      } else {
        disconnect(index);
        joinOrDial(index);
      }
      return;
    }
    // The server does not know this ack: its numbers have begun again.
    if (problem == "ack-ahead") client.lastSeq = 0;
    pause(index, core_->retryPause(response.retryAfter));
  }

  bool acceptId(uint32_t index, std::string_view body) {
    JoinAnswer join;
    if (!readJoinAnswer(body, &join) || join.id.size() > kLongestId) return false;
    Client& client = clients_[index];
    std::copy(join.id.begin(), join.id.end(), client.id.begin());
    clearId(&client);
    client.idLength = static_cast<uint8_t>(join.id.size());
    members_ += client.idLength > 0 ? 1 : 0;
    client.lastSeq = 0;
    core_->count.joined++;
    if (core_->options.hold == 0 && join.hold > 0) {
      pollTimeout_ = pollTimeoutFor(join.hold);
    }
    return true;
  }

  void abandonId(uint32_t index) {
    Client& client = clients_[index];
    core_->count.unackedLosses += client.unacked;
    client.unacked = 0;
    clearId(&client);
    client.lastSeq = 0;
  }

  void clearId(Client* client) {
    if (client->idLength > 0) members_--;
    client->idLength = 0;
  }

  void pause(uint32_t index, uint64_t nanoseconds) {
    setState(index, kPausing);
    core_->wheel.arm(index, core_->now + nanoseconds);
  }

  std::vector<Client> clients_;
  std::array<uint32_t, kStates> stateCounts_ = {};
  std::deque<uint32_t> joiners_;
  std::deque<uint32_t> leavers_;  // clients that have to leave after setClientCount()
  PollAnswer answer_;
  std::string joinRequest_;
  std::string pollTail_;
  std::vector<std::string> cursors_;  // nchan: headers of each client's next poll
  uint32_t clientCount_;
  bool isOpening_ = false;
  uint32_t openedCount_ = 0;
  uint32_t members_ = 0;
  uint32_t nextToReconnect_ = UINT32_MAX;  // next client to reconnect after a drop
  uint64_t reconnectSpread_ = 0;
  double rampTokens_ = 0;
  uint64_t refilledAt_ = 0;
  uint64_t pollTimeout_;
};
}  // namespace swarm

#endif  // SPRITES_SWARM_CLIENTS_H_
