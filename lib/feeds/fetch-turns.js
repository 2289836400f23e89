/**
 * Decides which feed is fetched next. Addresses take turns, however many feeds each has asked for, and
 * one address has at most half of the fetches under way: what an address asks for may never end, and
 * the other half is free for the others at once. (Rejected: all of them for an address that is alone,
 * since then the next one waits until a fetch of the first has ended.)
 * Feeds that already have a value are fetched three times as often as new ones, when both wait.
 *
 *   again   address 7 ─▶ a, b       address 9 ─▶ c       a, c, b, of four fetches three
 *   first   address 7 ─▶ x, y, z    address 8 ─▶ w       x, w, y, z, the fourth
 */

/** Fetches of feeds that have a value between two first fetches, when both kinds wait. */
const AGAIN = 3;

/**
 * Queues that take turns, one for each name, such as an address: each gives its oldest item. However
 * many items a name has, another name's first one waits for one of them.
 *
 *   address 7 ─▶ a, b, c
 *   address 9 ─▶ x            a, x, b, c
 */
class FairQueue {
  /** The first queue is the next one. @type {Map<string | number, Set<object>>} */
  #lines = new Map();
  size = 0;

  /** Has an item wait; one that waits by this name already keeps its place. */
  add(name, item) {
    const line = this.#lines.get(name) ?? new Set();
    if (line.has(item)) return;
    this.#lines.set(name, line.add(item));
    this.size += 1;
  }

  delete(name, item) {
    const line = this.#lines.get(name);
    if (!line?.delete(item)) return;
    this.size -= 1;
    if (line.size === 0) this.#lines.delete(name);
  }

  /**
   * @param {(name: string | number) => boolean} [mayGo] whether an item of this name may be the next one
   * @returns {object | undefined} the next item, which waits no more; undefined when there is none
   */
  take(mayGo = () => true) {
    for (const [name, line] of this.#lines) {
      if (!mayGo(name)) continue;
      const [item] = line;
      this.delete(name, item);
      if (this.#lines.delete(name)) this.#lines.set(name, line);
      return item;
    }
    return undefined;
  }
}

export class FetchTurns {
  #again = new FairQueue();
  #first = new FairQueue();
  #sinceFirst = 0;
  #most;
  /** Fetches under way, of each asker that has any. @type {Map<number, number>} */
  #shares = new Map();

  /** Fetches that have begun and not ended. */
  underWay = 0;

  /** @param {number} atOnce fetches that there may be at once */
  constructor(atOnce) {
    this.#most = atOnce;
  }

  #linesOf({ first }) {
    return first ? this.#first : this.#again;
  }

  #shareOf(asker) {
    return this.#shares.get(asker) ?? 0;
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

  /**
   * @returns {object | undefined} the next one, which waits no more and is under way until `end`;
   *     undefined when none may begin
   */
  take() {
    if (this.underWay >= this.#most) return undefined;
    const most = Math.max(1, Math.floor(this.#most / 2));
    const mayBegin = (asker) => this.#shareOf(asker) < most;
    const lines = [this.#again, this.#first];
    if (this.#sinceFirst >= AGAIN) lines.reverse();
    const source = lines[0].take(mayBegin) ?? lines[1].take(mayBegin);
    if (source === undefined) return undefined;
    this.#sinceFirst = source.first ? 0 : this.#sinceFirst + 1;
    this.#shares.set(source.asker, this.#shareOf(source.asker) + 1);
    this.underWay += 1;
    return source;
  }

  /** A fetch has ended. @param {number} asker as it was when the fetch began */
  end(asker) {
    const left = this.#shareOf(asker) - 1;
    if (left === 0) this.#shares.delete(asker);
    else this.#shares.set(asker, left);
    this.underWay -= 1;
  }

  /** None waits any more. */
  clear() {
    this.#again = new FairQueue();
    this.#first = new FairQueue();
  }
}
