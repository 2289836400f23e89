// The journal: the promises of 202 answers, on disk before the answers are sent.
//
//   pool ──add──▶ batch in memory ──write, once a turn──▶ file ──fdatasync, in a thread──▶ disk
//                                        │                            │
//                                  survives the process        survives the machine
//
// Lifecycle: closed; open; and, when a write fails, blocked. The unwritten bytes then stay in
// memory and are tried again at each tick, and the pool promises and delivers nothing new until
// they are written. Space for the next turns is reserved in advance (fallocate), so that a full
// disk is noticed before a promise is made, not after it.
//
// Cost: one copy of a sprite's text, and one write for each turn. Rejected: a write for each
// promise (a system call for each throw), a memory-mapped file (a full disk is then a SIGBUS),
// O_DIRECT (a turn would have to wait for the disk), a thread that writes (two context switches for
// 5 µs of work).
#ifndef SPRITES_JOURNAL_H_
#define SPRITES_JOURNAL_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "address.h"
#include "feed_names.h"
#include "id.h"
#include "journal_format.h"

namespace server {

/** Bytes of disk space reserved in advance: enough for many turns. */
constexpr uint64_t kJournalReserve = 4 << 20;

/** Free bytes that a journal wants: the reserve, and as much again, so that it seldom reserves. */
constexpr uint64_t kJournalRoom = 2 * kJournalReserve;

/**
 * Most bytes that wait in memory while the disk accepts none: some 2.8 million acks and leaves,
 * since joins and throws are refused then.
 */
constexpr uint64_t kMaxJournalBacklog = 64 << 20;

class Journal {
 public:
  /**
   * `run`: number of this run of the server; `backlog`: most bytes that wait in memory while the
   * disk accepts none.
   */
  explicit Journal(uint32_t run = 0, uint64_t backlog = kMaxJournalBacklog)
      : run_(run), backlog_(backlog) {}
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /**
   * Creates the file `path`, which must not exist, for a journal that continues the snapshot of
   * `generation` and, if it follows another journal, the first `previous` bytes of that one. Writes
   * there what is in memory and not yet written. `origin`: its fields, without the file's inode.
   * Returns 0; or errno, and then the journal is as before.
   */
  int open(const std::string& path, uint64_t generation, uint64_t previous,
           JournalOrigin origin = {});
  void close() { file_.reset(); }

  bool isOpen() const { return file_ != nullptr; }
  /** The descriptor; it stays open as long as a reference is held. */
  const std::shared_ptr<const int>& file() const { return file_; }

  void join(uint32_t record, const Id& id, const Address& address);
  void throwSprite(uint32_t thrower, uint32_t receiver, uint64_t number, uint8_t from,
                   std::string_view text);
  void ack(uint32_t record, uint64_t ack) {
    add({.step = JournalStep::kAck, .record = record, .number = ack}, {});
  }
  void leave(uint32_t record) { add({.step = JournalStep::kLeave, .record = record}, {}); }
  void expire(uint32_t record) { add({.step = JournalStep::kExpire, .record = record}, {}); }
  void fly(uint32_t record, uint32_t to, bool intoBacklog) {
    add({.step = JournalStep::kFly, .from = intoBacklog, .record = record, .other = to}, {});
  }
  void moveUp(uint32_t record) { add({.step = JournalStep::kMoveUp, .record = record}, {}); }
  void lose(uint32_t record, uint8_t reason) {
    add({.step = JournalStep::kLose, .from = reason, .record = record}, {});
  }
  void removeClient(uint32_t record) { add({.step = JournalStep::kGone, .record = record}, {}); }

  // Outside the pool: see feeds_and_notes.h.
  void publish(std::string_view key, Cursor cursor, std::string_view value, std::string_view patch,
               bool upstream);
  /** An item of a log, which has `itemCount` items then; empty: only the epoch changes. */
  void append(std::string_view key, Cursor cursor, std::string_view item, uint32_t itemCount);
  void unpublish(std::string_view key) { add({.step = JournalStep::kUnpublish}, key); }
  void note(std::string_view name, std::string_view bytes) {
    add({.step = JournalStep::kNote, .other = static_cast<uint32_t>(name.size())}, name, bytes);
  }
  void unnote(std::string_view name) { add({.step = JournalStep::kUnnote}, name); }

