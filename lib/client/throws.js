import { EDGES, positive, problemOf } from './answers.js';
import { ignoreFailure } from './requests.js';

const ACCEPTED = new Set(['delivered', 'queued', 'duplicate']);
// Problems that the server reports after a search for the number among accepted throws: the sprite was not thrown.
const NOT_THROWN = new Set(['neighbor-busy', 'mailboxes-full']);

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
 * @property {(id: string) => void} forgetPlace called when the server does not know the place
 * @property {() => void} doubtContact called when a request got no answer
 * @property {(isTrue: () => boolean, end: number) => Promise<boolean>} until waits for a change
 */

/** The throws of one client: each ends with an outcome, in any state of the network. */
export class Throws {
  #sender;
  #limits;
  #sent = new Set(); // tickets of the current throws that the server may have
  #pauses = {}; // pauses, {until, problem} by edge; `all`: of all edges

  /**
   * @param {Sender} sender
   * @param {import('./limits.js').Limits} limits
   */
  constructor(sender, limits) {
    this.#sender = sender;
    this.#limits = limits;
  }

  /** @returns {boolean} whether any throw was sent and has no outcome */
  get hasSent() {
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
    const throwState = {
      edge,
      body,
      ticket,
      patientUntil: start + patience,
      end: start + Math.max(patience, this.#limits.throwPatience),
      unanswered: 0,
      isLast: false // the client is leaving: this is the last attempt
    };
    if (ticket.tried) this.#sent.add(ticket);
    try {
      for (;;) {
        const outcome = (await this.#wait(throwState)) ?? (await this.#send(throwState));
        if (outcome) return { ...outcome, ticket };
        if (!ticket.tried) this.#sent.delete(ticket);
      }
    } finally {
      this.#sent.delete(ticket);
      this.#sender.waits.recheck();
    }
  }

  /** Waits until a throw may be sent. @returns {Promise<object|undefined>} the outcome, if it may not be sent */
  async #wait(throwState) {
    const sender = this.#sender;
    const { edge, body, ticket, patientUntil, end } = throwState;
    const { tried } = ticket;
    for (;;) {
      const state = sender.state();
      const isLast = tried && !throwState.isLast && sender.isLeaving();
      if (state === 'left' && !isLast) return this.#unsentOutcome(ticket, 'offline');
      const id = sender.place.id;
      if (tried && ticket.id !== id) return { thrown: null, state: 'forgotten' };
      throwState.isLast = isLast;
      if (isLast) return undefined;
      if (sender.waits.now() >= end) return this.#unsentOutcome(ticket, 'offline');
      const pause = this.#pauseOf(edge);
      if (state === 'offline') {
        const deadline = tried ? end : patientUntil;
        if (!(await sender.until(() => sender.state() !== 'offline', deadline))) {
          return {
            ...this.#unsentOutcome(ticket, 'offline'),
            retryAfter: sender.waits.nextTry?.ms
          };
        }
      } else if (!id) {
        await sender.until(() => sender.place.id !== null || sender.state() === 'offline', end);
      } else if (pause) {
        const { problem, until } = pause;
        const retryAfter = until - sender.waits.now();
        if (until > (tried ? end : patientUntil)) {
          return { ...this.#unsentOutcome(ticket, 'busy'), problem, retryAfter };
        }
        await sender.until(() => false, until);
      } else if (!tried && this.#isWindowFull(id)) {
        await sender.until(() => !this.#isWindowFull(id), end);
      } else if (new TextEncoder().encode(body).length > (sender.place.maxSprite ?? Infinity)) {
        return { ...this.#unsentOutcome(ticket, 'refused'), problem: 'sprite-too-large' };
      } else {
        return undefined;
      }
    }
  }

  /** Returns whether the server may forget an unanswered throw when it gets the next one. */
  #isWindowFull(id) {
    return [...this.#sent].some((one) => one.id === id && this.#isOutsideWindow(one));
  }

  /** Returns whether the server may forget a number when it gets the next one. */
  #isOutsideWindow({ n }) {
    return n + this.#limits.numberWindow <= this.#sender.place.n;
  }

  /** Makes one attempt. @returns {Promise<object|undefined>} the outcome, if it is known */
  async #send(throwState) {
    const sender = this.#sender;
    const { edge, body, ticket } = throwState;
    const wasTried = ticket.tried;
    const id = sender.place.id;
    if (!wasTried && this.#isWindowFull(id)) return undefined; // Other throws were sent since #wait.
    if (!wasTried && this.#isOutsideWindow(ticket)) ticket.n = sender.place.nextNumber();
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
      if (retry) this.#setPause('all', Math.min(retry, this.#limits.pauseMost));
      return { thrown: true, state: answer.json.state };
    }
    if (problem === 'unknown-client') {
      sender.forgetPlace(ticket.id);
      if (wasTried) return { thrown: null, state: 'forgotten', problem };
      ticket.tried = false;
      throwState.unanswered += 1;
      return throwState.unanswered < this.#limits.attempts
        ? undefined
        : { thrown: false, state: 'offline', problem };
    }
    if (answer?.status === 429 || answer?.status === 503) {
      if (!wasTried || NOT_THROWN.has(problem)) ticket.tried = false;
      const retryAfter = sender.waits.addJitter(
        Math.max(answer.retryAfter ?? 1000, this.#limits.busyLeast)
      );
      this.#setPause(problem === 'neighbor-busy' ? edge : 'all', retryAfter, problem);
      if (!ticket.tried && sender.state() === 'left') {
        return { thrown: false, state: 'busy', problem, retryAfter };
      }
      return undefined; // #wait checks the patience.
    }
    if (problem && answer.status < 500 && answer.status !== 408) {
      // A stale number: the server has forgotten the outcome. Any other refusal also holds for the earlier attempts.
      if (wasTried && problem === 'stale-number')
        return { thrown: null, state: 'forgotten', problem };
      ticket.tried = false;
      return { thrown: false, state: 'refused', problem };
    }
    return this.#handleUnanswered(throwState);
  }

  /** Handles an attempt without an answer. Without contact it is not counted: only the time limit ends the throw. */
  async #handleUnanswered(throwState) {
    const sender = this.#sender;
    sender.doubtContact();
    if (sender.state() !== 'offline') throwState.unanswered += 1;
    if (throwState.unanswered >= this.#limits.attempts)
      return { thrown: null, state: 'unanswered' };
    const pause = sender.waits.backoff(Math.max(1, throwState.unanswered));
    await sender.until(() => false, sender.waits.now() + pause);
    return undefined;
  }

  /** Returns the outcome of a throw that is not sent: unknown, if an earlier attempt may have got through. */
  #unsentOutcome({ tried }, state) {
    return tried ? { thrown: null, state: 'unanswered' } : { thrown: false, state };
  }

  #setPause(edge, ms, problem) {
    this.#pauses[edge] = { problem, until: this.#sender.waits.now() + ms };
  }

  /** @returns {{until: number, problem?: string}|undefined} the pause of this edge */
  #pauseOf(edge) {
    const { all, [edge]: edgePause } = this.#pauses;
    const until = Math.max(all?.until ?? 0, edgePause?.until ?? 0);
    if (until <= this.#sender.waits.now()) return undefined;
    return until === all?.until ? all : edgePause;
  }
}
