// The texts of the front door's answers. JavaScript makes them, so that their words are those of
// lib/http/problems.js. Filled in here: the Date, whether the connection stays open, an id, a
// length and a body.
#ifndef SPRITES_REPLIES_H_
#define SPRITES_REPLIES_H_

#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/digits.h"
#include "feeds/feeds.h"
#include "torus/pool.h"

namespace server {

/** One answer, cut behind its status line, where Date and Connection are inserted. */
struct Reply {
  std::string statusLine;       // "HTTP/1.1 202 Accepted\r\n"
  std::string afterStatusLine;  // the other header fields, the empty line, the body

  Reply() = default;

  explicit Reply(const std::string& text) {
    const size_t cut = text.find("\r\n") + 2;
    statusLine = text.substr(0, cut);
    afterStatusLine = text.substr(cut);
  }
};

/** Looks up texts by views of them. */
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/** Complete answers by path: the page's files. */
using FixedReplies = std::unordered_map<std::string, Reply, TextHash, std::equal_to<>>;

/** All answers that the front door sends without JavaScript. */
struct Replies {
  Reply outcomes[kOutcomes];    // by outcome; kOk: of a leave
  Reply feed;                   // ends with "Content-Length: "
  Reply feedGzip;               // of a compressed answer
  Reply feedPublic;             // of an answer for caches: ends with "ETag: " and a quotation mark
  Reply feedUnchanged;          // 304: ends like feedPublic
  Reply feedStream;             // the head of an event stream, chunked
  Reply feedStreamGzip;         // of a compressed stream
  Reply feedStreamPlain;        // of HTTP/1.0: the stream ends with the connection
  Reply json;                   // of a poll, a place and the counts: ends with "Content-Length: "
  Reply joined;                 // ends where the id begins
  std::string afterJoinedId;    // begins where the id ends
  std::string keepAliveFields;  // the fields of a connection that stays open
  FixedReplies fixed;
};

/** Composes answers in one buffer, which keeps its capacity. */
class ReplyWriter {
 public:
  explicit ReplyWriter(Replies replies) : replies_(std::move(replies)) { setDate(time(nullptr)); }

  const Replies& replies() const { return replies_; }

  /** Returns the answer with an outcome; kOk: that of a leave. */
  const Reply& reply(Outcome outcome) const {
    return replies_.outcomes[static_cast<size_t>(outcome)];
  }

  /** Sets the Date of further answers (RFC 9110, section 6.6.1: to the second). */
  void setDate(time_t now) {
    if (now == date_) return;
    date_ = now;
    tm parts;
    char text[64];
    const size_t length =
        strftime(text, sizeof text, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&now, &parts));
    dateLine_.assign(text, length);
  }

  /** The fixed answer at `path`; nullptr: none. */
  const Reply* fixed(std::string_view path) const {
    const auto found = replies_.fixed.find(path);
    return found == replies_.fixed.end() ? nullptr : &found->second;
  }

  /** Returns the answer, valid until the next call; `last`: the connection closes after it. */
  std::string_view write(const Reply& reply, bool last = false) {
    return compose(reply.statusLine, last, reply.afterStatusLine, {});
  }
  std::string_view writeLast(const Reply& reply) { return write(reply, true); }

  /** Composes an answer; `last`: the connection closes after it. */
  std::string_view compose(std::string_view statusLine, bool last, std::string_view rest,
                           std::string_view body) {
    text_ = statusLine;
    text_ += dateLine_;
    text_ += last ? "Connection: close\r\n" : replies_.keepAliveFields;
    text_ += rest;
    text_ += body;
    return text_;
  }

  std::string_view joined(const Id& id) {
    write(replies_.joined);
    char text[36];
    id.format(text);
    text_.append(text, sizeof text);
    text_ += replies_.afterJoinedId;
    return text_;
  }

  std::string_view json(std::string_view body) {
    write(replies_.json);
    base::appendDigits(&text_, body.size());
    text_ += "\r\n\r\n";
    text_ += body;
    return text_;
  }

 private:
  const Replies replies_;
  std::string dateLine_;
  std::string text_;
  time_t date_ = 0;
};

}  // namespace server

#endif  // SPRITES_REPLIES_H_
