import { FairQueue } from '../server/fair-queue.js';

/**
 * Decides which feed is fetched next. Addresses take turns, however many feeds each has asked for.
 * Feeds that already have a value are fetched three times as often as new ones, when both wait.
 *
 *   again   address 7 ─▶ a, b       address 9 ─▶ c       a, c, b, of four fetches three
 *   first   address 7 ─▶ x, y, z    address 8 ─▶ w       x, w, y, z, the fourth
 */

/** Fetches of feeds that have a value between two first fetches, when both kinds wait. */
const AGAIN = 3;

export class FetchTurns {
  #again = new FairQueue();
  #first = new FairQueue();
  #sinceFirst = 0;

  #linesOf({ first }) {
    return first ? this.#first : this.#again;
  }

  /** @returns {number} how many wait */
  get size() {
    return this.#again.size + this.#first.size;
  }

  /**
   * Has a feed wait for its turn; one that waits already keeps its place.
   *
   * @param {{first: boolean, asker: number}} source `first`: it has no value yet; `asker` is a
   *     number for the address that asked for it. Neither changes while it waits
   */
  add(source) {
    this.#linesOf(source).add(source.asker, source);
  }

  delete(source) {
    this.#linesOf(source).delete(source.asker, source);
  }

  /** @returns {object | undefined} the next one, which waits no more; undefined when none does */
  take() {
    if (this.size === 0) return undefined;
    const first = this.#again.size === 0 || (this.#first.size > 0 && this.#sinceFirst >= AGAIN);
    this.#sinceFirst = first ? 0 : this.#sinceFirst + 1;
    return (first ? this.#first : this.#again).take();
  }
}
