// The front: listens and serves, and does the front door's part of every turn.
//
//   without workers   door ──▶ pool, arena, feeds ──▶ Turn: the store ──▶ answers
//   with workers      worker ═ ring ═▶ WorkerService ─▶ the same ─▶ notices ═ ring ═▶ worker
//
//   turn():  read ─▶ decide ─▶ Turn::end ─┬─ kSend: answers, and messages to workers
//                                         ├─ kWait: not called again until the disk has all
//                                         └─ kDrop: the connections of the decided requests close
//
// It owns the event set of the main thread, the door and the workers. No V8.
#ifndef SPRITES_FRONT_H_
#define SPRITES_FRONT_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/door.h"
#include "turn.h"
#include "worker.h"
#include "worker_service.h"

namespace server {

/** The parts of a front; all of them outlive it. */
struct FrontParts {
  AddressLimits* limits;
  Feeds* feeds;
  uint64_t (*clock)();  // microseconds, never goes back
  LiveCounts::MakeText counts;
  Turn* turn;
  Pool* pool;
  Arena* arena = nullptr;  // nullptr: none
  uint32_t workers = 0;    // threads; 0: the main thread serves
};

/** A request that JavaScript was asked for: its thread, and its ticket there. */
struct Caller {
  uint32_t worker;  // number of the worker; 0: the main thread
  Ticket ticket;
};

/** Asks JavaScript to handle requests; `worker`: number of the worker, 0: the main thread. */
struct FrontAsker {
  std::function<void(uint32_t worker, const ScriptRequest&)> ask;
  std::function<void(Caller)> gone;
  BodyBounds bodies;
};

class Front : private FeedsObserver {
 public:
  /** The options of a port. */
  struct PortOptions {
    std::string address;
    uint16_t port;
    int backlog;
    bool tls = false;
    bool transient = false;   // serves only joins, throws and leaves
    int reservedSocket = -1;  // a socket with this port, which the front owns from now on; -1: none
  };

  /** `now` in milliseconds. Throws std::bad_alloc, std::system_error. */
  Front(const DoorOptions& options, const FrontParts& parts, const Replies& replies,
        FrontAsker asker, uint64_t now);
  ~Front() { close(); }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  /** The event set, which is readable when a turn is due. */
  EventSet* events() { return &events_; }

  /**
   * Sets a function that is called with true when a turn begins to wait for the disk, and with
   * false when that is over. In between no turn may be taken.
   */
  void onWaitChange(std::function<void(bool)> onWaitChange) {
    onWaitChange_ = std::move(onWaitChange);
  }

  /** Does a turn. */
  void turn();

  /** See TurnShare::addDeferred. To be called after a turn. */
  void countDeferred(uint64_t microseconds) {
    door_.countDeferred(microseconds);
    script_.addDeferred(microseconds);
  }

  /** To be called every kTickMilliseconds; `deadlines` milliseconds, by the door's clock. */
  void tick(uint64_t deadlines);

  /**
   * Whether the next `ticks` have nothing to do, unless an event comes. A full ring of a worker
   * wakes the thread when it has room again.
   */
  bool isQuiet(uint32_t ticks) const { return door_.isQuiet(ticks); }

  /** Listens on a further port. Returns 0 or errno; sets `boundPort` to the port. */
  int listen(const PortOptions& options, uint16_t* boundPort);

  /**
   * Passes certificate, key and ticket keys, which were tested before, to all threads that serve
   * TLS.
   */
  void setTls(const std::string& certificate, const std::string& key, const std::string& tickets);

  void stopListening();

  /**
   * Closes idle connections (Door::closeIdle), those of workers soon. Returns how many are left.
   */
  uint32_t closeIdle();

  /** See Feeds::drain; for the watchers of the workers. */
  void drain(uint32_t window);

  /** See Feeds::endGrants; for all threads. */
  void endGrants(GrantPart part, const std::string& name);

  /** See Door::setOtherServers. */
  void setOtherServers(ServerTag own, const std::vector<ServerTag>& tags);

  // Answers of JavaScript: see Door.
  void respond(Caller caller, std::string_view statusLine, std::string_view fields,
               std::string_view body);
  void watch(Caller caller, const FeedRequest* wanted, uint32_t count, const WatchOptions& how);
  void proceed(Caller caller);
  void abandon(Caller caller);
  bool park(Caller caller);

  /** The counts of each serving thread, those of the main thread first. */
  std::vector<WorkerCounts> counts() const;

  void enableLogEvents();
  std::pair<std::vector<LogEvent>, uint64_t> takeLogEvents();

  /** Ends the workers, and closes every connection. */
  void close();

 private:
  /** A worker, and the main thread's side of it. */
  struct ServedWorker {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<WorkerService> service;

    void runCommand(const Command& command) const;
    void send() const;
  };

  void startWorkers(const DoorOptions& options, const Replies& replies, uint64_t now);
  void serveWorkers();
  void askForRequests();
  void askForRequest(uint32_t worker, const AskHead& head, std::string_view text);
  void sendToWorkers();
  void notify(Caller caller, NoticeHead head, std::string_view text = {});
  void runInWorkers(const Command& command);
  void finishTurn(TurnEnd end);
  DoorParts doorParts();

  // Changes of feeds are sent to the workers before the publisher is answered.
  void published(const Feed& feed) override;
  void compressed(const Feed& feed) override;
  void ended(std::string_view key, Outcome why) override;
  template <typename AddNews>
  void sendNews(AddNews&& addNews);

  const FrontParts parts_;
  const FrontAsker asker_;
  const uint32_t headBytes_;
  const int keepIdle_;
  PoolHandler pool_;
  EventSet events_;
  Waker waker_;
  std::atomic<uint32_t> openConnections_{0};  // number of connections of all threads
  TlsContext tls_;
  Door door_;
  std::vector<ServedWorker> workers_;
  TurnShare script_ = TurnShare::forScript();  // for the workers' requests
  size_t nextServed_ = 0;                      // rotates the order in which workers are served
  std::string batch_;                          // the batch being read
  RequestHead head_;                           // of a worker's request
  std::function<void(bool)> onWaitChange_;
  bool closed_ = false;
};

}  // namespace server

#endif  // SPRITES_FRONT_H_
