// The feeds at the front door: passes requests to watch to the table (Feeds), and writes its
// answers.
//
//   GET /feed/scores ─▶ Feeds::watch ─┬─ news ───────────────────────▶ answer ─▶ message ─▶ readers
//                                     └─ parked ──publication, hold──▶   ▲          │
//                                                                        └ writable◀┘ if slow
//
// An answer is a message (message.h): a head, the JSON around the value, and pieces of the table's
// bytes. All watchers of a feed with the same cursor get the same message. It is made once, and the
// last few are kept for the next watcher, which mostly needs one of them. So a publication to a
// thousand watchers is a thousand writes of one message; a slow reader holds a reference to it.
//
// A value is compressed by a worker thread, before its watchers are answered. Patches, items and
// lists are compressed here, once for each message, as long as a tick's budget lasts: a client may
// ask for any of many pairs of versions, and what is left then is sent plain.
//
// An event stream is chunked (RFC 9112, section 7.1): an event is one chunk and one write. The head
// of the answer is sent together with the first event or the first comment. In gzip an event for
// many is compressed once (event_gzip.h); what one stream alone is sent is only stored.
//
// Cost of a watcher: no memory here; the table has its record.
// Rejected: Server-Sent Events without chunks (the connection would have to be closed at the end,
// and the client could not tell the end from a failure).
#ifndef SPRITES_FEED_HANDLER_H_
#define SPRITES_FEED_HANDLER_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "answers.h"
#include "connections.h"
#include "event_gzip.h"
#include "feeds/feeds.h"
#include "http_reader.h"
#include "replies.h"
#include "watch_reader.h"

namespace server {

class FeedHandler : public FeedResponder {
 public:
  /** Told of a connection that may go on after an answer outside its own event. */
  using Answered = std::function<void(Connection& connection)>;

  /** All parameters must outlive it. `feeds` may be nullptr: then it takes no request. */
  FeedHandler(Feeds* feeds, Connections* connections, Answers* answers, ReplyWriter* replies,
              Answered answered);

  /**
   * Says whether it serves this request, whose head begins at `head`. Reads the list of GET /feeds,
   * or the `body` of POST /feeds, for that. A grant that is not known here is JavaScript's to
   * verify.
   */
  bool takes(const HotRequest& request, const char* head, std::string_view body);

  /**
   * Has the connection watch these feeds: its answer, or the events of a stream, come by
   * themselves, perhaps before this returns. Any outcome but kOk: it watches nothing, and is to be
   * answered so.
   */
  Outcome watch(Connection& connection, const Wanted* wanted, uint32_t count, const WatchHow& how);

  /**
   * Serves a request for which `takes` has just returned true.
   *
   * @return true when the request is answered and the connection's next one may be served; false
   *     while the answer is still to come or to be written, or when the connection is closed
   */
  bool serve(Connection& connection, const HotRequest& request, const Address& client);

  /** The last event of a stream has been written: sends a newer one if there is one. */
  void flushed(Connection& connection);

  /** Call before the connection of a watcher is closed: ends the watch. */
  void drop(const Connection& connection);

  /**
   * Frees the kept messages. Then closes connections, the slowest readers first, as long as the
   * bytes that only slow readers hold exceed FeedsOptions::memory.
   *
   * @return how many connections were closed
   */
  uint32_t tick();

  Taken answer(uint32_t token, const FeedAnswer& answer) override;

  void prefetch(uint32_t token) const override { connections_->prefetch(token); }

  /** Takes what was found in a token: a grant, as `how.grant`, or that it is none; false: there is
   * no room. */
  bool takeGrant(const GrantRights& rights, WatchHow* how) {
    // Every grant has a key.
    if (rights.parts[static_cast<size_t>(GrantPart::kKey)].empty()) {
      feeds_->refuseGrant(rights.token);
      return true;
    }
    how->grant = feeds_->takeGrant(rights);
    return how->grant != Grants::kNone;
  }

 private:
  bool judge(const HotRequest& request, const char* head);

  /** A message that was made, and what of. */
  struct Made {
    base::Ref<base::Message> message;
    base::Ref<base::Message> copied;  // of which that is a copy: no other bytes get its addresses
    std::vector<base::Piece> pieces;
    std::string text;  // around them
    std::string tag;
    bool gzip = false;
    bool packs = false;
    bool stream = false;
    uint32_t fresh = 0;
    uint32_t again = 0;  // how often it was needed again

    Made() = default;
    Made(base::Ref<base::Message> message, const FeedAnswer& answer);
    bool isOf(const FeedAnswer& answer) const;
  };
  static constexpr size_t kMade = 4;
  /** Bytes that are compressed in a tick at the most: some 4 ms. */
  static constexpr uint64_t kPackedInTick = 128 * 1024;

  base::Ref<base::Message> messageOf(const FeedAnswer& answer, bool opens, const Connection& to);
  base::Ref<base::Message> compose(const FeedAnswer& answer, bool opens, const Connection& to);
  void addHead(const FeedAnswer& answer, bool packed, const Connection& to);
  void addBody(const FeedAnswer& answer);
  bool pack(const FeedAnswer& answer);
  void gather(const FeedAnswer& answer);
  bool addCompressed(const FeedAnswer& answer, std::string_view fields, std::string_view end);
  void addStored(const FeedAnswer& answer, std::string_view fields, std::string_view end);
  void beginChunk(uint64_t length);
  void sendUnchanged(Connection& connection, std::string_view tag);

  Feeds* const feeds_;
  Connections* const connections_;
  Answers* const answers_;
  ReplyWriter* const replies_;
  const Answered answered_;
  WatchRequest watch_ = {};
  uint32_t grant_ = Grants::kNone;  // by which it asks
  std::string_view noneMatch_;      // of the request that was taken last, as watch_
  Made made_[kMade];
  size_t nextMade_ = 0;
  uint64_t mayPack_ = kPackedInTick;  // bytes, in this tick

  // The message that is being composed: its own text, and where pieces of shared bytes go into it.
  std::string text_;
  struct Insertion {
    size_t at;
    base::Piece piece;
  };
  std::vector<Insertion> insertions_;
  std::vector<base::Piece> pieces_;
  EventCompressor compress_;
  std::string event_;   // of a compressed stream, or its next text
  std::string packed_;  // a poll's body
};

}  // namespace server

#endif  // SPRITES_FEED_HANDLER_H_
