import { isKey, countedKey } from '../feeds/names.js';

// Patterns of feeds, in a grant or in --private: a key, `prefix/*` for all keys below a prefix, or `*` for all.
// native/feeds/grants.h reads them in the same way.

/** @returns {boolean} whether a text is a pattern */
export function isPattern(text) {
  if (typeof text !== 'string') return false;
  return text === '*' || isKey(text.endsWith('/*') ? text.slice(0, -2) : text);
}

export class Patterns {
  #patterns;

  /** @param {string[]} all patterns */
  constructor(all) {
    this.#patterns = new Set(all);
  }

  /** @returns {boolean} whether a pattern matches the key */
  covers(key) {
    if (this.#patterns.has(key) || this.#patterns.has('*')) return true;
    for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
      if (this.#patterns.has(`${key.slice(0, slash)}/*`)) return true;
    }
    return false;
  }
}

// ---- The claims of a grant with a valid signature

/** Most patterns in a list, and longest `sub`, `jti` or `kid` in bytes. */
const MAX_PATTERNS = 64;
export const NAME_BYTES = 200;

/** NumericDate (RFC 7519, section 2), within the exact integers. */
const isTime = (value) =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;

/** @returns {boolean} whether a value may be a `sub` or a `jti`: half of a surrogate pair has no UTF-8, and could not be revoked */
export const isName = (value) =>
  typeof value === 'string' &&
  value !== '' &&
  value.isWellFormed() &&
  Buffer.byteLength(value) <= NAME_BYTES;

const isList = (value) =>
  Array.isArray(value) && value.length <= MAX_PATTERNS && value.every(isPattern);

const isFlag = (value) => typeof value === 'boolean';

const CLAIM_CHECKS = {
  ...{ exp: isTime, nbf: isTime, iat: isTime, sub: isName, jti: isName },
  ...{ read: isList, publish: isList, join: isFlag, present: isFlag }
};

/**
 * @typedef {object} Rights
 * @property {number} exp seconds since 1970
 * @property {string} [sub]
 * @property {string} [jti]
 * @property {string[]} read patterns of feeds
 * @property {string[]} publish
 * @property {boolean} join
 * @property {boolean} present
 * @property {string} key the fingerprint of the signing key
 * @property {(key: string) => boolean} reads
 * @property {(key: string) => boolean} publishes
 */

/**
 * @param {object} claims
 * @returns {boolean} whether each claim is valid. `aud` is refused: this server is no audience (RFC 7519, section 4.1.3)
 */
export function areClaims(claims) {
  if (claims.exp === undefined || claims.aud !== undefined) return false;
  return Object.entries(CLAIM_CHECKS).every(([name, isValid]) => {
    return claims[name] === undefined || isValid(claims[name]);
  });
}

/** @returns {Rights} of valid claims: see areClaims */
export function rightsOf(claims, key) {
  const { exp, sub, jti, read = [], publish = [], join = false, present = false } = claims;
  const readable = new Patterns(read);
  const writable = new Patterns(publish);
  return {
    ...{ exp, sub, jti, read, publish, join, present, key },
    reads: (feed) => readable.covers(countedKey(feed)),
    publishes: (feed) => writable.covers(feed)
  };
}
