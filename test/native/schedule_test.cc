// The due times of an open loop's sprites, calculated without a clock, and their batches.
#include "swarm/schedule.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "expect.h"
#include "swarm/account.h"

using swarm::Schedule;
using swarm::Stage;

namespace {

constexpr uint64_t kStart = 5'000'000'000;
constexpr double kSecond = 1e9;

double after(const Schedule& schedule, uint64_t sprite) {
  return static_cast<double>(schedule.dueAt(sprite) - kStart) / kSecond;
}

uint64_t by(const Schedule& schedule, double seconds) {
  return schedule.dueBy(kStart + static_cast<uint64_t>(seconds * kSecond));
}

bool near(double one, double other) { return std::abs(one - other) < 1e-6; }

void checkSteady() {
  const Schedule steady(kStart, 100, 0.5, {});
  EXPECT(near(after(steady, 0), 0.005) && near(after(steady, 100), 1.005));
  EXPECT(by(steady, 10) == 999);
  EXPECT(steady.dueBy(0) == 0);
  EXPECT(Schedule().dueAt(0) == UINT64_MAX && Schedule().dueBy(kStart) == 0);
}

/** Stages: up, level, down to zero, a pause, a jump, and the time after the last stage. */
void checkStages() {
  const std::vector<Stage> stages = {{10, 100}, {5, 100}, {10, 0}, {5, 0}, {0, 40}, {10, 40}};
  const Schedule schedule(kStart, 0, 0, stages);
  EXPECT(near(after(schedule, 0), 0));
  EXPECT(near(after(schedule, 125), 5));  // a quarter of the first stage's at half of its time
  EXPECT(near(after(schedule, 500), 10));
  EXPECT(near(after(schedule, 700), 12));
  EXPECT(near(after(schedule, 1000 + 375), 20));
  EXPECT(near(after(schedule, 1500), 30));
  EXPECT(near(after(schedule, 1500 + 400 + 40), 41));
  EXPECT(by(schedule, 5) == 125 && by(schedule, 27) == 1500 && by(schedule, 35) == 1700);
  for (uint64_t sprite = 1; sprite < 1900; sprite++) {
    const uint64_t due = schedule.dueAt(sprite);
    EXPECT(due >= schedule.dueAt(sprite - 1));
    EXPECT(schedule.dueBy(due + 1000) >= sprite && schedule.dueBy(due - 1000) <= sprite);
  }
  const Schedule ended(kStart, 10, 0, {{1, 0}});
  EXPECT(near(after(ended, 4), 1 - std::sqrt(0.2)) && ended.dueAt(5) == UINT64_MAX);
}

/** Another swarm may be some batches ahead. What is beyond is no swarm's. */
void checkBatches() {
  swarm::Batches batches;
  batches.begin(5);
  const auto receiveOf = [&](uint64_t batch) { return batches.addReceived(0, batch << 20); };
  EXPECT(receiveOf(5 + 16) == swarm::Receipt::kNew);
  EXPECT(receiveOf(5 + 17) == swarm::Receipt::kUnknown);
}

}  // namespace

int main() {
  checkSteady();
  checkStages();
  checkBatches();
  return 0;
}
