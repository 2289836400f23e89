// Refusals and joins of a door, for a log at the level `debug`. At another level an event costs one
// comparison. Otherwise at most kMost are kept between two calls of `take`; further ones are only
// counted.
#ifndef SPRITES_LOG_EVENTS_H_
#define SPRITES_LOG_EVENTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "base/address.h"
#include "http_reader.h"
#include "torus/pool.h"

namespace server {

enum class LogEventKind : uint8_t {
  kOutcome,        // a hot request was refused, or a client joined: see `route` and `outcome`
  kNoProxyHeader,  // a connection did not begin with a PROXY header; closed
  kTooMany,        // too many connections; 503, or closed
  kTimedOut,       // a request came too slowly; 408
  kSlowReader,     // the answer was not read; closed
  kBadRequest,     // a request was not well formed; 400
  kHeadTooLarge,   // a head was too long; 431
  kExpectation,    // a request had an unknown expectation; 417
};

struct LogEvent {
  LogEventKind kind;
  Route route;
  Outcome outcome;
  Address address;  // of the connection: behind a proxy that speaks HTTP, the proxy's
};

class LogEvents {
 public:
  static constexpr size_t kMost = 50;

  bool wanted() const { return wanted_; }
  void want() { wanted_ = true; }

  void add(const LogEvent& event) {
    if (!wanted_) return;
    if (events_.size() < kMost) {
      events_.push_back(event);
    } else {
      ++omitted_;
    }
  }

  /** Adds the events taken from another object. */
  void add(const std::pair<std::vector<LogEvent>, uint64_t>& taken) {
    for (const LogEvent& event : taken.first) add(event);
    omitted_ += taken.second;
  }

  /** Whether there are events. */
  bool any() const { return !events_.empty(); }

  /** Returns and removes the events, and the number of those left out. */
  std::pair<std::vector<LogEvent>, uint64_t> take() {
    return {std::exchange(events_, {}), std::exchange(omitted_, 0)};
  }

 private:
  bool wanted_ = false;
  std::vector<LogEvent> events_;
  uint64_t omitted_ = 0;
};

}  // namespace server

#endif  // SPRITES_LOG_EVENTS_H_
