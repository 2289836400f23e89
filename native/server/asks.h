// The messages between a worker's thread and the main thread.
//
//   worker ─▶ [ask│text][ask│text] … ─▶ ring ─▶ main   main ─▶ [notice│text] … ─▶ ring ─▶ worker
//
//   ask       who      number  ticket   text     answer
//   kJoin     address                            kOutcome; kOk with the id as text
//   kThrow    id       n       its      sprite   kOutcome
//   kLeave    id               its               kOutcome
//   kPoll     id       ack     its               kAnswer, now or later; kOutcome: refused
//   kPlace    id               its               kAnswer or kOutcome
//   kCounts                    its               kAnswer
//   kCountsOf id               its               kAnswer or kOutcome
//   kDrop                      the poll's        none
//   kEnded                     the poll's        kOver, after an answer if there is one
//   kInput    id       n       its      input    kOutcome; the text begins with the arena and a /
//   kRequest  address  body's  its      bytes    kRequestTaken; then kRespond, kWatch, kProceed or
//                                                kAbandon, perhaps after a kPark
//   kGone                      its               none: the connection of a parked request is gone
//
// and for feeds, whose watchers belong to the workers (worker_feeds.h), with the key as text:
//
//   kFeedWant    address, whether it waits       kFeed, now and for newer versions; kFeedAwaited;
//                                                kFeedEnd
//   kFeedGzip                                    kFeedGzip, for this version
//   kFeedNamed   whether it watches; after the   none
//                key a blank and a name
//   kFeedWatched number of watchers              none
//   kFeedLeft                                    none, and no further kFeed
//
// A kFeedWant has a number. All messages about the feed until the next kFeedWant carry it.
//
// Asks of one worker are served in order. An outcome is sent after the turn that has decided it is
// in the journal; if it can't be written, kUnknown is sent. kOver is sent after the outcomes. All
// other messages are sent at once, in order. kRun answers no ask: it is a command for the worker's
// thread.
#ifndef SPRITES_ASKS_H_
#define SPRITES_ASKS_H_

#include <cstdint>
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

/** The head of a worker's message. */
struct AskHead {
  uint32_t length = 0;  // bytes of the text after it
  Ask ask = Ask::kJoin;
  Edge edge = Edge::kLeft;               // of a throw
  uint16_t hold = kNoHold;               // of a poll, seconds
  Ticket ticket = {};                    // of the request; of kFeedWant {number of the want}
  uint64_t number = kNoNumber;           // n of a throw or an input, or ack of a poll
  std::array<uint8_t, 16> subject = {};  // an Id or an Address
};
static_assert(sizeof(AskHead) == 40, "what crosses has no room for surprises");

/** The parts of a kRequest's number. */
struct RequestFlags {
  Body::State body;
  bool secure;
  bool transient;
  std::array<uint8_t, 5> unused;
};
static_assert(sizeof(RequestFlags) == sizeof(uint64_t), "it is a number");

/** The client or address that a head names. */
template <typename Subject>
Subject subjectOf(const AskHead& head) {
  static_assert(sizeof(Subject) == sizeof head.subject);
  Subject subject;
  memcpy(&subject, head.subject.data(), sizeof subject);
  return subject;
}

/** Returns a head that names `subject`. */
template <typename Subject>
AskHead askBy(Ask ask, Ticket ticket, const Subject& subject) {
  static_assert(sizeof(Subject) == sizeof AskHead::subject);
  AskHead head = {.ask = ask, .ticket = ticket};
  memcpy(head.subject.data(), &subject, sizeof subject);
  return head;
}

/** Ends the name of an arena, which does not contain it. */
constexpr char kEndOfName = '/';

/** Ends the key of a feed, which does not contain it. */
constexpr char kEndOfKey = ' ';

enum class Notice : uint8_t {
  kOutcome,
  kUnknown,  // instead of an outcome: the journal could not be written; send no answer
  kAnswer,
  kOver,
  kRequestTaken,  // JavaScript was asked: another kRequest may come
  kRespond,       // text: RespondLengths, status line, fields, body
  kWatch,         // text: a pointer to a WatchOrder
  kProceed,
  kPark,
  kAbandon,
  kFeed,         // text: a pointer to a FeedNews
  kFeedGzip,     // text: a pointer to a FeedNews; its compressed form
  kFeedEnd,      // text: the key
  kFeedAwaited,  // text: the key; there is no value yet, perhaps it is being fetched
  kRun,          // text: a pointer to a Command
};

/** The head of the main thread's message. */
struct NoticeHead {
  uint32_t length = 0;  // bytes of the text after it
  Notice notice = Notice::kOutcome;
  Outcome outcome = Outcome::kOk;  // of kOutcome; the reason of kFeedEnd
  uint16_t unused = 0;
  Ticket ticket = {};  // of the request; of a feed {number of the worker's last kFeedWant}
};
static_assert(sizeof(NoticeHead) == 16, "what crosses has no room for surprises");

/** The lengths of an answer's parts in the text of kRespond. */
struct RespondLengths {
  uint32_t statusLine;
  uint32_t fields;
};

/** The feeds that a request watches, with its own copies of all texts. */
struct WatchOrder {
  /** A FeedRequest with its own copies of the texts. */
  struct WantedCopy {
    std::string key, after;
    Outcome problem;
  };
  std::vector<WantedCopy> wanted;
  WatchOptions how;
  std::string noneMatch;                // of `how`
  std::optional<GrantRights> verified;  // of `how`
};

/** A version of a feed; all threads share its bytes. */
struct FeedNews {
  std::string key;
  FeedValue value;
  base::Ref<base::Bytes> gzip;  // may be empty
};

/** A function for a worker's thread to call. */
using Command = std::function<void(Worker&)>;

/** An object that a message passes to its reader: the text is its address. */
class PassedObject {
 public:
  /** Takes the ownership of a new object. */
  template <typename T>
  explicit PassedObject(std::unique_ptr<T> object) : address_(object.release()) {}

  operator std::string_view() const { return bytesOfValue(address_); }

  /** Returns the object, which the reader owns from now on. */
  template <typename T>
  static std::unique_ptr<T> reclaim(std::string_view text) {
    return std::unique_ptr<T>(static_cast<T*>(valueOfBytes<void*>(text)));
  }

 private:
  void* const address_;
};

/** Frees the objects of the messages of a batch that is not read any more. */
inline void discard(std::string_view batch) {
  eachMessage<NoticeHead>(batch, [](const NoticeHead& head, std::string_view text) {
    if (head.notice == Notice::kWatch) PassedObject::reclaim<WatchOrder>(text);
    if (head.notice == Notice::kFeed || head.notice == Notice::kFeedGzip)
      PassedObject::reclaim<FeedNews>(text);
    if (head.notice == Notice::kRun) PassedObject::reclaim<Command>(text);
  });
}

}  // namespace server

#endif  // SPRITES_ASKS_H_
