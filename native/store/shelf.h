// What a state keeps beside the pool: feeds, and notes.
//
//   feeds   "scores"          ─▶ [ cursor │ value │ patches, or items ]          feed.h
//   notes   "ban/192.0.2.1"   ─▶ some bytes, whose owner alone knows what they say
//
// A note is the newest of what was noted under a name: a ban, a player of an arena, an arena's
// control, a feed of a world that was deleted. So whatever is to outlive the process needs a name,
// and neither a file nor a format of its own.
//
// A Shelf is all of it as the files have it: a start reads it and gives it to those it belongs to;
// a snapshot is made of one that goes on from the snapshot before. The living server has no shelf:
// it writes what it has itself (Keepers), in the same form.
//
//   ┌────────┬──────────────────────────────┬──────────────────┐
//   │ counts │ feed: head, key, value,      │ note: head,      │
//   │        │ patches and where each is …  │ name, bytes …    │
//   └────────┴──────────────────────────────┴──────────────────┘
//
// Cost in the journal: a publication takes its value, its patch and some 70 bytes; in a snapshot a
// value and the patches that are remembered. An item takes its text, its key and some 50 bytes; it
// says how many items the log has kept, so that a log is the same whatever bounds a start has.
// Rejected: patches alone in the journal (a start would
// have to apply them, and to write numbers as JavaScript does), a file for feeds (two files are
// never of one moment: a crash between them refused every later start).
#ifndef SPRITES_SHELF_H_
#define SPRITES_SHELF_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/journal_format.h"
#include "feeds/feed.h"
#include "snapshot_io.h"

namespace server {

/** The longest name of a note, and the most bytes it has. */
constexpr uint32_t kNoteName = 256;
constexpr uint32_t kNoteBytes = 4 << 20;

/** The largest epoch or version that is read: numbers of JavaScript. */
constexpr uint64_t kMostCursor = (uint64_t{1} << 53) - 1;

/** Writes what stands beside the pool to a snapshot. */
class Keepers {
 public:
  /** Takes one feed or note after the other. */
  class Taker {
   public:
    virtual ~Taker() = default;
    virtual void feed(std::string_view key, const FeedValue& feed) = 0;
    virtual void note(std::string_view name, std::string_view bytes) = 0;
  };

  virtual ~Keepers() = default;

  /** Gives `taker` all feeds, then all notes; the same at every call in which nothing changes. */
  virtual void each(Taker* taker) const = 0;

  void write(SnapshotWriter* writer) const;
};

class Shelf : public Keepers {
 public:
  using FeedMap = std::map<std::string, FeedValue, std::less<>>;
  using NoteMap = std::map<std::string, std::string, std::less<>>;

  void each(Taker* taker) const override;

  /** Does what a record says; false where it makes no sense. */
  bool apply(const JournalRecord& record, std::string_view text);

  /** Reads what `write` has written; returns what is wrong with it, or nothing. */
  std::string read(SnapshotReader* reader);

  const FeedMap& feeds() const { return feeds_; }
  NoteMap takeNotes() { return std::exchange(notes_, {}); }

 private:
  bool publish(const JournalRecord& record, std::string_view text);
  bool append(Cursor cursor, std::string_view key, std::string_view item, uint32_t kept);

  FeedMap feeds_;
  NoteMap notes_;
};

}  // namespace server

#endif  // SPRITES_SHELF_H_
