/**
 * The differential fuzzer of requests for feeds: the body of POST /feeds, and the targets of GET /feed/{key} and
 * GET /feeds. The routes in JavaScript must read the same from every request that the front door accepts.
 *
 *   node test/fuzz/watch.js --seconds 600 --seed 7
 *
 * Each input is a seed, or grown by the grammar, with up to three mutations. If an input has no mutation and the routes
 * accept it, the front door must accept it, too. Otherwise a reader that accepts nothing would pass.
 */
import { isDeepStrictEqual } from 'node:util';

import { readListedWatch, readPostedWatch, readFeedWatch } from '../../lib/feeds/watch-request.js';
import { loadTestAddon } from '../support/addon.js';
import { mutateBytes, Random, seedsOf } from './random.js';
import { main, tryInputs } from './run.js';

const MAX_INPUT = 6000;
const FEEDS_AT_ONCE = 32;

const bytesOf = (text) => Buffer.from(text, 'latin1');

const seeds = seedsOf('watch').map(({ bytes }) => bytes);

const words = [
  ...'{}[]":,\\ \t\n\r0019-+.?&=/%#',
  '"hold":',
  '"delta":true',
  '"delta":false',
  '"feeds":{',
  '"a":""',
  ',"b/c":"e1-2"',
  '"__proto__":""',
  'null',
  '\\u0061',
  '1e1',
  '9007199254740992',
  '4294967295',
  '/..',
  '/.',
  '//',
  '%2e',
  '?after=',
  '&hold=5',
  '&delta=1',
  'watch=a:',
  ',b/c:e1-2',
  '%2c',
  '\0',
  '\xff',
  '\xef\xbb\xbf',
  'k'.repeat(201),
  'c'.repeat(41)
].map(bytesOf);

const KEY = 'abzAZ059._~-';
const CURSOR = 'abzAZ059-';

const textOf = (random, characters, longest) =>
  Array.from({ length: 1 + random.below(longest) }, () => random.pick(characters)).join('');

/** Returns a key, now and then an invalid one. */
function keyOf(random) {
  const segments = Array.from({ length: 1 + random.below(4) }, () =>
    random.oneIn(60) ? random.pick(['', '.', '..', '...']) : textOf(random, KEY, 12)
  );
  return random.oneIn(40) ? textOf(random, KEY, 210) : segments.join('/');
}

const cursorOf = (random) =>
  random.oneIn(4) ? '' : textOf(random, CURSOR, random.oneIn(20) ? 44 : 12);

const holdOf = (random) => random.pick([0, 1, 5, 30, 120, 4294967294]);

/** Returns keys of feeds, each with a cursor. */
function feedsOf(random) {
  const count = random.oneIn(10) ? FEEDS_AT_ONCE : 1 + random.below(4);
  const feeds = new Map();
  while (feeds.size < count) feeds.set(keyOf(random), cursorOf(random));
  return [...feeds];
}

/** Returns a body of POST /feeds, in the form that the front door accepts. */
function growBody(random) {
  const blank = () => (random.oneIn(6) ? random.pick([' ', '\n', '\t', '\r\n  ']) : '');
  const sign = (text) => `${blank()}${text}${blank()}`;
  const object = (members) => `${sign('{')}${members.join(sign(','))}${sign('}')}`;
  const entries = feedsOf(random).map(([key, after]) => `"${key}"${sign(':')}"${after}"`);
  const members = [`"feeds"${sign(':')}${object(entries)}`];
  if (random.oneIn(2)) members.push(`"hold"${sign(':')}${holdOf(random)}`);
  if (random.oneIn(2)) members.unshift(`"delta"${sign(':')}${random.oneIn(2)}`);
  return object(members);
}

/** Returns a query in this form, with the given members and, at random, `hold` and `delta`. */
function growQuery(random, members) {
  if (random.oneIn(2)) members.push(`hold=${holdOf(random)}`);
  if (random.oneIn(2)) members.unshift(`delta=${random.below(2)}`);
  return members.length > 0 ? `?${members.join('&')}` : '';
}

/** Returns a target of GET /feed/{key}, in this form. */
function growTarget(random) {
  const members = random.oneIn(2) ? [`after=${cursorOf(random)}`] : [];
  return `/feed/${keyOf(random)}${growQuery(random, members)}`;
}

/** Returns a target of GET /feeds, in this form. */
const growList = (random) =>
  `/feeds${growQuery(random, [`watch=${feedsOf(random).map((one) => one.join(':'))}`])}`;

