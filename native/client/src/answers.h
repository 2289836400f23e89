// Reads the server's answers. Unknown members are ignored; a missing member or a wrong type makes
// the whole answer unreadable, because a client must not act on half an answer.
#ifndef SPRITES_CLIENT_ANSWERS_H_
#define SPRITES_CLIENT_ANSWERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sprites/client.h"
#include "transport.h"

namespace sprites {

constexpr unsigned kMaxHold = 86400;  // longest hold or lease, in seconds

/** Answer to POST /join. */
struct JoinAnswer {
  Resume place;
  Millis retry{0};
};

/** One sprite of a poll's answer. */
struct Arrival {
  uint64_t seq = 0;
  Edge edge = Edge::kLeft;
  std::string sprite;  // JSON, as it came
};

/** Answer to GET /poll. */
struct PollAnswer {
  std::vector<Arrival> arrivals;
  bool superseded = false;
  Millis retry{0};
};

/** Answer to POST /throw. */
struct ThrowAnswer {
  Outcome outcome = Outcome::kQueued;
  Millis retry{0};
};

std::optional<Place> readPlace(std::string_view body);
std::optional<Status> readStatus(std::string_view body);

/** One feed in an answer: a value, a patch, items, a problem, or nothing new. */
struct FeedItem {
  std::string feed;
  std::string cursor;
  std::string value;  // JSON; empty: none
  std::string from;   // the cursor that the patch or the items continue
  std::string patch;  // JSON, an array; empty: none
  std::string items;  // of a log: JSON, an array; empty: none
  bool gap = false;   // items before these are gone
  std::string problem;
};

/** Answer to POST /feeds, or to GET /feed/{key}. */
struct FeedsAnswer {
  std::vector<FeedItem> items;
  Millis retry{0};
  std::string turn;  // of a ping: for the next equal request; empty: none
};

std::optional<FeedsAnswer> readFeeds(std::string_view body);

/** Reads the body of a 200 to GET /feed/{key}. */
std::optional<FeedsAnswer> readFeed(std::string_view body);

/**
 * Returns whether `cursor` is older than `other`. Cursors are opaque to clients but for one rule:
 * of two that are equal up to the last hyphen, the one with the larger number behind it is newer.
 * Others have no order.
 */
bool isOlderCursor(std::string_view cursor, std::string_view other);

/** Returns whether a feed may have that key: no segment is empty, "." or "..". */
bool isFeedKey(std::string_view key);

/** Returns whether the cursor is well-formed. */
bool isFeedCursor(std::string_view cursor);

/** A problem as in RFC 9457. */
struct Problem {
  std::string type;
  std::string detail;  // or the title if there is no detail
};

/** Prefix of the type of a Sprites server's problems. */
constexpr char kProblemPrefix[] = "urn:sprites:";

/** Returns whether the problem has that name. */
bool isProblem(const Problem& problem, const char* name);

/** The reason why a request failed: a short name, and one line for people. */
struct Reason {
  std::string name;
  std::string line;
};

/** Returns whether the network or a proxy cut the request off: no answer, or a gateway's. */
bool isCutOff(const Reply& reply);

Reason reasonOf(const Reply& reply, const Problem& problem);

std::optional<JoinAnswer> readJoin(std::string_view body);
std::optional<PollAnswer> readPoll(std::string_view body);

std::optional<ThrowAnswer> readThrow(std::string_view body);

/** Reads a problem; both members are empty if the body is no problem. */
Problem readProblem(std::string_view body);

/** Returns the edge with that name. */
std::optional<Edge> readEdge(std::string_view name);

}  // namespace sprites

#endif  // SPRITES_CLIENT_ANSWERS_H_
