// The wire to the parent (lib/swarm/engine.js): commands come as lines on stdin, news goes as JSON
// lines to stdout. A line whose "bytes" is above 0 is followed by that many raw bytes (the
// account's pages).
//
//   open                   begin to open the clients, at the ramp
//   throw MILLISECONDS     throw for so long
//   stop                   throw no more; unanswered throws are still repeated until answered
//   drop                   close every client's connection and stay away
//   back MILLISECONDS      come back from a drop, spread over that time
//   leave                  every client leaves
//   account                write the account's pages, then {"type":"account"}
//   quit                   end
//
// Steered while it goes on (options.h, batched): as many clients as are wanted, opened at the ramp
// or taken leave of, and sprites by the clock.
//
//   clients COUNT          so many shall be parked; at most --clients
//   rate NUMBER            sprites a second from now on; 0 throws none
//   batch NUMBER           the batch that is on from now on: Batches
//
// The parent's end closing is `quit` too: no engine outlives its parent.
#ifndef SPRITES_SWARM_PARENT_H_
#define SPRITES_SWARM_PARENT_H_

#include <string>
#include <string_view>

namespace swarm {

/** Writes all of `bytes`, waiting if it must. @return false when nobody reads any more */
bool writeAll(int fd, std::string_view bytes);

class Commands {
 public:
  explicit Commands(int fd) : fd_(fd) {}

  /** Reads what has come. @return false when the parent is gone */
  bool read();

  /** Takes the next whole line. @return false when there is none */
  bool next(std::string* line);

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace swarm

#endif  // SPRITES_SWARM_PARENT_H_
