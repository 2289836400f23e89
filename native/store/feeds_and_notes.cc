#include "feeds_and_notes.h"

#include <cstring>

namespace server {

namespace {

/** The head of feeds and notes in a snapshot. */
struct FeedsAndNotesHeader {
  uint64_t feeds;
  uint64_t notes;
};

/** The head of a feed. Its key, its value, its patches and their starts follow it. */
struct FeedEntry {
  uint64_t epoch, version;
  uint32_t key, value, log, patches;
  PublicationKind kind;
};
static_assert(sizeof(FeedEntry) == 40, "a change of the format is a new version");

/** The head of a note. Its name and its bytes follow it. */
struct NoteEntry {
  uint32_t name, bytes;
};

constexpr char kBadFeed[] = "a feed in it makes no sense";
constexpr char kBadNote[] = "a note in it makes no sense";

/** Start of the remembered patches in the log: earlier ones are forgotten, but still there. */
uint32_t firstPatchStart(const FeedValue& feed) {
  return feed.entryStarts.empty() ? 0 : feed.entryStarts.front();
}

/** The remembered patches. */
std::string_view patchLogOf(const FeedValue& feed) {
  if (feed.entryStarts.empty()) return {};
  return feed.history->text().substr(firstPatchStart(feed));
}

PublicationKind kindOf(const FeedValue& feed) {
  if (feed.isLog) return PublicationKind::kItem;
  return feed.upstream ? PublicationKind::kFetched : PublicationKind::kValue;
}

bool isNote(std::string_view name, std::string_view bytes) {
  return !name.empty() && name.size() <= kNoteName && bytes.size() <= kNoteBytes;
}

/** Returns whether patches begin at `starts`: each with its comma, one behind the other. */
bool arePatchStarts(const std::vector<uint32_t>& starts, std::string_view log) {
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] >= log.size() || log[starts[i]] != ',') return false;
    if (i > 0 && starts[i] <= starts[i - 1]) return false;
  }
  return true;
}

/** Counts feeds and notes, since the counts are written first. */
class Counter : public FeedsAndNotes::Visitor {
 public:
  void feed(std::string_view, const FeedValue&) override { ++header.feeds; }
  void note(std::string_view, std::string_view) override { ++header.notes; }

  FeedsAndNotesHeader header = {};
};

class Writer : public FeedsAndNotes::Visitor {
 public:
  explicit Writer(SnapshotWriter* to) : to_(to) {}
  void feed(std::string_view key, const FeedValue& feed) override {
    const std::string_view log = patchLogOf(feed);
    to_->append(FeedEntry{.epoch = feed.cursor.epoch,
                          .version = feed.cursor.version,
                          .key = static_cast<uint32_t>(key.size()),
                          .value = feed.value->length(),
                          .log = static_cast<uint32_t>(log.size()),
                          .patches = static_cast<uint32_t>(feed.entryStarts.size()),
                          .kind = kindOf(feed)});
    to_->append(key.data(), key.size());
    to_->append(feed.value->data(), feed.value->length());
    to_->append(log.data(), log.size());
    for (const uint32_t start : feed.entryStarts) to_->append(start - firstPatchStart(feed));
  }
  void note(std::string_view name, std::string_view bytes) override {
    to_->append(NoteEntry{static_cast<uint32_t>(name.size()), static_cast<uint32_t>(bytes.size())});
    to_->append(name.data(), name.size());
    to_->append(bytes.data(), bytes.size());
  }

 private:
  SnapshotWriter* const to_;
};

}  // namespace

void FeedsAndNotes::write(SnapshotWriter* writer) const {
  Counter counter;
  each(&counter);
  writer->append(counter.header);
  Writer all(writer);
  each(&all);
}

void StoredFeedsAndNotes::each(Visitor* visitor) const {
  for (const auto& [key, feed] : feeds_) visitor->feed(key, feed);
  for (const auto& [name, bytes] : notes_) visitor->note(name, bytes);
}