/** Returns what the front door reads from a GET; false if it does not accept the request. */
function readGet({ readHead }, target, route) {
  const hot = readHead(
    Buffer.concat([bytesOf('GET '), target, bytesOf(' HTTP/1.1\r\nHost: a\r\n\r\n')])
  );
  return hot && hot.route === route && hot.method === 'GET' ? hot : false;
}

/** Kinds of inputs: how to grow one, and how the front door (`native`) and the routes read it. */
const kinds = {
  body: {
    grow: growBody,
    seeds,
    native: ({ readWatch }, bytes) => readWatch(bytes, false),
    routes(bytes) {
      const { keys, afters, hold = null, delta } = readPostedWatch(bytes);
      return { keys, afters, hold, delta };
    }
  },
  target: {
    grow: growTarget,
    seeds: ['/feed/scores', '/feed/a/b?after=e7-42&hold=30&delta=1'].map(bytesOf),
    native(addon, bytes) {
      const hot = readGet(addon, bytes, 'feed');
      if (!hot) return false;
      return { keys: [hot.key], afters: [hot.after ?? ''], hold: hot.hold, delta: hot.delta };
    },
    routes(bytes) {
      const [path, query] = bytes.toString('latin1').split(/\?(.*)/s);
      const key = path.replace(/^\/feed\//, '');
      const {
        keys,
        afters,
        hold = null,
        delta
      } = readFeedWatch(key, new URLSearchParams(query), {});
      return { keys, afters, hold, delta };
    }
  },
  list: {
    grow: growList,
    seeds: ['/feeds?watch=scores:e7-42,a/b:&hold=30', '/feeds?delta=1&watch=a:'].map(bytesOf),
    native(addon, bytes) {
      const hot = readGet(addon, bytes, 'feeds');
      const reading = hot && addon.readWatch(bytesOf(hot.key), true);
      return reading && { ...reading, hold: hot.hold, delta: hot.delta };
    },
    routes(bytes) {
      const query = new URLSearchParams(bytes.toString('latin1').split(/\?(.*)/s)[1]);
      const { keys, afters, hold = null, delta } = readListedWatch(query, {});
      return { keys, afters, hold, delta };
    }
  }
};

/** Sorts the feeds by key: JavaScript puts the members of an object whose names are integers first. */
function sorted({ keys, afters, ...rest }) {
  const pairs = keys.map((key, i) => [key, afters[i]]);
  return { pairs: pairs.sort(([a], [b]) => (a < b ? -1 : 1)), ...rest };
}

/** Returns why the front door is wrong about an input, or null; `plain`: the input has no mutation. */
function findFault(native, routes, plain) {
  if (native === false) return plain && routes !== null ? 'a plain request not taken' : null;
  if (routes === null) return 'a request that the routes refuse';
  return isDeepStrictEqual(sorted(native), sorted(routes)) ? null : 'another request';
}

/** Planted bugs that the fuzzer must find. Each turns the right reader into a wrong one. */
export const plants = {
  'a-key-too-long': (reading) =>
    reading && { ...reading, keys: reading.keys.map((key) => key.slice(0, 199)) },
  'cursors-in-another-order': (reading) =>
    reading && { ...reading, afters: reading.afters.toReversed() },
  'no-patches': (reading) => reading && { ...reading, delta: false },
  'hold-of-32-bits': (reading) =>
    reading && { ...reading, hold: reading.hold === null ? 0 : reading.hold },
  'takes-nothing-long': (reading) => (reading && reading.keys.length > 31 ? false : reading),
  'takes-what-is-cut': (reading) =>
    reading || { keys: ['a'], afters: [''], hold: null, delta: false }
};

/**
 * @param {{seed: number, count?: number, seconds?: number, plant?: string}} options
 * @returns {Promise<{runs: number, good: number, failure: null|{what: string, input: string}}>}
 */
export async function fuzz({ seed, count, seconds, plant }) {
  const addon = loadTestAddon();
  const wrong = plant === undefined ? (reading) => reading : plants[plant];
  const random = new Random(seed);
  return tryInputs({ count, seconds }, () => {
    const kind = kinds[random.pick(Object.keys(kinds))];
    let bytes = random.oneIn(3) ? random.pick(kind.seeds) : bytesOf(kind.grow(random));
    const mutations = random.below(4);
    for (let n = mutations; n > 0; n -= 1) {
      bytes = mutateBytes(random, bytes, random.pick(kind.seeds), words).subarray(0, MAX_INPUT);
    }
    const reading = wrong(kind.native(addon, bytes));
    let routes = null;
    try {
      routes = kind.routes(bytes);
    } catch {
      // The routes refuse the input: the front door must not accept it.
    }
    return { bytes, good: Boolean(reading), what: findFault(reading, routes, mutations === 0) };
  });
}

await main(import.meta.url, fuzz, Object.keys(plants));
