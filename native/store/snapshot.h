// The snapshot: the whole state in one file, from one run of the server to the next.
//
//   ┌────────┬───────────┬───────────────────┬───────────┬────────┬───────────┬────────┬─────────┐
//   │ header │ shape of  │ client: record,   │ leaving   │ world: │ addresses │ feeds  │ CRC-32  │
//   │ and    │ the torus,│ seat, id, mailbox │ clients,  │ peers, │ and whose │ and    │ of all  │
//   │ counts │ its holes │ and its sprites … │ in order  │ outbox │ is what   │ notes  │ before  │
//   └────────┴───────────┴───────────────────┴───────────┴────────┴───────────┴────────┴─────────┘
//
// The world's part (snapshot_world.h) is there if the server was ever in a world.
//
// Numbers are little-endian, as this machine's are (checked by the mark in the header). A save
// writes FILE.new, syncs it, renames it to FILE and syncs the directory, so that FILE is whole at
// every moment, whatever fails. A FILE of another server is not overwritten: this server's state is
// then put beside it. No link is followed. A load trusts no file. Before it takes anything over, it
// checks the checksum, every count against the file's length, every record, every sprite as when it
// is thrown, and the torus's own rules.
//
// Parked polls, holds and leases are not in it: connections do not outlive the process, and leases
// start again. The source addresses of clients and sprites are in it, so that each address keeps
// its share (address_limits.h). Other counts of an address are not.
//
// Cost: 60 bytes a client, 12 and its text a sprite, 16 an address; two passes over the records.
#ifndef SPRITES_SNAPSHOT_H_
#define SPRITES_SNAPSHOT_H_

#include <cstdint>
#include <string>

#include "feeds_and_notes.h"
#include "torus/pool.h"

namespace server {

/** The result of a save or a load. */
struct SnapshotResult {
  uint64_t clients = 0;
  uint64_t sprites = 0;
  uint64_t bytes = 0;
  uint64_t generation = 0;  // the journal that goes on from it (state_store.h)
  uint32_t run = 0;         // run of the server that has written it; 0: not known
  int error = 0;            // errno of what failed in the system, 0 when nothing did
  std::string problem;      // why a file is not read or written, in words; empty when all is well

  bool ok() const { return error == 0 && problem.empty(); }
};

/** What a new snapshot may replace. */
enum class Replaceable : uint8_t {
  kNothing,  // nothing: an existing file is another server's
  kOwn,      // an earlier snapshot of the same server
};

/** The identity of a new snapshot. */
struct SnapshotIdentity {
  uint64_t generation = 0;  // the journal that goes on from it
  uint32_t run = 0;         // run of the server that writes it
  Replaceable replaceable = Replaceable::kNothing;
};

class Snapshot {
 public:
  /** Writes `pool` and `feedsAndNotes` to `path`, unless the file is larger than `most` bytes. */
  static SnapshotResult save(const Pool& pool, const FeedsAndNotes& feedsAndNotes,
                             const std::string& path, uint64_t most, SnapshotIdentity identity);

  /**
   * Reads the state at `path`, of at most `most` bytes, into `pool` and `stored`, which must be
   * new. When the result is not ok, they may be half filled and must not be used.
   */
  static SnapshotResult load(Pool* pool, StoredFeedsAndNotes* stored, const std::string& path,
                             uint64_t most);
};

}  // namespace server

#endif  // SPRITES_SNAPSHOT_H_
