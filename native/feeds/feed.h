// One feed: its newest value, the same compressed, and the patches that lead to it.
//
// FeedValue is the part that outlives the process (feeds_and_notes.h). Feed adds the state of the
// table.
//
// A log is a feed whose versions are items. Each version has its item in place of a patch, and the
// value is empty.
#ifndef SPRITES_FEED_H_
#define SPRITES_FEED_H_

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/address_limits.h"
#include "base/feed_names.h"
#include "base/message.h"
#include "presence.h"

namespace server {

/** Bounds of a log. The newest item is kept in any case. */
struct LogBounds {
  uint32_t items = 1000;
  uint32_t bytes = 1 << 20;  // texts of the items, each with a comma before it
};

/** The part of a log in an answer. */
struct LogPart {
  uint64_t from, to;    // versions: the items after `from`, up to `to`
  uint32_t begin, end;  // their bytes in FeedValue::history
  bool gap;             // older items after the cursor are gone
};

/** A feed's newest version, and the patches that lead to it. */
struct FeedValue {
  Cursor cursor;                   // of the newest version; version 0: no value yet
  base::Ref<base::Bytes> value;    // canonical JSON
  base::Ref<base::Bytes> history;  // patches, a comma before each
  uint32_t historyEnd = 0;         // end of the patches up to this version in `history`
  std::deque<uint32_t>
      entryStarts;        // start of each patch in `history`; the last leads to the newest
  bool upstream = false;  // fetched, not published
  bool isLog = false;     // the patches are items, and the value is empty

  /** Start of the patches from `version` to the newest in `history`; -1 when they are forgotten. */
  int64_t patchesFrom(uint64_t version) const {
    if (version == 0 || version >= cursor.version) return -1;
    const uint64_t steps = cursor.version - version;
    if (steps > entryStarts.size()) return -1;
    return entryStarts[entryStarts.size() - steps];
  }

  /** Whether the operations after `version` are shorter than the value. */
  bool hasShorterPatches(uint64_t version) const {
    const int64_t begin = patchesFrom(version);
    return begin >= 0 && historyEnd - begin < value->length();
  }

  /**
   * Takes a new version. `patch` has the operations from the version before; an empty one makes the
   * feed forget all patches.
   */
  void setValue(Cursor next, base::Ref<base::Bytes> text, std::string_view patch,
                base::Ledger* ledger) {
    const bool continuesEpoch = value && !isLog && next.epoch == cursor.epoch;
    cursor = next;
    value = std::move(text);
    isLog = false;
    appendPatch(continuesEpoch ? patch : std::string_view(), ledger);
  }

  /** How many items a log keeps when it takes a further one of `length` bytes. */
  uint32_t itemCountWith(uint64_t length, LogBounds bounds) const {
    const size_t count = isLog ? entryStarts.size() : 0;
    size_t first = count < bounds.items ? 0 : count + 1 - bounds.items;
    while (first < count && historyEnd - entryStarts[first] + length + 1 > bounds.bytes) ++first;
    return static_cast<uint32_t>(count - first + 1);
  }

  /** Forgets items above the bounds: the last run may have had other bounds. */
  void trimTo(LogBounds bounds) {
    while (entryStarts.size() > 1 &&
           (entryStarts.size() > bounds.items || length() > bounds.bytes)) {
      entryStarts.pop_front();
    }
  }

  /** Bytes of the newest `count` items of a log, with a comma before each. */
  uint32_t bytesOfNewest(uint32_t count) const {
    return count == 0 ? 0 : historyEnd - entryStarts[entryStarts.size() - count];
  }

  /** Bytes of the value, or of the items. */
  uint32_t length() const {
    if (isLog) return bytesOfNewest(static_cast<uint32_t>(entryStarts.size()));
    return value ? value->length() : 0;
  }

