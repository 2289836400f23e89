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
  for (uint32_t token = 0; token < usedPlaces_; ++token)
    dropPoll({token, parked_[token].generation});
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
      parts_.pool->prefetch(step, subjectOf<Id>(head), throws ? &head.edge : nullptr);
    });
  }
}

void WorkerService::serve(const AskHead& head, std::string_view text) {
  Pool& pool = *parts_.pool;
  if (head.ask != Ask::kRequest && head.ask != Ask::kGone) ++hotRequests_;
  switch (head.ask) {
    case Ask::kJoin:
      return serveJoin(head);
    case Ask::kThrow:
      return addOutcome(head.ticket, pool.throwChecked(subjectOf<Id>(head), head.edge, head.number,
                                                       text, parts_.clock()));
    case Ask::kLeave:
      return addOutcome(head.ticket, pool.leave(subjectOf<Id>(head)));
    case Ask::kPoll:
      return servePoll(head);
    case Ask::kPlace:
      return servePlace(head);
    case Ask::kCountsOf:
      if (Place any; !pool.place(subjectOf<Id>(head), &any)) {
        return addOutcome(head.ticket, Outcome::kUnknownClient);
      }
      [[fallthrough]];
    case Ask::kCounts:
      return addNotice({.notice = Notice::kAnswer, .ticket = head.ticket}, parts_.counts());
    case Ask::kDrop:
      dropPoll(head.ticket);
      return;
    case Ask::kEnded:
      endedPolls_.push_back(head.ticket);
      return;
    case Ask::kInput:
      return serveInput(head, text);
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
  addNotice({.notice = Notice::kRequestTaken}, {});
  parts_.ask(head, text);
}

void WorkerService::serveJoin(const AskHead& head) {
  Id id;
  const Outcome outcome = parts_.pool->join(subjectOf<Address>(head), parts_.clock(), &id);
  addOutcome(head.ticket, outcome, outcome == Outcome::kOk ? bytesOfValue(id) : std::string_view());
}

void WorkerService::servePoll(const AskHead& head) {
  Pool& pool = *parts_.pool;
  const uint32_t token = head.ticket.connection;
  const PollResult result = pool.poll(subjectOf<Id>(head), head.number, head.hold, holder_, token);
  if (result.outcome != Outcome::kOk) return addOutcome(head.ticket, result.outcome);
  if (!result.answer.empty()) {
    return addNotice({.notice = Notice::kAnswer, .ticket = head.ticket}, result.answer);
  }
  parked_[token] = {result.record + 1, head.ticket.generation};
  usedPlaces_ = std::max(usedPlaces_, token + 1);
}

void WorkerService::serveInput(const AskHead& head, std::string_view text) {
  const size_t end = text.find(kEndOfName);
  addOutcome(head.ticket, parts_.arena->input(text.substr(0, end), subjectOf<Id>(head), head.number,
                                              text.substr(end + 1), parts_.clock()));
}

void WorkerService::servePlace(const AskHead& head) {
  Place place;
  if (!parts_.pool->place(subjectOf<Id>(head), &place)) {
    return addOutcome(head.ticket, Outcome::kUnknownClient);
  }
  addNotice({.notice = Notice::kAnswer, .ticket = head.ticket}, PlaceText(place).view());
}

// ---- Parked polls -------------------------------------------------------------------------------

/** Drops the poll of a connection that is gone. Returns false when none is parked there. */
bool WorkerService::dropPoll(Ticket ticket) {
  ParkedPoll& parked = parked_[ticket.connection];
  if (parked.record == 0 || parked.generation != ticket.generation) return false;
  parts_.pool->drop(std::exchange(parked.record, 0) - 1, holder_, ticket.connection);
  return true;
}

void WorkerService::answer(uint32_t token, std::string_view body) {
  ParkedPoll& parked = parked_[token];
  parked.record = 0;
  addNotice({.notice = Notice::kAnswer, .ticket = {token, parked.generation}}, body);
}

/** Adds an outcome, which is sent when the turn that has decided it is in the journal. */
void WorkerService::addOutcome(Ticket ticket, Outcome outcome, std::string_view text) {
  const NoticeHead head = {.length = static_cast<uint32_t>(text.size()),
                           .notice = Notice::kOutcome,
                           .outcome = outcome,
                           .ticket = ticket};
  addMessage(&outcomes_, head, text);
}

void WorkerService::settleTurn(DecisionState decisions) {
  if (decisions == DecisionState::kHolds) {
    gathered_ += outcomes_;
  } else {
    eachMessage<NoticeHead>(outcomes_, [this](NoticeHead head, std::string_view text) {
      head.notice = Notice::kUnknown;
      addNotice(head, text);
    });
  }
  outcomes_.clear();
  for (const Ticket& ticket : endedPolls_) {
    dropPoll(ticket);
    addNotice({.notice = Notice::kOver, .ticket = ticket}, {});
  }
  endedPolls_.clear();
}

void WorkerService::markUnsent(BatchRing* ring) const {
  if (!queuedNews_.empty() || !gathered_.empty()) ring->setHasUnsent(true);
}

bool WorkerService::send(BatchRing* ring) {
  // Messages after a version must stay after it: an answer may rely on it.
  if (!queuedNews_.empty() && !ring->hasRoom(kMaxAhead)) return false;
  addQueuedNews();
  const bool hasNotices = !gathered_.empty();
  if (hasNotices && !ring->put(&gathered_)) return false;
  const bool hadUnsent = ring->hasUnsent();
  if (hadUnsent) ring->setHasUnsent(false);
  return hasNotices || hadUnsent;
}

// ---- Feeds --------------------------------------------------------------------------------------

void WorkerService::serveFeed(const AskHead& head, std::string_view key) {
  if (head.ask == Ask::kFeedWant) return serveWant(key, head);
  std::string_view name;
  if (head.ask == Ask::kFeedNamed) {
    const size_t end = key.find(kEndOfKey);
    name = key.substr(end + 1);
    key = key.substr(0, end);
  }
  // The feed may have ended before this message came: only kFeedWant makes an entry.
  const auto found = feeds_.find(std::string(key));
  if (found == feeds_.end()) return;
  WatchedFeed& watched = found->second;
  if (head.ask == Ask::kFeedGzip) {
    watched.gzip = true;
    const Feed* const feed = parts_.feeds->find(key);
    if (feed != nullptr && feed->gzip) return queueNews(&watched, key, Notice::kFeedGzip);
    parts_.feeds->requestCompressed(key);
  } else if (head.ask == Ask::kFeedWatched) {
    setWatchers(&watched, key, subjectOf<WatcherCounts>(head));
  } else if (head.ask == Ask::kFeedNamed) {
    parts_.feeds->setNameAtWorker(key, name, threadNumber(), head.number != 0);
  } else {
    parts_.feeds->detachWorker(key, threadNumber());
    setWatchers(&watched, key, {});
    feeds_.erase(found);
  }
}

/** Sends the worker the feed's versions from now on, or reports that there is none. */
void WorkerService::serveWant(std::string_view key, const AskHead& head) {
  WatchedFeed& watched = feeds_[std::string(key)];
  watched.want = head.ticket.connection;
  const Feed* feed = parts_.feeds->find(key);
  if (feed != nullptr && feed->value) return queueNews(&watched, key, Notice::kFeed);
  const Outcome outcome = parts_.feeds->requestForWorker(
      key, threadNumber(), subjectOf<Address>(head), head.number != 0);
  feed = parts_.feeds->find(key);
  const bool isFetched = outcome == Outcome::kOk && feed != nullptr && !feed->value;
  if (isFetched || (feed != nullptr && feed->isAwaited)) {
    return addNotice({.notice = Notice::kFeedAwaited, .ticket = {watched.want, 0}}, key);
  }
  if (outcome != Outcome::kOk) ended(key, outcome);
}

/** Updates the count of the worker's watchers of a feed. */
void WorkerService::setWatchers(WatchedFeed* watched, std::string_view key,
                                const WatcherCounts& watchers) {
  parts_.feeds->updateWorkerWatchers(key, watched->watchers, watchers);
  watched->watchers = watchers;
}

void WorkerService::published(const Feed& feed) {
  const auto found = feeds_.find(feed.key);
  if (found == feeds_.end()) return;
  if (found->second.gzip) parts_.feeds->keepCompressing(feed.key);
  queueNews(&found->second, feed.key, Notice::kFeed);
}

void WorkerService::compressed(const Feed& feed) {
  const auto found = feeds_.find(feed.key);
  if (found == feeds_.end() || !found->second.gzip) return;
  queueNews(&found->second, feed.key, Notice::kFeedGzip);
}

/** Queues news for the worker. A worker that is behind gets only the newest version (conflated). */
void WorkerService::queueNews(WatchedFeed* watched, std::string_view key, Notice notice) {
  bool& isQueued =
      notice == Notice::kFeed ? watched->hasQueuedVersion : watched->hasQueuedCompressed;
  if (std::exchange(isQueued, true)) return;
  queuedNews_.push_back({std::string(key), notice});
}

void WorkerService::addQueuedNews() {
  for (; !queuedNews_.empty(); queuedNews_.pop_front()) {
    const auto& [key, notice] = queuedNews_.front();
    const auto found = feeds_.find(key);
    if (found == feeds_.end()) continue;
    // A feed that was left and wanted again may owe nothing yet, or was served by an earlier entry.
    WatchedFeed& watched = found->second;
    bool& isQueued =
        notice == Notice::kFeed ? watched.hasQueuedVersion : watched.hasQueuedCompressed;
    const Feed* const feed = parts_.feeds->find(key);
    if (!std::exchange(isQueued, false) || feed == nullptr || !feed->value) continue;
    // The compressed version is not the newest any more; the form of the newest is still to come.
    if (notice == Notice::kFeedGzip && !feed->gzip && !feed->gzipFailed) continue;
    addNotice({.notice = notice, .ticket = {watched.want, 0}},
              PassedObject(std::make_unique<FeedNews>(FeedNews{key, *feed, feed->gzip})));
  }
}

void WorkerService::ended(std::string_view key, Outcome why) {
  const auto found = feeds_.find(std::string(key));
  if (found == feeds_.end()) return;
  addNotice({.notice = Notice::kFeedEnd, .outcome = why, .ticket = {found->second.want, 0}}, key);
  parts_.feeds->detachWorker(key, threadNumber());
  setWatchers(&found->second, key, {});
  feeds_.erase(found);
}

}  // namespace server
