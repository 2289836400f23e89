import { isHere, listenerOf, nameOf, useOf, versionOf } from './processes.js';

/**
 * What the server takes of its host while it is under load: CPU time and memory. On this host the
 * kernel's account is asked, of all its processes; from another host /metrics of its admin port, which
 * knows the main process alone.
 */

/** Between two looks, in milliseconds: the kernel's account is quick, a scrape is the server's work. */
const EVERY = { kernel: 250, metrics: 1000 };

const MOST_POINTS = 800;

export class ServerWatch {
  #pid = null;
  #name;
  #status;
  #clock;
  #timer;
  #step;
  #busy = false;
  #bySource;

  /** @type {Array<{at: number, cpu: number, memory: number}>} seconds, CPU seconds so far, bytes */
  points = [];

  /** The version that the server says it is, or its package; null when nobody tells. */
  version = null;

  /** The most memory seen, in bytes. */
  most = 0;

  /**
   * @param {object} target
   * @param {string} target.address numeric
   * @param {number} target.port
   * @param {number} [target.statusPort]
   * @param {import('./status.js').StatusReader} status
   */
  constructor({ address, port, statusPort }, status) {
    this.#status = status;
    // What listens on the admin port is the server; on its port it may be a proxy.
    if (isHere(address)) this.#pid = (statusPort && listenerOf(statusPort)) || listenerOf(port);
    this.#name = this.#pid === null ? null : `${nameOf(this.#pid)} ${this.#pid}`;
    this.#bySource = this.#pid === null ? 'metrics' : 'kernel';
  }

  /** @returns {?('kernel' | 'metrics')} who tells; null when nobody does */
  get by() {
    return this.points.length > 0 ? this.#bySource : null;
  }

  /** @returns {?string} the name and number of the process that was looked at, on this host */
  get process() {
    return this.#name;
  }

  /**
   * Looks for the first time, and from then on by itself.
   *
   * @param {() => number} clock seconds since the run began
   */
  async start(clock) {
    this.#clock = clock;
    const metrics = await this.#status.metrics();
    this.version = metrics?.version ?? (this.#pid === null ? null : versionOf(this.#pid));
    await this.look();
    if (this.points.length === 0) return;
    this.#step = EVERY[this.#bySource];
    this.#timer = setInterval(() => this.#lookAgain(), EVERY[this.#bySource]);
  }

  async #lookAgain() {
    const last = this.points.at(-1);
    if (this.#busy || this.#clock() - last.at < this.#step / 1000 - 0.05) return;
    this.#busy = true;
    await this.look();
    this.#busy = false;
  }

  /** @returns {Promise<?{at: number, cpu: number, memory: number}>} a look at it now */
  async look() {
    const use =
      this.#bySource === 'kernel'
        ? useOf(this.#pid)
        : ((await this.#status.metrics())?.use ?? null);
    if (!use) return null;
    const point = { at: Math.round(this.#clock() * 1000) / 1000, ...use };
    this.most = Math.max(this.most, use.memory);
    this.points.push(point);
    if (this.points.length > MOST_POINTS) {
      this.#step *= 2;
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
 * @returns {number} processor cores kept busy in between
 */
export function coresBetween(from, to) {
  return to.at > from.at ? Math.max(0, to.cpu - from.cpu) / (to.at - from.at) : 0;
}
