// The requests that are not hot, on their way to JavaScript: what has come of those whose body is
// not whole, and the order in which those that are whole are handled.
//
//   head ─▶ arrival ──body, by its length or in chunks──▶ whole ─┬─ in its share of the turn ─▶
//   JavaScript
//                                                                └─ queue ─▶ a later turn's share
//
//   queue    address 7 ─▶ a, b, c
//            address 9 ─▶ x            a, x, b, c
//
// Addresses take turns: one with thousands of connections does not stand before the others. The hot
// requests have their turns in between.
//
// Cost: memory only while a request is arriving or waits, held against its address. Rejected: a
// field of each connection (most never need one).
#ifndef SPRITES_COLD_REQUESTS_H_
#define SPRITES_COLD_REQUESTS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/address.h"
#include "chunks.h"
#include "request_handler.h"
#include "request_reader.h"

namespace server {

/** What there is of a request's body. */
struct Body {
  enum class State : uint8_t {
    kWhole,
    kTooLong,  // it is longer than it may be, and not read
    kAwaited,  // the client sends it when it is asked to (Expect: 100-continue)
  };
  State state;
  std::string_view bytes = {};
};

/** One request's bytes. */
struct Arrival {
  std::string head;
  std::string body;
  Framing framing = Framing::kNone;
  uint64_t length = 0;  // of the body, where its framing says so
  uint32_t most = 0;    // bytes that the body may have
  Chunks chunks;
  Body::State state = Body::State::kWhole;  // of one that waits for its turn
  uint64_t held = 0;                        // bytes counted for it

  /** Takes from `*data`, which it moves on, what belongs to the body. */
  Chunks::State take(std::string_view* data) {
    if (framing == Framing::kChunked) return chunks.take(data, most, &body);
    if (body.empty()) body.reserve(length);
    const size_t more = std::min<uint64_t>(length - body.size(), data->size());
    body.append(data->data(), more);
    data->remove_prefix(more);
    return body.size() == length ? Chunks::State::kWhole : Chunks::State::kMore;
  }
};

/** Tickets in the order in which they come, address by address. */
class FairTickets {
 public:
  bool empty() const { return order_.empty(); }

  /** Addresses that have one. */
  size_t addresses() const { return order_.size(); }

  void add(const Address& address, Ticket ticket) {
    auto& line = lines_[keyOf(address)];
    if (line.empty()) order_.push_back(keyOf(address));
    line.push_back(ticket);
  }

  /**
   * Forgets those that `isGone` says of, at a look at each: now and then, so that connections that
   * come and go do not leave more of them than there is time for.
   */
  template <typename IsGone>
  void forget(IsGone&& isGone) {
    std::erase_if(order_, [&](const std::string& address) {
      const auto line = lines_.find(address);
      std::erase_if(line->second, isGone);
      if (!line->second.empty()) return false;
      lines_.erase(line);
      return true;
    });
  }

  /** The next one; there is one. Those of connections that are gone come, too. */
  Ticket take() {
    const std::string address = std::move(order_.front());
    order_.pop_front();
    const auto line = lines_.find(address);
    const Ticket ticket = line->second.front();
    line->second.pop_front();
    if (line->second.empty()) {
      lines_.erase(line);
    } else {
      order_.push_back(address);
    }
    return ticket;
  }

 private:
  static std::string keyOf(const Address& address) {
    return {reinterpret_cast<const char*>(&address), sizeof address};
  }

  std::unordered_map<std::string, std::deque<Ticket>> lines_;
  std::deque<std::string> order_;  // each address that has one, once
};

class ColdRequests {
 public:
  /** The request of a connection, which has none. */
  Arrival& begin(uint32_t connection) { return arrivals_[connection]; }

  /** The same where there is one, or nullptr. */
  Arrival* find(uint32_t connection) {
    const auto found = arrivals_.find(connection);
    return found == arrivals_.end() ? nullptr : &found->second;
  }

  /** The same, which is its no more; an empty one where there is none. */
  Arrival take(uint32_t connection) {
    const auto found = arrivals_.find(connection);
    if (found == arrivals_.end()) return {};
    Arrival arrival = std::move(found->second);
    arrivals_.erase(found);
    return arrival;
  }

  /** How many there are. */
  uint32_t count() const { return static_cast<uint32_t>(arrivals_.size()); }

  /** Those that are whole and wait. */
  FairTickets& waiting() { return waiting_; }

 private:
  std::unordered_map<uint32_t, Arrival> arrivals_;
  FairTickets waiting_;
};

}  // namespace server

#endif  // SPRITES_COLD_REQUESTS_H_
