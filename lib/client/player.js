import { callBack } from './call-back.js';
import { askBy, grantBy } from './grant.js';
import { globalTimers, Requests } from './requests.js';
import { positive, problemOf } from './answers.js';
import { DEFAULTS } from './limits.js';
import { Waits } from './waits.js';

/**
 * A player of an arena: joins, sends the newest input at the rate that the server sets, and joins
 * again when the server no longer knows it. No DOM.
 *
 * There is one request at a time: over a slow network there are fewer inputs, and none pile up.
 */

const ALIVE = 3; // requests in each lease from a player without news
const SAVED = 64; // numbers from one saved number to the next
const LEASE = 30; // seconds, if the server announces no lease
const LONGEST_LEASE = 3600; // upper bound of a lease, in seconds; the lower bound is 1
const MOST_RATE = 1000; // upper bound of the rate, in inputs a second

/** The failure of a request that `stop` has aborted. */
const STOPPED = 'stopped';

/** Reads a player from an answer, or as an earlier run stored it. @returns {object|null} null for an invalid one */
function readSelf({ player, number, lease }) {
  const isId = typeof player === 'string' && /^[\w-]{1,64}$/.test(player);
  if (!isId || !Number.isSafeInteger(number) || number < 0) return null;
  const seconds = Math.min(Math.max(positive(lease) ?? LEASE, 1), LONGEST_LEASE);
  return { player, number, lease: seconds };
}

/**
 * @typedef {'joining'|'online'|'offline'} PlayerState
 * @typedef {{player: string, number: number, n: number, lease: number}} KeptPlayer state for
 *     being the same player after a reload
 */

/** Returns the time between two inputs, in milliseconds. */
const intervalOf = (rate) => 1000 / Math.min(positive(rate) ?? 4, MOST_RATE);

export class Player {
  #base;
  #requests;
  #waits;
  #onState;
  #keep;
  #grant;

  #self = null; // {player, number, lease}
  #n = 0;
  #saved = 0;
  #newest = {}; // all input of this game: it is sent whole after a new join
  #news = {}; // input that is not sent yet
  #interval = 250; // ms
  #last = -Infinity; // when the last input was sent
  #failures = 0;
  #run = 0;
  #asking = null; // AbortController of the current request
  #game = 0; // counts `forget`: answers to inputs of an earlier game don't count for this one

  #wasLost = false; // the server has forgotten this player
  #told; // the state reported last

  /** @type {PlayerState} */
  state = 'joining';

  /**
   * @param {object} parts
   * @param {string} parts.base URL of the arena's requests, such as http://127.0.0.1:8080/arena/hall
   * @param {(state: PlayerState, about: {why?: string, again?: boolean, number?: number}) => void}
   *     parts.onState `again`: the player has joined again, after the server had forgotten it
   * @param {(kept: KeptPlayer|null) => void} [parts.keep]
   * @param {KeptPlayer|null} [parts.kept] from an earlier run
   * @param {() => string | undefined | Promise<string | undefined>} [parts.grant] returns the grant to join with,
   *     where the server requires one
   * @param {typeof globalThis.fetch} [parts.fetch]
   * @param {import('./requests.js').Timers} [parts.timers]
   * @param {() => number} [parts.random] in [0, 1)
   */
  constructor({
    base,
    onState,
    keep = () => {},
    kept = null,
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
    this.#keep = keep;
    this.#grant = grantBy(grant);
    this.#resume(kept);
  }

  #resume(kept) {
    const self = readSelf(kept ?? {});
    const { n } = kept ?? {};
    if (self === null || !Number.isSafeInteger(n)) return;
    this.#self = self;
    this.#n = n + 2 * SAVED; // The earlier run has used some numbers after the saved one.
  }

  /** @returns {number|undefined} this player's number in the game */
  get number() {
    return this.#self?.number;
  }

  /** @returns {string|undefined} URL to POST to for leaving */
  get leaveUrl() {
    return this.#self ? `${this.#base}/${this.#self.player}/leave` : undefined;
  }

  /** @returns {string|undefined} URL to POST the player's name to */
  get nameUrl() {
    return this.#self ? `${this.#base}/${this.#self.player}/name` : undefined;
  }

