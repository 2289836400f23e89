import { cursorText, isKey, LAST_VERSION } from '../feeds/names.js';

/**
 * A feed's newest version as the world's store has it: one message under the feed's key, its head in headers and
 * its value, packed, as the body. A feed that was deleted has a head alone. Of a log it has the newest items, and the
 * part before them ends with the version before the first of them:
 *
 *   sprites.feeds.c2NvcmVz       the key in base64url
 *   Sprites-Feed: 1              the version of this form
 *   Sprites-Cursor: e3f9k2-42
 *   Sprites-Digest: 47DEQp…      SHA-256 of the value, or of a log's newest item; missing: deleted
 *   Sprites-Form: deflate        of the body; or plain
 *   Sprites-Log: 41              a log, and the version of the first item in the body
 *   Sprites-Run: NDUBZ4…         the run of the NATS server in which its epoch came there
 *   Sprites-By: a                the server that has published it, for an operator that looks at the stream
 */

/** The version of this form. */
const FORM = '1';

/** Where messages are; the key follows. */
export const SUBJECTS = 'sprites.feeds';

/** Bytes that heads may take, with much to spare. */
export const HEAD_BYTES = 1024;

const CURSOR = /^e([0-9a-z]{1,11})-([1-9][0-9]{0,15})$/;
const DIGEST = /^[A-Za-z0-9_-]{43}$/;
const WORD = /^[A-Za-z0-9]{1,64}$/;
const VERSION = /^[1-9][0-9]{0,15}$/;

/**
 * @typedef {object} Head what is known of a version
 * @property {number} epoch
 * @property {number} version
 * @property {string} [digest] of its value; without one the feed is deleted
 * @property {string} [form] of the body
 * @property {number} [log] of a log: the version of the first item in the body
 * @property {string} [run] of the NATS server, in which its epoch came there
 * @property {number} [revision] the number of its message in the store
 */

/**
 * Which of two versions of a feed is the newer one, whatever clocks say: that with the higher version; where both have
 * come to the same, apart from each other, that with the higher epoch. Behind the last version there is none: of those
 * that have come there the one that the store has taken later.
 *
 * @param {Head} a
 * @param {Head} b
 * @returns {boolean} whether it is `a`
 */
export function isNewer(a, b) {
  if (a.version !== b.version) return a.version > b.version;
  if (a.version < LAST_VERSION) return a.epoch > b.epoch;
  return a.epoch !== b.epoch && a.revision > b.revision;
}

/** @returns {string} the last part of a subject */
export const tokenOf = (key) => Buffer.from(key).toString('base64url');

/** @returns {string | undefined} the key that a subject ends with; undefined: none */
export function keyOf(subject) {
  const token = subject.slice(subject.lastIndexOf('.') + 1);
  const key = Buffer.from(token, 'base64url').toString();
  return isKey(key) && tokenOf(key) === token ? key : undefined;
}

/**
 * @param {Head} head
 * @param {string} by a server's name
 * @returns {Record<string, string>} headers
 */
export function writeHead({ epoch, version, digest, form, log, run }, by) {
  return {
    'Sprites-Feed': FORM,
    'Sprites-Cursor': cursorText({ epoch, version }),
    ...(digest !== undefined && { 'Sprites-Digest': digest, 'Sprites-Form': form }),
    ...(log !== undefined && { 'Sprites-Log': String(log) }),
    ...(run !== undefined && { 'Sprites-Run': run }),
    'Sprites-By': by
  };
}

/**
 * @param {(name: string) => string | undefined} header empty or undefined: there is none
 * @param {number} revision
 * @returns {Head | undefined} undefined for what no server of this version has written
 */
export function readHead(header, revision) {
  const [, epochText, versionText] = CURSOR.exec(header('Sprites-Cursor') ?? '') ?? [];
  const epoch = parseInt(epochText, 36);
  const version = Number(versionText);
  const digest = header('Sprites-Digest') || undefined;
  const logText = header('Sprites-Log') || undefined;
  const log = logText && Number(logText);
  const sound =
    header('Sprites-Feed') === FORM &&
    (log === undefined || (VERSION.test(logText) && log <= version && digest !== undefined)) &&
    [epoch, version, revision].every(Number.isSafeInteger) &&
    (digest === undefined || DIGEST.test(digest));
  const [form, run] = ['Sprites-Form', 'Sprites-Run']
    .map(header)
    .map((word) => (WORD.test(word) ? word : undefined));
  return sound ? { epoch, version, digest, form, log, run, revision } : undefined;
}

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

  /** @returns {number} versions that the store has, as far as is known */
  get stored() {
    return this.#live.size + this.#deleted.size - this.#unstored.size;
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
    const mark = { epoch, version, digest, revision, stored, exposed, from, run };
    (isDeleted ? this.#deleted : this.#live).set(key, mark);
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
