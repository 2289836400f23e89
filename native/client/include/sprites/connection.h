// What Client and Feeds have in common: how they reach the server, and the grant that they send.
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
  /** The server: http or https, host, port and perhaps a path before the routes. */
  std::string server = "http://127.0.0.1:8080";

  /** One line for each request that ended and each change of state; no id is in it whole. */
  std::function<void(const std::string& line)> onLog;

  /** The proxy to use, a URL; "": none; not set: what the environment says, as libcurl reads it. */
  std::optional<std::string> proxy;

  /** More header lines for each request, such as "Authorization: Bearer x". */
  std::vector<std::string> headers;

  /** For a connection to be made, name look-up and TLS included. */
  std::chrono::milliseconds connectTimeout{10000};

  /** The longest wait between two tries for contact; the first are shorter. At least 100 ms. */
  std::chrono::milliseconds maxBackoff{15000};

  /** PEM file of the authorities to trust for https; empty: the system's. */
  std::string caFile;
};

/**
 * Gives the grant to send, a JWT (RFC 7519) of the application's own, which says what the client
 * may do, and until when: an empty one to send none now; nothing where none can be had, and then
 * the client is offline with "no-grant" and asks again. It is called before the first request that
 * takes a grant, again before the grant ends (30 s, or a quarter of a short life), and when the
 * server has refused it. It is a callback as all others: what it needs long for delays the client,
 * and it must not throw. A program with a loop of its own answers nothing until it has a grant, and
 * then calls tryNow().
 */
using GrantCallback = std::function<std::optional<std::string>()>;

}  // namespace sprites

#endif  // SPRITES_CONNECTION_H_
