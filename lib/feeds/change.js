import { gzipSync } from 'node:zlib';

import jsonpatch from 'fast-json-patch';

import { canonical, DEPTH, parse, ValueError } from './canonical.js';
import { compare } from './compare.js';
import { merge } from './merge.js';
import { digestOf, pack, unpack } from './packing.js';

/**
 * What a publication makes of a feed: the part that takes time, done in a worker thread. Nothing is
 * changed here: the main thread gives the outcome to the table.
 *
 *   bytes ─▶ parse ─▶ (apply to the value before) ─▶ canonical text ─▶ compare ─▶ compress
 */

/** Operations that a JSON Patch may have. */
const OPERATIONS = 10000;

/** Values of fewer bytes are not worth compressing: as in native/pool/feed.h. */
const COMPRESS_FROM = 1024;

/** Errors of fast-json-patch that are not the patch's own: it does not fit the value. */
const CONFLICTS = [
  'TEST_OPERATION_FAILED',
  'OPERATION_PATH_UNRESOLVABLE',
  'OPERATION_FROM_UNRESOLVABLE',
  'OPERATION_VALUE_OUT_OF_BOUNDS',
  'OPERATION_PATH_CANNOT_ADD'
];

/**
 * @typedef {object} Job
 * @property {string} key
 * @property {string} cursor of the version this will be
 * @property {'value' | 'json-patch' | 'merge-patch'} kind
 * @property {Uint8Array} body
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

/** What RFC 6902 has: the library has one more, of its own. */
const KNOWN = ['add', 'remove', 'replace', 'move', 'copy', 'test'];

const NONE = new Uint8Array(0);
const encoder = new TextEncoder();

class PatchError extends Error {
  constructor(problem, detail, cause) {
    super(detail, { cause });
    this.problem = problem;
  }
}

const pathOf = (error) => (error.operation?.path === undefined ? '' : ` ${error.operation.path}`);

/** Whether a pointer leads to a value. */
function leads(document, pointer) {
  try {
    return jsonpatch.getValueByPointer(document, pointer) !== undefined;
  } catch {
    // A member of something that has no members.
    return false;
  }
}

/**
 * Checks an operation as the library does, which would clone the whole document for every `move`
 * and `copy`: ten thousand of them would take a thread minutes.
 */
function check(operation, index, document, existing) {
  const from = ['move', 'copy'].includes(operation?.op);
  jsonpatch.validator(operation, index, from ? undefined : document, existing);
  if (from && document !== undefined && !leads(document, operation.from)) {
    const name = 'OPERATION_FROM_UNRESOLVABLE';
    throw new jsonpatch.JsonPatchError('there is nothing', name, index, operation);
  }
}

/** Applies a JSON Patch to a value, which is used up; what `copy` copies is bounded by `most`. */
function applyPatch(value, patch, most) {
  if (!Array.isArray(patch) || patch.length > OPERATIONS) {
    throw new PatchError('bad-patch', `Send an array of at most ${OPERATIONS} operations.`);
  }
  let document = value;
  let copied = 0;
  for (const [index, operation] of patch.entries()) {
    try {
      if (!KNOWN.includes(operation?.op)) throw new TypeError('no operation');
      // Each copy could double the value.
      if (operation.op === 'copy' && leads(document, operation.from)) {
        copied += canonical(jsonpatch.getValueByPointer(document, operation.from)).length;
      }
      if (copied > most) throw new PatchError('feed-too-large', 'Copy less.');
      document = jsonpatch.applyOperation(
        document,
        operation,
        check,
        true,
        true,
        index
      ).newDocument;
    } catch (error) {
      if (error instanceof PatchError || error instanceof ValueError) throw error;
      // The library takes a document without members for a mistake of its caller's.
      const noMembers = (typeof document !== 'object' || document === null) && operation?.path;
      const problem = CONFLICTS.includes(error.name) || noMembers ? 'patch-conflict' : 'bad-patch';
      const what = `operation ${index}${pathOf(error)}`;
      const detail =
        problem === 'bad-patch'
          ? `Send operations as RFC 6902 has them: ${what} is none.`
          : `Get the feed's value and make the patch anew: ${what} does not fit it.`;
      throw new PatchError(problem, detail, error);
    }
  }
  return document;
}

/** The new value, as the body says. */
function valueOf({ kind, body, form, most }, before) {
  const given = parse(form === undefined ? body : unpack(body, form, most));
  if (kind === 'value') return given;
  // Applying changes the value, which is still needed for the comparison.
  const copy = structuredClone(before);
  return kind === 'merge-patch' ? merge(copy, given) : applyPatch(copy, given, most);
}

/**
 * The whole answer with a value, as native/pool/feed.h writes it.
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
    const before = job.before && parse(job.before);
    const value = valueOf(job, before);
    const text = canonical(value);
    const bytes = encoder.encode(text);
    if (bytes.length > job.most) {
      return { problem: 'feed-too-large', detail: `Publish at most ${job.most} bytes.` };
    }
    if (!job.always && job.before && Buffer.compare(bytes, job.before) === 0) {
      return { unchanged: true };
    }
    const operations = job.patched !== false && job.before && compare(before, value);
    const patch = operations?.length
      ? // An operation is one level around a value.
        encoder.encode(operations.map((one) => canonical(one, DEPTH + 1)).join(','))
      : NONE;
    const digest = job.digested ? digestOf(bytes) : undefined;
    const gzip =
      job.gzip && bytes.length >= COMPRESS_FROM ? compress(job.key, job.cursor, bytes) : NONE;
    const packed = job.packed ? pack(bytes) : {};
    return { value: bytes, patch, gzip, digest, ...packed };
  } catch (error) {
    if (error instanceof ValueError) {
      const problem = job.kind === 'value' ? 'bad-value' : 'bad-patch';
      return { problem, detail: error.message };
    }
    if (error instanceof PatchError) return { problem: error.problem, detail: error.message };
    throw error;
  }
}
