// A ring of batches between two threads, and the wakes of its reader. Times are arguments, so that
// the test hardly waits.
//
//   batch_ring_test
#include "server/batch_ring.h"

#include <poll.h>

#include <cstdio>
#include <string>

#include "expect.h"

namespace {

using server::BatchRing;
using server::EventSet;
using server::Waker;

constexpr uint64_t kStart = 1000000;
constexpr uint32_t kSoon = 2000;

bool readable(const EventSet& events, int milliseconds = 0) {
  pollfd one = {events.fd(), POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1;
}

/** Wakes at `now`, and lets the woken thread look. Returns the microseconds to wait before. */
uint64_t wake(Waker* waker, uint64_t now) {
  const uint64_t wait = waker->wakeAtPace(now);
  if (wait == 0) waker->clear();
  return wait;
}

/** After a pause, kAtOnce wakes need no wait; further ones wait for their pace. */
void owedByTheBusy() {
  EventSet events;
  Waker waker(&events, kSoon);
  uint64_t now = kStart;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < Waker::kAtOnce; ++i) EXPECT(wake(&waker, now) == 0);
    EXPECT(wake(&waker, now) == kSoon && wake(&waker, now + 1) == kSoon - 1);
    for (int i = 0; i < 3; ++i) {
      now += kSoon;
      EXPECT(wake(&waker, now) == 0 && wake(&waker, now) == kSoon);
    }
    now += uint64_t{Waker::kAtOnce} * kSoon;
  }
  // A waker that wakes no faster than the pace never waits.
  Waker seldom(&events, kSoon);
  for (uint64_t at = kStart; at < kStart + 100 * kSoon; at += kSoon) EXPECT(wake(&seldom, at) == 0);
  // A wake of a thread that is being woken costs nothing, and need not wait.
  Waker pending(&events, kSoon);
  for (uint32_t i = 0; i <= Waker::kAtOnce; ++i) EXPECT(pending.wakeAtPace(kStart) == 0);
  pending.clear();
  for (uint32_t i = 1; i < Waker::kAtOnce; ++i) EXPECT(wake(&pending, kStart) == 0);
  pending.wake();
  EXPECT(pending.wakeAtPace(kStart) == 0);
  Waker none(&events);
  for (int i = 0; i < 100; ++i) EXPECT(wake(&none, kStart) == 0);
}

/** Until the woken thread has looked, a waker makes one system call. */
void wokenOnce() {
  EventSet events;
  Waker waker(&events);
  waker.wake();
  EXPECT(readable(events));
  events.dispatch([](uint32_t, uint32_t, uint32_t) {});
  waker.wake();
  EXPECT(!readable(events));
  waker.clear();
  waker.wake();
  EXPECT(readable(events));
}

/** Of several wakeIn the earliest counts, in any order of the calls. */
void wokenInTime() {
  constexpr uint64_t kSoonest = 1000;
  constexpr uint64_t kNever = 1000 * uint64_t{1000000};
  constexpr int kPatience = 10000;
  EventSet events;
  events.wakeIn(kSoonest);
  events.wakeIn(kNever);
  EXPECT(readable(events, kPatience));
  events.dispatch([](uint32_t, uint32_t, uint32_t) {});
  events.wakeIn(kNever);
  events.wakeIn(kSoonest);
  EXPECT(readable(events, kPatience));
}

/**
 * Batches keep their order, and kPlaces of them fit; the writer is woken when there is room again.
 */
void batches() {
  EventSet events;
  Waker writer(&events);
  BatchRing ring(&writer);
  std::string batch;
  EXPECT(!ring.take(&batch));
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < BatchRing::kPlaces; ++i) {
      batch = std::to_string(i);
      EXPECT(ring.put(&batch) && batch.empty());
    }
    EXPECT(!readable(events));
    batch = "kept";
    EXPECT(!ring.put(&batch) && batch == "kept" && !ring.hasRoom(1));
    std::string taken;
    EXPECT(ring.take(&taken) && taken == "0" && readable(events));
    events.dispatch([](uint32_t, uint32_t, uint32_t) {});
    writer.clear();
    EXPECT(ring.put(&batch) && !ring.hasRoom(BatchRing::kPlaces));
    for (uint32_t i = 1; i < BatchRing::kPlaces; ++i) {
      EXPECT(ring.take(&taken) && taken == std::to_string(i));
    }
    EXPECT(ring.take(&taken) && taken == "kept" && !ring.take(&taken));
    events.dispatch([](uint32_t, uint32_t, uint32_t) {});
    writer.clear();
    // The writer waits no more. The memory of a long batch is not kept.
    batch.assign(1 << 20, 'x');
    EXPECT(ring.put(&batch) && ring.take(&taken) && taken.size() == 1 << 20);
    for (uint32_t i = 0; i <= BatchRing::kPlaces; ++i) {
      EXPECT(ring.put(&batch) && batch.capacity() < 1 << 20 && ring.take(&taken));
    }
    EXPECT(!readable(events));
  }
}

}  // namespace

int main() {
  owedByTheBusy();
  wokenOnce();
  wokenInTime();
  batches();
  puts("batches in their order; woken once, and at a pace");
}
