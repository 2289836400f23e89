#include "feed_handler.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/digits.h"
#include "base/entity_tags.h"
#include "characters.h"

namespace server {

namespace {

/**
 * Number of later uses of a long message at which it is sent from a file, if that is cheaper: it is
 * then likely to have many readers.
 */
constexpr uint32_t kFileFrom = 3;

/** Number of later uses at which a shorter message is copied into one piece. */
constexpr uint32_t kOnePieceFrom = 8;

/** Suffix of the tag of an answer that was compressed here. */
constexpr std::string_view kCompressedTag = ".gzip";

/** The token of an Authorization header; empty: another scheme, or another form. */
std::string_view bearerOf(std::string_view value) {
  constexpr std::string_view scheme = "bearer ";
  if (!isWord(value.substr(0, scheme.size()), scheme)) return {};
  value.remove_prefix(scheme.size());
  return value.find_first_of(" \t") == std::string_view::npos ? value : std::string_view();
}

/** Whether a token has the three parts of a grant. */
bool mayBeGrant(std::string_view token) { return std::count(token.begin(), token.end(), '.') == 2; }

/**
 * Hashes tokens. Keeps the algorithm: fetching it for each token would take longer than hashing.
 */
class TokenHasher {
 public:
  /** Returns no hash when OpenSSL has failed: then no token is known here. */
  std::optional<TokenHash> operator()(std::string_view token) {
    TokenHash hash = {};
    const bool isHashed = algorithm_ && context_ &&
                          EVP_DigestInit_ex(context_.get(), algorithm_.get(), nullptr) == 1 &&
                          EVP_DigestUpdate(context_.get(), token.data(), token.size()) == 1 &&
                          EVP_DigestFinal_ex(context_.get(), hash.data(), nullptr) == 1;
    return isHashed ? std::optional(hash) : std::nullopt;
  }

