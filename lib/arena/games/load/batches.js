/**
 * Counts missing sprites while the load runs. Time is divided into batches, and all throwers write the number of the
 * current batch into each sprite. A batch some seconds old is settled: its accepted sprites have had time to arrive.
 * The number of missing sprites is accepted less received, over all throwers and all settled batches.
 *
 *     number of a sprite = batch · 2^20 + number in the batch         (native/swarm/account.h)
 */

/** Length of a batch, in milliseconds. */
const BATCH_TIME = 2000;

/** Batches until a batch is settled: a sprite that has not arrived after 8 to 10 seconds is missing. */
export const SETTLED_AFTER = 5;

/** Batches that are counted separately; older ones are one sum. */
export const SEPARATE_BATCHES = 32;

/** Batches by which another thrower may be ahead of one without contact for a lease, as in native/swarm/account.h. */
const MAX_AHEAD = 16;

/** Most sprites of a batch. */
export const NUMBERS_PER_BATCH = 2 ** 20;

/** @param {number} time ms since the round began @returns {number} the current batch, from 1 */
export const batchAt = (time) => Math.floor(time / BATCH_TIME) + 1;

/**
 * @param {number} sprite its number
 * @param {number} currentBatch the current batch
 * @returns {number|undefined} its batch; undefined if no player can have thrown it
 */
export function batchOf(sprite, currentBatch) {
  const batch = Math.floor(sprite / NUMBERS_PER_BATCH);
  return batch <= currentBatch + MAX_AHEAD ? batch : undefined;
}

/**
 * @param {Array<[number, number, number]>} rows batch, accepted, received; one row for all older batches
 * @param {number} batch the last batch to count
 * @returns {{accepted: number, received: number}} the sums up to this batch
 */
export function sumThrough(rows, batch) {
  const sum = { accepted: 0, received: 0 };
  for (const [number, accepted, received] of rows) {
    if (number > batch) continue;
    sum.accepted += accepted;
    sum.received += received;
  }
  return sum;
}

/**
 * The missing sprites in words. The number comes from the players' reports (reduce.js). A sprite may also land at a
 * desktop of others, on this server or another one of its world: then the server's own count of lost sprites bounds it.
 */

const spriteWords = (count) => (count === 1 ? '1 sprite' : `${count.toLocaleString('en')} sprites`);

/**
 * @param {?object} value of the reduced feed
 * @param {{clients: number, lost: number, crossedOut?: number}} status the server's current status
 * @param {{lost: number, crossedOut?: number}} firstStatus the server's first status
 * @returns {{count: ?number, is: 'none'|'good'|'bad'|'open', words: string}}
 */
export function describeMissing(value, status, firstStatus) {
  if (value === null) return { count: null, is: 'none', words: 'Missing: nothing is counted yet' };
  const { missing, counted, torn, members } = value;
  const strangers = Math.max(0, status.clients - members);
  const hasCrossed = (status.crossedOut ?? 0) > (firstStatus.crossedOut ?? 0);
  const mayBeElsewhere = (strangers > 0 || hasCrossed) && missing > 0;
  const count = mayBeElsewhere
    ? Math.min(missing, Math.max(0, status.lost - firstStatus.lost))
    : missing;
  const countedWords = `of ${spriteWords(counted)} that have had their time`;
  const tornWords = torn > 0 ? `, and ${torn} went without a last report` : '';
  if (count === 0) {
    const landed = mayBeElsewhere ? `; ${spriteWords(missing)} landed at others’ desktops` : '';
    return { count, is: 'good', words: `Missing: 0 ${countedWords}${landed}${tornWords}` };
  }
  if (torn > 0)
    return { count, is: 'open', words: `Missing: at most ${count} ${countedWords}${tornWords}` };
  return { count, is: 'bad', words: `Missing: ${count} ${countedWords}` };
}
