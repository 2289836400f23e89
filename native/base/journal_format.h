// The form of a journal on disk: what happened to the pool since a snapshot, in order.
//
//   ┌────────┬───────────────────────┬───────────────────────┬──
//   │ header │ batch: head, records  │ batch: head, records  │ …
//   │ origin │ of one turn           │ of the next turn      │
//   └────────┴───────────────────────┴───────────────────────┴──
//
//   record   [ step, from │ record │ other │ length │ number ][ length bytes, filled up to 8 ]
//
// Numbers are little-endian, as this machine's are (checked by the mark in the header). Every
// record has the same head of 24 bytes, so that one loop reads and writes all of them; a throw of a
// sprite of 200 bytes takes 224. A batch is written with one system call and carries its number,
// the checksum of all of it, and how far the file was known to be on the disk: so a reader can tell
// the torn end of a file from damage in its middle.
//
// Rejected: a checksum for each record (4 bytes more, and a batch is whole or not at all anyway),
// records of different heads (8 bytes less for an ack, and a reader for each).
#ifndef SPRITES_JOURNAL_FORMAT_H_
#define SPRITES_JOURNAL_FORMAT_H_

#include <cstdint>

#include "address.h"
#include "id.h"

namespace server {

constexpr char kJournalMagic[8] = {'S', 'P', 'R', 'I', 'T', 'E', 'J', '\n'};
// 2: without what crosses; 3: without feeds, notes and the origin; 4: without logs
constexpr uint32_t kJournalVersion = 5;
constexpr uint32_t kOldestJournal = 2;  // of Sprites 0.1
/** The first with feeds, notes and the origin: nothing is in files beside the state. */
constexpr uint32_t kWithFeeds = 4;
constexpr uint32_t kJournalByteOrder = 0x01020304;
constexpr char kBatchMagic[4] = {'S', 'P', 'B', '\n'};

/** The first bytes of a journal. */
struct JournalHeader {
  char magic[8];
  uint32_t version;
  uint32_t byteOrder;
  uint64_t generation;  // the snapshot of this generation is what the journal goes on from
  uint64_t previous;    // bytes of the journal before this one that count; 0 where there is none
  uint32_t run;         // of the server that writes it: one number a run; 0: not known
  uint32_t checksum;    // of the fields before
};
static_assert(sizeof(JournalHeader) == 40, "a change of the format is a new version");

/**
 * What stands behind the header since version 4: by it a start tells whether the file may have lost
 * its end, or is a copy and perhaps an old one. Then versions of feeds may have been used that it
 * does not know.
 */
struct JournalOrigin {
  char boot[40];      // of the machine: the text of its boot id, filled up with zeros
  uint64_t inode;     // of the file itself
  uint32_t synced;    // 1: nothing was answered before the disk had it
  uint32_t checksum;  // of the fields before
};
static_assert(sizeof(JournalOrigin) == 56, "a change of the format is a new version");

/** What a journal begins with. */
struct JournalBegin {
  JournalHeader header;
  JournalOrigin origin;
};

/** Where the batches of a journal begin. */
constexpr uint64_t batchesBegin(const JournalHeader& header) {
  return sizeof header + (header.version < kWithFeeds ? 0 : sizeof(JournalOrigin));
}

/** The head of what one turn has written. */
struct BatchHead {
  char magic[4];
  uint32_t length;    // bytes of records behind the head
  uint64_t sequence;  // 0, 1, 2 … in each file
  uint64_t synced;    // bytes of the file that were on the disk when the batch was written
  uint32_t unused;
  uint32_t checksum;  // of the head, with 0 here, and of the records
};
static_assert(sizeof(BatchHead) == 32, "a change of the format is a new version");

/** What happened. */
enum class JournalStep : uint8_t {
  kJoin = 1,    // `record` joined; its id follows, and the address it has come from
  kThrow = 2,   // `record` threw to `other`, with its number; the sprite's text follows
  kAck = 3,     // `record` has acked up to `number`
  kLeave = 4,   // `record` left; its sprites are to fly on
  kExpire = 5,  // the lease of `record` ended; its sprites are to fly on
  kFly = 6,     // the oldest sprite of `record`, which leaves, flew on to `other`; `from` is 1
                // where it waits in the backlog there, and 0 in the mailbox
  kLose = 7,    // the oldest sprite of `record`, which leaves, is lost; `from` is the reason
  kGone = 8,    // `record`, which has left and is empty, is out of the torus
  kMoveUp = 9,  // the oldest sprite in the backlog of `record` entered its mailbox

