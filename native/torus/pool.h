// The pool: the clients in the torus, the sprites that wait for them, and their timers.
//
// One record a client, in an array reserved at the start and touched only as it fills:
//
//   record n   [ id │ mailbox │ throw numbers seen │ allowances │ parked poll │ source address ]
//   torus      [ links of node n ]        wheel [ the one timer of n: hold or lease ]
//
// Lifecycle of a client:
//
//   join ──▶ away ──poll, nothing waits──▶ parked ──sprite, hold over, superseded──▶ away ─┐
//             ▲  └──poll, sprites wait: answered at once, stays away                       │
//             └────────────────────────────────────────────────────────────────────────────┘
//            its lease over, or leave ──▶ leaving: unknown, and its sprites fly on, some
//            thousands from tick to tick ──▶ gone: out of the torus, its record free
//
// A lease runs while a client is away. A poll renews it, if the client has acked all sprites that
// answers have carried. So a client that asks for the same sprites again and again has left when
// its lease is over, and these sprites fly on.
//
// So a client has one timer at any moment: its hold while parked, its lease while away. A parked
// poll is known by its holder and a token. Only the holder's responder (the door, JavaScript or a
// worker) knows what the token means.
//
// The pool is one class in four files: joins, polls and time are in pool.cc, throws in
// pool_throwing.cc, leaving clients, whose sprites fly on, in pool_leaving.cc, and crossings to
// other servers of a world in pool_crossing.cc.
//
// The law it keeps, at every return: thrown = acked + waiting + lost; in a world of many servers
// thrown + crossedIn = acked + waiting + lost + crossedOut.
//
// With a journal no sprite is delivered before the journal has it. A sprite that came by a step
// which could not be written is held back until the step is written: a crash would undo that step,
// and the thrower would throw again.
//
// Cost: 96 bytes a record, 12 for its timer, 24 in the torus. A throw touches two records and two
// links, and allocates once for the sprite. Rejected: an object per parked poll (that is what this
// program exists to avoid), one allocation per client (no locality, 16 bytes of allocator each).
#ifndef SPRITES_POOL_H_
#define SPRITES_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/address_limits.h"
#include "base/id.h"
#include "base/outcome.h"
#include "base/reserve.h"
#include "base/wheel.h"
#include "delivery_times.h"
#include "mailbox.h"
#include "torus.h"

namespace server {

/** Largest count or number. Answers carry them as JSON, and JavaScript would round larger ones. */
constexpr uint64_t kMaxCounted = (uint64_t{1} << 53) - 1;

/** How far back from the newest a throw's number is remembered: the bits of one word. */
constexpr uint64_t kNumberWindow = 64;

/** A poll without `hold`, a throw without `n`. */
constexpr uint32_t kNoHold = 0;
constexpr uint64_t kNoNumber = UINT64_MAX;

/**
 * Length of a tick of the wheel, in milliseconds. A hold or a lease ends up to three ticks late.
 */
constexpr uint32_t kTickMilliseconds = 100;

/**
 * How long an idle thread rests, in milliseconds. The ticks that it leaves out are made up as one
 * before anything else.
 */
constexpr uint32_t kRest = 10 * kTickMilliseconds;

/**
 * Ticks without a deadline that a rest needs: more than it leaves out, and a delay of the wake-up.
 */
constexpr uint32_t kRestTicks = 13;
static_assert(kRest < kRestTicks * kTickMilliseconds, "no deadline comes in a rest");

/**
 * Most sprites that fly on between two ticks, 60 ns each. A bound is needed: millions of sprites
 * may have flown to one client, and one small request makes it leave.
 */
constexpr uint32_t kFlyBudget = 8192;

class Journal;
class Seams;
enum class Stay : uint8_t;
struct Crosser;
struct CrosserHead;
struct CrossText;
struct Identity;
struct JournalRecord;
struct Peer;
struct Seam;
struct SeamsOptions;

/** Sends the answers of parked polls to their clients. */
class PollResponder {
 public:
  virtual ~PollResponder() = default;

  /**
   * Writes the answer of one poll, which is no longer parked. The JSON text `body` lives only for
   * the call. Must not call Pool.
   */
  virtual void answer(uint32_t token, std::string_view body) = 0;

