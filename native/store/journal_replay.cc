#include "journal_replay.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "base/checksum.h"
#include "torus/seams.h"

namespace server {

namespace {

uint32_t checksumOf(BatchHead head, std::string_view records) {
  head.checksum = 0;
  Checksum checksum;
  checksum.add(reinterpret_cast<const char*>(&head), sizeof head);
  checksum.add(records.data(), records.size());
  return checksum.value();
}

/** Reads the batch at the front of `bytes`; false when there is no whole one. */
bool readBatch(std::string_view bytes, BatchHead* head, std::string_view* records) {
  if (bytes.size() < sizeof *head) return false;
  memcpy(head, bytes.data(), sizeof *head);
  if (memcmp(head->magic, kBatchMagic, sizeof kBatchMagic) != 0) return false;
  if (head->length > bytes.size() - sizeof *head) return false;
  *records = bytes.substr(sizeof *head, head->length);
  return checksumOf(*head, *records) == head->checksum;
}

/**
 * Returns whether a whole batch behind `at` was written when the bytes at `at` were known to be on
 * the disk: then a crash has not torn these bytes, but they were damaged later.
 */
bool isProvenOnDisk(std::string_view bytes, size_t at) {
  for (size_t from = at + 8; from + sizeof(BatchHead) <= bytes.size(); from += 8) {
    // The magic is checked first: a checksum at each place would make this quadratic.
    if (memcmp(bytes.data() + from, kBatchMagic, sizeof kBatchMagic) != 0) continue;
    BatchHead head;
    std::string_view records;
    if (readBatch(bytes.substr(from), &head, &records) && head.synced > at) return true;
  }
  return false;
}

/** Takes the records of a batch apart, never reading past its end. */
bool readRecord(std::string_view* rest, JournalRecord* record, std::string_view* text) {
  if (rest->size() < sizeof *record) return false;
  memcpy(record, rest->data(), sizeof *record);
  rest->remove_prefix(sizeof *record);
  if (paddedLength(record->length) > rest->size()) return false;
  *text = rest->substr(0, record->length);
  rest->remove_prefix(paddedLength(record->length));
  return true;
}

}  // namespace

std::string readJournalHeader(std::string_view bytes, JournalHeader* header,
                              JournalOrigin* origin) {
  if (bytes.size() < sizeof *header) return "it is cut off";
  memcpy(header, bytes.data(), sizeof *header);
  if (memcmp(header->magic, kJournalMagic, sizeof kJournalMagic) != 0) {
    return "it is no journal of a Sprites server";
  }
  if (header->byteOrder != kJournalByteOrder) {
    return "it is of a machine with another byte order";
  }
  if (header->version < kOldestJournalVersion || header->version > kJournalVersion) {
    return "it is of version " + std::to_string(header->version) +
           ", and this program reads up to " + std::to_string(kJournalVersion);
  }
  Checksum checksum;
  checksum.add(bytes.data(), offsetof(JournalHeader, checksum));
  if (checksum.value() != header->checksum) return "its header is damaged";
  JournalOrigin parsed = {};
  if (header->version >= 4) {
    if (bytes.size() < batchesBegin(*header)) return "it is cut off";
    memcpy(&parsed, bytes.data() + sizeof *header, sizeof parsed);
    Checksum sum;
    sum.add(bytes.data() + sizeof *header, offsetof(JournalOrigin, checksum));
    if (sum.value() != parsed.checksum) return "its header is damaged";
  }
  if (origin != nullptr) *origin = parsed;
  return {};
}

/** Applies records by the pool's own steps, as a friend of Pool. */
class ReplayAccess {
 public:
  /** Applies a record. Returns whether it makes sense for the pool as it is. */
  static bool apply(Pool* pool, const JournalRecord& record, std::string_view text) {
    switch (record.step) {
      case JournalStep::kJoin:
        return join(pool, record.record, text);
      case JournalStep::kThrow:
        return throwSprite(pool, record, text);
      case JournalStep::kAck:
        return ack(pool, record);
      case JournalStep::kLeave:
      case JournalStep::kExpire:
        return leave(pool, record);
      case JournalStep::kFly:
      case JournalStep::kLose:
        return fly(pool, record);
      case JournalStep::kGone:
        return freeRecord(pool, record.record);
      case JournalStep::kMoveUp:
        return moveUp(pool, record.record);
      default:
        return applyWorld(pool, record, text);
    }
  }

