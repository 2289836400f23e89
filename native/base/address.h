// A client's address as the limits count it: IPv4 whole; IPv6 by its /64, the usual network of one
// customer (RFC 6177), so that no customer counts as 2^64 addresses.
#ifndef SPRITES_ADDRESS_H_
#define SPRITES_ADDRESS_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace server {

struct Address {
  uint64_t network = 0;  // IPv6: the first 8 bytes; IPv4: 0
  uint32_t host = 0;     // IPv4: the address; IPv6: 0
  uint32_t unused = 0;   // instead of padding: every byte that is sent between threads has a value

  auto operator<=>(const Address&) const = default;

  static Address from(const in_addr& v4) { return {0, ntohl(v4.s_addr)}; }

  static Address from(const in6_addr& v6) {
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      in_addr v4;
      memcpy(&v4, v6.s6_addr + 12, sizeof v4);
      return from(v4);
    }
    Address address;
    memcpy(&address.network, v6.s6_addr, sizeof address.network);
    // The unspecified and loopback networks must not look like IPv4's.
    if (address.network == 0) address.network = UINT64_MAX;
    return address;
  }

  static Address from(const sockaddr_storage& name) {
    if (name.ss_family == AF_INET) return from(reinterpret_cast<const sockaddr_in&>(name).sin_addr);
    if (name.ss_family == AF_INET6) {
      return from(reinterpret_cast<const sockaddr_in6&>(name).sin6_addr);
    }
    return {};
  }

  /**
   * Reads an address without a port, IPv6 with or without brackets. Returns false for any other
   * text.
   */
  static bool parse(std::string_view text, Address* out) {
    const bool isBracketed = text.size() >= 2 && text.front() == '[' && text.back() == ']';
    if (isBracketed) text = text.substr(1, text.size() - 2);
    char terminated[INET6_ADDRSTRLEN];
    if (text.size() >= sizeof terminated) return false;
    if (text.find('\0') != text.npos) return false;  // inet_pton would stop there
    memcpy(terminated, text.data(), text.size());
    terminated[text.size()] = '\0';
    in_addr v4;
    in6_addr v6;
    if (!isBracketed && inet_pton(AF_INET, terminated, &v4) == 1) {
      *out = from(v4);
    } else if (inet_pton(AF_INET6, terminated, &v6) == 1) {
      *out = from(v6);
    } else {
      return false;
    }
    return true;
  }

  /** The address in the form that `parse` accepts: IPv4, or the first address of an IPv6 network.
   */
  std::string text() const {
    char out[INET6_ADDRSTRLEN];
    if (network == 0) {
      const in_addr v4 = {htonl(host)};
      return inet_ntop(AF_INET, &v4, out, sizeof out);
    }
    in6_addr v6 = {};
    if (network != UINT64_MAX) memcpy(v6.s6_addr, &network, sizeof network);
    return inet_ntop(AF_INET6, &v6, out, sizeof out);
  }
};

}  // namespace server

#endif  // SPRITES_ADDRESS_H_
