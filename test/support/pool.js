import { readOptions } from '../../lib/operator/options.js';
import { Pool } from '../../lib/torus/pool.js';

/** Makes pools for tests, and loads saved states. */

/**
 * @param {import('tap').Test} t its end closes the pool
 * @param {object} [given] further options
 * @returns {Pool} keeps the process alive until the test ends
 */
export function makePool(t, given = {}) {
  const pool = new Pool({ ...readOptions([]), throwRate: 0, capacity: 1000, ...given });
  // The pool's own clock does not keep the process alive.
  const awake = setInterval(() => {}, 1000);
  t.teardown(() => {
    clearInterval(awake);
    pool.close();
  });
  return pool;
}

/** A bound above the size of any state, in bytes. */
export const ANY_SIZE = 2 ** 40;

/** Loads a state file into a new pool, as Pool#openState does. Writes nothing later. */
export function load(pool, path) {
  const bounds = { stateBytes: ANY_SIZE, journalBytes: ANY_SIZE, snapshotEvery: 86_400 };
  const found = pool.openState({ path, ...bounds, sync: 'never' });
  pool.closeState();
  return found;
}
