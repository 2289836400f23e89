#include "front.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace server {

namespace {

/** How often a worker sends a batch at the most: 500 times a second, if it has more than one. */
constexpr uint32_t kBatchMicroseconds = 2000;

/** How often the main process, once it has workers, takes a turn at the most. */
constexpr uint32_t kTurnMicroseconds = 1000;

std::unique_ptr<PoolHandler> handlerOf(const FrontParts& parts) {
  if (parts.pool == nullptr) return nullptr;
  return std::make_unique<PoolHandler>(parts.pool, parts.clock, parts.arena);
}

}  // namespace

Front::Front(const DoorOptions& options, const FrontParts& parts, Replies replies, Asker asker,
             uint64_t now)
    : parts_(parts),
      pool_(handlerOf(parts)),
      links_(&events_),
      door_(options, doorParts(), std::move(replies), std::move(asker), now) {
  if (parts_.turn == nullptr) {
    parts_.limits->watch(parts_.relay);
    if (parts_.feeds != nullptr) parts_.relay->replicate(parts_.feeds);
    return;
  }
  parts_.pool->setResponder(PollHolder::kDoor, &door_);
  parts_.turn->onReleased([this](TurnEnd end) {
    if (closed_) return;
    finishTurn(end);
    tellWaits_(false);
  });
  parts_.turn->onEnded([this] { links_.send(); });
  if (parts_.feeds != nullptr) parts_.feeds->watchFor(this);
}

DoorParts Front::doorParts() {
  RequestHandler* requests = parts_.relay;
  PollHandler* polls = parts_.transient ? nullptr : parts_.relay;
  if (pool_) {
    requests = pool_.get();
    polls = pool_.get();
  }
  return {.events = &events_,
          .limits = parts_.limits,
          .requests = requests,
          .polls = polls,
          .feeds = parts_.feeds,
          .counts = parts_.counts,
          .countsLater = parts_.relay != nullptr};
}

void Front::close() {
  if (std::exchange(closed_, true)) return;
  if (pool_ && parts_.feeds != nullptr) parts_.feeds->watchFor(nullptr);
  links_.closeAll();
  door_.closeAll();
}

// ---- The turn -----------------------------------------------------------------------------------

void Front::turn() {
  if (!events_.due()) return;
  door_.turn();
  // A worker promises nothing: its main process does.
  finishTurn(parts_.turn != nullptr ? parts_.turn->end() : TurnEnd::kSend);
}

/** Answers what the turn has decided, or has it unanswered, or waits. */
void Front::finishTurn(TurnEnd end) {
  if (end == TurnEnd::kWait) return tellWaits_(true);
  const Settled settled = end == TurnEnd::kSend ? Settled::kHolds : Settled::kUnknown;
  for (const auto& worker : workers_) worker->settle(settled);
  if (end == TurnEnd::kSend) {
    door_.sendAnswers();
  } else {
    door_.dropAnswers();
  }
  if (parts_.relay != nullptr && parts_.relay->feeds() != nullptr) parts_.relay->feeds()->turn();
  links_.send();
  links_.giveUpTheDeaf();
  clearLost();
}

void Front::tick(uint64_t deadlines, uint64_t now) {
  door_.tick(deadlines);
  clearLost();
  if (parts_.relay == nullptr || parts_.relay->feeds() == nullptr) return;
  parts_.relay->feeds()->tick(now);
  flush();
}

// ---- Workers ------------------------------------------------------------------------------------

/** Drops the polls of workers that are gone, a share of them a turn. */
void Front::clearLost() {
  bool all = true;
  for (const auto& worker : workers_) all = worker->clear() && all;
  if (!all) events_.wake();
}

/** A place among the holders of polls that no worker has; kNobody: there is none. */
PollHolder Front::freeHolder() const {
  for (auto i = static_cast<size_t>(PollHolder::kFirstWorker); i < kPollHolders; ++i) {
    const PollHolder holder{static_cast<uint8_t>(i)};
    const bool taken = std::any_of(workers_.begin(), workers_.end(), [holder](const auto& worker) {
      return worker->holder() == holder;
    });
    if (!taken) return holder;
  }
  return PollHolder::kNobody;
}

int Front::addWorker(uint32_t connections) {
  // Frees the ends of relays whose workers have died, and have no poll any more.
  std::erase_if(workers_, [this](const auto& worker) {
    if (worker->over()) tallied_.add(worker->tally());
    return worker->over();
  });
  const PollHolder holder = freeHolder();
  if (holder == PollHolder::kNobody) {
    errno = EUSERS;
    return -1;
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  const RelayParts relayed = {.pool = parts_.pool,
                              .limits = parts_.limits,
                              .feeds = parts_.feeds,
                              .clock = parts_.clock,
                              .counts = [this] { return door_.liveCounts(); },
                              .arena = parts_.arena};
  workers_.push_back(std::make_unique<RelayServer>(relayed, holder, connections + Door::kBeyond));
  links_.attach(ends[0], workers_.back().get(),
                {.pace = 0, .mostKept = kMostSaid, .mostEver = kMostEver, .patience = kPatience});
  events_.pace(kTurnMicroseconds);
  return ends[1];
}

FeedTally Front::workersFeeds() const {
  FeedTally sum = tallied_;
  for (const auto& worker : workers_) sum.add(worker->tally());
  return sum;
}

void Front::link(int fd) {
  links_.attach(fd, parts_.relay, {.pace = kBatchMicroseconds, .mostKept = 0});
}

void Front::flush() {
  if (parts_.relay->feeds() != nullptr) parts_.relay->feeds()->turn();
  links_.send();
}

template <typename Tell>
void Front::tellAll(Tell&& tell) {
  if (workers_.empty()) return;
  for (const auto& worker : workers_) tell(*worker);
  links_.send();
}

void Front::published(const Feed& feed) {
  tellAll([&](RelayServer& worker) { worker.published(feed); });
}

void Front::compressed(const Feed& feed) {
  tellAll([&](RelayServer& worker) { worker.compressed(feed); });
}

void Front::ended(std::string_view key, Outcome why) {
  tellAll([&](RelayServer& worker) { worker.ended(key, why); });
}

}  // namespace server
