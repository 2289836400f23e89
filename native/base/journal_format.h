// The format of a journal on disk: the steps of the pool since a snapshot, in order.
//
//   ┌────────┬───────────────────────┬───────────────────────┬──
//   │ header │ batch: head, records  │ batch: head, records  │ …
//   │ origin │ of one turn           │ of the next turn      │
//   └────────┴───────────────────────┴───────────────────────┴──
//
//   record   [ step, from │ record │ other │ length │ number ][ length bytes, padded to 8 ]
//
// Numbers are little-endian, as on this machine (checked by a mark in the header). Every record has
// the same head of 24 bytes, so that one loop reads and writes all of them; a throw of a sprite of
// 200 bytes takes 224. A batch is written with one system call. It has its number, a checksum of
// all of it, and the length of the file that was known to be on the disk: so a reader can tell the
// torn end of a file from damage in its middle.
//
// Rejected: a checksum for each record (4 bytes more, and a batch is complete or ignored anyway),
// records with different heads (8 bytes less for an ack, but a reader for each).
#ifndef SPRITES_JOURNAL_FORMAT_H_
#define SPRITES_JOURNAL_FORMAT_H_

#include <cstdint>

#include "address.h"
#include "id.h"

namespace server {

constexpr char kJournalMagic[8] = {'S', 'P', 'R', 'I', 'T', 'E', 'J', '\n'};
// Versions: 2 has no crossings; 3 no feeds, notes and origin; 4 no logs.
constexpr uint32_t kJournalVersion = 5;
constexpr uint32_t kOldestJournalVersion = 2;  // of Sprites 0.1
/** The first version with feeds, notes and the origin: the state needs no other files. */
constexpr uint32_t kWithFeeds = 4;
constexpr uint32_t kJournalByteOrder = 0x01020304;
constexpr char kBatchMagic[4] = {'S', 'P', 'B', '\n'};

/** The first bytes of a journal. */
struct JournalHeader {
  char magic[8];
  uint32_t version;
  uint32_t byteOrder;
  uint64_t generation;  // generation of the snapshot that the journal continues
  uint64_t previous;    // valid bytes of the previous journal; 0: none
  uint32_t run;         // number of the server's run; 0: not known
  uint32_t checksum;    // of the fields before
};
static_assert(sizeof(JournalHeader) == 40, "a change of the format is a new version");

/**
 * Follows the header since version 4. By it a start detects whether the file may have lost its end,
 * or is a copy, perhaps an old one. Then clients may have versions of feeds that the file does not
 * know.
 */
struct JournalOrigin {
  char boot[40];      // boot id of the machine as text, padded with zeros
  uint64_t inode;     // inode of the file
  uint32_t synced;    // 1: every answer waited for the disk
  uint32_t checksum;  // of the fields before
};
static_assert(sizeof(JournalOrigin) == 56, "a change of the format is a new version");

/** The first bytes of a journal since version 4. */
struct JournalBegin {
  JournalHeader header;
  JournalOrigin origin;
};

/** The offset of the first batch of a journal. */
constexpr uint64_t batchesBegin(const JournalHeader& header) {
  return sizeof header + (header.version < kWithFeeds ? 0 : sizeof(JournalOrigin));
}

/** The head of a batch: the records of one turn. */
struct BatchHead {
  char magic[4];
  uint32_t length;    // bytes of records after the head
  uint64_t sequence;  // 0, 1, 2 … in each file
  uint64_t synced;    // bytes of the file that were on the disk before the batch was written
  uint32_t unused;
  uint32_t checksum;  // of the head, with 0 in this field, and of the records
};
static_assert(sizeof(BatchHead) == 32, "a change of the format is a new version");

/** The kinds of steps. */
enum class JournalStep : uint8_t {
  kJoin = 1,    // `record` joined; JoinText
  kThrow = 2,   // `record` threw to `other`, with `number`; the sprite's text
  kAck = 3,     // `record` has acked up to `number`
  kLeave = 4,   // `record` left; its sprites will fly on
  kExpire = 5,  // the lease of `record` ended; its sprites will fly on
  kFly = 6,   // the oldest sprite of `record`, which leaves, flew on to `other`; `from`: 1 it waits
              // there in the backlog, 0 in the mailbox
  kLose = 7,  // the oldest sprite of `record`, which leaves, is lost; `from`: the reason
  kGone = 8,  // `record`, which has left and is empty, was removed from the torus
  kMoveUp = 9,  // the oldest sprite in the backlog of `record` entered its mailbox

