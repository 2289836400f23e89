// Feeds at the front door: passes requests for feeds to the table (Feeds), and writes its answers.
//
//   GET /feed/scores ─▶ Feeds::watch ─┬─ news ───────────────────────▶ answer ─▶ message ─▶ readers
//                                     └─ parked ──publication, hold──▶   ▲          │
//                                                                        └ writable◀┘ if slow
//
// An answer is a message (message.h): a head, the JSON around the value, and pieces of the table's
// bytes. All watchers of a feed with the same cursor share one message. The last few messages are
// kept for the next watchers, which mostly need one of them. So a publication to a thousand
// watchers is a thousand writes of one message; a slow reader holds a reference to it.
//
// A worker thread compresses a value, before its watchers are answered. Patches, items and lists
// are compressed here, once for each message, within a budget for each tick: a client may ask for
// any of many pairs of versions. Above the budget they are sent plain.
//
// An event stream is chunked (RFC 9112, section 7.1): an event is one chunk and one write. The head
// of the answer is sent together with the first event or the first comment. In gzip an event for
// many streams is compressed once (event_gzip.h); an event for a single stream is only stored.
//
// Cost of a watcher: no memory here; its record is in the table. Rejected: Server-Sent Events
// without chunks (the end of a stream would close the connection, and the client could not tell it
// from a failure).
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
  struct Callbacks {
    /** Called for a connection that may go on after an answer outside its own event. */
    std::function<void(Connection& connection)> onAnswered;
    /** Called before a request for feeds is answered with a problem. */
    std::function<void(const Connection& connection, Outcome problem)> onRefused;
  };

  /** All parameters outlive the handler. */
  FeedHandler(Feeds* feeds, Connections* connections, Answers* answers, ReplyWriter* replies,
              Callbacks callbacks);

  /**
   * Returns whether it serves this request, whose head begins at `head`; if not, JavaScript does.
   * Reads the list of GET /feeds, or the `body` of POST /feeds. JavaScript verifies a grant that is
   * not known here.
   */
  bool canServe(const HotRequest& request, const char* head, std::string_view body);

  /**
   * Has the connection watch these feeds. The answer, or the events of a stream, are sent later, or
   * before this returns. Any outcome but kOk: the connection watches nothing, and the caller
   * answers with that outcome.
   */
  Outcome watch(Connection& connection, const FeedRequest* wanted, uint32_t count,
                const WatchOptions& how);

  /**
   * Serves a request for which `canServe` has just returned true.
   *
   * @return true when the request is answered and the connection's next one may be served; false
   *     while the answer is still to come or to be written, or when the connection is closed
   */
  bool serve(Connection& connection, const HotRequest& request, const Address& client);

  /** Sends the newest event of a stream, if there is one, after the previous event was written. */
  void sendNextEvent(Connection& connection);

  /** Ends the watch of a connection. To be called before it closes. */
  void endWatch(const Connection& connection);

  /**
   * Frees the kept messages. Closes the connections of the slowest readers while the bytes held
   * only by slow readers exceed FeedsOptions::memory.
   */
  uint32_t tick();

  WriteResult answer(uint32_t token, const FeedAnswer& answer) override;

  void prefetch(uint32_t token) const override { connections_->prefetch(token); }

  /**
   * Stores the result of verifying a token: a grant, in `how.grant`, or a token that is no grant.
   * Returns false when there is no room.
   */
  bool storeVerifiedGrant(const GrantRights& rights, WatchOptions* how) {
    // Every grant has a key.
    if (rights.parts[static_cast<size_t>(GrantPart::kKey)].empty()) {
      feeds_->rememberBadGrant(rights.token);
      return true;
    }
    how->grant = feeds_->addGrant(rights);
    return how->grant != Grants::kNone;
  }

 private:
  bool checkGrants(const HotRequest& request, const char* head);

  /** A kept message, and its parts. */
  struct CachedMessage {
    base::Ref<base::Message> message;
    base::Ref<base::Message> original;  // the message that `message` copies: holds it, so
                                        // that no other bytes get its addresses
    std::vector<base::Piece> pieces;
    std::string text;  // the text around the pieces
    std::string tag;
    bool gzip = false;
    bool packs = false;
    bool stream = false;
    uint32_t fresh = 0;
    uint32_t reuses = 0;  // number of later uses

    CachedMessage() = default;
    CachedMessage(base::Ref<base::Message> message, const FeedAnswer& answer);
    bool matches(const FeedAnswer& answer) const;
  };
  static constexpr size_t kCachedMessages = 4;
  /** Most bytes compressed in a tick: some 4 ms. */
  static constexpr uint64_t kMaxCompressedPerTick = 128 * 1024;

  base::Ref<base::Message> messageOf(const FeedAnswer& answer, bool opensStream,
                                     const Connection& to);
  base::Ref<base::Message> compose(const FeedAnswer& answer, bool opensStream,
                                   const Connection& to);
  void addHead(const FeedAnswer& answer, bool isCompressed, const Connection& to);
  void addBody(const FeedAnswer& answer);
  bool compressBody(const FeedAnswer& answer);
  void gatherBody(const FeedAnswer& answer);
  bool addCompressed(const FeedAnswer& answer, std::string_view fields, std::string_view end);
  void addStored(const FeedAnswer& answer, std::string_view fields, std::string_view end);
  void beginChunk(uint64_t length);
  void sendNotModified(Connection& connection, std::string_view tag);

  Feeds* const feeds_;
  Connections* const connections_;
  Answers* const answers_;
  ReplyWriter* const replies_;
  const Callbacks callbacks_;
  WatchRequest watchRequest_ = {};
  uint32_t grant_ = Grants::kNone;  // of the request in watchRequest_
  std::string_view noneMatch_;      // of the request in watchRequest_
  CachedMessage cache_[kCachedMessages];
  size_t nextCached_ = 0;
  uint64_t compressBudget_ = kMaxCompressedPerTick;  // bytes left in this tick

  // The message being composed: its own text, and the pieces of shared bytes to insert.
  std::string text_;
  struct Insertion {
    size_t offset;
    base::Piece piece;
  };
  std::vector<Insertion> insertions_;
  std::vector<base::Piece> pieces_;
  EventCompressor compress_;
  std::string event_;           // event or body to compress, or the next own text of a stored one
  std::string compressedBody_;  // body of a poll in gzip
};

}  // namespace server

#endif  // SPRITES_FEED_HANDLER_H_
