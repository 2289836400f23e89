// One engine: the loop around the clients and the lanes, the parent's commands, and the news it
// gets.
#ifndef SPRITES_SWARM_ENGINE_H_
#define SPRITES_SWARM_ENGINE_H_

#include <cstdint>
#include <string>

#include "clients.h"
#include "core.h"
#include "lanes.h"
#include "parent.h"
#include "socket.h"

namespace swarm {

class Engine {
 public:
  /** @param tls what connections go through, nullptr for plain TCP; outlives the engine */
  explicit Engine(const Options& options, Tls* tls = nullptr);

  /** Runs until the parent says quit, is gone, or the limit has passed. */
  void run();

 private:
  void wait();
  void dispatch(const epoll_event& event);
  void readCommands();
  void obey(const std::string& command);
  void tick();
  void printCounters(std::string* json) const;

  Core core_;
  Clients clients_;
  Lanes lanes_;
  Commands commands_;
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
