#include "answers.h"

#include <charconv>
#include <cstring>

namespace swarm {

namespace {

const char* skipSpace(const char* at, const char* end) {
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
  return at;
}

/** @param at just after the opening quote; @return just after the closing one, or nullptr */
const char* skipString(const char* at, const char* end) {
  while (at < end) {
    const auto* quote = static_cast<const char*>(memchr(at, '"', end - at));
    if (quote == nullptr) return nullptr;
    const char* back = quote;
    while (back > at && back[-1] == '\\') back--;
    at = quote + 1;
    if ((quote - back) % 2 == 0) return at;
  }
  return nullptr;
}

/** @return the end of the value that begins at `at`, or nullptr */
const char* skipValue(const char* at, const char* end) {
  if (at == end) return nullptr;
  if (*at == '"') return skipString(at + 1, end);
  if (*at != '{' && *at != '[') {
    while (at < end && *at != ',' && *at != '}' && *at != ']' && *at > ' ') at++;
    return at;
  }
  int depth = 0;
  while (at < end) {
    switch (*at++) {
      case '"':
        at = skipString(at, end);
        if (at == nullptr) return nullptr;
        break;
      case '{':
      case '[':
        depth++;
        break;
      case '}':
      case ']':
        if (--depth == 0) return at;
        break;
    }
  }
  return nullptr;
}

bool readArrival(std::string_view object, Arrival* arrival) {
  Members members(object);
  std::string_view name, value;
  bool hasSeq = false;
  while (members.next(&name, &value)) {
    if (name == "seq") {
      hasSeq = toNumber(value, &arrival->seq);
    } else if (name == "from") {
      arrival->from = unquote(value);
    } else if (name == "sprite") {
      arrival->sprite = value;
    }
  }
  return members.ok() && hasSeq && !arrival->from.empty() && arrival->sprite.starts_with('{');
}

bool readArrivals(std::string_view array, std::vector<Arrival>* arrivals) {
  if (!array.starts_with('[')) return false;
  const char* at = array.data() + 1;
  const char* end = array.data() + array.size() - 1;
  at = skipSpace(at, end);
  while (at < end) {
    const char* stop = skipValue(at, end);
    if (stop == nullptr) return false;
    Arrival& arrival = arrivals->emplace_back();
    if (!readArrival(std::string_view(at, stop - at), &arrival)) return false;
    at = skipSpace(stop, end);
    if (at < end && *at++ != ',') return false;
    at = skipSpace(at, end);
  }
  return true;
}

std::string_view member(std::string_view body, std::string_view wanted) {
  Members members(body);
  std::string_view name, value;
  while (members.next(&name, &value)) {
    if (name == wanted) return unquote(value);
  }
  return {};
}

}  // namespace

Members::Members(std::string_view object)
    : at_(object.data()), end_(object.data() + object.size()) {
  at_ = skipSpace(at_, end_);
  if (at_ == end_ || *at_ != '{') {
    ok_ = false;
    at_ = end_;
    return;
  }
  at_++;
}

bool Members::stop(bool ok) {
  ok_ = ok;
  at_ = end_;
  return false;
}

bool Members::next(std::string_view* name, std::string_view* value) {
  if (at_ == end_) return false;
  at_ = skipSpace(at_, end_);
  if (at_ < end_ && *at_ == '}') return stop(true);
  if (!first_) {
    if (at_ == end_ || *at_++ != ',') return stop(false);
    at_ = skipSpace(at_, end_);
  }
  first_ = false;
  if (at_ == end_ || *at_ != '"') return stop(false);
  const char* start = at_ + 1;
  at_ = skipString(start, end_);
  if (at_ == nullptr) return stop(false);
  *name = std::string_view(start, at_ - start - 1);
  at_ = skipSpace(at_, end_);
  if (at_ == end_ || *at_++ != ':') return stop(false);
  start = skipSpace(at_, end_);
  at_ = skipValue(start, end_);
  if (at_ == nullptr || at_ == start) return stop(false);
  *value = std::string_view(start, at_ - start);
  return true;
}

std::string_view unquote(std::string_view value) {
  if (value.size() < 2 || value.front() != '"') return {};
  return value.substr(1, value.size() - 2);
}

bool toNumber(std::string_view value, uint64_t* number) {
  const char* end = value.data() + value.size();
  const auto [stop, code] = std::from_chars(value.data(), end, *number);
  return code == std::errc() && stop == end;
}

bool readPollAnswer(std::string_view body, PollAnswer* answer) {
  answer->seq = 0;
  answer->retry = 0;
  answer->superseded = false;
  answer->arrivals.clear();
  Members members(body);
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
  Members members(body);
  std::string_view name, value;
  while (members.next(&name, &value)) {
    if (name == "id") {
      answer->id = unquote(value);
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
