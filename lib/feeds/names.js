import { randomInt } from 'node:crypto';

/**
 * Keys and cursors, as native/pool/feed_names.h has them.
 */

/** The largest epoch and 1: drawn at random, so that no two lives of a feed share one. */
const EPOCHS = 2 ** 48 - 1;

/** @returns {number} the epoch of a feed's new life */
export const newEpoch = () => randomInt(1, EPOCHS);

const KEY = /^[A-Za-z0-9._~/-]{1,200}$/;
const CURSOR = /^[A-Za-z0-9-]{1,40}$/;

/**
 * @param {string} key
 * @returns {boolean} whether it is one: no segment empty, none that is "." or ".."
 */
export function isKey(key) {
  return KEY.test(key) && !key.split('/').some((segment) => ['', '.', '..'].includes(segment));
}

/**
 * @param {string} text
 * @returns {boolean} whether it may be a cursor, of whatever server
 */
export const isCursor = (text) => CURSOR.test(text);

/**
 * @param {{epoch: number, version: number}} cursor
 * @returns {string}
 */
export const cursorText = ({ epoch, version }) => `e${epoch.toString(36)}-${version}`;
