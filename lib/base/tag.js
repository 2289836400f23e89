import { createHash } from 'node:crypto';

/**
 * The tag of a server: 24 bits, by which every other server of its world, and a proxy in front, knows whose an id is. It
 * is the first six characters of each id that the server makes (native/base/id.h), and the first three bytes of the
 * SHA-256 of its name, so that tags need not be assigned and a server that comes back has its own again:
 *
 *     printf a | sha256sum | cut -c 1-6
 *
 * Two names of one world may have the same tag, of three servers once in 5.6 million worlds, of 1,024 once in 32. Then the
 * one that comes second does not get in (`same-tag`, membership.js), and its operator calls it otherwise.
 *
 * Rejected: numbers handed out by the store (one more thing to keep, to lose and to agree on), all 90 random bits and a
 * table of whose they are (a message a join).
 */

/** @param {string} [name] of a server in a world; 'none' */
export function tagOf(name = 'none') {
  if (name === 'none') return undefined;
  return createHash('sha256').update(name).digest().readUIntBE(0, 3);
}

/** @returns {string} a tag as it is in ids */
export const tagText = (tag) => tag.toString(16).padStart(6, '0');

/** @returns {number | undefined} the tag of an id as text, in a world; undefined for what is no id */
export function tagOfId(id) {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-8/i.test(id) ? Number.parseInt(id.slice(0, 6), 16) : undefined;
}
