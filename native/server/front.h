// The front: what listens and serves, and its part of every turn.
//
//   without workers   door ──▶ pool, arena, feeds ──▶ Turn: the store ──▶ answers
//   with workers      worker ═ ring ═▶ WorkerService ──▶ the same ──▶ says ═ ring ═▶ worker
//
//   turn():  read ─▶ decide ─▶ Turn::end ─┬─ kSend: answers, and what is said to workers
//                                         ├─ kWait: not called again until the disk has it
//                                         └─ kDrop: the connections of what was decided close
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

/** What a front works with; all of them outlive it. */
struct FrontParts {
  AddressLimits* limits;
  Feeds* feeds = nullptr;  // nullptr: requests to watch are JavaScript's to refuse
  uint64_t (*clock)();     // microseconds, never goes back
  LiveCounts::Ask counts;
  Turn* turn;
  Pool* pool;
  Arena* arena = nullptr;  // there may be none
  uint32_t workers = 0;    // threads; 0: the main thread serves
};

/** Names a request that JavaScript was asked for: of which thread, and its ticket there. */
struct Caller {
  uint32_t worker;  // its number; 0: the main thread
  Ticket ticket;
};

/** What JavaScript is asked for, and by which door. */
struct FrontAsker {
  std::function<void(uint32_t worker, const Question&)> ask;
  std::function<void(Caller)> gone;
  BodyBounds bodies;
};

class Front : private FeedsWatcher {
 public:
  /** What a port is: where, and what its connections may do. */
  struct PortOptions {
    std::string address;
    uint16_t port;
    int backlog;
    bool tls = false;
    bool transient = false;  // joins, throws and leaves alone
    int reserved = -1;       // a socket that has the port already, and is the front's from now on
  };

  /** `now` in milliseconds. Throws std::bad_alloc, std::system_error. */
  Front(const DoorOptions& options, const FrontParts& parts, const Replies& replies,
        FrontAsker asker, uint64_t now);
  ~Front() { close(); }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  /** Ready when a turn is due. */
  EventSet* events() { return &events_; }

  /** Has `waits(whether)` called when the disk is waited for, in which time no turn may be taken,
   * and when it is over. */
  void onWaits(std::function<void(bool)> waits) { tellWaits_ = std::move(waits); }

  /** Serves what has come. */
  void turn();

  /** See TurnShare::defer: to be called behind a turn. */
  void countDeferred(uint64_t microseconds) {
    door_.countDeferred(microseconds);
    script_.defer(microseconds);
  }

  /** To be called every kTickMilliseconds; `deadlines` milliseconds, by the door's clock. */
  void tick(uint64_t deadlines);

  /** Whether the next `ticks` have nothing to do, if nothing else comes; a worker's ring wakes
   * where there is room in it again. */
  bool isQuiet(uint32_t ticks) const { return door_.isQuiet(ticks); }

  /** Listens on one more port. Returns 0 or errno; `taken` is the port. */
  int listen(const PortOptions& options, uint16_t* taken);

  /** Gives certificate, key and ticket keys to all that serve TLS; they were tried before. */
  void setTls(const std::string& certificate, const std::string& key, const std::string& tickets);

  void stopListening();

  /** Closes the connections that nothing is owed to, those of workers soon; returns how many are
   * left. */
  uint32_t closeIdle();

  /** See Feeds::drain: the watchers of the workers. */
  void drain(uint32_t window);

  /** See Feeds::endGrants: in all threads. */
  void endGrants(GrantPart part, const std::string& name);

  /** See Door::setOtherServers. */
  void setOtherServers(ServerTag own, const std::vector<ServerTag>& tags);

  // What JavaScript says of a request: see Door.
  void respond(Caller caller, std::string_view statusLine, std::string_view fields,
               std::string_view body);
  void watch(Caller caller, const Wanted* wanted, uint32_t count, const WatchHow& how);
  void proceed(Caller caller);
  void abandon(Caller caller);
  bool park(Caller caller);

  /** What each thread that serves has counted, that of the main thread first. */
  std::vector<WorkerCounts> counts() const;

  void wantLogEvents();
  std::pair<std::vector<LogEvent>, uint64_t> takeLogEvents();

  /** Ends the workers, and closes every connection. */
  void close();

 private:
  /** A worker, and the main thread's end of it. */
  struct Served {
    std::unique_ptr<Worker> worker;
    std::unique_ptr<WorkerService> service;

    void tell(const Command& command) const;
    void send() const;
  };

  void startWorkers(const DoorOptions& options, const Replies& replies, uint64_t now);
  void serveWorkers();
  void askForRequests();
  void request(uint32_t worker, const AskHead& head, std::string_view text);
  void sendToWorkers();
  void say(Caller caller, SayHead head, std::string_view text = {});
  void run(const Command& command);
  void finishTurn(TurnEnd end);
  DoorParts doorParts();

  // What becomes of feeds is sent before the publisher is answered.
  void published(const Feed& feed) override;
  void compressed(const Feed& feed) override;
  void ended(std::string_view key, Outcome why) override;
  template <typename Tell>
  void tellAll(Tell&& tell);

  const FrontParts parts_;
  const FrontAsker asker_;
  const uint32_t headBytes_;
  const int keepIdle_;
  PoolHandler pool_;
  EventSet events_;
  Waker waker_;
  std::atomic<uint32_t> open_{0};  // connections, of all threads
  TlsContext tls_;
  Door door_;
  std::vector<Served> workers_;
  TurnShare script_ = TurnShare::ofScript();  // for the workers' requests
  size_t first_ = 0;                          // of them: the one whose requests are asked for first
  std::string batch_;                         // that is being read
  RequestHead head_;                          // of a worker's request
  std::function<void(bool)> tellWaits_;
  bool closed_ = false;
};

}  // namespace server

#endif  // SPRITES_FRONT_H_
