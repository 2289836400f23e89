import { readOptions } from '../../lib/operator/options.js';
import { Pool } from '../../lib/torus/pool.js';

/** Pools of the tests' own, and the states that they have saved. */

/**
 * @param {import('tap').Test} t it ends with
 * @param {object} [given] options beside the usual ones
 * @returns {Pool} it is awake until the test ends
 */
export function makePool(t, given = {}) {
  const pool = new Pool({ ...readOptions([]), throwRate: 0, capacity: 1000, ...given });
  // The pool's own clock delays nothing.
  const awake = setInterval(() => {}, 1000);
  t.teardown(() => {
    clearInterval(awake);
    pool.close();
  });
  return pool;
}

/** More bytes than any state has. */
export const ANY_SIZE = 2 ** 40;

/** Brings a pool, which must be new, to what a file says, and writes nothing; as Pool#openState. */
export function load(pool, path) {
  const bounds = { stateBytes: ANY_SIZE, journalBytes: ANY_SIZE, snapshotEvery: 86_400 };
  const found = pool.openState({ path, ...bounds, sync: 'never' });
  pool.closeState();
  return found;
}
