import { isObject, positive, problemOf, readPlace } from './answers.js';
import { sendWithGrant, grantFrom } from './grant.js';
import { leave } from './leave.js';
import { DEFAULTS } from './limits.js';
import { Loop } from './loop.js';
import { WorldRequests } from './world-requests.js';
import { Place } from './place.js';
import { Requests, globalTimers, serverUrl } from './requests.js';
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
 *     const outcome = await client.throw('left', { id: 'hello', picture: 'star', at: 0.5, speed: [1, 0] });
 *     console.log(outcome.thrown, outcome.state);
 *     await client.leave();
 *
 * README.md beside this file describes its behavior, and test/vectors/client.json tests it.
 *
 *     Client ─▶ Loop    join, poll, proof of contact         ─┐
 *        ├────▶ Throws  each until it has an outcome         ─┼─▶ WorldRequests ─▶ Requests ─▶ fetch
 *        └────▶ leave                                        ─┘
 *
 * Rejected: an EventTarget (three callbacks are enough), and an async iterator for the sprites
 * (sprites that are not yet read would wait in a queue without a bound).
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
 * Returns the edge at which a sprite thrown off `edge` enters.
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
  #leaving = null; // Promise of the leave, once it has begun
  #sideRequests = new Set(); // AbortControllers of the requests beside the loop

  /**
   * @param {object} options
   * @param {string} options.base the server's URL, such as `http://127.0.0.1:8080`
   * @param {(sprite: any, entry: {from: Edge, seq: number}) => unknown} [options.onSprite]
   *     called once per sprite. `false` leaves the sprite in the mailbox: the callback gets it again
   *     after a wait, which `wake` ends. An error in the callback is reported as an uncaught error;
   *     the sprite counts as handed out
   * @param {() => string | undefined | Promise<string | undefined>} [options.grant] returns the grant to join with,
   *     where the server requires one
   * @param {(state: State, about: {why?: string}) => void} [options.onState] called on every
   *     change; `why` is a problem's name, `network`, `garbage`, `slow`, `superseded`, or `no-grant`
   *     where `grant` has failed
   * @param {(resume: Resume|null) => void} [options.onResume] called whenever the state for coming
   *     back has changed; before a throw is sent and after sprites were handed out
   * @param {unknown} [options.resume] the last value from `onResume`; an invalid one is ignored
   * @param {(url: string, init: RequestInit) => Promise<Response>} [options.fetch]
   * @param {import('./requests.js').Timers} [options.timers]
   * @param {() => number} [options.random] in [0, 1)
   * @param {Partial<import('./limits.js').Limits>} [options.limits] see limits.js
   * @throws {TypeError} when base is no http or https URL, or has a user, ? or #
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
    const bounds = { ...DEFAULTS, ...limits };
    const place = new Place(serverUrl(base), onResume, resume);
    const requests = new WorldRequests(new Requests(fetch, timers, bounds), place, bounds);
    const waits = new Waits(timers, random, bounds);
    [this.#place, this.#requests, this.#waits, this.#limits] = [place, requests, waits, bounds];
    this.#loop = new Loop({ place, requests, waits, limits: bounds, onSprite, onState });
    this.#loop.grant = grantFrom(grant);
    this.#throws = new Throws(this.#makeSender(), this.#limits);
  }

  /** @returns {State} */
  get state() {
    return this.#loop.state;
  }

  /** @returns {string|undefined} the reason for this state, if it has one */
  get why() {
    return this.#loop.why;
  }

  /** @returns {string|null} this client's id: a capability, keep it secret */
  get id() {
    return this.#place.id;
  }

  /** @returns {number|undefined} the largest sprite that the server accepts, in bytes of JSON */
  get maxSprite() {
    return this.#place.maxSprite;
  }

  /** @returns {number|undefined} seconds without a poll after which the place is lost */
  get lease() {
    return this.#place.lease;
  }

  /**
   * The wait until the client's next try.
   *
   * @returns {{ms: number, asked: boolean}|null} `asked`: the server has asked for the wait, and
   *     `wake` does not end it. Null while the client does not wait
   */
  get nextTry() {
    return this.#waits.nextTry;
  }

  /** @returns {Resume|null} the state with which a later client can take up this place */
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
   * Stops polling, but keeps the place: the lease runs from here. A throw that was sent ends as soon
   * as it is answered, or has failed; `place` and `status` end without an answer.
   */
  stop() {
    this.#leaving = null;
    this.#loop.halt();
    for (const controller of this.#sideRequests) controller.abort();
    this.#loop.setState('left');
  }

  /**
   * Leaves the torus: hands out and throws nothing more, waits for the answers to sent throws, acks
   * the sprites that were handed out, and tells the server. An unanswered join is given up; a place
   * that it may have got ends with its lease.
   *
   * @returns {Promise<boolean>} whether the server has confirmed it within 5 s; otherwise the place
   *     ends with its lease
   */
  leave() {
    return (this.#leaving ??= this.#leave());
  }

  async #leave() {
    this.#loop.halt({ keepPoll: true }); // Its answer proves its ack.
    const { run } = this.#loop;
    const isOver = () => run !== this.#loop.run;
    await undefined; // Until here `leave` has not set `#leaving`.
    this.#waits.recheck();
    const isConfirmed =
      this.id === null ||
      (await leave({
        place: this.#place,
        requests: this.#requests,
        waits: this.#waits,
        limits: this.#limits,
        areThrowsAnswered: () => !this.#throws.hasSent,
        isPollParked: () => this.#loop.isPollParked,
        isOver
      }));
    if (isOver()) return isConfirmed;
    if (this.id) this.#loop.losePlace();
    this.stop();
    return isConfirmed;
  }

  /**
   * URL to POST to for leaving, for `navigator.sendBeacon` in a closing page.
   *
   * @returns {string|null}
   */
  get leaveUrl() {
    return this.#place.leaveUrl;
  }

  /**
   * Tries now, because the machine woke up, the network came back, or the page is visible again. Ends
   * a wait that the client chose itself (not one that the server asked for), and polls again where a
   * parked poll may hang on a dead connection.
   */
  wake() {
    if (this.#leaving === null) this.#loop.wake();
  }

  /** Forgets a place that the server does not know. A leaving client needs no other place. */
  #forgetPlace(id) {
    if (this.#leaving === null) this.#loop.forgetPlace(id, 'unknown-client');
  }

  /**
   * Requests this client's place in the torus.
   *
   * @returns {Promise<{row: number, column: number, rows: number, columns: number}|null>} null
   *     without an answer
   */
  async place() {
    const { id } = this;
    return id && readPlace(await this.#get(`place/${id}`));
  }

  /**
   * Requests the live counts of the server that has this client's place; of any server while there is no place. In a
   * world the answer's `world` describes all its servers.
   *
   * @returns {Promise<Record<string, any>|null>} null without an answer
   */
  async status() {
    const answer = await this.#get(this.id ? `status/${this.id}` : 'status');
    if (answer.status !== 200 || !isObject(answer.json)) return null;
    const { clients, world } = answer.json;
    this.#waits.clients = positive(world?.clients) ?? positive(clients) ?? null;
    return answer.json;
  }

  /** Sends a GET beside the loop. The loop learns from its outcome whether there is contact. */
  async #get(path) {
    const { id } = this;
    const { run } = this.#loop;
    const controller = new AbortController();
    this.#sideRequests.add(controller);
    const url = this.#place.url(path);
    const send = (headers) =>
      this.#requests.send(url, { method: 'GET', headers }, undefined, controller);
    const answer = await sendWithGrant(null, send);
    this.#sideRequests.delete(controller);
    if (run !== this.#loop.run) return answer;
    if (answer.failure && this.state === 'online') this.wake();
    else if (answer.status === 200 && this.state === 'offline') this.#waits.endWait();
    else if (id && problemOf(answer) === 'unknown-client') this.#forgetPlace(id);
    return answer;
  }

  /**
   * Returns a number for a later throw. Only for a program that stores it before the throw is sent.
   *
   * @returns {Ticket}
   */
  ticket() {
    return { id: this.id, n: this.#place.nextNumber(), tried: false };
  }

  /**
   * Throws a sprite off an edge.
   *
   * @param {Edge} edge
   * @param {object|string} sprite an object, or its JSON
   * @param {object} [options]
   * @param {number} [options.patience] ms to go on trying while the server is busy, or while
   *     there is no contact; 0: the outcome comes at once
   * @param {Ticket} [options.ticket] of an earlier outcome, to repeat this throw
   * @returns {Promise<Outcome>}
   * @throws {TypeError} for an unknown edge, and for a value that JSON does not have
   */
  async throw(edge, sprite, options) {
    const { patience = 5000, ticket = this.ticket() } = options ?? {};
    const body = typeof sprite === 'string' ? sprite : JSON.stringify(sprite);
    if (body === undefined) throw new TypeError(`${typeof sprite} is no sprite: give an object`);
    return this.#throws.throw(edge, body, patience, ticket);
  }

  /** @returns {import('./throws.js').Sender} */
  #makeSender() {
    const waits = this.#waits;
    const hasLeft = () => this.state === 'left' || this.#leaving !== null;
    return {
      place: this.#place,
      waits,
      state: () => (hasLeft() ? 'left' : this.state),
      post: (path, body) => this.#post(path, body),
      isLeaving: () => this.#leaving !== null,
      forgetPlace: (id) => this.#forgetPlace(id),
      doubtContact: () => {
        if (this.state === 'online') this.wake();
      },
      until: (isTrue, end) => waits.until(isTrue, end, hasLeft)
    };
  }

  async #post(path, body) {
    const place = this.#place;
    const { transient } = place;
    try {
      const headers = { 'content-type': 'text/plain;charset=UTF-8' }; // needs no preflight
      const init = { method: 'POST', headers, body };
      const { requestTimeout, throwSpeed } = this.#limits;
      const timeout = requestTimeout + Math.floor(body.length / throwSpeed);
      return await this.#requests.send(place.url(path, { transient: true }), init, timeout);
    } catch (error) {
      // Some networks let only the main port through: it is used from here on.
      if (transient && place.transient === transient) place.transient = undefined;
      throw error;
    }
  }
}
