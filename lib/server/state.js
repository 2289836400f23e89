import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { loadAddon } from './addon.js';

/**
 * The state from one run to the next: taken at the start, kept at the end (native/pool/snapshot.h).
 *
 *   FILE.lock      held from before the state is taken until it is kept: one server at a time
 *   FILE           the state, between two runs
 *   FILE.previous  the state this run has begun with
 *
 * A state is taken once. When the server has started with it, the file is renamed to
 * FILE.previous: were it still there after a crash, the next start would bring back sprites that
 * have been received since, and deliver them twice.
 *
 * A server that starts while the one before is still ending waits for the lock: what that one keeps
 * is what it begins with.
 */

/** How often a server that waits for the lock tries again, in milliseconds. */
const LOOK = 50;

const NOTHING = { taken() {}, keep() {}, release() {} };

/** The process that holds a lock, as far as it has said so. */
function holderOf(lock) {
  try {
    return Number(readFileSync(lock, 'latin1')) || undefined;
  } catch {
    // It may have ended just now, and its file with it.
    return undefined;
  }
}

/** Writes a renaming to the disk, so that it outlives a power failure. */
function syncDirectory(path) {
  const directory = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/** Takes the lock of a state, waiting for the server before; gives what releases it. */
async function takeLock({ path, options: { state, stateWait }, log, signal }) {
  const { takeFileLock, releaseFileLock } = loadAddon();
  const lock = `${path}.lock`;
  const end = performance.now() + stateWait * 1000;
  for (let waited = false; ; waited = true) {
    let fd;
    try {
      fd = takeFileLock(lock);
    } catch (error) {
      throw new Error(`--state ${state}: ${lock} can't be locked (${error.message})`, {
        cause: error
      });
    }
    if (fd !== undefined) return () => releaseFileLock(fd, lock);
    const holder = holderOf(lock);
    if (performance.now() >= end) {
      throw new Error(
        `--state ${state} is used by another server${holder ? ` (process ${holder})` : ''}:` +
          ' end that one, or give this one a file of its own'
      );
    }
    if (!waited) log.warn({ holder, seconds: stateWait }, 'waits for the state of another server');
    await pause(LOOK, undefined, { signal });
  }
}

/**
 * Takes over the state of the last run, if there is one, once no other server has it.
 *
 * @param {object} parts
 * @param {import('./pool.js').Pool} parts.pool new
 * @param {{state: string, stateBytes: number, stateWait: number}} parts.options
 * @param {import('pino').Logger} parts.log
 * @param {AbortSignal} [parts.signal] ends the waiting
 * @returns {Promise<{taken: () => void, keep: () => void, release: () => void}>} `taken` is to be
 *     called when the server has really started with it; `keep` writes the state for the next run,
 *     when nothing changes the pool any more, and throws in one line when it can't; `release` lets
 *     the next server have it, after `keep` or when the start has failed
 * @throws {Error} in one line, when the state can't be used, its directory can't be written to or
 *     another server keeps it for too long; the file is left as it is
 */
export async function takeState({ pool, options, log, signal }) {
  const { state, stateBytes } = options;
  if (state === 'none') return NOTHING;
  const path = resolve(state);
  try {
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Error(`--state ${state}: its directory can't be written to (${error.code})`, {
      cause: error
    });
  }
  const release = await takeLock({ path, options, log, signal });
  const found = load();

  /** @returns {boolean} whether there was one */
  function load() {
    const started = performance.now();
    try {
      const result = pool.load(path, stateBytes);
      log.info({ ...result, milliseconds: Math.round(performance.now() - started) }, 'state taken');
      return true;
    } catch (error) {
      if (error.code === 'ENOENT') return false;
      release();
      throw new Error(`--state ${state} is not used, and left as it is: ${error.message}`, {
        cause: error
      });
    }
  }

  function taken() {
    if (!found) return;
    renameSync(path, `${path}.previous`);
    syncDirectory(dirname(path));
  }

  function keep() {
    const started = performance.now();
    try {
      const result = pool.save(path, stateBytes);
      log.info({ ...result, milliseconds: Math.round(performance.now() - started) }, 'state kept');
    } catch (error) {
      throw new Error(`the state is lost: --state ${state} can't be written (${error.message})`, {
        cause: error
      });
    }
  }

  return { taken, keep, release };
}
