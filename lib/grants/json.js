import { isObject } from '../client/answers.js';

/** Strict reading of what a token is made of: what could be read in two ways is nothing. */

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
export function readPart(part) {
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
