// A ring: batches of messages from one thread to another.
//
//   writer ─▶ batch ─put─▶ [ batch │ batch │ … ] ─take─▶ reader
//                              the writer's place ▲   ▲ the reader's
//
//   batch     [ head │ text ][ head │ text ] …      structs, each with its text after it
//
// One thread writes and one reads. The writer gathers the messages of a turn and puts them as one
// batch. The memory of a batch stays in its place of the ring, so that nothing is allocated once
// the ring has been full. The reader is woken once until it has looked (Waker).
//
// Threads: the reader owns the places from `takenCount_` to `putCount_`, the writer all others.
// Only the writer changes `putCount_`, only the reader changes `takenCount_`; each change releases
// the place that it passes. The writer sets `writerWaits_` and the reader clears it. Only the
// writer changes `hasUnsent_`.
//
// Cost: two loads and a store for each batch, and one system call if the reader sleeps. Rejected: a
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
 * it is a token bucket: under load all wakers together wake the thread once every `pace`:
 *
 *   asked, with pauses     │ │  │    │        each at once
 *   asked without a pause  ││││││││  │  │  │  kAtOnce of them at once, then one every `pace`
 *
 * Under load a wake costs more than the work it is for, and larger batches cost less. A single wake
 * must not wait for that. So each wake costs one pace of time, and up to kAtOnce wakes may be on
 * credit. Rejected: a pause after each wake (a single sprite crosses four times, and would wait for
 * itself).
 */
class Waker {
 public:
  /** Wakes that need no pause between them, after a pause that is long enough. */
  static constexpr uint32_t kAtOnce = 8;

  /** `events` outlives the waker; `pace` in microseconds, 0: none. */
  explicit Waker(EventSet* events, uint32_t pace = 0) : events_(events), pace_(pace) {}

  /** Wakes the thread; from any thread. The next look sees all batches put before. */
  void wake() {
    if (!isPending_.exchange(true)) events_->wake();
  }

  /**
   * Microseconds from `now` until the pace allows a wake; 0: it does, or the thread is being woken.
   */
  uint64_t wakeDelay(uint64_t now) const {
    const uint64_t paidAt = paidAt_.load(std::memory_order_relaxed);
    return isPending_.load() || paidAt <= latestPaidAt(now) ? 0 : paidAt - latestPaidAt(now);
  }

  /**
   * Calls `wake` and returns 0 if the pace allows it at `now`, in microseconds; otherwise returns
   * the `wakeDelay` until it does.
   */
  uint64_t wakeAtPace(uint64_t now) {
    const uint64_t wait = wakeDelay(now);
    if (wait > 0 || isPending_.load()) return wait;
    const uint64_t paidAt = paidAt_.load(std::memory_order_relaxed);
    // Two threads may do this at once: then the thread is woken once too often, or once too rarely.
    paidAt_.store(std::min(std::max(paidAt, now), latestPaidAt(now)) + pace_,
                  std::memory_order_relaxed);
    wake();
    return 0;
  }

  /** Clears the wake: by the woken thread, after its events and before it looks into its rings. */
  void clear() { isPending_.store(false); }

 private:
  /** The latest `paidAt_` that the credit allows at `now`. */
  uint64_t latestPaidAt(uint64_t now) const { return now + uint64_t{kAtOnce - 1} * pace_; }

  EventSet* const events_;
  const uint32_t pace_;
  std::atomic<bool> isPending_{false};
  std::atomic<uint64_t> paidAt_{0};  // microseconds: the time at which all wakes are paid for
};

class BatchRing {
 public:
  /** Most batches that wait. */
  static constexpr uint32_t kPlaces = 64;

  /** `writer` wakes the writer's thread, and outlives the ring. */
  explicit BatchRing(Waker* writer) : writer_(writer) {}
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  /**
   * By the writer: puts a batch, and replaces it by an empty one. The caller then wakes the reader.
   * Returns false when the ring is full; the writer is woken when a batch is taken.
   */
  bool put(std::string* batch) {
    const uint32_t at = putCount_.load(std::memory_order_relaxed);
    if (!hasRoom(kPlaces)) return false;
    places_[at % kPlaces].swap(*batch);
    batch->clear();
    putCount_.store(at + 1);
    return true;
  }

  /**
   * By the writer: sets whether it has messages that are not in the ring yet and that the reader
   * must not go on without. To be set before the reader can hear of them from another thread.
   */
  void setHasUnsent(bool hasUnsent) { hasUnsent_.store(hasUnsent); }

  /** By both; the reader asks before it takes the batches of the ring. */
  bool hasUnsent() const { return hasUnsent_.load(); }

  /** By the reader: replaces `batch` by the next one. Returns false when there is none. */
  bool take(std::string* batch) {
    const uint32_t at = takenCount_.load(std::memory_order_relaxed);
    if (at == putCount_.load()) return false;
    // The memory of an unusually long batch is freed.
    if (batch->capacity() > kMaxRetained) std::string().swap(*batch);
    places_[at % kPlaces].swap(*batch);
    takenCount_.store(at + 1);
    if (writerWaits_.load() && writerWaits_.exchange(false)) writer_->wake();
    return true;
  }

  /** By the writer: whether the reader has taken all batches. */
  bool isEmpty() const { return waitingBatches() == 0; }

  /**
   * By the writer: whether fewer than `most` batches wait. If not, the writer is woken at the next
   * take.
   */
  bool hasRoom(uint32_t most) {
    if (waitingBatches() < most) return true;
    writerWaits_.store(true);
    // The reader may have taken one in between, without waking the writer.
    return waitingBatches() < most;
  }

 private:
  /** Most bytes of a batch whose memory is kept. */
  static constexpr size_t kMaxRetained = 1 << 18;

  uint32_t waitingBatches() const {
    return putCount_.load(std::memory_order_relaxed) - takenCount_.load();
  }

  Waker* const writer_;
  std::array<std::string, kPlaces> places_;
  alignas(64) std::atomic<uint32_t> putCount_{0};
  alignas(64) std::atomic<uint32_t> takenCount_{0};
  std::atomic<bool> writerWaits_{false};  // the writer wants a wake when there is room
  std::atomic<bool> hasUnsent_{false};    // see setHasUnsent
};

/** Adds a message to a batch: its head, whose `length` is that of the text, and the text. */
template <typename Head>
void addMessage(std::string* batch, const Head& head, std::string_view text) {
  static_assert(std::is_trivially_copyable_v<Head>);
  batch->append(reinterpret_cast<const char*>(&head), sizeof head);
  batch->append(text);
}

/** Calls `handle(head, text)` for each message of a batch; both live for the call only. */
template <typename Head, typename Handle>
void eachMessage(std::string_view batch, Handle&& handle) {
  while (!batch.empty()) {
    Head head;
    memcpy(&head, batch.data(), sizeof head);
    const std::string_view text = batch.substr(sizeof head, head.length);
    handle(head, text);
    batch.remove_prefix(sizeof head + head.length);
  }
}

/** Returns the part of a batch with its first `count` messages, or all of it. */
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

/** Returns the bytes of a value as the text of a message; T is trivially copyable. */
template <typename T>
std::string_view bytesOfValue(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/** Returns the value whose bytes are `text`. */
template <typename T>
T valueOfBytes(std::string_view text) {
  T value;
  memcpy(&value, text.data(), sizeof value);
  return value;
}

}  // namespace server

#endif  // SPRITES_BATCH_RING_H_
