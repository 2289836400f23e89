// Reads the JSON of answers to joins, polls and throws, and of problems, without copies. It accepts
// any order of members, white space and unknown members; the parser is the C++ client's.
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
  std::string_view sprite;  ///< the JSON object of the throw, unchanged
};

struct PollAnswer {
  uint64_t seq = 0;
  uint64_t retry = 0;  ///< milliseconds to wait before polling again
  bool superseded = false;
  std::vector<Arrival> arrivals;  ///< oldest first; the vector is reused
};

struct JoinAnswer {
  std::string_view id;
  uint64_t hold = 0;  ///< seconds
};

/** @return false when the body breaks the contract */
bool readPollAnswer(std::string_view body, PollAnswer* answer);
bool readJoinAnswer(std::string_view body, JoinAnswer* answer);

/** @return the NAME in `"type":"urn:sprites:NAME"`, or empty */
std::string_view readProblem(std::string_view body);

/** @return the value of `"state"` of a throw's answer, or empty */
std::string_view readState(std::string_view body);

}  // namespace swarm

#endif  // SPRITES_SWARM_ANSWERS_H_
