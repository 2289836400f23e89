// Options and answers of a door, for tests that depend on no bound of it and no text of them.
#ifndef SPRITES_TEST_NATIVE_DOOR_OPTIONS_H_
#define SPRITES_TEST_NATIVE_DOOR_OPTIONS_H_

#include <string>

#include "http/door.h"

namespace server::test {

inline DoorOptions doorOptions(uint32_t connections, uint32_t maxSprite) {
  return {.connections = connections,
          .maxSprite = maxSprite,
          .headBytes = 16384,
          .headTime = 10000,
          .bodyTime = 10000,
          .idleTime = 60000,
          .writeTime = 10000,
          .keepIdle = 60,
          .trust = Trust::kNobody};
}

/** The status of an outcome's answer. A problem decided after the request was read is 400. */
inline const char* statusOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "204 ";
    case Outcome::kDelivered:
    case Outcome::kQueued:
    case Outcome::kDuplicate:
      return "202 ";
    case Outcome::kHeadTooLarge:
      return "431 ";
    case Outcome::kExpectationFailed:
      return "417 ";
    case Outcome::kRequestTimeout:
      return "408 ";
    case Outcome::kTooManyConnections:
    case Outcome::kTooMuchHeld:
      return "503 ";
    default:
      return "400 ";
  }
}

/** Answers that name their outcome, or are as short as possible. */
inline Replies doorReplies() {
  const auto bare = [](const std::string& status) {
    return Reply("HTTP/1.1 " + status + "\r\nContent-Length: 0\r\n\r\n");
  };
  Replies replies;
  for (size_t i = 0; i < kOutcomes; ++i) {
    replies.outcomes[i] = bare(statusOf(static_cast<Outcome>(i)) + std::string(kOutcomeNames[i]));
  }
  replies.joined = Reply("HTTP/1.1 201 Created\r\nContent-Length: 36\r\n\r\n");
  replies.json = replies.feed = Reply("HTTP/1.1 200 OK\r\nContent-Length: ");
  replies.feedGzip = Reply("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ");
  replies.feedPublic = Reply("HTTP/1.1 200 OK\r\nETag: \"");
  const std::string stream = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
  replies.feedStream = Reply(stream + "\r\n");
  replies.feedStreamGzip = Reply(stream + "Content-Encoding: gzip\r\n\r\n");
  return replies;
}

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_DOOR_OPTIONS_H_
