import { loadAddon } from '../base/addon.js';

/**
 * Limits of each source address, and the sources that are trusted to name a client's address. Native code counts
 * (native/base/address_limits.h).
 */

/** The values of --trust-proxy, by their numbers in native/http/door.h. */
export const TRUST_SOURCES = { none: 0, proxy: 1, forwarded: 2, 'x-forwarded-for': 3 };

/** Burst of joins from one address after a pause, in seconds of its rate. */
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
   * @param {number} seconds 0 ends the ban
   * @returns {string | false | null} the address as `bans` has it; false: there are 1,000 bans already; null: the text is
   *     not an address
   */
  ban(address, seconds) {
    return this.native.ban(address, seconds * 1000);
  }

  /** @returns {{address: string, seconds: number}[]} all bans, and the time to their ends */
  bans() {
    return this.native
      .bans()
      .map(({ address, milliseconds }) => ({ address, seconds: Math.ceil(milliseconds / 1000) }));
  }
}
