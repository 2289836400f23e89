/**
 * Canonical JSON (RFC 8785): members sorted by their names' UTF-16 code units, no white space,
 * numbers and strings as JavaScript writes them. Two values are the same when their texts are.
 */

/** How deep a value may nest: an object or array in nothing is depth 1. */
export const DEPTH = 64;

/** Names in the list for V8, for each member there is: a longer list takes longer than it saves. */
const DENSE = 4;

/** A text that is no value of a feed; `message` says why, for the one who sent it. */
export class ValueError extends Error {}

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
    throw new ValueError('Send UTF-8.', { cause: error });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's own words quote the text, which may be a megabyte.
    throw new ValueError('Send one JSON text, and nothing else.', { cause: error });
  }
}

/** Refuses what no value may have. */
function check(value, depth) {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new ValueError('Send numbers that a double can hold, up to 1.8e308.');
  }
  if (typeof value === 'object' && value !== null && depth === 0) {
    throw new ValueError(`Nest objects and arrays at most ${DEPTH} deep.`);
  }
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
    check(value, depth);
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      for (const one of value) this.#look(one, depth - 1);
      return;
    }
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
 */
export function canonical(value, depth = DEPTH) {
  const survey = new Survey(value, depth);
  // V8 writes several times as quickly: what is in order already, as most programs write it again
  // and again, and what it is given a list of names for, which then is the order.
  if (survey.inOrder) return JSON.stringify(value);
  return survey.isDense ? JSON.stringify(value, [...survey.names].sort()) : written(value);
}
