// One engine from its command line to its end, in a process of its own.
#ifndef SPRITES_SWARM_RUN_H_
#define SPRITES_SWARM_RUN_H_

#include "tls.h"

namespace swarm {

/**
 * Runs an engine until its parent says quit, or is gone.
 *
 * @param openTls makes what the connections go through; empty for plain TCP
 * @return the exit code: 0, or 2 with the reason on stderr
 */
int run(int argc, char** argv, const OpenTls& openTls);

}  // namespace swarm

#endif  // SPRITES_SWARM_RUN_H_
