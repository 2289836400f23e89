/**
 * The sprites protocol: join, poll, ack, throw, leave. No DOM and no dependency: the page imports
 * it as a plain module, Node programs as `sprites/protocol`.
 *
 *     import { Client } from 'sprites/protocol';
 *
 *     const client = new Client({
 *       base: 'http://127.0.0.1:8080',
 *       onSprite: (sprite, { from }) => console.log('in by the', from, 'edge:', sprite),
 *       onState: (state, { why }) => console.log(state, why ?? ''),
 *     });
 *     client.start();
 *     const outcome = await client.throw('left', { id: 'hello', picture: 'star' });
 *     console.log(outcome.thrown, outcome.state);
 *     await client.leave();
 *
 * States:
 *
 *     left ──start()──▶ joining ──▶ online ⇄ offline     offline: no answer, and trying again
 *      ▲                   ▲  ▲───────┴────────┘          (back to joining: the id is forgotten)
 *      └─── leave()        └──start()── superseded        another program polls with this id
 *
 * What it promises:
 *
 * - Each sprite of a place is handed to `onSprite` once, in order, however often the server sends
 *   it. It is acked by the next poll, after `onSprite` has returned. Where `onSprite` returns
 *   false there is no room: that one and those after it stay in the mailbox, and come again later.
 * - A throw that got no answer is repeated with the same number, so that it arrives once. Where the
 *   number of attempts ends first, the outcome says that nobody knows (`thrown: null`) and carries
 *   the ticket with which to ask again.
 * - It never asks in a tight loop: failures wait by exponential backoff with full jitter, `retry`
 *   and Retry-After are waited out, and both waits and attempts have a bound.
 *
 * Rejected: an EventTarget (three callbacks are all there is to say), an async iterator for the
 * sprites (it would have to hold what nobody asks for: a queue without a bound), and asking
 * /place after every failure (a restart would bring every client to the server's slowest route;
 * a poll with a short hold proves as much).
 */

/** The edges of a desktop. */
export const EDGES = Object.freeze(['left', 'right', 'up', 'down']);

const OPPOSITES = Object.freeze({ left: 'right', right: 'left', up: 'down', down: 'up' });
const ACCEPTED = new Set(['delivered', 'queued', 'duplicate']);

/** Times are milliseconds, unless their name says otherwise. */
const DEFAULTS = Object.freeze({
  backoffFirst: 500, // upper end of the first wait after a failure
  backoffMost: 15_000, // of any: below a lease of 30 s, to be back in time for the old place
  pauseMost: 600_000, // of "retry" and Retry-After, whatever the server says
  requestTimeout: 10_000, // join, throw, leave, place, status
  pollSlack: 15_000, // how much longer than its hold a poll may take
  doubtSlack: 5000, // the same for the short poll that is to find out whether anyone is there
  busyLeast: 250, // between two attempts of a throw that found the server busy
  lookTrust: 3, // failed polls in a row up to which a look that succeeds cuts the wait short
  quick: 1000, // an empty poll answered sooner than this counts as a failure
  long: 10_000, // a poll parked so long tells whether the network lets it park
  attempts: 5, // of one throw that gets no answer
  answerMost: 16 * 1024 * 1024, // characters in one answer
  holdLeast: 5, // seconds: the shortest hold the server takes
  holdUnknown: 120 // seconds: the server's hold, as long as it has not said
});

/**
 * The edge by which a sprite thrown off `edge` enters.
 *
 * @param {'left'|'right'|'up'|'down'} edge
 * @returns {'left'|'right'|'up'|'down'}
 */
export function opposite(edge) {
  return OPPOSITES[edge];
}

/**
 * Full jitter: a wait anywhere between zero and an upper end that doubles with every failure.
 *
 * @param {number} failures in a row, from 1
 * @param {number} first upper end of the first wait, ms
 * @param {number} most upper end of any, ms
 * @param {() => number} random in [0, 1)
 * @returns {number} ms
 */
export function backoff(failures, first, most, random) {
  return random() * Math.min(most, first * 2 ** Math.min(failures - 1, 30));
}