  // In a world of several servers (seams.h): `other` is the number of a server, `record` the client
  // on which a sprite has landed, or kNoLanding.
  kMemory = 10,     // this and all later processes have the memory `number`
  kLife = 11,       // this process has the life `number`
  kPeer = 12,       // `other`, a new or reused number, is the server whose name follows
  kMeet = 13,       // the process of `other` with the life `number` sends; MeetText
  kThrowOver = 14,  // `record` threw over a seam, with its number; CrossText, the sprite
  kFlyOver = 15,    // the oldest sprite of `record`, which leaves, flew over a seam; CrossText
  kCrossIn = 16,    // a sprite of `other` with `number` arrived; CrossText, the sprite
  kCrossOut = 17,   // `other` has taken the sprites of its outbox up to `number`
  kTurnBack = 18,   // place `number` of the outbox of `other`: its sprite goes elsewhere; CrossText
  kGiveUp = 19,  // the oldest `number` sprites in the outbox of `other` were given up: they are no
                 // longer in doubt
  kGoOn = 20,  // `other` has reported what it has taken: the sprites that wait for it are numbered
               // after `number`

  // Outside the pool (feeds_and_notes.h).
  kPublish = 21,    // a feed has the version `number`; PublishText, key, value and patch; of a log,
                    // `other` is its number of items
  kUnpublish = 22,  // the feed of the key that follows was deleted
  kNote = 23,       // a note: a name of `other` bytes, and the bytes of the note
  kUnnote = 24,     // the note of the name that follows was removed
};

/** In JournalRecord::record: the sprite has not landed. */
constexpr uint32_t kNoLanding = UINT32_MAX;

/** The head of every record. */
struct JournalRecord {
  JournalStep step;
  uint8_t from = 0;  // the edge where a sprite enters; or the reason of a loss
  uint16_t unused = 0;
  uint32_t record = 0;
  uint32_t other = 0;
  uint32_t length = 0;  // bytes after the head
  uint64_t number = 0;
};
static_assert(sizeof(JournalRecord) == 24, "a change of the format is a new version");

/** Follows a kJoin. */
struct JoinText {
  Id id;
  Address address;
};
static_assert(sizeof(JoinText) == 32, "a change of the format is a new version");

/** Where a crossing sprite waits. */
enum class Stay : uint8_t { kMailbox, kBacklog, kOutbox, kNowhere };

/** Follows a step of a crossing sprite: its position on the way, and where it waits. */
struct CrossText {
  uint32_t row;
  uint16_t hops;
  uint8_t exitEdge;  // the edge
  uint8_t round;     // see Crosser
  uint16_t peer;     // kOutbox: the server
  Stay stay;         // kNowhere: lost
  uint8_t unused[5];
};
static_assert(sizeof(CrossText) == 16, "a change of the format is a new version");

/** Follows a kMeet. */
struct MeetText {
  uint64_t memory;
  uint64_t taken;  // the last number taken from it
};

/** The kind of a feed's version, in files. */
enum class PublicationKind : uint64_t {
  kValue,    // published
  kFetched,  // a value from the upstream
  kItem,     // an item of a log
};

/** Follows a kPublish. */
struct PublishText {
  uint64_t epoch;
  uint32_t key;    // length in bytes
  uint32_t value;  // of the value or item; the patch is the rest
  PublicationKind kind;
};
static_assert(sizeof(PublishText) == 24, "a change of the format is a new version");

/** Padded length of `length` bytes after a record's head, so that records stay aligned. */
constexpr uint64_t paddedLength(uint64_t length) { return (length + 7) & ~uint64_t{7}; }

}  // namespace server

#endif  // SPRITES_JOURNAL_FORMAT_H_
