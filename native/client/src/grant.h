// The grant of a client, as lib/client/README.md says it. For the engine's thread.
#ifndef SPRITES_CLIENT_GRANT_H_
#define SPRITES_CLIENT_GRANT_H_

#include <optional>
#include <string>

#include "answers.h"
#include "sprites/connection.h"

namespace sprites {

/** What goes with a client's requests; the program gives it. */
class Grant {
 public:
  /** @param give  may be empty: then there is no grant, ever */
  explicit Grant(GrantCallback give) : give_(std::move(give)) {}

  explicit operator bool() const { return static_cast<bool>(give_); }

  /**
   * Asks the program where it is time.
   *
   * @return the header line to send, empty where there is none; nothing where the program fails
   */
  std::optional<std::string> header();

  /** The server has taken it. */
  void accepted() { held_ = true; }

  /**
   * The server has refused a request.
   *
   * @return whether to ask again at once, with a new one: this one has been good before
   */
  bool refused(const Problem& problem);

 private:
  const GrantCallback give_;
  std::string token_;   // empty: none
  double renewAt_ = 0;  // seconds since 1970
  bool held_ = false;
};

/** Why there is no contact where a grant is needed and can't be had. */
inline Why noGrant() { return {"no-grant", "the program has given no grant"}; }

}  // namespace sprites

#endif  // SPRITES_CLIENT_GRANT_H_
