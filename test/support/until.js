import { setTimeout as pause } from 'node:timers/promises';

/**
 * Milliseconds between two looks: at first, and at the most. In between a tenth of the wait so far: a look costs CPU
 * time, the server's too, and a test that has waited for seconds does not wait for milliseconds.
 */
const LOOK = { first: 10, most: 150 };

/**
 * Looks at a server's counts until something holds of them.
 *
 * @param {() => Promise<object>} ask for the counts
 * @param {(status: object) => unknown} holds
 * @param {number} [seconds] see `until`
 * @returns {Promise<object>} the counts of which it holds
 */
export async function untilCounts(ask, holds, seconds) {
  let status;
  const look = async () => {
    status = await ask();
    return holds(status) && status;
  };
  return until(look, () => `${holds} in ${JSON.stringify(status)}`, seconds);
}

/**
 * Looks until something holds: tests wait by this, and never for a time.
 *
 * @template T
 * @param {() => T | Promise<T>} holds
 * @param {string | (() => string)} [what] what the error says when it never holds
 * @param {number} [seconds] after which it never will; generous, for machines that are busy
 * @returns {Promise<T>} the first true value
 */
export async function until(holds, what = String(holds), seconds = 45) {
  const begin = performance.now();
  for (;;) {
    const found = await holds();
    if (found) return found;
    const waited = performance.now() - begin;
    if (waited > seconds * 1000) {
      throw new Error(`not within ${seconds} s: ${typeof what === 'function' ? what() : what}`);
    }
    await pause(Math.min(LOOK.most, Math.max(LOOK.first, waited / 10)));
  }
}

/**
 * Does `work` to all of them, so many at a time.
 *
 * @template T
 * @param {T[]} all
 * @param {number} atOnce
 * @param {(one: T) => Promise<void>} work
 * @returns {Promise<void>} when all are done; fails with the first that failed
 */
export async function each(all, atOnce, work) {
  const queue = all.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const one of queue) await work(one);
    })
  );
}

/**
 * How much of a random history is played: the short form, which finds what earlier defects were, or the long one
 * with TEST_LONG=1 (`npm run test:all`).
 */
const LONG = process.env.TEST_LONG === '1';

/** @returns {number} the length of a history */
export const lengthOf = ({ short, long }) => (LONG ? long : short);
