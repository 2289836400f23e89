// The client's address according to the proxy in front of the server: from a header of each
// request, or from the PROXY protocol before the client's own bytes. The operator says which of
// these the proxy writes. The client itself may have written the others, so they are ignored.
#ifndef SPRITES_PROXIES_H_
#define SPRITES_PROXIES_H_

#include <cstddef>
#include <string_view>

#include "base/address.h"

namespace server {

// ---- Headers

// Both functions read the value of the last header line of a name, and of that the last element,
// which the proxy has written; earlier elements are only claims. Without an address they return
// false and leave `out` as it is.

/** Reads X-Forwarded-For: addresses separated by commas, each with or without a port. */
bool readForwardedFor(std::string_view value, Address* out);

/**
 * Reads Forwarded (RFC 7239): `for=192.0.2.60;proto=http, for="[2001:db8::1]:443"`. The whole value
 * must be well-formed: a quote that a client opens must not swallow the proxy's part.
 */
bool readForwarded(std::string_view value, Address* out);

// ---- The PROXY protocol, versions 1 and 2 (HAProxy's proxy-protocol.txt)

enum class ProxyVerdict { kIncomplete, kComplete, kBad };

/**
 * The header at the start of a connection: `length` bytes to skip, and the address of the client if
 * `isKnown`. It is not known in the proxy's own health checks.
 */
struct ProxyHeader {
  size_t length;
  Address client;
  bool isKnown;
};

ProxyVerdict readProxyHeader(const char* data, size_t length, ProxyHeader* out);

}  // namespace server

#endif  // SPRITES_PROXIES_H_
