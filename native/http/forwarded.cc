#include "forwarded.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "characters.h"

namespace server {

namespace {

/** An address with or without a port, which stands behind the bracket or behind the only colon. */
bool readNode(std::string_view node, Address* out) {
  if (const size_t bracket = node.find(']'); bracket != node.npos) {
    node = node.substr(0, bracket + 1);
  } else if (const size_t colon = node.find(':');
             colon != node.npos && node.find(':', colon + 1) == node.npos) {
    node = node.substr(0, colon);
  }
  return Address::read(node, out);
}

/** Reads one header value of RFC 7239, section 4, front to back. */
class ForwardedReader {
 public:
  explicit ForwardedReader(std::string_view value) : left_(value) {}

  /** Whether the whole is well-formed; then `node` is the last element's, empty when it has none.
   */
  bool read(std::string* node) {
    for (;;) {
      node->clear();
      hasFor_ = false;
      if (!element(node)) return false;
      if (left_.empty()) return true;
      left_.remove_prefix(1);  // the comma
    }
  }

 private:
  /** [ forwarded-pair ] *( ";" [ forwarded-pair ] ), up to a comma or the end. */
  bool element(std::string* node) {
    for (;;) {
      skipBlanks();
      if (!left_.empty() && left_.front() != ';' && left_.front() != ',' && !pair(node)) {
        return false;
      }
      skipBlanks();
      if (left_.empty() || left_.front() == ',') return true;
      if (left_.front() != ';') return false;
      left_.remove_prefix(1);
    }
  }

  /** token "=" ( token / quoted-string ). A second "for" in an element is an error. */
  bool pair(std::string* node) {
    const std::string_view name = token();
    if (name.empty() || left_.empty() || left_.front() != '=') return false;
    left_.remove_prefix(1);
    std::string value;
    if (!left_.empty() && left_.front() == '"') {
      if (!quoted(&value)) return false;
    } else {
      value = token();
      if (value.empty()) return false;
    }
    if (!isWord(name, "for")) return true;
    if (hasFor_) return false;
    hasFor_ = true;
    *node = std::move(value);
    return true;
  }

  std::string_view token() {
    const auto end = std::find_if_not(left_.begin(), left_.end(), isToken);
    const std::string_view found = left_.substr(0, end - left_.begin());
    left_.remove_prefix(found.size());
    return found;
  }

  bool quoted(std::string* value) {
    for (left_.remove_prefix(1); !left_.empty(); left_.remove_prefix(1)) {
      if (left_.front() == '"') {
        left_.remove_prefix(1);
        return true;
      }
      if (left_.front() == '\\') left_.remove_prefix(1);
      if (left_.empty()) return false;
      *value += left_.front();
    }
    return false;
  }

  void skipBlanks() {
    while (!left_.empty() && isBlank(left_.front())) left_.remove_prefix(1);
  }

  std::string_view left_;
  bool hasFor_ = false;
};

}  // namespace

bool readForwardedFor(std::string_view value, Address* out) {
  value.remove_prefix(value.rfind(',') + 1);
  return readNode(trimmed(value), out);
}

bool readForwarded(std::string_view value, Address* out) {
  std::string node;
  return ForwardedReader(value).read(&node) && readNode(node, out);
}

}  // namespace server
