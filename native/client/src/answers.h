// The server's answers as values. Members that are not known are ignored; what is missing or of the
// wrong type makes the whole answer unreadable, because half an answer is no ground to act on.
#ifndef SPRITES_CLIENT_ANSWERS_H_
#define SPRITES_CLIENT_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sprites/client.h"
#include "transport.h"

namespace sprites {

constexpr unsigned kHoldMost = 86400;  // seconds, of a hold or a lease

/** To POST /join. */
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

/** To GET /poll. */
struct PollAnswer {
  std::vector<Arrival> arrivals;
  bool superseded = false;
  Millis retry{0};
};

/** To POST /throw. */
struct ThrowAnswer {
  Outcome outcome = Outcome::kQueued;
  Millis retry{0};
};

std::optional<Place> readPlace(std::string_view body);
std::optional<Status> readStatus(std::string_view body);

/** What there is of one feed in an answer: a value, a patch, items, a problem, or nothing new. */
struct FeedItem {
  std::string feed;
  std::string cursor;
  std::string value;  // JSON; empty: none
  std::string from;   // the cursor that the patch or the items are for
  std::string patch;  // JSON, an array; empty: none
  std::string items;  // of a log: JSON, an array; empty: none
  bool gap = false;   // items before these are gone
  std::string problem;
};

/** To POST /feeds, or to GET /feed/{key}. */
struct FeedsAnswer {
  std::vector<FeedItem> items;
  Millis retry{0};
  std::string turn;  // of a ping, for the next request of the same; empty: none
};

std::optional<FeedsAnswer> readFeeds(std::string_view body);

/** The same of an answer 200 to GET /feed/{key}. */
std::optional<FeedsAnswer> readFeed(std::string_view body);

/**
 * Cursors are the server's, but for this: of two that are the same up to the last hyphen the one
 * with the larger number behind it is the newer. Others have no order.
 */
bool isOlderCursor(std::string_view cursor, std::string_view other);

/** Whether a feed may have that key: no segment empty, none that is "." or "..". */
bool isFeedKey(std::string_view key);

/** Whether a server may have said it. */
bool isFeedCursor(std::string_view cursor);

/** RFC 9457. */
struct Problem {
  std::string type;
  std::string detail;  // or the title where there is no detail
};

/** What a problem's type begins with where a Sprites server wrote it. */
constexpr char kProblemPrefix[] = "urn:sprites:";

/** Whether it is the problem of that name. */
bool isProblem(const Problem& problem, const char* name);

/** Why there is no good answer: the short name, and one line for people. */
struct Why {
  std::string name;
  std::string line;
};

/** Whether something between has cut a request off: no answer, or a gateway's. */
bool isCut(const Reply& reply);

Why whyOf(const Reply& reply, const Problem& problem);

std::optional<JoinAnswer> readJoin(std::string_view body);
std::optional<PollAnswer> readPoll(std::string_view body);

std::optional<ThrowAnswer> readThrow(std::string_view body);

/** Both members are empty where the body is no problem. */
Problem readProblem(std::string_view body);

/** The edge of that name. */
std::optional<Edge> readEdge(std::string_view name);

}  // namespace sprites

#endif  // SPRITES_CLIENT_ANSWERS_H_
