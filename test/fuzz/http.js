/**
 * The differential fuzzer of the reader of hot requests. If this reader accepts a request, the reader of every request
 * must read the same from it, with the next request at the same byte. requests.js compares the reader of every request
 * with Node's own server. A request that Node refuses must not be hot.
 *
 *   node test/fuzz/http.js --seconds 600 --seed 7
 *
 * Each input is a real request or a known trick, with a few mutations that mix in parts of others. The fuzzer checks
 * the verdict:
 *  - hot: the other reader, given this head and the declared body, reads exactly these bytes, and the same method,
 *    target, numbers and body; and a shorter piece of the head is incomplete;
 *  - incomplete: some ending makes these bytes hot, so that the server never waits for bytes that can't come;
 *  - handed over: no shorter piece is hot. Handing over is always allowed. The fuzzer counts the hot inputs, so that a
 *    reader that accepts nothing does not pass.
 */
import { readFeedWatch } from '../../lib/feeds/watch-request.js';
import { loadTestAddon } from '../support/addon.js';
import { coldHeads, differences, head, hotHeads, ID, realRequests } from '../support/http-cases.js';
import { mutateBytes, Random } from './random.js';
import { main, tryInputs } from './run.js';

/** Bounds of the reader, in bytes and header lines. Near them an incomplete head may have no ending. */
const HEAD_BYTES = 4096;
const HEADERS = 64;
/** Longest input, in bytes. */
const MAX_INPUT = 6000;
/** Longest body that the other reader gets whole, in bytes. */
const MAX_GIVEN_BODY = 20000;

const bytesOf = (text) => Buffer.from(text, 'latin1');

const hotSeeds = [
  ...realRequests.map(({ bytes }) => bytes),
  ...Object.values(hotHeads).map(([text]) => bytesOf(text))
];
const coldSeeds = Object.values(coldHeads)
  .map(bytesOf)
  .filter(({ length }) => length < MAX_INPUT);
export const seeds = [...hotSeeds, ...coldSeeds];

const linesOf = (bytes) => bytes.toString('latin1').split('\r\n');
/** Header lines of all seeds, for use in other inputs. */
const headerLines = [...new Set(seeds.flatMap((bytes) => linesOf(bytes).slice(1)))].filter(
  (line) => line.includes(':') && line.length < 200
);
const harmlessHeaders = [
  ...['Accept: */*', 'X-A: b', 'x-b:\tc ', 'Origin: null', 'Cookie: a=b; c=d'],
  ...['Content-Type: text/plain', 'Content-Length: 0', 'Connection: keep-alive', 'DNT: 1'],
  ...['A:', 'X-Forwarded-For: 10.1.2.3', 'Forwarded: for=10.1.2.3'],
  ...['Content-Encoding: identity', 'Accept: text/event-stream'],
  ...['Accept-Encoding: gzip, deflate, br', 'Accept-Encoding: gzip;q=0'],
  ...['Accept: text/html, text/event-stream;q=0.5', 'Last-Event-ID: e7-41'],
  ...['Last-Event-ID:']
];
const firstLines = [...new Set(seeds.map((bytes) => linesOf(bytes)[0]))];
const queries = [
  ...['', '?', '?ack=1', '?hold=30', '?ack=2&hold=5', '?hold=5&ack=2', '?n=3', '?n='],
  ...['?ack', '?ack=1&ack=2', '?ack=01', '?ack=9007199254740991', '?ack=9007199254740992'],
  ...['?a=1', '?n=1&n=2', '?after=e7-42', '?after=', '?after=e7-42&delta=1&hold=30'],
  ...['?delta=0&after=e7-42', '?delta=2', '?delta=1&delta=1', '?after=a_b'],
  ...[`?after=${'x'.repeat(41)}`, '?watch=a:e1-2,b:', '?watch=a:&hold=5', '?watch=a']
];
export const words = [
  ...['\r\n', '\n', '\r', '\r\n\r\n', '\n\n', '\r\n ', '\r\n\t', ' ', '\t', ':', ': ', ' :'],
  ...[',', ';', '\0', '\x7f', '\x80', '\xff', '?', '&', '=', '#', '%20', '%0d%0a', '/'],
  ...['//', '..', '*', 'GET ', 'POST ', ' HTTP/1.1', ' HTTP/1.0', 'HTTP/1.1\r\n'],
  ...['http://a.example', 'close', 'keep-alive', 'chunked', 'identity', '100-continue', '+'],
  ...['-', '0', '00', '1', '9', '2, 2', '0x2', '1e1', '\xef\xbb\xbf', '\xe2\x84\xaa'],
  ...['\xc5\xbf', '0\r\n\r\n', '2\r\n{}\r\n0\r\n\r\n', ID, 'Transfer-Encoding: chunked\r\n'],
  ...['Content-Length: 2\r\n', 'Host: b\r\n', 'Connection: close\r\n']
].map(bytesOf);

