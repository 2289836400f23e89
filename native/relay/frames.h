// What crosses between a worker and the main process, message by message.
//
//   worker ─▶ [ask│text][ask│text] …      main ─▶ [say│text][say│text] …
//
// Each is a head of fixed size and the text whose length it names. All of it is in the machine's
// own byte order: it never leaves the machine. An end that receives anything else, or a message
// that names something that cannot be, closes the relay: the worker is lost, and another one
// starts.
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
//   kOpened   address          its               kTooMany, if that is one too many
//   kClosed   address                            nothing
//   kInput    id       n       its      input    kOutcome; before the text the arena's name and a /
//
// and of feeds, whose replicas workers have (feed_replica.h), with a key as text:
//
//   kFeedWant    address                         kFeed, now and for newer versions; or kFeedEnd
//   kFeedGzip                                    kFeedGzip, for this version
//   kFeedWatched               how many watch    nothing
//   kFeedLeft                                    nothing, and no kFeed any more
//   kFeedCounts                                  nothing; the text is a FeedTally
//
// Asks of one worker are served in the order in which they came. An outcome is said when the turn
// that has decided it is in the journal, or not at all (kUnknown); all else is said at once, in
// order.
#ifndef SPRITES_RELAY_FRAMES_H_
#define SPRITES_RELAY_FRAMES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "feeds/feeds.h"
#include "http/request_handler.h"

namespace server {

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
  kOpened,
  kClosed,
  kInput,
  kFeedWant,
  kFeedGzip,
  kFeedWatched,
  kFeedLeft,
  kFeedCounts,
};

/** What the feeds of a worker have counted. */
struct FeedTally {
  uint64_t polls = 0, pings = 0;
  uint64_t documents = 0, patches = 0, skipped = 0;
  uint64_t held = 0;      // bytes that only answers under way hold, now
  uint64_t watching = 0;  // now
  uint64_t streams = 0;   // now

  bool operator==(const FeedTally&) const = default;

  void add(const FeedTally& other) {
    polls += other.polls;
    pings += other.pings;
    documents += other.documents;
    patches += other.patches;
    skipped += other.skipped;
    held += other.held;
    watching += other.watching;
    streams += other.streams;
  }
};

/** The head of what a worker asks. */
struct AskHead {
  uint32_t length = 0;  // of the text behind it
  Ask ask = Ask::kJoin;
  Edge edge = Edge::kLeft;      // of a throw
  uint16_t hold = kNoHold;      // of a poll, seconds; kNotAHold: none that anybody grants
  Ticket ticket = {};           // whose it is
  uint64_t number = kNoNumber;  // of a throw or an input, or the ack of a poll
  uint8_t who[16] = {};         // an Id or an Address
};
static_assert(sizeof(AskHead) == 40, "what crosses has no room for surprises");

/** Ends the name of an arena, which has none in it. */
constexpr char kEndOfName = '/';

/** A hold beyond every bound. */
constexpr uint16_t kNotAHold = UINT16_MAX;

enum class Say : uint8_t {
  kOutcome,
  kUnknown,  // in place of an outcome: the journal could not be written; send no answer
  kAnswer,
  kOver,
  kTooMany,
  kFeed,
  kFeedGzip,
  kFeedEnd,
};

/** The head of what the main process says. */
struct SayHead {
  uint32_t length = 0;  // of the text behind it
  Say say = Say::kOutcome;
  Outcome outcome = Outcome::kOk;
  Outcome feedOutcome = Outcome::kOk;  // of kFeedEnd
  uint8_t unused = 0;
  Ticket ticket = {};
};
static_assert(sizeof(SayHead) == 16, "what crosses has no room for surprises");

/** The longest text that may be said: a feed of the largest --feed-bytes, its patches and all. */
constexpr uint32_t kLongestSaid = uint32_t{1} << 28;

/** The connection of a ticket that JavaScript holds, for a request that is not hot. */
constexpr uint32_t kScriptConnection = UINT32_MAX;

/** Numbers of such tickets are below this. */
constexpr uint32_t kScriptNumbers = uint32_t{1} << 31;

/** One end of a relay; links.h sends and receives for it. */
class RelayEnd {
 public:
  virtual ~RelayEnd() = default;

  /** Takes what has come, whole messages or pieces. False: it makes no sense, and the relay is
   * closed. */
  virtual bool receive(std::string_view bytes) = 0;

  /** The other process is gone, or has sent what makes no sense. */
  virtual void lost() {}

  /** Some of what was to be sent has been: adds what has waited for room. */
  virtual void fill() {}

  /** What is to be sent; the link takes from its front what the kernel has taken. */
  std::string& outgoing() { return outgoing_; }
  const std::string& outgoing() const { return outgoing_; }

 protected:
  template <typename Head>
  void add(const Head& head, std::string_view text) {
    outgoing_.append(reinterpret_cast<const char*>(&head), sizeof head);
    outgoing_.append(text);
  }

 private:
  std::string outgoing_;
};

/** Cuts what arrives into messages, and keeps the beginning of one until the rest has come. */
template <typename Head>
class RelayReader {
 public:
  /**
   * Calls `take(head, text)` for every whole message; both live for the call only. `mayBe(head)`
   * says whether there is such a message, before its text is waited for. False from either ends
   * it: false is returned.
   */
  template <typename MayBe, typename Take>
  bool feed(std::string_view bytes, MayBe&& mayBe, Take&& take) {
    if (!rest_.empty()) {
      rest_.append(bytes);
      bytes = rest_;
    }
    size_t taken = 0;
    while (bytes.size() - taken >= sizeof(Head)) {
      Head head;
      memcpy(&head, bytes.data() + taken, sizeof head);
      if (!mayBe(head)) return false;
      if (bytes.size() - taken - sizeof head < head.length) break;
      if (!take(head, bytes.substr(taken + sizeof head, head.length))) return false;
      taken += sizeof head + head.length;
    }
    if (rest_.empty()) {
      rest_ = bytes.substr(taken);
    } else {
      rest_.erase(0, taken);
    }
    return true;
  }

 private:
  std::string rest_;
};

}  // namespace server

#endif  // SPRITES_RELAY_FRAMES_H_
