import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';

import { RoomError, ValueError } from '../client/patch.js';

/**
 * Values between the servers of a world (lib/world/feed-store.js): compressed where that makes them smaller. These
 * functions run in worker threads.
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
