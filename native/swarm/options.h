// What one engine process is asked to do. The parent (lib/swarm) owns defaults, validation and
// help; here every value is taken as given, and only nonsense that would crash is refused.
//
//   swarm --address=127.0.0.1 --port=8080 --clients=5000 --process=0 ...
#ifndef SPRITES_SWARM_OPTIONS_H_
#define SPRITES_SWARM_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schedule.h"

namespace swarm {

/** How the lanes throw: not at all, by the clock, or each as soon as it was answered. */
enum class Throwing { kNone, kOpenLoop, kClosedLoop };

struct Options {
  std::string address = "127.0.0.1";     ///< numeric address of the server, IPv4 or IPv6
  std::string host = "127.0.0.1";        ///< for the Host header, without the port
  std::string serverName = "localhost";  ///< by TLS: the name in the certificate
  uint16_t port = 0;                     ///< parked polls go here
  uint16_t transientPort = 0;            ///< throws, joins and leaves go here; 0 is `port`
  std::string swarm = "s";               ///< names this run in the ids of its sprites
  uint32_t process = 0;                  ///< this engine's number in the swarm
  uint32_t probeProcess = UINT32_MAX;    ///< sprites of this engine are measured on their own
  bool apart = false;  ///< and so are those of every other engine: each has a server of a world
  uint32_t clients = 1;
  uint32_t firstClient = 0;  ///< clients of the engines before this one: spreads the addresses
  uint32_t sources = 0;      ///< loopback source addresses to spread over; 0 binds to none
  uint32_t lanes = 1;        ///< connections for throws, leaves and, with a transient port, joins
  Throwing throwing = Throwing::kNone;
  bool everyClient = false;   ///< closed loop: the lanes throw for all clients in turn
  double rate = 0;            ///< open loop: sprites a second from this engine, at the start
  std::vector<Stage> stages;  ///< open loop: where the rate goes: seconds:rate,seconds:rate
  double phase = 0;           ///< open loop: offset of the first throw, in intervals, 0 to 1
  bool batched = false;       ///< sprites are counted by batches, with other swarms: Batches
  uint32_t size = 0;          ///< bytes of a sprite; shorter ones are padded
  double ramp = 5000;         ///< clients opened a second
  uint32_t inFlight = 128;    ///< clients that may be connecting or joining at once while opening
  uint32_t hold = 0;          ///< seconds asked for in each poll; 0 leaves it to the server
  /// Bytes of answers that are not whole yet, of all connections together, and as many of the
  /// account: a server may send what it will.
  uint64_t held = 512u << 20;
  bool nchan = false;     ///< what is measured is nginx with nchan: see Clients::readNchan()
  uint32_t tick = 250;    ///< milliseconds between two lines to the parent
  uint32_t limit = 3600;  ///< seconds after which the engine ends by itself, whatever happens
  uint64_t seed = 1;
};

/**
 * Reads `--name=value` arguments.
 *
 * @param error filled with one line when an argument is unknown or no number
 * @return false with `error` set, or true
 */
bool readOptions(int argc, char** argv, Options* options, std::string* error);

}  // namespace swarm

#endif  // SPRITES_SWARM_OPTIONS_H_
