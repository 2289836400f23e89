/**
 * How much memory a server takes, when it has come to rest.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

import { cpuSeconds, residentBytes } from './usage.js';

/** Garbage collections before a resident size counts, and the milliseconds V8 has after each. */
const COLLECTIONS = 3;
const COLLECTION_TIME = 1000;

/** Bytes by which resident size must fall to count as a new low. */
const NEW_LOW = 64 * 1024;

/** Milliseconds between two looks at a server that is to come to rest, and how many it is given. */
const REST_LOOK = 200;
const REST_LOOKS = 300;

/** Seconds of CPU between two looks that are hardly any. */
const AT_REST = 0.01;

/**
 * Resolves when processes use hardly any CPU: they have handled all that was sent to them.
 *
 * @param {number[]} pids
 */
export async function atRest(pids) {
  let before = cpuSeconds(pids);
  for (let look = 0, quiet = 0; look < REST_LOOKS; look++) {
    await sleep(REST_LOOK);
    const now = cpuSeconds(pids);
    quiet = now - before <= AT_REST ? quiet + 1 : 0;
    if (quiet === 2) return;
    before = now;
  }
  throw new Error('the server works on without requests');
}

/** Resolves when resident size has made no new low for `seconds`. */
async function settled(pids, seconds) {
  let lowest = residentBytes(pids);
  for (let since = Date.now(); Date.now() - since < seconds * 1000;) {
    await sleep(REST_LOOK);
    const now = residentBytes(pids);
    if (now < lowest - NEW_LOW) since = Date.now();
    lowest = Math.min(lowest, now);
  }
}

/**
 * @param {import('./contenders.js').Server} server
 * @param {{settle: number}} options seconds without a new low
 * @returns {Promise<{resident: number, heap: number|undefined}>} bytes, when the server has settled
 */
export async function memoryOf(server, { settle }) {
  await atRest(server.pids);
  if (!server.probe) return { resident: residentBytes(server.pids) };
  await settled(server.pids, settle);
  let resident = Infinity;
  let heap;
  for (let i = 0; i < COLLECTIONS; i++) {
    heap = (await ask(server, { collect: true })).heapUsed;
    await sleep(COLLECTION_TIME);
    resident = Math.min(resident, residentBytes(server.pids));
  }
  return { resident, heap };
}

/**
 * @param {import('./contenders.js').Server} server
 * @param {{collect?: boolean}} [what]
 * @returns {Promise<{heapUsed?: number, longestStall?: number}>} what probe.js tells of it; nothing of
 *     one without it
 */
export async function ask({ probe }, { collect = false } = {}) {
  if (!probe) return {};
  const ended = new AbortController();
  const end = () => ended.abort();
  probe.once('exit', end);
  try {
    const answer = once(probe, 'message', { signal: ended.signal });
    probe.send({ collect });
    return (await answer)[0];
  } catch (cause) {
    throw new Error('the server has ended', { cause });
  } finally {
    probe.off('exit', end);
  }
}
