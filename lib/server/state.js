import { accessSync, constants, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getSystemErrorName } from 'node:util';

import { loadAddon } from '../base/addon.js';
import { migrateOldState } from './old-state.js';

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
const LOCK_INTERVAL = 50;

/** Returns the counts of the state for /status and /metrics, from Pool#stateStatus; zeros without --state. */
function countsOf(status) {
  return {
    stateBlocked: status === null || status.blocked === 0 ? 0 : 1,
    journalBytes: status?.journalBytes ?? 0,
    journalUnsynced: status?.unsyncedBytes ?? 0,
    journalUnsyncedSeconds: (status?.unsafe ?? 0) / 1000,
    journalBacklog: status?.backlogBytes ?? 0,
    journalLongestWriteSeconds: (status?.longestWrite ?? 0) / 1e6,
    snapshots: status?.snapshots ?? 0,
    snapshotsFailed: status?.snapshotsFailed ?? 0
  };
}

const NO_STATE = {
  migration: {},
  needsNewEpochs: false,
  finishMigration() {},
  save() {},
  release() {},
  status: () => null,
  figures: () => countsOf(null)
};

const stateError = (text, cause) => new Error(`--state ${text}`, { cause });

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
 * @returns {Promise<{ensureHeld: () => boolean, release: () => void}>} `ensureHeld` takes the lock again if its file was
 *     removed, and returns false if another server has it
 */
