#include "feed_handler.h"

#include <utility>

#include "base/digits.h"

namespace server {

FeedHandler::FeedHandler(Feeds* feeds, Connections* connections, Answers* answers,
                         ReplyWriter* replies, Answered answered)
    : feeds_(feeds),
      connections_(connections),
      answers_(answers),
      replies_(replies),
      answered_(std::move(answered)) {
  if (feeds_ != nullptr) feeds_->setResponder(WatchHolder::kDoor, this);
}

// ---- Requests -----------------------------------------------------------------------------------

bool FeedHandler::takes(const HotRequest& request, std::string_view body) {
  if (feeds_ == nullptr) return false;
  return request.route == Route::kFeed || readWatch(body, &wish_);
}

bool FeedHandler::serve(Connection& connection, const HotRequest& request, const char* head,
                        const Address& client) {
  WatchHow how = {};
  if (request.route == Route::kFeed) {
    const auto text = [head](HeadSpan span) {
      return std::string_view(head + span.offset, span.length);
    };
    wish_.count = 1;
    wish_.wanted[0] = {text(request.key), text(request.after)};
    how = {.hold = request.hasHold ? request.hold : kNoFeedHold,
           .delta = request.delta,
           .gzip = request.gzip,
           .stream = request.stream,
           .many = false};
  } else {
    how = {.hold = wish_.hold, .delta = wish_.delta, .gzip = false, .stream = false, .many = true};
  }
  how.from = client;
  // Watching before it is asked for: the table may answer while it is being asked.
  const Ticket ticket = connections_->ticketOf(connection);
  connection.state = ConnectionState::kWatching;
  connection.record = Feeds::kNoWatcher;
  connections_->disarm(connection);
  uint32_t watcher;
  const FeedOutcome outcome = feeds_->watch(wish_.wanted, wish_.count, how, WatchHolder::kDoor,
                                            ticket.connection, &watcher);
  if (outcome != FeedOutcome::kOk) {
    connection.state = ConnectionState::kReading;
    const auto& reply = replies_->replies().feedOutcomes[static_cast<size_t>(outcome)];
    return answers_->send(connection, replies_->write(reply));
  }
  if (connections_->find(ticket) == nullptr) return false;
  if (connection.state != ConnectionState::kReading) {
    connection.record = watcher;
    return false;
  }
  return connection.output == nullptr;
}

void FeedHandler::flushed(Connection& connection) { feeds_->ready(connection.record); }

void FeedHandler::drop(const Connection& connection) { feeds_->drop(connection.record); }

uint32_t FeedHandler::tick() {
  last_ = {};
  if (feeds_ == nullptr) return 0;
  uint32_t closed = 0;
  const base::Ledger& ledger = feeds_->ledger();
  const uint64_t most = feeds_->options().memory;
  while (ledger.bytes - ledger.lent - feeds_->counts().memory > most && answers_->closeSlowest()) {
    ++closed;
  }
  return closed;
}

// ---- Answers ------------------------------------------------------------------------------------

FeedResponder::Taken FeedHandler::answer(uint32_t token, const FeedAnswer& answer) {
  Connection& connection = (*connections_)[token];
  const Ticket ticket = connections_->ticketOf(connection);
  const bool opens = connection.state == ConnectionState::kWatching;
  const bool problem = answer.outcome != FeedOutcome::kOk && (!answer.stream || opens);
  const bool goesOn = answer.stream && !answer.ends && !problem;
  // Whose connection is lost while it is written to is nobody's watcher any more: the table is told
  // by what is returned.
  connection.state = goesOn ? ConnectionState::kStreaming : ConnectionState::kReading;
  const uint32_t watcher = std::exchange(connection.record, Feeds::kNoWatcher);
  bool whole;
  if (problem) {
    const auto& reply = replies_->replies().feedOutcomes[static_cast<size_t>(answer.outcome)];
    whole = answers_->send(connection, replies_->write(reply));
  } else {
    whole = answers_->send(connection, messageOf(answer, opens));
  }
  if (connections_->find(ticket) == nullptr) return Taken::kLost;
  if (goesOn) connection.record = watcher;
  if (!goesOn && whole) answered_(connection);
  return whole ? Taken::kWhole : Taken::kInPart;
}

bool FeedHandler::Last::isOf(const FeedAnswer& answer) const {
  if (!message || answer.count != 1) return false;
  const FeedItem& item = answer.items[0];
  return item.bytes == bytes && item.begin == begin && item.end == end && item.before == before &&
         answer.gzip == gzip && answer.stream == stream;
}

/** The message of an answer: the one before, when it is of the same. */
base::Ref<base::Message> FeedHandler::messageOf(const FeedAnswer& answer, bool opens) {
  const bool shared = answer.count == 1 && answer.items[0].bytes != nullptr && !answer.ends &&
                      !(answer.stream && opens);
  if (!shared) return compose(answer, opens);
  if (!last_.isOf(answer)) {
    const FeedItem& item = answer.items[0];
    last_ = {compose(answer, opens),   item.bytes,  item.begin,   item.end,
             std::string(item.before), answer.gzip, answer.stream};
  }
  return last_.message;
}  // NOLINT(clang-analyzer-unix.Malloc): a reference is counted, not leaked

base::Ref<base::Message> FeedHandler::compose(const FeedAnswer& answer, bool opens) {
  text_.clear();
  insertions_.clear();
  const Replies& replies = replies_->replies();
  if (!answer.stream) {
    text_ += replies_->write(answer.gzip ? replies.feedGzip : replies.feed);
    base::appendDigits(&text_, answer.length());
    text_ += "\r\n\r\n";
    addBody(answer);
  } else {
    if (opens) text_ += replies_->write(replies.feedStream);
    // The fields of the event, then its data; an event without fields is a comment.
    std::string fields;
    if (!answer.cursor.empty()) fields.append("id: ").append(answer.cursor).append("\n");
    if (answer.retry > 0) {
      fields += "retry: ";
      base::appendDigits(&fields, answer.retry);
      fields += '\n';
    }
    if (answer.count > 0) fields += "data: ";
    const std::string_view end = answer.count > 0 ? "\n\n" : answer.retry > 0 ? "\n" : ":\n\n";
    base::appendDigits(&text_, fields.size() + answer.length() + end.size(), 16);
    text_ += "\r\n";
    text_ += fields;
    addBody(answer);
    text_ += end;
    text_ += "\r\n";
    if (answer.ends) text_ += "0\r\n\r\n";
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
    addOwn(insertion.at);
    pieces_.push_back(insertion.piece);
  }
  addOwn(text_.size());
  return base::Message::of(pieces_.data(), static_cast<uint32_t>(pieces_.size()));
}

void FeedHandler::addBody(const FeedAnswer& answer) {
  for (uint32_t i = 0; i < answer.count; ++i) {
    const FeedItem& item = answer.items[i];
    text_ += item.before;
    if (item.bytes != nullptr && item.end > item.begin) {
      insertions_.push_back({text_.size(), {item.bytes, item.begin, item.end}});
    }
    text_ += item.after;
  }
}

}  // namespace server
