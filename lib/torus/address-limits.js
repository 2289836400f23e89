import { loadAddon } from '../base/addon.js';

/**
 * The addresses of clients: who is trusted to tell them, and what one address may have.
 * The counting is native (native/base/address_limits.h), so that the front door and Node's server share it.
 */

/** The values of --trust-proxy, as native/http/door.h numbers them. */
export const TRUST = { none: 0, proxy: 1, forwarded: 2, 'x-forwarded-for': 3 };

/** The function of the addon that reads the header of that name. */
const READERS = { forwarded: 'readForwarded', 'x-forwarded-for': 'readForwardedFor' };

/** Numbers of connections begin again here: as in native/relay/frames.h. */
const NUMBERS = 2 ** 31;

/** After a pause an address may make this many seconds' joins at once. */
const JOIN_BURST = 10;

export class AddressLimits {
  #addon = loadAddon();
  #trust;
  /** The clients' addresses of sockets that were introduced: see `introduce`. */
  #introduced = new WeakMap();
  /** Sockets that are counted here and elsewhere, by the numbers they have there. */
  #counted = new Map();
  #lastNumber = 0;
  #flush = () => {};

  /**
   * @param {object} options addressConnections, addressHandedOver, addressClients, addressJoins,
   *     addressMemory, addressHeld, addressFeeds, door, trustProxy: see lib/operator/options.js
   */
  constructor(options) {
    this.#trust = options.trustProxy;
    this.native = new this.#addon.AddressLimits({
      connections: options.addressConnections,
      // Without the front door there is nothing to hand over: Node's server has them all.
      handedOver: options.door === 'native' ? options.addressHandedOver : 0,
      clients: options.addressClients,
      joinRate: options.addressJoins,
      joinBurst: options.addressJoins * JOIN_BURST,
      spriteBytes: options.addressMemory,
      heldBytes: options.addressHeld,
      feeds: options.addressFeeds
    });
  }

  /**
   * Tells the address of a socket's client, which the front door knows when a proxy stands between.
   *
   * @param {import('node:net').Socket} socket
   * @param {string} address
   */
  introduce(socket, address) {
    this.#introduced.set(socket, address);
  }

  /**
   * @param {() => void} flush sends what was counted to the process that counts those of all
   */
  flushBy(flush) {
    this.#flush = flush;
  }

  /** A connection may not stay: its address has enough, those of other processes counted. */
  tooMany(number) {
    this.#counted.get(number)?.destroy();
  }

  /**
   * Counts a connection of Node's until it closes; one that was introduced was counted as the front
   * door's.
   *
   * @param {import('node:net').Socket} socket
   * @returns {boolean} whether its address may have it
   */
  admit(socket) {
    // All connections come from the proxy: only a request tells the address of its client.
    if (this.#trust in READERS) return true;
    const introduced = this.#introduced.get(socket);
    const address = introduced ?? socket.remoteAddress ?? '';
    if (introduced !== undefined) this.native.close(address);
    if (!this.#open(address, socket)) return false;
    const admitted = this.native.handOver(address);
    socket.on('close', () => {
      this.native.close(address);
      if (admitted) this.native.handBack(address);
      this.#flush();
    });
    return admitted;
  }

  #open(address, socket) {
    this.#lastNumber = (this.#lastNumber + 1) % NUMBERS;
    const number = this.#lastNumber;
    if (!this.native.open(address, number)) return false;
    this.#counted.set(number, socket);
    socket.on('close', () => this.#counted.delete(number));
    this.#flush();
    return true;
  }

  /**
   * Refuses connections and joins from an address (IPv6: its /64) for a while.
   *
   * @param {string} address
   * @param {number} seconds 0 ends it
   * @returns {boolean | null} false when there are 1,000 bans already, null when that is no address
   */
  ban(address, seconds) {
    return this.native.ban(address, seconds * 1000);
  }

  /** @returns {{address: string, seconds: number}[]} the bans there are, and how long they last */
  bans() {
    return this.native
      .bans()
      .map(({ address, milliseconds }) => ({ address, seconds: Math.ceil(milliseconds / 1000) }));
  }

  /**
   * @param {import('node:net').Socket} socket
   * @returns {string} the address its connection comes from, as far as it is known
   */
  peerOf(socket) {
    return this.#introduced.get(socket) ?? socket.remoteAddress ?? '';
  }

  /**
   * @param {import('node:http').IncomingMessage} request
   * @returns {string} the client's address, as far as it is known
   */
  addressOf(request) {
    const own = this.peerOf(request.socket);
    if (!(this.#trust in READERS)) return own;
    // The last line of that name: what a proxy adds as a line of its own stands behind the client's.
    const line = request.headersDistinct[this.#trust]?.at(-1) ?? '';
    return this.#addon[READERS[this.#trust]](line) ?? own;
  }
}