  /** Prefetches what answering reads. */
  virtual void prefetch(uint32_t) const {}
};

/**
 * The holder of a parked poll, as a client's record has it: the door, the routes in JavaScript for
 * requests that are not hot, or a worker, from kFirstWorker on.
 */
enum class PollHolder : uint8_t { kNobody, kDoor, kRoutes, kFirstWorker };
constexpr size_t kPollHolders = 256;

struct PoolOptions {
  uint32_t capacity;             // clients
  uint32_t hold;                 // seconds
  uint32_t lease;                // seconds
  uint32_t maxSprite;            // bytes of JSON text
  uint32_t mailboxSprites;       // sprites waiting for one client
  uint32_t mailboxBytes;         // bytes waiting for one client, by Sprite::cost
  uint64_t mailboxMemory;        // bytes waiting for all clients
  uint32_t answerBytes;          // sprite text in one answer; at least one sprite always goes
  uint32_t throwRate = 0;        // throws a second and client, 0: any number
  uint32_t throwBurst = 1;       // most throws at once
  uint32_t pollRate = 0;         // polls a second and client that ack nothing new, 0: any number
  uint32_t pollBurst = 1;        // most such polls at once
  ServerTag tag = kNoServerTag;  // in new ids
};

struct PoolCounts {
  uint64_t joined, left, expired;
  uint64_t thrown, acked, lost;  // thrown = acked + waiting + lost
  uint64_t waiting, mailboxBytes;
  uint64_t flown;                  // times a sprite flew on because its receiver had left
  uint64_t crossedIn, crossedOut;  // from other servers of the world, and to them: see seams.h
  uint64_t crossedInDoubt;  // sprites given up at a peer and sent elsewhere: they may arrive twice
  uint64_t polls, pings;
  uint64_t delivered, queued, duplicates;  // accepted throws
  uint32_t clients, parked;
};

/** The result of a poll. */
struct PollResult {
  Outcome outcome;          // kOk, or why it is refused: see Pool::poll
  uint32_t record;          // kOk: the client's record, for `drop`
  std::string_view answer;  // kOk: the JSON text, valid until the next call; empty: it is parked
};

/** Checks the text of a sprite. Returns kOk, kSpriteTooLarge or kBadSprite. */
Outcome checkSprite(std::string_view text, uint32_t maxSprite);

class Pool {
 public:
  /**
   * `limits` bound what each source address may have, and must outlive the pool; nullptr: no
   * bounds. `now`: milliseconds of tick's clock. Throws std::bad_alloc.
   */
  Pool(const PoolOptions& options, AddressLimits* limits, uint64_t now);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /** Registers the responder for polls held by `holder`; not owned. */
  void setResponder(PollHolder holder, PollResponder* responder);

  /** Sets the clock of throws, in microseconds, by which delivery times are measured. */
  void setThrowClock(uint64_t (*clock)()) { throwClock_ = clock; }

  /**
   * Writes every later step that a restart must repeat to `journal`, which is not owned; nullptr:
   * to none.
   */
  void keepJournal(Journal* journal) { journal_ = journal; }

  /**
   * Returns the seams, and makes them if there are none. They live as long as the pool, and with a
   * state longer.
   */
  Seams* enterWorld();

  /** Returns the seams; nullptr: this server was never in a world. */
  const Seams* ownedSeams() const { return ownedSeams_.get(); }

  /** Lets rows go on at other servers, as the ring of Seams::setRing says. `wake`: see Seams::open.
   */
  void openSeams(const SeamsOptions& options, std::function<void()> wake);

  /** Closes each row on itself again; sprites that wait to cross stay. */
  void closeSeams();

  /** Sets this process's own life in the world. */
  void setLife(uint64_t life);

  /**
   * Returns the number of a server of the world, and makes it known if needed; kNoPeer: no room.
   */
  uint16_t findOrAddPeer(std::string_view name);

  /**
   * Forgets a server and gives its number to `name`. Returns false when the server can't be
   * forgotten. `isEmptied`: it has left, and nothing can come from it that was taken here before.
   */
  bool replacePeer(uint16_t peer, std::string_view name, bool isEmptied);

  /**
   * Notes that `sender` sends as `peer` from now on, and that all its numbers up to `lastTaken` are
   * done.
   */
  void setSender(uint16_t peer, const Identity& sender, uint64_t lastTaken);

