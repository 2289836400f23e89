// How long sprites wait, counted from stamps of 16 bits: the unit follows the lease, and a
// sprite that has flown on for minutes is "longer than the last bound", whatever the stamp has done
// meanwhile.
//
//   delivery_times_test
#include "torus/delivery_times.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "expect.h"

namespace {

using server::DeliveryTimes;

constexpr uint64_t kStart = 0x123456789a;  // microseconds
constexpr uint64_t kMilli = 1000;
constexpr uint64_t kSecond = 1000 * kMilli;

/** The index of the only count that is not 0. */
size_t where(const DeliveryTimes& times) {
  const auto& counts = times.counts();
  EXPECT(std::accumulate(counts.begin(), counts.end(), uint64_t{0}) == 1);
  size_t index = 0;
  while (counts[index] == 0) ++index;
  return index;
}

size_t bucketOf(uint32_t lease, uint64_t wait, uint64_t start = kStart) {
  DeliveryTimes times(lease);
  times.count(times.stamp(start), start + wait);
  return where(times);
}

void everyBound() {
  for (size_t i = 0; i < DeliveryTimes::kBounds.size(); ++i) {
    const uint64_t bound = DeliveryTimes::kBounds[i] * kMilli;
    EXPECT(bucketOf(30, bound) == i);
    EXPECT(bucketOf(30, bound + kMilli) > i);
  }
  EXPECT(bucketOf(30, 0) == 0);
  // Wherever the stamps begin anew meanwhile.
  for (uint64_t second = 0; second < 140; ++second) {
    EXPECT(bucketOf(30, 29 * kSecond, kStart + second * kSecond) ==
           DeliveryTimes::kBounds.size() - 1);
  }
}

/** The longest stay in one mailbox is told right for every lease there may be. */
void everyLease() {
  for (uint32_t lease = 1; lease <= 3600; ++lease) {
    const uint64_t wait = lease * kSecond;
    DeliveryTimes times(lease);
    times.count(times.stamp(kStart), kStart + wait);
    const uint64_t told = times.sum();
    EXPECT(told + 200 >= lease * uint64_t{1000} && told <= lease * uint64_t{1000} + 200);
    EXPECT(where(times) >= (lease > 30 ? DeliveryTimes::kBounds.size() : 9));
  }
}

/** A sprite that has flown from one leaver to the next, each after a lease. */
void longFlights() {
  for (const uint32_t lease : {1u, 30u, 47u, 600u, 3600u}) {
    for (int stays = 1; stays < 50; ++stays) {
      DeliveryTimes times(lease);
      uint64_t now = kStart;
      DeliveryTimes::Stamp stamp = times.stamp(now);
      for (int i = 0; i < stays; ++i) {
        now += lease * kSecond;
        stamp = times.flown(stamp, now);
      }
      times.count(stamp, now);
      if (lease * stays > 33u) EXPECT(where(times) == DeliveryTimes::kBounds.size());
      if (lease * stays <= 30u) EXPECT(times.sum() == lease * stays * 1000u);
    }
  }
}

}  // namespace

int main() {
  everyBound();
  everyLease();
  longFlights();
  printf("delivery times are told right\n");
}
