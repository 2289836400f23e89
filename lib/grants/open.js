import { createHash } from 'node:crypto';

import { toldBy } from '../feeds/names.js';
import { readKeyFile, readKeySet } from './keys.js';
import { openRevocations, PARTS } from './revocations.js';
import { Patterns } from './rights.js';
import { loadJose, sign, verify } from './token.js';

/**
 * Grants: what a client needs to read private feeds, and may use to publish and to join.
 *
 *   request ─▶ native/feeds/grants.h ─known─▶ served      its rights are kept there, by the hash of its token
 *                   └────unknown────▶ Grants.admit ─▶ verified, and handed to the native tables
 */

/** @typedef {import('./rights.js').Rights & {token: Buffer}} Grant `token`: its SHA-256, by which native code knows it */

const REQUIRED = { problem: 'grant-required' };
const BAD = { problem: 'bad-grant' };

/** The token that a request has: by its header, or in its query where headers can't be set. */
function tokenOf({ headers, query }) {
  const [, token] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (token !== undefined) return token;
  const given = query.getAll('grant');
  return given.length > 1 ? '' : given[0];
}

export class Grants {
  #options;
  #log;
  #read;
  #keys;
  #private;
  /** Are told when grants end before their time. @type {(part: string, name: string) => void} */
  #ended = () => {};
  revocations;

  /**
   * @param {object} parts
   * @param {object} parts.options grants, private, privateJoin, grantLongest
   * @param {object} [parts.keySet] of the program that the server is in, in place of a file
   * @param {import('../torus/pool.js').Pool} parts.pool whose state keeps what is revoked
   * @param {import('pino').Logger} parts.log
   * @throws {Error} in one line: a key set that can't be used
   */
  constructor({ options, keySet, pool, log }) {
    const { grants: file } = options;
    this.#options = options;
    this.#log = log;
    this.#read = () => {
      if (keySet !== undefined) return readKeySet(keySet);
      return file === 'none' ? [] : readKeyFile(file);
    };
    this.#keys = this.#read();
    this.#private = new Patterns(options.private);
    this.revocations = openRevocations({ options, pool, log });
  }

  /** Loads what verifies, where there are keys: later a server may be out of files. */
  async load() {
    if (this.open) await loadJose();
  }

  /** Whether there are any. */
  get open() {
    return this.#keys.length > 0;
  }

  /** Whether a feed wants one, or that of which it tells. */
  isPrivate(key) {
    if (this.#options.private.length === 0) return false;
    return this.#private.covers(key) || this.#private.covers(toldBy(key));
  }

  /** Whether joining wants one. */
  get privateJoin() {
    return this.#options.privateJoin;
  }

  /** @param {(part: 'jti' | 'sub' | 'key', name: string) => void} ended is called when grants end before their time */
  onEnded(ended) {
    this.#ended = ended;
  }

  /**
   * @param {{headers: object, query: URLSearchParams}} request
   * @returns {Promise<{grant: Grant} | {problem: 'grant-required' | 'bad-grant' | 'grant-expired', token?: Buffer}>} `token`:
   *     the SHA-256 of the one that is none
   */
  async admit(request) {
    const token = tokenOf(request);
    if (token === undefined) return REQUIRED;
    const hash = createHash('sha256').update(token).digest();
    const { rights, problem } = await verify(token, this.#keys, {
      now: Date.now() / 1000,
      longest: this.#options.grantLongest
    });
    if (problem !== undefined) return { problem, token: hash };
    // Looked at behind the last wait: what is revoked meanwhile is not let in.
    const isKnown = this.#keys.some(({ print }) => print === rights.key);
    const isOver = !isKnown || PARTS.some((part) => this.revocations.has(part, rights[part]));
    return isOver ? { ...BAD, token: hash } : { grant: { ...rights, token: hash } };
  }

  /** Makes a grant. */
  async sign(rights) {
    if (rights.seconds > this.#options.grantLongest) {
      throw new Error(`a grant lasts at most --grant-longest, ${this.#options.grantLongest} s`);
    }
    return sign(this.#keys, rights);
  }

  /** As `add` of the revocations; what it ends, ends at once. One that is refused ends nothing. */
  async revoke(part, name) {
    const added = this.revocations.add(part, name);
    if (this.revocations.has(part, name)) this.#ended(part, name);
    return added;
  }

  /** As `take` of the revocations; what it ends, ends at once. */
  takeRevoked(what, end) {
    if (this.revocations.take(what, end)) this.#ended(what.slice(0, 3), what.slice(4));
  }

  /** Reads the keys anew. Grants of a key that is gone end. */
  reload() {
    let keys;
    try {
      keys = this.#read();
    } catch (error) {
      this.#log.error({ err: error }, 'the keys of grants stay as they were');
      return;
    }
    const before = this.#keys;
    this.#keys = keys;
    const left = new Set(keys.map(({ print }) => print));
    for (const { print } of before) if (!left.has(print)) this.#ended('key', print);
    if (this.open) this.#log.info({ keys: keys.length }, 'the keys of grants are read anew');
  }
}
