import { tagOf, tagOfId } from '../base/tag.js';

/**
 * Finds the server of a client of the world by the tag in the client's id. The directory is filled from the entries in the
 * store, never from requests.
 */
export class Directory {
  /** This server's own tag, in a world. @type {number | undefined} */
  ownTag;
  /** URLs by tag; null: the server is restarting. @type {Map<number, string | null>} */
  #urls = new Map();
  #onChange = () => {};

  /** @param {string} [name] this server's name in a world */
  constructor(name) {
    this.ownTag = tagOf(name);
  }

  /** @param {() => void} listener called at every change */
  onChange(listener) {
    this.#onChange = listener;
  }

  /**
   * @param {object} view the result of viewOf()
   * @param {{name: string, url?: string}[]} view.redirectTargets servers to which their clients are sent; a server
   *     without a URL is left out
   * @param {string[]} view.restarting servers whose clients must wait
   */
  update({ redirectTargets, restarting }) {
    const otherUrls = redirectTargets
      .filter(({ url }) => url !== undefined)
      .map(({ name, url }) => [tagOf(name), url]);
    const restartingUrls = restarting.map((name) => [tagOf(name), null]);
    // Of two servers with the same tag, the one that is present comes last and wins.
    const entries = [...restartingUrls, ...otherUrls].filter(([tag]) => tag !== this.ownTag);
    const before = JSON.stringify(this.entries);
    this.#urls = new Map(entries.toSorted(([a], [b]) => a - b));
    if (JSON.stringify(this.entries) !== before) this.#onChange();
  }

  /** @returns {[number, string | null][]} the URLs by tags, ascending */
  get entries() {
    return [...this.#urls];
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
