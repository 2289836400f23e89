import { callBack } from './call-back.js';
import { sendWithGrant, grantFrom } from './grant.js';
import { globalTimers, Requests } from './requests.js';
import { isCount, positive, problemOf } from './answers.js';
import { DEFAULTS } from './limits.js';
import { Waits } from './waits.js';

/**
 * A player of an arena: joins, sends the newest input at the rate that the server sets, and joins
 * again when the server no longer knows it. No DOM.
 *
 * There is one request at a time: over a slow network there are fewer inputs, and none pile up.
 */

const REQUESTS_PER_LEASE = 3; // requests in each lease from a player without news
const NUMBERS_PER_SAVE = 64; // numbers from one saved number to the next
const DEFAULT_LEASE = 30; // seconds, if the server announces no lease
const LONGEST_LEASE = 3600; // upper bound of a lease, in seconds; the lower bound is 1
const MAX_RATE = 1000; // upper bound of the rate, in inputs a second

/** The failure of a request that `stop` has aborted. */
const STOPPED = 'stopped';

/** Reads a player from an answer, or as an earlier run stored it. @returns {object|null} null for an invalid one */
function readIdentity({ player, number, lease }) {
  const isId = typeof player === 'string' && /^[\w-]{1,64}$/.test(player);
  if (!isId || !Number.isSafeInteger(number) || number < 0) return null;
  const seconds = Math.min(Math.max(positive(lease) ?? DEFAULT_LEASE, 1), LONGEST_LEASE);
  return { player, number, lease: seconds };
}

/**
 * @typedef {'joining'|'online'|'offline'} PlayerState
 * @typedef {{player: string, number: number, n: number, lease: number}} SavedPlayer state for
 *     being the same player after a reload
 */

/** Returns the time between two inputs, in milliseconds. */
const intervalOf = (rate) => 1000 / Math.min(positive(rate) ?? 4, MAX_RATE);

export class Player {
  #base;
  #requests;
  #waits;
  #onState;
  #onSave;
  #grant;

  #identity = null; // {player, number, lease}
  #inputNumber = 0;
  #savedNumber = 0;
  #allInput = {}; // all input of this game: it is sent whole after a new join
  #unsentInput = {}; // input that is not sent yet
  #interval = 250; // ms
  #lastSentAt = -Infinity; // when the last input was sent
  #failures = 0;
  #run = 0;
  #controller = null; // AbortController of the current request
  #gameCount = 0; // counts `startGame`: answers to inputs of an earlier game don't count for this one

  #wasLost = false; // the server has forgotten this player
  #reportedState; // the state reported last

  /** @type {PlayerState} */
  state = 'joining';

  /**
   * @param {object} parts
   * @param {string} parts.base URL of the arena's requests, such as http://127.0.0.1:8080/arena/hall
   * @param {(state: PlayerState, about: {why?: string, again?: boolean, number?: number}) => void}
   *     parts.onState `again`: the player has joined again, after the server had forgotten it
   * @param {(saved: SavedPlayer|null) => void} [parts.onSave]
   * @param {SavedPlayer|null} [parts.saved] from an earlier run
   * @param {() => string | undefined | Promise<string | undefined>} [parts.grant] returns the grant to join with,
   *     where the server requires one
   * @param {typeof globalThis.fetch} [parts.fetch]
   * @param {import('./requests.js').Timers} [parts.timers]
   * @param {() => number} [parts.random] in [0, 1)
   */
  constructor({
    base,
    onState,
    onSave = () => {},
    saved = null,
    grant,
    fetch = globalThis.fetch,
    timers = globalTimers(),
    random = Math.random
  }) {
    const { requestTimeout } = DEFAULTS;
    this.#base = base;
    this.#requests = new Requests(fetch, timers, { requestTimeout, answerMost: 2 ** 16 });
    this.#waits = new Waits(timers, random, DEFAULTS);
    this.#onState = onState;
    this.#onSave = onSave;
    this.#grant = grantFrom(grant);
    this.#resume(saved);
  }

