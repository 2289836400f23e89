// Reads a journal and repeats its steps on a pool.
//
// Nothing in the file is trusted: every length is held against the bytes there are, every record
// against the pool. A file that was being written when the process or the machine ended has a torn
// end: the batch that is not whole, and nothing whole behind it that was known to be on the disk.
// That end is cut. Anything else that does not fit is damage, and the file is refused.
#ifndef SPRITES_JOURNAL_REPLAY_H_
#define SPRITES_JOURNAL_REPLAY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/journal_format.h"
#include "shelf.h"
#include "torus/pool.h"

namespace server {

/** What the reading of one journal gave. */
struct ReplayResult {
  uint64_t records = 0;
  uint64_t batches = 0;
  uint64_t whole = 0;   // bytes of the file that count
  uint64_t torn = 0;    // bytes of its torn end
  std::string problem;  // why it is refused, for a person; empty when all is well
};

/**
 * Reads the header, and what is known of where the file is from (of none before version 4); returns
 * what is wrong with it, or nothing.
 */
std::string readJournalHeader(std::string_view bytes, JournalHeader* header,
                              JournalOrigin* origin = nullptr);

/**
 * Does to `pool`, and to `shelf`, what the journal in `bytes` says. `upTo`: bytes of it that count,
 * as the journal after it says; UINT64_MAX where there is none, and the end may be torn. When the
 * result has a problem, both are good for nothing.
 */
ReplayResult replayJournal(std::string_view bytes, uint64_t upTo, Pool* pool, Shelf* shelf);

/** Whether all batches of a journal up to `upTo` bytes are whole. */
bool isWholeTo(std::string_view bytes, uint64_t upTo);

/** Whether a batch of a journal was written when a batch before it was known to be on the disk. */
bool knowsOfDisk(std::string_view bytes);

/** Ends the reading: frees the records without a client, and starts every client's lease. */
void finishReplay(Pool* pool);

}  // namespace server

#endif  // SPRITES_JOURNAL_REPLAY_H_
