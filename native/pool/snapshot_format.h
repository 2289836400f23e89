// The form of a snapshot on disk: what stands one behind the other is drawn in snapshot.h.
#ifndef SPRITES_SNAPSHOT_FORMAT_H_
#define SPRITES_SNAPSHOT_FORMAT_H_

#include <cstdint>

#include "id.h"

namespace server::snapshot_format {

constexpr char kMagic[8] = {'S', 'P', 'R', 'I', 'T', 'E', 'S', '\n'};
constexpr uint32_t kVersion = 3;
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

/** What comes behind the header since version 2; then come the slots of the holes. */
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

/** The most sprites that answers may have carried before they are acked. */
constexpr uint32_t kMostSent = UINT32_MAX / 2;

}  // namespace server::snapshot_format

#endif  // SPRITES_SNAPSHOT_FORMAT_H_
