import { createHash, createPublicKey, createSecretKey } from 'node:crypto';

import { readOptionText } from '../base/option-file.js';
import { NAME_BYTES } from './rights.js';
import { decodeBase64url } from './token.js';

/**
 * The keys that sign grants: a JSON Web Key Set (RFC 7517) of secrets (`oct`, HS256) and public keys (`OKP`, Ed25519).
 * Keys of other kinds are ignored (RFC 7517, section 5).
 *
 *     {"keys":[{"kty":"oct","kid":"a","k":"…"},{"kty":"OKP","crv":"Ed25519","kid":"b","x":"…"}]}
 */

/** Most keys in a set. */
const MAX_KEYS = 100;

/** RFC 7518, section 3.2: a key as long as the hash. */
const SECRET_BYTES = 32;

/** @typedef {{kid?: string, algorithms: string[], key: import('node:crypto').KeyObject, fingerprint: string}} Key */

function readSecret({ k, alg = 'HS256' }) {
  const bytes = decodeBase64url(String(k));
  if (alg !== 'HS256') throw new Error('an "oct" key is for the "alg" HS256 alone');
  if (bytes === undefined || bytes.length < SECRET_BYTES) {
    throw new Error(`an "oct" key takes "k": at least ${SECRET_BYTES} random bytes in base64url`);
  }
  return { algorithms: ['HS256'], key: createSecretKey(bytes), bytes };
}

function readPublic({ crv, x, d, alg = 'EdDSA' }) {
  if (d !== undefined) throw new Error('an "OKP" key is public here: leave out "d"');
  if (crv !== 'Ed25519' || !['EdDSA', 'Ed25519'].includes(alg)) {
    throw new Error('an "OKP" key is for the "crv" Ed25519 alone');
  }
  const bytes = decodeBase64url(String(x));
  if (bytes?.length !== 32) throw new Error('an "OKP" key takes "x": 32 bytes in base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv, x }, format: 'jwk' });
  return { algorithms: ['EdDSA', 'Ed25519'], key, bytes };
}

const READERS = { oct: readSecret, OKP: readPublic };

function readKey(jwk) {
  const { kty, kid, use = 'sig' } = jwk;
  if (kid !== undefined && (typeof kid !== 'string' || Buffer.byteLength(kid) > NAME_BYTES)) {
    throw new Error(`a "kid" is a text of at most ${NAME_BYTES} bytes`);
  }
  if (use !== 'sig') throw new Error('the "use" of a key is "sig"');
  const { bytes, ...keyFields } = READERS[kty](jwk);
  const fingerprint = createHash('sha256').update(`${kty} `).update(bytes).digest('hex');
  return { kid, fingerprint, ...keyFields };
}

/**
 * @param {unknown} set a JSON Web Key Set
 * @returns {Key[]} `fingerprint` identifies a key without revealing it
 * @throws {Error} when the set is invalid; the message shows nothing of the keys
 */
export function readKeySet(set) {
  const all = set?.keys;
  if (!Array.isArray(all)) throw new Error('it takes a JSON Web Key Set, {"keys":[…]}');
  const supported = all.filter((jwk) => Object.hasOwn(READERS, jwk?.kty));
  if (supported.length === 0 || all.length > MAX_KEYS) {
    throw new Error(`it takes 1 to ${MAX_KEYS} keys, "oct" (HS256) or "OKP" (Ed25519)`);
  }
  const keys = supported.map(readKey);
  const names = keys.map(({ kid }) => kid).filter((kid) => kid !== undefined);
  if (new Set(names).size < names.length) throw new Error('two keys have the same "kid"');
  return keys;
}

/**
 * @param {string} file
 * @returns {Key[]}
 * @throws {Error} with a message of one line
 */
export function readKeyFile(file) {
  const text = readOptionText('grants', file);
  let set;
  try {
    set = JSON.parse(text);
  } catch {
    // The parser's message would show a part of a secret.
    throw new Error(`--grants ${file}: it is no JSON`);
  }
  try {
    return readKeySet(set);
  } catch (error) {
    throw new Error(`--grants ${file}: ${error.message}`, { cause: error });
  }
}