/**
 * What is needed to come back to a place, after a reload for example: keep it where only this
 * client reads it, since the id is a capability. Plain JSON.
 *
 * @typedef {object} Resume
 * @property {string} id the place
 * @property {number} ack the last sequence number handed out
 * @property {number} n the last number given to a throw
 * @property {number} [hold] seconds
 * @property {number} [lease] seconds
 * @property {number} [maxSprite] bytes
 * @property {number} [transient] port
 */

/**
 * The number of one throw. Plain JSON: a program that keeps it can ask again after a restart.
 *
 * @typedef {object} Ticket
 * @property {string|null} id the place it was thrown from
 * @property {number} n
 * @property {boolean} tried whether a request with it may have reached the server unanswered
 */

/**
 * What became of a throw.
 *
 * @typedef {object} Outcome
 * @property {boolean|null} thrown true: the server is answerable for the sprite; false: it is still
 *     yours; null: nobody knows
 * @property {string} state thrown: `delivered` to a parked poll, `queued` in the neighbor's
 *     mailbox, `duplicate` thrown by an earlier attempt. Yours: `busy` try later, `refused` it
 *     won't be taken as it is, `offline` no place to throw from. Not known: `unanswered` throw it again with the same
 *     ticket, `forgotten` the server has forgotten this place, so no later answer will tell
 * @property {string} [problem] the problem's name, such as `neighbor-busy`
 * @property {number} [retryAfter] ms after which another throw has a chance
 * @property {Ticket} ticket
 */

/** One desktop's place in the torus. */
export class Client {
  #base;
  #fetch;
  #timers;
  #random;
  #limits;
  #onSprite;
  #onState;
  #onResume;

  #state = 'left';
  #why;
  #id = null;
  #ack = 0;
  #n = 0;
  #hold; // seconds, as the server said
  #holdMost = Infinity; // seconds, as the network between seems to allow
  #lease;
  #maxSprite;
  #transient;

  #run = 0; // counts starts and stops: a loop of an older run ends
  #failures = 0;
  #cuts = 0; // long polls in a row that were cut off
  #strayMisses = 0; // 404 in a row that no sprites server wrote
  #doubt = true; // poll with the shortest hold, to learn soon whether anyone is there
  #loopAsks = null; // AbortController of the join or poll under way
  #poll = null; // {since, again} of the parked poll
  #nap = null; // {end, firm} of the loop's wait
  #waiters = new Set(); // throws that wait for the state to change
  #busy = {}; // {until, problem} by edge, and of all of them

  /**
   * @param {object} options
   * @param {string} options.base the server's URL, such as `http://127.0.0.1:8080`
   * @param {(sprite: object, entry: {from: string, seq: number}) => unknown} options.onSprite
   *     called once per sprite. `false` leaves it in the mailbox, to be called with it again after
   *     a wait, which `wake` ends. What it throws is reported as an uncaught error; the sprite
   *     counts as handed out
   * @param {(state: string, about: {why?: string}) => void} [options.onState] called on every
   *     change; `why` is a problem's name, `network`, `garbage` or `slow`
   * @param {(resume: Resume|null) => void} [options.onResume] called whenever what `start` would
   *     need to come back has changed; before a throw is sent and after sprites were handed out
   * @param {Resume|null} [options.resume] what `onResume` said last
   * @param {typeof globalThis.fetch} [options.fetch]
   * @param {{setTimeout: Function, clearTimeout: Function, now: () => number}} [options.timers]
   * @param {() => number} [options.random]
   * @param {object} [options.limits] see DEFAULTS in this file
   * @throws {TypeError} when base is no URL
   */
  constructor({
    base,
    onSprite,
    onState = () => {},
    onResume = () => {},
    resume = null,
    fetch = globalThis.fetch,
    timers = globalTimers(),
    random = Math.random,
    limits = {}
  }) {
    this.#base = new URL(base);
    this.#onSprite = onSprite;
    this.#onState = onState;
    this.#onResume = onResume;
    // A browser's fetch insists on its own `this`.
    this.#fetch = (...args) => fetch.apply(globalThis, args);
    this.#timers = timers;
    this.#random = random;
    this.#limits = { ...DEFAULTS, ...limits };
    const kept = readResume(resume);
    if (kept) this.#take(kept, kept);
  }

  /** @returns {'left'|'joining'|'online'|'offline'|'superseded'} */
  get state() {
    return this.#state;
  }

  /** @returns {string|undefined} why it is in this state, where there is something to say */
  get why() {
    return this.#why;
  }

