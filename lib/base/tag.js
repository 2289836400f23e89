import { createHash } from 'node:crypto';

/**
 * The tag of a server: 24 bits that tell the other servers of its world, and a proxy in front, to which server an id
 * belongs. The tag is the first six characters of each id that the server makes (native/base/id.h). It is the first three
 * bytes of the SHA-256 of the server's name: tags need no assignment, and a restarted server has the same tag:
 *
 *     printf a | sha256sum | cut -c 1-6
 *
 * Two names of one world may have the same tag: with three servers in one of 5.6 million worlds, with 1,024 in one of 32.
 * The second server is then refused (`same-tag`, membership.js), and its operator chooses another name.
 *
 * Rejected: numbers from the store (more state to keep, to lose and to agree on); 90 random bits and a table of their
 * owners (a message for each join).
 */

/** @param {string} [name] the server's name in a world, or 'none' */
export function tagOf(name = 'none') {
  if (name === 'none') return undefined;
  return createHash('sha256').update(name).digest().readUIntBE(0, 3);
}

/** @returns {string} a tag as text, as in ids */
export const tagText = (tag) => tag.toString(16).padStart(6, '0');

/** @returns {number | undefined} the tag of an id of a world; undefined for anything but an id */
export function tagOfId(id) {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-8/i.test(id) ? Number.parseInt(id.slice(0, 6), 16) : undefined;
}
