// Limits the time of work that is not hot, within a turn and over several: JavaScript's requests,
// handshakes, and requests sent ahead. What waits for a later turn's share stands in a queue:
//
//   queue    address 7 ─▶ a, b, c
//            address 9 ─▶ x            a, x, b, c
//
// Addresses take turns, so an address with thousands of connections does not delay the others.
//
//   alone        │████████│████████│████████│      turns of `alone` microseconds, one after another
//   beside hot   │██│·····▲·│██│······▲·│██│···    `besideHot`, and a rest; ▲ a hot request
//                                                  finds the thread free
//
// A hot request waits for the rest of a turn. So while hot requests come, the share is smaller, and
// a rest follows: kRestFactor times as long as the work, divided by the number of waiting
// addresses. So a single address that sends as much as it can gets a tenth of the thread, and hot
// requests find the thread free. A hundred addresses at once, as after a restart, get nearly all of
// it.
//
// Cost: more turns, and rests; nothing without hot requests. Rejected: a fourth of the thread (the
// median delay of a hot request becomes that of the 70th percentile).
#ifndef SPRITES_TURN_SHARE_H_
#define SPRITES_TURN_SHARE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "base/address.h"
#include "request_handler.h"

namespace server {

/** All times are microseconds of a clock that never goes back. */
class TurnShare {
 public:
  /** Length of a rest with one waiting address, in multiples of the work before it. */
  static constexpr uint64_t kRestFactor = 9;

  /** Turns without a hot request until the share is whole again. */
  static constexpr uint32_t kTurnsUntilAlone = 64;

  /** The share of JavaScript, for requests that are not hot. */
  static TurnShare forScript() { return {250, 50}; }

  static TurnShare forHandshakes() { return {250, 250}; }

  /** The share of requests sent ahead of an answer, without the hot ones. */
  static TurnShare forSentAhead() { return {100, 50}; }

  /** `alone`: the share of a turn; `besideHot`: the share while hot requests come. */
  TurnShare(uint64_t alone, uint64_t besideHot) : alone_(alone), besideHot_(besideHot) {}

  /** Begins a turn at `now`; `hot`: number of hot requests served so far. */
  void begin(uint64_t hot, uint64_t now) {
    now_ = now;
    used_ = pieces_ = 0;
    if (hot != hotServed_) {
      turnsBesideHot_ = kTurnsUntilAlone;
    } else if (turnsBesideHot_ > 0) {
      --turnsBesideHot_;
    }
    hotServed_ = hot;
  }

  /** Whether the turn has time left for a further piece of work, however long it takes. */
  bool hasTimeLeft() const {
    return restLeft() == 0 && used_ < (turnsBesideHot_ > 0 ? besideHot_ : alone_);
  }

  /** Time left of a rest at the start of the turn; 0: no rest. */
  uint64_t restLeft() const { return restsUntil_ > now_ ? restsUntil_ - now_ : 0; }

  /** Counts a piece of work from `began` to `ended`, while so many addresses wait. */
  void addWork(uint64_t began, uint64_t ended, size_t addresses) {
    const uint64_t took = ended - began + deferred_;
    used_ += took;
    ++pieces_;
    if (turnsBesideHot_ == 0 || used_ < besideHot_) return;
    // A single long piece counts at most as `alone`.
    const uint64_t rest = kRestFactor * std::min(used_, alone_) / std::max<size_t>(addresses, 1);
    restsUntil_ = ended + deferred_ + rest;
  }

  /**
   * Counts the time that promises of the last turn's work took after it. The next turns add its
   * average to each piece of work.
   */
  void addDeferred(uint64_t microseconds) {
    if (pieces_ == 0) return;
    deferred_ = (3 * deferred_ + std::min(microseconds / pieces_, alone_)) / 4;
  }

 private:
  const uint64_t alone_;
  const uint64_t besideHot_;
  uint64_t now_ = 0;  // start of the turn
  uint64_t restsUntil_ = 0;
  uint64_t used_ = 0;            // by this turn's work, with `deferred_`
  uint32_t pieces_ = 0;          // pieces of work in this turn
  uint64_t deferred_ = 0;        // average time of the promises of one piece
  uint64_t hotServed_ = 0;       // hot requests served before the turn
  uint32_t turnsBesideHot_ = 0;  // turns left with the smaller share
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

#endif  // SPRITES_TURN_SHARE_H_
