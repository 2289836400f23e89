// The pool: the clients in the torus, what waits for them, and until when.
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
// A lease runs while a client is away. It begins anew with every poll of one that has acked all
// that answers have carried to it; one that asks for the same again and again has left when it is
// over, and what it would not take flies on.
//
// So a client has one timer at any moment: its hold while parked, its lease while away. A parked
// poll is known by its responder and a token of the responder's; what that is (the front door's
// connections or JavaScript) is no business of this file.
//
// The pool is one class in four files: joins, polls and time in pool.cc, throws in
// pool_throwing.cc, leaving clients, whose sprites fly on, in pool_leaving.cc, and what crosses to
// other servers of a world in pool_crossing.cc.
//
// The law it keeps, at every return: thrown = acked + waiting + lost; in a world of many servers
// thrown + crossedIn = acked + waiting + lost + crossedOut.
//
// With a journal nothing is delivered that it has not got: a sprite that came by a step which could
// not be written is held back until it is, since a crash would undo that step, and the thrower
// would throw again.
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

/** The most a count or a number may be. Answers carry them as JSON: a JavaScript reader would round
 * larger ones. */
constexpr uint64_t kMostCounted = (uint64_t{1} << 53) - 1;

/** How far back a throw's number is remembered: the bits of one word. */
constexpr uint64_t kNumberWindow = 64;

/** A poll without `hold`, a throw without `n`. */
constexpr uint32_t kNoHold = 0;
constexpr uint64_t kNoNumber = UINT64_MAX;

/** Milliseconds of one tick of the wheel: a hold or a lease ends up to three of them late. */
constexpr uint32_t kTickMilliseconds = 100;

/** Milliseconds for which a thread rests that has nothing to do: ticks are left out, and made up as
 * one before anything else. */
constexpr uint32_t kRest = 10 * kTickMilliseconds;

/** Ticks that have to be unneeded for a rest: more than are left out, and than it may be late. */
constexpr uint32_t kRestTicks = 13;
static_assert(kRest < kRestTicks * kTickMilliseconds, "no deadline comes in a rest");

/**
 * Sprites that fly on between two ticks, 60 ns each. There must be a bound: one mailbox may hold
 * millions that have flown into it, and one small request makes its owner leave.
 */
constexpr uint32_t kFlyBudget = 8192;

class Journal;
class Seams;
enum class Stay : uint8_t;
struct Crosser;
struct CrosserHead;
struct CrossText;
struct Identity;
struct Peer;
struct Seam;
struct SeamsOptions;

/** Takes the answer of a parked poll to its client. */
class PollResponder {
 public:
  virtual ~PollResponder() = default;

  /**
   * Writes one poll's answer, the JSON text `body`, which lives only for the call. The poll is
   * parked no more. Must not call Pool.
   */
  virtual void answer(uint32_t token, std::string_view body) = 0;

  /** Prefetches what answering reads. */
  virtual void prefetch(uint32_t) const {}
};

/**
 * What may hold a parked poll; a client's record says which does: the door, the routes of
 * JavaScript where the request is not hot, or a worker, from kFirstWorker on.
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
  uint64_t mailboxMemory;        // bytes waiting in all
  uint32_t answerBytes;          // sprite text in one answer; at least one sprite always goes
  uint32_t throwRate = 0;        // throws a second and client, 0: any number
  uint32_t throwBurst = 1;       // throws at once, after a rest
  uint32_t pollRate = 0;         // polls a second and client that ack nothing new, 0: any number
  uint32_t pollBurst = 1;        // those at once, after a rest
  ServerTag tag = kNoServerTag;  // of the ids it makes
};

struct Counts {
  uint64_t joined, left, expired;
  uint64_t thrown, acked, lost;  // thrown = acked + waiting + lost
  uint64_t waiting, mailboxBytes;
  uint64_t flown;                  // times a sprite flew on because its receiver had left
  uint64_t crossedIn, crossedOut;  // from other servers of the world, and to them: see seams.h
  uint64_t doubted;                // given up there and sent elsewhere: they may arrive twice
  uint64_t polls, pings;
  uint64_t outcomes[kOutcomes];
  uint32_t clients, parked;
};

/** What became of a poll. */
struct PollResult {
  Outcome outcome;          // kOk, or why it is refused: see Pool::poll
  uint32_t record;          // kOk: the client's, to drop the poll by
  std::string_view answer;  // kOk: the JSON text, valid until the next call; empty: it is parked
};

/** Whether `text` may be thrown: kOk, kSpriteTooLarge or kBadSprite. */
Outcome checkSprite(std::string_view text, uint32_t maxSprite);

