import { bytesOf, readPart } from './json.js';
import { areClaims, rightsOf } from './rights.js';

/**
 * Verifies a grant: a JWT (RFC 7519), as RFC 8725 advises.
 *
 * jose (alive, without dependencies, over WebCrypto) compares signatures. It may take its time, since a grant is verified
 * once: from then on native code knows its rights. Claims are read here: jose takes any number for `exp`, infinity too, and of a
 * member that is there twice the last one.
 */

/** Bytes of a token, at most. */
export const GRANT_BYTES = 4096;

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
