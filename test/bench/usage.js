/**
 * The CPU time and memory of servers: from the kernel, for their processes and all sockets, and from the servers.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Interval between two samples of memory, in milliseconds. */
const SAMPLE_MS = 100;

const PAGE_BYTES = 4096;

/** @returns {string} a file of /proc; empty when the process has ended */
function readOrEmpty(file) {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes(error.code)) throw error;
    return '';
  }
}

const sum = (all, of) => all.reduce((total, one) => total + of(one), 0);

/** @returns {number[]} the threads of a process, the main thread first */
export const threadsOf = (pid) => readdirSync(`/proc/${pid}/task`).map(Number);

/**
 * @param {number} pid
 * @param {number} [thread] by default the main thread
 * @returns {number} the thread's seconds of CPU, by the scheduler's own count: /proc/…/stat has only ticks of 10 ms
 */
export const cpuOf = (pid, thread = pid) =>
  Number(readOrEmpty(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0]) / 1e9;

/** @param {number[]} pids @returns {number} seconds of CPU of all their threads */
export const cpuSeconds = (pids) =>
  sum(pids, (pid) => sum(threadsOf(pid), (thread) => cpuOf(pid, thread)));

/** @returns {Record<string, number>} the values of a file with lines `name: number unit`, as bytes or plain numbers */
export const readValues = (file) =>
  Object.fromEntries(
    [...readOrEmpty(file).matchAll(/^([\w()]+):\s+(\d+)( kB)?$/gm)].map(([, name, value, unit]) => [
      name,
      Number(value) * (unit ? 1024 : 1)
    ])
  );

/** @param {number[]} pids @returns {number} their resident bytes: exact, and expensive */
export const residentBytes = (pids) =>
  sum(pids, (pid) => readValues(`/proc/${pid}/smaps_rollup`).Rss);

/** Returns their resident bytes by a cheap counter, which may be some pages behind. */
const approximateResidentBytes = (pids) =>
  sum(pids, (pid) => Number(readOrEmpty(`/proc/${pid}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES);

/** @returns {number} kernel memory of all TCP sockets of this machine, both ends of each connection, in bytes */
const socketBytes = () =>
  Number(/^TCP: .* mem (\d+)$/m.exec(readOrEmpty('/proc/net/sockstat'))[1]) * PAGE_BYTES;

/** Measures the memory of processes from the construction on, and their CPU from begin() on. */
export class UsageMeter {
  #pids;
  #timer;
  #atStart;
  #peak = { resident: 0, sockets: 0 };
  #atBegin;

  /** @param {number[]} pids */
  constructor(pids) {
    this.#pids = pids;
    this.#atStart = this.#sample();
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS);
  }

  #sample() {
    const now = { resident: approximateResidentBytes(this.#pids), sockets: socketBytes() };
    for (const name in now) this.#peak[name] = Math.max(this.#peak[name], now[name]);
    return now;
  }

  begin() {
    this.#atBegin = { cpu: cpuSeconds(this.#pids), ...this.#sample() };
  }

  /**
   * @returns {object} `cpu`: seconds since begin(); in bytes: `residentWarm` at begin(), and for `resident` and
   *     `sockets` `…Before` at the construction and `…Peak`
   */
  end() {
    this.#sample();
    return {
      ...{ cpu: cpuSeconds(this.#pids) - this.#atBegin.cpu, residentWarm: this.#atBegin.resident },
      ...{ residentBefore: this.#atStart.resident, residentPeak: this.#peak.resident },
      ...{ socketsBefore: this.#atStart.sockets, socketsPeak: this.#peak.sockets }
    };
  }

  /** Stops the sampling. */
  close() {
    clearInterval(this.#timer);
  }
}

/** @returns {Promise<object>} /status of the server at a port of 127.0.0.1 */
export const statusAt = async (port) =>
  (await fetch(`http://127.0.0.1:${port}/status`, { signal: AbortSignal.timeout(5000) })).json();

/** Garbage collections before a resident size counts, and the pause after each, in milliseconds. */
const COLLECTIONS = 3;
const COLLECTION_PAUSE_MS = 1000;

/** Decrease of the resident size that counts as a new low, in bytes. */
const NEW_LOW = 64 * 1024;

/** Interval between two samples until a server is at rest, in milliseconds, and the most samples. */
const REST_SAMPLE_MS = 200;
const MAX_REST_SAMPLES = 300;

/** CPU time between two samples that counts as rest, in seconds. */
const REST_CPU_SECONDS = 0.01;

/**
 * Resolves when the processes use hardly any CPU: they have handled all requests.
 *
 * @param {number[]} pids
 */
export async function untilAtRest(pids) {
  let before = cpuSeconds(pids);
  for (let samples = 0, quietSamples = 0; samples < MAX_REST_SAMPLES; samples++) {
    await sleep(REST_SAMPLE_MS);
    const now = cpuSeconds(pids);
    quietSamples = now - before <= REST_CPU_SECONDS ? quietSamples + 1 : 0;
    if (quietSamples === 2) return;
    before = now;
  }
  throw new Error('the server works on without requests');
}

/** Resolves when resident size has made no new low for `seconds`. */
async function untilNoNewLow(pids, seconds) {
  let lowest = residentBytes(pids);
  for (let since = Date.now(); Date.now() - since < seconds * 1000;) {
    await sleep(REST_SAMPLE_MS);
    const now = residentBytes(pids);
    if (now < lowest - NEW_LOW) since = Date.now();
    lowest = Math.min(lowest, now);
  }
}

/**
 * @param {import('./contenders.js').Server} server
 * @param {{settle: number}} options `settle`: seconds without a new low
 * @returns {Promise<{resident: number, heap: number|undefined}>} resident size and heap of the settled server, in
 *     bytes
 */
export async function memoryOf(server, { settle }) {
  await untilAtRest(server.pids);
  if (!server.probe) return { resident: residentBytes(server.pids) };
  await untilNoNewLow(server.pids, settle);
  let resident = Infinity;
  let heap;
  for (let i = 0; i < COLLECTIONS; i++) {
    heap = (await askProbe(server, { collect: true })).heapUsed;
    await sleep(COLLECTION_PAUSE_MS);
    resident = Math.min(resident, residentBytes(server.pids));
  }
  return { resident, heap };
}

/**
 * @param {import('./contenders.js').Server} server
 * @param {{collect?: boolean}} [what]
 * @returns {Promise<{heapUsed?: number, longestStall?: number}>} probe.js's answer; an empty object for a
 *     server without a probe
 */
export async function askProbe({ probe }, { collect = false } = {}) {
  if (!probe) return {};
  const ended = new AbortController();
  const onExit = () => ended.abort();
  probe.once('exit', onExit);
  try {
    const answer = once(probe, 'message', { signal: ended.signal });
    probe.send({ collect });
    return (await answer)[0];
  } catch (cause) {
    throw new Error('the server has ended', { cause });
  } finally {
    probe.off('exit', onExit);
  }
}
