// A mailbox: the sprites that wait for one client, oldest first.
//
//   first ─▶ [seq 6][seq 7] ─▶ [seq 8][seq 9]  ◀─ last        sequence = 9
//            └ written into an   └ not yet                     waiting = 4, unsent = 2
//              answer, not acked
//
// A sprite enters at the end with the next sequence number. Answers carry it until its receiver
// acks it; then it leaves from the front. So the numbers in a mailbox are consecutive, and none is
// stored: the first is sequence - waiting + 1.
//
// Cost: one allocation a sprite, 16 bytes and its text. Rejected: a ring per client (memory for
// sprites that never come), one shared log (one slow reader holds the memory of all).
#ifndef SPRITES_MAILBOX_H_
#define SPRITES_MAILBOX_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <unordered_map>

#include "base/address_limits.h"
#include "delivery_times.h"
#include "torus.h"

namespace server {

/** Longest text of any sprite, thrown or restored, in bytes: the upper bound of --max-sprite. */
constexpr uint32_t kLongestSprite = 1 << 20;

/** One waiting sprite; its JSON text follows it in memory. */
struct Sprite {
  Sprite* next;
  uint64_t source : 24;  // a Source, of its thrower or the client it left: charged while it waits
  uint64_t stamp : 16;   // a DeliveryTimes::Stamp: the time of the throw
  uint64_t length : 21;  // of the text
  uint64_t flown : 1;    // its room counts in Mailbox::flown
  Edge from : 2;         // the edge it enters its receiver's desktop by

  Sprite(Edge from, Source source, DeliveryTimes::Stamp stamp, size_t length)
      : next(nullptr), source(source), stamp(stamp), length(length), flown(0), from(from) {}

  std::string_view text() const { return {reinterpret_cast<const char*>(this + 1), length}; }

  /**
   * Bytes that a sprite counts against the bounds: itself, its text and the allocator's own word.
   */
  static uint32_t cost(size_t length) {
    return static_cast<uint32_t>((sizeof(Sprite) + length + 8 + 15) & ~size_t{15});
  }

  /**
   * Bytes that the source is charged: at least those of 1 KiB, since a small sprite fills a place,
   * too.
   */
  static uint32_t charge(size_t length) { return std::max(cost(length), 1024u); }

  static Sprite* make(std::string_view text, Edge from, Source source, DeliveryTimes::Stamp stamp) {
    void* memory = malloc(sizeof(Sprite) + text.size());
    if (memory == nullptr) throw std::bad_alloc();
    auto* sprite = new (memory) Sprite(from, source, stamp, text.size());
    memcpy(sprite + 1, text.data(), text.size());
    return sprite;
  }

  static void free(Sprite* sprite) { ::free(sprite); }
};
static_assert(sizeof(Sprite) == 16, "the cost that is named above");
static_assert(kMaxSources <= 1 << 24 && kLongestSprite < 1 << 21, "they fit into a Sprite");

struct Mailbox {
  Sprite* first;
  Sprite* last;
  uint64_t sequence;  // of the newest sprite that ever entered
  uint32_t waiting;   // sprites in it
  uint32_t unsent;    // sprites at its end that no answer has carried yet
  uint32_t bytes;     // Sprite::cost of all of them
  uint32_t flown;     // room of the sprites that have flown into it, in bytes: see Pool::roomOf

  /** The newest sequence number its client has acked. */
  uint64_t acked() const { return sequence - waiting; }

  /** The newest sequence number an answer has carried. */
  uint64_t sent() const { return sequence - unsent; }

  /** Whether an answer has carried sprites that its client has not acked. */
  bool hasUnacked() const { return unsent < waiting; }

  /** Appends `sprite`, and owns it until it is popped. */
  void push(Sprite* sprite) {
    sprite->next = nullptr;
    (last == nullptr ? first : last->next) = sprite;
    last = sprite;
    ++sequence;
    ++waiting;
    ++unsent;
    bytes += Sprite::cost(sprite->length);
  }

  /** Removes the oldest sprite, which the caller owns then; there must be one. */
  Sprite* pop() {
    Sprite* sprite = first;
    first = sprite->next;
    if (first == nullptr) last = nullptr;
    --waiting;
    if (unsent > waiting) unsent = waiting;
    bytes -= Sprite::cost(sprite->length);
    return sprite;
  }
};

// The backlogs: sprites that fly to a client whose mailbox has no room for them yet.
//
//   leaver's mailbox ─▶ neighbor's mailbox  [ thrown │ thrown │ flown │ … room for throws ]
//                           ▲ as it acks
//                       its backlog         [ flown │ flown │ flown │ … ]
//
// Sprites that fly on take at most a share of a mailbox, so that the neighbors' throws still get
// in. The rest waits here, oldest first, and moves up when the client acks. No sprite is lost: the
// server has accepted all of them. Their number is bounded where they are thrown, by the bound on
// all mailboxes' memory and by each source address's share of it.
//
// Few clients ever have a backlog, so it lies beside the records: a list for each client that has
// one.

class Backlogs {
 public:
  Backlogs() = default;
  ~Backlogs() {
    while (!lists_.empty()) Sprite::free(pop(lists_.begin()->first));
  }
  Backlogs(const Backlogs&) = delete;
  Backlogs& operator=(const Backlogs&) = delete;

  /** Appends `sprite`, and owns it until it is popped. */
  void push(uint32_t record, Sprite* sprite) {
    List& list = lists_[record];
    sprite->next = nullptr;
    (list.last == nullptr ? list.first : list.last->next) = sprite;
    list.last = sprite;
    ++list.length;
  }

  /** The oldest sprite, or nullptr. */
  Sprite* front(uint32_t record) const {
    const auto found = lists_.find(record);
    return found == lists_.end() ? nullptr : found->second.first;
  }

  /** Removes the oldest sprite, which the caller owns then; there must be one. */
  Sprite* pop(uint32_t record) {
    const auto found = lists_.find(record);
    Sprite* sprite = found->second.first;
    found->second.first = sprite->next;
    --found->second.length;
    if (sprite->next == nullptr) lists_.erase(found);
    return sprite;
  }

  uint32_t length(uint32_t record) const {
    const auto found = lists_.find(record);
    return found == lists_.end() ? 0 : found->second.length;
  }

 private:
  struct List {
    Sprite* first = nullptr;
    Sprite* last = nullptr;
    uint32_t length = 0;
  };

  std::unordered_map<uint32_t, List> lists_;
};

}  // namespace server

#endif  // SPRITES_MAILBOX_H_
