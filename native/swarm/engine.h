// The protocol with the parent (lib/swarm/engine.js): commands come as lines on stdin, and reports
// go as JSON lines to stdout. A line whose "bytes" is above 0 is followed by that many raw bytes
// (the account's pages).
//
//   open                   begin to open the clients, at the ramp
//   throw MILLISECONDS     throw for this time
//   stop                   throw no more; unanswered throws are still repeated until answered
//   drop                   close every client's connection; reconnect none until `back`
//   back MILLISECONDS      reconnect after a drop, spread over this time
//   account                write the account's pages, then {"type":"account"}
//   quit                   end
//
//   clients COUNT          set the number of parked clients: open more at the ramp, or let some
//                          leave; at most --clients
//
// Commands of an open loop that the panel of an arena controls (options.h, batched):
//
//   rate NUMBER            sprites a second from now on; 0 throws none
//   batch NUMBER           the current batch from now on: see Batches
//
// The end of stdin is `quit` too: no engine outlives its parent.
#ifndef SPRITES_SWARM_ENGINE_H_
#define SPRITES_SWARM_ENGINE_H_

#include "socket.h"

namespace swarm {

/**
 * Runs an engine by its command line until the parent sends quit or is gone.
 *
 * @param openTls opens the TLS of the connections; empty for plain TCP
 * @return the exit code: 0, or 2 with the reason on stderr
 */
int run(int argc, char** argv, const TlsFactory& openTls);

}  // namespace swarm

#endif  // SPRITES_SWARM_ENGINE_H_
