// The grant that a client sends: a JWT (RFC 7519) of the application's own, which says what the
// client may do, and until when.
#ifndef SPRITES_GRANT_H_
#define SPRITES_GRANT_H_

#include <functional>
#include <optional>
#include <string>

namespace sprites {

/**
 * Gives the grant to send: an empty one to send none now; nothing where none can be had, and then
 * the client is offline with "no-grant" and asks again. It is called before the first request that
 * takes a grant, again before the grant ends (30 s, or a quarter of a short life), and when the
 * server has refused it. It is a callback as all others: what it needs long for delays the client,
 * and it must not throw. A program with a loop of its own answers nothing until it has a grant, and
 * then calls tryNow().
 */
using GrantCallback = std::function<std::optional<std::string>()>;

}  // namespace sprites

#endif  // SPRITES_GRANT_H_
