import { isCut } from './answers.js';
import { longestWait, shorterHold } from './limits.js';

/**
 * @typedef {object} Wait
 * @property {number} ms
 * @property {boolean} [asked] the server has asked for the wait
 * @property {boolean} [full] the program has no room: there is no doubt about contact
 * @property {boolean} [idle] there is nothing to send yet
 */

/** The waits of a client. */
export class Waits {
  #timers;
  #random;
  #limits;
  #waiters = new Set();
  #cuts = 0; // long polls in a row that were cut off

  /** The current wait. @type {(Wait & {until: number, end: () => void})|null} */
  nap = null;

  /** Number of the server's clients; null: unknown. @type {number|null} */
  clients = null;

  holdMost = Infinity; // longest hold that the network seems to allow, in seconds

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
   * Returns a backoff with full jitter: a time between zero and a bound that doubles with every failure.
   *
   * @param {number} failures in a row, from 1
   * @returns {number} ms
   */
  backoff(failures) {
    return this.#random() * longestWait(failures, this.clients, this.#limits);
  }

  /**
   * Adds up to a half to a Retry-After, which is the same whole second for all clients.
   *
   * @param {number} ms
   * @returns {number} ms
   */
  spread(ms) {
    return Math.min(ms * (1 + this.#random() / 2), this.#limits.pauseMost);
  }

  /**
   * Returns the wait after a failure.
   *
   * @param {number} failures in a row, from 1
   * @param {number} [retryAfter] ms, if the server has sent it
   * @returns {Wait}
   */
  after(failures, retryAfter) {
    const ms = this.backoff(failures);
    if (!retryAfter) return { ms };
    return { ms: Math.max(ms, this.spread(retryAfter)), asked: true };
  }

  /**
   * Notes the end of a long poll. After two in a row that were cut off, the hold gets shorter: the network cuts off
   * idle connections.
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

  /** Waits until the time is over, or `nap.end` is called. @param {Wait} wait */
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

  /** Ends the current wait, unless the server has asked for it. */
  endNap() {
    if (!this.nap?.asked) this.nap?.end();
  }

  /** @returns {{ms: number, asked: boolean}|null} the current wait */
  get nextTry() {
    if (!this.nap) return null;
    const { until, asked = false } = this.nap;
    return { ms: Math.max(0, until - this.now()), asked };
  }

  /** Makes all callers of `until` check their condition again. */
  changed() {
    for (const look of [...this.#waiters]) look();
  }

  /**
   * Waits until a condition is true.
   *
   * @param {() => boolean} isTrue
   * @param {number} end by the clock of `now`
   * @param {() => boolean} isOver whether to give up before `end`
   * @returns {Promise<boolean>} whether the condition is true
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
