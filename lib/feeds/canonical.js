import { loadCanonical } from '../base/addon.js';
import { DEPTH, ValueError } from '../client/patch.js';

/**
 * Canonical JSON (RFC 8785): members sorted by their names' UTF-16 code units, no white space,
 * numbers and strings as JavaScript writes them. Two values are the same when their texts are.
 */

/** Loaded at the first use: `--help` needs no addon. */
let writeCanonical;
const encoder = new TextEncoder();

const NO_JSON = 'no JSON has such a value';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads JSON text in UTF-8.
 *
 * @param {Uint8Array} bytes
 * @returns {unknown} the value
 * @throws {ValueError} when it is not UTF-8, or not JSON
 */
export function parse(bytes) {
  let text;
  try {
    text = utf8.decode(bytes);
  } catch (error) {
    throw new ValueError('Send UTF-8, uncompressed.', { cause: error });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's own words quote the text, which may be a megabyte.
    throw new ValueError('Send one JSON text, and nothing else.', { cause: error });
  }
}

/** Refuses a number that no double holds, and a value that JSON.parse never returns: that is a defect of the server. */
function checkPlain(value) {
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return;
    throw new ValueError('Send numbers that a double can hold, up to 1.8e308.');
  }
  if (typeof value !== 'string' && typeof value !== 'boolean') throw new TypeError(NO_JSON);
}

/**
 * Checks a value and its depth.
 *
 * @returns {boolean} whether the members of every object are in order
 */
function isInOrder(value, depth) {
  if (value === null) return true;
  if (typeof value !== 'object') {
    checkPlain(value);
    return true;
  }
  if (depth === 0) throw new ValueError(`Nest objects and arrays at most ${DEPTH} deep.`);
  let inOrder = true;
  if (Array.isArray(value)) {
    for (const one of value) inOrder = isInOrder(one, depth - 1) && inOrder;
    return inOrder;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) throw new TypeError(NO_JSON);
  let last = '';
  for (const name of Object.keys(value)) {
    inOrder = isInOrder(value[name], depth - 1) && name >= last && inOrder;
    last = name;
  }
  return inOrder;
}

function writeInJavaScript(value) {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) {
    let text = '[';
    for (let i = 0; i < value.length; i += 1) {
      if (i > 0) text += ',';
      text += writeInJavaScript(value[i]);
    }
    return `${text}]`;
  }
  let text = '{';
  for (const name of Object.keys(value).sort()) {
    if (text.length > 1) text += ',';
    text += `${JSON.stringify(name)}:${writeInJavaScript(value[name])}`;
  }
  return `${text}}`;
}

/**
 * Writes a value canonically.
 *
 * @param {unknown} value as JSON.parse returns it
 * @param {number} [depth] most levels
 * @returns {string}
 * @throws {ValueError} when it nests too deep, or has a number that JSON.parse could not hold
 * @throws {TypeError} for a value that JSON.parse never returns: undefined, a function, a Date, a hole
 */
export function canonical(value, depth = DEPTH) {
  const inOrder = isInOrder(value, depth);
  // V8 writes quickly, and the addon sorts the members: half the time of `written`.
  const text = JSON.stringify(value);
  if (inOrder) return text;
  const bytes = nativelyCanonical(encoder.encode(text));
  return bytes === undefined ? writeInJavaScript(value) : utf8.decode(bytes);
}

/**
 * Writes JSON text canonically, in the addon.
 *
 * @param {Uint8Array} bytes
 * @returns {Uint8Array | undefined} undefined for text with something rare in it (native/base/canonical.h), or no JSON
 */
export function nativelyCanonical(bytes) {
  writeCanonical ??= loadCanonical();
  const buffer = Buffer.allocUnsafeSlow(bytes.length);
  const length = writeCanonical(bytes, DEPTH, buffer);
  return length > 0 ? buffer.subarray(0, length) : undefined;
}

/**
 * Writes JSON text canonically.
 *
 * @param {Uint8Array} bytes
 * @returns {Uint8Array}
 * @throws {ValueError} as `parse` and `canonical` do
 */
export function canonicalBytes(bytes) {
  return nativelyCanonical(bytes) ?? encoder.encode(canonical(parse(bytes)));
}

/**
 * @param {Uint8Array} bytes
 * @returns {boolean} whether the bytes are canonical JSON
 */
export function isCanonical(bytes) {
  try {
    return Buffer.compare(canonicalBytes(bytes), bytes) === 0;
  } catch (error) {
    if (error instanceof ValueError) return false;
    throw error;
  }
}
