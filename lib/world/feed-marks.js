/**
 * What a server knows of each shared feed beside its value: the version it has, and where that stands in the store. Of
 * deleted feeds as well, so that an older value from elsewhere does not bring them back; of those the oldest is
 * forgotten when there are as many as there may be feeds.
 *
 * @typedef {object} Mark
 * @property {number} epoch
 * @property {number} version
 * @property {string} [digest] of the value; without one the feed is deleted
 * @property {number} revision of the store's newest message that this version comes from, or is; 0: none
 * @property {boolean} stored whether the store has this version
 * @property {boolean} exposed whether others may know its epoch, and give its next version to a value of their own
 * @property {number} [from] while the store has none of its epoch: the epoch's first version
 * @property {string} [run] the run of the NATS server in which its epoch came to the store
 */
export class FeedMarks {
  #most;
  /** @type {Map<string, Mark>} */
  #live = new Map();
  /** The longest deleted first. @type {Map<string, Mark>} */
  #deleted = new Map();
  /** Keys of versions that the store does not have. */
  #unstored = new Set();
  #noteDeleted;

  /**
   * @param {number} most deleted feeds that are remembered
   * @param {(key: string, head?: {epoch: number, version: number}) => void} [noteDeleted] told of each that is to be
   *     remembered, and without a head of each that is not any more
   */
  constructor(most, noteDeleted = () => {}) {
    this.#most = most;
    this.#noteDeleted = noteDeleted;
  }

  /** @returns {Mark | undefined} */
  get(key) {
    return this.#live.get(key) ?? this.#deleted.get(key);
  }

  /** @returns {number} versions that the store does not have */
  get unstored() {
    return this.#unstored.size;
  }

  /** @returns {string[]} of those */
  unstoredKeys() {
    return [...this.#unstored];
  }

  /** @returns {string[]} of all feeds, deleted ones too */
  keys() {
    return [...this.#live.keys(), ...this.#deleted.keys()];
  }

  /**
   * @param {string} key
   * @param {Mark} mark
   * @returns {[string, Mark] | undefined} a deleted feed that is forgotten for it
   */
  set(key, { epoch, version, digest, revision, stored, exposed, from, run }) {
    const isDeleted = digest === undefined;
    const known = this.#deleted.get(key);
    if (isDeleted && known?.version !== version) this.#noteDeleted(key, { epoch, version });
    if (!isDeleted && known !== undefined) this.#noteDeleted(key);
    (isDeleted ? this.#live : this.#deleted).delete(key);
    (isDeleted ? this.#deleted : this.#live).set(key, {
      ...{ epoch, version, digest, revision, stored, exposed, from, run }
    });
    if (stored) this.#unstored.delete(key);
    else this.#unstored.add(key);
    if (this.#deleted.size <= this.#most) return undefined;
    const [oldest] = this.#deleted;
    this.forget(oldest[0]);
    return oldest;
  }

  forget(key) {
    this.#live.delete(key);
    if (this.#deleted.delete(key)) this.#noteDeleted(key);
    this.#unstored.delete(key);
  }

  /** The store has lost what it had, or some of it: nothing is known to be there. */
  unstoreAll() {
    for (const key of this.keys()) {
      const mark = this.get(key);
      mark.stored = false;
      mark.revision = 0;
      this.#unstored.add(key);
    }
  }
}
