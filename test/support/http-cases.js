/**
 * Request heads, each with the strict reader's expected verdict: a table for the unit tests, and seeds for the fuzzers.
 * The real requests were captured from the clients that they are named after.
 */
import { METHODS } from 'node:http';

import { seedsOf } from '../fuzz/random.js';

export const ID = '5f0c1a2b-3c4d-4e5f-8a9b-0c1d2e3f4a5b';
const HOST = 'Host: a.example\r\n';

/**
 * Returns a head of its first line, Host and further header lines.
 *
 * @param {string} line the request line; HTTP/1.1 is added to a line without a version
 * @param {...string} headers
 * @returns {string} one character a byte
 */
export function head(line, ...headers) {
  const start = line.includes(' HTTP/') ? line : `${line} HTTP/1.1`;
  return [start, 'Host: a.example', ...headers, '', ''].join('\r\n');
}

const poll = (query, ...headers) => head(`GET /poll/${ID}${query}`, ...headers);
const throwLeft = (...headers) => head(`POST /throw/${ID}/left`, ...headers);
const join = (...headers) => head('POST /join', ...headers);

/** Real requests, body included: @type {{name: string, bytes: Buffer}[]} */
export const realRequests = seedsOf('http');

/** Hot heads, each with members that the reader's result must have. */
export const hotHeads = {
  'a join': [join(), { route: 'join', method: 'POST', id: null, bodyLength: 0 }],
  'a join that says it has no body': [join('Content-Length: 0'), { bodyLength: 0 }],
  'a poll': [poll(''), { route: 'poll', method: 'GET', id: ID, ack: 0, hold: null }],
  'a poll with an ack': [poll('?ack=17'), { ack: 17, hold: null }],
  'a poll with a hold': [poll('?hold=30'), { ack: 0, hold: 30 }],
  'a feed': [
    head('GET /feed/scores'),
    { route: 'feed', method: 'GET', key: 'scores', after: null }
  ],
  'a feed of many segments': [head('GET /feed/matchesfeed/8/match~c_e.n-t'), { delta: false }],
  'a feed with a cursor': [head('GET /feed/a?after=e7-42'), { key: 'a', after: 'e7-42' }],
  'a feed with all there is': [
    head('GET /feed/a/b?delta=1&hold=30&after=e7-42'),
    { key: 'a/b', after: 'e7-42', hold: 30, delta: true, stream: false, gzip: false }
  ],
  'a feed with an empty cursor': [
    head('GET /feed/a?after=&delta=0'),
    { after: null, delta: false }
  ],
  'the longest key': [head(`GET /feed/${'k'.repeat(200)}`), { key: 'k'.repeat(200) }],
  'the longest cursor': [head(`GET /feed/a?after=${'x'.repeat(40)}`), { after: 'x'.repeat(40) }],
  'a segment of three dots': [head('GET /feed/a/...'), { key: 'a/...' }],
  'an event stream': [head('GET /feed/a', 'Accept: Text/Event-Stream '), { stream: true }],
  'an event stream that comes back': [
    head('GET /feed/a?after=e1-1', 'Last-Event-ID: e1-2', 'Accept: text/event-stream'),
    { stream: true, after: 'e1-2' }
  ],
  'blanks behind a Last-Event-ID': [
    head('GET /feed/a', 'Last-Event-ID: e1-2 \t', 'Accept: text/event-stream'),
    { after: 'e1-2' }
  ],
  'a Last-Event-ID without a stream': [
    head('GET /feed/a?after=e1-1', 'Last-Event-ID: e1-2'),
    { stream: false, after: 'e1-1' }
  ],
  'a feed in gzip': [head('GET /feed/a', 'Accept-Encoding: br, GZIP ,x'), { gzip: true }],
  'a feed not in gzip': [head('GET /feed/a', 'Accept-Encoding: x-gzip, br;q=1'), { gzip: false }],
  'an input': [
    head(`POST /arena/hall-2/${ID}?n=7`, 'Content-Length: 9'),
    { route: 'arena', method: 'POST', arena: 'hall-2', id: ID, n: 7, bodyLength: 9 }
  ],
  'an input without a number': [
    head(`POST /arena/a/${ID}`, 'Content-Length: 2'),
    { arena: 'a', id: ID, n: null }
  ],
  'the longest name of an arena': [
    head(`POST /arena/${'a'.repeat(32)}/${ID}`),
    { arena: 'a'.repeat(32) }
  ],
  'a list of feeds': [
    head('GET /feeds?hold=30&watch=a/b:e7-42,c:&delta=1&turn=5x', 'Accept: text/event-stream'),
    { route: 'feeds', method: 'GET', key: 'a/b:e7-42,c:', hold: 30, delta: true, stream: false }
  ],
  'many feeds': [head('POST /feeds', 'Content-Length: 20'), { route: 'feeds', bodyLength: 20 }],
  'a poll with both': [poll('?ack=17&hold=30'), { ack: 17, hold: 30 }],
  'a poll with both, the other way round': [poll('?hold=30&ack=17'), { ack: 17, hold: 30 }],
  'an ack and a hold of 0': [poll('?ack=0&hold=0'), { ack: 0, hold: 0 }],
  'the greatest ack': [poll('?ack=9007199254740991'), { ack: 2 ** 53 - 1 }],
  'the greatest hold': [poll('?hold=4294967295'), { hold: 2 ** 32 - 1 }],
  'a poll that says it has no body': [poll('', 'Content-Length: 0'), { bodyLength: 0 }],
  'a throw left': [throwLeft('Content-Length: 2'), { route: 'throw', edge: 'left', bodyLength: 2 }],
  'a throw right': [head(`POST /throw/${ID}/right`), { edge: 'right', n: null, bodyLength: 0 }],
  'a throw up': [head(`POST /throw/${ID}/up`), { edge: 'up' }],
  'a throw down with a number': [head(`POST /throw/${ID}/down?n=12`), { edge: 'down', n: 12 }],
  'the greatest number': [head(`POST /throw/${ID}/up?n=9007199254740991`), { n: 2 ** 53 - 1 }],
  'the longest Content-Length': [throwLeft('Content-Length: 999999999'), { bodyLength: 999999999 }],
  'white space before Content-Length': [throwLeft('Content-Length:\t 12'), { bodyLength: 12 }],
  'no white space before a value': [throwLeft('content-length:12'), { bodyLength: 12 }],
  'a name in capitals': [throwLeft('CONTENT-LENGTH: 12'), { bodyLength: 12 }],
  'a place': [head(`GET /place/${ID}`), { route: 'place', method: 'GET', id: ID, path: null }],
  'the counts by an id': [
    head(`GET /status/${ID}`),
    { route: 'status', method: 'GET', id: ID, path: null }
  ],
  'the page': [head('GET /'), { route: 'fixed', method: 'GET', id: null, path: '/' }],
  'the status': [head('GET /status'), { route: 'fixed', path: '/status' }],
  'a file of the page': [
    head('GET /client/client.js'),
    { route: 'fixed', path: '/client/client.js' }
  ],
  'a path that only begins like a poll': [head('GET /pol'), { route: 'fixed', path: '/pol' }],
  'a path that only begins like a place': [
    head('GET /places'),
    { route: 'fixed', path: '/places' }
  ],
  'a path without a fixed answer': [head('GET /join'), { route: 'fixed', path: '/join' }],
  'the longest path': [head(`GET /${'x'.repeat(47)}`), { path: `/${'x'.repeat(47)}` }],
  'a leave': [head(`POST /leave/${ID}`), { route: 'leave', id: ID }],
  'an id in capitals': [head(`POST /leave/${ID.toUpperCase()}`), { id: ID }],
  'an id of zeros': [
    head('POST /leave/00000000-0000-0000-0000-000000000000'),
    { id: '00000000-0000-0000-0000-000000000000' }
  ],
  'Host last': [`POST /join HTTP/1.1\r\nAccept: */*\r\n${HOST}\r\n`, { route: 'join' }],
  'Connection: keep-alive': [join('Connection: keep-alive'), {}],
  'Connection: Keep-Alive': [join('Connection:Keep-Alive'), {}],
  'Content-Encoding: identity': [throwLeft('Content-Encoding: identity'), {}],
  'an empty value': [join('X-Empty:', 'X-Blank: \t '), {}],
  'bytes above ASCII in a value': [join('X-Name: Gr\xfc\xdfe \xff'), {}],
  'tabs in a value': [join('X-Tab: a\tb\t\tc'), {}],
  'colons in a value': [join('X-Colon: a:b: c'), {}],
  'every character of a token in a name': [join("!#$%&'*+-.^_`|~09azAZ: x"), {}],
  'a name that only begins like a known one': [
    join(
      'Transfer-Encodings: chunked',
      'TEa: x',
      'Connections: close',
      'Upgrade-Insecure-Requests: 1',
      'Expected: 100-continue'
    ),
    {}
  ],
  'a name that only ends like a known one': [join('X-Connection: close', 'ATE: x'), {}],
  'X-Forwarded-For': [
    join('X-Forwarded-For: \t10.0.0.1, 10.0.0.2 '),
    { forwardedFor: '10.0.0.1, 10.0.0.2', forwarded: null }
  ],
  Forwarded: [
    join('forwarded: for="[2001:db8::1]"'),
    { forwarded: 'for="[2001:db8::1]"', forwardedFor: null }
  ],
  'an empty X-Forwarded-For': [join('X-Forwarded-For:'), { forwardedFor: null }],
  'as many headers as there may be': [
    join(...Array.from({ length: 63 }, (_, i) => `X-${i}: ${i}`)),
    {}
  ],
  'the longest head': [
    join(`X-Long: ${'x'.repeat(4096 - join('X-Long: ').length)}`),
    { headLength: 4096 }
  ],
  'a body behind it': [`${throwLeft('Content-Length: 2')}{}`, { bodyLength: 2 }],
  'another request behind it': [`${poll('')}${poll('?ack=1')}`, { ack: 0 }]
};

