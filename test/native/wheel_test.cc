// The timer wheel against a plain table: random arming, disarming, sweeping, also from callbacks.
//
//   wheel_test [steps] [seed]
#include "base/wheel.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "expect.h"

namespace {

constexpr uint32_t kEntries = 40;
constexpr uint32_t kTick = 5;

class Run {
 public:
  explicit Run(uint64_t seed)
      : random_(seed), start_(below(3000)), now_(start_), wheel_(kEntries, now_) {}

  void step() {
    if (below(3) > 0) {
      change();
    } else {
      sweep();
    }
    for (uint32_t entry = 0; entry < kEntries; ++entry) {
      EXPECT(wheel_.armed(entry) == (due_.count(entry) == 1));
    }
  }

  uint64_t fired() const { return fired_; }

 private:
  uint32_t below(uint64_t bound) { return static_cast<uint32_t>(random_() % bound); }

  /** Arms or disarms an entry: soon, in some turns of the wheel, or when it is due already. */
  void change() {
    const uint32_t entry = below(kEntries);
    if (below(4) == 0) {
      wheel_.disarm(entry);
      due_.erase(entry);
      return;
    }
    const uint32_t ahead[] = {1 + below(30), below(1024 * 4), 1023 + below(3)};
    uint32_t time = now_ + kTick * ahead[below(3)] + below(kTick);
    if (below(8) == 0) time = now_ - std::min(now_ - start_, below(2000));
    wheel_.arm(entry, time);
    due_[entry] = time;
  }

  void sweep() {
    const uint32_t ahead[] = {0, 1, below(20), below(3000)};
    now_ += kTick * ahead[below(4)] + below(kTick);
    for (;;) {
      const uint32_t budget = below(2) == 0 ? 1 + below(5) : 100000;
      uint32_t left = budget;
      const bool done = wheel_.sweep(now_, budget, [&](uint32_t entry) {
        EXPECT(left-- > 0);
        EXPECT(due_.count(entry) == 1 && isDue(due_[entry]) && !wheel_.armed(entry));
        due_.erase(entry);
        ++fired_;
        // An entry that fires may change any other, and itself.
        for (uint32_t i = below(3); i > 0; --i) change();
      });
      if (done) break;
    }
    // What a callback armed as due already fires in the next sweep that gets on.
    now_ += kTick;
    while (!wheel_.sweep(now_, 100000, [&](uint32_t entry) {
      EXPECT(due_.count(entry) == 1 && isDue(due_[entry]));
      due_.erase(entry);
      ++fired_;
    })) {
    }
    for (const auto& [entry, due] : due_) EXPECT(!isDue(due));
  }

  /** Not before its time, and a tick later at the most. */
  bool isDue(uint32_t time) const { return (now_ - start_) / kTick > (time - start_) / kTick; }

  std::mt19937_64 random_;
  const uint32_t start_;
  uint32_t now_;
  base::Wheel<kTick> wheel_;
  std::map<uint32_t, uint32_t> due_;
  uint64_t fired_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t steps = argc > 1 ? strtoull(argv[1], nullptr, 10) : 300000;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : std::random_device{}();
  printf("wheel_test: %" PRIu64 " steps, seed %" PRIu64 "\n", steps, seed);
  fflush(stdout);
  uint64_t fired = 0;
  for (uint64_t done = 0, run = 0; done < steps; ++run) {
    Run wheel(seed + run);
    for (int i = 0; i < 5000 && done < steps; ++i, ++done) wheel.step();
    fired += wheel.fired();
  }
  printf("fired %" PRIu64 "\n", fired);
  EXPECT(steps < 300000 || fired > 10000);  // there was enough to do
  return 0;
}
