// Refusals and joins of a door, for a log at the level `debug`. At another level an event costs one
// comparison. Otherwise at most kMaxEvents are kept between two calls of `takeAll`; further ones
// are only counted.
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
  kOutcome,        // a request was refused, or a client joined: see `route` and `outcome`
  kNoProxyHeader,  // a connection did not begin with a PROXY header; closed
  kSlowReader,     // the answer was not read; closed
};

struct LogEvent {
  LogEventKind kind;
  Route route;
  Outcome outcome;
  Address address;  // of the connection: behind a proxy that speaks HTTP, the proxy's
};

class LogEvents {
 public:
  static constexpr size_t kMaxEvents = 50;

  bool isEnabled() const { return isEnabled_; }
  void enable() { isEnabled_ = true; }

  void add(const LogEvent& event) {
    if (!isEnabled_) return;
    if (events_.size() < kMaxEvents) {
      events_.push_back(event);
    } else {
      ++omitted_;
    }
  }

  /** Adds the events taken from another object. */
  void add(const std::pair<std::vector<LogEvent>, uint64_t>& others) {
    for (const LogEvent& event : others.first) add(event);
    omitted_ += others.second;
  }

  /** Returns and removes the events, and the number of those left out. */
  std::pair<std::vector<LogEvent>, uint64_t> takeAll() {
    return {std::exchange(events_, {}), std::exchange(omitted_, 0)};
  }

 private:
  bool isEnabled_ = false;
  std::vector<LogEvent> events_;
  uint64_t omitted_ = 0;
};

}  // namespace server

#endif  // SPRITES_LOG_EVENTS_H_
