import { problems } from './problems.js';

/**
 * The outcomes of requests that native code decides. `npm run tables` makes the C++ enum of native/base/outcome.h from this
 * list, in this order: first successes, then problems. Each problem has a row in problems.js.
 */

const SUCCESSES = ['ok', 'delivered', 'queued', 'duplicate'];

const NATIVE_PROBLEMS = [
  // By the torus.
  ...['unknown-client', 'torus-full', 'draining', 'ack-ahead', 'bad-hold', 'bad-sprite'],
  ...['sprite-too-large', 'stale-number', 'too-many-throws', 'neighbor-busy', 'mailboxes-full'],
  ...['too-many-joins', 'too-many-clients', 'too-many-sprites', 'too-many-polls'],
  'state-unwritable',
  // By the arena.
  ...['unknown-arena', 'unknown-player', 'bad-input', 'too-many-inputs', 'arena-full'],
  // By the feeds.
  ...['unknown-feed', 'too-many-watchers', 'too-many-feeds', 'feed-memory-full', 'upstream-failed'],
  ...['too-many-fetches', 'not-a-log'],
  // By grants.
  ...['grant-required', 'bad-grant', 'grant-expired', 'not-granted'],
  // By a world, in JavaScript (lib/world/directory.js).
  ...['misdirected', 'restarting'],
  // By the door, before it knows what is requested.
  ...['bad-request', 'head-too-large', 'expectation-failed', 'request-timeout'],
  ...['too-many-connections', 'too-much-held']
];

/** @type {string[]} */
export const outcomes = [...SUCCESSES, ...NATIVE_PROBLEMS];

for (const name of NATIVE_PROBLEMS) {
  if (!(name in problems)) throw new Error(`the outcome "${name}" is no problem of problems.js`);
}