  /** Applies a record of a world. Returns whether it makes sense for the pool as it is. */
  static bool applyWorld(Pool* pool, const JournalRecord& record, std::string_view text) {
    if (record.step == JournalStep::kMemory) return setMemory(pool, record.number);
    if (pool->ownedSeams_ == nullptr) return false;
    if (record.step == JournalStep::kLife) return beginLife(pool->ownedSeams_.get(), record.number);
    if (record.step == JournalStep::kPeer) return addPeer(pool->ownedSeams_.get(), record, text);
    if (record.other >= pool->ownedSeams_->size()) return false;
    Peer& peer = pool->ownedSeams_->peer(static_cast<PeerNumber>(record.other));
    switch (record.step) {
      case JournalStep::kMeet:
        return setSender(&peer, record.number, text);
      case JournalStep::kThrowOver:
        return throwOver(pool, record, text);
      case JournalStep::kFlyOver:
        return flyOver(pool, record, text);
      case JournalStep::kCrossIn:
        return crossIn(pool, &peer, record, text);
      case JournalStep::kCrossOut:
        return crossOut(pool, &peer, record.number);
      case JournalStep::kTurnBack:
        return turnBack(pool, &peer, record, text);
      case JournalStep::kGiveUp:
        return giveUp(pool, &peer, record.number);
      case JournalStep::kGoOn:
        return renumberAfter(&peer.outbox, record.number);
      default:
        return false;
    }
  }

  static void finish(Pool* pool) {
    pool->freeRecord_ = 0;
    for (uint32_t record = pool->usedRecords_; record-- > 0;) {
      Pool::Client& client = pool->clients_[record];
      // The journal does not say what answers carried: all sprites may have been sent, and acked
      // soon.
      client.mailbox.unsent = 0;
      if (client.live) {
        pool->armTimer(record, pool->options_.lease * uint64_t{1000});
      } else if (!pool->torus_.contains(record)) {
        client.token = pool->freeRecord_;
        pool->freeRecord_ = record + 1;
      }
    }
  }

 private:
  static bool isLive(Pool* pool, uint32_t record) {
    return record < pool->usedRecords_ && pool->clients_[record].live;
  }

  /**
   * Returns whether `record` is the first leaving client: its sprites fly on before those of
   * others.
   */
  static bool isFirstLeaving(Pool* pool, uint32_t record) {
    return !pool->leaving_.empty() && pool->leaving_.front() == record;
  }

  static bool join(Pool* pool, uint32_t record, std::string_view text) {
    JoinText joined;
    if (text.size() != sizeof joined) return false;
    if (record >= pool->options_.capacity) return false;
    memcpy(&joined, text.data(), sizeof joined);
    const Id& id = joined.id;
    if (id.record() != record || !id.isWellFormed() || pool->torus_.contains(record)) return false;
    if (record >= pool->usedRecords_) pool->usedRecords_ = record + 1;
    pool->occupyRecord(record, id);
    const Source source = pool->limits_->findOrAdd(joined.address);
    pool->limits_->addClientAnyway(source);
    pool->clients_[record].source = source;
    return true;
  }

  static bool throwSprite(Pool* pool, const JournalRecord& record, std::string_view text) {
    if (!isLive(pool, record.other) || !admitThrow(pool, record, text)) return false;
    Pool::Client& thrower = pool->clients_[record.record];
    pool->applyThrow(&thrower, &pool->clients_[record.other], record.number, Edge{record.from},
                     text);
    return true;
  }

  /**
   * Charges the thrower of a sprite, wherever the sprite goes. Returns false for a throw that makes
   * no sense.
   */
  static bool admitThrow(Pool* pool, const JournalRecord& record, std::string_view text) {
    // The thrower may have left later in the same turn, never before its throw.
    if (!isLive(pool, record.record) || record.from > 3) return false;
    // The text goes to browsers, so it is checked as a thrown one is.
    if (checkSprite(text, kLongestSprite) != Outcome::kOk) return false;
    const Pool::Client& thrower = pool->clients_[record.record];
    if (record.number != kNoNumber &&
        (record.number > kMaxCounted || record.number + kNumberWindow <= thrower.newestNumber ||
         pool->hasSeenNumber(thrower, record.number))) {
      return false;
    }
    pool->limits_->chargeAnyway(thrower.source, Sprite::charge(text.size()));
    return true;
  }

  static bool ack(Pool* pool, const JournalRecord& record) {
    if (!isLive(pool, record.record)) return false;
    Pool::Client& client = pool->clients_[record.record];
    if (record.number > client.mailbox.sequence) return false;
    pool->acknowledge(&client, record.number);
    return true;
  }

