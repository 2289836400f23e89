import { createHash } from 'node:crypto';

import { countedKey } from '../feeds/names.js';
import { readKeyFile, readKeySet } from './keys.js';
import { openRevocations, REVOCABLE_PARTS } from './revocations.js';
import { Patterns } from './rights.js';
import { loadJose, sign, verify } from './token.js';

/**
 * Grants. A client needs a grant to read private feeds, and may use one to publish and to join.
 *
 *   request ─▶ native/feeds/grants.h ─known─▶ served      the native table has the rights, by the hash of the token
 *                   └────unknown────▶ Grants.admit ─▶ verified, and handed to the native tables
 */

/** @typedef {import('./rights.js').Rights & {token: Buffer}} Grant `token`: its SHA-256, the key in the native table */

const REQUIRED = { problem: 'grant-required' };
const BAD = { problem: 'bad-grant' };

/** Returns the token of a request: from its header, or from its query where a client can't set headers. */
function tokenOf({ headers, query }) {
  const [, token] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (token !== undefined) return token;
  const tokens = query.getAll('grant');
  return tokens.length > 1 ? '' : tokens[0];
}

export class Grants {
  #options;
  #log;
  #readKeys;
  #keys;
  #private;
  /** Called when grants end before their time. @type {(part: string, name: string) => void} */
  #onEnded = () => {};
  revocations;

  /**
   * @param {object} parts
   * @param {object} parts.options grants, private, privateJoin, grantLongest
   * @param {object} [parts.keySet] the key set of a surrounding program, in place of a file
   * @param {import('../torus/pool.js').Pool} parts.pool keeps the revocations in its state
   * @param {import('pino').Logger} parts.log
   * @throws {Error} with a message of one line: the key set can't be used
   */
  constructor({ options, keySet, pool, log }) {
    const { grants: file } = options;
    this.#options = options;
    this.#log = log;
    this.#readKeys = () => {
      if (keySet !== undefined) return readKeySet(keySet);
      return file === 'none' ? [] : readKeyFile(file);
    };
    this.#keys = this.#readKeys();
    this.#private = new Patterns(options.private);
    this.revocations = openRevocations({ options, pool, log });
  }

  /** Loads the verifying library, if there are keys: later the server may have no free file descriptor. */
  async load() {
    if (this.hasKeys) await loadJose();
  }

  /** Whether the server has keys for grants. */
  get hasKeys() {
    return this.#keys.length > 0;
  }

  /** Whether a feed, or the feed of a presence feed, needs a grant. */
  isPrivate(key) {
    if (this.#options.private.length === 0) return false;
    return this.#private.covers(key) || this.#private.covers(countedKey(key));
  }

  /** Whether a join needs a grant. */
  get privateJoin() {
    return this.#options.privateJoin;
  }

  /** @param {(part: 'jti' | 'sub' | 'key', name: string) => void} ended is called when grants end before their time */
  onEnded(ended) {
    this.#onEnded = ended;
  }

  /**
   * @param {{headers: object, query: URLSearchParams}} request
   * @returns {Promise<{grant: Grant} | {problem: 'grant-required' | 'bad-grant' | 'grant-expired', token?: Buffer}>} `token`:
   *     the SHA-256 of a token that is not a grant
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
    // Checked after the last await: a grant that was revoked meanwhile is refused.
    const isKnown = this.#keys.some(({ fingerprint }) => fingerprint === rights.key);
    const isEnded =
      !isKnown || REVOCABLE_PARTS.some((part) => this.revocations.has(part, rights[part]));
    return isEnded ? { ...BAD, token: hash } : { grant: { ...rights, token: hash } };
  }

  /** Signs a grant. */
  async sign(rights) {
    if (rights.seconds > this.#options.grantLongest) {
      throw new Error(`a grant lasts at most --grant-longest, ${this.#options.grantLongest} s`);
    }
    return sign(this.#keys, rights);
  }

  /** Adds a revocation and ends its grants at once. A refused revocation ends none. */
  async revoke(part, name) {
    const added = this.revocations.add(part, name);
    if (this.revocations.has(part, name)) this.#onEnded(part, name);
    return added;
  }

  /** Takes another server's revocation and ends its grants at once. */
  mergeRevocation(revoked, end) {
    if (this.revocations.merge(revoked, end)) this.#onEnded(revoked.slice(0, 3), revoked.slice(4));
  }

  /** Reads the keys again. Ends the grants of a removed key. */
  reload() {
    let keys;
    try {
      keys = this.#readKeys();
    } catch (error) {
      this.#log.error({ err: error }, 'the keys of grants stay as they were');
      return;
    }
    const before = this.#keys;
    this.#keys = keys;
    const remaining = new Set(keys.map(({ fingerprint }) => fingerprint));
    for (const { fingerprint } of before)
      if (!remaining.has(fingerprint)) this.#onEnded('key', fingerprint);
    if (this.hasKeys) this.#log.info({ keys: keys.length }, 'the keys of grants are read anew');
  }
}
