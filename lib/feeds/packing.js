import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';

import { RoomError, ValueError } from '../client/patch.js';
import { canonical, isCanonical } from './canonical.js';

/**
 * Feeds between the servers of a world (lib/world/shared-feeds.js): compressed where that makes them smaller. A value is
 * sent whole; a log in parts of some items, one item a line. These functions run in worker threads.
 */

/** @param {Uint8Array} value @returns {string} its SHA-256 */
export const digestOf = (value) => createHash('sha256').update(value).digest('base64url');

/** Smallest value that is compressed, in bytes. */
const PACK_FROM = 1024;

/** The fastest level: a document of 165 kB takes some 2 ms. */
const LEVEL = 1;

/**
 * @param {Uint8Array} value
 * @returns {{body: Uint8Array, form: 'plain' | 'deflate'}} `body` has its own memory
 */
export function pack(value) {
  if (value.length >= PACK_FROM) {
    const body = deflateRawSync(value, { level: LEVEL });
    if (body.length < value.length) return { body, form: 'deflate' };
  }
  return { body: Uint8Array.from(value), form: 'plain' };
}

/**
 * @param {Uint8Array} body
 * @param {string} form
 * @param {number} maxBytes bytes
 * @returns {Uint8Array}
 * @throws {ValueError} when the body is damaged; RoomError when it unpacks to more than `maxBytes` bytes
 */
export function unpack(body, form, maxBytes) {
  if (form === 'plain') return body;
  try {
    return inflateRawSync(body, { maxOutputLength: maxBytes });
  } catch (error) {
    if (error.code === 'ERR_BUFFER_TOO_LARGE') throw new RoomError('It is larger than it may be.');
    throw new ValueError('It is damaged.', { cause: error });
  }
}

// ---- Logs

/** Largest part, in bytes; a single item may be larger. */
export const PART_BYTES = 16_384;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const packLines = (lines) => pack(encoder.encode(lines.join('\n')));

/**
 * Appends an item to a part.
 *
 * @param {{body?: Uint8Array, form?: string, most: number, item: Uint8Array}} job `body` of the part; absent for the first item
 * @returns {{body: Uint8Array, form: string, begun: boolean, digest: string}} `begun`: the part was full, and the item begins
 *     a new one; `digest` of the item
 */
export function growPart({ body, form, most, item }) {
  const before = body && unpack(body, form, most);
  const begun = before !== undefined && before.length + item.length > PART_BYTES;
  const lines = before && !begun ? [before, item] : [item];
  return { ...packLines(lines.map((line) => decoder.decode(line))), begun, digest: digestOf(item) };
}

/**
 * Unpacks a part and checks it.
 *
 * @param {{body: Uint8Array, form: string, digest: string, most: number}} job `digest` of the newest item
 * @returns {{items: string[], bytes: number} | {problem: 'bad-value'}}
 */
export function readPart({ body, form, digest, most }) {
  try {
    const text = unpack(body, form, most);
    const items = decoder.decode(text).split('\n');
    const areCanonical = items.every((item) => isCanonical(encoder.encode(item)));
    if (areCanonical && digestOf(items.at(-1)) === digest) return { items, bytes: text.length };
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
  }
  return { problem: 'bad-value' };
}

/**
 * Splits a log into parts.
 *
 * @param {{items: Uint8Array | string[]}} job all items of a log, as the text of a JSON array or as texts
 * @returns {{parts: {count: number, digest: string, body: Uint8Array, form: string}[]}}
 */
export function splitLog({ items }) {
  const texts = Array.isArray(items)
    ? items
    : JSON.parse(decoder.decode(items)).map((item) => canonical(item));
  const parts = [];
  let lines = [];
  let bytes = 0;
  const endPart = () =>
    parts.push({ count: lines.length, digest: digestOf(lines.at(-1)), ...packLines(lines) });
  for (const item of texts) {
    const length = Buffer.byteLength(item);
    if (bytes + length > PART_BYTES && lines.length > 0) {
      endPart();
      lines = [];
      bytes = 0;
    }
    lines.push(item);
    bytes += length;
  }
  endPart();
  return { parts };
}
