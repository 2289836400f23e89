import { callBack } from './call-back.js';
import { askBy, grantBy } from './grant.js';
import { globalTimers, Requests } from './requests.js';
import { positive, problemOf } from './answers.js';
import { DEFAULTS } from './limits.js';
import { Waits } from './waits.js';

/**
 * A player of an arena: joins, sends the newest input as often as it shall, and joins again when the
 * server no longer knows it. No DOM.
 *
 * One request is under way at a time: over a slow network inputs become fewer, and never pile up.
 */

const ALIVE = 3; // times a lease: how often a player without news renews its lease
const SAVED = 64; // numbers between two that are kept
const LEASE = 30; // seconds, where the server does not say
const LONGEST_LEASE = 3600; // seconds, whatever it says; the shortest is 1
const MOST_RATE = 1000; // inputs a second, whatever it says

/** Why there is no answer that was not waited for. */
const STOPPED = 'stopped';

/** What an answer says of a player, or an earlier run has kept. @returns {object|null} null for what is none */
function readSelf({ player, number, lease }) {
  const isId = typeof player === 'string' && /^[\w-]{1,64}$/.test(player);
  if (!isId || !Number.isSafeInteger(number) || number < 0) return null;
  const seconds = Math.min(Math.max(positive(lease) ?? LEASE, 1), LONGEST_LEASE);
  return { player, number, lease: seconds };
}

/**
 * @typedef {'joining'|'online'|'offline'} PlayerState
 * @typedef {{player: string, number: number, n: number, lease: number}} KeptPlayer what is needed to
 *     be the same player after a reload
 */

/** Milliseconds between two inputs. */
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
  #newest = {}; // all that was ever offered in this game: a new join needs it whole
  #news = {}; // what is not sent yet
  #interval = 250; // ms
  #last = -Infinity; // when the last input was sent
  #failures = 0;
  #run = 0;
  #asking = null; // AbortController of the request under way
  #game = 0; // counts `forget`: an answer for an earlier game says nothing of this one

  #wasLost = false; // the server has forgotten it
  #told; // what was said last of the state

  /** @type {PlayerState} */
  state = 'joining';

  /**
   * @param {object} parts
   * @param {string} parts.base URL of the arena's requests, such as http://127.0.0.1:8080/arena/hall
   * @param {(state: PlayerState, about: {why?: string, again?: boolean, number?: number}) => void}
   *     parts.onState `again`: it was out of the game before, and has joined anew
   * @param {(kept: KeptPlayer|null) => void} [parts.keep]
   * @param {KeptPlayer|null} [parts.kept] by an earlier run
   * @param {() => string | undefined | Promise<string | undefined>} [parts.grant] gives the grant to join with, where the
   *     server wants one
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
    this.#n = n + 2 * SAVED; // Some numbers after the kept one have been used.
  }

  /** @returns {number|undefined} what the reducer knows it by */
  get number() {
    return this.#self?.number;
  }

  /** @returns {string|undefined} where to POST that it leaves */
  get leaveUrl() {
    return this.#self ? `${this.#base}/${this.#self.player}/leave` : undefined;
  }

  /** @returns {string|undefined} where to POST what it is called */
  get nameUrl() {
    return this.#self ? `${this.#base}/${this.#self.player}/name` : undefined;
  }

  /** @returns {Record<string, number>} all that was offered in this game */
  get newest() {
    return { ...this.#newest };
  }

  /** Begins, or goes on after a stop. */
  start() {
    this.#go(++this.#run);
  }

  /** Sends nothing more, and waits for nothing. */
  stop() {
    this.#run += 1;
    this.#waits.nap?.end();
    this.#asking?.abort();
    this.#asking = null;
  }

  /** @param {number} perSecond how many inputs to send at most */
  setRate(perSecond) {
    this.#interval = intervalOf(perSecond);
    this.#endNap();
  }

  /** @param {Record<string, number>} input the newest; of what was offered before it replaces what it names */
  offer(input) {
    Object.assign(this.#newest, input);
    Object.assign(this.#news, input);
    this.#endNap();
  }

  /** Another game: what was offered has no meaning in it, and what was amiss with that is over. */
  forget() {
    this.#newest = {};
    this.#news = {};
    this.#game += 1;
    if (this.state === 'online') this.#become('online', { number: this.number });
  }

  /** Trying now is worthwhile: the page is looked at again, the network is back. */
  wake() {
    this.#last = -Infinity;
    this.#waits.endNap();
  }

  /** A wait for the next input ends with news; one after a failure does not. */
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
    // Without contact the round may have become another: the page hears of that before what is not sent yet goes.
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
      // Of an input that came after a change of the game nothing is amiss.
      if (game === this.#game) this.#become('online', { why, number: this.#self.number });
      return { ms: this.#interval };
    }
    if (game === this.#game) this.#news = { ...news, ...this.#news };
    if (why !== 'bad-number') return this.#failed(why, answer);
    this.#n += 2 * SAVED;
    return { ms: this.#interval };
  }

  /** The server knows this player no more: joins anew. */
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

  /** Keeps what a reload needs. */
  save() {
    this.#saved = this.#n;
    if (this.#self) callBack(this.#keep, { ...this.#self, n: this.#n });
  }

  #failed(why, { retryAfter }) {
    if (why === STOPPED) return undefined;
    this.#failures += 1;
    const wait = this.#waits.after(this.#failures, retryAfter);
    // Too many inputs is no loss of contact: the newest goes out a little later.
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
