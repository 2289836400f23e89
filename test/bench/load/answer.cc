#include "answer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace load {

using std::string;
using std::string_view;

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

void fail(const string& message) {
  string quoted;
  for (char c : message) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  std::printf("{\"event\":\"error\",\"message\":\"%s\"}\n", quoted.c_str());
  std::fflush(stdout);
  std::exit(1);
}

string_view header(string_view head, string_view name) {
  size_t line = head.find("\r\n");
  while (line != string_view::npos && line + 2 + name.size() <= head.size()) {
    line += 2;
    size_t end = std::min(head.find("\r\n", line), head.size());
    bool same = std::equal(name.begin(), name.end(), head.begin() + static_cast<long>(line),
                           [](char a, char b) { return a == lower(b); });
    if (same) {
      size_t value = std::min(head.find_first_not_of(' ', line + name.size()), end);
      return head.substr(value, end - value);
    }
    line = head.find("\r\n", line);
  }
  return {};
}

uint64_t numberAt(string_view text) {
  uint64_t number = 0;
  for (char c : text) {
    if (c < '0' || c > '9') break;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

bool readAnswer(string_view data, Answer* out) {
  size_t end = data.find("\r\n\r\n");
  if (end == string_view::npos) return false;
  if (data.substr(0, 9) != "HTTP/1.1 ") fail("not HTTP/1.1: " + string(data.substr(0, 60)));
  out->status = static_cast<int>(numberAt(data.substr(9)));
  out->head = data.substr(0, end);
  string_view length = header(out->head, "content-length:");
  if (length.empty() && out->status != 204 && out->status != 304) {
    fail("an answer without Content-Length: " + string(out->head));
  }
  out->length = end + 4 + numberAt(length);
  if (data.size() < out->length) return false;
  out->body = data.substr(end + 4, numberAt(length));
  return true;
}

}  // namespace load
