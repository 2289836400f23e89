// What a state keeps beside the pool: feeds, and notes.
//
//   feeds   "scores"          ─▶ [ cursor │ value │ patches, or items ]          feed.h
//   notes   "ban/192.0.2.1"   ─▶ some bytes, whose owner alone knows what they say
//
// A note has the newest bytes that were noted under a name: a ban, a player of an arena, an arena's
// control, a deleted feed of a world. So data that outlives the process needs a name, and neither a
// file nor a format of its own.
//
// StoredFeedsAndNotes has all feeds and notes of the files. A start reads it and hands its contents
// to their owners. A snapshot is made from one that continues the snapshot before. The running
// server has none: it writes its own feeds and notes (FeedsAndNotes), in the same format.
//
//   ┌────────┬──────────────────────────────┬──────────────────┐
//   │ counts │ feed: head, key, value,      │ note: head,      │
//   │        │ patches and where each is …  │ name, bytes …    │
//   └────────┴──────────────────────────────┴──────────────────┘
//
// Cost: in the journal a publication takes its value, its patch and some 70 bytes; in a snapshot,
// its value and the remembered patches. An item takes its text, its key and some 50 bytes. It also
// says how many items the log has kept, so that a log is the same whatever bounds a start has.
// Rejected: patches alone in the journal (a start would have to apply them, and to write numbers as
// JavaScript does), a file for feeds (two files are never of one moment: after a crash between them
// every later start failed).
#ifndef SPRITES_FEEDS_AND_NOTES_H_
#define SPRITES_FEEDS_AND_NOTES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/journal_format.h"
#include "feeds/feed.h"
#include "snapshot_io.h"

namespace server {

/** Longest name of a note, and most bytes of a note. */
constexpr uint32_t kNoteName = 256;
constexpr uint32_t kNoteBytes = 4 << 20;

/** Largest epoch or version that is read: the largest exact integer of JavaScript. */
constexpr uint64_t kMaxCursor = (uint64_t{1} << 53) - 1;

/** Writes the feeds and notes beside the pool to a snapshot. */
class FeedsAndNotes {
 public:
  /** Receives one feed or note after the other. */
  class Visitor {
   public:
    virtual ~Visitor() = default;
    virtual void feed(std::string_view key, const FeedValue& feed) = 0;
    virtual void note(std::string_view name, std::string_view bytes) = 0;
  };

  virtual ~FeedsAndNotes() = default;

  /**
   * Shows `visitor` all feeds, then all notes; in the same order at every call while nothing
   * changes.
   */
  virtual void each(Visitor* visitor) const = 0;

  void write(SnapshotWriter* writer) const;
};

class StoredFeedsAndNotes : public FeedsAndNotes {
 public:
  using FeedMap = std::map<std::string, FeedValue, std::less<>>;
  using NoteMap = std::map<std::string, std::string, std::less<>>;

  void each(Visitor* visitor) const override;

  /** Applies a record. Returns false for a record that makes no sense. */
  bool apply(const JournalRecord& record, std::string_view text);

  /** Reads what `write` has written. Returns what is wrong with it, or nothing. */
  std::string read(SnapshotReader* reader);

  const FeedMap& feeds() const { return feeds_; }
  NoteMap detachNotes() { return std::exchange(notes_, {}); }

 private:
  bool publish(const JournalRecord& record, std::string_view text);
  bool append(Cursor cursor, std::string_view key, std::string_view item, uint32_t keptItems);

  FeedMap feeds_;
  NoteMap notes_;
};

}  // namespace server

#endif  // SPRITES_FEEDS_AND_NOTES_H_