  /** @returns {Record<string, number>} all input of this game */
  get newest() {
    return { ...this.#newest };
  }

  /** Starts, or goes on after a stop. */
  start() {
    this.#go(++this.#run);
  }

  /** Stops sending, and aborts the current request. */
  stop() {
    this.#run += 1;
    this.#waits.nap?.end();
    this.#asking?.abort();
    this.#asking = null;
  }

  /** Sets the rate. @param {number} perSecond most inputs a second */
  setRate(perSecond) {
    this.#interval = intervalOf(perSecond);
    this.#endNap();
  }

  /** Adds input to send. @param {Record<string, number>} input newest values; they replace older ones by name */
  offer(input) {
    Object.assign(this.#newest, input);
    Object.assign(this.#news, input);
    this.#endNap();
  }

  /** Starts another game: forgets the input of the one before, and the problem with it. */
  forget() {
    this.#newest = {};
    this.#news = {};
    this.#game += 1;
    if (this.state === 'online') this.#become('online', { number: this.number });
  }

  /** Tries now, because the page is visible again, or the network is back. */
  wake() {
    this.#last = -Infinity;
    this.#waits.endNap();
  }

  /** Ends a wait for the next input, but no wait after a failure. */
  #endNap() {
    if (this.#waits.nap?.idle) this.#waits.endNap();
  }

  async #go(run) {
    while (run === this.#run) {
      const wait = this.#self ? await this.#next() : await this.#join();
      if (run === this.#run && wait?.ms > 0) await this.#waits.doze(wait);
    }
  }

  /** Waits until there is something to send, or sends it. */
  async #next() {
    const isNews = Object.keys(this.#news).length > 0;
    const pause = isNews ? this.#interval : (this.#self.lease * 1000) / ALIVE;
    const ms = this.#last + pause - this.#waits.now();
    return ms > 0 ? { ms, idle: true } : this.#send();
  }

  async #send() {
    // While there was no contact, the game may have changed. So an empty input goes first: the page learns of it.
    const isProof = this.state === 'offline';
    const news = isProof ? {} : this.#news;
    const game = this.#game;
    if (!isProof) this.#news = {};
    this.#last = this.#waits.now();
    this.#n += 1;
    if (this.#n - this.#saved >= SAVED) this.save();
    const answer = await this.#ask(`/${this.#self.player}?n=${this.#n}`, JSON.stringify(news));
    if (answer.status === 204) {
      this.#failures = 0;
      this.#become('online', { number: this.#self.number });
      return isProof ? { ms: this.#interval } : undefined;
    }
    const why = answer.failure ?? problemOf(answer) ?? 'garbage';
    if (why === 'unknown-player') return this.#lost();
    if (why === 'bad-input') {
      // An input of an earlier game may be invalid now: that is no problem to report.
      if (game === this.#game) this.#become('online', { why, number: this.#self.number });
      return { ms: this.#interval };
    }
    if (game === this.#game) this.#news = { ...news, ...this.#news };
    if (why !== 'bad-number') return this.#failed(why, answer);
    this.#n += 2 * SAVED;
    return { ms: this.#interval };
  }

  /** Joins again, since the server has forgotten this player. */
  #lost() {
    this.#self = null;
    this.#wasLost = true;
    callBack(this.#keep, null);
    this.#news = { ...this.#newest };
    this.#become('joining', { why: 'unknown-player' });
  }

  async #join() {
    const answer = await this.#ask('', '', this.#grant);
    if (this.#grant?.refused(problemOf(answer))) return undefined;
    const self = answer.status === 201 ? readSelf(answer.json ?? {}) : null;
    if (self === null) {
      return this.#failed(answer.failure ?? problemOf(answer) ?? 'garbage', answer);
    }
    this.#grant?.accepted();
    const again = this.#wasLost;
    this.#wasLost = false;
    this.#self = self;
    this.#n = 0;
    this.#failures = 0;
    this.#last = this.#waits.now();
    this.#interval = intervalOf(answer.json.rate);
    this.#news = { ...this.#newest };
    this.save();
    this.#become('online', { number: self.number, again });
    return undefined;
  }

  /** Stores the state for a reload. */
  save() {
    this.#saved = this.#n;
    if (this.#self) callBack(this.#keep, { ...this.#self, n: this.#n });
  }

  #failed(why, { retryAfter }) {
    if (why === STOPPED) return undefined;
    this.#failures += 1;
    const wait = this.#waits.after(this.#failures, retryAfter);
    // After too many inputs there is still contact: the newest input goes out a little later.
    if (why !== 'too-many-inputs') this.#become('offline', { why });
    return { ...wait, ms: Math.max(wait.ms, this.#interval) };
  }

  async #ask(path, body, grant = null) {
    const asking = new AbortController();
    this.#asking = asking;
    const send = (granted) => {
      const headers = { 'content-type': 'text/plain;charset=UTF-8', ...granted }; // needs no preflight
      const init = { method: 'POST', headers, body };
      return this.#requests.ask(`${this.#base}${path}`, init, undefined, asking);
    };
    const answer = await askBy(grant, send);
    const isStopped = this.#asking !== asking;
    if (!isStopped) this.#asking = null;
    return isStopped && answer.failure ? { status: 0, failure: STOPPED } : answer;
  }

  #become(state, about) {
    const told = JSON.stringify([state, about.why, about.number]);
    if (told === this.#told && !about.again) return;
    this.#told = told;
    this.state = state;
    callBack(this.#onState, state, about);
  }
}
