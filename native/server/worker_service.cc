#include "worker_service.h"

#include <algorithm>
#include <utility>

namespace server {

WorkerService::WorkerService(const ServiceParts& parts, PollHolder holder, uint32_t connections)
    : parts_(parts), holder_(holder), parked_(connections) {
  parts_.pool->setResponder(holder_, this);
}

WorkerService::~WorkerService() {
  // Otherwise the pool would still answer them.
  for (uint32_t token = 0; token < used_; ++token) drop({token, parked_[token].generation});
  parts_.pool->setResponder(holder_, nullptr);
  discard(gathered_);
}

// ---- Asks ---------------------------------------------------------------------------------------

void WorkerService::serve(std::string_view batch) {
  while (!batch.empty()) {
    const std::string_view window = firstMessages<AskHead>(batch, kPrefetched);
    batch.remove_prefix(window.size());
    prefetch(window);
    eachMessage<AskHead>(window,
                         [this](const AskHead& head, std::string_view text) { serve(head, text); });
  }
}

/**
 * Prefetches the memory that some asks will read. With a million clients an ask mostly waits for
 * memory; this way several wait together.
 */
void WorkerService::prefetch(std::string_view window) const {
  for (const auto step : {Pool::PrefetchStep::kClient, Pool::PrefetchStep::kNeighbor}) {
    eachMessage<AskHead>(window, [=, this](const AskHead& head, std::string_view) {
      const bool throws = head.ask == Ask::kThrow;
      if (!throws && head.ask != Ask::kPoll) return;
      parts_.pool->prefetch(step, whoOf<Id>(head), throws ? &head.edge : nullptr);
    });
  }
}

void WorkerService::serve(const AskHead& head, std::string_view text) {
  Pool& pool = *parts_.pool;
  if (head.ask != Ask::kRequest && head.ask != Ask::kGone) ++hot_;
  switch (head.ask) {
    case Ask::kJoin:
      return join(head);
    case Ask::kThrow:
      return decide(head.ticket, pool.throwChecked(whoOf<Id>(head), head.edge, head.number, text,
                                                   parts_.clock()));
    case Ask::kLeave:
      return decide(head.ticket, pool.leave(whoOf<Id>(head)));
    case Ask::kPoll:
      return poll(head);
    case Ask::kPlace:
      return place(head);
    case Ask::kCountsOf:
      if (Place any; !pool.place(whoOf<Id>(head), &any)) {
        return decide(head.ticket, Outcome::kUnknownClient);
      }
      [[fallthrough]];
    case Ask::kCounts:
      return say({.say = Say::kAnswer, .ticket = head.ticket}, parts_.counts());
    case Ask::kDrop:
      drop(head.ticket);
      return;
    case Ask::kEnded:
      ended_.push_back(head.ticket);
      return;
    case Ask::kInput:
      return input(head, text);
    case Ask::kRequest:
      requests_.emplace_back(head, text);
      return;
    case Ask::kGone:
      return parts_.gone(head.ticket);
    case Ask::kFeedWant:
    case Ask::kFeedGzip:
    case Ask::kFeedWatched:
    case Ask::kFeedLeft:
    case Ask::kFeedNamed:
      return serveFeed(head, text);
  }
}

void WorkerService::askForOne() {
  const auto [head, text] = std::move(requests_.front());
  requests_.pop_front();
  say({.say = Say::kTaken}, {});
  parts_.request(head, text);
}

void WorkerService::join(const AskHead& head) {
  Id id;
  const Outcome outcome = parts_.pool->join(whoOf<Address>(head), parts_.clock(), &id);
  decide(head.ticket, outcome, outcome == Outcome::kOk ? bytesOfValue(id) : std::string_view());
}

void WorkerService::poll(const AskHead& head) {
  Pool& pool = *parts_.pool;
  const uint32_t token = head.ticket.connection;
  const PollResult result = pool.poll(whoOf<Id>(head), head.number, head.hold, holder_, token);
  if (result.outcome != Outcome::kOk) return decide(head.ticket, result.outcome);
  if (!result.answer.empty()) {
    return say({.say = Say::kAnswer, .ticket = head.ticket}, result.answer);
  }
  parked_[token] = {result.record + 1, head.ticket.generation};
  used_ = std::max(used_, token + 1);
}

void WorkerService::input(const AskHead& head, std::string_view text) {
  const size_t end = text.find(kEndOfName);
  decide(head.ticket, parts_.arena->input(text.substr(0, end), whoOf<Id>(head), head.number,
                                          text.substr(end + 1), parts_.clock()));
}

void WorkerService::place(const AskHead& head) {
  Place place;
  if (!parts_.pool->place(whoOf<Id>(head), &place)) {
    return decide(head.ticket, Outcome::kUnknownClient);
  }
  say({.say = Say::kAnswer, .ticket = head.ticket}, PlaceText(place).view());
}

// ---- Parked polls -------------------------------------------------------------------------------

/** Drops the poll of a connection that is gone. Returns false when none is parked there. */
bool WorkerService::drop(Ticket ticket) {
  Parked& parked = parked_[ticket.connection];
  if (parked.record == 0 || parked.generation != ticket.generation) return false;
  parts_.pool->drop(std::exchange(parked.record, 0) - 1, holder_, ticket.connection);
  return true;
}

void WorkerService::answer(uint32_t token, std::string_view body) {
  Parked& parked = parked_[token];
  parked.record = 0;
  say({.say = Say::kAnswer, .ticket = {token, parked.generation}}, body);
}

/** Adds an outcome, which is sent when the turn that has decided it is in the journal. */
void WorkerService::decide(Ticket ticket, Outcome outcome, std::string_view text) {
  const SayHead head = {.length = static_cast<uint32_t>(text.size()),
                        .say = Say::kOutcome,
                        .outcome = outcome,
                        .ticket = ticket};
  addMessage(&decided_, head, text);
}

void WorkerService::settle(Settled settled) {
  if (settled == Settled::kHolds) {
    gathered_ += decided_;
  } else {
    eachMessage<SayHead>(decided_, [this](SayHead head, std::string_view text) {
      head.say = Say::kUnknown;
      say(head, text);
    });
  }
  decided_.clear();
  for (const Ticket& ticket : ended_) {
    drop(ticket);
    say({.say = Say::kOver, .ticket = ticket}, {});
  }
  ended_.clear();
}

void WorkerService::announce(BatchRing* ring) const {
  if (!owed_.empty() || !gathered_.empty()) ring->setOwes(true);
}

bool WorkerService::send(BatchRing* ring) {
  // Messages after a version must stay after it: an answer may rely on it.
  if (!owed_.empty() && !ring->hasRoom(kMostAhead)) return false;
  sayOwed();
  const bool any = !gathered_.empty();
  if (any && !ring->put(&gathered_)) return false;
  const bool owed = ring->owes();
  if (owed) ring->setOwes(false);
  return any || owed;
}

// ---- Feeds --------------------------------------------------------------------------------------

void WorkerService::serveFeed(const AskHead& head, std::string_view key) {
  if (head.ask == Ask::kFeedWant) return want(key, head);
  std::string_view name;
  if (head.ask == Ask::kFeedNamed) {
    const size_t end = key.find(kEndOfKey);
    name = key.substr(end + 1);
    key = key.substr(0, end);
  }
  // The feed may have ended before this message came: only kFeedWant makes an entry.
  const auto found = feeds_.find(std::string(key));
  if (found == feeds_.end()) return;
  Watched& watched = found->second;
  if (head.ask == Ask::kFeedGzip) {
    watched.gzip = true;
    const Feed* const feed = parts_.feeds->find(key);
    if (feed != nullptr && feed->gzip) return owe(&watched, key, Say::kFeedGzip);
    parts_.feeds->requestCompressed(key);
  } else if (head.ask == Ask::kFeedWatched) {
    setWatchers(&watched, key, whoOf<WatcherCounts>(head));
  } else if (head.ask == Ask::kFeedNamed) {
    parts_.feeds->setNameAtWorker(key, name, thread(), head.number != 0);
  } else {
    parts_.feeds->detachWorker(key, thread());
    setWatchers(&watched, key, {});
    feeds_.erase(found);
  }
}

/** Sends the worker the feed's versions from now on, or reports that there is none. */
void WorkerService::want(std::string_view key, const AskHead& head) {
  Watched& watched = feeds_[std::string(key)];
  watched.want = head.ticket.connection;
  const Feed* feed = parts_.feeds->find(key);
  if (feed != nullptr && feed->value) return owe(&watched, key, Say::kFeed);
  const Outcome outcome =
      parts_.feeds->requestForWorker(key, thread(), whoOf<Address>(head), head.number != 0);
  feed = parts_.feeds->find(key);
  const bool isFetched = outcome == Outcome::kOk && feed != nullptr && !feed->value;
  if (isFetched || (feed != nullptr && feed->isAwaited)) {
    return say({.say = Say::kFeedAwaited, .ticket = {watched.want, 0}}, key);
  }
  if (outcome != Outcome::kOk) ended(key, outcome);
}

/** Updates the count of the worker's watchers of a feed. */
void WorkerService::setWatchers(Watched* watched, std::string_view key,
                                const WatcherCounts& watchers) {
  parts_.feeds->updateWorkerWatchers(key, watched->watchers, watchers);
  watched->watchers = watchers;
}

void WorkerService::published(const Feed& feed) {
  const auto found = feeds_.find(feed.key);
  if (found == feeds_.end()) return;
  if (found->second.gzip) parts_.feeds->keepCompressing(feed.key);
  owe(&found->second, feed.key, Say::kFeed);
}

void WorkerService::compressed(const Feed& feed) {
  const auto found = feeds_.find(feed.key);
  if (found == feeds_.end() || !found->second.gzip) return;
  owe(&found->second, feed.key, Say::kFeedGzip);
}

/** Queues news for the worker. A worker that is behind gets only the newest version (conflated). */
void WorkerService::owe(Watched* watched, std::string_view key, Say what) {
  bool& owes = what == Say::kFeed ? watched->owesVersion : watched->owesCompressed;
  if (std::exchange(owes, true)) return;
  owed_.push_back({std::string(key), what});
}

void WorkerService::sayOwed() {
  for (; !owed_.empty(); owed_.pop_front()) {
    const auto& [key, what] = owed_.front();
    const auto found = feeds_.find(key);
    if (found == feeds_.end()) continue;
    // A feed that was left and wanted again may owe nothing yet, or was served by an earlier entry.
    Watched& watched = found->second;
    bool& owes = what == Say::kFeed ? watched.owesVersion : watched.owesCompressed;
    const Feed* const feed = parts_.feeds->find(key);
    if (!std::exchange(owes, false) || feed == nullptr || !feed->value) continue;
    // The compressed version is not the newest any more; the form of the newest is still to come.
    if (what == Say::kFeedGzip && !feed->gzip && !feed->gzipFailed) continue;
    say({.say = what, .ticket = {watched.want, 0}},
        Handed(std::make_unique<FeedNews>(FeedNews{key, *feed, feed->gzip})));
  }
}

void WorkerService::ended(std::string_view key, Outcome why) {
  const auto found = feeds_.find(std::string(key));
  if (found == feeds_.end()) return;
  say({.say = Say::kFeedEnd, .outcome = why, .ticket = {found->second.want, 0}}, key);
  parts_.feeds->detachWorker(key, thread());
  setWatchers(&found->second, key, {});
  feeds_.erase(found);
}

}  // namespace server