  /** @returns {string|null} this client's id: a capability, not to be shown to anyone */
  get id() {
    return this.#id;
  }

  /** @returns {number|undefined} the largest sprite the server takes, in bytes of JSON */
  get maxSprite() {
    return this.#maxSprite;
  }

  /** @returns {number|undefined} seconds without a poll after which the place is lost */
  get lease() {
    return this.#lease;
  }

  /** @returns {Resume|null} what a later client needs to take up this place */
  get resume() {
    if (!this.#id) return null;
    return {
      id: this.#id,
      ack: this.#ack,
      n: this.#n,
      hold: this.#hold,
      lease: this.#lease,
      maxSprite: this.#maxSprite,
      transient: this.#transient
    };
  }

  /** Joins, or takes up the place of `resume`, and polls until `stop` or `leave`. */
  start() {
    if (this.#state !== 'left' && this.#state !== 'superseded') return;
    this.#run += 1;
    this.#failures = 0;
    this.#doubt = true;
    this.#become('joining');
    this.#loop(this.#run);
  }

  /**
   * Stops polling, but keeps the place: the lease runs from here. Throws under way end as soon as
   * they are answered or known to be unanswered.
   */
  stop() {
    this.#halt();
    this.#become('left');
  }

  /**
   * Leaves the torus. A join still under way is given up; what it may have got ends with its lease.
   *
   * @returns {Promise<boolean>} whether the server said so; otherwise the place ends with its lease
   */
  async leave() {
    const url = this.leaveUrl;
    this.#halt();
    this.#id = null;
    this.#become('left');
    this.#onResume(null);
    if (!url) return true;
    try {
      const answer = await this.#ask(url, { method: 'POST' });
      return answer.status === 204;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return false;
    }
  }

  /**
   * Where to POST in order to leave, for `navigator.sendBeacon` in a page that goes away.
   *
   * @returns {string|null}
   */
  get leaveUrl() {
    return this.#id && this.#url(`leave/${this.#id}`, { transient: true });
  }

  /**
   * Something happened that makes trying now worthwhile: the machine woke up, the network came
   * back, the page is looked at again. Ends a wait the client chose itself (not one the server
   * asked for), and asks again where a parked poll may hang on a dead connection.
   */
  wake() {
    if (this.#nap && !this.#nap.firm) this.#nap.end();
    if (this.#poll && this.#timers.now() - this.#poll.since >= this.#limits.quick) {
      this.#doubt = true;
      this.#poll.again = true;
      this.#loopAsks.abort();
    }
  }

  /**
   * Where this client is in the torus.
   *
   * @returns {Promise<{row: number, column: number, rows: number, columns: number}|null>} null when
   *     there is no answer
   */
  async place() {
    const id = this.#id;
    if (!id) return null;
    const answer = await this.#look(`place/${id}`, { provesId: true });
    if (answer && isUnknown(answer)) this.#forget(id, 'unknown-client');
    if (answer?.status !== 200) return null;
    const { row, column, rows, columns } = answer.json ?? {};
    return [row, column, rows, columns].every(Number.isSafeInteger)
      ? { row, column, rows, columns }
      : null;
  }

  /**
   * The server's live counts.
   *
   * @returns {Promise<object|null>} null when there is no answer
   */
  async status() {
    const answer = await this.#look('status');
    return answer?.status === 200 && isObject(answer.json) ? answer.json : null;
  }

  /**
   * A number for a throw to come. Only needed by who wants to keep it before the throw is sent.
   *
   * @returns {Ticket}
   */
  ticket() {
    this.#n += 1;
    if (this.#id) this.#onResume(this.resume);
    return { id: this.#id, n: this.#n, tried: false };
  }

  /**
   * Throws a sprite off an edge.
   *
   * @param {'left'|'right'|'up'|'down'} edge
   * @param {object|string} sprite an object, or its JSON
   * @param {object} [options]
   * @param {number} [options.patience] ms to go on trying while the server says it is busy, or
   *     while there is no place to throw from; 0 to be told at once
   * @param {Ticket} [options.ticket] of an earlier outcome, to throw the same sprite again
   * @returns {Promise<Outcome>}
   * @throws {TypeError} on an edge that isn't one
   */
  async throw(edge, sprite, { patience = 5000, ticket = this.ticket() } = {}) {
    if (!EDGES.includes(edge)) throw new TypeError(`${edge} is no edge: ${EDGES.join(', ')}`);
    const body = typeof sprite === 'string' ? sprite : JSON.stringify(sprite);
    const end = this.#timers.now() + patience;
    const say = (thrown, state, more) => ({ thrown, state, ...more, ticket });
    // As long as an earlier attempt may have got through, a refusal proves nothing.
    const mine = () => (ticket.tried ? null : false);

    if (this.#maxSprite && new TextEncoder().encode(body).length > this.#maxSprite) {
      return say(mine(), 'refused', { problem: 'sprite-too-large' });
    }
    for (let unanswered = 0; ;) {
      if (this.#state === 'left') {
        return ticket.tried ? say(null, 'unanswered') : say(false, 'offline');
      }
      if (!this.#id || ticket.id !== this.#id) {
        if (ticket.tried) return say(null, 'forgotten');
        if (!this.#id && !(await this.#joined(end))) return say(false, 'offline');
        ticket.id = this.#id;
      }
      const busy = this.#isBusy(edge);
      if (busy) {
        const { problem, until } = busy;
        const retryAfter = until - this.#timers.now();
        const state = ticket.tried ? 'unanswered' : 'busy';
        if (until > end) return say(mine(), state, { problem, retryAfter });
        await this.#sleep(retryAfter);
        continue;
      }

      const doubtful = ticket.tried;
      const transient = this.#transient;
      const path = `throw/${ticket.id}/${edge}?n=${ticket.n}`;
      ticket.tried = true;
      let answer;
      try {
        answer = await this.#ask(this.#url(path, { transient: true }), {
          method: 'POST',
          headers: { 'content-type': 'text/plain;charset=UTF-8' }, // needs no preflight
          body
        });
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        // Some networks let only the main port through: from here on it will do.
        if (transient && this.#transient === transient) this.#transient = undefined;
      }

      const problem = answer && problemOf(answer);
      if (answer?.status === 202 && ACCEPTED.has(answer.json?.state)) {
        return say(true, answer.json.state);
      }
      if (problem === 'unknown-client') {
        this.#forget(ticket.id, problem);
        if (doubtful) return say(null, 'forgotten', { problem });
        ticket.tried = false;
        unanswered += 1;
        if (unanswered >= this.#limits.attempts) return say(false, 'offline', { problem });
        continue;
      }
      if (answer?.status === 429 || answer?.status === 503) {
        // These two are decided after the number was looked up: surely not thrown.
        const sure = !doubtful || problem === 'neighbor-busy' || problem === 'mailboxes-full';
        if (sure) ticket.tried = false;
        const wait = Math.max(answer.retryAfter ?? 1000, this.#limits.busyLeast);
        this.#busy[problem === 'neighbor-busy' ? edge : 'all'] = {
          problem,
          until: this.#timers.now() + this.#spread(wait)
        };
        continue; // Above it is seen whether there is patience left.
      }
      if (problem && answer.status < 500 && answer.status !== 408) {
        // Below the window nobody knows any more; else an earlier attempt was refused as well.
        if (doubtful && problem === 'stale-number') return say(null, 'forgotten', { problem });
        ticket.tried = false;
        return say(false, 'refused', { problem });
      }
      unanswered += 1;
      if (unanswered >= this.#limits.attempts) return say(null, 'unanswered');
      await this.#sleep(this.#backoff(unanswered));
    }
  }

  /** @returns {{until: number, problem?: string}|undefined} what keeps this edge from throwing */
  #isBusy(edge) {
    const now = this.#timers.now();
    const { all, [edge]: one } = this.#busy;
    const until = Math.max(all?.until ?? 0, one?.until ?? 0);
    if (until <= now) return undefined;
    return until === all?.until ? all : one;
  }

  // ---- the loop ----

  async #loop(run) {
    while (run === this.#run) {
      const wait = this.#id ? await this.#pollOnce(run) : await this.#joinOnce(run);
      if (run === this.#run && wait) await this.#doze(wait);
    }
  }

  /** @returns {Promise<{ms: number, firm: boolean}|undefined>} how long to wait before going on */
  async #joinOnce(run) {
    const answer = await this.#tryOnce(this.#url('join'), { method: 'POST' });
    if (run !== this.#run) return undefined;
    if (answer.failure) return this.#failed(answer.failure);
    const place = answer.status === 201 ? readResume({ ...answer.json, ack: 0, n: this.#n }) : null;
    if (!place) return this.#refused(answer);
    this.#take(place, answer.json);
    this.#doubt = false;
    this.#holdMost = Infinity;
    this.#become('online');
    this.#onResume(this.resume);
    return undefined;
  }

  /** @returns {Promise<{ms: number, firm: boolean}|undefined>} how long to wait before going on */
  async #pollOnce(run) {
    const id = this.#id;
    const seconds =
      this.#doubt || this.#state !== 'online'
        ? this.#limits.holdLeast
        : Math.min(this.#hold ?? Infinity, this.#holdMost);
    const hold = Number.isFinite(seconds) ? `&hold=${seconds}` : '';
    // The server may add jitter to a hold, so some of the slack grows with it.
    const most =
      (Number.isFinite(seconds) ? seconds : this.#limits.holdUnknown) * 1250 +
      (this.#doubt ? this.#limits.doubtSlack : this.#limits.pollSlack);
    const poll = { since: this.#timers.now(), again: false };
    this.#poll = poll;
    const url = this.#url(`poll/${id}?ack=${this.#ack}${hold}`);
    const answer = await this.#tryOnce(url, { method: 'GET' }, most);
    this.#poll = null;
    if (run !== this.#run || id !== this.#id || poll.again) return undefined;

    const took = this.#timers.now() - poll.since;
    const long = !this.#doubt && took >= this.#limits.long;
    if (answer.failure) {
      if (long) this.#cuts += 1;
      if (long && this.#cuts >= 2) {
        // Twice in a row: something between cuts off what is idle. Ask for a shorter hold.
        const shorter = Math.floor((took / 1000) * 0.75);
        this.#holdMost = Math.max(this.#limits.holdLeast, Math.min(this.#holdMost, shorter));
      }
      return this.#failed(answer.failure);
    }
    const problem = problemOf(answer);
    if (answer.status === 404) {
      this.#strayMisses += 1;
      // A proxy may have eaten the problem document; a captive portal answers once or twice.
      if (problem !== 'unknown-client' && this.#strayMisses < 3) return this.#failed('garbage');
      this.#forget(id, 'unknown-client');
      this.#failures += 1;
      return this.#failures > 1 ? { ms: this.#backoff(this.#failures), firm: false } : undefined;
    }
    this.#strayMisses = 0;
    if (problem === 'bad-hold') {
      this.#hold = undefined; // The server was restarted with a shorter one: let it choose.
      return this.#failed(problem);
    }
    if (problem === 'ack-ahead' || problem === 'bad-ack') {
      // The server has an older state than this client: its place can't be trusted any more.
      this.#forget(id, problem);
      return this.#failed(problem);
    }
    if (answer.status !== 200) return this.#refused(answer);
    if (answer.json?.superseded === true) {
      this.#halt();
      this.#id = null;
      this.#ack = 0;
      this.#onResume(null);
      this.#become('superseded', 'superseded');
      return undefined;
    }
    const entries = readEntries(answer.json);
    if (!entries) return this.#failed('garbage');
    if (long) this.#cuts = 0;
    return this.#received(entries, answer.json.retry, took);
  }

  #received(entries, retry, took) {
    const before = this.#ack;
    const run = this.#run;
    this.#doubt = false;
    for (const { seq, from, sprite } of entries) {
      if (seq <= this.#ack) continue;
      const last = this.#ack;
      this.#ack = seq;
      if (!this.#hand(sprite, { from, seq })) {
        this.#ack = last; // No room. As an answer with nothing new it is waited out, below.
        break;
      }
      if (run !== this.#run) break; // The callback has stopped or left.
    }
    if (this.#id && this.#ack > before) this.#onResume(this.resume);
    if (run !== this.#run) return undefined;
    this.#become('online');
    if (Number.isFinite(retry) && retry > 0) {
      return { ms: Math.min(retry, this.#limits.pauseMost), firm: true };
    }
    if (this.#ack === before && took < this.#limits.quick) {
      // An empty answer should have taken its hold. Whatever sends these must not be hammered.
      this.#failures += 1;
      return { ms: this.#backoff(this.#failures), firm: false };
    }
    this.#failures = 0;
    return undefined;
  }

  /** @returns {boolean} whether the program took it */
  #hand(sprite, entry) {
    try {
      return this.#onSprite(sprite, entry) !== false;
    } catch (error) {
      // The program's own fault, for its own handler of uncaught errors; the loop goes on.
      queueMicrotask(() => {
        throw error;
      });
      return true;
    }
  }

  /** A request of the loop, which `wake` and `#halt` may abort; a failure becomes a value. */
  async #tryOnce(url, init, most) {
    const controller = new AbortController();
    this.#loopAsks = controller;
    try {
      return await this.#ask(url, init, most, controller);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return { failure: error.reason };
    } finally {
      if (this.#loopAsks === controller) this.#loopAsks = null;
    }
  }

  #failed(why) {
    this.#failures += 1;
    this.#doubt = true;
    this.#become('offline', why);
    return { ms: this.#backoff(this.#failures), firm: false };
  }

  #refused(answer) {
    const wait = this.#failed(problemOf(answer) ?? 'garbage');
    if (answer.retryAfter === undefined) return wait;
    return { ms: Math.max(wait.ms, this.#spread(answer.retryAfter)), firm: true };
  }

  /** The server no longer knows this place: join anew. What was thrown from it is its business. */
  #forget(id, why) {
    if (this.#id !== id) return;
    this.#id = null;
    this.#ack = 0;
    this.#strayMisses = 0;
    this.#onResume(null);
    if (this.#state !== 'left') this.#become('joining', why);
    if (this.#poll) {
      this.#poll.again = true;
      this.#loopAsks.abort();
    }
  }

  #take(place, limits) {
    this.#id = place.id;
    this.#ack = place.ack;
    this.#n = Math.max(this.#n, place.n);
    this.#hold = positive(limits.hold);
    this.#lease = positive(limits.lease);
    this.#maxSprite = positive(limits.maxSprite);
    // The transient port speaks plain HTTP: behind TLS there is only the main one.
    const port = Number.isInteger(limits.transient) && limits.transient < 65_536;
    this.#transient =
      port && this.#base.protocol === 'http:' ? positive(limits.transient) : undefined;
  }

  #halt() {
    this.#run += 1;
    this.#nap?.end();
    this.#loopAsks?.abort();
  }

  #become(state, why) {
    if (state === this.#state && why === this.#why) return;
    this.#state = state;
    this.#why = why;
    for (const waiter of [...this.#waiters]) waiter();
    this.#onState(state, { why });
  }

  // ---- waiting ----

  #backoff(failures) {
    const { backoffFirst, backoffMost } = this.#limits;
    return backoff(failures, backoffFirst, backoffMost, this.#random);
  }

  /** Retry-After is the same whole second for everybody: add up to half of it. */
  #spread(ms) {
    return Math.min(ms * (1 + this.#random() / 2), this.#limits.pauseMost);
  }

  /** A wait of a throw, which ends early when this client leaves. */
  #sleep(ms) {
    return this.#until(() => false, this.#timers.now() + ms);
  }

  /** A wait of the loop, which `wake` (unless firm) and `#halt` end early. */
  #doze({ ms, firm }) {
    return new Promise((resolve) => {
      const nap = {
        firm,
        end: () => {
          this.#timers.clearTimeout(timer);
          this.#nap = null;
          resolve();
        }
      };
      const timer = this.#timers.setTimeout(nap.end, ms);
      this.#nap = nap;
    });
  }

  /** @returns {Promise<boolean>} whether there is a place to throw from, before `end` */
  #joined(end) {
    return this.#until(() => this.#id !== null, end);
  }

  /** @returns {Promise<boolean>} whether it came true, before `end` and before this client left */
  #until(isTrue, end) {
    return new Promise((resolve) => {
      let timer;
      const look = () => {
        const over =
          this.#state === 'left' || this.#state === 'superseded' || this.#timers.now() >= end;
        if (!isTrue() && !over) return false;
        this.#timers.clearTimeout(timer);
        this.#waiters.delete(look);
        resolve(isTrue());
        return true;
      };
      if (look()) return;
      this.#waiters.add(look);
      const wait = () => {
        const left = Math.max(1, end - this.#timers.now());
        timer = this.#timers.setTimeout(() => look() || wait(), left);
      };
      wait();
    });
  }

  // ---- asking ----

  #url(path, { transient = false } = {}) {
    const url = new URL(path, this.#base);
    if (transient && this.#transient) url.port = String(this.#transient);
    return url.href;
  }

  /**
   * A look at something beside the loop. The loop hears what it tells about the network: there is
   * somebody again, or a parked poll may hang on a dead connection.
   */
  async #look(path, { provesId = false } = {}) {
    const run = this.#run;
    let answer = null;
    try {
      answer = await this.#ask(this.#url(path), { method: 'GET' });
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (run === this.#run && this.#state === 'online') {
        this.#become('offline', error.reason);
        this.wake();
      }
    }
    if (answer?.status === 200 && run === this.#run && this.#id && !this.#nap?.firm) {
      const back = this.#state === 'offline' && this.#failures <= this.#limits.lookTrust;
      if (back || (this.#state === 'joining' && provesId)) {
        this.#nap?.end();
        this.#become('online'); // The poll that goes out now takes it back if that was too early.
      }
    }
    return answer;
  }

  /**
   * @returns {Promise<{status: number, json?: object, retryAfter?: number}>} retryAfter in ms
   * @throws {Failure} when there is no whole answer in time
   */
  async #ask(url, init, most = this.#limits.requestTimeout, controller = new AbortController()) {
    let reason = 'network';
    const timer = this.#timers.setTimeout(() => {
      reason = 'slow';
      controller.abort();
    }, most);
    try {
      const response = await this.#fetch(url, {
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'error',
        ...init,
        signal: controller.signal
      });
      if (Number(response.headers.get('content-length')) > this.#limits.answerMost) {
        reason = 'garbage';
        throw new RangeError('the answer is too long');
      }
      const text = await response.text();
      const { status } = response;
      const json = parse(text);
      if (status >= 200 && status < 300 && status !== 204 && json === undefined) {
        reason = 'garbage';
        throw new SyntaxError('the answer is no JSON');
      }
      return { status, json, retryAfter: seconds(response.headers.get('retry-after')) };
    } catch (cause) {
      controller.abort(); // What is left of an answer too long to read.
      throw new Failure(reason, { cause });
    } finally {
      this.#timers.clearTimeout(timer);
    }
  }
}

/** No whole answer: `reason` is `network`, `slow` or `garbage`. */
class Failure extends Error {
  constructor(reason, options) {
    super(reason, options);
    this.reason = reason;
  }
}

function globalTimers() {
  return {
    setTimeout: (...args) => globalThis.setTimeout(...args),
    clearTimeout: (timer) => globalThis.clearTimeout(timer),
    now: () => performance.now()
  };
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function positive(value) {
  return Number.isFinite(value) && value > 0 ? value : undefined;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // The caller tells it from an answer by just this.
  }
}

/** @returns {number|undefined} ms; the date form is not used by this server */
function seconds(header) {
  return header !== null && /^\d{1,9}$/.test(header) ? Number(header) * 1000 : undefined;
}

/** @returns {string|undefined} the name in `urn:sprites:NAME` */
function problemOf({ status, json }) {
  if (status < 400 || !isObject(json) || typeof json.type !== 'string') return undefined;
  return /^urn:sprites:([a-z-]{1,40})$/.exec(json.type)?.[1];
}

function isUnknown(answer) {
  return answer.status === 404 && problemOf(answer) === 'unknown-client';
}

/** @returns {Resume|null} null when it isn't one: what comes from a store may be anything */
function readResume(value) {
  if (!isObject(value)) return null;
  const { id, ack = 0, n = 0 } = value;
  const good =
    typeof id === 'string' &&
    /^[\w-]{1,64}$/.test(id) &&
    Number.isSafeInteger(ack) &&
    ack >= 0 &&
    Number.isSafeInteger(n) &&
    n >= 0;
  return good ? { ...value, id, ack, n } : null;
}

/** @returns {Array<{seq: number, from: string, sprite: object}>|null} null for what is no answer */
function readEntries(json) {
  if (!isObject(json) || !Array.isArray(json.sprites)) return null;
  const good = json.sprites.every(
    (entry) =>
      isObject(entry) &&
      Number.isSafeInteger(entry.seq) &&
      EDGES.includes(entry.from) &&
      isObject(entry.sprite)
  );
  return good ? json.sprites : null;
}
