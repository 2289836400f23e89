#include "http.h"

#include <strings.h>

#include <algorithm>
#include <cstring>

#include "process.h"

namespace swarm {

namespace {

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

/** Reads one line of a head. @return false for an invalid value */
bool readLine(std::string_view line, Head* head) {
  std::string_view value;
  switch (line.front() | 0x20) {
    case 'c':
      if (header(line, "content-length:", &value)) return readNumber(value, &head->contentLength);
      if (header(line, "content-type:", &value)) {
        head->isEventStream = value.starts_with("text/event-stream");
      } else if (header(line, "connection:", &value)) {
        head->willClose = value.size() == 5 && strncasecmp(value.data(), "close", 5) == 0;
      }
      return true;
    case 'e':
      header(line, "etag:", &head->etag);
      return true;
    case 'l':
      header(line, "last-modified:", &head->lastModified);
      return true;
    case 'r':
      if (header(line, "retry-after:", &value)) {
        uint64_t seconds;
        // A date counts as one second.
        head->retryAfter = readNumber(value, &seconds) ? std::min<uint64_t>(seconds, 3600) : 1;
      }
      return true;
    case 't':
      head->isChunked = head->isChunked || header(line, "transfer-encoding:", &value);
      return true;
    default:
      return true;
  }
}

}  // namespace

ReadState readHead(std::string_view bytes, Head* head) {
  const auto* end = static_cast<const char*>(memmem(bytes.data(), bytes.size(), "\r\n\r\n", 4));
  if (end == nullptr) return bytes.size() > kLongestHead ? ReadState::kMalformed : ReadState::kMore;
  *head = Head();
  head->headBytes = end - bytes.data() + 4;
  std::string_view lines = bytes.substr(0, head->headBytes - 2);
  uint64_t status;
  if (lines.size() < 14 || !lines.starts_with("HTTP/1.1 ") ||
      !readNumber(lines.substr(9, 3), &status)) {
    return ReadState::kMalformed;
  }
  head->status = static_cast<int>(status);
  lines.remove_prefix(lines.find("\r\n") + 2);
  while (!lines.empty()) {
    const size_t lineEnd = lines.find("\r\n");
    if (lineEnd == 0 || !readLine(lines.substr(0, lineEnd), head)) return ReadState::kMalformed;
    lines.remove_prefix(lineEnd + 2);
  }
  return ReadState::kDone;
}

ReadState readResponse(std::string_view bytes, Response* response) {
  const ReadState state = readHead(bytes, response);
  if (state != ReadState::kDone) return state;
  if (response->status < 200 || response->isChunked) return ReadState::kMalformed;
  if (response->status == 204 && response->contentLength == kNoContentLength)
    response->contentLength = 0;
  if (response->contentLength > kLongestResponse) return ReadState::kMalformed;
  response->body = bytes.substr(response->headBytes);
  if (response->body.size() < response->contentLength) return ReadState::kMore;
  return response->body.size() > response->contentLength ? ReadState::kMalformed : ReadState::kDone;
}

}  // namespace swarm
