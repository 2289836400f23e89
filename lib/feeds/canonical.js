/**
 * Canonical JSON (RFC 8785): members sorted by their names' UTF-16 code units, no white space,
 * numbers and strings as JavaScript writes them. Two values are the same when their texts are.
 */

/** How deep a value may nest: an object or array in nothing is depth 1. */
export const DEPTH = 64;

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

/** Whether the members of every object in it are in order. */
function isInOrder(value, depth) {
  check(value, depth);
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every((one) => isInOrder(one, depth - 1));
  let last = '';
  for (const name of Object.keys(value)) {
    if (name < last || !isInOrder(value[name], depth - 1)) return false;
    last = name;
  }
  return true;
}

function written(value, depth) {
  check(value, depth);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) {
    let text = '[';
    for (let i = 0; i < value.length; i += 1) {
      if (i > 0) text += ',';
      text += written(value[i], depth - 1);
    }
    return `${text}]`;
  }
  let text = '{';
  for (const name of Object.keys(value).sort()) {
    if (text.length > 1) text += ',';
    text += `${JSON.stringify(name)}:${written(value[name], depth - 1)}`;
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
  // What is in order already, as most programs write it again and again, V8 writes several times
  // as quickly.
  return isInOrder(value, depth) ? JSON.stringify(value) : written(value, depth);
}
