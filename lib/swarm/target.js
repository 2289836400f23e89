import dns from 'node:dns/promises';
import { isIPv6 } from 'node:net';

import { UsageError } from './errors.js';

/** The server that a command line names. */

/** @param {string} host a name or an address @returns {string} as a URL writes it */
export const inUrl = (host) => (isIPv6(host) ? `[${host}]` : host);

/**
 * @param {string} host a name or an address
 * @returns {Promise<{address: string, host: string}>} its numeric address, and the host as a URL writes it
 * @throws {UsageError} when it has no address
 */
export async function targetOf(host) {
  try {
    const { address } = await dns.lookup(host, { order: 'ipv4first' });
    return { address, host: inUrl(host) };
  } catch (error) {
    throw new UsageError(`no address for "${host}" (${error.code ?? error.message})`);
  }
}
