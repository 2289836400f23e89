// Reads a journal and repeats its steps on a pool.
//
// Nothing in the file is trusted: every length is checked against the file's bytes, every record
// against the pool. A file that was being written when the process or the machine ended has a torn
// end: a batch that is not whole, and after it no whole batch that proves that these bytes were on
// the disk. The torn end is cut. Anything else that does not fit is damage, and the file is
// refused.
#ifndef SPRITES_JOURNAL_REPLAY_H_
#define SPRITES_JOURNAL_REPLAY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/journal_format.h"
#include "feeds_and_notes.h"
#include "torus/pool.h"

namespace server {

/** The result of reading one journal. */
struct ReplayResult {
  uint64_t records = 0;
  uint64_t batches = 0;
  uint64_t wholeBytes = 0;  // bytes of the file that count
  uint64_t tornBytes = 0;   // bytes of its torn end
  std::string problem;      // why the file is refused, in words; empty when all is well
};

/**
 * Reads the header, and the origin of the file (empty before version 4). Returns what is wrong with
 * it, or nothing.
 */
std::string readJournalHeader(std::string_view bytes, JournalHeader* header,
                              JournalOrigin* origin = nullptr);

/**
 * Repeats the steps of the journal in `bytes` on `pool` and `stored`. `upTo`: how many of its bytes
 * count, as the next journal says; UINT64_MAX: there is no next one, and the end may be torn. When
 * the result has a problem, both must not be used.
 */
ReplayResult replayJournal(std::string_view bytes, uint64_t upTo, Pool* pool,
                           StoredFeedsAndNotes* stored);

/** Returns whether all batches of a journal up to `upTo` bytes are whole. */
bool isWholeTo(std::string_view bytes, uint64_t upTo);

/** Returns whether a batch of a journal records that an earlier batch was on the disk. */
bool provesOnDisk(std::string_view bytes);

/** Ends the reading: frees the records without a client, and starts every client's lease. */
void finishReplay(Pool* pool);

}  // namespace server

#endif  // SPRITES_JOURNAL_REPLAY_H_
