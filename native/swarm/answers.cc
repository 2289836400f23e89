#include "answers.h"

#include <strings.h>

#include <charconv>
#include <cstring>

#include "../client/src/json.h"

namespace swarm {

namespace {

constexpr size_t kLongestHead = 8192;
constexpr uint64_t kNoLength = UINT64_MAX;

/** @return whether `line` is the header `name` (lower case, with the colon), its value trimmed */
bool header(std::string_view line, std::string_view name, std::string_view* value) {
  if (line.size() < name.size() || strncasecmp(line.data(), name.data(), name.size()) != 0) {
    return false;
  }
  line.remove_prefix(name.size());
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  *value = line;
  return true;
}

bool parseNumber(std::string_view text, uint64_t* number) {
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, *number);
  return code == std::errc() && stop == end;
}

bool readLine(std::string_view line, Response* response, uint64_t* length) {
  std::string_view value;
  switch (line.front() | 0x20) {
    case 'c':
      if (header(line, "content-length:", &value)) return parseNumber(value, length);
      if (header(line, "connection:", &value)) {
        response->close = value.size() == 5 && strncasecmp(value.data(), "close", 5) == 0;
      }
      return true;
    case 'e':
      header(line, "etag:", &response->etag);
      return true;
    case 'l':
      header(line, "last-modified:", &response->lastModified);
      return true;
    case 'r':
      if (header(line, "retry-after:", &value)) {
        uint64_t seconds;
        // A date is as good as "later".
        response->retryAfter = parseNumber(value, &seconds) && seconds < 3600 ? seconds : 1;
      }
      return true;
    case 't':
      return !header(line, "transfer-encoding:", &value);
    default:
      return true;
  }
}

}  // namespace

ReadState readResponse(std::string_view bytes, Response* response) {
  const auto* end = static_cast<const char*>(memmem(bytes.data(), bytes.size(), "\r\n\r\n", 4));
  if (end == nullptr) return bytes.size() > kLongestHead ? ReadState::kBad : ReadState::kMore;
  const size_t headLength = end - bytes.data() + 4;
  std::string_view head = bytes.substr(0, headLength - 2);
  if (head.size() < 14 || !head.starts_with("HTTP/1.1 ")) return ReadState::kBad;
  *response = Response();
  uint64_t status;
  if (!parseNumber(head.substr(9, 3), &status) || status < 200) return ReadState::kBad;
  response->status = static_cast<int>(status);
  uint64_t length = status == 204 ? 0 : kNoLength;
  head.remove_prefix(head.find("\r\n") + 2);
  while (!head.empty()) {
    const size_t lineEnd = head.find("\r\n");
    if (lineEnd == 0 || lineEnd == std::string_view::npos) return ReadState::kBad;
    if (!readLine(head.substr(0, lineEnd), response, &length)) return ReadState::kBad;
    head.remove_prefix(lineEnd + 2);
  }
  if (length > kLongestResponse) return ReadState::kBad;
  if (bytes.size() - headLength < length) return ReadState::kMore;
  if (bytes.size() - headLength > length) return ReadState::kBad;
  response->body = bytes.substr(headLength, length);
  return ReadState::kDone;
}

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
