import { readOptions } from '../../lib/operator/options.js';
import { Pool } from '../../lib/torus/pool.js';

/** Makes pools for tests, and loads saved states. */

/**
 * @param {import('tap').Test} t its end closes the pool
 * @param {object} [options] further options
 * @returns {Pool} keeps the process alive until the test ends
 */
export function makePool(t, options = {}) {
  const pool = new Pool({ ...readOptions([]), throwRate: 0, capacity: 1000, ...options });
  // The pool's own clock does not keep the process alive.
  const keepAlive = setInterval(() => {}, 1000);
  t.teardown(() => {
    clearInterval(keepAlive);
    pool.close();
  });
  return pool;
}

/** A bound above the size of any state, in bytes. */
export const UNLIMITED_SIZE = 2 ** 40;

/** Loads a state file into a new pool, as Pool#openState does. Writes nothing later. */
export function restoreState(pool, path) {
  const bounds = {
    stateBytes: UNLIMITED_SIZE,
    journalBytes: UNLIMITED_SIZE,
    snapshotEvery: 86_400
  };
  const found = pool.openState({ path, ...bounds, sync: 'never' });
  pool.closeState();
  return found;
}
