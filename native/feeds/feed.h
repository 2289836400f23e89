// One feed: its newest value, the same compressed, and the patches that lead to it.
//
// FeedValue is what outlives the process (shelf.h); Feed is that and what the table knows of it.
//
// A log is a feed whose versions are items: what would be the patch to a version is the item that
// the version has brought, and the value is empty.
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

/** What a log keeps at most, besides its newest item. */
struct LogBounds {
  uint32_t items = 1000;
  uint32_t bytes = 1 << 20;  // of their texts, with a comma before each
};

/** What an answer has of a log. */
struct LogPart {
  uint64_t from, to;    // the items behind this version, up to that one
  uint32_t begin, end;  // where in FeedValue::log they are
  bool gap;             // older ones that were asked for are gone
};

/** A feed's newest version, and the patches that lead to it. */
struct FeedValue {
  Cursor cursor;                 // of the newest version; version 0: there is no value yet
  base::Ref<base::Bytes> value;  // canonical JSON
  base::Ref<base::Bytes> log;    // patches, a comma before each
  uint32_t logEnd = 0;           // of what of the log leads to this version
  std::deque<uint32_t> patches;  // where in the log each begins; the last leads to the newest
  bool upstream = false;         // fetched, not published
  bool isLog = false;            // the patches are items; the value is there, and empty

  /** Where in the log the patches from `version` to the newest begin; -1 when not remembered. */
  int64_t patchesFrom(uint64_t version) const {
    if (version == 0 || version >= cursor.version) return -1;
    const uint64_t steps = cursor.version - version;
    if (steps > patches.size()) return -1;
    return patches[patches.size() - steps];
  }

  /** The operations from `version` on are shorter than the value. */
  bool remembers(uint64_t version) const {
    const int64_t begin = patchesFrom(version);
    return begin >= 0 && logEnd - begin < value->length();
  }

  /**
   * Takes a new version. `patch`: the operations that lead to it from the version before; empty
   * where there are none, and then no earlier version is remembered.
   */
  void take(Cursor next, base::Ref<base::Bytes> text, std::string_view patch,
            base::Ledger* ledger) {
    const bool goesOn = value && !isLog && next.epoch == cursor.epoch;
    cursor = next;
    value = std::move(text);
    isLog = false;
    remember(goesOn ? patch : std::string_view(), ledger);
  }

  /** How many items a log keeps that takes one more, of `length` bytes. */
  uint32_t keptWith(uint64_t length, LogBounds most) const {
    const size_t count = isLog ? patches.size() : 0;
    size_t first = count < most.items ? 0 : count + 1 - most.items;
    while (first < count && logEnd - patches[first] + length + 1 > most.bytes) ++first;
    return static_cast<uint32_t>(count - first + 1);
  }

  /** Forgets items that are above the bounds: those of the last run were others. */
  void keepWithin(LogBounds most) {
    while (patches.size() > 1 && (patches.size() > most.items || length() > most.bytes)) {
      patches.pop_front();
    }
  }

  /** Bytes of the newest `count` items of a log, with a comma before each. */
  uint32_t bytesOf(uint32_t count) const {
    return count == 0 ? 0 : logEnd - patches[patches.size() - count];
  }

  /** Bytes of its value, or of its items. */
  uint32_t length() const {
    if (isLog) return bytesOf(static_cast<uint32_t>(patches.size()));
    return value ? value->length() : 0;
  }

  /**
   * Takes an item, with which a log has `kept`; an empty one is none, and only the cursor is
   * another then. What is no log becomes one.
   */
  void append(Cursor next, std::string_view item, uint32_t kept, base::Ledger* ledger) {
    if (!isLog) {
      forget();
      value = base::Bytes::make(0, ledger);
      isLog = true;
    }
    cursor = next;
    if (item.empty()) return;
    while (patches.size() >= kept) patches.pop_front();
    add(item, UINT32_MAX, ledger);
  }

  /** The items behind `version`, which is before the newest: up to `most` bytes, and always one. */
  LogPart partAfter(uint64_t version, uint32_t most) const {
    const uint64_t oldest = cursor.version - patches.size();
    const uint64_t from = std::max(version, oldest);
    const auto first = patches.begin() + static_cast<ptrdiff_t>(from - oldest);
    const uint32_t begin = *first + 1;
    // Behind the last item that is taken: where the first one begins that is not.
    auto next = first + 1;
    uint32_t end = logEnd;
    if (end - begin > most) {
      next = std::upper_bound(next, patches.end(), uint64_t{begin} + most);
      if (next != first + 1) --next;
      if (next != patches.end()) end = *next;
    } else {
      next = patches.end();
    }
    const auto count = static_cast<uint64_t>(next - first);
    return {from, from + count, begin, end, version < oldest};
  }

  /** Takes over a version of the last run, with what is remembered of those before it. */
  template <typename Places>
  void restore(Cursor newest, std::string_view text, std::string_view remembered,
               const Places& places, base::Ledger* ledger) {
    cursor = newest;
    value = base::Bytes::copyOf(text, ledger);
    forget();
    if (places.empty()) return;
    log = base::Bytes::copyOf(remembered, ledger);
    logEnd = log->length();
    patches.assign(places.begin(), places.end());
  }

  void forget() {
    patches.clear();
    log.reset();
    logEnd = 0;
  }

 private:
  /** Puts the patch of the version that `cursor` names now, and forgets the oldest; empty: all. */
  void remember(std::string_view patch, base::Ledger* ledger) {
    const uint32_t most = value->length() / 2;
    // The comma in front of each is the one between two, so it counts.
    const uint64_t length = patch.size() + 1;
    if (patch.empty() || length > most) return forget();
    while (!patches.empty() && log->length() - patches.front() + length > most) {
      patches.pop_front();
    }
    add(patch, most, ledger);
  }