/**
 * Mutations of the parts of a head. About half of them keep the head valid. Each changes `parts` in place, at the
 * header line with the index `at`.
 */
const headMutations = {
  'a harmless header': (random, { headers }, at) =>
    headers.splice(at, 0, random.pick(harmlessHeaders)),
  'one more of those': (random, { headers }, at) =>
    headers.splice(at, 0, random.pick(harmlessHeaders)),
  'any header': (random, { headers }, at) => headers.splice(at, 0, random.pick(headerLines)),
  'a header twice': (random, { headers }, at) => headers.splice(at, 0, random.pick(headers)),
  'a header less': (random, { headers }, at) => headers.splice(at, 1),
  'other cases': (random, { headers }, at) => {
    const change = (c) => (random.oneIn(3) ? c.toUpperCase() : c);
    headers[at] = [...headers[at]].map(change).join('');
  },
  blanks: (random, { headers }, at) => {
    const colon = random.pick([':', ': ', ':\t ', ' :', '::', '']);
    const end = random.pick(['', ' ', '\t', ' \t ', '\r', '\0']);
    headers[at] = headers[at].replace(':', colon) + end;
  },
  'another number': (random, { headers }, at) => {
    const other = (n) =>
      random.pick([
        `0${n}`,
        `${n}0`,
        `+${n}`,
        `${n},${n}`,
        `${n} `,
        '0',
        '7',
        '19999',
        '20001',
        '999999999',
        '9999999999'
      ]);
    headers[at] = headers[at].replace(/\d+/, other);
  },
  'another first line': (random, parts) => {
    parts.first = random.pick(firstLines);
  },
  'another query': (random, parts) => {
    parts.first = parts.first.replace(/(\?\S*)?( HTTP)/, `${random.pick(queries)}$2`);
  },
  'other line ends': (random, parts) => {
    parts.newline = random.pick(['\r\n', '\n', '\r']);
  }
};

export function mutateHead(random, bytes) {
  const [first, ...headers] = linesOf(bytes);
  if (headers.length === 0) return bytes;
  const parts = { first, headers, newline: '\r\n' };
  const at = random.below(Math.max(1, headers.length - 2));
  headMutations[random.pick(Object.keys(headMutations))](random, parts, at);
  return bytesOf([parts.first, ...headers].join(parts.newline));
}

function makeInput(random) {
  let bytes = random.oneIn(4) ? random.pick(coldSeeds) : random.pick(hotSeeds);
  for (let n = random.below(4); n > 0; n -= 1) bytes = mutateHead(random, bytes);
  if (random.oneIn(2)) bytes = mutateBytes(random, bytes, random.pick(seeds), words);
  return bytes.subarray(0, MAX_INPUT);
}

/** Returns a hot head and up to MAX_GIVEN_BODY bytes of its body: the input's own bytes, then smuggled requests. */
function requestOf(bytes, { headLength, bodyLength }) {
  const request = Buffer.alloc(
    headLength + Math.min(bodyLength, MAX_GIVEN_BODY),
    'GET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n0\r\n\r\n'
  );
  bytes.copy(request);
  return request;
}

const FIXED_PATH = /^\/(?!poll\/|place\/|status\/|feed\/)[A-Za-z0-9._/-]{0,47}$/;

/**
 * Returns what the hot reader must read from a target. Parses with the URL class, to share no code with that reader.
 */
function expectedReading({ method, target }) {
  if (method === 'GET' && FIXED_PATH.test(target)) {
    const nothing = { id: null, edge: null, ack: null, hold: null, n: null };
    return { method, route: 'fixed', path: target, ...nothing };
  }
  const { pathname, searchParams, hash } = new URL(target, 'http://a.example');
  const inArena = /^POST \/arena\/[a-z][a-z0-9-]*\/./.test(`${method} ${pathname}`);
  // The name of an arena comes before the id.
  const [, route, arena] = pathname.split('/');
  const [id = null, edge = null, ...rest] = pathname.split('/').slice(inArena ? 3 : 2);
  const number = (name) => (searchParams.has(name) ? Number(searchParams.get(name)) : null);
  const isKnownRoute =
    { join: 2, feeds: 2, poll: 3, throw: 4, leave: 3, place: 3, status: 3, arena: 4 }[route] ===
    pathname.split('/').length;
  return {
    method,
    route: isKnownRoute && rest.length === 0 && hash === '' ? route : null,
    path: null,
    id: id?.toLowerCase() ?? null,
    edge,
    ack: route === 'poll' ? (number('ack') ?? 0) : null,
    hold: number('hold'),
    n: number('n'),
    ...(inArena && { arena }),
    ...(method === 'GET' &&
      route === 'feeds' && {
        key: searchParams.get('watch'),
        delta: searchParams.get('delta') === '1'
      })
  };
}

