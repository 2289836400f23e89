import { tagOf, tagOfId } from '../base/tag.js';

/**
 * Finds the server of a client of the world by the tag in the client's id. The directory is filled from the entries in the
 * store, never from requests.
 */
export class Directory {
  #own;
  /** URLs by tag; null: the server is restarting. @type {Map<number, string | null>} */
  #urls = new Map();
  #changed = () => {};

  /** @param {string} [name] this server's name in a world */
  constructor(name) {
    this.#own = tagOf(name);
  }

  /** @param {() => void} changed called at every change */
  onChange(changed) {
    this.#changed = changed;
  }

  /**
   * @param {object} view the result of viewOf()
   * @param {{name: string, url?: string}[]} view.places servers to which their clients are sent; a server without a URL
   *     is left out
   * @param {string[]} view.restarting servers whose clients must wait
   */
  update({ places, restarting }) {
    const others = places
      .filter(({ url }) => url !== undefined)
      .map(({ name, url }) => [tagOf(name), url]);
    const waited = restarting.map((name) => [tagOf(name), null]);
    // Of two servers with the same tag, the one that is present comes last and wins.
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
   * @returns {string | null | undefined} the URL of the other server that made the id; null: that server is restarting, and
   *     keeps the client's place; undefined: no other server's id
   */
  urlOf(id) {
    return this.#urls.size > 0 ? this.#urls.get(tagOfId(id)) : undefined;
  }
}
