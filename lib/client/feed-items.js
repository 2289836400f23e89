import { isObject } from './answers.js';
import { DEFAULTS } from './limits.js';

/** Reads answers to POST /feeds and GET /feed/{key}. An answer may be anything: a proxy may have written it. */

const KEY = /^[A-Za-z0-9._~/-]{1,200}$/;
const CURSOR = /^[A-Za-z0-9-]{1,40}$/;
/** The cursor of a client without a value: the server answers as soon as there is a value. */
export const NO_CURSOR = 'none';
const ORDERED_CURSOR = /^(.*)-([1-9][0-9]*)$/;
const PROBLEM = /^[a-z-]{1,40}$/;

/**
 * The part of an answer for one feed: a value, a patch to the value at `from`, a log's items behind `from`, a problem's
 * name, or nothing new.
 *
 * @typedef {object} Item
 * @property {string} feed the key
 * @property {string} [cursor]
 * @property {any} [value]
 * @property {string} [from] cursor
 * @property {any[]} [patch]
 * @property {any[]} [items]
 * @property {boolean} [gap] items before these are gone
 * @property {string} [problem]
 */

/**
 * @param {unknown} key
 * @returns {boolean} whether it is valid: no segment is empty, "." or ".."
 */
export function isKey(key) {
  if (typeof key !== 'string' || !KEY.test(key)) return false;
  return !key.split('/').some((segment) => ['', '.', '..'].includes(segment));
}

/**
 * @param {unknown} cursor
 * @returns {boolean} whether it is valid
 */
export const isCursor = (cursor) => typeof cursor === 'string' && CURSOR.test(cursor);

/**
 * Compares cursors. Clients know only this about them: of two cursors that are equal up to the last hyphen, the one
 * with the larger number behind it is newer. Others have no order.
 *
 * @param {string} cursor
 * @param {string} other
 * @returns {boolean} whether `cursor` is older than `other`
 */
export function isOlder(cursor, other) {
  const one = ORDERED_CURSOR.exec(cursor);
  const two = ORDERED_CURSOR.exec(other);
  if (!one || !two || one[1] !== two[1]) return false;
  return one[2].length === two[2].length ? one[2] < two[2] : one[2].length < two[2].length;
}

function isItem(item) {
  if (!isObject(item) || typeof item.feed !== 'string') return false;
  if (item.problem !== undefined) {
    return typeof item.problem === 'string' && PROBLEM.test(item.problem);
  }
  if (!isCursor(item.cursor)) return false;
  const isList = (list) => list === undefined || (Array.isArray(list) && isCursor(item.from));
  return isList(item.patch) && isList(item.items);
}

/**
 * @param {any} json
 * @returns {Item[]|null} null for an invalid answer
 */
export function readItems(json) {
  if (!isObject(json) || !Array.isArray(json.items)) return null;
  return json.items.length <= DEFAULTS.feedsAtOnce && json.items.every(isItem) ? json.items : null;
}

/** Problems of a feed, not of the request. */
const FEED_PROBLEMS = new Set(['unknown-feed', 'upstream-failed', 'grant-required']);

/**
 * Reads an answer to GET /feed/{key}.
 *
 * @param {string} key
 * @param {number} status
 * @param {any} json
 * @param {string|undefined} problem the name of the answer's problem
 * @returns {Item[]|null} null for an invalid answer
 */
export function readItem(key, status, json, problem) {
  if (FEED_PROBLEMS.has(problem ?? '')) return [{ feed: key, problem }];
  return status === 200 && isItem(json) && json.feed === key ? [json] : null;
}

/**
 * @param {any} json of an answer
 * @returns {string|undefined} the `turn` for the next request, if that asks for the same
 */
export const turnOf = ({ turn }) => (isCursor(turn) ? turn : undefined);
