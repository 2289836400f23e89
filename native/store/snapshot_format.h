// The format of a snapshot on disk. The order of its parts is drawn in snapshot.h.
#ifndef SPRITES_SNAPSHOT_FORMAT_H_
#define SPRITES_SNAPSHOT_FORMAT_H_

#include <cstdint>

#include "base/id.h"

namespace server::snapshot_format {

constexpr char kMagic[8] = {'S', 'P', 'R', 'I', 'T', 'E', 'S', '\n'};
// Older versions: 5 has no logs, 4 no feeds and notes either, 3 no world either.
constexpr uint32_t kVersion = 6;
constexpr uint32_t kOldestVersion = 3;  // of Sprites 0.1
constexpr uint32_t kByteOrder = 0x01020304;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t byteOrder;
  uint64_t clients;
  uint64_t sprites;
  uint32_t opened, ownRows, ownColumns;  // the torus
  uint32_t run;                          // run of the server that has written it; 0: not known
  uint64_t joined, left, expired, thrown, acked, lost, flown;
};
static_assert(sizeof(Header) == 104, "a change of the format is a new version");

/** Follows the header. The slots of the holes follow it. */
struct MoreHeader {
  uint64_t generation;
  uint32_t holes;
  uint32_t leaving;
};
static_assert(sizeof(MoreHeader) == 16, "a change of the format is a new version");

struct ClientEntry {
  uint32_t record;
  uint32_t slot;
  Id id;
  uint64_t newestNumber;
  uint64_t seenNumbers;
  uint64_t sequence;
  uint32_t waiting;
  uint32_t unsent;
};
static_assert(sizeof(ClientEntry) == 56, "a change of the format is a new version");

struct SpriteEntry {
  uint32_t length;
  uint32_t from;  // the edge, plus a flag below; a client's mailbox comes before its backlog
};

/** Flag in SpriteEntry::from: the sprite counts in Mailbox::flown. */
constexpr uint32_t kFlown = 4;

/** Flag in SpriteEntry::from: the sprite waits in the backlog. */
constexpr uint32_t kBehind = 8;

/** Follows the leaving clients since version 5: kInWorld before a world's part, else 0. */
constexpr uint32_t kInWorld = 1;

/** The head of a world's part, since version 4. The peers follow it. */
struct WorldHeader {
  uint64_t memory;
  uint64_t life;  // of the last process that had one; 0: none had
  uint64_t crossedIn, crossedOut, crossedInDoubt;
  uint32_t peers;
  uint32_t unused;
};
static_assert(sizeof(WorldHeader) == 48, "a change of the format is a new version");

/** Another server of the world. The sprites in its outbox follow it. */
struct PeerEntry {
  char name[32];  // padded with zeros
  uint64_t life;  // of its process that sent last; 0: none yet
  uint64_t memory;
  uint64_t lastTaken;
  uint64_t base;
  uint32_t waiting;
  uint32_t maybeSentPlusOne;  // 0: it has answered this process, which may have sent all sprites;
                              // else 1 and how many of them an earlier process may have sent
};
static_assert(sizeof(PeerEntry) == 72, "a change of the format is a new version");

/** A sprite in an outbox. Its text follows it. */
struct CrosserEntry {
  uint32_t length;
  uint32_t row;
  uint16_t hops;
  uint8_t from;
  uint8_t exitEdge;
  uint8_t round;
  uint8_t unused[3];
};
static_assert(sizeof(CrosserEntry) == 16, "a change of the format is a new version");

/** Most bytes of a mailbox that is read (Mailbox::bytes). */
constexpr uint32_t kMaxMailboxBytes = UINT32_MAX / 2;

}  // namespace server::snapshot_format

#endif  // SPRITES_SNAPSHOT_FORMAT_H_
