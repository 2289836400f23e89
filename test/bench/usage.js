/**
 * What servers take: by what the kernel says of their processes, and of all sockets, and by what they tell of themselves.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds between two looks at memory. */
const LOOK = 100;

const PAGE = 4096;

/** @returns {string} a file of a process; empty where that has ended */
function read(file) {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes(error.code)) throw error;
    return '';
  }
}

const sum = (all, of) => all.reduce((total, one) => total + of(one), 0);

/** @returns {number[]} the threads of a process, the main one first */
export const threadsOf = (pid) => readdirSync(`/proc/${pid}/task`).map(Number);

/**
 * @param {number} pid
 * @param {number} [thread] the main one
 * @returns {number} seconds of CPU that it has had: the scheduler's own count, where stat has ticks of 10 ms
 */
export const cpuOf = (pid, thread = pid) =>
  Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0]) / 1e9;

/** @param {number[]} pids @returns {number} seconds of CPU that all their threads have had */
export const cpuSeconds = (pids) =>
  sum(pids, (pid) => sum(threadsOf(pid), (thread) => cpuOf(pid, thread)));

/** @returns {Record<string, number>} a file whose lines are `name: number unit`, as bytes or plain numbers */
export const table = (file) =>
  Object.fromEntries(
    [...read(file).matchAll(/^([\w()]+):\s+(\d+)( kB)?$/gm)].map(([, name, value, unit]) => [
      name,
      Number(value) * (unit ? 1024 : 1)
    ])
  );

/** @param {number[]} pids @returns {number} bytes that they have resident: exact, and dear */
export const residentBytes = (pids) => sum(pids, (pid) => table(`/proc/${pid}/smaps_rollup`).Rss);

/** The same by a counter that may be some pages behind. */
const residentAbout = (pids) =>
  sum(pids, (pid) => Number(read(`/proc/${pid}/statm`).split(' ')[1] ?? 0) * PAGE);

/** @returns {number} bytes of kernel memory for all TCP sockets of this machine, both ends of each connection */
const socketBytes = () => Number(/^TCP: .* mem (\d+)$/m.exec(read('/proc/net/sockstat'))[1]) * PAGE;

/** What processes take while they are measured: their memory from when it is made, their CPU from begin(). */
export class Use {
  #pids;
  #timer;
  #before;
  #peak = { resident: 0, sockets: 0 };
  #begun;

  /** @param {number[]} pids */
  constructor(pids) {
    this.#pids = pids;
    this.#before = this.#look();
    this.#timer = setInterval(() => this.#look(), LOOK);
  }

  #look() {
    const now = { resident: residentAbout(this.#pids), sockets: socketBytes() };
    for (const name in now) this.#peak[name] = Math.max(this.#peak[name], now[name]);
    return now;
  }

  begin() {
    this.#begun = { cpu: cpuSeconds(this.#pids), ...this.#look() };
  }

  /**
   * @returns {object} seconds of `cpu` since begin(); bytes: `residentWarm` at begin(), and of `resident` and `sockets`
   *     …Before at first, and …Peak
   */
  end() {
    this.#look();
    return {
      ...{ cpu: cpuSeconds(this.#pids) - this.#begun.cpu, residentWarm: this.#begun.resident },
      ...{ residentBefore: this.#before.resident, residentPeak: this.#peak.resident },
      ...{ socketsBefore: this.#before.sockets, socketsPeak: this.#peak.sockets }
    };
  }

  /** Looks no more. */
  close() {
    clearInterval(this.#timer);
  }
}

/** @returns {Promise<object>} what a server tells of itself at a port of 127.0.0.1 */
export const statusAt = async (port) =>
  (await fetch(`http://127.0.0.1:${port}/status`, { signal: AbortSignal.timeout(5000) })).json();

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
