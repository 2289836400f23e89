import { accessSync, constants, renameSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * The state from one run to the next: taken at the start, kept at the end (native/pool/snapshot.h).
 *
 * A state is taken once. When the server has started with it, the file is renamed to
 * FILE.previous: were it still there after a crash, the next start would bring back sprites that
 * have been received since, and deliver them twice.
 */

const NOTHING = { taken() {} };

/**
 * Takes over the state of the last run, if there is one.
 *
 * @param {object} parts
 * @param {import('./pool.js').Pool} parts.pool new
 * @param {{state: string, stateBytes: number}} parts.options
 * @param {import('pino').Logger} parts.log
 * @returns {{taken: () => void}} to be called when the server has really started with it
 * @throws {Error} in one line, when the state can't be used or its directory can't be written to;
 *     the file is left as it is
 */
export function takeState({ pool, options: { state, stateBytes }, log }) {
  if (state === 'none') return NOTHING;
  const path = resolve(state);
  const started = performance.now();
  try {
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Error(`--state ${state}: its directory can't be written to (${error.code})`, {
      cause: error
    });
  }
  try {
    const result = pool.load(path, stateBytes);
    log.info({ ...result, milliseconds: Math.round(performance.now() - started) }, 'state taken');
  } catch (error) {
    if (error.code === 'ENOENT') return NOTHING;
    throw new Error(`--state ${state} is not used, and left as it is: ${error.message}`, {
      cause: error
    });
  }
  return { taken: () => renameSync(path, `${path}.previous`) };
}

/**
 * Keeps the state for the next run.
 *
 * @param {object} parts
 * @param {import('./pool.js').Pool} parts.pool which nothing changes any more
 * @param {{state: string, stateBytes: number}} parts.options
 * @param {import('pino').Logger} parts.log
 * @throws {Error} in one line, when it can't be written
 */
export function keepState({ pool, options: { state, stateBytes }, log }) {
  if (state === 'none') return;
  const started = performance.now();
  try {
    const result = pool.save(resolve(state), stateBytes);
    log.info({ ...result, milliseconds: Math.round(performance.now() - started) }, 'state kept');
  } catch (error) {
    throw new Error(`the state is lost: --state ${state} can't be written (${error.message})`, {
      cause: error
    });
  }
}
