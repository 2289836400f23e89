import { randomInt } from 'node:crypto';

/**
 * Keys and cursors, as native/base/feed_names.h has them.
 */

/** The largest epoch and 1: drawn at random, so that no two lives of a feed share one. */
const EPOCHS = 2 ** 48 - 1;

/** @returns {number} the epoch of a feed's new life */
export const newEpoch = () => randomInt(1, EPOCHS);

/** The last version there is. A feed comes there only by a number that no server has counted to. */
export const LAST_VERSION = Number.MAX_SAFE_INTEGER;

/**
 * @param {{epoch: number, version: number}} cursor
 * @returns {{epoch: number, version: number}} of the version that follows; at the last one of an epoch of its own, so that
 *     no cursor means two values
 */
export const nextCursor = ({ epoch, version }) =>
  version < LAST_VERSION ? { epoch, version: version + 1 } : { epoch: newEpoch(), version };

/** What the key of a feed begins with that tells of another's watchers. */
export const PRESENCE = 'presence/';

/**
 * @param {string} key
 * @returns {string} of the feed that this one tells of; of one that tells of none the same
 */
export const toldBy = (key) => (key.startsWith(PRESENCE) ? key.slice(PRESENCE.length) : key);

export { isCursor, isKey } from '../client/feed-items.js';

/**
 * @param {string} text
 * @returns {boolean} whether a key may begin with it
 */
export const isPrefix = (text) => /^[A-Za-z0-9._~/-]{0,200}$/.test(text);

/**
 * @param {{epoch: number, version: number}} cursor
 * @returns {string}
 */
export const cursorText = ({ epoch, version }) => `e${epoch.toString(36)}-${version}`;