  // Of a world of several servers (seams.h); `other` is one of them, by its number. `record`
  // is the client on which a sprite has landed; kNoLanding: it has not.
  kMemory = 10,     // this and all later processes have the memory `number`
  kLife = 11,       // this process has the life `number`
  kPeer = 12,       // `other`, the next number or that of a server that is forgotten for it, is the
                    // server whose name follows
  kMeet = 13,       // the process of `other` with the life `number` sends; a MeetText follows
  kThrowOver = 14,  // `record` threw over a seam, with its number; CrossText and the sprite follow
  kFlyOver = 15,    // the oldest sprite of `record`, which leaves, flew over a seam; CrossText
  kCrossIn = 16,    // a sprite of `other`, number `number`; CrossText, and the sprite, follow
  kCrossOut = 17,   // `other` has taken what was in its outbox, up to the number `number`
  kTurnBack =
      18,        // the sprite at place `number` of the outbox of `other` goes elsewhere; CrossText
  kGiveUp = 19,  // the oldest `number` in the outbox of `other` are in doubt no more: they are not
                 // its any more
  kGoOn = 20,    // `other` has told this process what it has taken: what waits for it has the
                 // numbers behind `number`

  // Beside the pool (shelf.h).
  kPublish = 21,    // a feed has the version `number`; a PublishText, its key, value and patch
                    // follow; of a log, `other` is how many items it has then
  kUnpublish = 22,  // there is no feed of the key that follows
  kNote = 23,       // a name of `other` bytes follows, and what is noted under it
  kUnnote = 24,     // nothing is noted under the name that follows
};

/** In JournalRecord::record: the sprite has not landed. */
constexpr uint32_t kNoLanding = UINT32_MAX;

/** The head of every record. */
struct JournalRecord {
  JournalStep step;
  uint8_t from = 0;  // the edge by which a sprite enters; the reason of a loss
  uint16_t unused = 0;
  uint32_t record = 0;
  uint32_t other = 0;
  uint32_t length = 0;  // bytes that follow
  uint64_t number = 0;
};
static_assert(sizeof(JournalRecord) == 24, "a change of the format is a new version");

/** What follows a kJoin. */
struct JoinText {
  Id id;
  Address address;
};
static_assert(sizeof(JoinText) == 32, "a change of the format is a new version");

/** Where a sprite waits that has crossed, or is to. */
enum class Stay : uint8_t { kMailbox, kBacklog, kOutbox, kNowhere };

/** What follows a record of a sprite that crosses: where it is on its way, and where it waits. */
struct CrossText {
  uint32_t row;
  uint16_t hops;
  uint8_t over;   // the edge
  uint8_t round;  // see Crosser
  uint16_t peer;  // kOutbox: whose
  Stay stay;      // kNowhere: it is lost
  uint8_t unused[5];
};
static_assert(sizeof(CrossText) == 16, "a change of the format is a new version");

/** What follows a kMeet. */
struct MeetText {
  uint64_t memory;
  uint64_t taken;  // the last number from it
};

/** What a version of a feed is, as files have it. */
enum class Published : uint64_t {
  kValue,    // published
  kFetched,  // a value from the upstream
  kItem,     // a log's
};

/** What follows a kPublish. */
struct PublishText {
  uint64_t epoch;
  uint32_t key;    // bytes of it
  uint32_t value;  // bytes of it, or of the item; the rest is the patch from the version before
  Published what;
};
static_assert(sizeof(PublishText) == 24, "a change of the format is a new version");

/** Bytes that `length` bytes take behind a record: filled up, so that records stay aligned. */
constexpr uint64_t paddedLength(uint64_t length) { return (length + 7) & ~uint64_t{7}; }

}  // namespace server

#endif  // SPRITES_JOURNAL_FORMAT_H_
