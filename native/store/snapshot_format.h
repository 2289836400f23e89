// The form of a snapshot on disk: what stands one behind the other is drawn in snapshot.h.
#ifndef SPRITES_SNAPSHOT_FORMAT_H_
#define SPRITES_SNAPSHOT_FORMAT_H_

#include <cstdint>

#include "base/id.h"

namespace server::snapshot_format {

constexpr char kMagic[8] = {'S', 'P', 'R', 'I', 'T', 'E', 'S', '\n'};
// 5: without logs; 4: and without feeds and notes; 3: and without a world
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
  uint32_t run;                          // of the server that has written it; 0: not known
  uint64_t joined, left, expired, thrown, acked, lost, flown;
};
static_assert(sizeof(Header) == 104, "a change of the format is a new version");

/** What comes behind the header; then come the slots of the holes. */
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
  uint32_t from;  // the edge; and, in a client's order, first those in the mailbox:
};

/** In SpriteEntry::from: it takes room of those that have flown into the mailbox. */
constexpr uint32_t kFlown = 4;

/** In SpriteEntry::from: it waits in the backlog. */
constexpr uint32_t kBehind = 8;

/** What comes behind the leaving clients: since version 5 where kInWorld comes first. */
constexpr uint32_t kInWorld = 1;

/** What a world begins with, since version 4; then come the peers. */
struct WorldHeader {
  uint64_t memory;
  uint64_t life;  // of the process, or of the last one that had one; 0: none had
  uint64_t crossedIn, crossedOut, doubted;
  uint32_t peers;
  uint32_t unused;
};
static_assert(sizeof(WorldHeader) == 48, "a change of the format is a new version");

/** Another server of the world; behind it comes what is in its outbox. */
struct PeerEntry {
  char name[32];  // filled up with zeros
  uint64_t life;  // of its process, as far as anything was taken from it
  uint64_t memory;
  uint64_t taken;
  uint64_t base;
  uint32_t waiting;
  uint32_t asking;  // 0: it has answered the process, which may have sent all of them; else 1 and
                    // how many of them one before may have sent
};
static_assert(sizeof(PeerEntry) == 72, "a change of the format is a new version");

/** A sprite in an outbox; behind it comes its text. */
struct CrosserEntry {
  uint32_t length;
  uint32_t row;
  uint16_t hops;
  uint8_t from;
  uint8_t over;
  uint8_t round;
  uint8_t unused[3];
};
static_assert(sizeof(CrosserEntry) == 16, "a change of the format is a new version");

/** The most sprites that answers may have carried before they are acked. */
constexpr uint32_t kMostSent = UINT32_MAX / 2;

}  // namespace server::snapshot_format

#endif  // SPRITES_SNAPSHOT_FORMAT_H_
