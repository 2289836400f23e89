// The wire to the parent (lib/swarm/engine.js): commands come as lines on stdin, news goes as JSON
// lines to stdout. A line whose "bytes" is above 0 is followed by that many raw bytes (the
// account's pages).
//
//   open                   begin to open the clients, at the ramp
//   throw MILLISECONDS     throw for so long
//   stop                   throw no more; unanswered throws are still repeated until answered
//   drop                   close every client's connection and stay away
//   back MILLISECONDS      come back from a drop, spread over that time
//   account                write the account's pages, then {"type":"account"}
//   quit                   end
//
//   clients COUNT          so many shall be parked, opened at the ramp or taken leave of; at most
//                          --clients
//
// Steered while it goes on (options.h, batched): sprites by the clock.
//
//   rate NUMBER            sprites a second from now on; 0 throws none
//   batch NUMBER           the batch that is on from now on: Batches
//
// The parent's end closing is `quit` too: no engine outlives its parent.
#ifndef SPRITES_SWARM_ENGINE_H_
#define SPRITES_SWARM_ENGINE_H_

#include "socket.h"

namespace swarm {

/**
 * Runs an engine, from its command line until its parent says quit, or is gone.
 *
 * @param openTls makes what the connections go through; empty for plain TCP
 * @return the exit code: 0, or 2 with the reason on stderr
 */
int run(int argc, char** argv, const OpenTls& openTls);

}  // namespace swarm

#endif  // SPRITES_SWARM_ENGINE_H_
