/**
 * What is missing, told while it goes on. Time is cut into batches, and all throwers write the number of
 * the present one into each sprite. A batch some seconds old is settled: all that was accepted of it has
 * arrived. Summed over all throwers, what was accepted less what was received, of all
 * settled batches together, is missing.
 *
 *     number of a sprite = batch · 2^20 + which one of the batch      (native/swarm/account.h)
 */

/** Milliseconds of a batch. */
const BATCH = 2000;

/** So many batches after its own one a sprite that has not arrived is missing: 8 to 10 seconds. */
export const SETTLED = 5;

/** Batches kept apart; older ones are one sum. */
export const KEPT = 32;

/** So many batches another one's count may be ahead: as in native/swarm/account.cc. */
const AHEAD = 4;

/** Sprites of a batch. */
export const OF_A_BATCH = 2 ** 20;

/** @param {number} time ms since the round began @returns {number} the batch that is on, from 1 */
export const batchAt = (time) => Math.floor(time / BATCH) + 1;

/**
 * @param {number} sprite its number
 * @param {number} now the batch that is on
 * @returns {number|undefined} its batch; undefined: no player has thrown it
 */
export function batchOf(sprite, now) {
  const batch = Math.floor(sprite / OF_A_BATCH);
  return batch <= now + AHEAD ? batch : undefined;
}

/**
 * @param {Array<[number, number, number]>} rows batch, accepted, received; of what is older, one row
 * @param {number} batch the last one that counts
 * @returns {{accepted: number, received: number}} of all up to it
 */
export function through(rows, batch) {
  const sum = { accepted: 0, received: 0 };
  for (const [number, accepted, received] of rows) {
    if (number > batch) continue;
    sum.accepted += accepted;
    sum.received += received;
  }
  return sum;
}

/**
 * What is missing, in words: by the account of the players (reduce.js), and by the server's own,
 * where others' desktops are in the torus, at which a sprite may land: here, or at another server of its world.
 */

const many = (count) => (count === 1 ? '1 sprite' : `${count.toLocaleString('en')} sprites`);

/**
 * @param {?object} value of the reduced feed
 * @param {{clients: number, lost: number, crossedOut?: number}} status of the server, now
 * @param {{lost: number, crossedOut?: number}} first the same, when it was first looked at
 * @returns {{count: ?number, is: 'none'|'good'|'bad'|'open', words: string}}
 */
export function account(value, status, first) {
  if (value === null) return { count: null, is: 'none', words: 'Missing: nothing is counted yet' };
  const { missing, counted, torn, members } = value;
  const strangers = Math.max(0, status.clients - members);
  const crossed = (status.crossedOut ?? 0) > (first.crossedOut ?? 0);
  const elsewhere = (strangers > 0 || crossed) && missing > 0;
  const count = elsewhere ? Math.min(missing, Math.max(0, status.lost - first.lost)) : missing;
  const of = `of ${many(counted)} that have had their time`;
  const gone = torn > 0 ? `, and ${torn} went without a last report` : '';
  if (count === 0) {
    const landed = elsewhere ? `; ${many(missing)} landed at others’ desktops` : '';
    return { count, is: 'good', words: `Missing: 0 ${of}${landed}${gone}` };
  }
  if (torn > 0) return { count, is: 'open', words: `Missing: at most ${count} ${of}${gone}` };
  return { count, is: 'bad', words: `Missing: ${count} ${of}` };
}
