import { randomInt } from 'node:crypto';

/**
 * Keys and cursors, as native/base/feed_names.h has them.
 */

/** Bound of epochs, exclusive. An epoch is random, so that a deleted feed and its successor do not share one. */
const EPOCHS = 2 ** 48 - 1;

/** @returns {number} a new epoch for a feed */
export const newEpoch = () => randomInt(1, EPOCHS);

/** The last version. No server counts that far: only a forged number gets a feed there. */
export const LAST_VERSION = Number.MAX_SAFE_INTEGER;

/**
 * @param {{epoch: number, version: number}} cursor
 * @returns {{epoch: number, version: number}} the next version; after the last one it has a new epoch, so that
 *     no cursor means two values
 */
export const nextCursor = ({ epoch, version }) =>
  version < LAST_VERSION ? { epoch, version: version + 1 } : { epoch: newEpoch(), version };

/** Prefix of the keys of presence feeds. */
export const PRESENCE = 'presence/';

/**
 * @param {string} key
 * @returns {string} the key of the feed whose watchers a presence feed counts; any other key unchanged
 */
export const countedKey = (key) => (key.startsWith(PRESENCE) ? key.slice(PRESENCE.length) : key);

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
