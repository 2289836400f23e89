import { tagOf, tagOfId } from './tag.js';

/**
 * Where the clients of the other servers of a world belong, by the tags in their ids. What is here comes from the entries
 * of the servers that are in the ring, and from nothing that a request says. A worker has a copy.
 */
export class Directory {
  #own;
  /** @type {Map<number, string>} */
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
   * @param {{name: string, url?: string}[]} members of the ring; one without a URL is left out, as there is nothing to say
   *     of where it is
   */
  update(members) {
    const others = members.map(({ name, url }) => [tagOf(name), url]);
    this.take(others.filter(([tag, url]) => tag !== this.#own && url !== undefined));
  }

  /** @param {[number, string][]} entries of another directory */
  take(entries) {
    const before = JSON.stringify(this.entries);
    this.#urls = new Map(entries.toSorted(([a], [b]) => a - b));
    if (JSON.stringify(this.entries) !== before) this.#changed();
  }

  /** @returns {[number, string][]} the URLs by tags, ascending */
  get entries() {
    return [...this.#urls];
  }

  /** @returns {number | undefined} this server's own tag, in a world */
  get own() {
    return this.#own;
  }

  /**
   * @param {string} id as text
   * @returns {string | undefined} the URL of the other server that has made it
   */
  urlOf(id) {
    return this.#urls.size > 0 ? this.#urls.get(tagOfId(id)) : undefined;
  }
}