bool StoredFeedsAndNotes::apply(const JournalRecord& record, std::string_view text) {
  switch (record.step) {
    case JournalStep::kPublish:
      return publish(record, text);
    case JournalStep::kUnpublish: {
      const auto found = feeds_.find(text);
      if (found == feeds_.end()) return false;
      feeds_.erase(found);
      return true;
    }
    case JournalStep::kNote: {
      if (record.other > text.size()) return false;
      const std::string_view name = text.substr(0, record.other);
      const std::string_view bytes = text.substr(record.other);
      if (!isNote(name, bytes)) return false;
      notes_.insert_or_assign(std::string(name), bytes);
      return true;
    }
    case JournalStep::kUnnote: {
      const auto found = notes_.find(text);
      if (found != notes_.end()) notes_.erase(found);
      return true;
    }
    default:
      return false;
  }
}

bool StoredFeedsAndNotes::publish(const JournalRecord& record, std::string_view text) {
  const uint64_t version = record.number;
  PublishText head;
  if (text.size() < sizeof head) return false;
  memcpy(&head, text.data(), sizeof head);
  text.remove_prefix(sizeof head);
  if (uint64_t{head.key} + head.value > text.size()) return false;
  const std::string_view key = text.substr(0, head.key);
  const std::string_view value = text.substr(head.key, head.value);
  const bool isItem = head.kind == PublicationKind::kItem;
  if (!isFeedKey(key) || version == 0 || version > kMaxCursor || head.epoch > kMaxCursor) {
    return false;
  }
  if (isItem) return append({head.epoch, version}, key, value, record.other);
  if (value.empty()) return false;
  FeedValue& feed = feeds_.try_emplace(std::string(key)).first->second;
  feed.upstream = head.kind != PublicationKind::kValue;
  feed.setValue({head.epoch, version}, base::Bytes::copyOf(value, nullptr),
                text.substr(uint64_t{head.key} + head.value), nullptr);
  return true;
}

bool StoredFeedsAndNotes::append(Cursor cursor, std::string_view key, std::string_view item,
                                 uint32_t keptItems) {
  const auto found = feeds_.find(key);
  const bool continuesLog = found != feeds_.end() && found->second.isLog;
  const size_t itemsBefore = continuesLog ? found->second.entryStarts.size() : 0;
  if (keptItems == 0 || keptItems > itemsBefore + (item.empty() ? 0 : 1) ||
      keptItems > cursor.version)
    return false;
  FeedValue& feed = continuesLog ? found->second : feeds_[std::string(key)];
  feed.upstream = false;
  feed.append(cursor, item, keptItems, nullptr);
  return true;
}

std::string StoredFeedsAndNotes::read(SnapshotReader* reader) {
  FeedsAndNotesHeader header;
  if (!reader->read(&header)) return kTooEarly;
  for (uint64_t i = 0; i < header.feeds; ++i) {
    FeedEntry entry;
    std::string_view key;
    std::string_view value;
    std::string_view log;
    if (!reader->read(&entry) || !reader->read(entry.key, &key) ||
        !reader->read(entry.value, &value) || !reader->read(entry.log, &log)) {
      return kTooEarly;
    }
    std::vector<uint32_t> starts;
    for (uint32_t n = 0; n < entry.patches; ++n) {
      uint32_t start;
      if (!reader->read(&start)) return kTooEarly;
      starts.push_back(start);
    }
    const bool isLog = entry.kind == PublicationKind::kItem;
    // A log has an item for its first version, and always one; a value has no patch to its first
    // version.
    const bool fits = isLog ? value.empty() && entry.patches > 0 && entry.patches <= entry.version
                            : !value.empty() && entry.patches < entry.version;
    if (!isFeedKey(key) || !fits || entry.version == 0 || entry.version > kMaxCursor ||
        entry.epoch > kMaxCursor || entry.kind > PublicationKind::kItem ||
        !arePatchStarts(starts, log)) {
      return kBadFeed;
    }
    const auto [place, isNew] = feeds_.try_emplace(std::string(key));
    if (!isNew) return kBadFeed;
    place->second.restore({entry.epoch, entry.version}, value, log, starts, nullptr);
    place->second.upstream = entry.kind == PublicationKind::kFetched;
    place->second.isLog = isLog;
  }
  for (uint64_t i = 0; i < header.notes; ++i) {
    NoteEntry entry;
    std::string_view name;
    std::string_view bytes;
    if (!reader->read(&entry) || !reader->read(entry.name, &name) ||
        !reader->read(entry.bytes, &bytes)) {
      return kTooEarly;
    }
    if (!isNote(name, bytes) || !notes_.try_emplace(std::string(name), bytes).second) {
      return kBadNote;
    }
  }
  return {};
}

}  // namespace server
