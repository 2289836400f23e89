#include "proxies.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "characters.h"

namespace server {

// ---- Headers ------------------------------------------------------------------------------------

namespace {

/** Reads an address with or without a port, which follows the bracket or the only colon. */
bool readNode(std::string_view node, Address* out) {
  if (const size_t bracket = node.find(']'); bracket != node.npos) {
    node = node.substr(0, bracket + 1);
  } else if (const size_t colon = node.find(':');
             colon != node.npos && node.find(':', colon + 1) == node.npos) {
    node = node.substr(0, colon);
  }
  return Address::parse(node, out);
}

/** Reads one header value of RFC 7239, section 4, front to back. */
class ForwardedReader {
 public:
  explicit ForwardedReader(std::string_view value) : unread_(value) {}

  /**
   * Returns whether the value is well-formed. `node`: the address of the last element, or empty.
   */
  bool read(std::string* node) {
    for (;;) {
      node->clear();
      hasFor_ = false;
      if (!element(node)) return false;
      if (unread_.empty()) return true;
      unread_.remove_prefix(1);  // the comma
    }
  }

 private:
  /** Reads [ forwarded-pair ] *( ";" [ forwarded-pair ] ), up to a comma or the end. */
  bool element(std::string* node) {
    for (;;) {
      skipBlanks();
      if (!unread_.empty() && unread_.front() != ';' && unread_.front() != ',' && !pair(node)) {
        return false;
      }
      skipBlanks();
      if (unread_.empty() || unread_.front() == ',') return true;
      if (unread_.front() != ';') return false;
      unread_.remove_prefix(1);
    }
  }

  /** Reads token "=" ( token / quoted-string ). A second "for" in an element is an error. */
  bool pair(std::string* node) {
    const std::string_view name = token();
    if (name.empty() || unread_.empty() || unread_.front() != '=') return false;
    unread_.remove_prefix(1);
    std::string value;
    if (!unread_.empty() && unread_.front() == '"') {
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
    const auto end = std::find_if_not(unread_.begin(), unread_.end(), isToken);
    const std::string_view found = unread_.substr(0, end - unread_.begin());
    unread_.remove_prefix(found.size());
    return found;
  }

  bool quoted(std::string* value) {
    for (unread_.remove_prefix(1); !unread_.empty(); unread_.remove_prefix(1)) {
      if (unread_.front() == '"') {
        unread_.remove_prefix(1);
        return true;
      }
      if (unread_.front() == '\\') unread_.remove_prefix(1);
      if (unread_.empty()) return false;
      *value += unread_.front();
    }
    return false;
  }

  void skipBlanks() {
    while (!unread_.empty() && isBlank(unread_.front())) unread_.remove_prefix(1);
  }

  std::string_view unread_;
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

// ---- The PROXY protocol -------------------------------------------------------------------------

namespace {

/** Longest header, in bytes; version 2 allows 65,551 bytes, for unused extensions. */
constexpr size_t kProxyHeaderBytes = 536;

constexpr std::string_view kSignature1 = "PROXY ";
constexpr std::string_view kSignature2("\r\n\r\n\0\r\nQUIT\n", 12);

/** Longest line of version 1, with its CRLF (section 2.1). */
constexpr size_t kMaxLine = 107;

ProxyVerdict readVersion1(std::string_view data, ProxyHeader* out) {
  const size_t end = data.substr(0, kMaxLine).find("\r\n");
  if (end == data.npos) {
    return data.size() < kMaxLine ? ProxyVerdict::kIncomplete : ProxyVerdict::kBad;
  }
  *out = {end + 2, {}, false};
  std::string_view line = data.substr(kSignature1.size(), end - kSignature1.size());
  if (line.starts_with("UNKNOWN")) return ProxyVerdict::kComplete;
  if (!line.starts_with("TCP4 ") && !line.starts_with("TCP6 ")) return ProxyVerdict::kBad;
  line.remove_prefix(5);
  out->isKnown = Address::parse(line.substr(0, line.find(' ')), &out->client);
  return out->isKnown ? ProxyVerdict::kComplete : ProxyVerdict::kBad;
}

ProxyVerdict readVersion2(std::string_view data, ProxyHeader* out) {
  constexpr size_t kFixed = 16;
  if (data.size() < kFixed) return ProxyVerdict::kIncomplete;
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(data[at]); };
  const size_t rest = byte(14) << 8 | byte(15);
  if (byte(12) >> 4 != 2 || kFixed + rest > kProxyHeaderBytes) return ProxyVerdict::kBad;
  if (data.size() < kFixed + rest) return ProxyVerdict::kIncomplete;
  *out = {kFixed + rest, {}, false};
  const uint8_t command = byte(12) & 15;
  if (command == 0) return ProxyVerdict::kComplete;  // LOCAL: the proxy speaks for itself
  if (command != 1) return ProxyVerdict::kBad;
  const uint8_t family = byte(13) >> 4;
  if (family == 1 && rest >= 12) {
    in_addr v4;
    memcpy(&v4, data.data() + kFixed, sizeof v4);
    out->client = Address::from(v4);
    out->isKnown = true;
  } else if (family == 2 && rest >= 36) {
    in6_addr v6;
    memcpy(&v6, data.data() + kFixed, sizeof v6);
    out->client = Address::from(v6);
    out->isKnown = true;
  }
  return ProxyVerdict::kComplete;
}

bool mayStartWith(std::string_view signature, std::string_view data) {
  const size_t length = std::min(signature.size(), data.size());
  return data.substr(0, length) == signature.substr(0, length);
}

}  // namespace

ProxyVerdict readProxyHeader(const char* data, size_t length, ProxyHeader* out) {
  const std::string_view bytes(data, length);
  const bool mayBeVersion1 = mayStartWith(kSignature1, bytes);
  const bool mayBeVersion2 = mayStartWith(kSignature2, bytes);
  if (!mayBeVersion1 && !mayBeVersion2) return ProxyVerdict::kBad;
  if (mayBeVersion1 && length >= kSignature1.size()) return readVersion1(bytes, out);
  if (mayBeVersion2 && length >= kSignature2.size()) return readVersion2(bytes, out);
  return ProxyVerdict::kIncomplete;
}

}  // namespace server
