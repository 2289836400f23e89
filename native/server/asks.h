// What crosses between a worker's thread and the main thread, message by message.
//
//   worker ─▶ [ask│text][ask│text] … ─▶ ring ─▶ main      main ─▶ [say│text] … ─▶ ring ─▶ worker
//
//   ask       who      number  ticket   text     what is said to it
//   kJoin     address                            kOutcome, kOk with the id as text
//   kThrow    id       n       its      sprite   kOutcome
//   kLeave    id               its               kOutcome
//   kPoll     id       ack     its               kAnswer, now or later; kOutcome, if it is refused
//   kPlace    id               its               kAnswer or kOutcome
//   kCounts                    its               kAnswer
//   kCountsOf id               its               kAnswer or kOutcome
//   kDrop                      the poll's        nothing
//   kEnded                     the poll's        kOver, behind an answer if there was one
//   kInput    id       n       its      input    kOutcome; before the text an arena's name and a /
//   kRequest  address  body's  its      bytes    kTaken, and then kRespond, kWatch, kProceed or
//                                                kAbandon, perhaps behind a kPark
//   kGone                      its               nothing: a parked request's connection is gone
//
// and of feeds, whose watchers workers have (worker_feeds.h), with a key as text:
//
//   kFeedWant    address, whether it waits       kFeed, now and for newer versions; kFeedAwaited;
//                                                kFeedEnd
//   kFeedGzip                                    kFeedGzip, for this version
//   kFeedNamed   whether there; behind the key   nothing
//                a blank and a name
//   kFeedWatched how many watch                  nothing
//   kFeedLeft                                    nothing, and no kFeed any more
//
// A kFeedWant has a number, which all that is said of the feed until the next one has, too.
//
// Asks of one worker are served in the order in which they came. An outcome is said when the turn
// that has decided it is in the journal, or not at all (kUnknown), and kOver behind those; all else
// is said at once, in order. kRun is said unasked: something that the worker's thread is to do.
#ifndef SPRITES_ASKS_H_
#define SPRITES_ASKS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "batch_ring.h"
#include "feeds/feeds.h"
#include "http/cold_requests.h"
#include "http/request_handler.h"

namespace server {

class Worker;

enum class Ask : uint8_t {
  kJoin,
  kThrow,
  kLeave,
  kPoll,
  kPlace,
  kCounts,
  kCountsOf,
  kDrop,
  kEnded,
  kInput,
  kRequest,
  kGone,
  kFeedWant,
  kFeedGzip,
  kFeedWatched,
  kFeedLeft,
  kFeedNamed,
};

/** The head of what a worker asks. */
struct AskHead {
  uint32_t length = 0;  // of the text behind it
  Ask ask = Ask::kJoin;
  Edge edge = Edge::kLeft;           // of a throw
  uint16_t hold = kNoHold;           // of a poll, seconds
  Ticket ticket = {};                // whose it is; of kFeedWant {number of the want}
  uint64_t number = kNoNumber;       // of a throw or an input, or the ack of a poll
  std::array<uint8_t, 16> who = {};  // an Id or an Address
};
static_assert(sizeof(AskHead) == 40, "what crosses has no room for surprises");

/** Of kRequest: what its number says. */
struct RequestMarks {
  Body::State body;
  bool secure;
  bool transient;
  std::array<uint8_t, 5> unused;
};
static_assert(sizeof(RequestMarks) == sizeof(uint64_t), "it is a number");

/** What of a head names a client or an address. */
template <typename Who>
Who whoOf(const AskHead& head) {
  static_assert(sizeof(Who) == sizeof head.who);
  Who who;
  memcpy(&who, head.who.data(), sizeof who);
  return who;
}

/** A head that names `who`. */
template <typename Who>
AskHead askBy(Ask ask, Ticket ticket, const Who& who) {
  static_assert(sizeof(Who) == sizeof AskHead::who);
  AskHead head = {.ask = ask, .ticket = ticket};
  memcpy(head.who.data(), &who, sizeof who);
  return head;
}

/** Ends the name of an arena, which has none in it. */
constexpr char kEndOfName = '/';

/** Ends the key of a feed, the same. */
constexpr char kEndOfKey = ' ';

enum class Say : uint8_t {
  kOutcome,
  kUnknown,  // in place of an outcome: the journal could not be written; send no answer
  kAnswer,
  kOver,
  kTaken,    // JavaScript has been asked: another kRequest may come
  kRespond,  // text: two lengths, of the status line and of the fields; those, and the body
  kWatch,    // text: a pointer to a WatchOrder
  kProceed,
  kPark,
  kAbandon,
  kFeed,         // text: a pointer to a FeedNews
  kFeedGzip,     // the same; what is compressed of it
  kFeedEnd,      // text: its key
  kFeedAwaited,  // the same; it may be being fetched
  kRun,          // text: a pointer to a Command
};

/** The head of what the main thread says. */
struct SayHead {
  uint32_t length = 0;  // of the text behind it
  Say say = Say::kOutcome;
  Outcome outcome = Outcome::kOk;  // of kOutcome; why, of kFeedEnd
  uint16_t unused = 0;
  Ticket ticket = {};  // whose it is; of a feed {number of the want that the worker's feed has}
};
static_assert(sizeof(SayHead) == 16, "what crosses has no room for surprises");

/** Where an answer's parts are in the text of kRespond. */
struct RespondLengths {
  uint32_t statusLine;
  uint32_t fields;
};

/** What a request watches, with all of its texts. */
struct WatchOrder {
  /** A Wanted with texts of its own. */
  struct One {
    std::string key, after;
    Outcome problem;
  };
  std::vector<One> wanted;
  WatchHow how;
  std::string noneMatch;                // of `how`
  std::optional<GrantRights> verified;  // of `how`
};

/** A version of a feed, whose bytes all threads share. */
struct FeedNews {
  std::string key;
  FeedValue value;
  base::Ref<base::Bytes> gzip;  // may be missing
};

/** Something that a worker's thread is to do. */
using Command = std::function<void(Worker&)>;

/** What a message hands to its reader: an object, as the message's text. */
class Handed {
 public:
  /** Takes over an object that is new. */
  template <typename T>
  explicit Handed(std::unique_ptr<T> object) : address_(object.release()) {}

  operator std::string_view() const { return bytesOfValue(address_); }

  /** The object, which is the reader's from now on. */
  template <typename T>
  static std::unique_ptr<T> take(std::string_view text) {
    return std::unique_ptr<T>(static_cast<T*>(valueOfBytes<void*>(text)));
  }

 private:
  void* const address_;
};

/** Gives back what the messages of a batch point to and that is not read any more. */
inline void discard(std::string_view batch) {
  eachMessage<SayHead>(batch, [](const SayHead& head, std::string_view text) {
    if (head.say == Say::kWatch) Handed::take<WatchOrder>(text);
    if (head.say == Say::kFeed || head.say == Say::kFeedGzip) Handed::take<FeedNews>(text);
    if (head.say == Say::kRun) Handed::take<Command>(text);
  });
}

}  // namespace server

#endif  // SPRITES_ASKS_H_
