// The main process's end of a relay: it does with the pool what a worker asks, and holds the
// worker's parked polls. relay.h says what a relay is.
//
//   ask ─▶ pool ─▶ say
//   parked   [ 7: record, generation ][ 8: … ]     by the worker's connections
//            [ 2^31 + 5: record ]                  by the numbers of its JavaScript's requests
//
// Lifecycle: made for one worker; `lost` when that is gone, or has sent what can't be. Its polls
// are dropped then, some thousands a step, because a worker may have held half a million; until the
// last one is, its place among the holders of polls (PollHolder) is not free.
//
// Cost: 8 bytes a parked poll, reserved once and touched as they fill, and an entry of a hash table
// a source address that has connections there.
#ifndef SPRITES_RELAY_SERVER_H_
#define SPRITES_RELAY_SERVER_H_

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "arena/arena.h"
#include "base/address_limits.h"
#include "base/reserve.h"
#include "feeds/feeds.h"
#include "frames.h"
#include "torus/pool.h"

namespace server {

/** Bytes that may wait for a worker that does not read, before it is given up. */
constexpr size_t kMostSaid = 64 << 20;

/** Microseconds in which a worker for which more than that waits has read nothing. */
constexpr uint32_t kPatience = 1000000;

/** Bytes that may wait for a worker that reads: the longest message among them. */
constexpr size_t kMostEver = kMostSaid + kLongestSaid;

/** Bytes that wait for a worker from which on versions of feeds wait for room. */
constexpr size_t kMostAhead = 4 << 20;

/** What all ends in the main process work with; each of these outlives the ends. */
struct RelayParts {
  Pool* pool;
  AddressLimits* limits;
  Feeds* feeds;
  uint64_t (*clock)();  // microseconds, never goes back
  std::function<std::string_view()> counts;
  Arena* arena = nullptr;  // there may be none
};

/** What became of the requests of a turn: as they were decided, or unknown. */
enum class Settled : uint8_t { kHolds, kUnknown };

class RelayServer : public RelayEnd, public PollResponder {
 public:
  /**
   * For a worker with at most `connections`, whose polls are held as `holder`. Throws
   * std::bad_alloc.
   */
  RelayServer(const RelayParts& parts, PollHolder holder, uint32_t connections);
  ~RelayServer() override;
  RelayServer(const RelayServer&) = delete;
  RelayServer& operator=(const RelayServer&) = delete;

  PollHolder holder() const { return holder_; }

  // Of RelayEnd.
  bool receive(std::string_view bytes) override;
  void lost() override;
  void fill() override;

  /** Ends a turn: what was decided since the last call holds, or may not be answered. */
  void settle(Settled settled);

  /** Drops some of the polls of a worker that is gone; true when there is nothing left to drop. */
  bool clear();

  /** Whether it may be deleted: its worker is gone, and all its polls are dropped. */
  bool over() const { return over_; }

  // Of FeedsWatcher.
  void published(const Feed& feed);
  void compressed(const Feed& feed);
  void ended(std::string_view key, Outcome why);

  /** What its feeds have counted; once its worker is lost, only the counts that never fall. */
  const FeedTally& tally() const { return tally_; }

  /** A poll's answer, from the pool. */
  void answer(uint32_t token, std::string_view body) override;

 private:
  /** A parked poll; `record` 0: none, else the client's and 1. */
  struct Parked {
    uint32_t record;
    uint32_t generation;
  };

  /** A feed that the worker has asked for: it has a replica, or waits for it. */
  struct Replica {
    Cursor has = {};              // version 0: none yet
    uint32_t watching = 0;        // its watchers
    bool gzip = false;            // somebody there takes it compressed
    bool owesVersion = false;     // the newest version is among what is owed
    bool owesCompressed = false;  // its compressed form is
  };

  /** What of a feed is to be said when there is room: its newest version (kFeed), or kFeedGzip. */
  struct Owed {
    std::string key;
    Say what;
  };

  bool mayBe(const AskHead& head) const;
  bool serve(const AskHead& head, std::string_view text);
  void poll(const AskHead& head);
  void place(const AskHead& head);
  bool drop(Ticket ticket);
  void opened(const AskHead& head);
  void closed(const AskHead& head);
  bool input(const AskHead& head, std::string_view text);
  bool serveFeed(const AskHead& head, std::string_view key);
  void want(std::string_view key, const Address& from);
  void owe(Replica* replica, std::string_view key, Say what);
  void sayVersion(Replica* replica, const Feed& feed);
  void sayCompressed(const Feed& feed);
  void watched(Replica* replica, std::string_view key, uint32_t watching);
  uint32_t tokenOf(Ticket ticket) const;
  Parked* find(uint32_t token);
  void say(Say say, Ticket ticket, Outcome outcome, std::string_view text);

  const RelayParts parts_;
  const PollHolder holder_;
  RelayReader<AskHead> asks_;
  base::Reserved<Parked> parked_;
  std::unordered_map<uint32_t, Parked> script_;  // of requests that its JavaScript handles
  uint32_t used_ = 0;                            // of parked_
  uint32_t cleared_ = 0;
  // How many connections of each source the worker has, by the source's number.
  std::unordered_map<Source, uint32_t> sources_;
  std::unordered_map<std::string, Replica> feeds_;
  std::deque<Owed> owed_;  // in order; what the worker does not want any more is passed over
  FeedTally tally_;
  std::string decided_;  // outcomes that wait for the end of the turn
  std::string text_;     // of a feed; its capacity stays
  bool lost_ = false;
  bool over_ = false;
};

}  // namespace server

#endif  // SPRITES_RELAY_SERVER_H_