/**
 * Heads that are not hot: tricks of request smuggling, and requests that differ from a hot one. The contract's tests
 * and the fuzzer cover targets and queries.
 */
export const coldHeads = {
  'a list of the keys from one on': head('GET /feeds?from=a'),
  'a list of feeds after a cursor': head('GET /feeds?watch=a:&after=e1-1'),
  'a list of feeds with a body': head('GET /feeds?watch=a:', 'Content-Length: 1'),
  'an arena of a name too long': head(`POST /arena/${'a'.repeat(33)}/${ID}`),
  'an arena of capitals': head(`POST /arena/Hall/${ID}`),
  'a path with an escape': head('GET /page%2ejs'),
  'a path too long': head(`GET /${'x'.repeat(48)}`),
  'an escaped path': head('POST /%6aoin'),
  'an escaped id': head(`POST /leave/%35${ID.slice(1)}`),
  'an id of other letters': head(`POST /leave/${ID.replace('f', 'g')}`),
  'an edge that goes on': head(`POST /throw/${ID}/lefty`),
  'an ampersand at the end': poll('?ack=1&'),
  'an unknown name': poll('?ack=1&x=2'),
  'a repeated hold': poll('?hold=30&ack=1&hold=30'),
  'an ack above the greatest': poll('?ack=9007199254740992'),
  'a page with a body': head('GET /', 'Content-Length: 1'),
  'a page by POST': head('POST /'),
  OPTIONS: head('OPTIONS /join', 'Origin: http://a.example'),
  HEAD: head(`HEAD /poll/${ID}`),
  'a method in lower case': head('post /join'),
  CONNECT: head('CONNECT a.example:80'),
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a TLS handshake': '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03',
  'absolute form': head('POST http://a.example/join'),
  // The rest of the first line.
  'HTTP/1.0': head('POST /join HTTP/1.0'),
  'HTTP/1.2': head('POST /join HTTP/1.2'),
  'HTTP/2.0': head('POST /join HTTP/2.0'),
  'HTTP/1.10': head('POST /join HTTP/1.10'),
  'http/1.1': head('POST /join http/1.1'),
  'no version': 'POST /join\r\n\r\n',
  'two spaces behind the method': head('POST  /join'),
  'two spaces behind the target': head('POST /join  HTTP/1.1'),
  'a tab behind the method': head('POST\t/join'),
  'a space behind the version': head('POST /join HTTP/1.1 '),
  'a space before the method': ` ${join()}`,
  'a line feed before the method': `\n${join()}`,
  'an empty line before the method': `\r\n${join()}`,
  'a bare line feed behind the first line': `POST /join HTTP/1.1\n${HOST}\r\n`,
  'a bare carriage return behind the first line': `POST /join HTTP/1.1\r${HOST}\r\n`,
  // Lines.
  'bare line feeds': join().replaceAll('\r\n', '\n'),
  'a bare line feed behind a header': join('A: b\nC: d'),
  'a bare line feed at the end': join().replace(/\r\n$/, '\n'),
  'a bare carriage return in a value': join('A: b\rC: d'),
  'two carriage returns': join('A: b\r'),
  'a carriage return and another byte at the end': `POST /join HTTP/1.1\r\n${HOST}\rX`,
  'a folded value': join('A: b\r\n c'),
  'a value folded by a tab': join('A: b\r\n\tc'),
  'a folded Content-Length': throwLeft('Content-Length:\r\n 2'),
  'a space before the first header': `POST /join HTTP/1.1\r\n ${HOST}\r\n`,
  'a space before the colon': join('A : b'),
  'a tab before the colon': join('A\t: b'),
  'a space before the colon of Content-Length': throwLeft('Content-Length : 2'),
  'a space before the colon of Transfer-Encoding': throwLeft('Transfer-Encoding : chunked'),
  'a name with a space': join('A B: c'),
  'a name with a NUL': join('A\0: c'),
  'a name with a byte above ASCII': join('\xc4: c'),
  'a name in parentheses': join('(A): c'),
  'a name with a slash': join('A/B: c'),
  'no name': join(': c'),
  'no colon': join('A'),
  'a NUL in a value': join('A: b\0c'),
  'an escape character in a value': join('A: \x1b[0m'),
  'DEL in a value': join('A: \x7f'),
  'a vertical tab before a value': join('A:\vb'),
  'one header too many': join(...Array.from({ length: 64 }, (_, i) => `X-${i}: ${i}`)),
  'a head one byte too long': join(`X-Long: ${'x'.repeat(4097 - join('X-Long: ').length)}`),
  'a head much too long': join(`X-Long: ${'x'.repeat(100000)}`),
  // Host.
  'no Host': 'POST /join HTTP/1.1\r\nAccept: */*\r\n\r\n',
  'nothing but the first line': 'POST /join HTTP/1.1\r\n\r\n',
  'two Hosts': join('Host: b.example'),
  'the same Host twice': join('host: a.example'),
  'an empty Host': 'POST /join HTTP/1.1\r\nHost:\r\n\r\n',
  'a blank Host': 'POST /join HTTP/1.1\r\nHost: \t\r\n\r\n',
  // Bodies.
  'a join with a body': join('Content-Length: 1'),
  'a poll with a body': poll('', 'Content-Length: 1'),
  'a leave with a body': head(`POST /leave/${ID}`, 'Content-Length: 1'),
  'an empty Content-Length': throwLeft('Content-Length:'),
  'a blank Content-Length': throwLeft('Content-Length: \t'),
  'a space behind Content-Length': throwLeft('Content-Length: 2 '),
  'a tab behind Content-Length': throwLeft('Content-Length: 2\t'),
  'Content-Length with a plus': throwLeft('Content-Length: +2'),
  'Content-Length with a minus': throwLeft('Content-Length: -2'),
  'a Content-Length of zeros': throwLeft('Content-Length: 00'),
  'Content-Length with a zero in front': throwLeft('Content-Length: 02'),
  'a hexadecimal Content-Length': throwLeft('Content-Length: 0x2'),
  'a Content-Length of two numbers': throwLeft('Content-Length: 2, 2'),
  'a Content-Length of two words': throwLeft('Content-Length: 2 2'),
  'a Content-Length in quotes': throwLeft('Content-Length: "2"'),
  'a Content-Length with a fraction': throwLeft('Content-Length: 2.0'),
  'a Content-Length with an exponent': throwLeft('Content-Length: 2e1'),
  'a Content-Length with an underscore': throwLeft('Content-Length: 1_0'),
  'a Content-Length in full-width digits': throwLeft('Content-Length: \xef\xbc\x92'),
  'a Content-Length of ten digits': throwLeft('Content-Length: 1000000000'),
  'a Content-Length that overflows': throwLeft('Content-Length: 18446744073709551618'),
  'two different Content-Lengths': throwLeft('Content-Length: 2', 'Content-Length: 3'),
  'the same Content-Length twice': throwLeft('Content-Length: 2', 'content-length: 2'),
  'an empty Content-Length and a good one': throwLeft('Content-Length:', 'Content-Length: 2'),
  'a Content-Length of 0 and another': throwLeft('Content-Length: 0', 'Content-Length: 2'),
  chunks: `${throwLeft('Transfer-Encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`,
  'chunks with an extension': `${throwLeft('Transfer-Encoding: chunked')}2;a="\n"\r\n{}\r\n0\r\n\r\n`,
  'Content-Length, then Transfer-Encoding': throwLeft(
    'Content-Length: 2',
    'Transfer-Encoding: chunked'
  ),
  'Transfer-Encoding, then Content-Length': throwLeft(
    'Transfer-Encoding: chunked',
    'Content-Length: 2'
  ),
  'Transfer-Encoding: identity': throwLeft('Transfer-Encoding: identity'),
  'an empty Transfer-Encoding': throwLeft('Transfer-Encoding:'),
  'TRANSFER-ENCODING: xchunked': throwLeft('TRANSFER-ENCODING: xchunked', 'Content-Length: 2'),
  'Transfer-Encoding in quotes': throwLeft('Transfer-Encoding: "chunked"', 'Content-Length: 2'),
  'Transfer-Encoding in two headers': throwLeft(
    'Transfer-Encoding: identity',
    'Transfer-Encoding: chunked'
  ),
  'a compressed body': throwLeft('Content-Encoding: gzip', 'Content-Length: 2'),
  'a body encoded by nothing in particular': throwLeft('Content-Encoding:'),
  'a body encoded twice': throwLeft('Content-Encoding: identity', 'Content-Encoding: identity'),
  Expect: throwLeft('Expect: 100-continue', 'Content-Length: 2'),
  'Expect of another kind': throwLeft('expect: more'),
  TE: throwLeft('TE: trailers'),
  Trailer: throwLeft('Trailer: X-Sum'),
  // Connections that close after the answer.
  'Connection: close': join('Connection: close'),
  'an empty Connection': join('Connection:'),
  'a Connection of two words': join('Connection: keep-alive, close'),
  'a tab behind Connection: keep-alive': join('Connection: keep-alive\t'),
  'a Connection that names a header': join('Connection: Host'),
  'a Connection cut short': join('Connection: keep-aliv'),
  'a Connection that goes on': join('Connection: keep-alives'),
  'a Connection in quotes': join('Connection: "keep-alive"'),
  'a Connection with a Kelvin sign': join('Connection: \xe2\x84\xaaeep-alive'),
  'two Connections': join('Connection: keep-alive', 'Connection: close'),
  'the same Connection twice': join('Connection: keep-alive', 'Connection: keep-alive'),
  'Keep-Alive': join('Keep-Alive: timeout=5'),
  'Proxy-Connection': join('Proxy-Connection: close'),
  'a change to HTTP/2': join(
    'Connection: Upgrade, HTTP2-Settings',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA'
  ),
  'Upgrade alone': join('Upgrade: websocket'),
  'HTTP2-Settings alone': join('HTTP2-Settings: AAMAAABk'),
  // A proxy's headers.
  'two X-Forwarded-For': join('X-Forwarded-For: 10.0.0.1', 'X-Forwarded-For: 10.0.0.2'),
  'two Forwarded': join('Forwarded: for=10.0.0.1', 'Forwarded: for=10.0.0.2')
};