  /** Puts a text behind those that are kept; the memory of all is at most twice `most`. */
  void add(std::string_view text, uint32_t most, base::Ledger* ledger) {
    const uint64_t length = text.size() + 1;
    if (patches.empty()) log.reset();
    if (!log || log->room() < length) {
      const uint32_t begin = patches.empty() ? 0 : patches.front();
      const std::string_view kept = log ? log->text().substr(begin) : std::string_view();
      // Twice what is needed, so that moving what is kept is rare; never more than the value.
      const uint64_t needed = kept.size() + length;
      base::Ref<base::Bytes> longer = base::Bytes::make(
          static_cast<uint32_t>(std::min(2 * needed, 2 * uint64_t{most})), ledger);
      longer->append(kept);
      for (uint32_t& patchBegin : patches) patchBegin -= begin;
      log = std::move(longer);
    }
    patches.push_back(log->length());
    log->append(",");
    log->append(text);
    logEnd = log->length();
  }
};

/** A feed as it is now. Who watches it, the table knows (feeds.h). */
struct Feed : FeedValue {
  std::string key;
  uint32_t number;                 // its place in the table
  base::Ref<base::Bytes> gzip;     // the whole answer with it, compressed; may be missing
  uint32_t watching = 0;           // watchers
  uint32_t patching = 0;           // of them, with patches
  uint32_t atWorkers = 0;          // watchers of workers, which get the feed from here
  uint32_t patchingAtWorkers = 0;  // of them, with patches
  std::bitset<128> threads;        // workers that asked for it while it had no value, and show it
  uint32_t most = 0;               // both, at a time, since its presence was told
  uint64_t askedAt = 0;            // milliseconds: when it was last asked for
  uint64_t quietAt = 0;       // milliseconds: from then on a stream with its last version is quiet
  uint64_t patchesUntil = 0;  // milliseconds: until then patches are made without such a watcher
  uint64_t failedUntil = 0;   // milliseconds: its first fetch failed; no other before that
  Source source = kNoSource;  // the address it counts for: that asked first
  bool spreading = false;     // among those with watchers that are due
  bool gone = false;          // deleted: here until its watchers know
  bool wanted = false;        // its first value has been asked for
  bool wantedByWaiter = false;  // by a watcher that waits where it is not published
  uint32_t want = 0;            // the number of that Want, or of the last one
  bool awaited = false;        // not published: here for the watchers that wait for its first value
  bool gzipWanted = false;     // the compressed form of this version has been asked for
  bool gzipFailed = false;     // it has been, and there is none of this version
  bool gzipAsked = false;      // a client took this version, or waits for it, compressed
  bool mayMakeRoom = false;    // could not be fetched: among those that make room for others
  bool touched = false;        // a watcher has asked for it, come or gone, since that was told
  uint64_t placesCounted = 0;  // of `places`, by the table
  uint8_t failure = 0;         // why there is no value: a Outcome
  std::list<Feed*>::iterator among;    // where among those, while mayMakeRoom
  std::unique_ptr<Names> names;        // of its watchers; mostly none
  std::unique_ptr<Presence> presence;  // of a feed that tells of another's watchers

  /** Its watchers, those of workers too. */
  uint32_t watchers() const { return watching + atWorkers; }

  /** Whether a client takes patches to its next version, or may come back for them. */
  bool takesPatches(uint64_t now) const {
    return patching + patchingAtWorkers > 0 || now < patchesUntil;
  }

  /** Answers shorter than this are not worth compressing. */
  static constexpr uint32_t kCompressFrom = 1024;

  /** The text that an answer with the value begins with; it ends with a brace. */
  void appendHead(std::string* text) const {
    *text += "{\"feed\":\"";
    *text += key;
    *text += "\",\"cursor\":\"";
    cursor.appendTo(text);
    *text += "\",\"value\":";
  }

  /** The text that an answer with items begins with; it ends with a bracket. */
  void appendHead(std::string* text, const LogPart& part) const {
    *text += "{\"feed\":\"";
    *text += key;
    *text += "\",\"from\":\"";
    Cursor{cursor.epoch, part.from}.appendTo(text);
    *text += "\",\"cursor\":\"";
    Cursor{cursor.epoch, part.to}.appendTo(text);
    *text += part.gap ? "\",\"gap\":true,\"items\":[" : "\",\"items\":[";
  }

  /** Names the bytes of an answer with the newest version: `from` of a patch, 0 of the value. */
  void appendTag(std::string* text, uint64_t from, bool compressed) const {
    cursor.appendTo(text);
    if (from > 0) {
      *text += ".";
      base::appendDigits(text, from);
    }
    if (compressed) *text += ".gzip";
  }

  /** The same of an answer with items. */
  void appendTag(std::string* text, const LogPart& part) const {
    Cursor{cursor.epoch, part.to}.appendTo(text);
    *text += part.gap ? ".gap." : ".";
    base::appendDigits(text, part.from);
  }

  /** Bytes of memory that it takes. */
  uint64_t cost() const {
    return (value ? value->cost() : 0) + (gzip ? gzip->cost() : 0) + (log ? log->cost() : 0) +
           places();
  }

  /** Those of them that are in no ledger. */
  uint64_t places() const { return isLog ? patches.size() * sizeof(uint32_t) : 0; }
};

}  // namespace server

#endif  // SPRITES_FEED_H_
