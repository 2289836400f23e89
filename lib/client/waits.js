import { isCutOff } from './answers.js';
import { longestWait, shorterHold } from './limits.js';

/**
 * @typedef {object} Wait
 * @property {number} ms
 * @property {boolean} [asked] the server has asked for the wait
 * @property {boolean} [isFull] the program has no room: there is no doubt about contact
 * @property {boolean} [isIdle] there is nothing to send yet
 */

/** The waits of a client. */
export class Waits {
  #timers;
  #random;
  #limits;
  #waiters = new Set();
  #pollsCutOff = 0; // long polls in a row that were cut off

  /** The current wait. @type {(Wait & {until: number, end: () => void})|null} */
  currentWait = null;

  /** Number of clients in the torus; null: unknown. @type {number|null} */
  clients = null;

  maxHold = Infinity; // longest hold that the network seems to allow, in seconds

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
  addJitter(ms) {
    return Math.min(ms * (1 + this.#random() / 2), this.#limits.pauseMost);
  }

  /**
   * Returns the wait after a failure.
   *
   * @param {number} failures in a row, from 1
   * @param {number} [retryAfter] ms, if the server has sent it
   * @returns {Wait}
   */
  afterFailure(failures, retryAfter) {
    const ms = this.backoff(failures);
    if (!retryAfter) return { ms };
    return { ms: Math.max(ms, this.addJitter(retryAfter)), asked: true };
  }

  /**
   * Notes the end of a long poll. After two in a row that were cut off, the hold gets shorter: the network cuts off
   * idle connections.
   *
   * @param {{status?: number, json?: any, failure?: string}} answer
   * @param {number} parkedTime ms
   * @returns {boolean} whether it was cut off
   */
  noteLongPoll(answer, parkedTime) {
    const wasCutOff = isCutOff(answer);
    this.#pollsCutOff = wasCutOff ? this.#pollsCutOff + 1 : 0;
    if (this.#pollsCutOff >= 2) this.maxHold = shorterHold(parkedTime, this.maxHold, this.#limits);
    return wasCutOff;
  }

  /** Waits until the time is over, or `currentWait.end` is called. @param {Wait} wait */
  async sleep(wait) {
    let end = () => {};
    const ended = new Promise((resolve) => {
      const timer = this.#timers.setTimeout(() => resolve(undefined), wait.ms);
      end = () => {
        this.#timers.clearTimeout(timer);
        resolve(undefined);
      };
    });
    const started = { ...wait, until: this.now() + wait.ms, end };
    this.currentWait = started;
    await ended;
    if (this.currentWait === started) this.currentWait = null;
  }

  /** Ends the current wait, unless the server has asked for it. */
  endWait() {
    if (!this.currentWait?.asked) this.currentWait?.end();
  }

  /** @returns {{ms: number, asked: boolean}|null} the current wait */
  get nextTry() {
    if (!this.currentWait) return null;
    const { until, asked = false } = this.currentWait;
    return { ms: Math.max(0, until - this.now()), asked };
  }

  /** Makes all callers of `until` check their condition again. */
  recheck() {
    for (const check of [...this.#waiters]) check();
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
      const check = () => {
        if (!isTrue() && !isOver() && this.now() < end) return false;
        this.#timers.clearTimeout(timer);
        this.#waiters.delete(check);
        resolve(isTrue());
        return true;
      };
      if (check()) return;
      this.#waiters.add(check);
      const startTimer = () => {
        const timeLeft = Math.max(1, end - this.now());
        timer = this.#timers.setTimeout(() => check() || startTimer(), timeLeft);
      };
      startTimer();
    });
  }
}
