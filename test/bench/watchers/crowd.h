// The watchers of one server, and its publisher: one process, one epoll.
//
//   open N, some at a time ─▶ "open" ──word on stdin──▶ warm up ─▶ "begin" ──word──▶ publish,
//   again and again ─▶ wait ─▶ "result"
//
// A document is stamped with its due time (protocol.h). Its lateness is from then to the arrival of
// the last byte at each watcher, so it includes the delays of a busy server or a busy publisher. A
// watcher that gets version 9 after version 7 has skipped one; a watcher that does not have the
// last version in the end misses it. The first publications are the warm-up, and do not count.
//
// A cut takes every watcher's connection (by a reset, as when a phone changes its network), and
// gives it back so many seconds later, to ask with whatever its protocol lets it ask with. What
// came while it was away is not late, but skipped, or missing, when it never comes.
//
// The measured time begins with another word: what the server's processes take is its parent's to
// look at, before it and when the result has come. All of it goes to stdout, a JSON object a line.
//
// Cost: a document is not copied; at most its bytes are searched for the ends of events. Rejected:
// a thread for the publisher (of two cores the server has the other), and time stamps of the server
// (its own clock would measure its lateness).
#ifndef SPRITES_BENCH_CROWD_H_
#define SPRITES_BENCH_CROWD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "protocol.h"

namespace watchers {

struct Options {
  uint16_t port = 0;
  std::string protocol;
  std::string secondProtocol;  // not empty: protocol of a second request, sent on a word; nothing
                               // is measured
  uint32_t connections = 100;
  double stalledShare = 0;   // share of watchers that stop reading
  uint32_t addresses = 1;    // number of source addresses
  size_t bytes = 5000;       // length of a document
  double every = 1;          // seconds between two publications
  double seconds = 5;        // that are measured
  uint32_t warmup = 2;       // publications before
  double warmupEvery = 0;    // seconds between those; 0: as between the others
  double newPerSecond = 0;   // new ones a second while it is measured; so many fewer before
  double changingShare = 0;  // share of a document's entries that change each time
  double cutSeconds = 0;     // seconds for which all are without the network, half way
  double reopenAfter = 0;    // seconds after which one that was ended comes again; 0: it may not be
  bool staysAwake = false;   // it does not sleep while documents are under way
  size_t pieceBytes = 0;     // bytes at a time of a recording
  std::string token;
};

/**
 * Runs the watchers and the publisher to their end.
 *
 * @param secondProtocol protocol of `options.secondProtocol`, or nothing
 */
void runCrowd(const Options& options, std::unique_ptr<Protocol> protocol,
              std::unique_ptr<Protocol> secondProtocol);

}  // namespace watchers

#endif  // SPRITES_BENCH_CROWD_H_
