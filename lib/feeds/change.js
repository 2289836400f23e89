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
 * Computes a feed's new value from a publication, usually in a worker thread. This module changes no feed: the main
 * thread stores the outcome in the table.
 *
 *   bytes ─▶ (apply to the value before) ─▶ canonical text ─▶ compare ─▶ compress
 */

/** Most operations of a JSON Patch. */
const MAX_OPERATIONS = 10000;

/** Smallest value that is compressed, in bytes; native/feeds/feed.h has the same number. */
export const COMPRESS_FROM = 1024;

/**
 * @typedef {object} Job
 * @property {string} key
 * @property {string} cursor of the new version
 * @property {'value' | 'json-patch' | 'merge-patch'} kind
 * @property {Uint8Array} body
 * @property {Uint8Array} [written] canonical text of the body, where the caller has it: of a whole value only
 * @property {Uint8Array} [before] the current value, as canonical text; a whole value without a patch
 *     does not need it
 * @property {boolean} [patched] whether to make a patch from `before`; by default yes, where there is one
 * @property {number} most largest value, in bytes of canonical text
 * @property {boolean} gzip whether to compress the answer as well
 * @property {boolean} [digested] whether to compute the value's digest
 * @property {boolean} [packed] whether to pack the value for other servers
 * @property {'plain' | 'deflate'} [form] of a `body` from another server: see packing.js
 * @property {boolean} [always] whether an unchanged value is a new version, too
 */

/**
 * @typedef {object} Change
 * @property {string} [problem] the name of a problem; then only `detail` is there, too
 * @property {string} [detail] what the caller can do
 * @property {boolean} [unchanged] whether the value is the same as before
 * @property {Uint8Array} [value] canonical text
 * @property {Uint8Array} [patch] operations joined by commas; empty where a patch is not worth having
 * @property {Uint8Array} [gzip] the compressed answer; empty where the job did not ask for it
 * @property {string} [digest] of the value: see packing.js
 * @property {Uint8Array} [body] the packed value
 * @property {string} [form] the form of `body`
 */

const NO_BYTES = new Uint8Array(0);
const encoder = new TextEncoder();

/**
 * Applies a merge patch (RFC 7396).
 *
 * @param {unknown} target a value as JSON.parse returns it; it is not changed
 * @param {unknown} patch such a value, too
 * @param {number} [depth] most levels
 * @returns {unknown} the patched value; it shares unchanged parts with `target`
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

/** Returns the value after a patch. */
function applyPatch({ kind, most }, before, patch) {
  if (kind === 'merge-patch') return merge(before, patch);
  if (!Array.isArray(patch) || patch.length > MAX_OPERATIONS) {
    throw new ValueError(`Send an array of at most ${MAX_OPERATIONS} operations.`);
  }
  return applyOperations(before, patch, { room: most });
}

/** Returns the operations as text, joined by commas; nothing when they are longer than the value itself. */
function operationsText(operations, maxLength) {
  const texts = [];
  let length = 0;
  for (const operation of operations) {
    // An operation adds one level around a value.
    const text = canonical(operation, DEPTH + 1);
    length += text.length;
    if (length > maxLength) return NO_BYTES;
    texts.push(text);
  }
  return encoder.encode(texts.join(','));
}

/** Returns the problem of a publication. */
function problemOf(error, kind) {
  const { message, operation } = error;
  const explanation = operation === undefined ? message : `Operation ${operation}: ${message}.`;
  if (error instanceof ConflictError) {
    const detail = `Get the feed's value and make the patch anew. ${explanation}`;
    return { problem: 'patch-conflict', detail };
  }
  if (error instanceof RoomError) {
    return {
      problem: 'feed-too-large',
      detail: `Copy less, or publish the whole value. ${explanation}`
    };
  }
  return { problem: kind === 'value' ? 'bad-value' : 'bad-patch', detail: explanation };
}

/**
 * Returns the whole answer with a value, as native/feeds/feed.h writes it.
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
    const bodyBytes = job.form === undefined ? job.body : unpack(job.body, job.form, job.most);
    // A whole value is parsed only to make a patch.
    const isWhole = job.kind === 'value';
    const before = isWhole ? undefined : parse(job.before);
    const value = isWhole ? undefined : applyPatch(job, before, parse(bodyBytes));
    const bytes =
      job.written ?? (isWhole ? canonicalBytes(bodyBytes) : encoder.encode(canonical(value)));
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
    const patch = operations ? operationsText(operations, bytes.length) : NO_BYTES;
    const digest = job.digested ? digestOf(bytes) : undefined;
    const gzip =
      job.gzip && bytes.length >= COMPRESS_FROM ? compress(job.key, job.cursor, bytes) : NO_BYTES;
    const packed = job.packed ? pack(bytes) : {};
    return { value: bytes, patch, gzip, digest, ...packed };
  } catch (error) {
    if (error instanceof ValueError) return problemOf(error, job.kind);
    throw error;
  }
}
