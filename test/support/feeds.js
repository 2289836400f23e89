import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';

import { loadAddon } from '../../lib/base/addon.js';
import { createDoor } from '../../lib/http/door.js';
import { readOptions } from '../../lib/operator/options.js';
import { AddressLimits } from '../../lib/torus/address-limits.js';
import { Pool } from '../../lib/torus/pool.js';
import { listening } from './addresses.js';
import { request, Wire } from './http.js';
import { temporary } from './processes.js';
import { until } from './until.js';

/**
 * Helpers of the feeds' tests: publish, watch, and read event streams.
 */

export const TOKEN = 'a-token.of_tests~1';

/** The refusals of a door without routes: none is counted or logged. */
export const UNCOUNTED = { watchDoor() {}, counts: () => ({}) };

/** Returns the feeds of a door whose test has none. */
export const emptyFeeds = () => ({
  native: new (loadAddon().Feeds)({ hold: 1, feeds: 2, memory: 1e6, watchers: 2 }, () => {})
});

/**
 * Opens a front door that serves only feeds.
 *
 * @param {import('tap').Test} t its end closes the door
 * @param {import('../../lib/feeds/feeds.js').Feeds} feeds
 * @returns {Promise<(query?: string, headers?: object) => Promise<Wire>>} a function that asks for the feed `a`
 */
export async function openFeedDoor(t, feeds) {
  const options = readOptions([]);
  const limits = new AddressLimits(options);
  const pool = new Pool(options, limits);
  const routes = { headers: {}, bodyLimits: [], handle: () => ({ status: 404, headers: {} }) };
  const door = createDoor({ pool, feeds, limits, options, routes, refusals: UNCOUNTED });
  const port = await door.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => {
    door.close();
    pool.close();
  });
  return async (query = '', headers = {}) => {
    const wire = await Wire.open(port);
    return wire.send(request('GET', `/feed/a${query}`, { headers }));
  };
}

/** Asks for the feed `a` by openFeedDoor's function, and waits until the feed has a new watcher. */
export async function watchAndWait(ask, feeds, ...queryAndHeaders) {
  const { watching } = feeds.status();
  const wire = await ask(...queryAndHeaders);
  await until(() => feeds.status().watching === watching + 1);
  return wire;
}

/** @returns {string} the path of a file with the token. The end of the test, or of the scene, removes it */
export function tokenFile(t) {
  const path = join(temporary(t), 'tokens');
  writeFileSync(path, `old-token\n${TOKEN}\n`);
  return path;
}

/** @returns {object} the options of a server with a state for its feeds, and with TOKEN to publish */
export function durableFeedOptions(t) {
  return { 'publish-token-file': tokenFile(t), state: join(temporary(t), 'state'), drain: 1 };
}

/** Returns the headers of a publisher. */
export const authorized = (headers = {}) => ({ Authorization: `Bearer ${TOKEN}`, ...headers });

/** Publishes a value: a string is the body itself, anything else becomes JSON. The answer must be 200 or 201. */
export async function put(server, key, value, headers) {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  const answer = await tryPut(server, key, body, headers);
  assert.ok([200, 201].includes(answer.status), `${answer.status} ${answer.bytes}`);
  return answer;
}

export const tryPut = (server, key, body, headers) =>
  server.ask('PUT', `/feed/${key}`, { body, headers: authorized(headers) });

export const patch = (server, key, type, value) =>
  server.ask('PATCH', `/feed/${key}`, {
    body: typeof value === 'string' ? value : JSON.stringify(value),
    headers: authorized({ 'Content-Type': `application/${type}+json` })
  });

/** Appends an item to a log. */
export const append = (server, key, item, headers = authorized()) =>
  server.ask('POST', `/feed/${key}`, { body: JSON.stringify(item), headers });

export const remove = (server, key) =>
  server.ask('DELETE', `/feed/${key}`, { headers: authorized() });

/** Asks for a feed; `query` without the question mark. */
export const get = (server, key, query = '', more = {}) =>
  server.ask('GET', `/feed/${key}${query && `?${query}`}`, more);

/** Asks for a feed with `delta=1`: from then on the server makes patches for it. */
export const askForPatches = (server, key) => get(server, key, 'delta=1');

/**
 * Sends a watch, and waits until its poll is parked.
 *
 * @returns {Promise<{wire: import('./http.js').Wire, answer: Promise<object>}>}
 */
