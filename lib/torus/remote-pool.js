import { parse, stringify, validate } from 'uuid';

import { loadAddon } from '../base/addon.js';
import { EDGES, Unanswerable } from './pool.js';

/** Numbers of requests begin again here: as in native/relay/frames.h. */
const NUMBERS = 2 ** 31;

/**
 * The pool for the routes of a worker: what is asked of it crosses to the main process by the relay
 * (native/relay/relay.h), and what it says are promises.
 */
export class RemotePool {
  #outcomes;
  #relay;
  #flush = () => {};
  /** Requests without an outcome yet: number → the functions that take it, or that there is none. */
  #open = new Map();
  #lastNumber = 0;
  /** How many of them are parked polls. */
  #parked = 0;

  /**
   * @param {{maxSprite: number}} options
   * @param {{lost: () => void}} told `lost` is called when the main process is gone
   */
  constructor({ maxSprite }, { lost }) {
    const addon = loadAddon();
    this.#outcomes = addon.outcomes;
    const said = (number, outcome, bytes) => {
      // Who was cancelled meanwhile is asked no more.
      const asked = this.#open.get(number);
      this.#open.delete(number);
      if (outcome === undefined) asked?.reject(new Unanswerable());
      else asked?.resolve({ outcome: this.#outcomes[outcome], bytes });
    };
    this.#relay = new addon.Relay(maxSprite, said, lost);
  }

  /** The native relay, for the front door. */
  get native() {
    return this.#relay;
  }

  /** @returns {number} requests of JavaScript's that wait for their outcome, parked polls not among them */
  get open() {
    return this.#open.size - this.#parked;
  }

  /** @returns {Record<string, number>} requests refused on this side, by their problem */
  get refused() {
    const counts = this.#relay.refused().map((count, i) => [this.#outcomes[i], count]);
    return Object.fromEntries(counts.filter(([, count]) => count > 0));
  }

  /**
   * Counts a request that is refused before the main process hears of it.
   *
   * @param {string} outcome the name of the problem
   * @returns {string} that name
   */
  refuse(outcome) {
    this.#relay.refuse(this.#outcomes.indexOf(outcome));
    return outcome;
  }

  /**
   * @param {() => void} flush sends what is in the relay: the front door's
   */
  flushBy(flush) {
    this.#flush = flush;
  }

  /** A number for a request, which the relay knows it by. */
  #number() {
    return (this.#lastNumber = (this.#lastNumber + 1) % NUMBERS);
  }

  /** Asks the main process. `ask(number)` adds the frame, or returns why the request is refused. */
  #request(ask) {
    return new Promise((resolve, reject) => {
      const number = this.#number();
      const refused = ask(number);
      if (refused !== undefined) return resolve({ outcome: this.#outcomes[refused] });
      this.#open.set(number, { resolve, reject });
      return this.#flush();
    });
  }

  /**
   * @param {string} address of the client
   * @returns {Promise<{outcome: string, id?: string}>} as Pool#join
   */
  async join(address) {
    const { outcome, bytes } = await this.#request((number) => this.#relay.join(number, address));
    return outcome === 'ok' ? { outcome, id: stringify(bytes) } : { outcome };
  }

  /**
   * @param {string} id
   * @param {string} edge
   * @param {number} n
   * @param {Uint8Array} sprite
   * @returns {Promise<string>} as Pool#throw
   */
  async throw(id, edge, n, sprite) {
    if (!validate(id)) return this.refuse('unknown-client');
    const { outcome } = await this.#request((number) =>
      this.#relay.throw(number, parse(id), EDGES.indexOf(edge), n, sprite)
    );
    return outcome;
  }

  /**
   * @param {string} id
   * @returns {Promise<string>} as Pool#leave
   */
  async leave(id) {
    if (!validate(id)) return 'ok';
    const { outcome } = await this.#request((number) => this.#relay.leave(number, parse(id)));
    return outcome;
  }

  /**
   * Parks a poll, for all that is known here.
   *
   * @param {string} id
   * @param {{ack?: number, hold?: number}} wish as Pool#poll
   * @param {(body: Buffer) => void} answer called once with the JSON text
   * @param {(error: string | Error) => void} refuse called instead, when it is refused: with the
   *     problem, or Unanswerable
   * @returns {{outcome: string, cancel: () => void}} `cancel`: its connection is gone
   */
  poll(id, { ack = 0, hold = 0 }, answer, refuse) {
    if (!validate(id)) return { outcome: this.refuse('unknown-client'), cancel() {} };
    const number = this.#number();
    this.#relay.poll(number, parse(id), ack, hold);
    this.#parked += 1;
    this.#open.set(number, {
      resolve: ({ outcome, bytes }) => {
        this.#parked -= 1;
        if (outcome === 'ok') answer(bytes);
        else refuse(outcome);
      },
      reject: (error) => {
        this.#parked -= 1;
        refuse(error);
      }
    });
    this.#flush();
    return {
      outcome: 'ok',
      cancel: () => {
        if (!this.#open.delete(number)) return;
        this.#parked -= 1;
        this.#relay.drop(number);
        this.#flush();
      }
    };
  }

  /**
   * @param {string} id
   * @returns {Promise<object | null>} as Pool#place
   */
  async place(id) {
    if (!validate(id)) return null;
    const { outcome, bytes } = await this.#request((number) =>
      this.#relay.place(number, parse(id))
    );
    return outcome === 'ok' ? JSON.parse(bytes.toString()) : null;
  }

  /** @returns {Promise<object>} what the main process answers to GET /status */
  async status() {
    const { bytes } = await this.#request((number) => this.#relay.counts(number));
    return JSON.parse(bytes.toString());
  }
}
