import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';

import { createDoor } from '../../lib/http/door.js';
import { readOptions } from '../../lib/operator/options.js';
import { AddressLimits } from '../../lib/torus/address-limits.js';
import { Pool } from '../../lib/torus/pool.js';
import { listening } from './addresses.js';
import { request, Wire } from './http.js';
import { temporary } from './processes.js';
import { until } from './until.js';

/**
 * What the tests of feeds share: to publish, to watch, and a reader of event streams.
 */

export const TOKEN = 'a-token.of_tests~1';

/**
 * A front door to feeds, and nothing else.
 *
 * @param {import('tap').Test} t it ends with
 * @param {import('../../lib/feeds/feeds.js').Feeds} feeds
 * @returns {Promise<(query?: string, headers?: object) => Promise<Wire>>} asks for the feed `a`
 */
export async function openDoorTo(t, feeds) {
  const options = readOptions([]);
  const limits = new AddressLimits(options);
  const pool = new Pool(options, limits);
  const routes = { headers: {}, mostBody: [], handle: () => ({ status: 404, headers: {} }) };
  const door = createDoor({ pool, feeds, limits, options, routes });
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

/** The same, and waits until it is watched. */
export async function watchBy(ask, feeds, ...what) {
  const { watching } = feeds.status();
  const wire = await ask(...what);
  await until(() => feeds.status().watching === watching + 1);
  return wire;
}

/** @returns {string} the path of a file with the token in it, which goes with the test, or with a scene of faults */
export function tokenFile(t) {
  const path = join(temporary(t), 'tokens');
  writeFileSync(path, `old-token\n${TOKEN}\n`);
  return path;
}

/** @returns {object} the options of a server whose feeds outlive it, with the token to publish */
export function keptFeeds(t) {
  return { 'publish-token-file': tokenFile(t), state: join(temporary(t), 'state'), drain: 1 };
}

/** The headers of a publisher. */
export const authorized = (headers = {}) => ({ Authorization: `Bearer ${TOKEN}`, ...headers });

/** Publishes a value, text or anything JSON has; the answer must be 200 or 201. */
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

/** Asks for a feed as a client that takes patches: from then on the server makes them. */
export const askForPatches = (server, key) => get(server, key, 'delta=1');

/**
 * Watches and waits until that is parked.
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

/** Asks for several feeds by an address; `feeds` has their cursors, `query` goes behind it. */
export const getMany = (server, feeds, query = '', more = {}) =>
  server.ask('GET', listOf(feeds, query), more);

export const parkGetMany = (server, feeds, query = '') =>
  park(server, request('GET', listOf(feeds, query)));

const listOf = (feeds, query) =>
  `/feeds?watch=${Object.entries(feeds).map((one) => one.join(':'))}${query && `&${query}`}`;

/** Reads a gzip stream as it comes. */
function gunzipper() {
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

/** An event stream, read chunk by chunk as RFC 9112 (section 7.1) has it. */
export class EventStream {
  #wire;
  #text = Buffer.alloc(0);
  #read = (chunk) => chunk;
  /** Bytes of its chunks. */
  bytes = 0;
  /** Bytes of the answer's head. */
  head = '';
  ended = false;

  static async open(server, key, { query = '', headers = {} } = {}) {
    const stream = new EventStream();
    stream.#wire = await server.wire();
    stream.#wire.send(
      request('GET', `/feed/${key}${query && `?${query}`}`, {
        headers: { Accept: 'text/event-stream', ...headers }
      })
    );
    stream.head = await stream.#wire.readHead();
    if (/^content-encoding: gzip\r$/im.test(stream.head)) stream.#read = gunzipper();
    return stream;
  }

  get wire() {
    return this.#wire;
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
      const chunk = await this.#wire.readChunk();
      if (chunk.length === 0) {
        assert.equal(this.#text.length, 0, 'the stream ends between two events');
        this.ended = true;
        return null;
      }
      this.bytes += chunk.length;
      this.#text = Buffer.concat([this.#text, await this.#read(chunk)]);
    }
  }

  /** The next event that is no comment. */
  async news() {
    let event;
    do event = await this.next();
    while (event?.comment);
    return event;
  }
}

/** An upstream: `answer(request, response)`, which may be replaced, is called for each fetch. */
export async function startUpstream(t, answer) {
  const upstream = { fetches: 0, atOnce: 0, most: 0, answer };
  const server = createServer((request, response) => {
    upstream.fetches += 1;
    upstream.atOnce += 1;
    upstream.most = Math.max(upstream.most, upstream.atOnce);
    response.on('close', () => {
      upstream.atOnce -= 1;
    });
    upstream.answer(request, response);
  });
  upstream.url = `http://127.0.0.1:${await listening(t, server)}/api/{key}.json`;
  return upstream;
}

/** What Feeds need of a pool that keeps no state. */
export const NO_STATE = { endTurn() {}, notes: () => [], note: () => true, unnote: () => true };