class Pool {
 public:
  /**
   * `limits`, which outlive the pool, say what each source address may have; nullptr: anything.
   * `now`: milliseconds of the clock that tick will be given. Throws std::bad_alloc.
   */
  Pool(const PoolOptions& options, AddressLimits* limits, uint64_t now);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /** Registers what takes the answers of polls held by `holder`; not owned. */
  void setResponder(PollHolder holder, PollResponder* responder);

  /** The clock of throws, microseconds: by it the pool says how long sprites wait. */
  void setClock(uint64_t (*clock)()) { clock_ = clock; }

  /** From now on every step that a restart has to repeat goes to `journal`, not owned; or nowhere.
   */
  void keepJournal(Journal* journal) { journal_ = journal; }

  /** What a world and this server know of each other, which lives as long as the pool, and with a
   * state longer: made now, where there is none. */
  Seams* enterWorld();

  /** The same; nullptr: it was never in a world. */
  const Seams* keptSeams() const { return keptSeams_.get(); }

  /** From now on rows go on at other servers, as the ring says that the memory is given. */
  void openSeams(const SeamsOptions& options, std::function<void()> wake);

  /** Rows close on themselves again; what waits to cross stays. */
  void closeSeams();

  /** This process has a life of its own in the world. */
  void live(uint64_t life);

  /** The number of a server of the world; kNoPeer: there is no room for one more. */
  uint16_t know(std::string_view name);

  /** Has another server get the number of one that can be forgotten; false: it can't be. `emptied`:
   * it has left, and has nothing any more that was taken here. */
  bool replace(uint16_t peer, std::string_view name, bool emptied);

  /** `sender` sends as `peer` from now on, and all up to its number `taken` is done with. */
  void meet(uint16_t peer, const Identity& sender, uint64_t taken);

  /** Takes the sprite `number` of another server; false when there is no memory for it. */
  bool crossIn(uint16_t peer, uint64_t number, const CrosserHead& head, std::string_view text);

  /** Another server has taken `sprite`, which was in its outbox. */
  void crossOut(Sprite* sprite);

  /** It has taken all up to that number: to be called after the `crossOut` of each. */
  void crossedUpTo(uint16_t peer, uint64_t number);

  /** It has told this process what it has taken: what waits for it has the numbers behind that one.
   * To be called after `crossedUpTo`. */
  void goOnBehind(uint16_t peer, uint64_t number);

  /** It is unknown whether it has the oldest `count` of its outbox; they are to go to others. */
  void giveUp(uint16_t peer, uint64_t count);

  /** A sprite that was at `place` in the outbox of `peer`, and that it has not taken, goes to where
   * its row goes on now. */
  void turnBack(uint16_t peer, uint64_t place, const Crosser& crosser);

  /** There is no world any more: what waits to cross lands here. Returns how many sprites. */
  uint64_t endWorld();

  /** Whether the node is full that sprites land on which cross over `over` into `row`. */
  bool endBusy(uint32_t row, Edge over) const;

  /**
   * Gives a newcomer from `address` a place in the torus and its id. kOk, kTooManyJoins or
   * kTooManyClients of its address, kTorusFull or kDraining. `now`: any clock in microseconds that
   * never goes back.
   */
  Outcome join(const Address& address, uint64_t now, Id* id);

  /** Counts a request with that outcome, one that was refused before the pool; returns it.
   */
  Outcome count(Outcome outcome);

  /**
   * Frees the sprites up to `ack`, then answers with those above it, or, if there are none, parks
   * the poll for `hold` seconds: the responder of `holder` will be given the answer under `token`,
   * once. kUnknownClient, kBadHold, kAckAhead, kTooManyPolls and kStateUnwritable, when too much
   * waits to be written and the ack is new, change nothing.
   */
  PollResult poll(const Id& id, uint64_t ack, uint32_t hold, PollHolder holder, uint32_t token);

  /**
   * Answers the parked polls for which something has come since the last call, and, with a journal,
   * those that another request has ended. To be called at the end of every turn, after the journal
   * is written: several sprites for one poll share one answer.
   */
  void answerPolls();

  /** To be called when time has passed within a turn, such as for writing the journal. */
  void forgetTime() { time_ = 0; }

  /**
   * Whether joins and throws are taken, which are promises: without, they are kStateUnwritable,
   * because the state can't be written.
   */
  void takePromises(bool taken) { promising_ = taken; }
  bool promising() const { return promising_; }

  /** From now on `record` gets no sprites: what has come to it is not written. */
  void holdBack(uint32_t record);

  bool holdsBack() const { return !held_.empty(); }

