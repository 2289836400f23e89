/**
 * Versions of a value come some times a second and not evenly; a screen is drawn sixty times. So what
 * is drawn is a little in the past: between the two versions that lie around that moment.
 */

const KEPT = 40; // versions
const DRIFT = 0.02; // of the difference that a later arrival counts for: clocks differ in speed, too
const LEAST = 60; // ms behind the newest, at the least

export class Smooth {
  #versions = []; // {time, value}, the oldest first; time by the server's clock, ms
  #lag = null; // ms from the server's clock to this one, for what comes as quickly as it can
  #wait = LEAST; // ms behind

  /** Nothing that was is of use: another round, another ball. */
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
    // A name or a player more is told of with the same time: nothing has moved.
    if (time < newest?.time) this.reset();
    const lag = now - time;
    const before = this.#lag ?? lag;
    this.#lag = lag < before ? lag : before + (lag - before) * DRIFT;
    this.#wait = Math.max(LEAST, 1.5 * interval);
    const last = this.#versions.at(-1);
    // After a standstill the movement begins now, and not when the standstill began.
    if (last !== undefined && time - last.time > 3 * interval) {
      this.#versions.push({ time: time - interval, value: last.value });
    }
    this.#versions.push({ time, value });
    if (this.#versions.length > KEPT) this.#versions.splice(0, this.#versions.length - KEPT);
  }

  /**
   * What to draw now.
   *
   * @param {number} now ms by the screen's clock
   * @returns {{from: any, to: any, share: number}|null} two versions and how far it is from the
   *     one to the other, 0 to 1; null where there is none yet
   */
  at(now) {
    const versions = this.#versions;
    if (versions.length === 0) return null;
    const time = now - this.#lag - this.#wait;
    let i = versions.length - 1;
    while (i > 0 && versions[i - 1].time > time) i -= 1;
    const to = versions[i];
    const from = versions[Math.max(0, i - 1)];
    const length = to.time - from.time;
    const share = length > 0 ? Math.min(1, Math.max(0, (time - from.time) / length)) : 1;
    return { from: from.value, to: to.value, share };
  }
}

/** A number between two. */
export const between = (from, to, share) => from + (to - from) * share;
