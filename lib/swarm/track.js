/** How many were parked, look by look: a storm is over between two points of a longer series. */

const MOST_POINTS = 400;

export class Track {
  /** @type {Array<[number, number]>} seconds since the run began, and how many were parked */
  points = [];

  /**
   * @param {number} at seconds
   * @param {number} parked
   */
  add(at, parked) {
    const last = this.points.at(-1);
    // What stands still needs its ends alone.
    if (last?.[1] === parked && this.points.at(-2)?.[1] === parked) this.points.pop();
    this.points.push([Math.round(at * 1000) / 1000, parked]);
    if (this.points.length > MOST_POINTS) this.#thin();
  }

  /** Halves it, and keeps the lowest point, which is what the track is for. */
  #thin() {
    const lowest = this.points.reduce((low, point) => (point[1] < low[1] ? point : low));
    this.points = this.points.filter((point, i) => i % 2 === 0 || point === lowest);
  }
}