 private:
  struct Deleter {
    void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  std::unique_ptr<EVP_MD, Deleter> algorithm_{EVP_MD_fetch(nullptr, "SHA256", nullptr)};
  std::unique_ptr<EVP_MD_CTX, Deleter> context_{EVP_MD_CTX_new()};
};

std::optional<TokenHash> hashOf(std::string_view token) {
  thread_local TokenHasher hasher;
  return hasher(token);
}

}  // namespace

FeedHandler::FeedHandler(Feeds* feeds, Connections* connections, Answers* answers,
                         ReplyWriter* replies, Callbacks callbacks)
    : feeds_(feeds),
      connections_(connections),
      answers_(answers),
      replies_(replies),
      callbacks_(std::move(callbacks)) {
  feeds_->setResponder(this);
}

// ---- Requests -----------------------------------------------------------------------------------

bool FeedHandler::canServe(const HotRequest& request, const char* head, std::string_view body) {
  const auto text = [head](HeadSpan span) {
    return std::string_view(head + span.offset, span.length);
  };
  const std::string_view key = text(request.key);
  if (request.route == Route::kFeed) {
    watchRequest_.count = 1;
    watchRequest_.wanted[0] = {key, text(request.after)};
  } else if (key.empty() ? !readWatch(body, &watchRequest_) : !readWatchList(key, &watchRequest_)) {
    return false;
  }
  if (!key.empty()) {
    watchRequest_.hold = request.hasHold ? std::min(request.hold, kNoFeedHold - 1) : kNoFeedHold;
    watchRequest_.delta = request.delta;
  }
  noneMatch_ = text(request.noneMatch);
  grant_ = Grants::kNone;
  const bool needsCheck = feeds_->hasPrivate() || feeds_->options().hasGrants;
  return !needsCheck || checkGrants(request, head);
}

/** Decides which private feeds may be read. Returns false when JavaScript must decide. */
bool FeedHandler::checkGrants(const HotRequest& request, const char* head) {
  FeedRequest* const end = watchRequest_.wanted + watchRequest_.count;
  const auto isPrivate = [this](const FeedRequest& one) { return feeds_->isPrivate(one.key); };
  const bool opensStream = std::any_of(watchRequest_.wanted, end, isPrivate);
  // For a public feed a grant only gives the name of the reader.
  const bool namesReader =
      feeds_->options().hasGrants && request.authorization.length + request.grant.length > 0;
  if (!opensStream && !namesReader) return true;
  // With both, JavaScript decides which one counts.
  if (request.authorization.length > 0 && request.grant.length > 0) return false;
  Outcome problem = Outcome::kGrantRequired;
  if (request.authorization.length > 0 || request.grant.length > 0) {
    const HeadSpan span = request.grant.length > 0 ? request.grant : request.authorization;
    const std::string_view value(head + span.offset, span.length);
    const std::string_view token = request.grant.length > 0 ? value : bearerOf(value);
    if (!opensStream && !mayBeGrant(token)) return true;
    if (token.empty()) return false;
    const std::optional<TokenHash> hash = hashOf(token);
    if (hash) grant_ = feeds_->findGrant(*hash);
    if (grant_ == Grants::kNone) return !opensStream && hash && feeds_->isBadGrant(*hash);
    problem = Outcome::kNotGranted;
  }
  for (FeedRequest* one = watchRequest_.wanted; one != end; ++one) {
    const bool mayRead = grant_ != Grants::kNone && feeds_->reads(grant_, one->key);
    if (isPrivate(*one) && !mayRead) one->problem = problem;
  }
  return true;
}

bool FeedHandler::serve(Connection& connection, const HotRequest& request, const Address& client) {
  const WatchOptions how = {.hold = watchRequest_.hold,
                            .delta = watchRequest_.delta,
                            .gzip = request.gzip,
                            .stream = request.stream,
                            .hasManyFeeds = request.route == Route::kFeeds,
                            .isPost = request.key.length == 0,
                            .noneMatch = noneMatch_,
                            .grant = grant_,
                            .address = client};
  connection.isHttp10 = false;
  const Ticket ticket = connections_->ticketOf(connection);
  const Outcome outcome = watch(connection, watchRequest_.wanted, watchRequest_.count, how);
  if (outcome != Outcome::kOk) {
    callbacks_.onRefused(connection, outcome);
    return answers_->send(connection, replies_->write(replies_->reply(outcome)));
  }
  return connections_->find(ticket) != nullptr && connection.state == ConnectionState::kReading &&
         connection.output == nullptr;
}

Outcome FeedHandler::watch(Connection& connection, const FeedRequest* wanted, uint32_t count,
                           const WatchOptions& how) {
  // Answers 304 if the client's tag matches.
  if (!how.noneMatch.empty()) {
    std::string tag = feeds_->tagNow(wanted, count, how);
    if (!tag.empty() && how.gzip && !base::hasTag(how.noneMatch, tag)) tag += kCompressedTag;
    if (!tag.empty() && base::hasTag(how.noneMatch, tag)) {
      sendNotModified(connection, tag);
      return Outcome::kOk;
    }
  }
  const Ticket ticket = connections_->ticketOf(connection);
  // Set before the table is asked: it may answer during the call.
  connection.state = ConnectionState::kWatching;
  connection.route = how.hasManyFeeds ? Route::kFeeds : Route::kFeed;
  // Otherwise the connection waits only until the feed has been fetched.
  connection.mayStayUnanswered =
      how.stream || std::all_of(wanted, wanted + count,
                                [](const FeedRequest& one) { return !one.after.empty(); });
  connections_->disarm(connection);
  uint32_t watcher;
  const Outcome outcome = feeds_->watch(wanted, count, how, ticket.connection, &watcher);
  if (outcome != Outcome::kOk) {
    connection.state = ConnectionState::kReading;
  } else if (connections_->find(ticket) != nullptr &&
             (connection.state == ConnectionState::kWatching ||
              connection.state == ConnectionState::kStreaming)) {
    connection.record = watcher;
  }
  return outcome;
}

/** Sends a 304: the client's cache has the bytes of the answer. */
void FeedHandler::sendNotModified(Connection& connection, std::string_view tag) {
  const Reply& head = replies_->replies().feedUnchanged;
  std::string text(replies_->write(head, connection.closesAfterAnswer));
  text.append(tag).append("\"\r\n\r\n");
  if (answers_->send(connection, text)) callbacks_.onAnswered(connection);
}

void FeedHandler::sendNextEvent(Connection& connection) { feeds_->writable(connection.record); }

void FeedHandler::endWatch(const Connection& connection) { feeds_->drop(connection.record); }

uint32_t FeedHandler::tick() {
  for (CachedMessage& cached : cache_) cached = {};
  compressBudget_ = kMaxCompressedPerTick;
  uint32_t closed = 0;
  const uint64_t maxMemory = feeds_->options().memory;
  // hasSlowestReader is called in every tick: it tells the other threads about this one's slowest
  // reader.
  while (feeds_->hasSlowestReader(answers_->slowestSince()) && feeds_->unsentBytes() > maxMemory &&
         answers_->closeSlowest()) {
    ++closed;
  }
  return closed;
}

// ---- Answers ------------------------------------------------------------------------------------

FeedResponder::WriteResult FeedHandler::answer(uint32_t token, const FeedAnswer& answer) {
  Connection& connection = (*connections_)[token];
  const Ticket ticket = connections_->ticketOf(connection);
  const bool opensStream = connection.state == ConnectionState::kWatching;
  const bool isProblem = answer.outcome != Outcome::kOk && (!answer.isEvent || opensStream);
  const bool continuesStream = answer.isEvent && !answer.endsStream && !isProblem;
  // The watcher is taken off before the write: if the connection is lost in it, the returned value
  // tells the table, not `endWatch`.
  connection.state = continuesStream ? ConnectionState::kStreaming : ConnectionState::kReading;
  const uint32_t watcher = std::exchange(connection.record, Feeds::kNoWatcher);
  bool isSent;
  if (isProblem) {
    callbacks_.onRefused(connection, answer.outcome);
    const Reply& reply = replies_->reply(answer.outcome);
    isSent = answers_->send(connection, replies_->write(reply, connection.closesAfterAnswer));
  } else {
    isSent = answers_->send(connection, messageOf(answer, opensStream, connection));
  }
  if (connections_->find(ticket) == nullptr) return WriteResult::kLost;
  if (continuesStream) connection.record = watcher;
  if (!continuesStream && isSent) callbacks_.onAnswered(connection);
  return isSent ? WriteResult::kWhole : WriteResult::kInPart;
}

FeedHandler::CachedMessage::CachedMessage(base::Ref<base::Message> message,
                                          const FeedAnswer& answer)
    : message(std::move(message)),
      tag(answer.tag),
      gzip(answer.gzip),
      packs(answer.mayCompress),
      stream(answer.isEvent),
      fresh(answer.cacheSeconds) {
  for (uint32_t i = 0; i < answer.count; ++i) {
    const BodyPiece& item = answer.pieces[i];
    pieces.push_back({item.bytes, item.begin, item.end});
    text.append(item.before).append(item.after);
  }
}

bool FeedHandler::CachedMessage::matches(const FeedAnswer& answer) const {
  if (!message || answer.count != pieces.size() || answer.gzip != gzip ||
      answer.mayCompress != packs || answer.isEvent != stream || answer.cacheSeconds != fresh ||
      answer.tag != tag) {
    return false;
  }
  std::string_view rest = text;
  const auto skipIfNext = [&rest](std::string_view part) {
    const bool same = rest.substr(0, part.size()) == part;
    if (same) rest.remove_prefix(part.size());
    return same;
  };
  for (uint32_t i = 0; i < answer.count; ++i) {
    const BodyPiece& item = answer.pieces[i];
    const base::Piece& piece = pieces[i];
    const bool same =
        item.bytes == piece.bytes && item.begin == piece.begin && item.end == piece.end;
    if (!same || !skipIfNext(item.before) || !skipIfNext(item.after)) return false;
  }
  return rest.empty();
}

/** Returns the message of an answer: a kept one with the same parts, or a new one. */
base::Ref<base::Message> FeedHandler::messageOf(const FeedAnswer& answer, bool opensStream,
                                                const Connection& to) {
  const bool isOnlyForConnection =
      answer.isEvent ? opensStream || to.isHttp10 : to.closesAfterAnswer;
  const auto hasSharedBytes = [](const BodyPiece& item) { return item.bytes != nullptr; };
  const bool isShared = !isOnlyForConnection && !answer.endsStream &&
                        std::any_of(answer.pieces, answer.pieces + answer.count, hasSharedBytes);
  if (!isShared) return compose(answer, opensStream, to);
  for (CachedMessage& cached : cache_) {
    if (!cached.matches(answer)) continue;
    const bool isLong = cached.message->length() >= SendCosts::kLongMessage;
    if (++cached.reuses == kFileFrom && isLong && connections_->sendCosts().wantsFile()) {
      cached.message->makeFile();
    }
    if (cached.reuses == kOnePieceFrom && !isLong) {
      cached.original = std::exchange(cached.message, cached.message->inOnePiece());
    }
    return cached.message;
  }
  CachedMessage& cached = cache_[nextCached_++ % kCachedMessages];
  cached = CachedMessage(compose(answer, opensStream, to), answer);
  return cached.message;
}  // NOLINT(clang-analyzer-unix.Malloc): a reference is counted, not leaked

base::Ref<base::Message> FeedHandler::compose(const FeedAnswer& answer, bool opensStream,
                                              const Connection& to) {
  text_.clear();
  insertions_.clear();
  const Replies& replies = replies_->replies();
  const bool gzip = answer.gzip && !to.isHttp10;
  if (!answer.isEvent) {
    const bool isCompressed = compressBody(answer);
    addHead(answer, isCompressed, to);
    base::appendDigits(&text_, isCompressed ? compressedBody_.size() : answer.length());
    text_ += "\r\n\r\n";
    if (isCompressed) {
      text_ += compressedBody_;
    } else {
      addBody(answer);
    }
  } else {
    if (opensStream && to.isHttp10) text_ += replies_->writeLast(replies.feedStreamPlain);
    if (opensStream && !to.isHttp10) {
      const Reply& head = gzip ? replies.feedStreamGzip : replies.feedStream;
      text_ += replies_->write(head, to.closesAfterAnswer);
    }
    if (opensStream && gzip) {
      beginChunk(kGzipHead.size());
      text_.append(kGzipHead).append("\r\n");
    }
    // An event has fields, then its data; without both it is a comment.
    std::string fields;
    if (!answer.cursor.empty()) fields.append("id: ").append(answer.cursor).append("\n");
    if (answer.retry > 0) {
      fields += "retry: ";
      base::appendDigits(&fields, answer.retry);
      fields += '\n';
    }
    if (answer.count > 0) fields += "data: ";
    const std::string_view end = answer.count > 0 ? "\n\n" : answer.retry > 0 ? "\n" : ":\n\n";
    if (gzip) {
      if (opensStream || !addCompressed(answer, fields, end)) addStored(answer, fields, end);
    } else {
      if (!to.isHttp10) beginChunk(fields.size() + answer.length() + end.size());
      text_ += fields;
      addBody(answer);
      text_ += end;
      if (!to.isHttp10) text_ += "\r\n";
    }
    if (!to.isHttp10 && answer.endsStream) text_ += "0\r\n\r\n";
  }
  const base::Ref<base::Bytes> own = base::Bytes::copyOf(text_, nullptr);
  pieces_.clear();
  uint32_t from = 0;
  const auto addOwn = [&](size_t to) {
    const auto end = static_cast<uint32_t>(to);
    if (end > from) pieces_.push_back({own.get(), from, end});
    from = end;
  };
  for (const Insertion& insertion : insertions_) {
    addOwn(insertion.offset);
    pieces_.push_back(insertion.piece);
  }
  addOwn(text_.size());
  return base::Message::fromPieces(pieces_.data(), static_cast<uint32_t>(pieces_.size()));
}

void FeedHandler::beginChunk(uint64_t length) {
  base::appendDigits(&text_, length, 16);
  text_ += "\r\n";
}

/** Compresses the body of a poll into compressedBody_. Returns false when it is sent plain. */
bool FeedHandler::compressBody(const FeedAnswer& answer) {
  if (!answer.mayCompress) return false;
  const uint64_t length = answer.length();
  const uint64_t maxLength = std::min(compressBudget_, kMaxCompressedEvent);
  if (length < Feed::kCompressFrom || length > maxLength) return false;
  compressBudget_ -= length;
  event_.clear();
  gatherBody(answer);
  const std::string_view block = compress_(event_);
  if (block.empty()) return false;
  compressedBody_ = kGzipHead;
  compressedBody_ += block;
  appendGzipEnd(&compressedBody_, event_);
  return true;
}

/** Appends a body to event_. */
void FeedHandler::gatherBody(const FeedAnswer& answer) {
  for (uint32_t i = 0; i < answer.count; ++i) {
    const BodyPiece& item = answer.pieces[i];
    event_ += item.before;
    if (item.bytes != nullptr)
      event_.append(item.bytes->data() + item.begin, item.end - item.begin);
    event_ += item.after;
  }
}

/**
 * Adds an event compressed, with the same bytes for any stream. Returns false when that is not
 * worthwhile.
 */
bool FeedHandler::addCompressed(const FeedAnswer& answer, std::string_view fields,
                                std::string_view end) {
  const uint64_t length = fields.size() + answer.length() + end.size();
  if (length < kMinCompressedEvent || length > kMaxCompressedEvent) return false;
  event_ = fields;
  gatherBody(answer);
  event_ += end;
  const std::string_view block = compress_(event_);
  if (block.empty()) return false;
  beginChunk(block.size());
  text_.append(block).append("\r\n");
  return true;
}

/** Adds an event in gzip without compression: each stored block is a chunk. */
void FeedHandler::addStored(const FeedAnswer& answer, std::string_view fields,
                            std::string_view end) {
  const auto beginStoredBlock = [this](uint32_t length) {
    beginChunk(kStoredHeadBytes + length);
    appendStoredHead(&text_, length);
  };
  event_ = fields;
  const auto addOwn = [&] {
    beginStoredBlock(static_cast<uint32_t>(event_.size()));
    text_.append(event_).append("\r\n");
    event_.clear();
  };
  for (uint32_t i = 0; i < answer.count; ++i) {
    const BodyPiece& item = answer.pieces[i];
    event_ += item.before;
    const uint32_t shared = item.bytes == nullptr ? 0 : item.end - item.begin;
    if (shared < kMinCompressedEvent) {
      if (shared > 0) event_.append(item.bytes->data() + item.begin, shared);
    } else {
      addOwn();
      for (uint32_t at = item.begin; at < item.end;) {
        const uint32_t next = at + std::min(kMaxStoredBlock, item.end - at);
        beginStoredBlock(next - at);
        insertions_.push_back({text_.size(), {item.bytes, at, next}});
        text_ += "\r\n";
        at = next;
      }
    }
    event_ += item.after;
  }
  event_ += end;
  addOwn();
}

/** Adds the head of a poll's answer, up to its length. */
void FeedHandler::addHead(const FeedAnswer& answer, bool isCompressed, const Connection& to) {
  const Replies& replies = replies_->replies();
  const bool gzip = answer.gzip || isCompressed;
  const Reply& plain = gzip ? replies.feedGzip : replies.feed;
  const Reply& head = answer.cacheSeconds > 0 ? replies.feedPublic : plain;
  text_ += replies_->write(head, to.closesAfterAnswer);
  if (answer.cacheSeconds == 0) return;
  text_.append(answer.tag).append(isCompressed ? kCompressedTag : "");
  text_.append("\"\r\nCache-Control: public, s-maxage=");
  base::appendDigits(&text_, answer.cacheSeconds);
  text_ += ", max-age=0\r\n";
  if (gzip) text_ += "Content-Encoding: gzip\r\n";
  text_ += "Content-Length: ";
}

void FeedHandler::addBody(const FeedAnswer& answer) {
  for (uint32_t i = 0; i < answer.count; ++i) {
    const BodyPiece& item = answer.pieces[i];
    text_ += item.before;
    if (item.bytes != nullptr && item.end > item.begin) {
      insertions_.push_back({text_.size(), {item.bytes, item.begin, item.end}});
    }
    text_ += item.after;
  }
}

}  // namespace server