/** Return whether a pattern matches the first line, or (anyLine) any header line, of the head that begins a text. */
const firstLine = (pattern) => (text) =>
  pattern.test(text.replace(/^[\r\n]+/, '').split('\r\n')[0]);
const linesOf = (text) =>
  text
    .replace(/^[\r\n]+/, '')
    .split('\r\n\r\n')[0]
    .split('\r\n')
    .slice(1);
/** A field in a trailer that Node treats as a field of the head. */
const TRAILER =
  /\r\n0+[^\r\n]*\r\n([^\r\n]+\r\n)*(content-length|transfer-encoding|(proxy-)?connection):/i;
const anyLine = (pattern) => (text) => linesOf(text).some((line) => pattern.test(line));

/**
 * The intended differences between the server's request reader and Node's. `is`: whether a text may be such a case;
 * `text`: an example. `stricter`: the server refuses the text and Node accepts it; `looser`: the reverse.
 */
export const differences = {
  stricter: {
    simple: { is: firstLine(/^\S+ \S+(\n|$)/), text: 'GET /a\r\n\r\n' },
    connect: { is: firstLine(/^CONNECT /), text: 'CONNECT a.example:80 HTTP/1.1\r\n\r\n' },
    before: {
      is: (text) => /^(\r\n)*(\n|\r(?!\n))/.test(text),
      text: '\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n'
    },
    close: {
      is: (text, before) =>
        anyLine(/^connection:.*close[ \t]*\t[ \t]*(,|$)/i)(before) ||
        (firstLine(/ HTTP\/1.0$/)(before) && anyLine(/^connection:.*close/i)(before)),
      text: 'GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n'
    },
    expectation: {
      is: anyLine(/^expect:(?![ \t]*100-continue[ \t]*$)/i),
      text: 'GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: more\r\n\r\n'
    },
    size: {
      is: (text) =>
        anyLine(/^transfer-encoding:/i)(text) && /\r\n[0-9a-f]{6,}[^\r\n]*\r\n/i.test(text),
      text: 'PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffff\r\nabcde\r\n'
    },
    coding: {
      is: (text) => {
        const codings = linesOf(text).filter((line) => /^transfer-encoding:/i.test(line));
        return codings.length > 1 || anyLine(/^transfer-encoding:(?![ \t]*chunked[ \t]*$)/i)(text);
      },
      text: 'PUT / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'
    },
    'coding-of-1.0': {
      is: (text) => firstLine(/ HTTP\/1.0$/)(text) && anyLine(/^transfer-encoding:/i)(text),
      text: 'PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
    },
    upgrade: {
      is: (text, before) => anyLine(/^upgrade:/i)(before) || anyLine(/^upgrade:/i)(text),
      text: 'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\nGET HTTP/1.1\r\nHost: a\r\n\r\n'
    },
    version: {
      is: firstLine(/ HTTP\/(0\.9|2\.0)$/),
      text: 'GET / HTTP/2.0\r\nHost: a.example\r\n\r\n'
    },
    spaces: { is: firstLine(/ {2}/), text: 'GET  / HTTP/1.1\r\nHost: a.example\r\n\r\n' },
    host: {
      is: anyLine(/^host:[ \t]*([^ \t]*[^A-Za-z0-9._~!$&'()*+;=:%[\] \t-]|[^ \t]+[ \t]+[^ \t])/i),
      text: 'GET / HTTP/1.1\r\nHost: a@b\r\n\r\n'
    },
    hosts: {
      is: (text) => linesOf(text).filter((line) => /^host:/i.test(line)).length > 1,
      text: 'GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n'
    }
  },
  looser: {
    method: {
      is: firstLine(new RegExp(`^(?!(${METHODS.join('|')}) )[!#$%&'*+.^_\`|~0-9A-Za-z-]+ `)),
      text: 'BREW / HTTP/1.1\r\nHost: a.example\r\n\r\n'
    },
    target: {
      is: firstLine(/^\S+ (?![/*])[\x21-\x7e]+ /),
      text: 'GET join HTTP/1.1\r\nHost: a.example\r\n\r\n'
    },
    tab: {
      // llhttp 9.4 (Node 24) accepts it as well: no difference there. See `holds`.
      holds: parseFloat(process.versions.llhttp) < 9.4,
      is: (text, before) =>
        anyLine(/^(content-length|transfer-encoding):.*\t[ \t]*$/i)(text) ||
        anyLine(/^connection:.*\t[ \t]*$/i)(before),
      text: 'PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\t\r\n\r\n'
    },
    trailer: {
      is: (text, before) => TRAILER.test(text) || TRAILER.test(before),
      text: 'PUT / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 9\r\n\r\n'
    },
    length: {
      is: anyLine(/^content-length:[ \t]*\d{16,}/i),
      text: 'PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 99999999999999999999\r\n\r\n'
    },
    extension: {
      is: (text) => /^transfer-encoding:/im.test(text) && /\r\n[0-9a-f]+[ \t]*;/i.test(text),
      text: 'PUT / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0 ;\r\n\r\n'
    },
    proxy: {
      is: (text, before) => anyLine(/^proxy-connection:.*close/i)(before),
      text: 'GET / HTTP/1.1\r\nHost: a.example\r\nProxy-Connection: close\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n'
    },
    connect: {
      is: firstLine(/^CONNECT /),
      text: 'CONNECT a.example:80 HTTP/1.1\r\nHost: a.example\r\n\r\n'
    }
  }
};
