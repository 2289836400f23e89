import { readJson } from '../base/read-json.js';
import { Refusal } from '../base/refusal.js';
import { isObject } from '../client/answers.js';
import { isCursor, isKey } from './names.js';

/**
 * Reads watch requests. The native readers accept only some of these requests, and read them in the same way
 * (native/http/feed_grammar.h, native/http/watch_reader.h).
 */

/** Largest body of POST /feeds, in bytes: 32 keys and cursors of full length, and room for white space. */
export const WATCH_BYTES = 16384;

const FEEDS_AT_ONCE = 32;
const DECIMAL = /^[0-9]{1,16}$/;

/** Largest `last` of a request for a log, in items. */
const MAX_LAST = 1000000;

const COUNT_FORM = /^[1-9][0-9]{0,6}$/;

/**
 * Removes spaces and tabs at both ends; trim() would remove more kinds of blanks. The pattern looks at each character once:
 * a search for blanks at the end would start again at every blank in the middle.
 */
const trimmed = (text) => /[^ \t](?:.*[^ \t])?/s.exec(text)?.[0] ?? '';

/** Returns the weight of a name in a list such as Accept; undefined when the list does not have the name. */
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

/** Returns a parameter of the query. Refuses a repeated one. */
export function readOnce(query, name, problem) {
  const values = query.getAll(name);
  if (values.length > 1) throw new Refusal(problem);
  return values[0];
}

function readCursor(text) {
  if (text !== '' && !isCursor(text)) throw new Refusal('bad-cursor');
  return text;
}

/** Returns how many items to read from the end of a log, 0 for all; undefined where the query does not say. */
function readLogStart(query) {
  const from = readOnce(query, 'from', 'bad-from');
  const last = readOnce(query, 'last', 'bad-from');
  if (from === undefined && last === undefined) return undefined;
  const isStart = last === undefined && from === 'start';
  const isCount = from === undefined && COUNT_FORM.test(last) && Number(last) <= MAX_LAST;
  if (!isStart && !isCount) throw new Refusal('bad-from');
  return isStart ? 0 : Number(last);
}

function readHold(hold) {
  if (hold !== undefined && (!Number.isSafeInteger(hold) || hold < 0)) {
    throw new Refusal('bad-hold');
  }
  return hold;
}

/** Reads the parameters besides the feeds. */
function readOptions(query) {
  const hold = readOnce(query, 'hold', 'bad-hold');
  if (hold !== undefined && !DECIMAL.test(hold)) throw new Refusal('bad-hold');
  const delta = readOnce(query, 'delta', 'bad-delta') ?? '0';
  if (!['0', '1'].includes(delta)) throw new Refusal('bad-delta');
  const turn = readOnce(query, 'turn', 'bad-turn');
  // A turn has the form of a cursor. It only gives the request another URL, for the caches on the way.
  if (turn !== undefined && !isCursor(turn)) throw new Refusal('bad-turn');
  return { hold: readHold(hold === undefined ? undefined : Number(hold)), delta: delta === '1' };
}

/** Reads several feeds, each with a cursor. */
function readFeeds(entries) {
  if (entries.length === 0 || entries.length > FEEDS_AT_ONCE) throw new Refusal('bad-watch');
  for (const [key, after] of entries) {
    readKey(key);
    if (typeof after !== 'string') throw new Refusal('bad-cursor');
    readCursor(after);
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
 * @returns {boolean} whether the client accepts gzip
 */
export const acceptsGzip = (headers) => accepts(headers['accept-encoding'], 'gzip');

/**
 * Reads GET /feed/{key}.
 *
 * @param {string} key
 * @param {URLSearchParams} query
 * @param {Record<string, string>} headers by their names in lower case
 * @returns {{keys: string[], afters: string[], hold?: number, delta: boolean, gzip: boolean,
 *     stream: boolean, last?: number, noneMatch?: string}} `hold` in seconds is not yet compared with
 *     `--hold`; `last` is the number of items from the end of a log, 0 for all
 * @throws {Refusal}
 */
export function readFeedWatch(key, query, headers) {
  readKey(key);
  const stream = accepts(headers.accept, 'text/event-stream');
  const { 'last-event-id': lastEvent } = headers;
  let after = readCursor(readOnce(query, 'after', 'bad-cursor') ?? '');
  // Last-Event-ID, which an event source sends when it reconnects, is newer than `after` in its URL.
  let last = readLogStart(query);
  if (last !== undefined && after !== '') throw new Refusal('bad-from');
  if (stream && lastEvent !== undefined) {
    after = readCursor(lastEvent);
    if (after !== '') last = undefined;
  }
  return {
    keys: [key],
    afters: [after],
    ...readOptions(query),
    gzip: acceptsGzip(headers),
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
  const hasRepeatedKey = new Set(entries.map(([key]) => key)).size < entries.length;
  if (hasRepeatedKey || entries.some(([, after]) => after === undefined))
    throw new Refusal('bad-watch');
  return { ...readFeeds(entries), ...readOptions(query), noneMatch: headers['if-none-match'] };
}

/**
 * Reads the body of POST /feeds.
 *
 * @param {Uint8Array} bytes
 * @returns {{keys: string[], afters: string[], hold?: number, delta: boolean, many: true, posted: true}}
 * @throws {Refusal}
 */
export function readPostedWatch(bytes) {
  const body = readJson(bytes);
  if (!isObject(body) || !isObject(body.feeds)) throw new Refusal('bad-watch');
  const { hold, delta = false, feeds } = body;
  if (typeof delta !== 'boolean') throw new Refusal('bad-delta');
  return { ...readFeeds(Object.entries(feeds)), hold: readHold(hold), delta, posted: true };
}