  /** Takes the sprite `number` of another server. Returns false when there is no memory for it. */
  bool crossIn(uint16_t peer, uint64_t number, const CrosserHead& head, std::string_view text);

  /** Ends `sprite`, which was in an outbox, and which the other server has taken. */
  void crossOut(Sprite* sprite);

  /**
   * Notes that the peer has taken all numbers up to `number`. Call it after the `crossOut` of each.
   */
  void recordCrossedUpTo(uint16_t peer, uint64_t number);

  /**
   * Notes that the peer has told this process what it has taken: the sprites that wait for it have
   * the numbers after `number`. Call it after `recordCrossedUpTo`.
   */
  void renumberAfter(uint16_t peer, uint64_t number);

  /**
   * Notes that the oldest `count` sprites of the peer's outbox go to others, though the peer may
   * have taken them.
   */
  void recordGivenUp(uint16_t peer, uint64_t count);

  /**
   * Sends a sprite that was at `place` in the outbox of `peer`, and that the peer has not taken, to
   * where its row goes on now.
   */
  void turnBack(uint16_t peer, uint64_t place, const Crosser& crosser);

  /** Ends the world: sprites that wait to cross land here. Returns their number. */
  uint64_t endWorld();

  /** Returns whether the node is full on which sprites land that cross over `exitEdge` into `row`.
   */
  bool isRowEndBusy(uint32_t row, Edge exitEdge) const;

  /**
   * Gives a newcomer from `address` a place in the torus and its id. Returns kOk; kTooManyJoins or
   * kTooManyClients of its address; kTorusFull, kDraining or kStateUnwritable. `now`: any monotonic
   * clock, in microseconds.
   */
  Outcome join(const Address& address, uint64_t now, Id* id);

  /**
   * Frees the sprites up to `ack`, then answers with the sprites above it. If there are none, it
   * parks the poll for `hold` seconds: the responder of `holder` gets the answer under `token`,
   * once. kUnknownClient, kBadHold, kAckAhead, kTooManyPolls and kStateUnwritable (the ack is new,
   * and too much waits to be written) change nothing.
   */
  PollResult poll(const Id& id, uint64_t ack, uint32_t hold, PollHolder holder, uint32_t token);

  /**
   * Answers the parked polls that have got sprites since the last call, and, with a journal, the
   * polls that another request has ended. Call it at the end of every turn, after the journal is
   * written: several sprites for one poll share one answer.
   */
  void answerPolls();

  /**
   * Forgets the time of this turn. Call it when time has passed within a turn, such as for a write
   * of the journal.
   */
  void clearTurnTime() { turnTime_ = 0; }

  /**
   * Sets whether joins and throws, which are promises, are accepted. While the state can't be
   * written, they are kStateUnwritable.
   */
  void takePromises(bool taken) { promising_ = taken; }
  bool promising() const { return promising_; }

  /** Holds back all sprites of `record`, since one of them is not written. */
  void holdBackSprites(uint32_t record);

  bool isHoldingBack() const { return !heldBack_.empty(); }

  /**
   * Ends all holding back, since everything is written: those polls get their sprites with the next
   * answers.
   */
  void releaseHeldBack();

  /** Ends the poll parked under `token`, if it still is: the responder lost its connection. */
  void drop(const Id& id, PollHolder holder, uint32_t token);

  /** Ends the poll of a record, for a responder that keeps only the record's number. */
  void drop(uint32_t record, PollHolder holder, uint32_t token);

  /** Returns the record of a client's id; kNoRecord: there is no such client. */
  uint32_t find(const Id& id) const;
  static constexpr uint32_t kNoRecord = UINT32_MAX;

  /** The memory that a request reads, in the order in which one part leads to the next. */
  enum class PrefetchStep { kClient, kNeighbor };

  /**
   * Prefetches what a poll, or a throw over `edge`, of `id` will read, so that many requests wait
   * for memory together. Each step reads what the one before has prefetched. Changes nothing, and
   * takes any id.
   */
  void prefetch(PrefetchStep step, const Id& id, const Edge* edge) const;

  /**
   * Throws a sprite over an edge to the neighbor there. `number` is the thrower's own counter or
   * kNoNumber; `now` any clock in microseconds that never goes back.
   */
  Outcome throwSprite(const Id& id, Edge edge, uint64_t number, std::string_view text,
                      uint64_t now);

