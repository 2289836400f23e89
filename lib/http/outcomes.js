import { problems } from './problems.js';

/**
 * What becomes of a request that native code decides, in the order of the C++ enum (native/base/outcome.h, which
 * `npm run tables` makes of this list): what is fine, then the problems, each a row of problems.js.
 */

const FINE = ['ok', 'delivered', 'queued', 'duplicate'];

const DECIDED = [
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
  ...['misdirected', 'restarting']
];

/** @type {string[]} */
export const outcomes = [...FINE, ...DECIDED];

for (const name of DECIDED) {
  if (!(name in problems)) throw new Error(`the outcome "${name}" is no problem of problems.js`);
}
