// The requests that are not hot, on their way to JavaScript: those whose body is incomplete, and
// the queue of the complete ones.
//
//   head ─▶ arrival ──body, by its length or in chunks──▶ whole ─┬─ share left ─▶ JavaScript
//                                                                └─ queue ─▶ a later turn's share
//
//   queue    address 7 ─▶ a, b, c
//            address 9 ─▶ x            a, x, b, c
//
// Addresses take turns, so an address with thousands of connections does not delay the others. Hot
// requests are served in between.
//
// Cost: memory only while a request arrives or waits, counted for its address. Rejected: a field in
// each connection (most never need one).
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

/** The body of a request, as far as it is known. */
struct Body {
  enum class State : uint8_t {
    kWhole,
    kTooLong,  // longer than its bound, and not read
    kAwaited,  // the client sends it after 100 Continue (Expect: 100-continue)
  };
  State state;
  std::string_view bytes = {};
};

/** A request that arrives, or waits for its turn. */
struct Arrival {
  std::string head;
  std::string body;
  Framing framing = Framing::kNone;
  uint64_t length = 0;  // of the body, if the framing gives it
  uint32_t most = 0;    // most bytes of the body
  Chunks chunks;
  Body::State state = Body::State::kWhole;  // of a request that waits for its turn
  uint64_t held = 0;                        // bytes counted for its address

  /** Reads the body from `*data`, and moves it behind the bytes read. */
  Chunks::State take(std::string_view* data) {
    if (framing == Framing::kChunked) return chunks.take(data, most, &body);
    if (body.empty()) body.reserve(length);
    const size_t more = std::min<uint64_t>(length - body.size(), data->size());
    body.append(data->data(), more);
    data->remove_prefix(more);
    return body.size() == length ? Chunks::State::kWhole : Chunks::State::kMore;
  }
};

/** A queue of tickets in which addresses take turns. */
class FairTickets {
 public:
  bool empty() const { return order_.empty(); }

  /** Number of addresses with a ticket. */
  size_t addresses() const { return order_.size(); }

  void add(const Address& address, Ticket ticket) {
    auto& line = lines_[keyOf(address)];
    if (line.empty()) order_.push_back(keyOf(address));
    line.push_back(ticket);
  }

  /**
   * Removes the tickets for which `isGone` returns true; looks at each. To be called now and then,
   * so that connections that come and go do not fill the queue.
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

  /**
   * Removes and returns the next ticket. The queue must not be empty. The connection of the ticket
   * may be gone.
   */
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
  std::deque<std::string> order_;  // each address with a ticket, once
};

class ColdRequests {
 public:
  /** Adds a request for a connection that has none. */
  Arrival& begin(uint32_t connection) { return arrivals_[connection]; }

  /** The request of a connection; nullptr: none. */
  Arrival* find(uint32_t connection) {
    const auto found = arrivals_.find(connection);
    return found == arrivals_.end() ? nullptr : &found->second;
  }

  /** Removes and returns the request of a connection; an empty one: none. */
  Arrival take(uint32_t connection) {
    const auto found = arrivals_.find(connection);
    if (found == arrivals_.end()) return {};
    Arrival arrival = std::move(found->second);
    arrivals_.erase(found);
    return arrival;
  }

  /** Number of requests. */
  uint32_t count() const { return static_cast<uint32_t>(arrivals_.size()); }

  /** The queue of complete requests. */
  FairTickets& waiting() { return waiting_; }

 private:
  std::unordered_map<uint32_t, Arrival> arrivals_;
  FairTickets waiting_;
};

}  // namespace server

#endif  // SPRITES_COLD_REQUESTS_H_
