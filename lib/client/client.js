import { isObject, positive, problemOf, readPlace } from './answers.js';
import { askBy, grantBy } from './grant.js';
import { leave } from './leave.js';
import { DEFAULTS } from './limits.js';
import { Loop } from './loop.js';
import { Moves } from './moves.js';
import { Place } from './place.js';
import { Requests, globalTimers, serverOf } from './requests.js';
import { Throws } from './throws.js';
import { Waits } from './waits.js';

/**
 * The client of a Sprites server: join, poll, ack, throw, leave. No DOM and no dependency: the page
 * imports it as a plain module, Node programs as `sprites-server/client`.
 *
 *     import { Client } from 'sprites-server/client';
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
 * README.md beside this file says how it behaves, and test/vectors/client.json holds it to that.
 *
 *     Client ─▶ Loop    join, poll, and in doubt: the place  ─┐
 *        ├────▶ Throws  each until it has an outcome         ─┼─▶ Moves ─▶ Requests ─▶ fetch
 *        └────▶ leave                                        ─┘
 *
 * Rejected: an EventTarget (three callbacks are all there is to say), and an async iterator for the
 * sprites (it would have to hold what is not asked for: a queue without a bound).
 */

export { EDGES } from './answers.js';
export { Feeds } from './feeds.js';
export { feedStore } from './store.js';

/**
 * @typedef {import('./answers.js').Resume} Resume
 * @typedef {import('./throws.js').Ticket} Ticket
 * @typedef {import('./throws.js').Outcome} Outcome
 * @typedef {import('./loop.js').State} State
 * @typedef {'left'|'right'|'up'|'down'} Edge
 */

const OPPOSITES = Object.freeze({ left: 'right', right: 'left', up: 'down', down: 'up' });

/**
 * The edge by which a sprite thrown off `edge` enters.
 *
 * @param {Edge} edge
 * @returns {Edge}
 */
export function opposite(edge) {
  return /** @type {Edge} */ (OPPOSITES[edge]);
}

/** One desktop's place in the torus. */
export class Client {
  #place;
  #requests;
  #waits;
  #limits;
  #throws;
  #loop;
  #leaving = null; // Promise of the leave under way
  #looks = new Set(); // AbortController of each look under way

