// The PROXY protocol, versions 1 and 2 (HAProxy's proxy-protocol.txt): what a trusted proxy says of
// the client before the client's own bytes.
#ifndef SPRITES_PROXY_PROTOCOL_H_
#define SPRITES_PROXY_PROTOCOL_H_

#include <cstddef>

#include "base/address.h"

namespace server {

/** The longest header that is read; version 2 allows 65,551 bytes for extensions that are not in
 * use. */
constexpr size_t kProxyHeaderBytes = 536;

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

#endif  // SPRITES_PROXY_PROTOCOL_H_
