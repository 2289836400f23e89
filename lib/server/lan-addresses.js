import { interfacesHere } from './interfaces.js';

/**
 * The addresses by which others reach this machine, for who sits at it: to click, to send, to scan
 * with a phone.
 */

const WILDCARD = new Set(['0.0.0.0', '::']);
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/;
const PRIVATE = /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)/; // RFC 1918
const LINK_LOCAL = /^169\.254\./;
/** Networks inside this machine, of containers and virtual ones: a phone is in none of them. */
const VIRTUAL = /^(?:docker|br-|veth|virbr|vmnet|vboxnet|tun|tap|wg|cni|flannel)/;

/**
 * @param {string} host what the server listens on
 * @param {ReturnType<typeof interfacesHere>} [interfaces]
 * @returns {string[]} IPv4 addresses, the likeliest to be a phone's network first; a host that is one
 *     address is itself, unless it is this machine's own (localhost)
 */
export function lanAddresses(host, interfaces = interfacesHere()) {
  if (!WILDCARD.has(host)) return LOOPBACK.test(host) ? [] : [host];
  const found = [];
  for (const [name, list] of Object.entries(interfaces)) {
    for (const { address, family, internal } of list) {
      if (internal || family !== 'IPv4' || LINK_LOCAL.test(address)) continue;
      const rank = (VIRTUAL.test(name) ? 2 : 0) + (PRIVATE.test(address) ? 0 : 1);
      found.push({ address, rank });
    }
  }
  return found.sort((a, b) => a.rank - b.rank).map(({ address }) => address);
}

/**
 * What a page is told that asks how others reach its server. Only who sits at this machine, and has
 * opened the page by the machine's own name, learns its addresses: no stranger behind a proxy, and no
 * other site in the same browser.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {string} host what the server listens on
 * @param {ReturnType<typeof interfacesHere>} [interfaces]
 * @returns {string[]} URLs of the page
 */
export function invitations({ socket, headers }, host, interfaces) {
  const [, name = ''] = /^\[?([^\]]*?)\]?(?::\d+)?$/.exec(headers.host ?? '') ?? [];
  const site = headers['sec-fetch-site'] ?? 'same-origin';
  const own = LOOPBACK.test(name) && LOOPBACK.test(socket.remoteAddress ?? '');
  if (!own || site !== 'same-origin') return [];
  const scheme = socket.encrypted ? 'https' : 'http';
  return lanAddresses(host, interfaces).map((address) => {
    const authority = address.includes(':') ? `[${address}]` : address;
    return `${scheme}://${authority}:${socket.localPort}/`;
  });
}
