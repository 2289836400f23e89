import { lanAddresses } from '../base/lan-addresses.js';

/** The most a server's URL may have, in characters. */
const LONGEST = 256;

/**
 * @param {unknown} text
 * @returns {string | undefined} the URL of a server, http or https, with a host and perhaps a port, and without a slash at
 *     the end; undefined for anything else
 */
export function readServerUrl(text) {
  if (typeof text !== 'string' || text.length > LONGEST || !URL.canParse(text)) return undefined;
  const { protocol, origin, href } = new URL(text);
  const isPlain = ['http:', 'https:'].includes(protocol) && [origin, `${origin}/`].includes(href);
  return isPlain && /^[\x21-\x7e]+$/.test(text) ? origin : undefined;
}

/**
 * Where clients reach this server alone, for the others to say.
 *
 * @param {{worldUrl: string, host: string}} options
 * @param {number} port the one that it listens on
 * @returns {string} --world-url; else by the address that it listens on, and where that is every one, by the first of this
 *     machine that others can reach
 */
export function publicUrl({ worldUrl, host }, port) {
  if (worldUrl !== 'none') return worldUrl;
  const isEvery = ['0.0.0.0', '::'].includes(host);
  const address = isEvery ? (lanAddresses(host)[0] ?? '127.0.0.1') : host;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}
