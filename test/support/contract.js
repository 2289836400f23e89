import assert from 'node:assert/strict';

/**
 * Checks the part of the wire contract that every answer must keep. Each test checks each of its answers.
 */

/** All problems, by status. A second copy on purpose: the test does not use the server's own list. */
const PROBLEMS = {
  400: [
    ...['bad-request', 'bad-edge', 'bad-ack', 'ack-ahead', 'bad-hold', 'bad-number'],
    ...['stale-number', 'bad-sprite', 'bad-key', 'bad-cursor', 'bad-delta', 'bad-turn'],
    ...['bad-watch', 'bad-value', 'bad-patch', 'bad-from', 'not-a-log', 'bad-input', 'bad-name'],
    ...['bad-content', 'bad-control']
  ],
  401: ['bad-token', 'grant-required', 'bad-grant', 'grant-expired'],
  403: ['not-granted', 'publishing-closed', 'reserved-feed'],
  404: [
    ...['unknown-feed', 'unknown-client', 'unknown-arena', 'unknown-player', 'unknown-game'],
    ...['not-found']
  ],
  405: ['method-not-allowed'],
  408: ['request-timeout'],
  409: ['patch-conflict', 'other-kind'],
  413: [
    ...['item-too-large', 'feed-too-large', 'watch-too-large', 'content-too-large'],
    ...['input-too-large', 'sprite-too-large']
  ],
  415: ['bad-media-type'],
  417: ['expectation-failed'],
  421: ['misdirected'],
  429: [
    ...['too-many-inputs', 'too-many-throws', 'too-many-polls', 'too-many-fetches'],
    ...['too-many-joins', 'too-many-clients', 'too-many-sprites']
  ],
  431: ['head-too-large'],
  502: ['upstream-failed'],
  503: [
    ...['too-many-feeds', 'feed-memory-full', 'too-many-watchers', 'publishing-busy'],
    ...['publishing-slow', 'arena-full', 'too-many-connections', 'too-much-held', 'neighbor-busy'],
    ...['mailboxes-full', 'state-unwritable', 'torus-full', 'restarting', 'draining']
  ]
};

/**
 * Asserts that an answer keeps the contract's general rules.
 *
 * @param {import('./http.js').Answer} answer
 * @param {{cors?: string, head?: boolean, gzip?: boolean}} [expected] `cors`: the allowed origin, by
 *     default *; `none`: no such header; `gzip`: the answer may be compressed
 * @returns {import('./http.js').Answer} `answer`
 */
export function checkAnswer(answer, { cors = '*', head = false, gzip = false } = {}) {
  const { status, headers, body } = answer;
  if (status < 200) return answer;
  // Only a feed's answer at a server with --feed-cache has these headers.
  const isCacheable = headers.etag !== undefined && headers.vary === 'Accept-Encoding, Accept';
  const control = isCacheable ? /^public, s-maxage=[1-9][0-9]*, max-age=0$/ : /^no-store$/;
  assert.match(headers['cache-control'], control, 'Cache-Control');
  if (!gzip && !isCacheable)
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
  assert.ok(PROBLEMS[status]?.includes(name), `${status} is the status of ${body.type}`);
  assert.equal(body.status, status, 'the status in the document');
  assert.ok(body.title?.length > 0, 'title');
  assert.match(body.detail ?? '', /\w+ .*\.$/, 'a detail in words');
  return answer;
}

/** @returns {string | undefined} the name of an answer's problem, for t.equal */
export function problemOf(answer) {
  return answer.body?.type?.replace(/^urn:sprites:/, '');
}
