/**
 * The differential fuzzer of the reader of every request, also of those that are not hot. This reader and Node's own
 * server must read the same requests from the same bytes, up to the request at which one of them stops.
 *
 *   node test/fuzz/requests.js --seconds 600 --seed 7
 *
 * Each input is up to three requests of one connection, of every framing, with a few mutations, and a valid request
 * behind them. For each request both read the same method, target, fields, body and length; or both wait for more; or
 * both refuse it. Every intended difference has a rule, with a case (`differences` in test/support/http-cases.js). No
 * rule allows two readings of one request.
 */
import { loadTestAddon } from '../support/addon.js';
import { differences } from '../support/http-cases.js';
import { NodeReader } from '../support/node-reader.js';
import { mutateHead, plantsOf, repairs, seeds, words } from './http.js';
import { mutateBytes, Random } from './random.js';
import { main, tryInputs } from './run.js';

const MAX_INPUT = 12000;
const SENTINEL = Buffer.from('GET /sentinel HTTP/1.1\r\nHost: sentinel\r\n\r\n');

const bytesOf = (text) => Buffer.from(text, 'latin1');

const heads = seeds.filter(({ length }) => length < MAX_INPUT / 4);

const METHODS = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'PRI'],
  ...['LOCK', 'M-SEARCH', 'SOURCE', 'QUERY', 'get', 'BREW', 'GET!']
];
const TARGETS = [
  ...['/', '/join', '/feed/a?x=1&y', '/a%20b', '*', 'http://a.example/join', '/a#b', '//a/b'],
  ...['HTTPS://a.example', 'a.example:80', 'join', '/a"b', '/\\', '/{|}^`<>', '/\x80', '?', '#']
];
const VERSIONS = ['1.1', '1.1', '1.1', '1.1', '1.1', '1.0', '1.0', '0.9', '1.2', '2.0', '11'];
const FIELDS = [
  ...['Accept: */*', 'Connection: close', 'Connection: keep-alive', 'Connection: x, Close ,y'],
  ...['Connection: Keep-Alive, close', 'Connection: upgrade', 'Upgrade: websocket', 'TE: trailers'],
  ...['Expect: 100-continue', 'Expect: 100-Continue', 'Expect: more', 'Trailer: Sum', 'A:'],
  'A: \t',
  ...['X: \xff\x80', 'X: a\tb', 'A : b', ': b', 'A: b\r\n c', 'A: b\rC: d', 'A: b\nC: d', 'A: \0'],
  ...['Host: b', 'Host:', 'Host: a b', 'Host: a@b', 'Proxy-Connection: close', '(A): b', 'A\t: b']
];
const FRAMINGS = [
  ...['Transfer-Encoding: chunked', 'transfer-encoding:CHUNKED', 'Transfer-Encoding: chunked '],
  ...['Transfer-Encoding:\tchunked', 'Transfer-Encoding: gzip, chunked', 'Transfer-Encoding:'],
  ...['Transfer-Encoding: chunked, chunked', 'Transfer-Encoding: identity'],
  ...['Transfer-Encoding: chunked, identity', 'Transfer-Encoding: xchunked'],
  ...['Transfer-Encoding: "chunked"', 'Transfer-Encoding : chunked', 'Transfer-Encoding\t:chunked'],
  ...['Transfer-Encoding: \vchunked', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'],
  ...['Transfer_Encoding: chunked', 'X: y\nTransfer-Encoding: chunked'],
  'Transfer-Encoding: chunke',
  ...[' Transfer-Encoding: chunked', 'Transfer-Encoding:\r\n chunked', 'Content-Length: 0'],
  ...['Content-Length: 5', 'Content-Length: +5', 'Content-Length: 05', 'Content-Length: 5, 5'],
  ...['Content-Length: 5\r\nContent-Length: 5', 'Content-Length: 5\r\nContent-Length: 6'],
  ...['Content-Length: 5 ', 'Content-Length: 0x5', 'Content-Length:', 'Content-Length: 5 5'],
  ...['Content-Length: 99999999999999999999', 'Content-Length: 18446744073709551621'],
  ...['Content-Length : 5', 'Content-Length: -1', 'Content-Length: 5\t', 'content-length:5']
];
const EXTENSIONS = [
  ...[';', ';a', ';a=b', ';a="b;c"', ' ;a=b'],
  ...['; a=b', ' ', '\t', ';\x80', ';a=\n', '; ']
];
const TRAILERS = ['Sum: 7', 'Content-Length: 9', 'Host: b', 'A : b', 'A: b\r\n c', 'A', 'X: \x7f'];
const SIZES = ['00000000005', '0x5', '+5', ' 5', '5 ', '', 'g', '0000000000005', 'fffffffffffff'];

function makeChunks(random) {
  let text = '';
  for (let n = random.below(4); n > 0; n -= 1) {
    const data = random.oneIn(4) ? 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n' : 'abcde';
    const size = data.length.toString(16);
    text += random.oneIn(12) ? random.pick(SIZES) : random.oneIn(2) ? size : size.toUpperCase();
    if (random.oneIn(6)) text += random.pick(EXTENSIONS);
    const end = random.oneIn(20) ? random.pick(['\n', '\r', '', '\r\n\r\n', 'x\r\n']) : '\r\n';
    text += `\r\n${data}${end}`;
  }
  if (random.oneIn(15)) return text;
  text += random.oneIn(8) ? `000${random.pick(EXTENSIONS)}\r\n` : '0\r\n';
  if (random.oneIn(4)) text += `${random.pick(TRAILERS)}\r\n`;
  return `${text}${random.oneIn(20) ? '\n' : '\r\n'}`;
}

/** Returns a request, mostly a valid one. */
function makeRequest(random) {
  const method = random.oneIn(3) ? random.pick(METHODS) : random.pick(['GET', 'POST', 'PUT']);
  const target = random.oneIn(3) ? random.pick(TARGETS) : '/join';
  const lines = [`${method} ${target} HTTP/${random.pick(VERSIONS)}`];
  if (!random.oneIn(15)) lines.push('Host: a.example');
  for (let n = random.below(3); n > 0; n -= 1) {
    if (random.oneIn(2)) lines.push(random.pick(FIELDS));
  }
  let body = '';
  const kind = random.below(4);
  if (kind === 1) {
    body = random.pick([
      ...['', 'x', 'abcde', '0\r\n\r\n'],
      'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
    ]);
    lines.push(`Content-Length: ${body.length}`);
  } else if (kind === 2) {
    body = makeChunks(random);
    lines.push('Transfer-Encoding: chunked');
  } else if (kind === 3 && random.oneIn(2)) {
    lines.push(random.pick(FRAMINGS));
    body = random.pick(['', '12345', '5\r\nabcde\r\n0\r\n\r\n', '0\r\n\r\n']);
  }
  if (random.oneIn(6)) lines.push(random.pick(FRAMINGS));
  const before = random.oneIn(10) ? random.pick(['\r\n', '\r\n\r\n', '\n', '\r']) : '';
  return bytesOf(`${before}${lines.join('\r\n')}\r\n\r\n${body}`);
}

function makeInput(random) {
  const parts = [];
  for (let n = 1 + random.below(3); n > 0; n -= 1) {
    let bytes = random.oneIn(5) ? random.pick(heads) : makeRequest(random);
    if (random.oneIn(4)) bytes = mutateHead(random, bytes);
    if (random.oneIn(3)) bytes = mutateBytes(random, bytes, makeRequest(random), words);
    parts.push(bytes);
  }
  return Buffer.concat([Buffer.concat(parts).subarray(0, MAX_INPUT), SENTINEL]);
}

/** Returns the requests that our reader reads from a connection's bytes, and how it stops. */
function readAll(read, bytes, random) {
  const requests = [];
  let at = 0;
  for (;;) {
    // All bytes are read, and the connection stays open.
    if (at === bytes.length) return { requests, stop: 'whole', at };
    const reading = read(bytes.subarray(at), random.below(bytes.length));
    if (reading === null) {
      // Empty lines do not begin a request.
      const isEmpty = /^(\r\n)*\r?$/.test(bytes.toString('latin1', at));
      return { requests, stop: isEmpty ? 'whole' : 'waits', at };
    }
    if (typeof reading === 'number') return { requests, stop: 'refuses', at };
    requests.push({ ...reading, at });
    at += reading.end;
    if (!reading.stays) return { requests, stop: 'closes', at };
  }
}

/** Returns the same for Node's server, which gets the bytes in these pieces. */
async function readByNode(node, pieces) {
  const { requests, error, answer } = await node.read(pieces);
  const answers = answer
    .split(/^(?=HTTP\/1\.1 [2-5])/m)
    .filter((text) => /^HTTP.* [2-5]/.test(text));
  // Node refuses some requests by an answer alone, without an event.
  const firstRefused = answers.findIndex((text) => /^HTTP\/1\.1 4/.test(text));
  if (firstRefused !== -1) return { requests: requests.slice(0, firstRefused), stop: 'refuses' };
  const firstIncomplete = requests.findIndex(({ complete }) => !complete);
  const complete = firstIncomplete === -1 ? requests : requests.slice(0, firstIncomplete);
  if (error !== null) {
    return { requests: complete, stop: error === 'HPE_INVALID_EOF_STATE' ? 'waits' : 'refuses' };
  }
  const closes = /^connection: close/im.test(answers.at(-1) ?? '');
  return { requests: complete, stop: closes ? 'closes' : 'whole' };
}

const values = (fields) =>
  fields.map((text, i) => (i % 2 === 0 ? text : text.replace(/^[ \t]+|[ \t]+$/g, '')));

/** Returns how two readings of a request differ, or null. */
function requestDifference(ours, theirs) {
  if (ours.method !== theirs.method) return `method ${ours.method}, ${theirs.method} to Node`;
  if (ours.target !== theirs.url) return `target ${ours.target}, ${theirs.url} to Node`;
  if (ours.body !== theirs.body) return `body ${ours.body}, ${theirs.body} to Node`;
  const [own, other] = [values(ours.fields), values(theirs.rawHeaders)].map(JSON.stringify);
  return own === other ? null : `fields ${own}, ${other} to Node`;
}

/**
 * Finds where our reading of a connection's bytes and Node's differ.
 *
 * @param {NodeReader} node
 * @param {(bytes: Buffer, cut: number) => object | number | null} read like readRequest of the tests' addon
 * @param {Buffer} bytes
 * @param {Random} random chooses where a chunked body is cut in two
 * @returns {Promise<null | {what: string, kind?: 'looser' | 'stricter', text?: string, before?: string}>} null: no
 *     difference. `kind`: how our reader compares where one of the two stops, at `text`, behind the request `before`;
 *     none where they read one request in two ways
 */
export async function differenceOf(node, read, bytes, random) {
  const ours = readAll(read, bytes, random);
  const begins = [...ours.requests.map(({ at }) => at), ours.at];
  const pieces = begins.map((at, i) => bytes.subarray(at, begins[i + 1]));
  // Neither reads behind the last request of a connection.
  if (ours.stop === 'closes') pieces.pop();
  const theirs = await readByNode(
    node,
    pieces.filter(({ length }) => length > 0)
  );
  const bothRead = Math.min(ours.requests.length, theirs.requests.length);
  for (let i = 0; i < bothRead; i += 1) {
    const what = requestDifference(ours.requests[i], theirs.requests[i]);
    if (what !== null) return { what };
  }
  const isSameCount = ours.requests.length === theirs.requests.length;
  if (isSameCount && ours.stop === theirs.stop) return null;
  // One of the two stops at the first request that not both have read.
  const isLooser =
    ours.requests.length > bothRead || (isSameCount && /refuses|closes/.test(theirs.stop));
  const at = begins[bothRead];
  const how = `${ours.stop} after ${ours.requests.length} requests`;
  return {
    what: `${how}, ${theirs.stop} after ${theirs.requests.length} to Node, at byte ${at}`,
    kind: isLooser ? 'looser' : 'stricter',
    text: bytes.subarray(at).toString('latin1'),
    before: bytes.subarray(begins[bothRead - 1] ?? at, at).toString('latin1')
  };
}

/** Returns an unintended difference of the readings, or null. Adds the rule of an intended one to `seen`. */
async function findFault({ random, node, read, bytes, seen }) {
  const difference = await differenceOf(node, read, bytes, random);
  if (difference === null) return null;
  const { what, kind, text, before } = difference;
  const rule = Object.entries(differences[kind] ?? {}).find(([, { is }]) => is(text, before));
  if (rule === undefined) return what;
  seen.add(rule[0]);
  return null;
}

/** Planted bugs that the fuzzer must find. Each turns the right reader into a wrong one. */
export const plants = {
  ...plantsOf(
    {
      ...repairs,
      'content-length': (text) => text.replace(/\r\ncontent-length:.*?(?=\r\n)/i, ''),
      'quoted-coding': (text) => text.replace('"chunked"', 'chunked'),
      'signed-length': (text) => text.replace(/(content-length: )\+/i, '$1')
    },
    'end'
  ),
  'body-one-short': (read) => (bytes, cut) => {
    const reading = read(bytes, cut);
    return reading?.body?.length > 1 ? { ...reading, end: reading.end - 1 } : reading;
  },
  'trailer-is-next': (read) => (bytes, cut) => {
    const reading = read(bytes, cut);
    const last = bytes.indexOf('\r\n0\r\nSum');
    return last > 0 && reading?.end > last ? { ...reading, end: last + 5 } : reading;
  },
  'close-forgotten': (read) => (bytes, cut) => {
    const reading = read(bytes, cut);
    return reading?.stays === false ? { ...reading, stays: true } : reading;
  },
  'waits-for-ever': (read) => (bytes, cut) => {
    const reading = read(bytes, cut);
    return reading === 400 ? null : reading;
  }
};

/**
 * @param {{seed: number, count?: number, seconds?: number, plant?: string}} options
 * @returns {Promise<{runs: number, good: number, rules: number,
 *     failure: null|{what: string, input: string}}>} `good`: number of inputs whose first request was read;
 *     `rules`: number of intended differences that occurred
 */
export async function fuzz({ seed, count, seconds, plant }) {
  const { readRequest } = loadTestAddon();
  const read = plant === undefined ? readRequest : plants[plant](readRequest);
  const node = new NodeReader();
  const random = new Random(seed);
  const seen = new Set();
  try {
    const { failure, ...counts } = await tryInputs({ count, seconds }, async () => {
      const bytes = makeInput(random);
      const reading = readRequest(bytes, 0);
      const good = reading !== null && typeof reading === 'object';
      return { bytes, good, what: await findFault({ random, node, read, bytes, seen }) };
    });
    return { ...counts, rules: seen.size, failure };
  } finally {
    node.close();
  }
}

await main(import.meta.url, fuzz, Object.keys(plants));
