/**
 * Smooth movement: versions of a value come some times a second, and unevenly; a screen draws sixty frames a second.
 * Therefore a frame shows a moment slightly in the past, between the two versions around it.
 */

const MAX_VERSIONS = 40; // versions
const DRIFT = 0.02; // share of a larger lag that is taken over with each version: clocks differ in speed, too
const MIN_DELAY = 60; // shortest delay, in ms

export class Smooth {
  #versions = []; // {time, value}, the oldest first; time by the server's clock, ms
  #lag = null; // ms from the server's clock to the screen's, with the shortest latency
  #delay = MIN_DELAY; // delay of the moment that is drawn, in ms

  /** Drops all versions: another round begins, or the time went back. */
  reset() {
    this.#versions = [];
    this.#lag = null;
  }

  /**
   * @param {number} time ms by the server's clock, of this version
   * @param {any} value
   * @param {number} now ms by the screen's clock
   * @param {number} interval ms between two versions, as the control feed says
   */
  push(time, value, now, interval) {
    const newest = this.#versions.at(-1);
    // An equal time is valid: a new name or player makes a version in which nothing has moved.
    if (time < newest?.time) this.reset();
    const lag = now - time;
    const lagBefore = this.#lag ?? lag;
    this.#lag = lag < lagBefore ? lag : lagBefore + (lag - lagBefore) * DRIFT;
    this.#delay = Math.max(MIN_DELAY, 1.5 * interval);
    const last = this.#versions.at(-1);
    // After a pause the movement starts now, not at the start of the pause.
    if (last !== undefined && time - last.time > 3 * interval) {
      this.#versions.push({ time: time - interval, value: last.value });
    }
    this.#versions.push({ time, value });
    if (this.#versions.length > MAX_VERSIONS)
      this.#versions.splice(0, this.#versions.length - MAX_VERSIONS);
  }

  /**
   * Returns what to draw now.
   *
   * @param {number} now ms by the screen's clock
   * @returns {{from: any, to: any, share: number}|null} two versions, and the position
   *     between them, 0 to 1; null before the first version
   */
  at(now) {
    const versions = this.#versions;
    if (versions.length === 0) return null;
    const time = now - this.#lag - this.#delay;
    let i = versions.length - 1;
    while (i > 0 && versions[i - 1].time > time) i -= 1;
    const to = versions[i];
    const from = versions[Math.max(0, i - 1)];
    const length = to.time - from.time;
    const share = length > 0 ? Math.min(1, Math.max(0, (time - from.time) / length)) : 1;
    return { from: from.value, to: to.value, share };
  }
}

/** Returns a number between two. */
export const between = (from, to, share) => from + (to - from) * share;
