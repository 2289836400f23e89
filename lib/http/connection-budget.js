import { fileLimit, OWN_FILES } from '../base/file-limit.js';

/**
 * Counts the connections of one process: those of the front door, those that it has handed over to
 * Node's server, and those of the TLS port.
 *
 *   front door ──its own──▶ ┌───────┐ ◀──handed over, TLS── Node's servers
 *              ◀─elsewhere─ │ budget │    handed over + TLS        ≤ --handed-over
 *                           └───────┘    those + the front door's ≤ --connections
 *
 * The front door accepts a million, so it is never waited for: it is told how many the others hold,
 * and refuses by itself. It is asked how many it holds only when Node's servers accept one.
 */
export class ConnectionBudget {
  #most;
  #all;
  #door = { connections: () => 0, elsewhere() {} };
  #held = 0;

  /** Connections that Node's servers have refused. */
  refused = 0;

  /**
   * @param {{connections: number, handedOver: number, door: string}} options see lib/operator/options.js
   */
  constructor({ connections, handedOver, door }) {
    // Every connection takes a file descriptor.
    this.#all = Math.min(connections, Math.max(1, fileLimit() - OWN_FILES));
    this.#most = door === 'native' ? handedOver : connections;
  }

  /** @returns {number} connections there may be in this process */
  get most() {
    return this.#all;
  }

  /** @returns {number} connections that Node's servers hold */
  get held() {
    return this.#held;
  }

  /**
   * Counts the front door's connections as well.
   *
   * @param {{connections: () => number, elsewhere: (held: number) => void}} door what it holds, and
   *     what tells it how many Node's servers do
   */
  countWith(door) {
    this.#door = door;
    door.elsewhere(this.#held);
  }

  /**
   * Counts a connection of Node's until it closes.
   *
   * @param {import('node:net').Socket} socket
   */
  count(socket) {
    this.#add(1);
    socket.on('close', () => this.#add(-1));
  }

  #add(change) {
    this.#held += change;
    this.#door.elsewhere(this.#held);
  }

  /** @returns {boolean} whether Node's servers hold no more than they may */
  fits() {
    return this.#held <= this.#most;
  }

  /** @returns {boolean} whether there are no more in all than there may be */
  fitsInAll() {
    return this.#held + this.#door.connections() <= this.#all;
  }
}
