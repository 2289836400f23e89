import { accessSync, constants, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getSystemErrorName } from 'node:util';

import { loadAddon } from '../base/addon.js';
import { takeOldState } from './old-state.js';

/**
 * The state that survives the end of a run, also a crash (native/store/state_store.h).
 *
 *   FILE.lock       held from before the state is read until the end: one server at a time
 *   FILE            the newest snapshot
 *   FILE.journal-N  the changes since the snapshot; no journal after an end in order
 *
 * A server that starts while its predecessor is still ending waits for the lock. It starts with the state that the
 * predecessor wrote.
 */

/** Interval between two tries to get the lock, in milliseconds. */
const LOOK = 50;

/** Returns the counts of the state for /status and /metrics, from Pool#stateStatus; zeros without --state. */
function figuresOf(now) {
  return {
    stateBlocked: now === null || now.blocked === 0 ? 0 : 1,
    journalBytes: now?.journalBytes ?? 0,
    journalUnsynced: now?.unsyncedBytes ?? 0,
    journalUnsyncedSeconds: (now?.unsafe ?? 0) / 1000,
    journalBacklog: now?.backlogBytes ?? 0,
    journalLongestWriteSeconds: (now?.longestWrite ?? 0) / 1e6,
    snapshots: now?.snapshots ?? 0,
    snapshotsFailed: now?.snapshotsFailed ?? 0
  };
}

const NOTHING = {
  before: {},
  doubtful: false,
  taken() {},
  keep() {},
  release() {},
  status: () => null,
  figures: () => figuresOf(null)
};

/** Returns the process that the lock file names, if any. */
function holderOf(lock) {
  try {
    return Number(readFileSync(lock, 'latin1')) || undefined;
  } catch {
    // The process may have ended just now and removed the file.
    return undefined;
  }
}

/**
 * Takes the lock of a state. Waits for the server that holds it.
 *
 * @returns {Promise<{held: () => boolean, release: () => void}>} `held` takes the lock again if its file was
 *     removed, and returns false if another server has it
 */
async function takeLock({ path, options: { stateWait }, log, signal }) {
  const { takeFileLock, holdsFileLock, releaseFileLock } = loadAddon();
  const lock = `${path}.lock`;
  const end = performance.now() + stateWait * 1000;
  for (let waited = false; ; waited = true) {
    let fd;
    try {
      fd = takeFileLock(lock);
    } catch (error) {
      throw new Error(`--state ${path}: ${lock} can't be locked (${error.message})`, {
        cause: error
      });
    }
    if (fd !== undefined) {
      return {
        held() {
          if (holdsFileLock(fd, lock)) return true;
          const again = takeFileLock(lock);
          if (again === undefined) return false;
          releaseFileLock(fd, lock);
          fd = again;
          return true;
        },
        release: () => releaseFileLock(fd, lock)
      };
    }
    const holder = holderOf(lock);
    if (performance.now() >= end) {
      throw new Error(
        `--state ${path} is used by another server${holder ? ` (process ${holder})` : ''}:` +
          ' end that one, or give this one a file of its own'
      );
    }
    if (!waited) log.warn({ holder, seconds: stateWait }, 'waits for the state of another server');
    await pause(LOOK, undefined, { signal });
  }
}

/** Interval between two checks whether the state can be written, in milliseconds. */
const WATCH = 1000;

/** Wait before the next try to write a lost state again, in milliseconds. */
const RETRY = 10_000;

/**
 * Logs when the state can't be written any more, and when it can be written again. Writes a lost state again, unless
 * another server has started one in its place.
 */
function watch({ pool, lock, path, log }) {
  let blocked = 0;
  let problem = '';
  let said = '';
  let retryAt = 0;

  function rescue() {
    let why;
    try {
      accessSync(dirname(path), constants.W_OK | constants.X_OK);
      if (lock.held()) {
        retryAt = performance.now() + RETRY;
        pool.rescueState();
        retryAt = 0;
        said = '';
        log.warn({ file: path }, 'the state was lost, and is written anew');
        return;
      }
      why = 'another server has begun a state in its place';
    } catch (error) {
      why = error.message;
    }
    if (why !== said)
      log.error({ file: path, why }, "the state is lost, and can't be written anew");
    said = why;
  }

  const timer = setInterval(() => {
    if (pool.stateStatus().lost && performance.now() >= retryAt) rescue();
    const now = pool.stateStatus();
    if (now.blocked !== blocked) {
      blocked = now.blocked;
      const code = blocked === 0 ? undefined : getSystemErrorName(-blocked);
      if (blocked === 0) log.info('the state can be written again');
      else {
        const fields = { code, file: path };
        log.error(fields, "the state can't be written: joins and throws are refused");
      }
    }
    if (now.problem !== problem) {
      problem = now.problem;
      if (problem === '') log.info('snapshots of the state can be made again');
      else log.error({ problem }, 'no snapshot of the state could be made');
    }
  }, WATCH);
  timer.unref();
  return () => clearInterval(timer);
}

