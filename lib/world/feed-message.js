import { cursorText, isKey, LAST_VERSION } from '../feeds/names.js';

/**
 * A feed's newest version in the world's store: one message under the feed's key, with a head in the headers and the
 * packed value as the body. A deleted feed has only a head. The message of a log has the newest items; the part before
 * them ends with the version before the first of these items:
 *
 *   sprites.feeds.c2NvcmVz       the key in base64url
 *   Sprites-Feed: 1              the version of this format
 *   Sprites-Cursor: e3f9k2-42
 *   Sprites-Digest: 47DEQp…      SHA-256 of the value, or of a log's newest item; missing: deleted
 *   Sprites-Form: deflate        form of the body; or plain
 *   Sprites-Log: 41              of a log: the version of the first item in the body
 *   Sprites-Run: NDUBZ4…         the run of the NATS server in which the epoch was first stored
 *   Sprites-By: a                the publishing server, for an operator that looks at the stream
 */

/** Version of this format. */
const FORMAT_VERSION = '1';

/** Prefix of the subjects; the key follows. */
export const SUBJECTS = 'sprites.feeds';

/** Room for a head, in bytes: far more than it takes. */
export const HEAD_BYTES = 1024;

const CURSOR = /^e([0-9a-z]{1,11})-([1-9][0-9]{0,15})$/;
const DIGEST = /^[A-Za-z0-9_-]{43}$/;
const WORD = /^[A-Za-z0-9]{1,64}$/;
const VERSION = /^[1-9][0-9]{0,15}$/;

/**
 * @typedef {object} Head describes a version
 * @property {number} epoch
 * @property {number} version
 * @property {string} [digest] digest of the value; absent for a deleted feed
 * @property {string} [form] form of the body
 * @property {number} [log] of a log: the version of the first item in the body
 * @property {string} [run] the run of the NATS server in which the epoch was first stored
 * @property {number} [revision] the number of the message in the store
 */

/**
 * Compares two versions of a feed, without clocks. The higher version is newer. Of equal versions, which two servers have
 * reached apart from each other, the higher epoch is newer. The last version has no successor: there the one that the
 * store accepted later is newer.
 *
 * @param {Head} a
 * @param {Head} b
 * @returns {boolean} whether `a` is newer than `b`
 */
export function isNewer(a, b) {
  if (a.version !== b.version) return a.version > b.version;
  if (a.version < LAST_VERSION) return a.epoch > b.epoch;
  return a.epoch !== b.epoch && a.revision > b.revision;
}

/** @returns {string} the key as the last part of a subject */
export const tokenOf = (key) => Buffer.from(key).toString('base64url');

/** @returns {string | undefined} the key at the end of a subject; undefined: it has none */
export function keyOf(subject) {
  const token = subject.slice(subject.lastIndexOf('.') + 1);
  const key = Buffer.from(token, 'base64url').toString();
  return isKey(key) && tokenOf(key) === token ? key : undefined;
}

/**
 * @param {Head} head
 * @param {string} publisher the publishing server's name
 * @returns {Record<string, string>} headers
 */
export function writeHead({ epoch, version, digest, form, log, run }, publisher) {
  return {
    'Sprites-Feed': FORMAT_VERSION,
    'Sprites-Cursor': cursorText({ epoch, version }),
    ...(digest !== undefined && { 'Sprites-Digest': digest, 'Sprites-Form': form }),
    ...(log !== undefined && { 'Sprites-Log': String(log) }),
    ...(run !== undefined && { 'Sprites-Run': run }),
    'Sprites-By': publisher
  };
}

/**
 * @param {(name: string) => string | undefined} header returns a header; empty or undefined: absent
 * @param {number} revision
 * @returns {Head | undefined} undefined for a message that no server of this version has written
 */