  static bool leave(Pool* pool, const JournalRecord& record) {
    if (!isLive(pool, record.record)) return false;
    ++(record.step == JournalStep::kLeave ? pool->counts_.left : pool->counts_.expired);
    pool->startLeaving(&pool->clients_[record.record]);
    pool->wheel_.disarm(record.record);
    return true;
  }

  static bool fly(Pool* pool, const JournalRecord& record) {
    if (!isFirstLeaving(pool, record.record)) return false;
    Pool::Client& from = pool->clients_[record.record];
    if (pool->oldestSprite(from) == nullptr) return false;
    if (record.step == JournalStep::kLose) {
      pool->loseOldest(&from);
      return true;
    }
    if (record.other >= pool->usedRecords_ || record.other == record.record ||
        !pool->torus_.contains(record.other)) {
      return false;
    }
    // The sprite stays where it stayed then, whatever today's options are: sequence numbers depend
    // on it.
    pool->flyOldest(&from, &pool->clients_[record.other],
                    record.from == 0 ? Stay::kMailbox : Stay::kBacklog);
    return true;
  }

  static bool moveUp(Pool* pool, uint32_t record) {
    if (!isLive(pool, record) || !pool->clients_[record].hasBacklog) return false;
    pool->moveUpOldest(&pool->clients_[record]);
    return true;
  }

  // ---- Of a world -----------------------------------------------------------------------------

  static bool setMemory(Pool* pool, uint64_t memory) {
    if (pool->ownedSeams_ != nullptr || memory == 0 || memory > kMaxCounted) return false;
    pool->ownedSeams_ = std::make_unique<Seams>(memory);
    return true;
  }

  static bool beginLife(Seams* seams, uint64_t life) {
    if (life <= seams->self().life || life > kMaxCounted) return false;
    seams->setLife(life);
    return true;
  }

  static bool addPeer(Seams* seams, const JournalRecord& record, std::string_view name) {
    if (!isPeerName(name) || record.other >= kMaxPeers) return false;
    if (record.other < seams->size()) {
      return seams->replacePeer(static_cast<PeerNumber>(record.other), name);
    }
    if (record.other > seams->size() || seams->findPeer(name) != kNoPeer) return false;
    seams->addPeer(name);
    return true;
  }

  static bool setSender(Peer* peer, uint64_t life, std::string_view text) {
    MeetText meeting;
    if (text.size() != sizeof meeting) return false;
    memcpy(&meeting, text.data(), sizeof meeting);
    if (life < peer->sender.life ||
        std::max({life, meeting.memory, meeting.taken}) >= kMaxFrameNumber) {
      return false;
    }
    peer->sender = {.life = life, .memory = meeting.memory};
    peer->lastTaken = meeting.taken;
    return true;
  }

  /**
   * Reads the route of a sprite, and removes it from the front. Returns false when the sprite can't
   * go there.
   */
  static bool readRoute(const Pool* pool, const JournalRecord& record, std::string_view* text,
                        CrossText* route) {
    if (text->size() < sizeof *route) return false;
    memcpy(route, text->data(), sizeof *route);
    text->remove_prefix(sizeof *route);
    if (route->exitEdge > static_cast<uint8_t>(Edge::kRight) || route->round > 1) return false;
    switch (route->stay) {
      case Stay::kMailbox:
      case Stay::kBacklog:
        return record.record < pool->usedRecords_ && pool->torus_.contains(record.record);
      case Stay::kOutbox:
        return route->peer < pool->ownedSeams_->size();
      case Stay::kNowhere:
        return true;
    }
    return false;
  }

  static bool throwOver(Pool* pool, const JournalRecord& record, std::string_view text) {
    CrossText route;
    if (!readRoute(pool, record, &text, &route) || route.stay != Stay::kOutbox) return false;
    if (!admitThrow(pool, record, text)) return false;
    pool->applyThrowOver(record, route, text);
    return true;
  }

  static bool flyOver(Pool* pool, const JournalRecord& record, std::string_view text) {
    CrossText route;
    if (!isFirstLeaving(pool, record.record)) return false;
    Pool::Client& from = pool->clients_[record.record];
    if (pool->oldestSprite(from) == nullptr || !readRoute(pool, record, &text, &route))
      return false;
    if (route.stay != Stay::kOutbox) return false;
    pool->flyOldestOver(&from, route);
    return true;
  }

