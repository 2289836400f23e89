/** Reads the server's answers. An answer may be anything: a proxy may have written it. */

/** The edges of a desktop. @type {readonly import('./client.js').Edge[]} */
export const EDGES = Object.freeze(['left', 'right', 'up', 'down']);

/**
 * A whole answer of the server.
 *
 * @typedef {object} Answer
 * @property {number} status
 * @property {any} [json] undefined where the body is no JSON
 * @property {number} [retryAfter] ms
 * @property {string|null} [location] its `Location`
 */

/**
 * The state for coming back to a place, after a reload for example. Keep it where only this client
 * reads it, since the id is a capability. Plain JSON.
 *
 * @typedef {object} Resume
 * @property {string} id of the place
 * @property {number} ack the last sequence number handed out
 * @property {number} n the last number given to a throw
 * @property {number} [hold] seconds
 * @property {number} [lease] seconds
 * @property {number} [maxSprite] bytes
 * @property {number} [transient] port
 */

/**
 * @param {unknown} value
 * @returns {value is Record<string, any>}
 */
export function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * @param {unknown} value
 * @returns {number|undefined} the value; undefined unless it is a finite number above 0
 */
export function positive(value) {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : undefined;
}

/**
 * @param {Answer} answer
 * @returns {string|undefined} the name in `urn:sprites:NAME`
 */
export function problemOf({ status, json }) {
  if (status < 400 || !isObject(json) || typeof json.type !== 'string') return undefined;
  return /^urn:sprites:([a-z-]{1,40})$/.exec(json.type)?.[1];
}

/**
 * @param {{status?: number, json?: any, failure?: string}} answer
 * @returns {boolean} whether the network or a gateway has cut the request off: no answer, or a gateway's
 */
export function isCutOff({ status = 0, json, failure }) {
  return failure !== undefined || (status >= 500 && problemOf({ status, json }) === undefined);
}

/** Largest stored count: counting goes on from there. */
const MAX_STORED_COUNT = 2 ** 52;

/**
 * @param {unknown} value
 * @returns {value is number} whether it is a count that may have been stored
 */
export function isCount(value) {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= MAX_STORED_COUNT;
}

/**
 * @param {unknown} value
 * @returns {Resume|null} null for an invalid one: a store may return anything
 */
export function readResume(value) {
  if (!isObject(value)) return null;
  const { id, ack, n } = value;
  const isValid = typeof id === 'string' && /^[\w-]{1,64}$/.test(id) && isCount(ack) && isCount(n);
  return isValid ? { ...value, id, ack, n } : null;
}

/**
 * @param {Answer} answer to a poll
 * @returns {Array<{seq: number, from: import('./client.js').Edge, sprite: object}>|null} null for an invalid answer
 */
export function readEntries({ status, json }) {
  if (status !== 200 || !isObject(json) || !Array.isArray(json.sprites)) return null;
  const areValid = json.sprites.every(
    (entry) =>
      isObject(entry) &&
      Number.isSafeInteger(entry.seq) &&
      EDGES.includes(entry.from) &&
      isObject(entry.sprite)
  );
  return areValid ? json.sprites : null;
}

/**
 * @param {Answer} answer
 * @returns {{row: number, column: number, rows: number, columns: number}|null} null for an
 *     invalid answer
 */
export function readPlace({ status, json }) {
  if (status !== 200 || !isObject(json)) return null;
  const { row, column, rows, columns } = json;
  return [row, column, rows, columns].every(Number.isSafeInteger)
    ? { row, column, rows, columns }
    : null;
}
