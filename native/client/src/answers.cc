#include "answers.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "json.h"
#include "sprites/feeds.h"

namespace sprites {

namespace {

constexpr size_t kMaxId = 64;  // longest id, in bytes; a UUID has 36
constexpr uint64_t kMaxRetry = 600000;
constexpr uint64_t kMaxResumeNumber = uint64_t{1} << 52;  // largest `ack` and `n` of a Resume

bool isMadeOf(std::string_view text, const char* characters, size_t maxLength) {
  return !text.empty() && text.size() <= maxLength &&
         text.find_first_not_of(characters) == std::string_view::npos;
}

constexpr char kNameCharacters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";

/** Visits an answer's members; false if it is no object in UTF-8, or `visit` returns false. */
bool readObject(std::string_view body, const json::MemberVisitor& visit) {
  const std::optional<std::string_view> value = json::value(body);
  return value && json::isUtf8(body) && json::members(*value, visit);
}

/** Reads the wait in "retry", in milliseconds; ignores a value that is no number. */
void readRetry(const std::string& name, std::string_view slice, Millis* retry) {
  const std::optional<double> wait = name == "retry" ? json::number(slice) : std::nullopt;
  if (wait) *retry = Millis(static_cast<Millis::rep>(std::clamp<double>(*wait, 0, kMaxRetry)));
}

/** Reads the members of an answer about feeds that are for the next request. */
void readNextRequestMember(const std::string& name, std::string_view slice, FeedsAnswer* answer) {
  if (name == "turn") {
    answer->turn = json::string(slice).value_or("");
    if (!isMadeOf(answer->turn, kNameCharacters, 40)) answer->turn.clear();
  }
  readRetry(name, slice, &answer->retry);
}

bool readFeedItem(std::string_view slice, FeedItem* item) {
  bool hasProblem = false;
  const bool read = json::members(slice, [&](const std::string& name, std::string_view value) {
    if (name == "value") item->value = value;
    if (name == "patch") item->patch = value;
    if (name == "feed") item->feed = json::string(value).value_or("");
    if (name == "cursor") item->cursor = json::string(value).value_or("");
    if (name == "from") item->from = json::string(value).value_or("");
    if (name == "problem") item->problem = json::string(value).value_or("");
    if (name == "items") item->items = value;
    if (name == "gap") item->gap = value == "true";
    hasProblem = hasProblem || name == "problem";
    return true;
  });
  if (!read) return false;
  if (hasProblem) return isMadeOf(item->problem, "abcdefghijklmnopqrstuvwxyz-", 40);
  if (!isFeedCursor(item->cursor)) return false;
  const auto isList = [item](const std::string& list) {
    return list.empty() || (list[0] == '[' && isFeedCursor(item->from));
  };
  return isList(item->patch) && isList(item->items);
}

/** Returns whether the id is valid: paths contain it unescaped. */
bool isId(const std::string& id) {
  static const std::string characters = std::string(kNameCharacters) + "_";
  return isMadeOf(id, characters.c_str(), kMaxId);
}

/** Reads whole numbers by their names; false if one is missing. */
bool readNumbers(std::string_view text,
                 std::initializer_list<std::pair<const char*, uint64_t*>> members) {
  size_t found = 0;
  readObject(text, [&](const std::string& name, std::string_view slice) {
    for (const auto& [known, member] : members) {
      const std::optional<uint64_t> number = name == known ? json::count(slice) : std::nullopt;
      if (!number) continue;
      *member = *number;
      found++;
    }
    return true;
  });
  return found == members.size();
}

/** Reads a member of a Resume; false if the value is no whole number (but for `id`). */
bool readPlaceMember(const std::string& name, std::string_view slice, Resume* place) {
  if (name == "id") {
    place->id = json::string(slice).value_or("");
    return true;
  }
  const std::optional<uint64_t> number = json::count(slice);
  if (!number) return false;
  if (name == "ack") {
    place->ack = *number;
  } else if (name == "n") {
    place->n = *number;
  } else if (name == "hold") {
    place->hold = static_cast<unsigned>(std::min<uint64_t>(*number, kMaxHold));
  } else if (name == "lease") {
    place->lease = static_cast<unsigned>(std::min<uint64_t>(*number, kMaxHold));
  } else if (name == "maxSprite") {
    place->maxSprite = static_cast<size_t>(*number);
  } else if (name == "transient") {
    place->transient = static_cast<unsigned>(std::min<uint64_t>(*number, 65535));
  }
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
  return read && hasSeq && hasEdge && arrival->sprite[0] == '{';
}

}  // namespace

bool isProblem(const Problem& problem, const char* name) {
  return problem.type == std::string(kProblemPrefix) + name;
}

bool isCutOff(const Reply& reply) {
  if (reply.status > 0 && reply.status < 500) return false;
  return readProblem(reply.body).type.find(kProblemPrefix) != 0;
}

Reason reasonOf(const Reply& reply, const Problem& problem) {
  if (reply.status == 0) {
    const char* name = reply.isTooLong ? "garbage" : reply.isTimedOut ? "slow" : "network";
    return {name, reply.error};
  }
  const size_t prefix = sizeof(kProblemPrefix) - 1;
  if (problem.type.compare(0, prefix, kProblemPrefix) == 0) {
    const std::string name = problem.type.substr(prefix);
    return {name, problem.detail.empty() ? name : problem.detail};
  }
  return {"garbage",
          "an answer that is not a Sprites server's, with status " + std::to_string(reply.status)};
}

std::optional<Edge> readEdge(std::string_view name) {
  for (const Edge edge : {Edge::kLeft, Edge::kRight, Edge::kUp, Edge::kDown}) {
    if (name == toString(edge)) return edge;
  }
  return std::nullopt;
}

std::optional<JoinAnswer> readJoin(std::string_view body) {
  JoinAnswer answer;
  const bool read = readObject(body, [&](const std::string& name, std::string_view slice) {
    readPlaceMember(name, slice, &answer.place);
    readRetry(name, slice, &answer.retry);
    return true;
  });
  if (!read || !isId(answer.place.id)) return std::nullopt;
  answer.place.ack = answer.place.n = 0;
  return answer;
}

std::optional<Resume> readResume(std::string_view text) {
  Resume resume;
  unsigned found = 0;
  const bool read = readObject(text, [&](const std::string& name, std::string_view slice) {
    const bool isRequired = name == "id" || name == "ack" || name == "n";
    if (readPlaceMember(name, slice, &resume)) found += isRequired ? 1 : 0;
    return true;
  });
  if (!read || found != 3 || !isId(resume.id)) return std::nullopt;
  if (std::max(resume.ack, resume.n) > kMaxResumeNumber) return std::nullopt;
  return resume;
}

std::string writeResume(const Resume& resume) {
  std::string out = "{\"id\":" + json::quote(resume.id) + ",\"ack\":" + std::to_string(resume.ack) +
                    ",\"n\":" + std::to_string(resume.n);
  const std::pair<const char*, uint64_t> members[] = {{"hold", resume.hold},
                                                      {"lease", resume.lease},
                                                      {"maxSprite", resume.maxSprite},
                                                      {"transient", resume.transient}};
  for (const auto& [name, value] : members) {
    if (value > 0) out += std::string(",\"") + name + "\":" + std::to_string(value);
  }
  return out + "}";
}

std::optional<PollAnswer> readPoll(std::string_view body) {
  PollAnswer answer;
  bool hasSprites = false;
  const bool read = readObject(body, [&](const std::string& name, std::string_view slice) {
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
    readRetry(name, slice, &answer.retry);
    return true;
  });
  if (!read || !hasSprites) return std::nullopt;
  return answer;
}

bool isFeedKey(std::string_view key) {
  static const std::string characters = std::string(kNameCharacters) + "._~/";
  if (!isMadeOf(key, characters.c_str(), 200)) return false;
  for (size_t at = 0; at <= key.size();) {
    const size_t end = std::min(key.find('/', at), key.size());
    const std::string_view segment = key.substr(at, end - at);
    if (segment.empty() || segment == "." || segment == "..") return false;
    at = end + 1;
  }
  return true;
}

bool isFeedCursor(std::string_view cursor) { return isMadeOf(cursor, kNameCharacters, 40); }

std::optional<FeedsAnswer> readFeeds(std::string_view body) {
  FeedsAnswer answer;
  bool hasItems = false;
  const bool read = readObject(body, [&](const std::string& name, std::string_view slice) {
    if (name == "items") {
      hasItems = true;
      return json::elements(slice, [&](std::string_view element) {
        answer.items.emplace_back();
        return answer.items.size() <= kMaxFeeds && readFeedItem(element, &answer.items.back());
      });
    }
    readNextRequestMember(name, slice, &answer);
    return true;
  });
  if (!read || !hasItems) return std::nullopt;
  return answer;
}

std::optional<FeedsAnswer> readFeed(std::string_view body) {
  FeedsAnswer answer;
  answer.items.emplace_back();
  const bool read = readObject(body, [&](const std::string& name, std::string_view slice) {
    readNextRequestMember(name, slice, &answer);
    return true;
  });
  // readObject() has checked the JSON: value() only drops the white space around it.
  const std::optional<std::string_view> item = json::value(body);
  if (!read || !item || !readFeedItem(*item, &answer.items.front())) return std::nullopt;
  return answer;
}

bool isOlderCursor(std::string_view cursor, std::string_view other) {
  const auto numberOf = [](std::string_view text) {
    const std::string_view number = text.substr(std::min(text.rfind('-'), text.size() - 1) + 1);
    const bool isDigits = number.find_first_not_of("0123456789") == std::string_view::npos;
    return isDigits && !number.empty() && number[0] != '0' ? number : std::string_view();
  };
  if (cursor.empty() || other.empty()) return false;
  const std::string_view number = numberOf(cursor);
  const std::string_view otherNumber = numberOf(other);
  if (number.empty() || otherNumber.empty()) return false;
  cursor.remove_suffix(number.size());
  other.remove_suffix(otherNumber.size());
  if (cursor != other) return false;
  return number.size() == otherNumber.size() ? number < otherNumber
                                             : number.size() < otherNumber.size();
}

std::optional<ThrowAnswer> readThrow(std::string_view body) {
  ThrowAnswer answer;
  bool hasState = false;
  const bool read = readObject(body, [&](const std::string& name, std::string_view slice) {
    if (name == "state") {
      const std::string state = json::string(slice).value_or("");
      for (const Outcome outcome : {Outcome::kDelivered, Outcome::kQueued, Outcome::kDuplicate}) {
        if (state != toString(outcome)) continue;
        answer.outcome = outcome;
        hasState = true;
      }
    }
    readRetry(name, slice, &answer.retry);
    return true;
  });
  if (!read || !hasState) return std::nullopt;
  return answer;
}

std::optional<Place> readPlace(std::string_view body) {
  uint64_t row = 0;
  uint64_t column = 0;
  uint64_t rows = 0;
  uint64_t columns = 0;
  const bool read = readNumbers(
      body, {{"row", &row}, {"column", &column}, {"rows", &rows}, {"columns", &columns}});
  const bool fits = row < rows && column < columns && std::max(rows, columns) <= UINT32_MAX;
  if (!read || !fits) return std::nullopt;
  return Place{static_cast<uint32_t>(row), static_cast<uint32_t>(column),
               static_cast<uint32_t>(rows), static_cast<uint32_t>(columns)};
}

std::optional<Status> readStatus(std::string_view body) {
  Status status;
  const bool read = readNumbers(body, {{"clients", &status.clients},
                                       {"thrown", &status.thrown},
                                       {"acked", &status.acked},
                                       {"waiting", &status.waiting},
                                       {"lost", &status.lost}});
  if (!read) return std::nullopt;
  // In a world of several servers: the clients of all of them.
  readObject(body, [&status](const std::string& name, std::string_view slice) {
    if (name == "world") readNumbers(slice, {{"clients", &status.clients}});
    return true;
  });
  status.json = std::string(*json::value(body));
  return status;
}

Problem readProblem(std::string_view body) {
  Problem problem;
  std::string title;
  readObject(body, [&](const std::string& name, std::string_view slice) {
    if (name == "type") problem.type = json::string(slice).value_or("");
    if (name == "detail") problem.detail = json::string(slice).value_or("");
    if (name == "title") title = json::string(slice).value_or("");
    return true;
  });
  if (problem.detail.empty()) problem.detail = title;
  return problem;
}

}  // namespace sprites
