// The part of a snapshot that a world has: who the others are, what was taken from each, and what
// waits to cross. A server that was never in a world has none of it.
#ifndef SPRITES_SNAPSHOT_WORLD_H_
#define SPRITES_SNAPSHOT_WORLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "snapshot_reader.h"
#include "snapshot_writer.h"
#include "torus/pool.h"
#include "torus/seams.h"

namespace server {

/** Bytes that it takes. */
uint64_t worldBytes(const Seams& memory);

void writeWorld(const Seams& memory, const Counts& counts, SnapshotWriter* writer);

/**
 * Reads it: fills in `memory`, and in `counts` what has crossed, what waits and its memory. `make`
 * makes a sprite of its text and the edge it enters by. Returns what is wrong with it, or nothing.
 */
std::string readWorld(SnapshotReader* reader,
                      const std::function<Sprite*(std::string_view text, Edge from)>& make,
                      std::unique_ptr<Seams>* memory, Counts* counts);

}  // namespace server

#endif  // SPRITES_SNAPSHOT_WORLD_H_