  /**
   * Takes an item, with which the log has `itemCount` items. An empty one changes only the cursor.
   * Any other feed becomes a log.
   */
  void append(Cursor next, std::string_view item, uint32_t itemCount, base::Ledger* ledger) {
    if (!isLog) {
      clearHistory();
      value = base::Bytes::make(0, ledger);
      isLog = true;
    }
    cursor = next;
    if (item.empty()) return;
    while (entryStarts.size() >= itemCount) entryStarts.pop_front();
    appendEntry(item, UINT32_MAX, ledger);
  }

  /** The items after `version`, which is not the newest: up to `maxBytes` bytes, but at least one.
   */
  LogPart partAfter(uint64_t version, uint32_t maxBytes) const {
    const uint64_t oldest = cursor.version - entryStarts.size();
    const uint64_t from = std::max(version, oldest);
    const auto first = entryStarts.begin() + static_cast<ptrdiff_t>(from - oldest);
    const uint32_t begin = *first + 1;
    // The end of the last taken item is the start of the first one that is left out.
    auto next = first + 1;
    uint32_t end = historyEnd;
    if (end - begin > maxBytes) {
      next = std::upper_bound(next, entryStarts.end(), uint64_t{begin} + maxBytes);
      if (next != first + 1) --next;
      if (next != entryStarts.end()) end = *next;
    } else {
      next = entryStarts.end();
    }
    const auto count = static_cast<uint64_t>(next - first);
    return {from, from + count, begin, end, version < oldest};
  }

  /** Restores a version of the last run, with its patches. */
  template <typename Starts>
  void restore(Cursor newest, std::string_view text, std::string_view savedHistory,
               const Starts& savedStarts, base::Ledger* ledger) {
    cursor = newest;
    value = base::Bytes::copyOf(text, ledger);
    clearHistory();
    if (savedStarts.empty()) return;
    history = base::Bytes::copyOf(savedHistory, ledger);
    historyEnd = history->length();
    entryStarts.assign(savedStarts.begin(), savedStarts.end());
  }

  void clearHistory() {
    entryStarts.clear();
    history.reset();
    historyEnd = 0;
  }

 private:
  /** Appends the patch to `cursor`, and forgets the oldest patches; an empty one forgets all. */
  void appendPatch(std::string_view patch, base::Ledger* ledger) {
    const uint32_t maxBytes = value->length() / 2;
    // The comma before each patch separates two patches, so it counts.
    const uint64_t length = patch.size() + 1;
    if (patch.empty() || length > maxBytes) return clearHistory();
    while (!entryStarts.empty() && history->length() - entryStarts.front() + length > maxBytes) {
      entryStarts.pop_front();
    }
    appendEntry(patch, maxBytes, ledger);
  }

