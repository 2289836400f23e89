import { isObject } from './answers.js';

/** What an answer to POST /feeds says. It may be anything: a proxy may have written it. */

const KEY = /^[A-Za-z0-9._~/-]{1,200}$/;
const CURSOR = /^[A-Za-z0-9-]{1,40}$/;
/** The cursor of who has no value: the server answers when there is one. */
export const NO_CURSOR = 'none';
const PROBLEM = /^[a-z-]{1,40}$/;

/**
 * What there is of one feed: a value, a patch to the one of `from`, a log's items behind `from`, a problem's name, or
 * nothing new.
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
 * @returns {boolean} whether a feed may have it: no segment empty, none that is "." or ".."
 */
export function isKey(key) {
  if (typeof key !== 'string' || !KEY.test(key)) return false;
  return !key.split('/').some((segment) => ['', '.', '..'].includes(segment));
}

/**
 * @param {unknown} cursor
 * @returns {boolean} whether a server may have said it
 */
export const isCursor = (cursor) => typeof cursor === 'string' && CURSOR.test(cursor);

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
 * @returns {Item[]|null} null for what is no answer
 */
export function readItems(json) {
  if (!isObject(json) || !Array.isArray(json.items)) return null;
  return json.items.every(isItem) ? json.items : null;
}
