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
const REFETCHES_PER_FIRST = 3;

/**
 * Queues that take turns, one for each name, such as an address: each gives its oldest item. However
 * many items a name has, another name's first one waits for one of them.
 *
 *   address 7 ─▶ a, b, c
 *   address 9 ─▶ x            a, x, b, c
 */
class FairQueue {
  /** The first queue is the next one. @type {Map<string | number, Set<object>>} */
  #queues = new Map();
  size = 0;

  /** Has an item wait; one that waits by this name already keeps its place. */
  add(name, item) {
    const queue = this.#queues.get(name) ?? new Set();
    if (queue.has(item)) return;
    this.#queues.set(name, queue.add(item));
    this.size += 1;
  }

  delete(name, item) {
    const queue = this.#queues.get(name);
    if (!queue?.delete(item)) return;
    this.size -= 1;
    if (queue.size === 0) this.#queues.delete(name);
  }

  /**
   * @param {(name: string | number) => boolean} [mayTake] whether an item of this name may be the next one
   * @returns {object | undefined} the next item, which waits no more; undefined when there is none
   */
  takeNext(mayTake = () => true) {
    for (const [name, queue] of this.#queues) {
      if (!mayTake(name)) continue;
      const [item] = queue;
      this.delete(name, item);
      if (this.#queues.delete(name)) this.#queues.set(name, queue);
      return item;
    }
    return undefined;
  }
}

export class FetchTurns {
  #refetches = new FairQueue();
  #firstFetches = new FairQueue();
  #sinceFirst = 0;
  #maxUnderWay;
  /** Fetches under way, of each asker that has any. @type {Map<number, number>} */
  #underWayByAsker = new Map();

  /** Fetches that have begun and not ended. */
  underWay = 0;

  /** @param {number} atOnce fetches that there may be at once */
  constructor(atOnce) {
    this.#maxUnderWay = atOnce;
  }

  #queueFor({ first }) {
    return first ? this.#firstFetches : this.#refetches;
  }

  #underWayOf(asker) {
    return this.#underWayByAsker.get(asker) ?? 0;
  }

  /** @returns {number} how many wait */
  get size() {
    return this.#refetches.size + this.#firstFetches.size;
  }

  /**
   * Has a feed wait for its turn; one that waits already keeps its place.
   *
   * @param {{first: boolean, asker: number}} source `first`: it has no value yet; `asker` is a
   *     number for the address that asked for it. Neither changes while it waits
   */
  add(source) {
    this.#queueFor(source).add(source.asker, source);
  }

  delete(source) {
    this.#queueFor(source).delete(source.asker, source);
  }

  /**
   * @returns {object | undefined} the next one, which waits no more and is under way until `end`;
   *     undefined when none may begin
   */
  beginNext() {
    if (this.underWay >= this.#maxUnderWay) return undefined;
    const mostOfAsker = Math.max(1, Math.floor(this.#maxUnderWay / 2));
    const mayBegin = (asker) => this.#underWayOf(asker) < mostOfAsker;
    const queues = [this.#refetches, this.#firstFetches];
    if (this.#sinceFirst >= REFETCHES_PER_FIRST) queues.reverse();
    const source = queues[0].takeNext(mayBegin) ?? queues[1].takeNext(mayBegin);
    if (source === undefined) return undefined;
    this.#sinceFirst = source.first ? 0 : this.#sinceFirst + 1;
    this.#underWayByAsker.set(source.asker, this.#underWayOf(source.asker) + 1);
    this.underWay += 1;
    return source;
  }

  /** A fetch has ended. @param {number} asker as it was when the fetch began */
  end(asker) {
    const remaining = this.#underWayOf(asker) - 1;
    if (remaining === 0) this.#underWayByAsker.delete(asker);
    else this.#underWayByAsker.set(asker, remaining);
    this.underWay -= 1;
  }

  /** None waits any more. */
  clear() {
    this.#refetches = new FairQueue();
    this.#firstFetches = new FairQueue();
  }
}
