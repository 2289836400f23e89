import { createHmac, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { temporary } from './processes.js';

/** Helpers of the grants' tests: keys, and hand-made tokens of every kind. */

export const SECRET = randomBytes(32);
const pair = generateKeyPairSync('ed25519');
export const PUBLIC = pair.publicKey.export({ format: 'jwk' });

/** The key set: a named secret, a named public key, and an RSA key, which the server does not support. */
export const KEY_SET = {
  keys: [
    { kty: 'oct', kid: 'secret', k: SECRET.toString('base64url') },
    { kty: 'OKP', kid: 'public', crv: 'Ed25519', x: PUBLIC.x },
    { kty: 'RSA', kid: 'other', n: 'AQAB', e: 'AQAB' }
  ]
};

/** @returns {string} the path of a file with a key set */
export function keyFile(t, set = KEY_SET) {
  const path = join(temporary(t), 'keys.json');
  writeFileSync(path, typeof set === 'string' ? set : JSON.stringify(set));
  return path;
}

export const inSeconds = (seconds) => Math.floor(Date.now() / 1000) + seconds;

/** Encodes a part of a token: a string as it is, anything else as JSON. */
export const base64Json = (value) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

const HEADER = { alg: 'HS256', kid: 'secret' };

/** Returns a token signed by HMAC. Header and claims are strings where JSON.stringify could not write them. */
export function hmac(claims, { header = HEADER, secret = SECRET, hash = 'sha256' } = {}) {
  const signed = `${base64Json(header)}.${base64Json(claims)}`;
  return `${signed}.${createHmac(hash, secret).update(signed).digest('base64url')}`;
}

/** Returns a token signed by the private key. */
export function ed25519(claims, header = { alg: 'EdDSA', kid: 'public' }) {
  const signed = `${base64Json(header)}.${base64Json(claims)}`;
  return `${signed}.${sign(null, Buffer.from(signed), pair.privateKey).toString('base64url')}`;
}

/** Returns a grant to read these feeds for a minute. */
export const reads = (read, more = {}) =>
  hmac({ exp: inSeconds(60), read: [read].flat(), ...more });

export const bearer = (token) => ({ headers: { Authorization: `Bearer ${token}` } });
