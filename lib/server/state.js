import { accessSync, constants, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getSystemErrorName } from 'node:util';

import { loadAddon } from '../base/addon.js';
import { takeOldState } from './old-state.js';

/**
 * The state from one run to the next, however a run ends (native/store/state_store.h).
 *
 *   FILE.lock       held from before the state is taken until the end: one server at a time
 *   FILE            the newest snapshot
 *   FILE.journal-N  what has happened since; none after an end in order
 *
 * A server that starts while the one before is still ending waits for the lock: what that one keeps
 * is what it begins with.
 */

/** How often a server that waits for the lock tries again, in milliseconds. */
const LOOK = 50;

/** What /status and /metrics say of the state, from Pool#stateStatus; zeros where none is kept. */
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

/** The process that holds a lock, as far as it has said so. */
function holderOf(lock) {
  try {
    return Number(readFileSync(lock, 'latin1')) || undefined;
  } catch {
    // It may have ended just now, and its file with it.
    return undefined;
  }
}

/**
 * Takes the lock of a state, waiting for the server before.
 *
 * @returns {Promise<{held: () => boolean, release: () => void}>} `held` takes it again where its file
 *     was removed, and says whether no other server has it
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

/** How often it is looked whether the state can be written, in milliseconds. */
const WATCH = 1000;

/** Milliseconds before a lost state that could not be written anew is tried again. */
const RETRY = 10_000;

/**
 * Says in the log when the state can't be written any more, and when it can again; has one that is lost
 * written anew, as long as no other server has begun one in its place.
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

/** What is noted in the state of a server of a world: its name; of an earlier release's, nothing. */
const WORLD = 'world';

/** Ids begin with the tag of the name that they are made under (lib/base/tag.js). */
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

/** What waits for the other servers of a world has only this one left, when that is started without `--world`. */
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
 * @property {{feeds?: object[]}} before what the version before has kept in files of its own: see old-state.js
 * @property {boolean} doubtful versions of feeds may have been told that are not in it, so that they need new epochs
 * @property {() => void} taken to be called when the parts of the server have taken over what was theirs
 * @property {() => void} keep makes one whole state for the next run, when nothing changes the pool any more; throws in
 *     one line when it can't
 * @property {() => void} release lets the next server have it, after `keep` or when the start has failed
 * @property {() => object | null} status how the writing fares: see Pool#stateStatus
 * @property {() => Record<string, number>} figures what /status and /metrics say of that
 */

/**
 * Takes over the state of the last run, if there is one, once no other server has it; from then on
 * every step is written.
 *
 * @param {object} parts
 * @param {import('../torus/pool.js').Pool} parts.pool new
 * @param {{state: string, stateBytes: number, stateWait: number, journalBytes: number,
 *     snapshotEvery: number, sync: string}} parts.options
 * @param {import('pino').Logger} parts.log
 * @param {AbortSignal} [parts.signal] ends the waiting
 * @returns {Promise<State>}
 * @throws {Error} in one line, when the state can't be used, its directory can't be written to or
 *     another server keeps it for too long; the file is left as it is
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
      // The others go on with the epochs of its feeds.
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

  /** What another server has begun in its place is not touched. */
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

  /** What was in the files of the version before is in the state now. */
  function taken() {
    if (before.files.length === 0) return;
    pool.rescueState();
    before.leave();
  }

  const status = () => pool.stateStatus();
  const figures = () => figuresOf(status());
  return { before, doubtful, taken, keep, release, status, figures };
}