/** Name of the note with the server's name in a world; earlier releases wrote an empty one. */
const WORLD = 'world';

/** The ids of clients begin with a tag of the server's name (lib/base/tag.js). */
function takeName(pool, name, log) {
  const [[, noted] = [WORLD, 'none']] = pool.notes(WORLD);
  const before = String(noted);
  const { clients } = pool.status();
  pool.note(WORLD, name);
  if (clients === 0 || ['', name].includes(before)) return;
  const text =
    'clients of this state have ids from before it had this --name: the other servers and a proxy do not send them here, and answer 503, then 404';
  log.warn({ clients, before, name }, text);
}

/** Delivers the sprites that wait for other servers of a world here, on a start without `--world`. */
function leaveWorld(pool, log) {
  const servers = pool.outboxes().servers.filter(({ waiting }) => waiting > 0);
  const lost = pool.status().lost;
  const sprites = pool.endWorld();
  if (sprites === 0) return;
  log.warn(
    { sprites, lost: pool.status().lost - lost, servers },
    'without --world what waited for other servers lands here; what one of them has taken arrives twice'
  );
}

/**
 * @typedef {object} State
 * @property {{feeds?: object[]}} before feeds of version 0.1, which kept them in files of their own: see old-state.js
 * @property {boolean} doubtful whether clients may have seen versions of feeds that the state does not have, so that the
 *     feeds need new epochs
 * @property {() => void} taken the caller calls this when all parts of the server have restored their content
 * @property {() => void} keep writes the whole state for the next run, after the last change of the pool; throws an error
 *     with a message of one line when this fails
 * @property {() => void} release gives up the lock, after `keep` or after a failed start
 * @property {() => object | null} status the state of the journal: see Pool#stateStatus
 * @property {() => Record<string, number>} figures its counts for /status and /metrics
 */

/**
 * Opens the state: waits for the lock, restores the last run, if there was one, and journals every change from then
 * on.
 *
 * @param {object} parts
 * @param {import('../torus/pool.js').Pool} parts.pool a new pool
 * @param {{state: string, stateBytes: number, stateWait: number, journalBytes: number,
 *     snapshotEvery: number, sync: string}} parts.options
 * @param {import('pino').Logger} parts.log
 * @param {AbortSignal} [parts.signal] ends the wait for the lock
 * @returns {Promise<State>}
 * @throws {Error} with a message of one line, when the state can't be used, its directory can't be written to, or
 *     another server holds the lock for too long; the file is not changed
 */
export async function takeState({ pool, options, log, signal }) {
  const { state: path, stateBytes, journalBytes, snapshotEvery, sync } = options;
  const world = options.world !== 'none';
  if (path === 'none') return NOTHING;
  try {
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Error(`--state ${path}: its directory can't be written to (${error.code})`, {
      cause: error
    });
  }
  const lock = await takeLock({ path, options, log, signal });
  const started = performance.now();
  let doubtful;
  let before;
  try {
    const {
      runBefore,
      doubtful: mayLack,
      ...found
    } = pool.openState({ path, stateBytes, journalBytes, snapshotEvery, sync });
    doubtful = mayLack;
    before = takeOldState({ path, pool, most: stateBytes, runBefore, log });
    const milliseconds = Math.round(performance.now() - started);
    if (found.bytes > 0 || found.journals > 0) log.info({ ...found, milliseconds }, 'state taken');
    if (found.torn > 0) {
      log.warn({ bytes: found.torn }, 'the end of the journal was not whole, and is cut off');
    }
    if (world) takeName(pool, options.name, log);
    else {
      leaveWorld(pool, log);
      // The other servers go on with the epochs of its feeds.
      doubtful ||= pool.notes(WORLD).length > 0;
      pool.unnote(WORLD);
    }
  } catch (error) {
    pool.closeState();
    lock.release();
    throw new Error(`--state ${path} is not used, and left as it is: ${error.message}`, {
      cause: error
    });
  }
  const stopWatching = watch({ pool, lock, path, log });

  /** Leaves a state alone that another server has started in its place. */
  function keepBeside() {
    const beside = `${path}.${process.pid}`;
    pool.save(beside, stateBytes);
    throw new Error(`another server has begun a state in its place: this one's lies at ${beside}`);
  }

  function keep() {
    const begun = performance.now();
    try {
      if (!lock.held()) keepBeside();
      const result = pool.finishState();
      log.info({ ...result, milliseconds: Math.round(performance.now() - begun) }, 'state kept');
    } catch (error) {
      throw new Error(
        `--state ${path}: no snapshot can be written (${error.message}); the next start goes on from` +
          ' what is there',
        { cause: error }
      );
    }
  }

  function release() {
    stopWatching();
    pool.closeState();
    lock.release();
  }

  /** The state now has the content of the files of version 0.1. */
  function taken() {
    if (before.files.length === 0) return;
    pool.rescueState();
    before.leave();
  }

  const status = () => pool.stateStatus();
  const figures = () => figuresOf(status());
  return { before, doubtful, taken, keep, release, status, figures };
}
