import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { join, resolve } from 'node:path';

import { localInterfaces } from '../base/lan-addresses.js';
import { roundedToMs } from '../report/words.js';

/**
 * Samples the server's CPU time and memory under load: on this host from the kernel, for all of the server's
 * processes; on another host from /metrics of its admin port.
 */

/** Interval between two samples, in milliseconds: /proc is cheap, but a scrape is work for the server. */
const SAMPLE_INTERVALS = { kernel: 250, metrics: 1000 };

const MAX_POINTS = 800;

export class ServerWatch {
  #pid = null;
  #status;
  #clock;
  #timer;
  #interval;
  #isSampling = false;
  #figuresSource;

  /** @type {Array<{at: number, cpu: number, memory: number}>} seconds, CPU seconds so far, bytes */
  points = [];

  /** Name and id of the watched process on this host; null: none is known. @type {?string} */
  process;

  /** Version of the server or its package; null: unknown. */
  version = null;

  /** Most memory of all samples, in bytes. */
  peakMemory = 0;

  /**
   * @param {object} target
   * @param {string} target.address numeric address
   * @param {number} target.port
   * @param {number} [target.statusPort]
   * @param {import('./status.js').StatusReader} status
   */
  constructor({ address, port, statusPort }, status) {
    this.#status = status;
    // The process that listens on the admin port is the server; on the server's port it may be a proxy.
    const listenerAt = (at) => listenerOf(address, at);
    if (isLocalAddress(address))
      this.#pid = (statusPort && listenerAt(statusPort)) || listenerAt(port);
    this.process = this.#pid === null ? null : `${nameOf(this.#pid)} ${this.#pid}`;
    this.#figuresSource = this.#pid === null ? 'metrics' : 'kernel';
  }

  /** @returns {?('kernel' | 'metrics')} the source of the figures; null when there is none */
  get source() {
    return this.points.length > 0 ? this.#figuresSource : null;
  }