export function readHead(header, revision) {
  const [, epochText, versionText] = CURSOR.exec(header('Sprites-Cursor') ?? '') ?? [];
  const epoch = parseInt(epochText, 36);
  const version = Number(versionText);
  const digest = header('Sprites-Digest') || undefined;
  const logText = header('Sprites-Log') || undefined;
  const log = logText && Number(logText);
  const isValid =
    header('Sprites-Feed') === FORMAT_VERSION &&
    (log === undefined || (VERSION.test(logText) && log <= version && digest !== undefined)) &&
    [epoch, version, revision].every(Number.isSafeInteger) &&
    (digest === undefined || DIGEST.test(digest));
  const [form, run] = ['Sprites-Form', 'Sprites-Run']
    .map(header)
    .map((word) => (WORD.test(word) ? word : undefined));
  return isValid ? { epoch, version, digest, form, log, run, revision } : undefined;
}

/**
 * A server's knowledge of each shared feed besides the value: its version here, and the state of that version in the store.
 * Deleted feeds have a mark, too, so that an older value from another server does not bring them back. When there are more
 * of these than a server may have feeds, the oldest is forgotten.
 *
 * @typedef {object} Mark
 * @property {number} epoch
 * @property {number} version
 * @property {string} [digest] digest of the value; absent for a deleted feed
 * @property {number} revision the store's newest message that this version is, or comes from; 0: none
 * @property {boolean} stored whether the store has this version
 * @property {boolean} exposed whether other servers may know the epoch, and give its next version to a value of their own
 * @property {number} [firstOfEpoch] the first version of the epoch, while the store has no version of it
 * @property {string} [run] the run of the NATS server in which the epoch was first stored
 */
export class FeedMarks {
  #maxDeleted;
  /** @type {Map<string, Mark>} */
  #live = new Map();
  /** The earliest deleted first. @type {Map<string, Mark>} */
  #deleted = new Map();
  /** Keys of versions that the store does not have. */
  #unstored = new Set();
  #noteDeleted;

  /**
   * @param {number} maxDeleted most deleted feeds
   * @param {(key: string, head?: {epoch: number, version: number}) => void} [noteDeleted] called for each deleted feed to
   *     remember, and without a head for each one to forget
   */
  constructor(maxDeleted, noteDeleted = () => {}) {
    this.#maxDeleted = maxDeleted;
    this.#noteDeleted = noteDeleted;
  }

  /** @returns {Mark | undefined} */
  get(key) {
    return this.#live.get(key) ?? this.#deleted.get(key);
  }

  /** @returns {number} number of feeds whose version the store has */
  get storedCount() {
    return this.#live.size + this.#deleted.size - this.#unstored.size;
  }

  /** @returns {number} number of feeds whose version the store does not have */
  get unstoredCount() {
    return this.#unstored.size;
  }

  /** @returns {string[]} the keys of these feeds */
  unstoredKeys() {
    return [...this.#unstored];
  }

  /** @returns {string[]} the keys of all feeds, deleted ones too */
  keys() {
    return [...this.#live.keys(), ...this.#deleted.keys()];
  }

  /**
   * @param {string} key
   * @param {Mark} mark
   * @returns {[string, Mark] | undefined} the deleted feed that was forgotten to make room
   */
  set(key, { epoch, version, digest, revision, stored, exposed, firstOfEpoch, run }) {
    const isDeleted = digest === undefined;
    const known = this.#deleted.get(key);
    if (isDeleted && known?.version !== version) this.#noteDeleted(key, { epoch, version });
    if (!isDeleted && known !== undefined) this.#noteDeleted(key);
    (isDeleted ? this.#live : this.#deleted).delete(key);
    const mark = { epoch, version, digest, revision, stored, exposed, firstOfEpoch, run };
    (isDeleted ? this.#deleted : this.#live).set(key, mark);
    if (stored) this.#unstored.delete(key);
    else this.#unstored.add(key);
    if (this.#deleted.size <= this.#maxDeleted) return undefined;
    const [oldest] = this.#deleted;
    this.remove(oldest[0]);
    return oldest;
  }

  remove(key) {
    this.#live.delete(key);
    if (this.#deleted.delete(key)) this.#noteDeleted(key);
    this.#unstored.delete(key);
  }

  /** Marks all versions as not stored: the store has lost its content, or a part of it. */
  markAllUnstored() {
    for (const key of this.keys()) {
      const mark = this.get(key);
      mark.stored = false;
      mark.revision = 0;
      this.#unstored.add(key);
    }
  }
}
