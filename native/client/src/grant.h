// The grant of a client: see lib/client/README.md. For the engine's thread only.
#ifndef SPRITES_CLIENT_GRANT_H_
#define SPRITES_CLIENT_GRANT_H_

#include <optional>
#include <string>

#include "answers.h"
#include "sprites/connection.h"

namespace sprites {

/** The grant that a client sends with its requests, from the program's callback. */
class Grant {
 public:
  /** @param callback  may be empty: then no grant is ever sent */
  explicit Grant(GrantCallback callback) : callback_(std::move(callback)) {}

  explicit operator bool() const { return static_cast<bool>(callback_); }

  /**
   * Asks the program for a grant if there is none, or if it ends soon.
   *
   * @return the header line to send, empty without a grant; std::nullopt if the program has none
   */
  std::optional<std::string> header();

  /** Notes that the server has accepted the grant. */
  void markAccepted() { wasAccepted_ = true; }

  /**
   * Drops the grant if the server has refused it.
   *
   * @return whether to retry at once with a new grant: the refused one had been accepted before
   */
  bool dropIfRefused(const Problem& problem);

 private:
  const GrantCallback callback_;
  std::string token_;   // empty: none
  double renewAt_ = 0;  // seconds since 1970
  bool wasAccepted_ = false;
};

/** Returns the reason for being offline without a grant. */
inline Reason noGrantReason() { return {"no-grant", "the program has given no grant"}; }

}  // namespace sprites

#endif  // SPRITES_CLIENT_GRANT_H_