  /**
   * @param {object} options
   * @param {string} options.base the server's URL, such as `http://127.0.0.1:8080`
   * @param {(sprite: any, entry: {from: string, seq: number}) => unknown} [options.onSprite]
   *     called once per sprite. `false` leaves it in the mailbox, to be called with it again after
   *     a wait, which `wake` ends. What it throws is reported as an uncaught error; the sprite
   *     counts as handed out
   * @param {() => string | undefined | Promise<string | undefined>} [options.grant] gives the grant to join with, where the
   *     server wants one
   * @param {(state: State, about: {why?: string}) => void} [options.onState] called on every
   *     change; `why` is a problem's name, `network`, `garbage`, `slow`, `superseded`, or `no-grant`
   *     where `grant` has failed
   * @param {(resume: Resume|null) => void} [options.onResume] called whenever what `start` would
   *     need to come back has changed; before a throw is sent and after sprites were handed out
   * @param {unknown} [options.resume] what `onResume` said last; what is none is not taken
   * @param {(url: string, init: RequestInit) => Promise<Response>} [options.fetch]
   * @param {import('./requests.js').Timers} [options.timers]
   * @param {() => number} [options.random] in [0, 1)
   * @param {Partial<import('./limits.js').Limits>} [options.limits] see limits.js
   * @throws {TypeError} when base is no http or https URL, or has a user
   */
  constructor({
    base,
    grant,
    onSprite = () => {},
    onState = () => {},
    onResume = () => {},
    resume = null,
    fetch = globalThis.fetch,
    timers = globalTimers(),
    random = Math.random,
    limits = {}
  }) {
    this.#limits = { ...DEFAULTS, ...limits };
    const place = new Place(serverOf(base), onResume, resume);
    const requests = new Moves(new Requests(fetch, timers, this.#limits), place, this.#limits);
    const waits = new Waits(timers, random, this.#limits);
    [this.#place, this.#requests, this.#waits] = [place, requests, waits];
    this.#loop = new Loop(place, requests, waits, this.#limits, onSprite, onState);
    this.#loop.grant = grantBy(grant);
    this.#throws = new Throws(this.#forThrows(), this.#limits);
  }

  /** @returns {State} */
  get state() {
    return this.#loop.state;
  }

  /** @returns {string|undefined} why it is in this state, where there is something to say */
  get why() {
    return this.#loop.why;
  }

  /** @returns {string|null} this client's id: a capability, to be kept secret */
  get id() {
    return this.#place.id;
  }

  /** @returns {number|undefined} the largest sprite the server takes, in bytes of JSON */
  get maxSprite() {
    return this.#place.maxSprite;
  }

  /** @returns {number|undefined} seconds without a poll after which the place is lost */
  get lease() {
    return this.#place.lease;
  }

  /**
   * The wait until the client tries again.
   *
   * @returns {{ms: number, asked: boolean}|null} `asked`: the server has asked for it, and `wake`
   *     does not end it. Null where the client does not wait
   */
  get nextTry() {
    return this.#waits.nextTry;
  }

  /** @returns {Resume|null} what a later client needs to take up this place */
  get resume() {
    return this.#place.resume;
  }

  /** Joins, or takes up the place of `resume`, and polls until `stop` or `leave`. */
  start() {
    if (this.state !== 'left') return;
    this.#leaving = null;
    this.#loop.start();
  }

  /**
   * Stops polling, but keeps the place: the lease runs from here. Throws under way end as soon as
   * they are answered or known to be unanswered; `place` and `status` end without an answer.
   */
  stop() {
    this.#leaving = null;
    this.#loop.halt();
    for (const look of this.#looks) look.abort();
    this.#loop.become('left');
  }

  /**
   * Leaves the torus: nothing more is handed out or thrown, throws that were sent get their answer,
   * what was handed out is acked, and the server is told. A join still under way is given up; what
   * it may have got ends with its lease.
   *
   * @returns {Promise<boolean>} whether the server said so, within 5 s; otherwise the place ends
   *     with its lease
   */
  leave() {
    return (this.#leaving ??= this.#leave());
  }

  async #leave() {
    this.#loop.halt({ keepPoll: true }); // Its answer proves its ack.
    const { run } = this.#loop;
    const isOver = () => run !== this.#loop.run;
    await undefined; // From here on `#leaving` says so.
    this.#waits.changed();
    const told =
      this.id === null ||
      (await leave({
        place: this.#place,
        requests: this.#requests,
        waits: this.#waits,
        limits: this.#limits,
        throwsAreOver: () => !this.#throws.areSent,
        polls: () => this.#loop.polls,
        isOver
      }));
    if (isOver()) return told;
    if (this.id) this.#loop.lose();
    this.stop();
    return told;
  }

  /**
   * Where to POST in order to leave, for `navigator.sendBeacon` in a page that goes away.
   *
   * @returns {string|null}
   */
  get leaveUrl() {
    return this.#place.leaveUrl;
  }

  /**
   * Something happened that makes trying now worthwhile: the machine woke up, the network came
   * back, the page is looked at again. Ends a wait the client chose itself (not one the server
   * asked for), and asks again where a parked poll may hang on a dead connection.
   */
  wake() {
    if (this.#leaving === null) this.#loop.wake();
  }

  /** The server does not know the place of that id. One that is leaving needs no other. */
  #forget(id) {
    if (this.#leaving === null) this.#loop.forget(id, 'unknown-client');
  }

  /**
   * Where this client is in the torus.
   *
   * @returns {Promise<{row: number, column: number, rows: number, columns: number}|null>} null when
   *     there is no answer
   */
  async place() {
    const { id } = this;
    return id && readPlace(await this.#look(`place/${id}`));
  }

  /**
   * The live counts of this client's server: in a world the answer's `world` has what is true of all of them. Before it
   * has a place: of any server.
   *
   * @returns {Promise<Record<string, any>|null>} null when there is no answer
   */
  async status() {
    const answer = await this.#look(this.id ? `status/${this.id}` : 'status');
    if (answer.status !== 200 || !isObject(answer.json)) return null;
    this.#waits.clients = positive(answer.json.clients) ?? null;
    return answer.json;
  }

  /** A look at something beside the loop, which hears what it tells about the network. */
  async #look(path) {
    const { id } = this;
    const { run } = this.#loop;
    const look = new AbortController();
    this.#looks.add(look);
    const url = this.#place.url(path);
    const send = (headers) => this.#requests.ask(url, { method: 'GET', headers }, undefined, look);
    const answer = await askBy(null, send);
    this.#looks.delete(look);
    if (run !== this.#loop.run) return answer;
    if (answer.failure && this.state === 'online') this.wake();
    else if (answer.status === 200 && this.state === 'offline') this.#waits.endNap();
    else if (id && problemOf(answer) === 'unknown-client') this.#forget(id);
    return answer;
  }

  /**
   * A number for a throw to come. Only needed by a program that keeps it before the throw is sent.
   *
   * @returns {Ticket}
   */
  ticket() {
    return { id: this.id, n: this.#place.number(), tried: false };
  }

  /**
   * Throws a sprite off an edge.
   *
   * @param {Edge} edge
   * @param {object|string} sprite an object, or its JSON
   * @param {object} [options]
   * @param {number} [options.patience] ms to go on trying while the server says it is busy, or
   *     while there is no contact; 0 to be told at once
   * @param {Ticket} [options.ticket] of an earlier outcome, to throw the same sprite again
   * @returns {Promise<Outcome>}
   * @throws {TypeError} on an edge that isn't one, and on what JSON has not
   */
  async throw(edge, sprite, options) {
    const { patience = 5000, ticket = this.ticket() } = options ?? {};
    const body = typeof sprite === 'string' ? sprite : JSON.stringify(sprite);
    if (body === undefined) throw new TypeError(`${typeof sprite} is no sprite: give an object`);
    return this.#throws.throw(edge, body, patience, ticket);
  }

  /** @returns {import('./throws.js').Sender} */
  #forThrows() {
    const waits = this.#waits;
    const isAway = () => this.state === 'left' || this.#leaving !== null;
    return {
      place: this.#place,
      waits,
      state: () => (isAway() ? 'left' : this.state),
      post: (path, body) => this.#post(path, body),
      isLeaving: () => this.#leaving !== null,
      forget: (id) => this.#forget(id),
      doubt: () => {
        if (this.state === 'online') this.wake();
      },
      until: (isTrue, end) => waits.until(isTrue, end, isAway)
    };
  }

  async #post(path, body) {
    const place = this.#place;
    const { transient } = place;
    try {
      const headers = { 'content-type': 'text/plain;charset=UTF-8' }; // needs no preflight
      const init = { method: 'POST', headers, body };
      const { requestTimeout, throwSpeed } = this.#limits;
      const most = requestTimeout + Math.floor(body.length / throwSpeed);
      return await this.#requests.ask(place.url(path, { transient: true }), init, most);
    } catch (error) {
      // Some networks let only the main port through: from here on it will do.
      if (transient && place.transient === transient) place.transient = undefined;
      throw error;
    }
  }
}
