// Options and the callback for grants that Client and Feeds share.
#ifndef SPRITES_CONNECTION_H_
#define SPRITES_CONNECTION_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sprites {

/** How to reach the server. */
struct ConnectionOptions {
  /** URL of the server: http or https, host, port, and optionally a path before the routes. */
  std::string server = "http://127.0.0.1:8080";

  /** Called with a line for each ended request and each change of state; ids are shortened. */
  std::function<void(const std::string& line)> onLog;

  /** URL of a proxy; "": none; not set: from the environment, as libcurl reads it. */
  std::optional<std::string> proxy;

  /** Additional header lines of each request, such as "Authorization: Bearer x". */
  std::vector<std::string> headers;

  /** Time limit for making a connection, with name lookup and TLS. */
  std::chrono::milliseconds connectTimeout{10000};

  /** Longest wait between two tries for contact; the first waits are shorter. At least 100 ms; more
   * than 15 s counts as 15 s. */
  std::chrono::milliseconds maxBackoff{15000};

  /** PEM file of the trusted certificate authorities for https; empty: the system's. */
  std::string caFile;
};

/**
 * Returns the grant to send: a JWT (RFC 7519) from the application that says what the client may
 * do, and until when. An empty grant: send none now. std::nullopt: the program has no grant; the
 * client then is offline with "no-grant" and asks again. The client calls it before the first
 * request that takes a grant, again before the grant ends (30 s, or a quarter of a short life), and
 * when the server has refused the grant. As every callback it must not throw, and delays the client
 * while it runs. A program with its own event loop returns std::nullopt until it has a grant, and
 * then calls tryNow().
 */
using GrantCallback = std::function<std::optional<std::string>()>;

}  // namespace sprites

#endif  // SPRITES_CONNECTION_H_
