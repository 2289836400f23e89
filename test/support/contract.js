import assert from 'node:assert/strict';

/**
 * What holds of every answer of the server, to every request: the part of the wire contract
 * that is checked at each answer of each test.
 */

/** Every problem there is, and its status: written down here a second time on purpose. */
const PROBLEMS = {
  'bad-request': 400,
  'bad-edge': 400,
  'bad-ack': 400,
  'ack-ahead': 400,
  'bad-hold': 400,
  'bad-number': 400,
  'stale-number': 400,
  'bad-sprite': 400,
  'bad-key': 400,
  'bad-cursor': 400,
  'bad-delta': 400,
  'bad-turn': 400,
  'bad-watch': 400,
  'bad-value': 400,
  'bad-patch': 400,
  'bad-token': 401,
  'grant-required': 401,
  'bad-grant': 401,
  'grant-expired': 401,
  'not-granted': 403,
  'publishing-closed': 403,
  'unknown-feed': 404,
  'patch-conflict': 409,
  'other-kind': 409,
  'item-too-large': 413,
  'bad-from': 400,
  'not-a-log': 400,
  'feed-too-large': 413,
  'watch-too-large': 413,
  'bad-media-type': 415,
  'upstream-failed': 502,
  'too-many-feeds': 503,
  'feed-memory-full': 503,
  'too-many-watchers': 503,
  'publishing-busy': 503,
  'publishing-slow': 503,
  'unknown-client': 404,
  'unknown-arena': 404,
  'unknown-player': 404,
  'bad-input': 400,
  'bad-name': 400,
  'bad-content': 400,
  'unknown-game': 404,
  'content-too-large': 413,
  'bad-control': 400,
  'reserved-feed': 403,
  'input-too-large': 413,
  'too-many-inputs': 429,
  'arena-full': 503,
  'not-found': 404,
  'method-not-allowed': 405,
  'request-timeout': 408,
  'sprite-too-large': 413,
  'expectation-failed': 417,
  misdirected: 421,
  'too-many-throws': 429,
  'too-many-polls': 429,
  'too-many-fetches': 429,
  'too-many-joins': 429,
  'too-many-clients': 429,
  'too-many-sprites': 429,
  'head-too-large': 431,
  'too-many-connections': 503,
  'too-much-held': 503,
  'neighbor-busy': 503,
  'mailboxes-full': 503,
  'state-unwritable': 503,
  'torus-full': 503,
  restarting: 503,
  draining: 503
};

/** What is no number, in a query: a number is a plain decimal up to 2^53-1. */
export const NO_NUMBERS = [
  ...['', '-1', '+1', '%2B1', '1.0', '1e3', '0x1', '1,2', '1%201', '%20', '1%00', '%00'],
  ...['one', 'null', 'NaN', '%EF%BC%91', '%D9%A1'], // the last two: digits that are not ASCII
  ...['9007199254740992', '18446744073709551615', '18446744073709551616', '9'.repeat(400)]
];

/**
 * Asserts what the contract says of every answer.
 *
 * @param {import('./http.js').Answer} answer
 * @param {{cors?: string, head?: boolean, gzip?: boolean}} [expected] `cors`: the origin allowed, by
 *     default *; `none` for no such header; `gzip`: it may be compressed
 * @returns {import('./http.js').Answer} the same
 */
export function checkAnswer(answer, { cors = '*', head = false, gzip = false } = {}) {
  const { status, headers, body } = answer;
  if (status < 200) return answer;
  // An answer of a feed, where the server has --feed-cache.
  const isKept = headers.etag !== undefined && headers.vary === 'Accept-Encoding, Accept';
  const control = isKept ? /^public, s-maxage=[1-9][0-9]*, max-age=0$/ : /^no-store$/;
  assert.match(headers['cache-control'], control, 'Cache-Control');
  if (!gzip && !isKept)
    assert.equal(headers['content-encoding'], undefined, 'no answer is compressed');
  assert.equal(headers['access-control-allow-origin'], cors === 'none' ? undefined : cors, 'CORS');
  if (status === 429 || status === 502 || status === 503) {
    assert.match(headers['retry-after'] ?? 'none', /^[1-9][0-9]*$/, 'Retry-After, in seconds');
  }
  if (status < 400) return answer;
  assert.equal(headers['content-type'], 'application/problem+json');
  if (status === 405) assert.match(headers.allow ?? 'none', /^[A-Z]+(, [A-Z]+)*$/, 'Allow');
  if (head) return answer;
  const name = /^urn:sprites:([a-z-]+)$/.exec(body.type)?.[1];
  assert.equal(PROBLEMS[name], status, `the status of ${body.type}`);
  assert.equal(body.status, status, 'the status in the document');
  assert.ok(body.title?.length > 0, 'title');
  assert.match(body.detail ?? '', /\w+ .*\.$/, 'a detail in words');
  return answer;
}

/** @returns {string | undefined} the name of an answer's problem, for t.equal */
export function problemOf(answer) {
  return answer.body?.type?.replace(/^urn:sprites:/, '');
}
