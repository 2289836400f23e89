import { loadAddon } from './addon.js';

/**
 * Where clients come from: whose word is taken for an address, and what one address may have.
 * The counting is native (native/pool/address_limits.h), so that the front door and Node's server share it.
 */

/** --trust-proxy, in the numbers of native/door/door.h. */
export const TRUST = { none: 0, proxy: 1, forwarded: 2 };

/** A rested address may join this many times its rate at once. */
const JOIN_BURST = 10;

export class AddressLimits {
  #addon = loadAddon();
  #trust;
  /** Sockets whose client's address somebody else has told: see `introduce`. */
  #introduced = new WeakMap();

  /**
   * @param {{addressConnections: number, addressJoins: number, trustProxy: string}} options see
   *     lib/server/options.js
   */
  constructor({ addressConnections, addressJoins, trustProxy }) {
    this.#trust = trustProxy;
    this.native = new this.#addon.AddressLimits({
      connections: addressConnections,
      joinRate: addressJoins,
      joinBurst: addressJoins * JOIN_BURST
    });
  }

  /**
   * Says whose connection a socket is, when the front door knows better than the socket.
   *
   * @param {import('node:net').Socket} socket
   * @param {string} address
   */
  introduce(socket, address) {
    this.#introduced.set(socket, address);
  }

  /**
   * Counts a connection of Node's until it closes; one that was introduced is counted already.
   *
   * @param {import('node:net').Socket} socket
   * @returns {boolean} whether its source may have it
   */
  admit(socket) {
    // All connections of a forwarding proxy come from the proxy: only their requests tell more.
    if (this.#trust === 'forwarded') return true;
    const introduced = this.#introduced.get(socket);
    const address = introduced ?? socket.remoteAddress ?? '';
    if (introduced === undefined && !this.native.open(address)) return false;
    socket.on('close', () => this.native.close(address));
    return true;
  }

  /**
   * @param {import('node:http').IncomingMessage} request
   * @returns {string} the client's address, as far as it is known
   */
  addressOf({ socket, headers }) {
    const own = this.#introduced.get(socket) ?? socket.remoteAddress ?? '';
    if (this.#trust !== 'forwarded') return own;
    const { 'x-forwarded-for': forwardedFor = '', forwarded = '' } = headers;
    return this.#addon.forwardedAddress(forwardedFor, forwarded) ?? own;
  }
}
