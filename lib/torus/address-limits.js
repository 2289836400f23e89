import { loadAddon } from '../base/addon.js';

/**
 * The addresses of clients: what is trusted to tell them, and what one address may have. The counting is native
 * (native/base/address_limits.h).
 */

/** The values of --trust-proxy, as native/http/door.h numbers them. */
export const TRUST = { none: 0, proxy: 1, forwarded: 2, 'x-forwarded-for': 3 };

/** After a pause an address may make this many seconds' joins at once. */
const JOIN_BURST = 10;

export class AddressLimits {
  /**
   * @param {object} options addressConnections, addressClients, addressJoins, addressMemory,
   *     addressHeld, addressFeeds: see lib/operator/options.js
   */
  constructor(options) {
    const addon = loadAddon();
    this.native = new addon.AddressLimits({
      connections: options.addressConnections,
      clients: options.addressClients,
      joinRate: options.addressJoins,
      joinBurst: options.addressJoins * JOIN_BURST,
      spriteBytes: options.addressMemory,
      heldBytes: options.addressHeld,
      feeds: options.addressFeeds
    });
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
}
