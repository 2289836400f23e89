#include "answers.h"

#include "../client/src/json.h"

namespace swarm {

namespace json = sprites::json;

namespace {

/** @return whether `value` is a whole number from 0 up */
bool toNumber(std::string_view value, uint64_t* number) {
  const std::optional<uint64_t> read = json::count(value);
  if (read) *number = *read;
  return read.has_value();
}

bool readArrival(std::string_view object, Arrival* arrival) {
  json::Members members(object);
  std::string_view name, value;
  bool hasSeq = false;
  while (members.next(&name, &value)) {
    if (name == "seq") {
      hasSeq = toNumber(value, &arrival->seq);
    } else if (name == "from") {
      arrival->from = json::raw(value);
    } else if (name == "sprite") {
      arrival->sprite = value;
    }
  }
  return members.ok() && hasSeq && !arrival->from.empty() && arrival->sprite.starts_with('{');
}

bool readArrivals(std::string_view array, std::vector<Arrival>* arrivals) {
  json::Elements elements(array);
  std::string_view value;
  while (elements.next(&value)) {
    if (!readArrival(value, &arrivals->emplace_back())) return false;
  }
  return elements.ok();
}

std::string_view member(std::string_view body, std::string_view wanted) {
  json::Members members(body);
  std::string_view name, value;
  while (members.next(&name, &value)) {
    if (name == wanted) return json::raw(value);
  }
  return {};
}

}  // namespace

bool readPollAnswer(std::string_view body, PollAnswer* answer) {
  answer->seq = 0;
  answer->retry = 0;
  answer->superseded = false;
  answer->arrivals.clear();
  json::Members members(body);
  std::string_view name, value;
  bool hasSeq = false, hasSprites = false;
  while (members.next(&name, &value)) {
    if (name == "seq") {
      hasSeq = toNumber(value, &answer->seq);
    } else if (name == "sprites") {
      hasSprites = readArrivals(value, &answer->arrivals);
    } else if (name == "retry") {
      if (!toNumber(value, &answer->retry)) return false;
    } else if (name == "superseded") {
      answer->superseded = value == "true";
    }
  }
  return members.ok() && hasSeq && hasSprites;
}

bool readJoinAnswer(std::string_view body, JoinAnswer* answer) {
  json::Members members(body);
  std::string_view name, value;
  while (members.next(&name, &value)) {
    if (name == "id") {
      answer->id = json::raw(value);
    } else if (name == "hold") {
      toNumber(value, &answer->hold);
    }
  }
  return members.ok() && !answer->id.empty();
}

std::string_view readProblem(std::string_view body) {
  constexpr std::string_view kPrefix = "urn:sprites:";
  const std::string_view type = member(body, "type");
  return type.starts_with(kPrefix) ? type.substr(kPrefix.size()) : std::string_view();
}

std::string_view readState(std::string_view body) { return member(body, "state"); }

}  // namespace swarm
