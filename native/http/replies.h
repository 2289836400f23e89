// The texts of the front door's answers. JavaScript gives them, so that they are in the words of
// lib/http/problems.js. Only the Date, whether the connection stays, an id, a length and a body are
// filled in here.
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

/** One answer, cut behind its status line, where the Date and what becomes of the connection go. */
struct Reply {
  std::string statusLine;  // "HTTP/1.1 202 Accepted\r\n"
  std::string rest;        // the other header fields, the empty line, the body

  Reply() = default;

  explicit Reply(const std::string& text) {
    const size_t cut = text.find("\r\n") + 2;
    statusLine = text.substr(0, cut);
    rest = text.substr(cut);
  }
};

/** Looks up texts by views of them. */
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/** Whole answers by the paths they are at: the page's files. */
using FixedReplies = std::unordered_map<std::string, Reply, TextHash, std::equal_to<>>;

/** Every answer the front door gives by itself. */
struct Replies {
  Reply outcomes[kOutcomes];  // of a throw; kOk: of a leave
  Reply feed;                 // ends with "Content-Length: "
  Reply feedGzip;             // the same, compressed
  Reply feedPublic;           // one that a cache may keep: ends with "ETag: " and a quotation mark
  Reply feedUnchanged;        // 304; ends alike
  Reply feedStream;           // the head of an event stream, chunked
  Reply feedStreamGzip;       // the same, compressed
  Reply feedStreamPlain;      // the same of HTTP/1.0: the stream ends with the connection
  Reply json;                 // of a poll, a place, the counts: ends with "Content-Length: "
  Reply joined;               // ends where the id begins
  std::string joinedEnd;      // begins where the id ends
  Reply timedOut;             // 408
  Reply refused;              // 503: no room for another connection
  Reply tooMuchHeld;          // 503: too much memory is held for the client's address
  Reply badRequest;           // 400
  Reply headTooLarge;         // 431
  Reply expectationFailed;    // 417
  std::string stays;          // the fields by which a connection stays open
  FixedReplies fixed;
};

/** Puts answers together in one buffer whose capacity stays. */
class ReplyWriter {
 public:
  explicit ReplyWriter(Replies replies) : replies_(std::move(replies)) { setDate(time(nullptr)); }

  const Replies& replies() const { return replies_; }

  /** The Date of answers from now on (RFC 9110, section 6.6.1: good to the second). */
  void setDate(time_t now) {
    if (now == date_) return;
    date_ = now;
    tm parts;
    char text[64];
    const size_t length =
        strftime(text, sizeof text, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&now, &parts));
    dateLine_.assign(text, length);
  }

  /** The fixed answer at `path`, or nullptr. */
  const Reply* fixed(std::string_view path) const {
    const auto found = replies_.fixed.find(path);
    return found == replies_.fixed.end() ? nullptr : &found->second;
  }

  /** The answer, valid until the next call; `last`: its connection closes behind it. */
  std::string_view write(const Reply& reply, bool last = false) {
    return compose(reply.statusLine, last, reply.rest, {});
  }
  std::string_view writeLast(const Reply& reply) { return write(reply, true); }

  /** An answer of these parts; `last`: its connection closes behind it. */
  std::string_view compose(std::string_view statusLine, bool last, std::string_view rest,
                           std::string_view body) {
    text_ = statusLine;
    text_ += dateLine_;
    text_ += last ? "Connection: close\r\n" : replies_.stays;
    text_ += rest;
    text_ += body;
    return text_;
  }

  std::string_view joined(const Id& id) {
    write(replies_.joined);
    char text[36];
    id.format(text);
    text_.append(text, sizeof text);
    text_ += replies_.joinedEnd;
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
