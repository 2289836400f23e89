import { loadCanonical } from '../base/addon.js';
import { DEPTH, ValueError } from '../client/patch.js';

/**
 * Canonical JSON (RFC 8785): members sorted by their names' UTF-16 code units, no white space,
 * numbers and strings as JavaScript writes them. Two values are the same when their texts are.
 */

/** Names in the list for V8, for each member there is: a longer list takes longer than it saves. */
const DENSE = 4;

/** Loaded when it is wanted: `--help` needs no addon. */
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

/** Refuses a number that no double holds, and what JSON.parse never gives, which is the server's own fault. */
function checkPlain(value) {
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return;
    throw new ValueError('Send numbers that a double can hold, up to 1.8e308.');
  }
  if (typeof value !== 'string' && typeof value !== 'boolean') throw new TypeError(NO_JSON);
}

/** What canonical writing has to know of a value. */
class Survey {
  /** Whether the members of every object are in order. */
  inOrder = true;
  /** The names there are. */
  names = new Set();
  objects = 0;
  members = 0;

  constructor(value, depth) {
    this.#look(value, depth);
  }

  #look(value, depth) {
    if (value === null) return;
    if (typeof value !== 'object') {
      checkPlain(value);
      return;
    }
    if (depth === 0) throw new ValueError(`Nest objects and arrays at most ${DEPTH} deep.`);
    if (Array.isArray(value)) {
      for (const one of value) this.#look(one, depth - 1);
      return;
    }
    if (Object.getPrototypeOf(value) !== Object.prototype) throw new TypeError(NO_JSON);
    this.objects += 1;
    let last = '';
    for (const name of Object.keys(value)) {
      if (name < last) this.inOrder = false;
      last = name;
      this.members += 1;
      this.names.add(name);
      this.#look(value[name], depth - 1);
    }
  }

  /**
   * Whether V8 may look for every name in every object: most objects have most of them. What each
   * object inherits under that name would be written as its own.
   */
  get isDense() {
    return this.names.size * this.objects <= DENSE * this.members && !this.names.has('__proto__');
  }
}

function written(value) {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) {
    let text = '[';
    for (let i = 0; i < value.length; i += 1) {
      if (i > 0) text += ',';
      text += written(value[i]);
    }
    return `${text}]`;
  }
  let text = '{';
  for (const name of Object.keys(value).sort()) {
    if (text.length > 1) text += ',';
    text += `${JSON.stringify(name)}:${written(value[name])}`;
  }
  return `${text}}`;
}

/**
 * Writes a value canonically.
 *
 * @param {unknown} value as JSON.parse gives it
 * @param {number} [depth] how many levels it may have
 * @returns {string}
 * @throws {ValueError} when it nests too deep, or has a number that JSON.parse could not hold
 * @throws {TypeError} when JSON.parse gives no such thing: undefined, a function, a Date, a hole
 */
export function canonical(value, depth = DEPTH) {
  const survey = new Survey(value, depth);
  // V8 writes several times as quickly: what is in order already, as most programs write it again
  // and again, and what it is given a list of names for, which then is the order.
  if (survey.inOrder) return JSON.stringify(value);
  return survey.isDense ? JSON.stringify(value, [...survey.names].sort()) : written(value);
}

/**
 * Writes what JSON text in UTF-8 says canonically, natively.
 *
 * @param {Uint8Array} bytes
 * @returns {Uint8Array | undefined} undefined where something rare is in it (native/base/canonical.h), or it is no JSON
 */
export function nativelyCanonical(bytes) {
  writeCanonical ??= loadCanonical();
  const out = Buffer.allocUnsafeSlow(bytes.length);
  const length = writeCanonical(bytes, DEPTH, out);
  return length > 0 ? out.subarray(0, length) : undefined;
}

/**
 * Writes what JSON text in UTF-8 says canonically.
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
 * @returns {boolean} whether they are what `canonical` writes of a value
 */
export function isCanonical(bytes) {
  try {
    return Buffer.compare(canonicalBytes(bytes), bytes) === 0;
  } catch (error) {
    if (error instanceof ValueError) return false;
    throw error;
  }
}
