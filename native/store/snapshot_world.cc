#include "snapshot_world.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/json_reader.h"
#include "snapshot_format.h"

namespace server {

using namespace snapshot_format;

namespace {

constexpr char kBadWorld[] = "its world makes no sense";

PeerEntry entryOf(const Peer& peer) {
  PeerEntry entry = {
      .name = {},
      .life = peer.sender.life,
      .memory = peer.sender.memory,
      .lastTaken = peer.lastTaken,
      .base = peer.outbox.base(),
      .waiting = static_cast<uint32_t>(peer.outbox.size()),
      .maybeSentPlusOne = peer.outbox.isSettled()
                              ? 0
                              : static_cast<uint32_t>(peer.outbox.maybeSentAtRestart()) + 1};
  memcpy(entry.name, peer.name.data(), std::min(peer.name.size(), sizeof entry.name));
  return entry;
}

/**
 * Reads the sprites that wait for a peer into its outbox. Returns what is wrong with them, or
 * nothing.
 */
std::string readOutbox(SnapshotReader* reader, uint32_t count,
                       const std::function<Sprite*(std::string_view text, Edge from)>& makeSprite,
                       Outbox* outbox) {
  for (uint32_t i = 0; i < count; ++i) {
    CrosserEntry entry;
    std::string_view text;
    if (!reader->read(&entry) || !reader->read(entry.length, &text)) return kTooEarly;
    // The text goes to browsers, so it is checked as a thrown one is.
    if (entry.from > 3 || entry.exitEdge > 1 || entry.round > 1 || text.size() > kLongestSprite ||
        !base::isJsonObject(text.data(), text.size())) {
      return kBadWorld;
    }
    outbox->push({makeSprite(text, Edge{entry.from}), entry.row, Edge{entry.exitEdge}, entry.round,
                  entry.hops});
  }
  return {};
}

}  // namespace

void writeWorld(const Seams& seams, const PoolCounts& counts, SnapshotWriter* writer) {
  writer->append(WorldHeader{.memory = seams.self().memory,
                             .life = seams.self().life,
                             .crossedIn = counts.crossedIn,
                             .crossedOut = counts.crossedOut,
                             .crossedInDoubt = counts.crossedInDoubt,
                             .peers = static_cast<uint32_t>(seams.size()),
                             .unused = 0});
  for (size_t number = 0; number < seams.size(); ++number) {
    const Peer& peer = seams.peer(static_cast<PeerNumber>(number));
    writer->append(entryOf(peer));
    peer.outbox.each([writer](const Crosser& one) {
      writer->append(CrosserEntry{.length = static_cast<uint32_t>(one.sprite->length),
                                  .row = one.row,
                                  .hops = one.hops,
                                  .from = static_cast<uint8_t>(one.sprite->from),
                                  .exitEdge = static_cast<uint8_t>(one.exitEdge),
                                  .round = one.round,
                                  .unused = {}});
      writer->append(one.sprite->text().data(), one.sprite->length);
    });
  }
}

std::string readWorld(SnapshotReader* reader,
                      const std::function<Sprite*(std::string_view text, Edge from)>& makeSprite,
                      std::unique_ptr<Seams>* seams, PoolCounts* counts) {
  WorldHeader header;
  if (!reader->read(&header)) return kTooEarly;
  for (const uint64_t number :
       {header.memory, header.life, header.crossedIn, header.crossedOut, header.crossedInDoubt}) {
    if (number > kMaxCounted) return kBadWorld;
  }
  if (header.memory == 0 || header.peers > kMaxPeers) return kBadWorld;
  *seams = std::make_unique<Seams>(header.memory);
  (*seams)->setLife(header.life);
  for (uint32_t i = 0; i < header.peers; ++i) {
    PeerEntry entry;
    if (!reader->read(&entry)) return kTooEarly;
    const std::string_view name(entry.name, strnlen(entry.name, sizeof entry.name));
    if (!isPeerName(name) || (*seams)->findPeer(name) != kNoPeer || entry.base == 0 ||
        std::max({entry.life, entry.memory, entry.lastTaken, entry.base}) >= kMaxFrameNumber) {
      return kBadWorld;
    }
    Peer& peer = (*seams)->peer((*seams)->addPeer(name));
    peer.sender = {.life = entry.life, .memory = entry.memory};
    peer.lastTaken = entry.lastTaken;
    peer.outbox.setBase(entry.base);
    if (entry.maybeSentPlusOne > entry.waiting + uint64_t{1}) return kBadWorld;
    entry.maybeSentPlusOne == 0 ? peer.outbox.setSettled()
                                : peer.outbox.setMaybeSent(entry.maybeSentPlusOne - 1);
    std::string problem = readOutbox(reader, entry.waiting, makeSprite, &peer.outbox);
    if (!problem.empty()) return problem;
    counts->waiting += peer.outbox.size();
    counts->mailboxBytes += peer.outbox.bytes();
  }
  counts->crossedIn = header.crossedIn;
  counts->crossedOut = header.crossedOut;
  counts->crossedInDoubt = header.crossedInDoubt;
  return {};
}

}  // namespace server
