// The links: the ends of relays that this process has, and when each sends what it has gathered.
//
//   end (relay.h) ─▶ outgoing ──turn's end, or pace──▶ [ socket pair ] ──▶ the other process
//                 ◀──────────── receive ──────────────────┘
//
// Lifecycle of a link: attached to a descriptor, one end of a socket pair; watched until the other
// process has closed its own end or has died, has sent what makes no sense, or does not read: more
// than its bound waits, and the kernel has taken nothing for a while; then closed, and the end is
// told that it is lost. Whoever made the end owns it.
//
// What an end gathers is sent at the end of each turn, in one system call. With a pace, under load,
// it is sent no more often than that: a batch is then large enough for its system calls to cost
// little. What comes after a pause goes at once (http/pace.h).
//
// Cost: a handful of links, one for each worker, looked through at each turn's end. Rejected: a
// stream of libuv's (a request object and a callback a write).
#ifndef SPRITES_RELAY_LINKS_H_
#define SPRITES_RELAY_LINKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "frames.h"
#include "http/events.h"

namespace server {

struct LinkOptions {
  uint32_t pace;          // microseconds between two batches, under load; 0: none waits
  size_t mostKept;        // bytes that may wait for who reads nothing; 0: any number, for anybody
  size_t mostEver = 0;    // bytes that may wait for who reads
  uint32_t patience = 0;  // microseconds in which one who reads has read something
};

class RelayLinks {
 public:
  /** `events` outlives the links. */
  explicit RelayLinks(EventSet* events);
  ~RelayLinks();
  RelayLinks(const RelayLinks&) = delete;
  RelayLinks& operator=(const RelayLinks&) = delete;

  /**
   * Links `end`, the caller's, to the other end by `fd`, which is the link's from now on.
   */
  void attach(int fd, RelayEnd* end, const LinkOptions& options);

  /** Whether the other process still has its end of the relay of `end`. */
  bool attached(const RelayEnd* end) const;

  /** Sends what the ends have gathered. To be called after every turn. */
  void send();

  /** Closes the links whose other process does not read; not while events are being dispatched. */
  void giveUpTheDeaf();

  /** Closes every link. */
  void closeAll();

 private:
  class Link;

  void remove(Link* link);

  EventSet* const events_;
  std::vector<std::unique_ptr<Link>> links_;
  const std::unique_ptr<char[]> buffer_;  // of one read
};

}  // namespace server

#endif  // SPRITES_RELAY_LINKS_H_
