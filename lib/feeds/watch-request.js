import { Refusal } from '../base/refusal.js';
import { isObject } from '../client/answers.js';
import { isCursor, isKey } from './names.js';

/**
 * Reads what a watch request asks for. The native readers accept only some of these requests,
 * and read those alike (native/http/feed_grammar.h, native/http/watch_reader.h).
 */

/** What POST /feeds may have: 32 keys and cursors of full length, and room for white space. */
export const WATCH_BYTES = 16384;

const FEEDS_AT_ONCE = 32;
const DECIMAL = /^[0-9]{1,16}$/;

/** The most items that a request may ask back for. */
const LAST = 1000000;

const COUNT = /^[1-9][0-9]{0,6}$/;

/**
 * Without blanks around it: two characters here, not all that trim() takes for one. One look at each: a search for
 * blanks up to the end would look at those in the middle anew from each of them.
 */
const trimmed = (text) => /[^ \t](?:.*[^ \t])?/s.exec(text)?.[0] ?? '';

/** The weight that a list such as Accept gives to a name; undefined when it is not in it. */
function weightOf(list, name) {
  for (const member of list.split(',')) {
    const [value, ...parameters] = member.split(';').map((part) => trimmed(part).toLowerCase());
    if (value !== name) continue;
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    return weight === undefined ? 1 : Number(weight.slice(2));
  }
  return undefined;
}

const accepts = (list, name) => (weightOf(list ?? '', name) ?? 0) > 0;

/** A member of the query that may be there once. */
function readOnce(query, name, problem) {
  const values = query.getAll(name);
  if (values.length > 1) throw new Refusal(problem);
  return values[0];
}

function readAfter(text) {
  if (text !== '' && !isCursor(text)) throw new Refusal('bad-cursor');
  return text;
}

/** How many items back a log is to be read, 0 for all; undefined: it is not said. */
function readPlace(query) {
  const from = readOnce(query, 'from', 'bad-from');
  const last = readOnce(query, 'last', 'bad-from');
  if (from === undefined && last === undefined) return undefined;
  const isStart = last === undefined && from === 'start';
  const isCount = from === undefined && COUNT.test(last) && Number(last) <= LAST;
  if (!isStart && !isCount) throw new Refusal('bad-from');
  return isStart ? 0 : Number(last);
}

function readHold(hold) {
  if (hold !== undefined && (!Number.isSafeInteger(hold) || hold < 0)) {
    throw new Refusal('bad-hold');
  }
  return hold;
}

/** What a query says besides the feeds. */
function readHow(query) {
  const hold = readOnce(query, 'hold', 'bad-hold');
  if (hold !== undefined && !DECIMAL.test(hold)) throw new Refusal('bad-hold');
  const delta = readOnce(query, 'delta', 'bad-delta') ?? '0';
  if (!['0', '1'].includes(delta)) throw new Refusal('bad-delta');
  const turn = readOnce(query, 'turn', 'bad-turn');
  // It has the form of a cursor. It makes another address of the same request for the caches between, and says no more.
  if (turn !== undefined && !isCursor(turn)) throw new Refusal('bad-turn');
  return { hold: readHold(hold === undefined ? undefined : Number(hold)), delta: delta === '1' };
}

/** Several feeds, each with a cursor. */
function readFeeds(entries) {
  if (entries.length === 0 || entries.length > FEEDS_AT_ONCE) throw new Refusal('bad-watch');
  for (const [key, after] of entries) {
    readKey(key);
    if (typeof after !== 'string') throw new Refusal('bad-cursor');
    readAfter(after);
  }
  return {
    keys: entries.map(([key]) => key),
    afters: entries.map(([, after]) => after),
    many: true
  };
}

/**
 * @param {string} key
 * @returns {string} the same
 * @throws {Refusal} when it is not a key
 */
export function readKey(key) {
  if (!isKey(key)) throw new Refusal('bad-key');
  return key;
}

/**
 * @param {Record<string, string>} headers by their names in lower case
 * @returns {boolean} whether a client can read what is compressed
 */
export const readsGzip = (headers) => accepts(headers['accept-encoding'], 'gzip');

/**
 * Reads GET /feed/{key}.
 *
 * @param {string} key
 * @param {URLSearchParams} query
 * @param {Record<string, string>} headers by their names in lower case
 * @returns {{keys: string[], afters: string[], hold?: number, delta: boolean, gzip: boolean,
 *     stream: boolean, last?: number, noneMatch?: string}} seconds in `hold` are not yet compared with the server's
 *     `--hold`; `last`: so many items back in a log, 0 for all
 * @throws {Refusal}
 */
export function readFeedWatch(key, query, headers) {
  readKey(key);
  const stream = accepts(headers.accept, 'text/event-stream');
  const { 'last-event-id': lastEvent } = headers;
  let after = readAfter(readOnce(query, 'after', 'bad-cursor') ?? '');
  // Last-Event-ID, which an event source sends when it reconnects, is newer than `after` in its URL.
  let last = readPlace(query);
  if (last !== undefined && after !== '') throw new Refusal('bad-from');
  if (stream && lastEvent !== undefined) {
    after = readAfter(lastEvent);
    if (after !== '') last = undefined;
  }
  return {
    keys: [key],
    afters: [after],
    ...readHow(query),
    gzip: readsGzip(headers),
    stream,
    ...(last !== undefined && { last }),
    noneMatch: headers['if-none-match']
  };
}

/**
 * Reads the list of GET /feeds: `watch=scores:e7-41,table:`.
 *
 * @param {URLSearchParams} query
 * @param {Record<string, string>} headers by their names in lower case
 * @returns {{keys: string[], afters: string[], hold?: number, delta: boolean, many: true, noneMatch?: string}}
 * @throws {Refusal}
 */
export function readListedWatch(query, headers) {
  const entries = readOnce(query, 'watch', 'bad-watch')
    .split(',')
    .map((one) => one.split(/:(.*)/s, 2));
  const isTwice = new Set(entries.map(([key]) => key)).size < entries.length;
  if (isTwice || entries.some(([, after]) => after === undefined)) throw new Refusal('bad-watch');
  return { ...readFeeds(entries), ...readHow(query), noneMatch: headers['if-none-match'] };
}

/**
 * Reads the body of POST /feeds.
 *
 * @param {Uint8Array} bytes
 * @returns {{keys: string[], afters: string[], hold?: number, delta: boolean, many: true, posted: true}}
 * @throws {Refusal}
 */
export function readPostedWatch(bytes) {
  let body;
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    // Every error of the syntax gets the same answer: it says what to send.
    throw new Refusal('bad-watch');
  }
  if (!isObject(body) || !isObject(body.feeds)) throw new Refusal('bad-watch');
  const { hold, delta = false, feeds } = body;
  if (typeof delta !== 'boolean') throw new Refusal('bad-delta');
  return { ...readFeeds(Object.entries(feeds)), hold: readHold(hold), delta, posted: true };
}