  /** Throws a `text` that checkSprite has accepted. */
  Outcome throwChecked(const Id& id, Edge edge, uint64_t number, std::string_view text,
                       uint64_t now);

  /**
   * Removes a client; its sprites fly on. Does nothing where there is no such client. Returns kOk,
   * or kStateUnwritable, which changes nothing, when too much waits to be written.
   */
  Outcome leave(const Id& id);

  /** Frees every client that is leaving, however long it takes. Call it before a save. */
  void freeAllLeaving();

  /** What an operator may see of a client. */
  struct View {
    Place place;
    bool parked;
    uint32_t waiting;   // sprites
    uint32_t unsent;    // sprites that no answer has carried
    uint64_t bytes;     // of all waiting sprites
    uint64_t sequence;  // of the newest sprite that ever came
    bool hasAddress;    // whether `address` is known: after a restart it may not be
    Address address;
  };

  /** Reads one client. Returns false when there is no such client. */
  bool readView(const Id& id, View* view) const;

  /** Reads a client's place. Returns false when there is no such client. */
  bool place(const Id& id, Place* place) const;

  /**
   * Ends the holds and leases that are due at `now`, in milliseconds of a monotonic clock, and
   * moves sprites of leaving clients. Returns false when more is left to do than one turn of the
   * loop should take: call it again soon.
   */
  bool tick(uint64_t now);

  /** Returns whether the next `ticks` have nothing to do if no request comes. */
  bool isQuiet(uint32_t ticks) const { return leaving_.empty() && wheel_.isQuiet(ticks); }

  /**
   * Prepares the end of the server: answers every parked poll within `window` milliseconds, at
   * random moments. From now on joins are refused and polls are answered at once. Every answer has
   * a "retry": the time until the window ends and, at random, up to one more window, so that
   * clients do not all return at the same moment.
   */
  void drain(uint32_t window);

  bool draining() const { return drainEnd_ != 0; }

  const PoolCounts& counts() const { return counts_; }
  const DeliveryTimes& deliveryTimes() const { return deliveryTimes_; }
  const Torus& torus() const { return torus_; }
  const PoolOptions& options() const { return options_; }

 private:
  friend class SnapshotAccess;
  friend class ReplayAccess;

  struct Client {
    Id id;
    Mailbox mailbox;
    uint64_t newestNumber;  // the highest n of an accepted throw
    uint64_t seenNumbers;   // bit i: newestNumber - i was accepted
    uint64_t nextThrow;     // time when the allowance is full again, microseconds (GCRA)
    uint32_t token;         // of the parked poll; of a free record: the next free one + 1
    uint32_t nextPoll;      // as nextThrow, for polls that ack nothing; low bits of milliseconds
    Source source;          // address that it joined from
    PollHolder holder;
    bool live : 1;
    bool hasBacklog : 1;    // it has a backlog
    bool awaitsAnswer : 1;  // its poll is answered at the end of the turn
    bool heldBack : 1;      // some of its sprites are not written: it gets none for now
  };
  static_assert(sizeof(Client) == 96, "the memory figures in README count on it");

  /** Where a sprite flies to: a record, the server beyond a seam, or nowhere. */
  struct Stop;

  /** The remark of an answer; kNothing: it has no sprites, whatever waits. */
  enum class Remark { kNone, kNothing, kSuperseded };

  /** A poll that has ended and is not answered yet: its holder and its token. */
  using EndedPoll = std::pair<PollHolder, uint32_t>;