  /**
   * Takes the first sample, and starts the timer of the next ones.
   *
   * @param {() => number} clock seconds since the run began
   */
  async start(clock) {
    this.#clock = clock;
    const metrics = await this.#status.metrics();
    this.version = metrics?.version ?? (this.#pid === null ? null : versionOf(this.#pid));
    await this.sample();
    if (this.points.length === 0) return;
    this.#interval = SAMPLE_INTERVALS[this.#figuresSource];
    this.#timer = setInterval(() => this.#sampleIfDue(), SAMPLE_INTERVALS[this.#figuresSource]);
  }

  async #sampleIfDue() {
    const last = this.points.at(-1);
    if (this.#isSampling || this.#clock() - last.at < this.#interval / 1000 - 0.05) return;
    this.#isSampling = true;
    await this.sample();
    this.#isSampling = false;
  }

  /** @returns {Promise<?{at: number, cpu: number, memory: number}>} a sample taken now; null: unknown */
  async sample() {
    const use =
      this.#figuresSource === 'kernel'
        ? useOf(this.#pid)
        : ((await this.#status.metrics())?.use ?? null);
    if (!use) return null;
    const point = { at: roundedToMs(this.#clock()), ...use };
    this.peakMemory = Math.max(this.peakMemory, use.memory);
    this.points.push(point);
    if (this.points.length > MAX_POINTS) {
      this.#interval *= 2;
      this.points = this.points.filter((_, i) => i % 2 === 0);
    }
    return point;
  }

  stop() {
    clearInterval(this.#timer);
  }
}

/**
 * @param {{at: number, cpu: number}} from
 * @param {{at: number, cpu: number}} to
 * @returns {number} mean number of busy processor cores in between
 */
export function coresBetween(from, to) {
  return to.at > from.at ? Math.max(0, to.cpu - from.cpu) / (to.at - from.at) : 0;
}

/**
 * Processes of this host, from /proc: which process listens on a port, and its CPU time and memory. Without
 * permission to read /proc these are unknown.
 */

/** The kernel's unit of CPU time on every Linux that Node runs on: USER_HZ. */
const TICKS_A_SECOND = 100;

/** State of a listening socket in /proc/net/tcp. */
const LISTENING = '0A';

/** Returns undefined if reading fails: a process may be gone or another user's; a command line may hold anything. */
function valueOrUndefined(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/**
 * @param {string} address numeric address
 * @returns {boolean} whether the address is one of this host's
 */
function isLocalAddress(address) {
  if (address.startsWith('127.')) return true;
  return Object.values(localInterfaces())
    .flat()
    .some((one) => one.address === address);
}

/**
 * @param {string} address numeric address
 * @param {number} port
 * @returns {?number} id of the process that listens on this port, at the address or at all addresses; null: unknown
 */
function listenerOf(address, port) {
  const hex = (number, digits) => Number(number).toString(16).toUpperCase().padStart(digits, '0');
  // For an IPv6 address every local address matches.
  const parts = isIPv4(address) ? address.split('.').reverse() : [];
  const hexAddress = parts.map((part) => hex(part, 2)).join('');
  const localAddress = new RegExp(`(^0+|${hexAddress}):${hex(port, 4)}$`);
  const inodes = new Set(
    ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => inodesIn(file, localAddress))
  );
  if (inodes.size === 0) return null;
  const links = new Set([...inodes].map((inode) => `socket:[${inode}]`));
  const isListening = (pid) =>
    (valueOrUndefined(() => readdirSync(`/proc/${pid}/fd`)) ?? []).some((fd) =>
      links.has(valueOrUndefined(() => readlinkSync(`/proc/${pid}/fd/${fd}`)))
    );
  const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  // Of processes that share a listening socket the parent is wanted: it has the lowest id.
  return (
    pids
      .map(Number)
      .sort((a, b) => a - b)
      .find(isListening) ?? null
  );
}

function inodesIn(file, localAddress) {
  const [, ...lines] = (valueOrUndefined(() => readFileSync(file, 'utf8')) ?? '').split('\n');
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => state === LISTENING && localAddress.test(local))
    .map((fields) => fields[9]);
}

/** @param {number} pid @returns {number[]} the process and all its descendants */
function processTree(pid) {
  const children =
    valueOrUndefined(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')) ?? '';
  return [pid, ...children.split(' ').filter(Boolean).map(Number).flatMap(processTree)];
}

/**
 * @param {number} pid
 * @returns {?{cpu: number, memory: number}} of the process and all its descendants: seconds of CPU time, and
 *     resident bytes (shared pages count for each process); null when the process has ended
 */
export function useOf(pid) {
  const processUses = processTree(pid).map(useOfProcess).filter(Boolean);
  if (processUses.length === 0) return null;
  const sumOf = (name) => processUses.reduce((all, use) => all + use[name], 0);
  return { cpu: sumOf('cpu'), memory: sumOf('memory') };
}

function useOfProcess(pid) {
  const stat = valueOrUndefined(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const status = valueOrUndefined(() => readFileSync(`/proc/${pid}/status`, 'utf8'));
  if (!stat || !status) return null;
  // The name, in parentheses, may contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system] = [fields[11], fields[12]].map(Number);
  const resident = /^VmRSS:\s+(\d+) kB/m.exec(status)?.[1];
  // A zombie process has no VmRSS.
  if (resident === undefined) return null;
  return { cpu: (user + system) / TICKS_A_SECOND, memory: Number(resident) * 1024 };
}

/** @param {number} pid @returns {string} the name of the process's program */
function nameOf(pid) {
  return valueOrUndefined(() => readFileSync(`/proc/${pid}/comm`, 'utf8'))?.trim() ?? 'process';
}

/**
 * @param {number} pid
 * @returns {?string} the version of Sprites that the process runs, from the package.json above its program
 */
function versionOf(pid) {
  const [, program] = (valueOrUndefined(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ?? '')
    .split('\0')
    .filter((word) => !word.startsWith('--'));
  const folder = valueOrUndefined(() => readlinkSync(`/proc/${pid}/cwd`));
  if (!program || !folder) return null;
  for (const parentFolder of ['..', '../..']) {
    const file = () => join(realpathSync(resolve(folder, program)), parentFolder, 'package.json');
    const packageJson = valueOrUndefined(() => JSON.parse(readFileSync(file(), 'utf8')));
    if (packageJson?.name === 'sprites-server') return packageJson.version;
  }
  return null;
}
