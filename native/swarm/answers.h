// The JSON that comes back: what a join, a poll and a problem say. One pass over the bytes, nothing
// copied but the id of a join. It takes any order of members, white space and unknown members; it
// checks as much as it needs to find its way, since the server is the one under test and not under
// attack.
#ifndef SPRITES_SWARM_ANSWERS_H_
#define SPRITES_SWARM_ANSWERS_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace swarm {

/** One sprite of a poll's answer; the views point into the answer. */
struct Arrival {
  uint64_t seq = 0;
  std::string_view from;    ///< left, right, up or down
  std::string_view sprite;  ///< the JSON object, as it was thrown
};

struct PollAnswer {
  uint64_t seq = 0;
  uint64_t retry = 0;  ///< milliseconds to wait before polling again
  bool superseded = false;
  std::vector<Arrival> arrivals;  ///< oldest first; reused from answer to answer
};

struct JoinAnswer {
  std::string_view id;
  uint64_t hold = 0;  ///< seconds
};

/** @return false when the body is not what the contract promises */
bool readPollAnswer(std::string_view body, PollAnswer* answer);
bool readJoinAnswer(std::string_view body, JoinAnswer* answer);

/** @return the NAME of `"type":"urn:sprites:NAME"`, or empty */
std::string_view readProblem(std::string_view body);

/** @return the value of `"state"` of a throw's answer, or empty */
std::string_view readState(std::string_view body);

/** Walks the members of one JSON object. */
class Members {
 public:
  explicit Members(std::string_view object);

  /**
   * @param name the next member's name, still escaped
   * @param value the next member's value with its quotes, braces or brackets
   * @return false at the end, or when the text is broken: then ok() is false
   */
  bool next(std::string_view* name, std::string_view* value);

  bool ok() const { return ok_; }

 private:
  bool stop(bool ok);

  const char* at_;
  const char* end_;
  bool first_ = true;
  bool ok_ = true;
};

/** @return a value without its quotes; empty when it is no string */
std::string_view unquote(std::string_view value);

/** @return whether `value` is a whole number from 0 up */
bool toNumber(std::string_view value, uint64_t* number);

}  // namespace swarm

#endif  // SPRITES_SWARM_ANSWERS_H_
