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

#include <cstdint>
#include <string>
#include <string_view>

#include "clients.h"
#include "core.h"
#include "lanes.h"
#include "socket.h"

namespace swarm {

// One engine: the loop around the clients and the lanes, the parent's commands, and the news it
// gets.

class Engine {
 public:
  /** @param tls what connections go through, nullptr for plain TCP; outlives the engine */
  explicit Engine(const Options& options, Tls* tls = nullptr);

  /** Runs until the parent says quit, is gone, or the limit has passed. */
  void run();

 private:
  void wait();
  void dispatch(const epoll_event& event);
  bool readCommands();
  void obey(const std::string& command);
  void tick();

  Core core_;
  Clients clients_;
  Lanes lanes_;
  std::string commands_;  // what has come of them, up to a line that is not whole
  uint64_t endsAt_;
  uint64_t nextTick_ = 0;
  uint64_t lateness_ = 0;  // the longest turn of the loop since throwing began, less what it slept
  bool running_ = true;
  bool hasFineWait_ = true;  // the kernel knows epoll_pwait2
};

// One engine from its command line to its end, in a process of its own.

/**
 * Runs an engine until its parent says quit, or is gone.
 *
 * @param openTls makes what the connections go through; empty for plain TCP
 * @return the exit code: 0, or 2 with the reason on stderr
 */
int run(int argc, char** argv, const OpenTls& openTls);

}  // namespace swarm

#endif  // SPRITES_SWARM_ENGINE_H_
