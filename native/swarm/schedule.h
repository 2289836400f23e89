// When the sprites of an open loop are due: at one rate, or through stages in which the rate goes
// in a straight line to a target. What is due depends on the clock alone, never on what was thrown.
#ifndef SPRITES_SWARM_SCHEDULE_H_
#define SPRITES_SWARM_SCHEDULE_H_

#include <cstdint>
#include <vector>

namespace swarm {

/** A part of a run. */
struct Stage {
  double seconds;
  double rate;  ///< at its end, in sprites a second
};

class Schedule {
 public:
  /** Nothing is ever due. */
  Schedule() : Schedule(0, 0, 0, {}) {}

  /**
   * @param start nanoseconds
   * @param rate at the start, in sprites a second; that of the last stage goes on
   * @param phase by so many sprites all are later
   */
  Schedule(uint64_t start, double rate, double phase, const std::vector<Stage>& stages);

  /** @return nanoseconds; UINT64_MAX for never. The first sprite is 0. */
  uint64_t dueAt(uint64_t sprite) const;

  /** @return how many sprites are due by then */
  uint64_t dueBy(uint64_t time) const;

 private:
  /** From `from` on, in seconds after the start, with `count` due before. */
  struct Line {
    double from;
    double count;
    double rate;
    double slope;

    double dueBy(double seconds) const;
  };

  uint64_t start_;
  double phase_;
  std::vector<Line> lines_;  // the last one has no end and no slope
};

}  // namespace swarm

#endif  // SPRITES_SWARM_SCHEDULE_H_
