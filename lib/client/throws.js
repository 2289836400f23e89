import { EDGES, positive, problemOf } from './answers.js';
import { ignoreFailure } from './requests.js';

const ACCEPTED = new Set(['delivered', 'queued', 'duplicate']);
// Problems that the server reports after a search for the number among accepted throws: the sprite was not thrown.
const SURE = new Set(['neighbor-busy', 'mailboxes-full']);

/**
 * The number of one throw. Plain JSON: a program that stores it can repeat the throw after a restart.
 *
 * @typedef {object} Ticket
 * @property {string|null} id of the place that throws
 * @property {number} n the number; a new throw gets a newer one if this is too old to be sent
 * @property {boolean} tried whether a request with this number may have reached the server unanswered
 */

/**
 * The outcome of a throw.
 *
 * @typedef {object} Outcome
 * @property {boolean|null} thrown true: the server is responsible for the sprite; false: it is still
 *     yours; null: unknown
 * @property {string} state for true: `delivered` to a parked poll, `queued` in the neighbor's
 *     mailbox, `duplicate` of an earlier attempt. For false: `busy` (try later), `refused` (not
 *     accepted as it is), `offline` (no contact). For null: `unanswered` (throw it again with the
 *     same ticket), `forgotten` (the server has forgotten the place or the number, so no later
 *     answer can tell)
 * @property {string} [problem] the problem's name, such as `neighbor-busy`
 * @property {number} [retryAfter] ms after which another throw may succeed
 * @property {Ticket} ticket
 */

/**
 * The client, for its throws.
 *
 * @typedef {object} Sender
 * @property {import('./place.js').Place} place
 * @property {import('./waits.js').Waits} waits
 * @property {() => string} state of the client; `left` also while it is leaving
 * @property {() => boolean} isLeaving
 * @property {(path: string, body: string) => Promise<import('./answers.js').Answer>} post
 * @property {(id: string) => void} forget called when the server does not know the place
 * @property {() => void} doubt called when a request got no answer
 * @property {(isTrue: () => boolean, end: number) => Promise<boolean>} until waits for a change
 */

/** The throws of one client: each ends with an outcome, in any state of the network. */
export class Throws {
  #sender;
  #limits;
  #sent = new Set(); // tickets of the current throws that the server may have
  #rests = {}; // pauses, {until, problem} by edge; `all`: of all edges

  /**
   * @param {Sender} sender
   * @param {import('./limits.js').Limits} limits
   */
  constructor(sender, limits) {
    this.#sender = sender;
    this.#limits = limits;
  }

  /** @returns {boolean} whether any throw was sent and has no outcome */
  get areSent() {
    return this.#sent.size > 0;
  }