  /** Appends a text. The memory of all texts is at most twice `maxBytes`. */
  void appendEntry(std::string_view text, uint32_t maxBytes, base::Ledger* ledger) {
    const uint64_t length = text.size() + 1;
    if (entryStarts.empty()) history.reset();
    if (!history || history->freeBytes() < length) {
      const uint32_t begin = entryStarts.empty() ? 0 : entryStarts.front();
      const std::string_view retained =
          history ? history->text().substr(begin) : std::string_view();
      // Twice the need, so that texts are rarely moved; never more than the value.
      const uint64_t needed = retained.size() + length;
      base::Ref<base::Bytes> larger = base::Bytes::make(
          static_cast<uint32_t>(std::min(2 * needed, 2 * uint64_t{maxBytes})), ledger);
      larger->append(retained);
      for (uint32_t& patchBegin : entryStarts) patchBegin -= begin;
      history = std::move(larger);
    }
    entryStarts.push_back(history->length());
    history->append(",");
    history->append(text);
    historyEnd = history->length();
  }
};

/** A feed. The table has its watchers (feeds.h). */
struct Feed : FeedValue {
  std::string key;
  uint32_t number;                  // its index in the table
  base::Ref<base::Bytes> gzip;      // the compressed answer with the value; may be missing
  uint32_t watching = 0;            // watchers
  uint32_t patching = 0;            // watchers that take patches
  uint32_t atWorkers = 0;           // watchers at workers
  uint32_t patchingAtWorkers = 0;   // watchers at workers that take patches
  std::bitset<128> waitingWorkers;  // workers that asked for the feed while it had no value
  uint32_t peakWatchers = 0;        // most watchers since the last version of its presence feed
  uint64_t lastRequestAt = 0;       // milliseconds: the last request for it
  uint64_t commentDueAt = 0;    // milliseconds: a stream with the last version is quiet after this
  uint64_t patchesUntil = 0;    // milliseconds: patches are made until then, even without watchers
  uint64_t failedUntil = 0;     // milliseconds: the failed first fetch is not repeated before
  Source source = kNoSource;    // the address for which it counts: the first that asked
  bool isQueued = false;        // in Feeds::feedsWithDue_: it has watchers that are due
  bool isDeleted = false;       // deleted: in the table until its watchers are answered
  bool fetchRequested = false;  // JavaScript was asked for the first value
  bool fetchRequestedByWaiter = false;  // the asking watcher also waits for an unpublished feed
  uint32_t fetchTaskNumber = 0;         // number of the last such Task
  bool isAwaited = false;          // not published: it exists for watchers that wait for a value
  bool gzipRequested = false;      // JavaScript was asked to compress this version
  bool gzipFailed = false;         // this version could not be compressed
  bool hasGzipReaders = false;     // a client took this version compressed, or waits for that
  bool isEvictable = false;        // could not be fetched: in Feeds::evictable_
  bool isDirty = false;            // its requests or watchers have changed since takeDirty
  uint64_t unledgeredCounted = 0;  // the part of unledgeredBytes that the table has counted
  uint8_t failure = 0;             // why there is no value: an Outcome
  std::list<Feed*>::iterator
      evictablePosition;               // its place in Feeds::evictable_, while isEvictable
  std::unique_ptr<Names> names;        // names of its watchers; mostly none
  std::unique_ptr<Presence> presence;  // of a presence feed

  /** Its watchers, also those at workers. */
  uint32_t watchers() const { return watching + atWorkers; }

  /** Whether a client takes patches to the next version, or may come back for them. */
  bool takesPatches(uint64_t now) const {
    return patching + patchingAtWorkers > 0 || now < patchesUntil;
  }

  /** Shorter answers are not compressed. */
  static constexpr uint32_t kCompressFrom = 1024;

  /** The text before the value in an answer; behind the value comes a brace. */
  void appendHead(std::string* text) const {
    *text += "{\"feed\":\"";
    *text += key;
    *text += "\",\"cursor\":\"";
    cursor.appendTo(text);
    *text += "\",\"value\":";
  }

  /** The text before the items in an answer; it ends with a bracket. */
  void appendHead(std::string* text, const LogPart& part) const {
    *text += "{\"feed\":\"";
    *text += key;
    *text += "\",\"from\":\"";
    Cursor{cursor.epoch, part.from}.appendTo(text);
    *text += "\",\"cursor\":\"";
    Cursor{cursor.epoch, part.to}.appendTo(text);
    *text += part.gap ? "\",\"gap\":true,\"items\":[" : "\",\"items\":[";
  }

  /** Appends the tag of an answer with the newest version; `from` is that of a patch, 0 for a
   * value. */
  void appendTag(std::string* text, uint64_t from, bool compressed) const {
    cursor.appendTo(text);
    if (from > 0) {
      *text += ".";
      base::appendDigits(text, from);
    }
    if (compressed) *text += ".gzip";
  }

  /** Appends the tag of an answer with items. */
  void appendTag(std::string* text, const LogPart& part) const {
    Cursor{cursor.epoch, part.to}.appendTo(text);
    *text += part.gap ? ".gap." : ".";
    base::appendDigits(text, part.from);
  }

  /** Memory of the feed, in bytes. */
  uint64_t cost() const {
    return (value ? value->cost() : 0) + (gzip ? gzip->cost() : 0) +
           (history ? history->cost() : 0) + unledgeredBytes();
  }

  /** The part of the memory that no ledger has. */
  uint64_t unledgeredBytes() const { return isLog ? entryStarts.size() * sizeof(uint32_t) : 0; }
};

}  // namespace server

#endif  // SPRITES_FEED_H_