export async function park(server, bytes, options = {}) {
  const wire = await server.wire();
  const { feedPolls } = await server.status();
  wire.send(bytes);
  const answer = server.read(wire, options);
  answer.catch(() => {});
  await server.until((status) => status.feedPolls > feedPolls);
  return { wire, answer };
}

export const parkGet = (server, key, query, more) =>
  park(server, request('GET', `/feed/${key}?${query}`, more));

export const parkMany = (server, wanted) =>
  park(server, request('POST', '/feeds', { body: JSON.stringify(wanted) }));

/** Asks for several feeds with one GET; `feeds` has their cursors by key, `query` is appended. */
export const getMany = (server, feeds, query = '', more = {}) =>
  server.ask('GET', listTarget(feeds, query), more);

export const parkGetMany = (server, feeds, query = '') =>
  park(server, request('GET', listTarget(feeds, query)));

const listTarget = (feeds, query) =>
  `/feeds?watch=${Object.entries(feeds).map((one) => one.join(':'))}${query && `&${query}`}`;

/** Returns a function that decompresses the chunks of a gzip stream one by one. */
function createGunzipper() {
  const gunzip = createGunzip();
  const parts = [];
  gunzip.on('data', (part) => parts.push(part));
  return async (chunk) => {
    await new Promise((resolve, reject) => {
      gunzip.once('error', reject);
      gunzip.write(chunk, resolve);
    });
    gunzip.removeAllListeners('error');
    await turn();
    return Buffer.concat(parts.splice(0));
  };
}

/** An event stream in chunked coding (RFC 9112, section 7.1). */
export class EventStream {
  wire;
  #text = Buffer.alloc(0);
  #read = (chunk) => chunk;
  /** Bytes of the chunks read so far. */
  bytes = 0;
  /** The answer's head, as text. */
  head = '';
  ended = false;

  static async open(server, key, { query = '', headers = {} } = {}) {
    const stream = new EventStream();
    stream.wire = await server.wire();
    stream.wire.send(
      request('GET', `/feed/${key}${query && `?${query}`}`, {
        headers: { Accept: 'text/event-stream', ...headers }
      })
    );
    stream.head = await stream.wire.readHead();
    if (/^content-encoding: gzip\r$/im.test(stream.head)) stream.#read = createGunzipper();
    return stream;
  }

  /** @returns {Promise<{id?: string, data?: object, comment?: boolean, retry?: string} | null>} null
   *     when the stream has ended */
  async next() {
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end >= 0) {
        const lines = this.#text.subarray(0, end).toString().split('\n');
        this.#text = this.#text.subarray(end + 2);
        const event = {};
        for (const line of lines) {
          if (line.startsWith(':')) event.comment = true;
          else if (line.startsWith('id: ')) event.id = line.slice(4);
          else if (line.startsWith('retry: ')) event.retry = line.slice(7);
          else if (line.startsWith('data: ')) event.data = JSON.parse(line.slice(6));
          else assert.fail(`no line of an event: ${line}`);
        }
        return event;
      }
      const chunk = await this.wire.readChunk();
      if (chunk.length === 0) {
        assert.equal(this.#text.length, 0, 'the stream ends between two events');
        this.ended = true;
        return null;
      }
      this.bytes += chunk.length;
      this.#text = Buffer.concat([this.#text, await this.#read(chunk)]);
    }
  }

  /** Returns the next event that is no comment. */
  async news() {
    let event;
    do event = await this.next();
    while (event?.comment);
    return event;
  }
}

/** Starts an upstream. It calls `answer(request, response)` for each fetch; tests may replace `answer`. */
export async function startUpstream(t, answer) {
  const upstream = { fetches: 0, atOnce: 0, maxAtOnce: 0, answer };
  const server = createServer((request, response) => {
    upstream.fetches += 1;
    upstream.atOnce += 1;
    upstream.maxAtOnce = Math.max(upstream.maxAtOnce, upstream.atOnce);
    response.on('close', () => {
      upstream.atOnce -= 1;
    });
    upstream.answer(request, response);
  });
  upstream.url = `http://127.0.0.1:${await listening(t, server)}/api/{key}.json`;
  return upstream;
}

/** The members that Feeds needs of a pool, for a pool without state. */
export const STATELESS_POOL = {
  endTurn() {},
  notes: () => [],
  note: () => true,
  removeNote: () => true
};