  /** Everything is written: polls that were held back get their sprites with the next answers. */
  void release();

  /** The responder lost the connection of the poll parked under `token`, if it still is. */
  void drop(const Id& id, PollHolder holder, uint32_t token);

  /** The same by record number, for a responder that remembers only that. */
  void drop(uint32_t record, PollHolder holder, uint32_t token);

  /** The record of a client's id; kNoRecord when there is none. */
  uint32_t find(const Id& id) const;
  static constexpr uint32_t kNoRecord = UINT32_MAX;

  /** What a request reads of the memory of a million clients, in the order in which it leads there.
   */
  enum class Reach { kClient, kNeighbor };

  /**
   * Prefetches what a poll, or a throw over `edge`, of `id` will read, so that many requests wait
   * for memory together. Each step reads what the one before has prefetched. Changes nothing, and
   * takes any id.
   */
  void prefetch(Reach what, const Id& id, const Edge* edge) const;

  /**
   * Throws a sprite over an edge to the neighbor there. `number` is the thrower's own counter or
   * kNoNumber; `now` any clock in microseconds that never goes back.
   */
  Outcome throwSprite(const Id& id, Edge edge, uint64_t number, std::string_view text,
                      uint64_t now);

  /** The same with a `text` that has been found a sprite, of a size that is allowed. */
  Outcome throwChecked(const Id& id, Edge edge, uint64_t number, std::string_view text,
                       uint64_t now);

  /**
   * Takes a client out; its sprites fly on. Does nothing where there is no such client. kOk, or
   * kStateUnwritable, which changes nothing, when too much waits to be written.
   */
  Outcome leave(const Id& id);

  /** Frees every client that is leaving, however long it takes. To be called before a save. */
  void seeAllOff();

  /** What an operator may see of a client. */
  struct View {
    Place place;
    bool parked;
    uint32_t waiting;   // sprites
    uint32_t unsent;    // those of them that no answer has carried
    uint64_t bytes;     // of all of them
    uint64_t sequence;  // of the newest sprite that ever came
    bool known;         // whether `address` is: not after a restart
    Address address;
  };

  /** Looks at one client; false when there is no such client. */
  bool look(const Id& id, View* view) const;

  /** A client's place; false when there is no such client. */
  bool place(const Id& id, Place* place) const;

  /**
   * Ends the holds and leases that are due at `now`, in milliseconds of a clock that never goes
   * back, and moves sprites of clients that are leaving. Returns false when there is more to do
   * than one turn of the loop should: call again soon.
   */
  bool tick(uint64_t now);

  /** Whether the next `ticks` have nothing to do, if nothing else comes. */
  bool isQuiet(uint32_t ticks) const { return leaving_.empty() && wheel_.isQuiet(ticks); }

  /**
   * Prepares the end of the server: answers every parked poll within `window` milliseconds, at
   * random moments. From now on joins are refused and polls are answered at once. Every answer has
   * a "retry": the time until the window ends and, at random, up to one more window, so that
   * clients do not all return at the same moment.
   */
  void drain(uint32_t window);

  bool draining() const { return drainEnd_ != 0; }

