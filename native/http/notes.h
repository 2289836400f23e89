// What a door has to say of whom it refused and who joined, for a log that wants to know. It costs
// one comparison where nobody does, and at most kMost notes between two looks where somebody does:
// the others are only counted.
#ifndef SPRITES_NOTES_H_
#define SPRITES_NOTES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "base/address.h"
#include "http_reader.h"
#include "torus/pool.h"

namespace server {

enum class NoteKind : uint8_t {
  kOutcome,        // a hot request was refused, or a client joined: see route and outcome
  kNoProxyHeader,  // a connection did not begin with a PROXY header; closed
  kTooMany,        // a connection was one too many; 503, or closed
  kTimedOut,       // a request came too slowly; 408
  kSlowReader,     // nobody read the answer; closed
  kBadRequest,     // a request was not well formed; 400
  kHeadTooLarge,   // a head was too long; 431
  kExpectation,    // a request expected what nobody here does; 417
};

struct Note {
  NoteKind kind;
  Route route;
  Outcome outcome;
  Address peer;  // of the connection: behind a proxy that speaks HTTP, the proxy's
};

class Notes {
 public:
  static constexpr size_t kMost = 50;

  bool wanted() const { return wanted_; }
  void want() { wanted_ = true; }

  void add(const Note& note) {
    if (!wanted_) return;
    if (notes_.size() < kMost) {
      notes_.push_back(note);
    } else {
      ++omitted_;
    }
  }

  /** Adds what another has taken. */
  void add(const std::pair<std::vector<Note>, uint64_t>& taken) {
    for (const Note& note : taken.first) add(note);
    omitted_ += taken.second;
  }

  /** Whether there is something to take. */
  bool any() const { return !notes_.empty(); }

  /** Gives what there is, and how many were left out, and begins anew. */
  std::pair<std::vector<Note>, uint64_t> take() {
    return {std::exchange(notes_, {}), std::exchange(omitted_, 0)};
  }

 private:
  bool wanted_ = false;
  std::vector<Note> notes_;
  uint64_t omitted_ = 0;
};

}  // namespace server

#endif  // SPRITES_NOTES_H_
