#include "worker.h"

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

namespace server {

namespace {

uint64_t milliseconds() { return EventSet::now() / 1000; }

}  // namespace

Worker::Worker(uint32_t number, const WorkerParts& parts, uint64_t now)
    : number_(number),
      waker_(&events_),
      mainWaker_(parts.mainWaker),
      asksRing_(&waker_),
      noticesRing_(parts.mainWaker),
      asks_({.maxSprite = parts.door.maxSprite, .inputs = parts.inputs}),
      feeds_(parts.feeds, now, EventSet::now, &asks_),
      door_(parts.door, doorParts(parts), parts.replies,
            {.handle = [this](const ScriptRequest& question) { asks_.ask(question); },
             .mayHandle = [this] { return asks_.mayAsk(); },
             .onParkedClosed = [this](Ticket ticket) { asks_.gone(ticket); },
             .bodies = parts.bodies},
            now),
      clock_(now, kTickMilliseconds) {
  logEvents_.enable();
}

DoorParts Worker::doorParts(const WorkerParts& parts) {
  return {.events = &events_,
          .limits = parts.limits,
          .open = parts.open,
          .requests = &asks_,
          .feeds = &feeds_.table(),
          .counts = {},
          .countsComeLater = true};
}

// ---- By the main thread -------------------------------------------------------------------------

void Worker::start() {
  // Blocks all signals in the thread: Node receives them in the main thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), ("worker " + std::to_string(number_)).c_str());
}

void Worker::stop() {
  if (!thread_.joinable()) return;
  isStopping_ = true;
  waker_.wake();
  thread_.join();
  // Frees the messages that the thread has not read.
  while (noticesRing_.take(&batch_)) discard(batch_);
}

WorkerCounts Worker::counts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::pair<std::vector<LogEvent>, uint64_t> Worker::takeLogEvents() {
  const std::lock_guard lock(mutex_);
  return logEvents_.takeAll();
}

// ---- The thread ---------------------------------------------------------------------------------

void Worker::run() {
  while (!isStopping_.load()) {
    // Another worker may have woken the main thread meanwhile.
    mainWakePending_ = mainWakePending_ && !asksRing_.isEmpty();
    if (!asks_.hasRoom() || mainHasUnsent_) {
      // No request is read until the main thread takes a batch, or sends the messages it owes; both
      // wake this thread. The sockets stay readable meanwhile. So the main thread is woken whatever
      // the pace.
      if (std::exchange(mainWakePending_, false)) mainWaker_->wake();
      events_.sleepUntilWoken(uint64_t{kTickMilliseconds} * 1000);
    } else if (mainWakePending_ && !hasDueWatchers_) {
      // Requests read now would wait as well: one turn for all of them costs less. The main thread
      // is woken after that turn, for those requests too.
      const uint64_t pause = mainWaker_->wakeDelay(EventSet::now());
      if (pause > 0) events_.sleepUntilWoken(pause);
    } else if (!hasDueWatchers_) {
      const uint64_t passed = milliseconds() - tickedAt_;
      isResting_ = isQuiet_;
      const uint64_t span = isResting_ ? kRest : kTickMilliseconds;
      if (passed < span) events_.waitAtNextCollect(static_cast<int>(span - passed));
    }
    turn();
    tickInTime();
    // Publishes the counts after the tick: the thread may sleep now.
    publishCounts();
  }
}

/**
 * Events are taken first, then the main thread's messages are read, then the requests. So a worker
 * knows of every message that was sent before a request came: the request's client may have heard
 * of it through another thread.
 */
void Worker::turn() {
  events_.collect();
  if (isResting_) tickInTime();
  isResting_ = false;
  if (events_.hasEvents()) isQuiet_ = false;
  waker_.clear();
  mainHasUnsent_ = noticesRing_.hasUnsent();
  readNotices();
  if (!mainHasUnsent_) {
    feeds_.table().resolveAhead();
    door_.turn();
    // The main thread can start on these asks.
    send();
    // Refusals decided here are sent before the main thread's answers to later requests.
    door_.sendAnswers();
  }
  if (feeds_.table().hasWork()) feeds_.step();
  feeds_.turn();
  hasDueWatchers_ = feeds_.table().hasWork();
  send();
}

/** Puts the gathered asks into the ring, and wakes the main thread. */
void Worker::send() {
  const bool wasFull = !asks_.hasRoom();
  const bool sent = asks_.send(&asksRing_);
  // The door can read requests again.
  if (sent && wasFull) events_.wake();
  if (sent || mainWakePending_) mainWakePending_ = mainWaker_->wakeAtPace(EventSet::now()) > 0;
}

void Worker::tickInTime() {
  const uint64_t now = milliseconds();
  if (now - tickedAt_ >= kTickMilliseconds) tick(now);
}

void Worker::tick(uint64_t now) {
  tickedAt_ = now;
  door_.tick(clock_.advance(now, isResting_ ? kRest : kTickMilliseconds));
  if (!feeds_.tick(now)) events_.wake();
  isQuiet_ = door_.isQuiet(kRestTicks) && feeds_.table().isQuiet(kRestTicks);
}

/** Publishes the counts. */
void Worker::publishCounts() {
  const FeedCounts& feeds = feeds_.table().counts();
  const WorkerCounts counts = {.door = door_.counts(),
                               .feeds = {.polls = feeds.polls,
                                         .pings = feeds.pings,
                                         .documents = feeds.documents,
                                         .patches = feeds.patches,
                                         .skipped = feeds.skipped,
                                         .watching = feeds.watching,
                                         .streams = feeds.streams}};
  const std::lock_guard lock(mutex_);
  counts_ = counts;
  logEvents_.add(door_.logEvents().takeAll());
}

// ---- Messages of the main thread ----------------------------------------------------------------

void Worker::readNotices() {
  while (noticesRing_.take(&batch_)) {
    isQuiet_ = false;
    eachMessage<NoticeHead>(
        batch_, [this](const NoticeHead& head, std::string_view text) { handle(head, text); });
  }
}

void Worker::handle(const NoticeHead& head, std::string_view text) {
  switch (head.notice) {
    case Notice::kOutcome: {
      const Id id = text.size() == sizeof(Id) ? valueOfBytes<Id>(text) : Id{};
      return door_.complete(head.ticket, head.outcome, &id);
    }
    case Notice::kUnknown:
      return door_.complete(head.ticket, std::nullopt, nullptr);
    case Notice::kAnswer:
      return door_.answer(head.ticket, text);
    case Notice::kOver:
      return door_.closeParkedPoll(head.ticket);
    case Notice::kRequestTaken:
      return asks_.onRequestTaken();
    case Notice::kRespond:
      return respond(head.ticket, text);
    case Notice::kWatch: {
      const auto order = PassedObject::reclaim<WatchOrder>(text);
      std::vector<FeedRequest> wanted;
      for (const auto& one : order->wanted) wanted.push_back({one.key, one.after, one.problem});
      order->how.noneMatch = order->noneMatch;
      order->how.verifiedGrant = order->verified ? &*order->verified : nullptr;
      return door_.watch(head.ticket, wanted.data(), static_cast<uint32_t>(wanted.size()),
                         order->how);
    }
    case Notice::kProceed:
      return door_.proceed(head.ticket);
    case Notice::kPark:
      return park(head.ticket);
    case Notice::kAbandon:
      return door_.abandon(head.ticket);
    case Notice::kFeed:
    case Notice::kFeedGzip:
    case Notice::kFeedEnd:
    case Notice::kFeedAwaited:
      return feeds_.handle(head, text);
    case Notice::kRun:
      return (*PassedObject::reclaim<Command>(text))(*this);
  }
}

void Worker::respond(Ticket ticket, std::string_view text) {
  const auto lengths = valueOfBytes<RespondLengths>(text);
  text.remove_prefix(sizeof lengths);
  door_.respond(ticket, text.substr(0, lengths.statusLine),
                text.substr(lengths.statusLine, lengths.fields),
                text.substr(lengths.statusLine + lengths.fields));
}

void Worker::park(Ticket ticket) {
  // The connection is gone, or was closed by this call: reports it to the main thread.
  if (!door_.park(ticket)) asks_.gone(ticket);
}

}  // namespace server
