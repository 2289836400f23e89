#include "answers.h"

#include <algorithm>
#include <utility>

#include "json.h"

namespace sprites {

namespace {

constexpr size_t kIdMost = 128;        // bytes of an id; a uuid has 36
constexpr uint64_t kHoldMost = 86400;  // seconds
constexpr uint64_t kRetryMost = 3600000;

/** The id goes into paths as it is, so it must be made of what needs no escape there. */
bool isId(const std::string& id) {
  return !id.empty() && id.size() <= kIdMost &&
         id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
             std::string::npos;
}

bool readRetry(std::string_view value, Millis* retry) {
  const std::optional<double> wait = json::number(value);
  if (!wait || *wait < 0) return false;
  *retry = Millis(static_cast<Millis::rep>(std::min<double>(*wait, kRetryMost)));
  return true;
}

bool readArrival(std::string_view value, Arrival* arrival) {
  bool hasSeq = false;
  bool hasEdge = false;
  const bool read = json::members(value, [&](const std::string& name, std::string_view slice) {
    if (name == "seq") {
      const std::optional<uint64_t> seq = json::count(slice);
      if (seq) arrival->seq = *seq;
      hasSeq = seq.has_value();
      return hasSeq;
    }
    if (name == "from") {
      const std::optional<std::string> from = json::string(slice);
      const std::optional<Edge> edge = from ? readEdge(*from) : std::nullopt;
      if (edge) arrival->edge = *edge;
      hasEdge = edge.has_value();
      return hasEdge;
    }
    if (name == "sprite") arrival->sprite = std::string(slice);
    return true;
  });
  return read && hasSeq && hasEdge && !arrival->sprite.empty();
}

}  // namespace

std::optional<Edge> readEdge(std::string_view name) {
  for (const Edge edge : {Edge::kLeft, Edge::kRight, Edge::kUp, Edge::kDown}) {
    if (name == toString(edge)) return edge;
  }
  return std::nullopt;
}

std::optional<JoinAnswer> readJoin(std::string_view body) {
  const std::optional<std::string_view> value = json::value(body);
  if (!value) return std::nullopt;
  JoinAnswer answer;
  const bool read = json::members(*value, [&](const std::string& name, std::string_view slice) {
    if (name == "id") {
      answer.id = json::string(slice).value_or("");
    } else if (name == "hold") {
      answer.hold = static_cast<unsigned>(std::min(json::count(slice).value_or(0), kHoldMost));
    } else if (name == "maxSprite") {
      answer.maxSprite = static_cast<size_t>(json::count(slice).value_or(0));
    } else if (name == "retry") {
      return readRetry(slice, &answer.retry);
    }
    return true;
  });
  if (!read || !isId(answer.id)) return std::nullopt;
  return answer;
}

std::optional<PollAnswer> readPoll(std::string_view body) {
  const std::optional<std::string_view> value = json::value(body);
  if (!value || !json::isUtf8(body)) return std::nullopt;
  PollAnswer answer;
  bool hasSprites = false;
  const bool read = json::members(*value, [&](const std::string& name, std::string_view slice) {
    if (name == "sprites") {
      hasSprites = true;
      return json::elements(slice, [&](std::string_view element) {
        Arrival arrival;
        if (!readArrival(element, &arrival)) return false;
        answer.arrivals.push_back(std::move(arrival));
        return true;
      });
    }
    if (name == "superseded") answer.superseded = slice == "true";
    return name != "retry" || readRetry(slice, &answer.retry);
  });
  if (!read || !hasSprites) return std::nullopt;
  return answer;
}

ThrowAnswer readThrow(std::string_view body) {
  ThrowAnswer answer;
  const std::optional<std::string_view> value = json::value(body);
  if (!value) return answer;
  json::members(*value, [&](const std::string& name, std::string_view slice) {
    if (name == "state") {
      const std::string state = json::string(slice).value_or("");
      if (state == "delivered") answer.outcome = Outcome::kDelivered;
      answer.duplicate = state == "duplicate";
    } else if (name == "retry") {
      readRetry(slice, &answer.retry);
    }
    return true;
  });
  return answer;
}

std::optional<Place> readPlace(std::string_view body) {
  const std::optional<std::string_view> value = json::value(body);
  if (!value) return std::nullopt;
  Place place;
  const std::pair<const char*, uint32_t*> members[] = {{"row", &place.row},
                                                       {"column", &place.column},
                                                       {"rows", &place.rows},
                                                       {"columns", &place.columns}};
  unsigned found = 0;
  json::members(*value, [&](const std::string& name, std::string_view slice) {
    for (const auto& [known, member] : members) {
      const std::optional<uint64_t> number = name == known ? json::count(slice) : std::nullopt;
      if (!number || *number > UINT32_MAX) continue;
      *member = static_cast<uint32_t>(*number);
      found++;
    }
    return true;
  });
  if (found != 4 || place.row >= place.rows || place.column >= place.columns) return std::nullopt;
  return place;
}

std::optional<Status> readStatus(std::string_view body) {
  const std::optional<std::string_view> value = json::value(body);
  if (!value || !json::isUtf8(body)) return std::nullopt;
  Status status;
  status.json = std::string(*value);
  const std::pair<const char*, uint64_t*> members[] = {{"clients", &status.clients},
                                                       {"thrown", &status.thrown},
                                                       {"acked", &status.acked},
                                                       {"waiting", &status.waiting},
                                                       {"lost", &status.lost}};
  unsigned found = 0;
  json::members(*value, [&](const std::string& name, std::string_view slice) {
    for (const auto& [known, member] : members) {
      const std::optional<uint64_t> number = name == known ? json::count(slice) : std::nullopt;
      if (!number) continue;
      *member = *number;
      found++;
    }
    return true;
  });
  if (found != 5) return std::nullopt;
  return status;
}

Problem readProblem(std::string_view body) {
  Problem problem;
  const std::optional<std::string_view> value = json::value(body);
  if (!value || !json::isUtf8(body)) return problem;
  std::string title;
  json::members(*value, [&](const std::string& name, std::string_view slice) {
    if (name == "type") problem.type = json::string(slice).value_or("");
    if (name == "detail") problem.detail = json::string(slice).value_or("");
    if (name == "title") title = json::string(slice).value_or("");
    return true;
  });
  if (problem.detail.empty()) problem.detail = title;
  return problem;
}

}  // namespace sprites