  /**
   * Throws a sprite, and repeats the throw until there is an outcome.
   *
   * @param {string} edge
   * @param {string} body the sprite's JSON
   * @param {number} patience ms to wait for contact, or until the server is no longer busy
   * @param {Ticket} ticket
   * @returns {Promise<Outcome>}
   * @throws {TypeError} for an unknown edge
   */
  async throw(edge, body, patience, ticket) {
    if (!EDGES.includes(edge)) throw new TypeError(`${edge} is no edge: ${EDGES.join(', ')}`);
    const start = this.#sender.waits.now();
    const sending = {
      edge,
      body,
      ticket,
      patient: start + patience,
      end: start + Math.max(patience, this.#limits.throwPatience),
      unanswered: 0,
      isLast: false // the client is leaving: this is the last attempt
    };
    if (ticket.tried) this.#sent.add(ticket);
    try {
      for (;;) {
        const outcome = (await this.#wait(sending)) ?? (await this.#send(sending));
        if (outcome) return { ...outcome, ticket };
        if (!ticket.tried) this.#sent.delete(ticket);
      }
    } finally {
      this.#sent.delete(ticket);
      this.#sender.waits.changed();
    }
  }

  /** Waits until a throw may be sent. @returns {Promise<object|undefined>} the outcome, if it may not be sent */
  async #wait(sending) {
    const sender = this.#sender;
    const { edge, body, ticket, patient, end } = sending;
    const { tried } = ticket;
    for (;;) {
      const state = sender.state();
      const isLast = tried && !sending.isLast && sender.isLeaving();
      if (state === 'left' && !isLast) return this.#mine(ticket, 'offline');
      const id = sender.place.id;
      if (tried && ticket.id !== id) return { thrown: null, state: 'forgotten' };
      sending.isLast = isLast;
      if (isLast) return undefined;
      if (sender.waits.now() >= end) return this.#mine(ticket, 'offline');
      const rest = this.#rest(edge);
      if (state === 'offline') {
        const most = tried ? end : patient;
        if (!(await sender.until(() => sender.state() !== 'offline', most))) {
          return { ...this.#mine(ticket, 'offline'), retryAfter: sender.waits.nextTry?.ms };
        }
      } else if (!id) {
        await sender.until(() => sender.place.id !== null || sender.state() === 'offline', end);
      } else if (rest) {
        const { problem, until } = rest;
        const retryAfter = until - sender.waits.now();
        if (until > (tried ? end : patient)) {
          return { ...this.#mine(ticket, 'busy'), problem, retryAfter };
        }
        await sender.until(() => false, until);
      } else if (!tried && this.#isFar(id)) {
        await sender.until(() => !this.#isFar(id), end);
      } else if (new TextEncoder().encode(body).length > (sender.place.maxSprite ?? Infinity)) {
        return { ...this.#mine(ticket, 'refused'), problem: 'sprite-too-large' };
      } else {
        return undefined;
      }
    }
  }

  /** Returns whether the server may forget an unanswered throw when it gets the next one. */
  #isFar(id) {
    return [...this.#sent].some((one) => one.id === id && this.#isOld(one));
  }

  /** Returns whether the server may forget a number when it gets the next one. */
  #isOld({ n }) {
    return n + this.#limits.numberWindow <= this.#sender.place.n;
  }

  /** Makes one attempt. @returns {Promise<object|undefined>} the outcome, if it is known */
  async #send(sending) {
    const sender = this.#sender;
    const { edge, body, ticket } = sending;
    const doubtful = ticket.tried;
    const id = sender.place.id;
    if (!doubtful && this.#isFar(id)) return undefined; // Other throws were sent since #wait.
    if (!doubtful && this.#isOld(ticket)) ticket.n = sender.place.number();
    ticket.id = id;
    ticket.tried = true;
    this.#sent.add(ticket);
    let answer;
    try {
      answer = await sender.post(`throw/${ticket.id}/${edge}?n=${ticket.n}`, body);
    } catch (error) {
      ignoreFailure(error);
    }
    const problem = answer && problemOf(answer);
    if (answer?.status === 202 && ACCEPTED.has(answer.json?.state)) {
      const retry = positive(answer.json.retry);
      if (retry) this.#restFor('all', Math.min(retry, this.#limits.pauseMost));
      return { thrown: true, state: answer.json.state };
    }
    if (problem === 'unknown-client') {
      sender.forget(ticket.id);
      if (doubtful) return { thrown: null, state: 'forgotten', problem };
      ticket.tried = false;
      sending.unanswered += 1;
      return sending.unanswered < this.#limits.attempts
        ? undefined
        : { thrown: false, state: 'offline', problem };
    }
    if (answer?.status === 429 || answer?.status === 503) {
      if (!doubtful || SURE.has(problem)) ticket.tried = false;
      const retryAfter = sender.waits.spread(
        Math.max(answer.retryAfter ?? 1000, this.#limits.busyLeast)
      );
      this.#restFor(problem === 'neighbor-busy' ? edge : 'all', retryAfter, problem);
      if (!ticket.tried && sender.state() === 'left') {
        return { thrown: false, state: 'busy', problem, retryAfter };
      }
      return undefined; // #wait checks the patience.
    }
    if (problem && answer.status < 500 && answer.status !== 408) {
      // A stale number: the server has forgotten the outcome. Any other refusal also holds for the earlier attempts.
      if (doubtful && problem === 'stale-number')
        return { thrown: null, state: 'forgotten', problem };
      ticket.tried = false;
      return { thrown: false, state: 'refused', problem };
    }
    return this.#unanswered(sending);
  }

  /** Handles an attempt without an answer. Without contact it is not counted: only the time limit ends the throw. */
  async #unanswered(sending) {
    const sender = this.#sender;
    sender.doubt();
    if (sender.state() !== 'offline') sending.unanswered += 1;
    if (sending.unanswered >= this.#limits.attempts) return { thrown: null, state: 'unanswered' };
    const pause = sender.waits.backoff(Math.max(1, sending.unanswered));
    await sender.until(() => false, sender.waits.now() + pause);
    return undefined;
  }

  /** Returns the outcome of a throw that is not sent: unknown, if an earlier attempt may have got through. */
  #mine({ tried }, state) {
    return tried ? { thrown: null, state: 'unanswered' } : { thrown: false, state };
  }

  #restFor(edge, ms, problem) {
    this.#rests[edge] = { problem, until: this.#sender.waits.now() + ms };
  }

  /** @returns {{until: number, problem?: string}|undefined} the pause of this edge */
  #rest(edge) {
    const { all, [edge]: one } = this.#rests;
    const until = Math.max(all?.until ?? 0, one?.until ?? 0);
    if (until <= this.#sender.waits.now()) return undefined;
    return until === all?.until ? all : one;
  }
}
