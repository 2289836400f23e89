import { isCut } from './answers.js';
import { longestWait, shorterHold } from './limits.js';

/**
 * @typedef {object} Wait
 * @property {number} ms
 * @property {boolean} [asked] the server has asked for it
 * @property {boolean} [full] the program has no room: there is no doubt about contact
 * @property {boolean} [idle] there is nothing to send yet
 */

/** How long a client waits, and what ends a wait. */
export class Waits {
  #timers;
  #random;
  #limits;
  #waiters = new Set();
  #cuts = 0; // long polls in a row that were cut off

  /** The wait under way. @type {(Wait & {until: number, end: () => void})|null} */
  nap = null;

  /** How many clients the server has, where that is known. @type {number|null} */
  clients = null;

  holdMost = Infinity; // seconds, as the network between seems to allow

  /**
   * @param {import('./requests.js').Timers} timers
   * @param {() => number} random in [0, 1)
   * @param {import('./limits.js').Limits} limits
   */
  constructor(timers, random, limits) {
    this.#timers = timers;
    this.#random = random;
    this.#limits = limits;
  }

  /** @returns {number} ms */
  now() {
    return this.#timers.now();
  }

  /**
   * Full jitter: a wait anywhere between zero and an upper end that doubles with every failure.
   *
   * @param {number} failures in a row, from 1
   * @returns {number} ms
   */
  backoff(failures) {
    return this.#random() * longestWait(failures, this.clients, this.#limits);
  }

  /**
   * Retry-After is the same whole second for all clients: adds up to half of it.
   *
   * @param {number} ms
   * @returns {number} ms
   */
  spread(ms) {
    return Math.min(ms * (1 + this.#random() / 2), this.#limits.pauseMost);
  }

  /**
   * @param {number} failures in a row, from 1
   * @param {number} [retryAfter] ms, where the server says so
   * @returns {Wait} after a failure
   */
  after(failures, retryAfter) {
    const ms = this.backoff(failures);
    if (!retryAfter) return { ms };
    return { ms: Math.max(ms, this.spread(retryAfter)), asked: true };
  }

  /**
   * A poll has ended that was parked for long. What cuts off two in a row cuts off what is idle: a shorter hold is due.
   *
   * @param {{status?: number, json?: any, failure?: string}} answer
   * @param {number} took ms
   * @returns {boolean} whether it was cut off
   */
  endLongPoll(answer, took) {
    const wasCut = isCut(answer);
    this.#cuts = wasCut ? this.#cuts + 1 : 0;
    if (this.#cuts >= 2) this.holdMost = shorterHold(took, this.holdMost, this.#limits);
    return wasCut;
  }

  /** Waits, until it is over or ended. @param {Wait} wait */
  async doze(wait) {
    let end = () => {};
    const over = new Promise((resolve) => {
      const timer = this.#timers.setTimeout(() => resolve(undefined), wait.ms);
      end = () => {
        this.#timers.clearTimeout(timer);
        resolve(undefined);
      };
    });
    const nap = { ...wait, until: this.now() + wait.ms, end };
    this.nap = nap;
    await over;
    if (this.nap === nap) this.nap = null;
  }

  /** Ends the wait under way, but none that the server has asked for. */
  endNap() {
    if (!this.nap?.asked) this.nap?.end();
  }

  /** @returns {{ms: number, asked: boolean}|null} the wait under way */
  get nextTry() {
    if (!this.nap) return null;
    const { until, asked = false } = this.nap;
    return { ms: Math.max(0, until - this.now()), asked };
  }

  /** Something has changed: callers that wait for it look again. */
  changed() {
    for (const look of [...this.#waiters]) look();
  }

  /**
   * Waits for a change.
   *
   * @param {() => boolean} isTrue
   * @param {number} end by the clock of `now`
   * @param {() => boolean} isOver whether to give up before
   * @returns {Promise<boolean>} whether it came true
   */
  until(isTrue, end, isOver) {
    return new Promise((resolve) => {
      let timer;
      const look = () => {
        if (!isTrue() && !isOver() && this.now() < end) return false;
        this.#timers.clearTimeout(timer);
        this.#waiters.delete(look);
        resolve(isTrue());
        return true;
      };
      if (look()) return;
      this.#waiters.add(look);
      const wait = () => {
        const left = Math.max(1, end - this.now());
        timer = this.#timers.setTimeout(() => look() || wait(), left);
      };
      wait();
    });
  }
}
