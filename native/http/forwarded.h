// Where a request comes from, by the word of the proxy in front of the server. The operator says
// which header that proxy writes: any other is the client's own, and hearsay.
#ifndef SPRITES_FORWARDED_H_
#define SPRITES_FORWARDED_H_

#include <string_view>

#include "base/address.h"

namespace server {

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

}  // namespace server

#endif  // SPRITES_FORWARDED_H_