  Client* lookUp(const Id& id);
  uint32_t recordOf(const Client* client) const { return client - clients_.data(); }
  void armTimer(uint32_t record, uint64_t milliseconds);
  void prefetchClient(uint32_t record) const;
  Outcome joinFrom(Source source, Id* id);
  bool mayPoll(Client* client, uint64_t ack);
  void acknowledge(Client* client, uint64_t ack);
  std::string_view composeAnswer(Client* client, Remark remark);
  void unpark(Client* client);
  void answer(Client* client, Remark remark);
  void endPoll(Client* client, Remark remark);
  void answerSoon(Client* client);
  bool allowedToThrow(Client* client, uint64_t now) const;
  void spendThrow(Client* client, uint64_t now);
  bool hasSeenNumber(const Client& client, uint64_t number) const;
  void rememberNumber(Client* client, uint64_t number);
  Outcome tryThrow(Client* client, Edge edge, uint64_t number, std::string_view text, uint64_t now);
  uint32_t roomOf(const Sprite& sprite) const;
  bool fits(const Mailbox& mailbox, uint32_t cost) const;
  bool hasRoom(const Mailbox& mailbox, const Sprite& sprite) const;
  bool mayEnter(const Mailbox& mailbox, Source source, uint32_t cost) const;
  void renewLease(Client* client);
  void putFlown(Client* client, Sprite* sprite);
  void moveUpOldest(Client* client);
  void catchUp(Client* client);
  Sprite* oldestSprite(const Client& client) const;
  Sprite* popOldest(Client* client);
  void endSprite(Sprite* sprite);
  uint32_t nextLive(uint32_t record, Edge edge) const;
  Stop nextStop(uint32_t record, Edge from) const;
  void flyOn(Client* client);
  void flyOldest(Client* from, Client* to, Stay stay);
  void chargeTo(Source source, Sprite* sprite);
  void loseOldest(Client* from);
  void remove(Client* client);
  void startLeaving(Client* client);
  void occupyRecord(uint32_t record, const Id& id);
  void applyThrow(Client* thrower, Client* receiver, uint64_t number, Edge from,
                  std::string_view text);
  bool seamBeyond(uint32_t record, Edge edge, Seam* seam) const;
  bool seamForFlight(uint32_t record, Edge edge, Seam* seam) const;
  Outcome throwOver(Client* client, const Seam& seam, uint64_t number, std::string_view text);
  bool hasMemoryFor(uint32_t cost) const;
  void flyOldestOver(Client* from, const CrossText& route);
  CrossText routeOver(const Seam& seam) const;
  uint32_t landingRows() const;
  uint32_t chooseRoute(CrossText* route, uint32_t cost) const;
  uint32_t landingRecord(uint32_t row, Edge exitEdge) const;
  bool isFull(const Client& client, uint32_t cost) const;
  void placeSprite(Sprite* sprite, const CrossText& route, uint32_t record);
  void applyThrowOver(const JournalRecord& step, const CrossText& route, std::string_view text);
  void applyCrossIn(const JournalRecord& step, const CrossText& route, std::string_view text);
  uint64_t turnTime() const {
    return turnTime_ == 0 && throwClock_ != nullptr ? throwClock_() : turnTime_;
  }
  void freeLeaving();
  void onTimer(uint32_t record);
  uint32_t randomBelow(uint32_t below);
  bool hasJournalRoom() const;

  const PoolOptions options_;
  const std::unique_ptr<AddressLimits> unbounded_;  // if no limits are given
  AddressLimits* const limits_;
  base::Reserved<Client> clients_;
  Backlogs backlogs_;
  Torus torus_;
  base::Wheel<kTickMilliseconds> wheel_;
  IdMaker ids_;
  std::minstd_rand random_;
  Journal* journal_ = nullptr;
  std::unique_ptr<Seams> ownedSeams_;  // nullptr: never in a world
  Seams* activeSeams_ = nullptr;       // nullptr: in no world now
  PollResponder* responders_[kPollHolders] = {};
  std::string body_;  // the answer being composed; its capacity stays
  PoolCounts counts_ = {};
  DeliveryTimes deliveryTimes_;
  uint64_t (*throwClock_)() = nullptr;
  uint64_t turnTime_ = 0;  // time of this turn's newest throw, microseconds; 0: unknown
  bool promising_ = true;
  std::vector<uint32_t> awaitingAnswer_;  // records whose polls are answered at the end of the turn
  std::map<EndedPoll, std::string> endedPolls_;  // their answers, for the end of the turn
  std::vector<uint32_t> heldBack_;               // records that get no sprites until all is written
  std::deque<uint32_t> leaving_;  // records whose sprites are flying on; not yet free
  uint32_t flyBudget_;            // sprites that may still fly on before the next tick
  uint64_t now_;                  // milliseconds, of the last tick
  uint32_t usedRecords_ = 0;      // records ever used
  uint32_t freeRecord_ = 0;       // the first free record among them + 1
  uint64_t drainEnd_ = 0;         // milliseconds; 0: not draining
  uint32_t drainWindow_ = 0;      // milliseconds
};

}  // namespace server

#endif  // SPRITES_POOL_H_
