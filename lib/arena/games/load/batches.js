/**
 * What is missing, told while it goes on. Time is cut into batches, and all who throw write the number of
 * the one that is on into each sprite. A batch some seconds old is settled: all that was accepted of it has
 * arrived, at whomever. Summed over all who take part, what was accepted less what was received, of all
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
 * @returns {number|undefined} its batch; undefined: nobody who takes part has thrown it
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
