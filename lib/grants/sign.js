import { randomUUID } from 'node:crypto';

import { areClaims, NAME_BYTES } from './rights.js';
import { loadJose } from './verify.js';

/** Makes grants, with the secrets of a key set. */

/** What a grant can say, beside its end. */
const MEMBERS = ['read', 'publish', 'join', 'present', 'sub', 'jti'];

/**
 * @param {import('./keys.js').Key[]} keys the first secret among them signs
 * @param {{read?: string[], publish?: string[], join?: boolean, present?: boolean, sub?: string, jti?: string,
 *     seconds: number}} rights
 * @returns {Promise<string>}
 * @throws {Error} in one line
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
  return new SignJWT(claims).setProtectedHeader(header).sign(secret.key);
}