/** Returns how the routes and the hot reader differ about a feed, or null. */
function feedDifference({ method, target }, headers, hot) {
  const { pathname, searchParams } = new URL(target, 'http://a.example');
  let expected;
  try {
    expected = readFeedWatch(pathname.replace(/^\/feed\//, ''), searchParams, headers);
  } catch (error) {
    return `a feed that is refused: ${error.message}`;
  }
  const seen = {
    route: 'feed',
    method,
    key: expected.keys[0],
    after: expected.afters[0] || null,
    hold: expected.hold ?? null,
    delta: expected.delta,
    gzip: expected.gzip,
    stream: expected.stream
  };
  for (const [key, value] of Object.entries(seen)) {
    if (value !== hot[key]) return `${key} ${hot[key]}, which is ${value} to the routes`;
  }
  return null;
}

/** Rules by which the reader of every request accepts what Node refuses, other than those about chunks. */
const LOOSER_RULES = ['method', 'target', 'tab', 'length', 'proxy', 'connect'];

/** Returns how the reader of every request, or Node, differs from the hot reader, or null. */
function differenceFrom(readAny, bytes, hot) {
  const request = requestOf(bytes, hot);
  const text = request.toString('latin1');
  const loose = LOOSER_RULES.find((name) => differences.looser[name].is(text, text));
  if (loose !== undefined) return `a head that Node refuses: ${loose}`;
  const reading = readAny(request, 0);
  if (hot.bodyLength > MAX_GIVEN_BODY && reading === null) return null;
  if (reading === null || typeof reading === 'number') return `a head that is read as ${reading}`;
  const { fields, end, stays } = reading;
  if (end !== request.length || !stays) return `a request that ends at ${end}, stays: ${stays}`;
  const headers = new Headers();
  for (let i = 0; i < fields.length; i += 2) headers.append(fields[i], fields[i + 1]);
  const all = Object.fromEntries(headers);

  const isFeed = /^GET \/feed\//.test(`${reading.method} ${reading.target}`);
  if (isFeed || hot.route === 'feed') return feedDifference(reading, all, hot);
  const seen = {
    ...expectedReading(reading),
    forwardedFor: all['x-forwarded-for'] || null,
    forwarded: all.forwarded || null,
    bodyLength: reading.body.length
  };
  for (const [key, value] of Object.entries(seen)) {
    if (value !== hot[key]) return `${key} ${hot[key]}, which is ${value} to the other`;
  }
  return null;
}

/** Endings to try on an incomplete head: the rests of hot heads. If any ending makes it hot, one of these does. */
const endings = (() => {
  const all = new Set();
  const models = [
    head(`GET /poll/${ID}?ack=12&hold=30`),
    head(`GET /poll/${ID}?hold=30&ack=12`),
    head('POST /join'),
    head('POST /feeds', 'Content-Length: 0'),
    head('GET /feed/a/b?after=e1-2&hold=30&delta=1'),
    head('GET /feed/a?delta=1&hold=30&after='),
    head('GET /feed/a?hold=30&after=e1-2&delta=0'),
    head('GET /feed/a?after=&delta=1&hold=3'),
    head('GET /feed/a?turn=5x'),
    head('GET /feeds?turn=5x&delta=1&hold=3&watch=a:e1-2'),
    head('GET /feeds?delta=1&turn=5x&hold=3&watch=a:e1-2'),
    head('GET /feeds?hold=3&turn=5x&delta=0&watch=a:e1-2'),
    head('GET /feeds?turn=5x&watch=a:e1-2'),
    head('GET /feed/a?grant=x'),
    head('GET /feeds?grant=x&watch=a:'),
    ...['Accept: text/event-stream', 'Accept-Encoding: gzip', 'Last-Event-ID: e1-2'].map((line) =>
      head('GET /feed/a', line)
    ),
    head(`GET /place/${ID}`),
    head(`GET /status/${ID}`),
    head(`POST /leave/${ID}`),
    head(`POST /arena/hall/${ID}?n=7`, 'Content-Length: 0'),
    ...['left', 'right', 'up', 'down'].map((edge) =>
      head(`POST /throw/${ID}/${edge}?n=7`, 'Content-Length: 0')
    ),
    ...['Content-Encoding: identity', 'Connection: keep-alive', 'X: y'].map((line) =>
      head('POST /join', line)
    )
  ];
  const host = 'Host: a.example\r\n';
  for (const model of models) {
    const hostless = model.replace(host, '');
    for (const variant of [model, hostless, hostless.replace(/\r\n$/, `${host}\r\n`)]) {
      for (let i = 0; i < variant.length; i += 1) all.add(variant.slice(i));
    }
  }
  return [...all].sort((a, b) => a.length - b.length).map(bytesOf);
})();

/** Returns whether some ending makes an incomplete head hot. Near the reader's bounds this is not checked. */
function canEnd(read, bytes) {
  const headers = bytes.toString('latin1').split('\r\n').length - 1;
  if (bytes.length > HEAD_BYTES - 200 || headers >= HEADERS - 1) return true;
  return endings.some((end) => read(Buffer.concat([bytes, end])));
}

/** Returns why the verdict on an input is wrong, or null. */
function findFault({ random, read, readAny, bytes }) {
  const verdict = read(bytes);
  if (verdict === null) return canEnd(read, bytes) ? null : 'a wait for what no bytes can bring';
  const cut = random.below(verdict ? verdict.headLength : bytes.length + 1);
  const earlier = read(bytes.subarray(0, cut));
  if (verdict ? earlier !== null : earlier) return `another verdict on its first ${cut} bytes`;
  return verdict ? differenceFrom(readAny, bytes, verdict) : null;
}

/** Returns a wrong reader: it repairs what it refuses, reads that, and adds the removed bytes to the member `end`. */
const plantRepair = (repair, end) => (read) => (bytes, cut) => {
  const verdict = read(bytes, cut);
  if (verdict !== false && verdict !== 400) return verdict;
  const text = bytes.toString('latin1');
  const repaired = repair(text);
  if (repaired === text) return verdict;
  const reading = read(bytesOf(repaired), cut);
  return reading?.[end]
    ? { ...reading, [end]: reading[end] + text.length - repaired.length }
    : reading;
};

/** Returns a planted bug for each repair; `end` names the member that has the length. */
export const plantsOf = (repairs, end) =>
  Object.fromEntries(
    Object.entries(repairs).map(([name, repair]) => [name, plantRepair(repair, end)])
  );

/** Repairs of invalid requests, which no reader may make. */
export const repairs = {
  'transfer-encoding': (text) => text.replace(/\r\ntransfer-encoding:.*?(?=\r\n)/i, ''),
  'space-before-colon': (text) => text.replace(/(\r\n[\w-]+)[ \t]+:/, '$1:'),
  'bare-line-feed': (text) => text.replace(/([^\r])\n/, '$1\r\n'),
  'folded-value': (text) => text.replace(/\r\n[ \t]+/, ' '),
  'no-host': (text) => {
    const [head] = text.split('\r\n\r\n');
    return /^host:/im.test(head) ? text : text.replace(' HTTP/1.1\r\n', '$&Host: a\r\n');
  }
};

const headRepairs = {
  ...repairs,
  'second-content-length': (text) =>
    text.replace(/(\r\ncontent-length:.*?)\r\ncontent-length:.*?(?=\r\n)/is, '$1'),
  nul: (text) => text.replaceAll('\0', ''),
  'http-1.0': (text) => text.replace(/ HTTP\/1.0\r\n/, ' HTTP/1.1\r\n'),
  'connection-close': (text) => text.replace(/\r\nconnection: close/i, ''),
  expect: (text) => text.replace(/\r\nexpect:.*?(?=\r\n)/i, '')
};

/** Planted bugs that the fuzzer must find. Each turns the right reader into a wrong one. */
export const plants = {
  ...plantsOf(headRepairs, 'headLength'),
  'body-one-short': (read) => (bytes) => {
    const hot = read(bytes);
    return hot && hot.bodyLength > 1 ? { ...hot, bodyLength: hot.bodyLength - 1 } : hot;
  },
  'ack-without-its-last-digit': (read) => (bytes) => {
    const hot = read(bytes);
    return hot && hot.ack > 9 ? { ...hot, ack: Math.floor(hot.ack / 10) } : hot;
  },
  'waits-for-ever': (read) => (bytes) => read(bytes) || null
};

/**
 * @param {{seed: number, count?: number, seconds?: number, plant?: string}} options
 * @returns {Promise<{runs: number, good: number, incomplete: number,
 *     failure: null|{what: string, input: string}}>} `good`: number of hot inputs
 */
export async function fuzz({ seed, count, seconds, plant }) {
  const { readHead, readRequest: readAny } = loadTestAddon();
  const read = plant === undefined ? readHead : plants[plant](readHead);
  const random = new Random(seed);
  let incomplete = 0;
  const { failure, ...counts } = await tryInputs({ count, seconds }, () => {
    const bytes = makeInput(random);
    const verdict = read(bytes);
    if (verdict === null) incomplete += 1;
    return { bytes, good: Boolean(verdict), what: findFault({ random, read, readAny, bytes }) };
  });
  return { ...counts, incomplete, failure };
}

await main(import.meta.url, fuzz, Object.keys(plants));
