// The due times of an open loop's sprites: at one rate, or through stages in which the rate changes
// linearly to a target. The due times depend on the clock alone, never on earlier throws.
#ifndef SPRITES_SWARM_SCHEDULE_H_
#define SPRITES_SWARM_SCHEDULE_H_

#include <cstdint>
#include <vector>

namespace swarm {

/** A part of a run. */
struct Stage {
  double seconds;
  double rate;  ///< at the end of the stage, in sprites a second
};

class Schedule {
 public:
  /** Makes a schedule in which no sprite is ever due. */
  Schedule() : Schedule(0, 0, 0, {}) {}

  /**
   * @param start start of the schedule, in nanoseconds
   * @param rate rate at the start, in sprites a second; the rate of the last stage continues
   * @param phase delay of all sprites, in intervals between two sprites
   */
  Schedule(uint64_t start, double rate, double phase, const std::vector<Stage>& stages);

  /** @return due time of a sprite, counted from 0, in nanoseconds; UINT64_MAX: never */
  uint64_t dueAt(uint64_t sprite) const;

  /** @return number of sprites due by this time */
  uint64_t dueBy(uint64_t time) const;

 private:
  /** A stage of linear rate: `startSeconds` after the start; `spritesBefore` are due before. */
  struct Segment {
    double startSeconds;
    double spritesBefore;
    double rate;
    double slope;

    double dueBy(double seconds) const;
  };

  uint64_t start_;
  double phase_;
  std::vector<Segment> segments_;  // the last segment has no end and no slope
};

}  // namespace swarm

#endif  // SPRITES_SWARM_SCHEDULE_H_
