#include "response.h"

#include <strings.h>

#include <charconv>
#include <cstring>

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

}  // namespace swarm
