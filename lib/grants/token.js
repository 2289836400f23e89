import { randomUUID } from 'node:crypto';

import { UsageError } from '../base/option-help.js';
import { readJson } from '../base/read-json.js';
import { isObject } from '../client/answers.js';
import { areClaims, NAME_BYTES, rightsOf } from './rights.js';

/**
 * Grants as tokens: a JWT (RFC 7519), verified as RFC 8725 advises.
 *
 * jose (maintained, without dependencies, on WebCrypto) verifies signatures. Its speed does not matter: a grant is verified
 * once, and then the native table has its rights. This module reads the claims itself: jose accepts any number for `exp`,
 * infinity too, and takes the last of repeated members.
 */

// ---- Strict reading of a token

/** @returns {Buffer | undefined} the bytes of canonical base64url (RFC 4648, section 3.5) */
export function decodeBase64url(text) {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/**
 * @param {string} part base64url, without padding
 * @returns {object | undefined} the JSON object in it; undefined for anything else, and for repeated members
 */
function decodePart(part) {
  const bytes = decodeBase64url(part);
  const value = bytes && readJson(bytes);
  return isObject(value) ? value : undefined;
}

// ---- Verifying

/** Longest token, in bytes. */
const GRANT_BYTES = 4096;

/** Most keys that are tried for one token. */
const MAX_TRIED_KEYS = 8;

const TOKEN_FORM = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** Returns the keys that may have signed a token: those with its algorithm and name. */
function candidates(keys, { alg, kid }) {
  const matching = keys.filter(({ algorithms }) => algorithms.includes(alg));
  if (kid === undefined) return matching.slice(0, MAX_TRIED_KEYS);
  const named = keys.filter((key) => key.kid === kid);
  // A key without a `kid` is tried for every token.
  const possible = named.length > 0 ? named : matching.filter((key) => key.kid === undefined);
  return possible.filter((key) => matching.includes(key)).slice(0, MAX_TRIED_KEYS);
}

/** Loads jose, a fifth of all modules, only where there are keys. */
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
 * @param {{now: number, longest: number}} time `now` in seconds since 1970; `longest` is how many seconds `exp` may be
 *     after `now` and after `iat`
 * @returns {Promise<{rights: import('./rights.js').Rights} | {problem: 'bad-grant' | 'grant-expired'}>}
 */
export async function verify(token, keys, { now, longest }) {
  const bad = { problem: 'bad-grant' };
  const [, headerPart, claimsPart, signature] =
    (token.length <= GRANT_BYTES && TOKEN_FORM.exec(token)) || [];
  if (headerPart === undefined || decodeBase64url(signature) === undefined) return bad;
  const header = decodePart(headerPart);
  const claims = decodePart(claimsPart);
  if (header === undefined || claims === undefined || !isHeader(header)) return bad;
  for (const key of candidates(keys, header)) {
    if (!(await isSigned(token, key))) continue;
    if (!areClaims(claims) || claims.nbf > now) return bad;
    // A grant with a longer life, accepted near its end, would outlive its revocation.
    if (claims.exp > Math.min(now, claims.iat ?? now) + longest) return bad;
    if (claims.exp <= now) return { problem: 'grant-expired' };
    return { rights: rightsOf(claims, key.fingerprint) };
  }
  return bad;
}

// ---- Signing, with the secrets of a key set

/** Claims of a grant, besides its end. */
const GRANT_CLAIMS = ['read', 'publish', 'join', 'present', 'sub', 'jti'];

/**
 * Signs a grant.
 *
 * @param {import('./keys.js').Key[]} keys the first secret key signs
 * @param {{read?: string[], publish?: string[], join?: boolean, present?: boolean, sub?: string, jti?: string,
 *     seconds: number}} rights
 * @returns {Promise<string>}
 * @throws {Error} with a message of one line; a UsageError for rights that are too many for one grant
 */
export async function sign(keys, { seconds, jti = randomUUID(), ...rights }) {
  const unknownClaim = Object.keys(rights).find((name) => !GRANT_CLAIMS.includes(name));
  if (unknownClaim !== undefined) {
    throw new Error(
      `a grant has no ${JSON.stringify(unknownClaim)}: it has ${GRANT_CLAIMS.join(', ')}`
    );
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
