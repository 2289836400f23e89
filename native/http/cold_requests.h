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
#include <map>
#include <string>
#include <string_view>

#include "base/address.h"
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
struct ColdRequest {
  std::string head;
  std::string body;
  Framing framing = Framing::kNone;
  uint64_t bodyLength = 0;    // of the body, if the framing gives it
  uint32_t maxBodyBytes = 0;  // most bytes of the body
  ChunkDecoder chunks;
  Body::State bodyState = Body::State::kWhole;  // of a request that waits for its turn
  uint64_t countedBytes = 0;                    // bytes counted for its address

  /** Reads the body from `*data`, and moves it behind the bytes read. */
  ChunkDecoder::State readBody(std::string_view* data) {
    if (framing == Framing::kChunked) return chunks.decode(data, maxBodyBytes, &body);
    if (body.empty()) body.reserve(bodyLength);
    const size_t more = std::min<uint64_t>(bodyLength - body.size(), data->size());
    body.append(data->data(), more);
    data->remove_prefix(more);
    return body.size() == bodyLength ? ChunkDecoder::State::kWhole
                                     : ChunkDecoder::State::kIncomplete;
  }
};

/** A queue of tickets in which addresses take turns. */
class FairTickets {
 public:
  bool empty() const { return lines_.empty(); }

  /** Number of addresses with a ticket. */
  size_t addressCount() const { return lines_.size(); }

  void add(const Address& address, Ticket ticket) {
    auto& line = lines_[address];
    if (line.empty()) waitingAddresses_.push_back(address);
    line.push_back(ticket);
  }

  /**
   * Removes the tickets for which `isGone` returns true; looks at each. To be called now and then,
   * so that connections that come and go do not fill the queue.
   */
  template <typename IsGone>
  void removeIf(IsGone&& isGone) {
    std::erase_if(waitingAddresses_, [&](const Address& address) {
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
  Ticket pop() {
    const Address address = waitingAddresses_.front();
    waitingAddresses_.pop_front();
    const auto line = lines_.find(address);
    const Ticket ticket = line->second.front();
    line->second.pop_front();
    if (line->second.empty()) {
      lines_.erase(line);
    } else {
      waitingAddresses_.push_back(address);
    }
    return ticket;
  }

 private:
  std::map<Address, std::deque<Ticket>> lines_;  // none is empty
  std::deque<Address> waitingAddresses_;         // each address with a line, once
};

}  // namespace server

#endif  // SPRITES_COLD_REQUESTS_H_
