// The options of one engine process. The parent (lib/swarm) has the defaults, the validation and
// the help; the engine refuses only values that would crash it.
//
//   swarm --address=127.0.0.1 --port=8080 --clients=5000 --process=0 ...
#ifndef SPRITES_SWARM_OPTIONS_H_
#define SPRITES_SWARM_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schedule.h"

namespace swarm {

/** How the lanes throw: not at all, by the clock, or each lane again after its answer. */
enum class Throwing { kNone, kOpenLoop, kClosedLoop };

struct Options {
  std::string address = "127.0.0.1";     ///< numeric address of the server, IPv4 or IPv6
  std::string host = "127.0.0.1";        ///< for the Host header, without the port
  std::string serverName = "localhost";  ///< TLS: the name in the certificate
  uint16_t port = 0;                     ///< port of parked polls
  uint16_t transientPort = 0;            ///< port of throws, joins and leaves; 0: `port`
  std::string swarm = "s";               ///< names this run in the ids of its sprites
  uint32_t process = 0;                  ///< this engine's number in the swarm
  uint32_t probeProcess = UINT32_MAX;    ///< engine whose sprites have their own histogram
  bool apart = false;  ///< other engines' sprites too: each engine has its own server of a world
  uint32_t clients = 1;
  uint32_t firstClient = 0;  ///< first client's number in the swarm: spreads the source addresses
  uint32_t sources = 0;      ///< number of loopback source addresses; 0: not bound
  uint32_t lanes = 1;        ///< connections for throws, leaves and, with a transient port, joins
  Throwing throwing = Throwing::kNone;
  bool everyClient = false;   ///< closed loop: the lanes throw for all clients in turn
  double rate = 0;            ///< open loop: this engine's sprites a second, at the start
  std::vector<Stage> stages;  ///< open loop: changes of the rate: seconds:rate,seconds:rate
  double phase = 0;           ///< open loop: offset of the first throw, in intervals, 0 to 1
  bool batched = false;       ///< counts sprites by batches, with other swarms: Batches
  uint32_t size = 0;          ///< length of a sprite, in bytes; shorter sprites are padded
  double ramp = 5000;         ///< clients opened a second
  uint32_t inFlight = 128;    ///< most clients that connect or join at a time while opening
  uint32_t hold = 0;          ///< `hold` of each poll, in seconds; 0: the server's default
  /// Most bytes of incomplete answers of all connections together, and most bytes of the account:
  /// it bounds the memory whatever a server sends.
  uint64_t heldLimit = 512u << 20;
  bool nchan = false;     ///< the server is nginx with nchan: see Clients::readNchan()
  uint32_t tick = 250;    ///< interval between two ticks to the parent, in milliseconds
  uint32_t limit = 3600;  ///< time limit of the engine, in seconds
  uint64_t seed = 1;
};

/**
 * Reads `--name=value` arguments.
 *
 * @param error filled with one line for an unknown argument or an invalid value
 * @return false with `error` set, or true
 */
bool readOptions(int argc, char** argv, Options* options, std::string* error);

}  // namespace swarm

#endif  // SPRITES_SWARM_OPTIONS_H_
