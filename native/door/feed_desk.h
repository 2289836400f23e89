// The feeds at the front door: requests to watch are given to the table, and its answers go out.
//
//   GET /feed/scores ─▶ Feeds::watch ─┬─ news ───────────────────────▶ answer ─▶ message ─▶ readers
//                                     └─ parked ──publication, hold──▶   ▲          │
//                                                                        └─ ready ◀─┘ who is slow
//
// An answer is a message (message.h): a head, some glue, and pieces of what the table has. All who
// watch a feed with the same cursor get the same one: it is made once and kept for the next
// watcher, who mostly wants it too. So a publication to a thousand is a thousand writes of one
// message, and who is slow holds a reference to it.
//
// An event stream is chunked (RFC 9112, section 7.1): an event is one chunk and one write. Its head
// goes out with the first one, or with the first comment.
//
// Cost of a watcher: what it costs the table, nothing here.
// Rejected: Server-Sent Events without chunks (the connection would have to be closed at the end,
// and the peer could not tell the end from a failure).
#ifndef SPRITES_FEED_DESK_H_
#define SPRITES_FEED_DESK_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "answers.h"
#include "connections.h"
#include "http_reader.h"
#include "pool/feeds.h"
#include "replies.h"
#include "watch_reader.h"

namespace server {

class FeedDesk : public FeedResponder {
 public:
  /** Told of a connection that may go on after an answer outside its own event. */
  using Answered = std::function<void(Connection& connection)>;

  /** All of these outlive it; `feeds` may be nullptr: nothing is served then. */
  FeedDesk(Feeds* feeds, Connections* connections, Answers* answers, ReplyWriter* replies,
           Answered answered);

  /** Whether the request is one for it; for POST /feeds, `body` is read as well. */
  bool takes(const HotRequest& request, std::string_view body);

  /**
   * Serves a request that it takes, whose head is at `head`. Returns whether the connection's next
   * may be served: not while this one is open.
   */
  bool serve(Connection& connection, const HotRequest& request, const char* head,
             const Address& client);

  /** A stream's event has been taken: there may be a newer one. */
  void flushed(Connection& connection);

  /** The connection of a watcher is about to close. */
  void drop(const Connection& connection);

  /**
   * Lets go of the last message, and of readers who have been slow for the longest while what only
   * they hold is more than the table's own memory may be. Returns how many were closed.
   */
  uint32_t tick();

  Taken answer(uint32_t token, const FeedAnswer& answer) override;

 private:
  /** The message made last, and what it was made of. */
  struct Last {
    base::Ref<base::Message> message;
    const base::Bytes* bytes = nullptr;  // alive: the message holds it
    uint32_t begin = 0;
    uint32_t end = 0;
    std::string before;
    bool gzip = false;
    bool stream = false;

    bool isOf(const FeedAnswer& answer) const;
  };

  base::Ref<base::Message> messageOf(const FeedAnswer& answer, bool opens);
  base::Ref<base::Message> compose(const FeedAnswer& answer, bool opens);
  void addBody(const FeedAnswer& answer);
  void mark();

  Feeds* const feeds_;
  Connections* const connections_;
  Answers* const answers_;
  ReplyWriter* const replies_;
  const Answered answered_;
  WatchWish wish_ = {};
  Last last_;

  // A message being composed: its own text, and where in it others' pieces go.
  std::string text_;
  struct Insertion {
    size_t at;
    base::Piece piece;
  };
  std::vector<Insertion> insertions_;
  std::vector<base::Piece> pieces_;
};

}  // namespace server

#endif  // SPRITES_FEED_DESK_H_