  const Counts& counts() const { return counts_; }
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
    uint64_t nextThrow;     // when the allowance is whole again, microseconds (GCRA)
    uint32_t token;         // of the parked poll; of a free record: the next free one + 1
    uint32_t nextPoll;      // as nextThrow, of polls that ack nothing; the low bits of milliseconds
    Source source;          // where it has joined from
    PollHolder holder;
    bool live : 1;
    bool behind : 1;    // it has a backlog
    bool toAnswer : 1;  // its poll is among those that are answered at the end of the turn
    bool held : 1;      // some of what waits for it is not written: it gets nothing for now
  };
  static_assert(sizeof(Client) == 96, "the memory figures in README count on it");

  /** Where a sprite flies to: a record, the server beyond a seam, or nowhere. */
  struct Stop;

  /** What else an answer says; kNothing: that there is nothing, whatever waits. */
  enum class Remark { kNone, kNothing, kSuperseded };

  /** The place of a poll that has ended and is not answered: its holder and its token. */
  using EndedPoll = std::pair<PollHolder, uint32_t>;

  Client* lookUp(const Id& id);
  uint32_t numberOf(const Client* client) const { return client - clients_.data(); }
  void arm(uint32_t record, uint64_t milliseconds);
  void prefetchClient(uint32_t record) const;
  Outcome enter(Source source, Id* id);
  bool mayPoll(Client* client, uint64_t ack);
  void acknowledge(Client* client, uint64_t ack);
  std::string_view compose(Client* client, Remark remark);
  void unpark(Client* client);
  void answer(Client* client, Remark remark);
  void endPoll(Client* client, Remark remark);
  void answerSoon(Client* client);
  bool allowedToThrow(Client* client, uint64_t now) const;
  void spendThrow(Client* client, uint64_t now);
  bool seen(const Client& client, uint64_t number) const;
  void remember(Client* client, uint64_t number);
  Outcome tryThrow(Client* client, Edge edge, uint64_t number, std::string_view text, uint64_t now);
  uint32_t roomOf(const Sprite& sprite) const;
  bool fits(const Mailbox& mailbox, uint32_t cost) const;
  bool hasRoom(const Mailbox& mailbox, const Sprite& sprite) const;
  bool mayEnter(const Mailbox& mailbox, Source source, uint32_t cost) const;
  void renewLease(Client* client);
  void putFlown(Client* client, Sprite* sprite);
  void moveUp(Client* client);
  void catchUp(Client* client);
  Sprite* oldest(const Client& client) const;
  Sprite* takeOldest(Client* client);
  void forget(Sprite* sprite);
  uint32_t nextLive(uint32_t record, Edge edge) const;
  Stop nextStop(uint32_t record, Edge from) const;
  void flyOn(Client* client);
  void fly(Client* from, Client* to, Stay stay);
  void chargeTo(Source source, Sprite* sprite);
  void lose(Client* from);
  void remove(Client* client);
  void startLeaving(Client* client);
  void admit(uint32_t record, const Id& id);
  void receive(Client* thrower, Client* receiver, uint64_t number, Edge from, std::string_view text,
               uint64_t now);
  bool seamBeyond(uint32_t record, Edge edge, Seam* seam) const;
  bool seamForFlight(uint32_t record, Edge edge, Seam* seam) const;
  Outcome throwOver(Client* client, const Seam& seam, uint64_t number, std::string_view text,
                    uint64_t now);
  bool hasRoomFor(uint32_t cost) const;
  void flyOver(Client* from, const CrossText& way);
  CrossText setOut(const Seam& seam) const;
  uint32_t rowsToLand() const;
  uint32_t chart(CrossText* way, uint32_t cost) const;
  uint32_t endOf(uint32_t row, Edge over) const;
  bool isFull(const Client& client, uint32_t cost) const;
  void put(Sprite* sprite, const CrossText& way, uint32_t record);
  void takeThrown(Client* thrower, uint64_t number, Edge from, std::string_view text, uint64_t now,
                  const CrossText& way);
  void takeCrossed(Peer* from, uint64_t number, Edge enters, std::string_view text,
                   const CrossText& way, uint32_t record);
  uint64_t time() const { return time_ == 0 && clock_ != nullptr ? clock_() : time_; }
  void seeOff();
  void fire(uint32_t record);
  uint32_t random(uint32_t below);
  bool mayRecord() const;

  const PoolOptions options_;
  const std::unique_ptr<AddressLimits> unbounded_;  // where none are given
  AddressLimits* const limits_;
  base::Reserved<Client> clients_;
  Backlogs backlogs_;
  Torus torus_;
  base::Wheel<kTickMilliseconds> wheel_;
  IdMaker ids_;
  std::minstd_rand random_;
  Journal* journal_ = nullptr;
  std::unique_ptr<Seams> keptSeams_;  // nullptr: it was never in a world
  Seams* seams_ = nullptr;            // nullptr: there is no world but this server
  PollResponder* responders_[kPollHolders] = {};
  std::string body_;  // the answer being composed; its capacity stays
  Counts counts_ = {};
  DeliveryTimes deliveryTimes_;
  uint64_t (*clock_)() = nullptr;
  uint64_t time_ = 0;  // of this turn, as its newest throw has brought it, microseconds; 0: unknown
  bool promising_ = true;
  std::vector<uint32_t> toAnswer_;  // records whose polls are answered at the end of the turn
  std::map<EndedPoll, std::string> ended_;  // answers that go out then
  std::vector<uint32_t> held_;              // records that get nothing until all is written
  std::deque<uint32_t> leaving_;            // records whose sprites are flying on; not yet free
  uint32_t flyBudget_;                      // sprites that may before the next tick
  uint64_t now_;                            // milliseconds, of the last tick
  uint32_t used_ = 0;                       // records ever used
  uint32_t freeRecord_ = 0;                 // the first free one among them + 1
  uint64_t drainEnd_ = 0;                   // milliseconds; 0: not draining
  uint32_t drainWindow_ = 0;                // milliseconds
};

}  // namespace server

#endif  // SPRITES_POOL_H_
