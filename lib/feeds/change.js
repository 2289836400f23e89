import { gzipSync } from 'node:zlib';

import { isObject } from '../client/answers.js';
import {
  applyOperations,
  ConflictError,
  DEPTH,
  RoomError,
  setMember,
  ValueError
} from '../client/patch.js';
import { canonical, canonicalBytes, parse } from './canonical.js';
import { compare } from './compare.js';
import { digestOf, pack, unpack } from './packing.js';

/**
 * What a publication makes of a feed: the part that takes time, done in a worker thread. Nothing is
 * changed here: the main thread gives the outcome to the table.
 *
 *   bytes ─▶ (apply to the value before) ─▶ canonical text ─▶ compare ─▶ compress
 */

/** Operations that a JSON Patch may have. */
const OPERATIONS = 10000;

/** Values of fewer bytes are not worth compressing: as in native/feeds/feed.h. */
export const COMPRESS_FROM = 1024;

/**
 * @typedef {object} Job
 * @property {string} key
 * @property {string} cursor of the version this will be
 * @property {'value' | 'json-patch' | 'merge-patch'} kind
 * @property {Uint8Array} body
 * @property {Uint8Array} [written] what it says as canonical text, where that is known: of a whole value
 * @property {Uint8Array} [before] the value there is, as canonical text; not needed for a whole value
 *     without a patch
 * @property {boolean} [patched] whether a patch from it is asked for: where there is one, by default
 * @property {number} most bytes of canonical text a value may have
 * @property {boolean} gzip whether the answer is to be compressed as well
 * @property {boolean} [digested] whether the value's digest is asked for
 * @property {boolean} [packed] whether the value is asked for as other servers are sent it
 * @property {'plain' | 'deflate'} [form] of `body`, where another server has sent it: see packing.js
 * @property {boolean} [always] a value that is what it was is a version as well
 */

/**
 * @typedef {object} Change
 * @property {string} [problem] the name of a problem; with it only `detail` is there
 * @property {string} [detail] what to do about it
 * @property {boolean} [unchanged] the value is what it was
 * @property {Uint8Array} [value] canonical text
 * @property {Uint8Array} [patch] operations joined by commas; empty: none worth having
 * @property {Uint8Array} [gzip] the answer compressed; empty: not asked for
 * @property {string} [digest] of the value: see packing.js
 * @property {Uint8Array} [body] the value packed
 * @property {string} [form] how that is packed
 */

const NONE = new Uint8Array(0);
const encoder = new TextEncoder();

/**
 * Applies a merge patch (RFC 7396).
 *
 * @param {unknown} target a value as JSON.parse gives it, which stays as it is
 * @param {unknown} patch another one
 * @param {number} [depth] how many levels it may have
 * @returns {unknown} the value with the patch in it; what the patch leaves as it was is shared
 * @throws {ValueError} when the objects of the patch nest deeper than a value may
 */
function merge(target, patch, depth = DEPTH) {
  if (!isObject(patch)) return patch;
  if (depth === 0) throw new ValueError(`Nest objects and arrays at most ${DEPTH} deep.`);
  const result = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) {
      delete result[name];
      continue;
    }
    const before = Object.hasOwn(result, name) ? result[name] : undefined;
    setMember(result, name, merge(before, value, depth - 1));
  }
  return result;
}

/** The new value, as a patch says. */
function patched({ kind, most }, before, given) {
  if (kind === 'merge-patch') return merge(before, given);
  if (!Array.isArray(given) || given.length > OPERATIONS) {
    throw new ValueError(`Send an array of at most ${OPERATIONS} operations.`);
  }
  return applyOperations(before, given, { room: most });
}

/** The operations as text, joined by commas; nothing when they are longer than the value they save. */
function textOf(operations, most) {
  const texts = [];
  let length = 0;
  for (const operation of operations) {
    // An operation is one level around a value.
    const text = canonical(operation, DEPTH + 1);
    length += text.length;
    if (length > most) return NONE;
    texts.push(text);
  }
  return encoder.encode(texts.join(','));
}

/** What is wrong with a publication. */
function problemOf(error, kind) {
  const { message, operation } = error;
  const where = operation === undefined ? message : `Operation ${operation}: ${message}.`;
  if (error instanceof ConflictError) {
    const detail = `Get the feed's value and make the patch anew. ${where}`;
    return { problem: 'patch-conflict', detail };
  }
  if (error instanceof RoomError) {
    return { problem: 'feed-too-large', detail: `Copy less, or publish the whole value. ${where}` };
  }
  return { problem: kind === 'value' ? 'bad-value' : 'bad-patch', detail: where };
}

/**
 * The whole answer with a value, as native/feeds/feed.h writes it.
 *
 * @param {string} key
 * @param {string} cursor
 * @param {string | Uint8Array} value canonical text
 * @returns {Buffer}
 */
export function wholeAnswer(key, cursor, value) {
  const head = `{"feed":"${key}","cursor":"${cursor}","value":`;
  return Buffer.concat([Buffer.from(head), Buffer.from(value), Buffer.from('}')]);
}

/**
 * Compresses an answer.
 *
 * @param {string} key
 * @param {string} cursor
 * @param {string | Uint8Array} value canonical text
 * @returns {Uint8Array}
 */
export const compress = (key, cursor, value) => gzipSync(wholeAnswer(key, cursor, value));

/**
 * @param {Job} job
 * @returns {Change}
 */
export function change(job) {
  try {
    const given = job.form === undefined ? job.body : unpack(job.body, job.form, job.most);
    // A whole value is parsed only where a patch that leads to it is asked for.
    const isWhole = job.kind === 'value';
    const before = isWhole ? undefined : parse(job.before);
    const value = isWhole ? undefined : patched(job, before, parse(given));
    const bytes =
      job.written ?? (isWhole ? canonicalBytes(given) : encoder.encode(canonical(value)));
    if (bytes.length > job.most) {
      return { problem: 'feed-too-large', detail: `Publish at most ${job.most} bytes.` };
    }
    if (!job.always && job.before && Buffer.compare(bytes, job.before) === 0) {
      return { unchanged: true };
    }
    const operations =
      job.patched !== false &&
      job.before &&
      compare(before ?? parse(job.before), value ?? parse(bytes));
    const patch = operations ? textOf(operations, bytes.length) : NONE;
    const digest = job.digested ? digestOf(bytes) : undefined;
    const gzip =
      job.gzip && bytes.length >= COMPRESS_FROM ? compress(job.key, job.cursor, bytes) : NONE;
    const packed = job.packed ? pack(bytes) : {};
    return { value: bytes, patch, gzip, digest, ...packed };
  } catch (error) {
    if (error instanceof ValueError) return problemOf(error, job.kind);
    throw error;
  }
}
