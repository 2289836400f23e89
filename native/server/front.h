// The front of a process: its door, what decides for it, and its part of every turn.
//
//   main process   door ──▶ pool, arena, feeds ──▶ Turn: the store ──▶ answers, and those of the
//   workers worker         door ──▶ relay ══════▶ RelayServer of the main process's front
//
//   turn():  read ─▶ decide ─▶ Turn::end ─┬─ kSend: the door's answers, then what crosses to
//   workers
//                                         ├─ kWait: not called again until the disk has it
//                                         └─ kDrop: the connections of what was decided close
//
// It owns the epoll descriptor, the door and the links to other processes. No V8.
#ifndef SPRITES_FRONT_H_
#define SPRITES_FRONT_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/door.h"
#include "relay/links.h"
#include "relay/relay.h"
#include "relay/relay_server.h"
#include "turn.h"

namespace server {

/** What a front works with; all of them outlive it. */
struct FrontParts {
  AddressLimits* limits;
  Feeds* feeds;         // nullptr: requests to watch are JavaScript's to refuse
  uint64_t (*clock)();  // microseconds, never goes back
  LiveCounts::Ask counts;

  // In the main process.
  Turn* turn = nullptr;
  Pool* pool = nullptr;
  Arena* arena = nullptr;  // there may be none

  // In a worker.
  RelayHandler* relay = nullptr;
  bool transient = false;  // it is for the transient port, and has no polls
};

class Front : private FeedsWatcher {
 public:
  /** `now` in milliseconds. Throws std::bad_alloc, std::system_error. */
  Front(const DoorOptions& options, const FrontParts& parts, Replies replies, Asker asker,
        uint64_t now);
  ~Front() { close(); }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  Door& door() { return door_; }

  /** Readable when a turn is due. */
  int fd() const { return events_.fd(); }

  /** Has `waits(whether)` called when the disk is waited for, in which time no turn may be taken,
   * and when it is over. */
  void onWaits(std::function<void(bool)> waits) { tellWaits_ = std::move(waits); }

  /** Serves what has come, if the pace allows it now. */
  void turn();

  /** To be called every kTickMilliseconds. `deadlines`, `now`: milliseconds, by the door's clock
   * and by the loop's. */
  void tick(uint64_t deadlines, uint64_t now);

  /**
   * Makes the relay for one more worker, of at most `connections`. Returns the descriptor of the
   * worker's end, which the caller closes; -1 with errno, EUSERS where there are as many workers as
   * there may be.
   */
  int addWorker(uint32_t connections);

  /** What the feeds of the workers have counted. */
  FeedTally workersFeeds() const;

  /** In a worker: `fd` leads to the main process. */
  void link(int fd);

  /** Sends what JavaScript has put into the relay. */
  void flush();

  /** Closes every connection and every link. */
  void close();

 private:
  void finishTurn(TurnEnd end);
  void clearLost();
  PollHolder freeHolder() const;
  DoorParts doorParts();

  // What becomes of feeds is sent before the publisher is answered.
  void published(const Feed& feed) override;
  void compressed(const Feed& feed) override;
  void ended(std::string_view key, Outcome why) override;
  template <typename Tell>
  void tellAll(Tell&& tell);

  const FrontParts parts_;
  const std::unique_ptr<PoolHandler> pool_;            // in the main process
  std::vector<std::unique_ptr<RelayServer>> workers_;  // the relays' ends here
  FeedTally tallied_;                                  // of workers that are gone
  EventSet events_;
  RelayLinks links_;
  Door door_;
  std::function<void(bool)> tellWaits_;
  bool closed_ = false;
};

}  // namespace server

#endif  // SPRITES_FRONT_H_
