// Where a request comes from, by the word of the proxy in front of the server: in a header of each
// request, or by the PROXY protocol, before the client's own bytes. The operator says which of them
// that proxy writes: any other is the client's own, and hearsay.
#ifndef SPRITES_PROXIES_H_
#define SPRITES_PROXIES_H_

#include <cstddef>
#include <string_view>

#include "base/address.h"

namespace server {

// ---- Headers

// Both take the value of one header line, the last of its name, and read its last element, which
// the proxy has written; what is before it is what the proxy was told. They return false, and leave
// `out` as it is, when there is no address to be read.

/** Reads X-Forwarded-For: addresses parted by commas, each perhaps with a port. */
bool readForwardedFor(std::string_view value, Address* out);

/**
 * Reads Forwarded (RFC 7239): `for=192.0.2.60;proto=http, for="[2001:db8::1]:443"`. One that is not
 * well-formed as a whole is none: a quote that a client opens must not swallow what the proxy adds.
 */
bool readForwarded(std::string_view value, Address* out);

// ---- The PROXY protocol, versions 1 and 2 (HAProxy's proxy-protocol.txt)

enum class ProxyVerdict { kIncomplete, kRead, kBad };

/**
 * Reads the header at the start of `data`. kRead: `length` bytes of it are to be skipped, and
 * `client` is the client's address if `known`; it is not for the proxy's own health checks.
 */
struct ProxyHeader {
  size_t length;
  Address client;
  bool known;
};

ProxyVerdict readProxyHeader(const char* data, size_t length, ProxyHeader* out);

}  // namespace server

#endif  // SPRITES_PROXIES_H_
