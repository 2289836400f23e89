/**
 * Queues that take turns, one for each name, such as an address: each gives its oldest item. However
 * many items a name has, another name's first one waits for one of them.
 *
 *   address 7 ─▶ a, b, c
 *   address 9 ─▶ x            a, x, b, c
 */
export class FairQueue {
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
