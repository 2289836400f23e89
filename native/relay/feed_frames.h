// How a feed crosses to a worker: a head, and behind it the key, the value, the patches, the
// compressed answer and where each patch begins.
#ifndef SPRITES_FEED_FRAMES_H_
#define SPRITES_FEED_FRAMES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "feeds/feed.h"

namespace server {

struct FeedHead {
  uint64_t epoch = 0;
  uint64_t version = 0;
  uint32_t key = 0;      // bytes
  uint32_t value = 0;    // bytes
  uint32_t patches = 0;  // bytes: the one from the version before, or all that are remembered
  uint32_t gzip = 0;     // bytes
  uint32_t begins = 0;   // how many patches there are, where those are all; each is four bytes
  uint32_t next = 0;     // 1: the worker has the version before
};
static_assert(sizeof(FeedHead) == 40, "what crosses has no room for surprises");

/** A feed as it has crossed; its texts are those of the bytes read. */
struct FeedText {
  FeedHead head;
  std::string_view key, value, patches, gzip;
  std::vector<uint32_t> begins;

  Cursor cursor() const { return {head.epoch, head.version}; }
};

/** Writes a feed, as the version behind one that the worker has (`next`), or whole. */
inline void writeFeed(const Feed& feed, bool next, std::string* out) {
  const auto textOf = [](const base::Ref<base::Bytes>& bytes) {
    return bytes ? bytes->text() : std::string_view();
  };
  std::string_view patches = textOf(feed.log);
  // Each has a comma before it.
  if (next)
    patches = feed.patches.empty() ? std::string_view() : patches.substr(feed.patches.back() + 1);
  const FeedHead head = {
      .epoch = feed.cursor.epoch,
      .version = feed.cursor.version,
      .key = static_cast<uint32_t>(feed.key.size()),
      .value = feed.value->length(),
      .patches = static_cast<uint32_t>(patches.size()),
      .gzip = static_cast<uint32_t>(textOf(feed.gzip).size()),
      .begins = next ? 0 : static_cast<uint32_t>(feed.patches.size()),
      .next = next ? 1u : 0u,
  };
  out->append(reinterpret_cast<const char*>(&head), sizeof head);
  *out += feed.key;
  *out += feed.value->text();
  *out += patches;
  *out += textOf(feed.gzip);
  for (const uint32_t begin : feed.patches) {
    if (!next) out->append(reinterpret_cast<const char*>(&begin), sizeof begin);
  }
}

/** Writes the compressed answer of a version that the worker has. */
inline void writeCompressed(const Feed& feed, std::string* out) {
  const FeedHead head = {
      .epoch = feed.cursor.epoch,
      .version = feed.cursor.version,
      .key = static_cast<uint32_t>(feed.key.size()),
      .gzip = feed.gzip ? feed.gzip->length() : 0,
      .next = 1,
  };
  out->append(reinterpret_cast<const char*>(&head), sizeof head);
  *out += feed.key;
  if (feed.gzip) *out += feed.gzip->text();
}

/** Reads a feed; false when the bytes are none. */
inline bool readFeed(std::string_view bytes, FeedText* out) {
  FeedHead& head = out->head;
  if (bytes.size() < sizeof head) return false;
  memcpy(&head, bytes.data(), sizeof head);
  const uint64_t length = sizeof head + uint64_t{head.key} + head.value + head.patches + head.gzip +
                          uint64_t{head.begins} * sizeof(uint32_t);
  if (length != bytes.size() || !isFeedKey(bytes.substr(sizeof head, head.key)) ||
      head.version == 0) {
    return false;
  }
  bytes.remove_prefix(sizeof head);
  const auto take = [&bytes](uint32_t count) {
    const std::string_view text = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return text;
  };
  out->key = take(head.key);
  out->value = take(head.value);
  out->patches = take(head.patches);
  out->gzip = take(head.gzip);
  out->begins.resize(head.begins);
  if (!bytes.empty()) memcpy(out->begins.data(), bytes.data(), bytes.size());
  // They lie in the patches, in order.
  uint32_t before = 0;
  for (const uint32_t begin : out->begins) {
    if (begin < before || begin >= head.patches) return false;
    before = begin;
  }
  return true;
}

}  // namespace server

#endif  // SPRITES_FEED_FRAMES_H_
