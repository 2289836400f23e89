import { tagOf, tagOfId } from '../base/tag.js';

/**
 * Where the clients of the other servers of a world belong, by the tags in their ids. What is here comes from what the
 * servers say of themselves in the store, and from nothing that a request says.
 */
export class Directory {
  #own;
  /** By tags; null: the server restarts. @type {Map<number, string | null>} */
  #urls = new Map();
  #changed = () => {};

  /** @param {string} [name] this server's, in a world */
  constructor(name) {
    this.#own = tagOf(name);
  }

  /** @param {() => void} changed is told of every change */
  onChange(changed) {
    this.#changed = changed;
  }

  /**
   * @param {object} view as viewOf() has it
   * @param {{name: string, url?: string}[]} view.places servers whose clients are to ask there; one without a URL is left
   *     out, as there is nothing to say of where it is
   * @param {string[]} view.restarting servers whose clients are to wait
   */
  update({ places, restarting }) {
    const others = places
      .filter(({ url }) => url !== undefined)
      .map(({ name, url }) => [tagOf(name), url]);
    const waited = restarting.map((name) => [tagOf(name), null]);
    // Of two with the same tag, the one that is there.
    const entries = [...waited, ...others].filter(([tag]) => tag !== this.#own);
    const before = JSON.stringify(this.entries);
    this.#urls = new Map(entries.toSorted(([a], [b]) => a - b));
    if (JSON.stringify(this.entries) !== before) this.#changed();
  }

  /** @returns {[number, string | null][]} the URLs by tags, ascending */
  get entries() {
    return [...this.#urls];
  }

  /** @returns {number | undefined} this server's own tag, in a world */
  get own() {
    return this.#own;
  }

  /**
   * @param {string} id as text
   * @returns {string | null | undefined} the URL of the other server that has made it; null: that one restarts, and has it
   *     still
   */
  urlOf(id) {
    return this.#urls.size > 0 ? this.#urls.get(tagOfId(id)) : undefined;
  }
}