  #resume(saved) {
    const identity = readIdentity(saved ?? {});
    const { n } = saved ?? {};
    if (identity === null || !isCount(n)) return;
    this.#identity = identity;
    this.#inputNumber = n + 2 * NUMBERS_PER_SAVE; // The earlier run has used some numbers after the saved one.
  }

  /** @returns {number|undefined} this player's number in the game */
  get number() {
    return this.#identity?.number;
  }

  /** @returns {string|undefined} URL to POST to for leaving */
  get leaveUrl() {
    return this.#identity ? `${this.#base}/${this.#identity.player}/leave` : undefined;
  }

  /** @returns {string|undefined} URL to POST the player's name to */
  get nameUrl() {
    return this.#identity ? `${this.#base}/${this.#identity.player}/name` : undefined;
  }

  /** @returns {Record<string, number>} all input of this game */
  get newest() {
    return { ...this.#allInput };
  }

  /** Starts, or goes on after a stop. */
  start() {
    this.#runLoop(++this.#run);
  }

  /** Stops sending, and aborts the current request. */
  stop() {
    this.#run += 1;
    this.#waits.currentWait?.end();
    this.#controller?.abort();
    this.#controller = null;
  }

  /** Sets the rate. @param {number} perSecond most inputs a second */
  setRate(perSecond) {
    this.#interval = intervalOf(perSecond);
    this.#endIdleWait();
  }

  /** Adds input to send. @param {Record<string, number>} input newest values; they replace older ones by name */
  addInput(input) {
    Object.assign(this.#allInput, input);
    Object.assign(this.#unsentInput, input);
    this.#endIdleWait();
  }

  /** Starts another game: forgets the input of the one before, and the problem with it. */
  startGame() {
    this.#allInput = {};
    this.#unsentInput = {};
    this.#gameCount += 1;
    if (this.state === 'online') this.#setState('online', { number: this.number });
  }

  /** Tries now, because the page is visible again, or the network is back. */
  wake() {
    this.#lastSentAt = -Infinity;
    this.#waits.endWait();
  }

  /** Ends a wait for the next input, but no wait after a failure. */
  #endIdleWait() {
    if (this.#waits.currentWait?.isIdle) this.#waits.endWait();
  }

  async #runLoop(run) {
    while (run === this.#run) {
      const wait = this.#identity ? await this.#sendWhenDue() : await this.#join();
      if (run === this.#run && wait?.ms > 0) await this.#waits.sleep(wait);
    }
  }

  /** Waits until there is something to send, or sends it. */
  async #sendWhenDue() {
    const hasUnsent = Object.keys(this.#unsentInput).length > 0;
    const pause = hasUnsent ? this.#interval : (this.#identity.lease * 1000) / REQUESTS_PER_LEASE;
    const ms = this.#lastSentAt + pause - this.#waits.now();
    return ms > 0 ? { ms, isIdle: true } : this.#sendInput();
  }

  async #sendInput() {
    // While there was no contact, the game may have changed. So an empty input goes first: the page learns of it.
    const isProof = this.state === 'offline';
    const news = isProof ? {} : this.#unsentInput;
    const game = this.#gameCount;
    if (!isProof) this.#unsentInput = {};
    this.#lastSentAt = this.#waits.now();
    this.#inputNumber += 1;
    if (this.#inputNumber - this.#savedNumber >= NUMBERS_PER_SAVE) this.save();
    const answer = await this.#send(
      `/${this.#identity.player}?n=${this.#inputNumber}`,
      JSON.stringify(news)
    );
    if (answer.status === 204) {
      this.#failures = 0;
      this.#setState('online', { number: this.#identity.number });
      return isProof ? { ms: this.#interval } : undefined;
    }
    const why = answer.failure ?? problemOf(answer) ?? 'garbage';
    if (why === 'unknown-player') return this.#joinAgain();
    if (why === 'bad-input') {
      // An input of an earlier game may be invalid now: that is no problem to report.
      if (game === this.#gameCount)
        this.#setState('online', { why, number: this.#identity.number });
      return { ms: this.#interval };
    }
    if (game === this.#gameCount) this.#unsentInput = { ...news, ...this.#unsentInput };
    if (why !== 'bad-number') return this.#handleFailure(why, answer);
    this.#inputNumber += 2 * NUMBERS_PER_SAVE;
    return { ms: this.#interval };
  }

  /** Joins again, since the server has forgotten this player. */
  #joinAgain() {
    this.#identity = null;
    this.#wasLost = true;
    callBack(this.#onSave, null);
    this.#unsentInput = { ...this.#allInput };
    this.#setState('joining', { why: 'unknown-player' });
  }

  async #join() {
    const answer = await this.#send('', '', this.#grant);
    if (this.#grant?.noteRefused(problemOf(answer))) return undefined;
    const identity = answer.status === 201 ? readIdentity(answer.json ?? {}) : null;
    if (identity === null) {
      return this.#handleFailure(answer.failure ?? problemOf(answer) ?? 'garbage', answer);
    }
    this.#grant?.noteAccepted();
    const again = this.#wasLost;
    this.#wasLost = false;
    this.#identity = identity;
    this.#inputNumber = 0;
    this.#failures = 0;
    this.#lastSentAt = this.#waits.now();
    this.#interval = intervalOf(answer.json.rate);
    this.#unsentInput = { ...this.#allInput };
    this.save();
    this.#setState('online', { number: identity.number, again });
    return undefined;
  }

  /** Stores the state for a reload. */
  save() {
    this.#savedNumber = this.#inputNumber;
    if (this.#identity) callBack(this.#onSave, { ...this.#identity, n: this.#inputNumber });
  }

  #handleFailure(why, { retryAfter }) {
    if (why === STOPPED) return undefined;
    this.#failures += 1;
    const wait = this.#waits.afterFailure(this.#failures, retryAfter);
    // After too many inputs there is still contact: the newest input goes out a little later.
    if (why !== 'too-many-inputs') this.#setState('offline', { why });
    return { ...wait, ms: Math.max(wait.ms, this.#interval) };
  }

  async #send(path, body, grant = null) {
    const controller = new AbortController();
    this.#controller = controller;
    const send = (grantHeaders) => {
      const headers = { 'content-type': 'text/plain;charset=UTF-8', ...grantHeaders }; // needs no preflight
      const init = { method: 'POST', headers, body };
      return this.#requests.send(`${this.#base}${path}`, init, undefined, controller);
    };
    const answer = await sendWithGrant(grant, send);
    const isStopped = this.#controller !== controller;
    if (!isStopped) this.#controller = null;
    return isStopped && answer.failure ? { status: 0, failure: STOPPED } : answer;
  }

  #setState(state, about) {
    const stateKey = JSON.stringify([state, about.why, about.number]);
    if (stateKey === this.#reportedState && !about.again) return;
    this.#reportedState = stateKey;
    this.state = state;
    callBack(this.#onState, state, about);
  }
}
