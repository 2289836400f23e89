// A ring: what one thread has to say to another, in batches.
//
//   writer ─▶ batch ─put─▶ [ batch │ batch │ … ] ─take─▶ reader
//                              the writer's place ▲   ▲ the reader's
//
//   batch     [ head │ text ][ head │ text ] …      structs, and behind each the text it names
//
// One thread writes and one reads. Each gathers what it has to say in a turn and puts it as one
// batch; a batch's memory goes round with its place, so that nothing is allocated once the ring has
// been full. A reader is woken once until it has looked (Waker).
//
// Threads: a place belongs to the writer from `taken_` to kPlaces behind it, and to the
// reader from `taken_` to `put_`. `put_` is written by the writer alone, `taken_` by the reader
// alone; each is the release of the place it passes. `wanted_` is set by the writer and taken back
// by the reader. `owes_` is written by the writer alone.
//
// Cost: two loads and a store a batch, and one system call where the reader sleeps. Rejected: a
// ring of messages (each would touch the other core's cache line), a lock (a writer would wait for
// a reader whose core was taken away).
#ifndef SPRITES_BATCH_RING_H_
#define SPRITES_BATCH_RING_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "http/events.h"

namespace server {

/**
 * Wakes the thread of an event set, with one system call until that thread has looked. With a pace
 * it is woken no more often than that, under load, for all that wake it together:
 *
 *   asked, with pauses     │ │  │    │        each at once
 *   asked without a pause  ││││││││  │  │  │  kAtOnce of them at once, then one every `pace`
 *
 * Under load waking costs more than what it is for, and larger shares cost less; one that comes
 * alone does not wait for them. So a pace is owed only by those that have not paused: each waking
 * is paid for by one pace of time, and up to kAtOnce may be owing. Rejected: a pause after each (a
 * sprite alone crosses four times, and would wait for itself).
 */
class Waker {
 public:
  /** How many wakings need no pause between them, after one that is long enough. */
  static constexpr uint32_t kAtOnce = 8;

  /** `events` outlives it; `pace` in microseconds, 0 for none. */
  explicit Waker(EventSet* events, uint32_t pace = 0) : events_(events), pace_(pace) {}

  /** From any thread: what was put before is seen by a look that comes. */
  void wake() {
    if (!asked_.exchange(true)) events_->wake();
  }

  /** Microseconds from `now` on until the pace allows a waking; 0: it does, or needs none. */
  uint64_t pause(uint64_t now) const {
    const uint64_t paid = paidAt_.load(std::memory_order_relaxed);
    return asked_.load() || paid <= most(now) ? 0 : paid - most(now);
  }

  /** `wake` where the pace allows it at `now`, microseconds: 0; else the `pause` until it does. */
  uint64_t wakeInTime(uint64_t now) {
    const uint64_t wait = pause(now);
    if (wait > 0 || asked_.load()) return wait;
    const uint64_t paid = paidAt_.load(std::memory_order_relaxed);
    // Two threads may pay at once: then it is woken once too often, or once too seldom.
    paidAt_.store(std::min(std::max(paid, now), most(now)) + pace_, std::memory_order_relaxed);
    wake();
    return 0;
  }

  /** By the thread itself, behind its events and before it looks into its rings. */
  void looks() { asked_.store(false); }

 private:
  /** The time up to which wakings may be owing at `now`. */
  uint64_t most(uint64_t now) const { return now + uint64_t{kAtOnce - 1} * pace_; }

  EventSet* const events_;
  const uint32_t pace_;
  std::atomic<bool> asked_{false};
  std::atomic<uint64_t> paidAt_{0};  // microseconds: when all wakings are paid for
};

class BatchRing {
 public:
  /** Batches that may wait. */
  static constexpr uint32_t kPlaces = 64;

  /** `writer` wakes the writer's thread, and outlives the ring. */
  explicit BatchRing(Waker* writer) : writer_(writer) {}
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  /**
   * By the writer: gives a batch, and gets an empty one; false: as many wait as may, and the writer
   * is woken when one is taken. The reader is to be woken.
   */
  bool put(std::string* batch) {
    const uint32_t at = put_.load(std::memory_order_relaxed);
    if (!hasRoom(kPlaces)) return false;
    places_[at % kPlaces].swap(*batch);
    batch->clear();
    put_.store(at + 1);
    return true;
  }

  /**
   * By the writer: whether it has something to say that the ring does not have, and that the reader
   * may not go on without. To be set before any reader of it can have it from another.
   */
  void setOwes(bool whether) { owes_.store(whether); }

  /** By either; by the reader before it takes what the ring has. */
  bool owes() const { return owes_.load(); }

  /** By the reader: the next batch, in place of `batch`; false: there is none. */
  bool take(std::string* batch) {
    const uint32_t at = taken_.load(std::memory_order_relaxed);
    if (at == put_.load()) return false;
    // A batch that was longer than usual is not kept at its place.
    if (batch->capacity() > kMostKept) *batch = std::string();
    batch->clear();
    places_[at % kPlaces].swap(*batch);
    taken_.store(at + 1);
    if (wanted_.load() && wanted_.exchange(false)) writer_->wake();
    return true;
  }

  /** By the writer: whether the reader has taken all of it. */
  bool isEmpty() const { return waiting() == 0; }

  /** By the writer: whether fewer than `most` batches wait; if not, it is woken at the next take.
   */
  bool hasRoom(uint32_t most) {
    if (waiting() < most) return true;
    wanted_.store(true);
    // One may have been taken in between, and no thread was woken.
    return waiting() < most;
  }

 private:
  /** Bytes of a batch whose memory goes round. */
  static constexpr size_t kMostKept = 1 << 18;

  uint32_t waiting() const { return put_.load(std::memory_order_relaxed) - taken_.load(); }

  Waker* const writer_;
  std::array<std::string, kPlaces> places_;
  alignas(64) std::atomic<uint32_t> put_{0};
  alignas(64) std::atomic<uint32_t> taken_{0};
  std::atomic<bool> wanted_{false};  // the writer waits for room
  std::atomic<bool> owes_{false};    // the ring does not have everything
};

/** Adds a message to a batch: its head, whose `length` is that of the text, and the text. */
template <typename Head>
void addMessage(std::string* batch, const Head& head, std::string_view text) {
  static_assert(std::is_trivially_copyable_v<Head>);
  batch->append(reinterpret_cast<const char*>(&head), sizeof head);
  batch->append(text);
}

/** Calls `take(head, text)` for each message of a batch; both live for the call only. */
template <typename Head, typename Take>
void eachMessage(std::string_view batch, Take&& take) {
  while (!batch.empty()) {
    Head head;
    memcpy(&head, batch.data(), sizeof head);
    const std::string_view text = batch.substr(sizeof head, head.length);
    take(head, text);
    batch.remove_prefix(sizeof head + head.length);
  }
}

/** The part of a batch that has its first `count` messages, or all of it. */
template <typename Head>
std::string_view firstMessages(std::string_view batch, uint32_t count) {
  size_t end = 0;
  for (; count > 0 && end < batch.size(); --count) {
    Head head;
    memcpy(&head, batch.data() + end, sizeof head);
    end += sizeof head + head.length;
  }
  return batch.substr(0, end);
}

/** The bytes of a value as the text of a message; T is trivially copyable. */
template <typename T>
std::string_view bytesOfValue(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/** The value whose bytes `text` is. */
template <typename T>
T valueOfBytes(std::string_view text) {
  T value;
  memcpy(&value, text.data(), sizeof value);
  return value;
}

}  // namespace server

#endif  // SPRITES_BATCH_RING_H_