  static bool crossIn(Pool* pool, Peer* peer, const JournalRecord& record, std::string_view text) {
    CrossText route;
    if (!readRoute(pool, record, &text, &route) || record.from > 3) return false;
    if (record.number <= peer->lastTaken || record.number >= kMaxFrameNumber) return false;
    if (checkSprite(text, kLongestSprite) != Outcome::kOk) return false;
    pool->applyCrossIn(record, route, text);
    return true;
  }

  static bool crossOut(Pool* pool, Peer* peer, uint64_t upTo) {
    Outbox& outbox = peer->outbox;
    if (upTo < outbox.base() || upTo - outbox.base() >= outbox.size()) return false;
    while (outbox.base() <= upTo) pool->crossOut(outbox.removeOldest());
    return true;
  }

  static bool renumberAfter(Outbox* outbox, uint64_t lastNumber) {
    if (lastNumber + 1 < outbox->base() || lastNumber >= kMaxFrameNumber) return false;
    outbox->setBase(lastNumber + 1);
    outbox->setSettled();
    return true;
  }

  static bool turnBack(Pool* pool, Peer* peer, const JournalRecord& record, std::string_view text) {
    CrossText route;
    if (!readRoute(pool, record, &text, &route) || record.number >= peer->outbox.size())
      return false;
    pool->placeSprite(peer->outbox.removeAt(record.number).sprite, route, record.record);
    return true;
  }

  static bool giveUp(Pool* pool, Peer* peer, uint64_t count) {
    Outbox& outbox = peer->outbox;
    if (count > outbox.size() || outbox.base() + count >= kMaxFrameNumber) return false;
    pool->recordGivenUp(0, count);
    outbox.setBase(outbox.base() + count);
    return true;
  }

  static bool freeRecord(Pool* pool, uint32_t record) {
    if (!isFirstLeaving(pool, record) || pool->oldestSprite(pool->clients_[record]) != nullptr)
      return false;
    pool->leaving_.pop_front();
    pool->torus_.leave(record);
    pool->limits_->removeClient(pool->clients_[record].source);
    return true;
  }
};

ReplayResult replayJournal(std::string_view bytes, uint64_t upTo, Pool* pool,
                           StoredFeedsAndNotes* stored) {
  ReplayResult result;
  JournalHeader header = {};
  result.problem = readJournalHeader(bytes, &header);
  if (!result.problem.empty()) return result;
  const bool isLast = upTo == UINT64_MAX;
  if (!isLast && upTo > bytes.size()) {
    result.problem =
        "it is cut off: the journal after it goes on from byte " + std::to_string(upTo);
    return result;
  }
  const size_t end = isLast ? bytes.size() : upTo;
  size_t at = batchesBegin(header);
  uint64_t sequence = 0;
  while (at < end) {
    BatchHead head;
    std::string_view records;
    if (!readBatch(bytes.substr(at, end - at), &head, &records) || head.sequence != sequence) {
      if (isLast && !isProvenOnDisk(bytes, at)) break;
      result.problem = "it is damaged at byte " + std::to_string(at);
      return result;
    }
    while (!records.empty()) {
      JournalRecord record;
      std::string_view text;
      if (!readRecord(&records, &record, &text) ||
          !(record.step >= JournalStep::kPublish ? stored->apply(record, text)
                                                 : ReplayAccess::apply(pool, record, text))) {
        const bool isBeyond =
            record.step == JournalStep::kJoin && record.record >= pool->options().capacity;
        result.problem =
            isBeyond ? kTooManyClients
                     : "a record in it makes no sense: in the batch at byte " + std::to_string(at);
        return result;
      }
      ++result.records;
    }
    at += sizeof head + head.length;
    ++sequence;
  }
  result.wholeBytes = at;
  result.tornBytes = end - at;
  result.batches = sequence;
  return result;
}

bool isWholeTo(std::string_view bytes, uint64_t upTo) {
  JournalHeader header = {};
  if (upTo > bytes.size() || !readJournalHeader(bytes, &header).empty()) return false;
  size_t at = batchesBegin(header);
  while (at < upTo) {
    BatchHead head;
    std::string_view records;
    if (!readBatch(bytes.substr(at, upTo - at), &head, &records)) return false;
    at += sizeof head + head.length;
  }
  return true;
}

bool provesOnDisk(std::string_view bytes) { return isProvenOnDisk(bytes, 0); }

void finishReplay(Pool* pool) { ReplayAccess::finish(pool); }

}  // namespace server