  // Of a world: see JournalStep.
  void memory(uint64_t memory) { add({.step = JournalStep::kMemory, .number = memory}, {}); }
  void life(uint64_t life) { add({.step = JournalStep::kLife, .number = life}, {}); }
  void peer(uint32_t peer, std::string_view name) {
    add({.step = JournalStep::kPeer, .other = peer}, name);
  }
  void meet(uint32_t peer, uint64_t life, const MeetText& text) {
    add({.step = JournalStep::kMeet, .other = peer, .number = life}, bytesOf(text));
  }
  /**
   * Adds a step of a sprite that crosses. `record` has the kind of the step, and `sprite` the text
   * if the step needs it.
   */
  void cross(const JournalRecord& record, const CrossText& text, std::string_view sprite) {
    add(record, bytesOf(text), sprite);
  }
  void crossOut(uint32_t peer, uint64_t upTo) {
    add({.step = JournalStep::kCrossOut, .other = peer, .number = upTo}, {});
  }
  void giveUp(uint32_t peer, uint64_t count) {
    add({.step = JournalStep::kGiveUp, .other = peer, .number = count}, {});
  }
  void numberAfter(uint32_t peer, uint64_t behind) {
    add({.step = JournalStep::kGoOn, .other = peer, .number = behind}, {});
  }

  /** Whether records wait to be written. */
  bool pending() const { return batch_.size() > sizeof(BatchHead); }

  /**
   * Writes the added records as one batch. `synced`: bytes of the file that are known to be on the
   * disk. Returns 0 when all are in the file; or errno: they are kept, and the next call tries
   * again.
   */
  int write(uint64_t synced);

  /** Drops the records that wait to be written: a snapshot has them. */
  void discardPending();

  /** errno of the failure that keeps the journal from taking promises; 0: it takes them. */
  int blocked() const { return blocked_; }

  /** Sets whether records added now are sure to be written, so that they may be promised. */
  void setPromising(bool mayPromise) { isPromising_ = mayPromise; }
  bool isPromising() const { return isPromising_; }

  /** Whether a batch was not written, or only in part: it waits for the next `write`. */
  bool isStuck() const { return isSealed_; }

  /** Whether a further step may be added: always, unless too much waits behind a stuck batch. */
  bool hasRoom() const { return !isSealed_ || batch_.size() + nextBatch_.size() < backlog_; }

  /** Bytes in memory of a stuck batch and of the records behind it. */
  uint64_t stuckBytes() const { return isSealed_ ? batch_.size() + nextBatch_.size() : 0; }

  /** Calls `visit(record)` for each record of a stuck batch. */
  template <typename See>
  void forEachStuck(See&& visit) const {
    if (!isSealed_) return;
    for (size_t at = sizeof(BatchHead); at < batch_.size();) {
      JournalRecord record;
      memcpy(&record, &batch_[at], sizeof record);
      visit(record);
      at += sizeof record + paddedLength(record.length);
    }
  }

  /** Bytes of the file. */
  uint64_t bytes() const { return fileBytes_; }

  /** Batches written to this file. */
  uint64_t batches() const { return sequence_; }

 private:
  template <typename Text>
  static std::string_view bytesOf(const Text& text) {
    return {reinterpret_cast<const char*>(&text), sizeof text};
  }
  void add(JournalRecord record, std::string_view first, std::string_view second = {},
           std::string_view third = {}, std::string_view fourth = {});
  int reserveSpace(uint64_t upTo);

  const uint32_t run_;
  const uint64_t backlog_;
  std::shared_ptr<const int> file_;
  std::string batch_;             // a head, still to be filled in, and the records after it
  size_t batchBytesWritten_ = 0;  // bytes of it that are in the file, after a partial write
  bool isSealed_ = false;         // the head is filled in: further records go to nextBatch_
  std::string nextBatch_;         // records that wait behind a sealed batch
  uint64_t fileBytes_ = 0;        // bytes of the file
  uint64_t reservedBytes_ = 0;    // bytes of disk space reserved for the file
  uint64_t sequence_ = 0;
  int blocked_ = 0;
  bool isPromising_ = true;
};

}  // namespace server

#endif  // SPRITES_JOURNAL_H_