async function acquireLock({ path, options: { stateWait }, log, signal }) {
  const { takeFileLock, holdsFileLock, releaseFileLock } = loadAddon();
  const lock = `${path}.lock`;
  const end = performance.now() + stateWait * 1000;
  for (let waited = false; ; waited = true) {
    let fd;
    try {
      fd = takeFileLock(lock);
    } catch (error) {
      throw stateError(`${path}: ${lock} can't be locked (${error.message})`, error);
    }
    if (fd !== undefined) {
      return {
        ensureHeld() {
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
    await pause(LOCK_INTERVAL, undefined, { signal });
  }
}

/** Errors of a disk, or a quota, without room. */
const NO_ROOM = ['ENOSPC', 'EDQUOT'];

/** Interval between two checks whether the state can be written, in milliseconds. */
const WATCH_INTERVAL = 1000;

/** Wait before the next try to write a lost state again, in milliseconds. */
const RESCUE_INTERVAL = 10_000;

/**
 * Logs when the state can't be written any more, and when it can be written again. Writes a lost state again, unless
 * another server has started one in its place.
 */
function watchState({ pool, lock, path, log }) {
  let blocked = 0;
  let problem = '';
  let loggedReason = '';
  let retryAt = 0;

  function rescue() {
    let why;
    try {
      accessSync(dirname(path), constants.W_OK | constants.X_OK);
      if (lock.ensureHeld()) {
        retryAt = performance.now() + RESCUE_INTERVAL;
        pool.rescueState();
        retryAt = 0;
        loggedReason = '';
        log.warn({ file: path }, 'the state was lost, and is written anew');
        return;
      }
      why = 'another server has begun a state in its place';
    } catch (error) {
      why = error.message;
    }
    if (why !== loggedReason)
      log.error({ file: path, why }, "the state is lost, and can't be written anew");
    loggedReason = why;
  }

  const timer = setInterval(() => {
    if (pool.stateStatus().lost && performance.now() >= retryAt) rescue();
    const status = pool.stateStatus();
    if (status.blocked !== blocked) {
      blocked = status.blocked;
      const code = blocked === 0 ? undefined : getSystemErrorName(-blocked);
      if (blocked === 0) log.info('the state can be written again');
      else {
        const needs = `${status.journalRoom / 2 ** 20} MiB free, for the turns to come`;
        const fields = { code, file: path, ...(NO_ROOM.includes(code) && { needs }) };
        log.error(fields, "the state can't be written: joins and throws are refused");
      }
    }
    if (status.problem !== problem) {
      problem = status.problem;
      if (problem === '') log.info('snapshots of the state can be made again');
      else log.error({ problem }, 'no snapshot of the state could be made');
    }
  }, WATCH_INTERVAL);
  timer.unref();
  return () => clearInterval(timer);
}

/** Name of the note with the server's name in a world; earlier releases wrote an empty one. */
const WORLD_NOTE = 'world';

/** The ids of clients begin with a tag of the server's name (lib/base/tag.js). */
function noteServerName(pool, name, log) {
  const [[, notedName] = [WORLD_NOTE, 'none']] = pool.notes(WORLD_NOTE);
  const before = String(notedName);
  const { clients } = pool.status();
  pool.note(WORLD_NOTE, name);
  if (clients === 0 || ['', name].includes(before)) return;
  const text =
    'clients of this state have ids from before it had this --name: the other servers and a proxy do not send them here, and answer 503, then 404';
  log.warn({ clients, before }, text);
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

/** Restores the last run, if there was one, and journals every change from then on. */
function restore({ pool, options, log }) {
  const { state: path, stateBytes, journalBytes, snapshotEvery, sync } = options;
  const startedAt = performance.now();
  const bounds = { stateBytes, journalBytes, snapshotEvery };
  const { runBefore, doubtful, ...restored } = pool.openState({ path, ...bounds, sync });
  const migration = migrateOldState({ path, pool, maxBytes: stateBytes, runBefore, log });
  const milliseconds = Math.round(performance.now() - startedAt);
  if (restored.bytes > 0 || restored.journals > 0)
    log.info({ ...restored, milliseconds }, 'state taken');
  if (restored.torn > 0) {
    log.warn({ bytes: restored.torn }, 'the end of the journal was not whole, and is cut off');
  }
  if (options.world !== 'none') {
    noteServerName(pool, options.name, log);
    return { migration, needsNewEpochs: doubtful };
  }
  leaveWorld(pool, log);
  // The other servers go on with the epochs of its feeds.
  const needsNewEpochs = doubtful || pool.notes(WORLD_NOTE).length > 0;
  pool.removeNote(WORLD_NOTE);
  return { migration, needsNewEpochs };
}

/** Writes the whole state. Leaves a state alone that another server has started in its place. */
function save({ pool, lock, path, stateBytes, log }) {
  const startedAt = performance.now();
  try {
    if (!lock.ensureHeld()) {
      const savedPath = `${path}.${process.pid}`;
      pool.save(savedPath, stateBytes);
      const why = 'another server has begun a state in its place';
      throw new Error(`${why}: this one's lies at ${savedPath}`);
    }
    const result = pool.finishState();
    const milliseconds = Math.round(performance.now() - startedAt);
    log.info({ ...result, milliseconds }, 'state kept');
  } catch (error) {
    const why = `no snapshot can be written (${error.message})`;
    throw stateError(`${path}: ${why}; the next start goes on from what is there`, error);
  }
}

/**
 * @typedef {object} State
 * @property {{feeds?: object[]}} migration feeds of version 0.1, which kept them in files of their own: see old-state.js
 * @property {boolean} needsNewEpochs whether clients may have seen versions of feeds that the state does not have, so that the
 *     feeds need new epochs
 * @property {() => void} finishMigration the caller calls this when all parts of the server have restored their content
 * @property {() => void} save writes the whole state for the next run, after the last change of the pool; throws an error
 *     with a message of one line when this fails
 * @property {() => void} release gives up the lock, after `save` or after a failed start
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
export async function openState({ pool, options, log, signal }) {
  const { state: path, stateBytes } = options;
  if (path === 'none') return NO_STATE;
  try {
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
  } catch (error) {
    throw stateError(`${path}: its directory can't be written to (${error.code})`, error);
  }
  const lock = await acquireLock({ path, options, log, signal });
  const close = () => {
    pool.closeState();
    lock.release();
  };
  let lastRun;
  try {
    lastRun = restore({ pool, options, log });
  } catch (error) {
    close();
    throw stateError(`${path} is not used, and left as it is: ${error.message}`, error);
  }
  const { migration } = lastRun;
  const stopWatching = watchState({ pool, lock, path, log });
  return {
    ...lastRun,
    finishMigration() {
      // The state now has the content of the files of version 0.1.
      if (migration.files.length === 0) return;
      pool.rescueState();
      migration.retireFiles();
    },
    save: () => save({ pool, lock, path, stateBytes, log }),
    release() {
      stopWatching();
      close();
    },
    status: () => pool.stateStatus(),
    figures: () => countsOf(pool.stateStatus())
  };
}
