#include "front.h"

#include <algorithm>
#include <utility>

namespace server {

namespace {

/** Shortest time between two wakes of the main thread by workers, under load. */
constexpr uint32_t kWakeMicroseconds = 550;

/** Microseconds of a turn for the asks of workers; at least one batch is served. */
constexpr uint64_t kServeShare = 5000;

}  // namespace

Front::Front(const DoorOptions& options, const FrontParts& parts, const Replies& replies,
             FrontAsker asker, uint64_t now)
    : parts_(parts),
      asker_(std::move(asker)),
      headBytes_(options.headBytes),
      keepIdle_(static_cast<int>(options.keepIdle)),
      pool_(parts.pool, parts.clock, parts.arena),
      waker_(&events_, kWakeMicroseconds),
      door_(options, doorParts(), replies,
            {.handle = [this](const ScriptRequest& question) { asker_.ask(0, question); },
             .onParkedClosed =
                 [this](Ticket ticket) {
                   asker_.gone({0, ticket});
                 },
             .bodies = asker_.bodies},
            now) {
  // First: if the workers can't start, nothing refers to this object yet.
  startWorkers(options, replies, now);
  parts_.pool->setResponder(PollHolder::kDoor, &door_);
  parts_.turn->onReleased([this](TurnEnd end) {
    if (closed_) return;
    finishTurn(end);
    onWaitChange_(false);
  });
  parts_.turn->onEnded([this] { sendToWorkers(); });
  parts_.feeds->setObserver(this);
}

DoorParts Front::doorParts() {
  return {.events = &events_,
          .limits = parts_.limits,
          .open = &openConnections_,
          .requests = &pool_,
          .feeds = parts_.feeds,
          .counts = parts_.counts};
}

void Front::startWorkers(const DoorOptions& options, const Replies& replies, uint64_t now) {
  if (parts_.workers == 0) return;
  parts_.limits->shareBetweenThreads();
  const WorkerParts shared = {.door = options,
                              .limits = parts_.limits,
                              .open = &openConnections_,
                              .replies = replies,
                              .bodies = asker_.bodies,
                              .feeds = parts_.feeds->workerOptions(),
                              .inputs = parts_.arena != nullptr,
                              .mainWaker = &waker_};
  for (uint32_t number = 1; number <= parts_.workers; ++number) {
    const ServiceParts service = {
        .pool = parts_.pool,
        .feeds = parts_.feeds,
        .arena = parts_.arena,
        .clock = parts_.clock,
        .counts = [this] { return door_.liveCounts(); },
        .ask = [this, number](const AskHead& head,
                              std::string_view text) { askForRequest(number, head, text); },
        .gone =
            [this, number](Ticket ticket) {
              asker_.gone({number, ticket});
            }};
    const auto holder =
        static_cast<uint8_t>(static_cast<uint32_t>(PollHolder::kFirstWorker) + number - 1);
    workers_.push_back({std::make_unique<Worker>(number, shared, now),
                        std::make_unique<WorkerService>(service, PollHolder{holder},
                                                        options.connections + Door::kBeyondLimit)});
  }
  for (const ServedWorker& one : workers_) one.worker->start();
}

void Front::close() {
  if (std::exchange(closed_, true)) return;
  parts_.feeds->setObserver(nullptr);
  for (const ServedWorker& one : workers_) one.worker->stop();
  workers_.clear();
  door_.closeAll();
}

// ---- The turn -----------------------------------------------------------------------------------

void Front::turn() {
  door_.turn();
  serveWorkers();
  finishTurn(parts_.turn->end());
}

void Front::serveWorkers() {
  if (workers_.empty()) return;
  waker_.clear();
  const uint64_t end = EventSet::now() + kServeShare;
  ++nextServed_;
  for (size_t i = 0; i < workers_.size() && EventSet::now() < end; ++i) {
    const ServedWorker& one = workers_[(nextServed_ + i) % workers_.size()];
    while (EventSet::now() < end && one.worker->asks().take(&batch_)) one.service->serve(batch_);
  }
  // The rest waits for the next turn, which begins with the next worker.
  if (EventSet::now() >= end) events_.wake();
  askForRequests();
}

/** Asks JavaScript for the workers' requests, in turn, within the share. */
void Front::askForRequests() {
  uint64_t hot = 0;
  for (const ServedWorker& one : workers_) hot += one.service->hotRequests();
  script_.begin(hot, EventSet::now());
  const auto hasRequests = [](const ServedWorker& one) { return one.service->hasRequests(); };
  while (script_.hasTimeLeft()) {
    const auto waiting = std::count_if(workers_.begin(), workers_.end(), hasRequests);
    if (waiting == 0) return;
    WorkerService& service = *workers_[nextServed_++ % workers_.size()].service;
    if (!service.hasRequests()) continue;
    const uint64_t began = EventSet::now();
    service.askForOne();
    // A worker counts as one address: its door has its own queue.
    script_.addWork(began, EventSet::now(), waiting);
  }
  if (std::any_of(workers_.begin(), workers_.end(), hasRequests))
    events_.wakeIn(script_.restLeft());
}

/** Asks JavaScript for a worker's request that is not hot. */
void Front::askForRequest(uint32_t worker, const AskHead& head, std::string_view text) {
  RequestFlags flags;
  memcpy(&flags, &head.number, sizeof flags);
  readRequest(text, headBytes_, &head_);
  const auto client = subjectOf<Address>(head);
  asker_.ask(worker, {.ticket = head.ticket,
                      .head = head_,
                      .text = text.substr(0, head_.headLength),
                      .body = {flags.body, text.substr(head_.headLength)},
                      .client = client,
                      .secure = flags.secure,
                      .transient = flags.transient});
}

/** Sends the answers of a turn, or closes their connections, or waits. */
void Front::finishTurn(TurnEnd end) {
  if (end == TurnEnd::kWait) return onWaitChange_(true);
  const DecisionState decisions =
      end == TurnEnd::kSend ? DecisionState::kHolds : DecisionState::kUnknown;
  for (const ServedWorker& one : workers_) one.service->settleTurn(decisions);
  if (end == TurnEnd::kSend) {
    door_.sendAnswers();
  } else {
    door_.dropAnswers();
  }
  sendToWorkers();
}

void Front::sendToWorkers() {
  for (const ServedWorker& one : workers_) one.send();
}

void Front::tick(uint64_t deadlines) {
  door_.tick(deadlines);
  // Messages that found no room in a worker's ring.
  sendToWorkers();
}

// ---- Answers of JavaScript ----------------------------------------------------------------------

void Front::notify(Caller caller, NoticeHead head, std::string_view text) {
  const ServedWorker& one = workers_[caller.worker - 1];
  head.ticket = caller.ticket;
  one.service->addNotice(head, text);
  one.send();
}

void Front::respond(Caller caller, std::string_view statusLine, std::string_view fields,
                    std::string_view body) {
  if (caller.worker == 0) return door_.respond(caller.ticket, statusLine, fields, body);
  const RespondLengths lengths = {static_cast<uint32_t>(statusLine.size()),
                                  static_cast<uint32_t>(fields.size())};
  std::string text(bytesOfValue(lengths));
  text.append(statusLine).append(fields).append(body);
  notify(caller, {.notice = Notice::kRespond}, text);
}

void Front::watch(Caller caller, const FeedRequest* wanted, uint32_t count,
                  const WatchOptions& how) {
  if (caller.worker == 0) return door_.watch(caller.ticket, wanted, count, how);
  auto order = std::make_unique<WatchOrder>(WatchOrder{{}, how, std::string(how.noneMatch), {}});
  if (how.verifiedGrant != nullptr) order->verified = *how.verifiedGrant;
  for (uint32_t i = 0; i < count; ++i) {
    const auto& [key, after, problem] = wanted[i];
    order->wanted.push_back({std::string(key), std::string(after), problem});
  }
  notify(caller, {.notice = Notice::kWatch}, PassedObject(std::move(order)));
}

void Front::proceed(Caller caller) {
  if (caller.worker == 0) return door_.proceed(caller.ticket);
  notify(caller, {.notice = Notice::kProceed});
}

void Front::abandon(Caller caller) {
  if (caller.worker == 0) return door_.abandon(caller.ticket);
  notify(caller, {.notice = Notice::kAbandon});
}

bool Front::park(Caller caller) {
  if (caller.worker == 0) return door_.park(caller.ticket);
  // If the connection is gone, the worker reports it.
  notify(caller, {.notice = Notice::kPark});
  return true;
}

// ---- All serving threads ------------------------------------------------------------------------

/** Sends the gathered messages to the worker. */
void Front::ServedWorker::send() const {
  if (service->send(&worker->notices())) worker->wake();
}

/** Has the worker's thread do a command, before it reads further requests. */
void Front::ServedWorker::runCommand(const Command& command) const {
  service->addNotice({.notice = Notice::kRun}, PassedObject(std::make_unique<Command>(command)));
  service->markUnsent(&worker->notices());
  send();
}

/** Has every worker do a command. */
void Front::runInWorkers(const Command& command) {
  for (const ServedWorker& one : workers_) one.runCommand(command);
}

int Front::listen(const PortOptions& options, uint16_t* boundPort) {
  // All sockets or none: each serving thread has its own.
  std::vector<Listener> sockets(std::max<size_t>(1, workers_.size()));
  Listener& first = sockets.front();
  const char* const address = options.address.c_str();
  int error = 0;
  if (options.reservedSocket < 0) {
    error = first.reserve(address, options.port);
  } else {
    first.adopt(options.reservedSocket);
  }
  if (error == 0 && sockets.size() > 1) error = first.allowSharing();
  for (Listener& one : sockets) {
    if (error == 0 && &one != &first) error = one.bindShared(address, first.port());
  }
  for (Listener& one : sockets) {
    if (error == 0) error = one.listenOn(options.backlog, keepIdle_);
  }
  if (error != 0) return error;
  *boundPort = first.port();
  const bool tls = options.tls;
  const bool transient = options.transient;
  if (workers_.empty()) door_.adopt(first.release(), {tls ? &tls_ : nullptr, transient});
  for (size_t i = 0; i < workers_.size(); ++i) {
    // If a worker ends before it reads the command, the command closes the socket.
    const auto socket = std::make_shared<Listener>();
    socket->adopt(sockets[i].release());
    workers_[i].runCommand([=](Worker& worker) {
      worker.door().adopt(socket->release(), {tls ? &worker.tls() : nullptr, transient});
    });
  }
  return 0;
}

void Front::setTls(const std::string& certificate, const std::string& key,
                   const std::string& tickets) {
  const auto set = [=](TlsContext* context) {
    context->setTicketKeys(tickets);
    context->setCertificate(certificate, key);
  };
  set(&tls_);
  runInWorkers([set](Worker& worker) { set(&worker.tls()); });
}

void Front::stopListening() {
  door_.stopListening();
  runInWorkers([](Worker& worker) { worker.door().stopListening(); });
}

uint32_t Front::closeIdle() {
  door_.closeIdle();
  runInWorkers([](Worker& worker) { worker.door().closeIdle(); });
  return openConnections_;
}

void Front::drain(uint32_t window) {
  runInWorkers([window](Worker& worker) { worker.feeds().table().drain(window); });
}

void Front::endGrants(GrantPart part, const std::string& name) {
  parts_.feeds->endGrants(part, name);
  runInWorkers([part, name](Worker& worker) { worker.feeds().table().endGrants(part, name); });
}

void Front::setOtherServers(ServerTag own, const std::vector<ServerTag>& tags) {
  door_.setOtherServers(own, tags);
  runInWorkers([own, tags](Worker& worker) { worker.door().setOtherServers(own, tags); });
}

std::vector<WorkerCounts> Front::counts() const {
  std::vector<WorkerCounts> all;
  all.emplace_back();
  all.back().door = door_.counts();
  for (const ServedWorker& one : workers_) all.push_back(one.worker->counts());
  return all;
}

void Front::enableLogEvents() {
  door_.logEvents().enable();
  runInWorkers([](Worker& worker) { worker.door().logEvents().enable(); });
}

std::pair<std::vector<LogEvent>, uint64_t> Front::takeLogEvents() {
  auto [events, omitted] = door_.logEvents().takeAll();
  for (const ServedWorker& one : workers_) {
    const auto [workerEvents, workerOmitted] = one.worker->takeLogEvents();
    events.insert(events.end(), workerEvents.begin(), workerEvents.end());
    omitted += workerOmitted;
  }
  return {std::move(events), omitted};
}

// ---- Feeds --------------------------------------------------------------------------------------

/** Sends news to all workers. All rings are marked before the first worker can report the news. */
template <typename AddNews>
void Front::sendNews(AddNews&& addNews) {
  for (const ServedWorker& one : workers_) {
    addNews(*one.service);
    one.service->markUnsent(&one.worker->notices());
  }
  sendToWorkers();
}

void Front::published(const Feed& feed) {
  sendNews([&](WorkerService& service) { service.published(feed); });
}

void Front::compressed(const Feed& feed) {
  sendNews([&](WorkerService& service) { service.compressed(feed); });
}

void Front::ended(std::string_view key, Outcome why) {
  sendNews([&](WorkerService& service) { service.ended(key, why); });
}

}  // namespace server
