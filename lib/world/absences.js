import { MOST_NAMES } from './entry.js';

/**
 * The servers that have left in order and said that they come back: with a state, and with it their clients' places. Until
 * their grace is over the ids that they have made stay their own. Pure: it is told the time.
 *
 * The grace is counted by the clock of who watches, from when he saw first that the server leaves. Who begins to watch later
 * counts from then, so he may wait for one that has been away for long, but no longer than its grace.
 */
export class Absences {
  /** @type {Map<string, {run: string, epoch: number, end: number}>} */
  #absent = new Map();

  /**
   * @param {string} name
   * @param {import('./entry.js').Entry | undefined} entry its newest
   * @param {number} now
   */
  see(name, entry, now) {
    if (!(entry?.grace > 0)) {
      this.#absent.delete(name);
      return;
    }
    const { run, epoch, grace } = entry;
    const known = this.#absent.get(name);
    if (known && known.run === run && known.epoch === epoch) return;
    if (!known && this.#absent.size >= MOST_NAMES) return;
    this.#absent.set(name, { run, epoch, end: now + grace });
  }

  /** @returns {boolean} whether anybody's grace has ended since it was asked last */
  end(now) {
    const ended = [...this.#absent].filter(([, { end }]) => end <= now);
    for (const [name] of ended) this.#absent.delete(name);
    return ended.length > 0;
  }

  /** @returns {string[]} who may still come back, in order */
  names(now) {
    const absent = [...this.#absent].filter(([, { end }]) => end > now);
    return absent.map(([name]) => name).toSorted();
  }
}
