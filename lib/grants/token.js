import { randomUUID } from 'node:crypto';

import { UsageError } from '../base/option-help.js';
import { isObject } from '../client/answers.js';
import { areClaims, NAME_BYTES, rightsOf } from './rights.js';

/**
 * A grant as a token: a JWT (RFC 7519), verified as RFC 8725 advises.
 *
 * jose (alive, without dependencies, over WebCrypto) compares signatures. It may take its time, since a grant is verified
 * once: from then on native code knows its rights. Claims are read here: jose takes any number for `exp`, infinity too, and of a
 * member that is there twice the last one.
 */

// ---- Strict reading of what a token is made of: what could be read in two ways is nothing

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** How many members the objects of a value have, together. */
function membersOf(value) {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce((sum, one) => sum + membersOf(one), own);
}

/** How many members a JSON text names. */
function namesIn(text) {
  let names = 0;
  for (const [, colon] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)) names += colon ? 1 : 0;
  return names;
}

/** @returns {Buffer | undefined} the bytes of base64url that can be written in this one way alone (RFC 4648, section 3.5) */
export function bytesOf(text) {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/**
 * @param {string} part base64url, without padding
 * @returns {object | undefined} the JSON object in it; undefined where there is none, or a member is there twice
 */
function readPart(part) {
  const bytes = bytesOf(part);
  if (bytes === undefined) return undefined;
  try {
    const text = utf8.decode(bytes);
    const value = JSON.parse(text);
    return isObject(value) && membersOf(value) === namesIn(text) ? value : undefined;
  } catch {
    // No UTF-8, no JSON, or nested too deep: it is no grant, whatever else it is.
    return undefined;
  }
}

// ---- Verifying

/** Bytes of a token, at most. */
const GRANT_BYTES = 4096;

/** Keys that one token is tried with. */
const TRIES = 8;

const FORM = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** The keys that may have signed a token: the algorithm is theirs. */
function candidates(keys, { alg, kid }) {
  const fit = keys.filter(({ algorithms }) => algorithms.includes(alg));
  if (kid === undefined) return fit.slice(0, TRIES);
  const named = keys.filter((key) => key.kid === kid);
  // A key without a name is tried for every token.
  const some = named.length > 0 ? named : fit.filter((key) => key.kid === undefined);
  return some.filter((key) => fit.includes(key)).slice(0, TRIES);
}

/** A fifth of all modules is jose's: a server without keys does not load them. */
export const loadJose = () => import('jose');

async function isSigned(token, { key, algorithms }) {
  const { compactVerify, errors } = await loadJose();
  try {
    await compactVerify(token, key, { algorithms });
    return true;
  } catch (error) {
    if (error instanceof errors.JOSEError) return false;
    throw error;
  }
}

const isHeader = ({ kid, typ = 'JWT', crit }) =>
  crit === undefined &&
  (kid === undefined || typeof kid === 'string') &&
  typeof typ === 'string' &&
  typ.toUpperCase() === 'JWT';

/**
 * Verifies a grant.
 *
 * @param {string} token
 * @param {import('./keys.js').Key[]} keys
 * @param {{now: number, longest: number}} time seconds: since 1970, and what `exp` may be ahead of that and of `iat`
 * @returns {Promise<{rights: import('./rights.js').Rights} | {problem: 'bad-grant' | 'grant-expired'}>}
 */
export async function verify(token, keys, { now, longest }) {
  const bad = { problem: 'bad-grant' };
  const [, first, second, signature] = (token.length <= GRANT_BYTES && FORM.exec(token)) || [];
  if (first === undefined || bytesOf(signature) === undefined) return bad;
  const header = readPart(first);
  const claims = readPart(second);
  if (header === undefined || claims === undefined || !isHeader(header)) return bad;
  for (const key of candidates(keys, header)) {
    if (!(await isSigned(token, key))) continue;
    if (!areClaims(claims) || claims.nbf > now) return bad;
    // A longer one, taken when so much of it is left, would outlive its revocation.
    if (claims.exp > Math.min(now, claims.iat ?? now) + longest) return bad;
    if (claims.exp <= now) return { problem: 'grant-expired' };
    return { rights: rightsOf(claims, key.print) };
  }
  return bad;
}

// ---- Making, with the secrets of a key set

/** What a grant can say, beside its end. */
const MEMBERS = ['read', 'publish', 'join', 'present', 'sub', 'jti'];

/**
 * Makes a grant.
 *
 * @param {import('./keys.js').Key[]} keys the first secret among them signs
 * @param {{read?: string[], publish?: string[], join?: boolean, present?: boolean, sub?: string, jti?: string,
 *     seconds: number}} rights
 * @returns {Promise<string>}
 * @throws {Error} in one line; a UsageError where the rights are too many for one grant
 */
export async function sign(keys, { seconds, jti = randomUUID(), ...rights }) {
  const other = Object.keys(rights).find((name) => !MEMBERS.includes(name));
  if (other !== undefined) {
    throw new Error(`a grant has no ${JSON.stringify(other)}: it has ${MEMBERS.join(', ')}`);
  }
  if (!(typeof seconds === 'number' && seconds > 0)) {
    throw new Error('seconds takes a number above 0');
  }
  const secret = keys.find(({ algorithms }) => algorithms.includes('HS256'));
  if (secret === undefined) throw new Error('only an "oct" key signs grants, and there is none');
  const now = Math.floor(Date.now() / 1000);
  const claims = { jti, ...rights, iat: now, exp: now + seconds };
  if (!areClaims(claims)) {
    throw new Error(
      'read and publish take up to 64 keys, prefix/* or *; sub and jti 1 to' +
        ` ${NAME_BYTES} bytes; join and present true or false`
    );
  }
  const { kid } = secret;
  const header = { alg: 'HS256', typ: 'JWT', ...(kid === undefined ? {} : { kid }) };
  const { SignJWT } = await loadJose();
  const token = await new SignJWT(claims).setProtectedHeader(header).sign(secret.key);
  if (token.length > GRANT_BYTES) {
    throw new UsageError(`a grant has at most ${GRANT_BYTES} bytes`);
  }
  return token;
}
