import { parse, stringify, validate } from 'uuid';

import { loadAddon } from './addon.js';
import { EDGES, Unanswerable } from './pool.js';

/**
 * The pool for the routes of a worker: joins, throws and leaves cross to the main process by the
 * relay (native/relay/relay.h), and their outcomes are promises. A worker serves nothing else.
 */
export class RemotePool {
  #outcomes;
  #relay;
  #flush = () => {};
  /** Requests without an outcome yet: number → the functions that take it, or that there is none. */
  #open = new Map();
  #lastNumber = 0;

  /**
   * @param {{maxSprite: number}} options
   */
  constructor({ maxSprite }) {
    const addon = loadAddon();
    this.#outcomes = addon.outcomes;
    this.#relay = new addon.Relay(maxSprite, (number, outcome, id) => {
      const { resolve, reject } = this.#open.get(number);
      this.#open.delete(number);
      if (outcome === undefined) reject(new Unanswerable());
      else resolve({ outcome: this.#outcomes[outcome], id });
    });
  }

  /** The native relay, for the front door. */
  get native() {
    return this.#relay;
  }

  /** @returns {number} requests of JavaScript's that wait for their outcome */
  get open() {
    return this.#open.size;
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

  /** Asks the main process. `ask(number)` adds the frame, or returns why the request is refused. */
  #request(ask) {
    return new Promise((resolve, reject) => {
      const number = (this.#lastNumber = (this.#lastNumber + 1) >>> 0);
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
    const { outcome, id } = await this.#request((number) => this.#relay.join(number, address));
    return outcome === 'ok' ? { outcome, id: stringify(id) } : { outcome };
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
}
