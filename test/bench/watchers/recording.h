// What a real server once sent to one watcher, read again without it: the readers are held to it.
#ifndef SPRITES_BENCH_RECORDING_H_
#define SPRITES_BENCH_RECORDING_H_

#include <cstddef>

#include "protocol.h"

namespace watchers {

/**
 * Reads stdin to its end as if it came over a connection, so many bytes at a time, and prints one
 * object: the versions of the messages in it, and what would have been sent.
 */
void readRecording(Protocol& protocol, size_t piece);

}  // namespace watchers

#endif  // SPRITES_BENCH_RECORDING_H_
