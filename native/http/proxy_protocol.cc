#include "proxy_protocol.h"

#include <algorithm>
#include <string_view>

namespace server {

namespace {

constexpr std::string_view kSignature1 = "PROXY ";
constexpr std::string_view kSignature2("\r\n\r\n\0\r\nQUIT\n", 12);

/** Version 1's longest line, with its end (section 2.1). */
constexpr size_t kLongestLine = 107;

ProxyVerdict readText(std::string_view data, ProxyHeader* out) {
  const size_t end = data.substr(0, kLongestLine).find("\r\n");
  if (end == data.npos) {
    return data.size() < kLongestLine ? ProxyVerdict::kIncomplete : ProxyVerdict::kBad;
  }
  *out = {end + 2, {}, false};
  std::string_view line = data.substr(kSignature1.size(), end - kSignature1.size());
  if (line.starts_with("UNKNOWN")) return ProxyVerdict::kRead;
  if (!line.starts_with("TCP4 ") && !line.starts_with("TCP6 ")) return ProxyVerdict::kBad;
  line.remove_prefix(5);
  out->known = Address::read(line.substr(0, line.find(' ')), &out->client);
  return out->known ? ProxyVerdict::kRead : ProxyVerdict::kBad;
}

ProxyVerdict readBinary(std::string_view data, ProxyHeader* out) {
  constexpr size_t kFixed = 16;
  if (data.size() < kFixed) return ProxyVerdict::kIncomplete;
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(data[at]); };
  const size_t rest = byte(14) << 8 | byte(15);
  if (byte(12) >> 4 != 2 || kFixed + rest > kProxyHeaderBytes) return ProxyVerdict::kBad;
  if (data.size() < kFixed + rest) return ProxyVerdict::kIncomplete;
  *out = {kFixed + rest, {}, false};
  const uint8_t command = byte(12) & 15;
  if (command == 0) return ProxyVerdict::kRead;  // LOCAL: the proxy speaks for itself
  if (command != 1) return ProxyVerdict::kBad;
  const uint8_t family = byte(13) >> 4;
  if (family == 1 && rest >= 12) {
    in_addr v4;
    memcpy(&v4, data.data() + kFixed, sizeof v4);
    out->client = Address::of(v4);
    out->known = true;
  } else if (family == 2 && rest >= 36) {
    in6_addr v6;
    memcpy(&v6, data.data() + kFixed, sizeof v6);
    out->client = Address::of(v6);
    out->known = true;
  }
  return ProxyVerdict::kRead;
}

bool mayBe(std::string_view signature, std::string_view data) {
  const size_t length = std::min(signature.size(), data.size());
  return data.substr(0, length) == signature.substr(0, length);
}

}  // namespace

ProxyVerdict readProxyHeader(const char* data, size_t length, ProxyHeader* out) {
  const std::string_view bytes(data, length);
  const bool one = mayBe(kSignature1, bytes);
  const bool two = mayBe(kSignature2, bytes);
  if (!one && !two) return ProxyVerdict::kBad;
  if (one && length >= kSignature1.size()) return readText(bytes, out);
  if (two && length >= kSignature2.size()) return readBinary(bytes, out);
  return ProxyVerdict::kIncomplete;
}

}  // namespace server
