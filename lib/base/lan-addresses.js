import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

/**
 * The addresses by which other machines reach this one, for a person at this machine: to click, to send, to
 * scan with a phone. And the names by which this machine is asked.
 */

export const WILDCARD = new Set(['0.0.0.0', '::']);
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/;
const PRIVATE = /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)/; // RFC 1918
const LINK_LOCAL = /^169\.254\./;
/** Networks inside this machine, of containers and virtual ones: a phone is in none of them. */
const VIRTUAL = /^(?:docker|br-|veth|virbr|vmnet|vboxnet|tun|tap|wg|cni|flannel)/;

/** @returns {string} an address or a name as in a URL: IPv6 in brackets */
export const inUrl = (host) => (host.includes(':') ? `[${host}]` : host);

/** @returns {boolean} whether a host, an address or a name, is this machine and reached from nowhere else */
export const isLoopback = (host = '') => LOOPBACK.test(host);

/** The host that a request is for, without its port; '' where it names none, and as it is where it is none. */
function hostOf({ headers: { host = '' } }) {
  const [, v6, name = v6] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(host) ?? [
    undefined,
    host
  ];
  return name.toLowerCase();
}

/**
 * Whether a request is for this machine by a name that no stranger can have given it. Any other name may
 * be a stranger's that leads here (DNS rebinding): for a browser this server is then a part of the stranger's
 * page, which may read it.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {string} [name] that the operator has given it
 * @returns {boolean} true as well where it names no host: no browser does that
 */
export function isByOwnName(request, name = 'localhost') {
  const host = hostOf(request);
  return ['', 'localhost', name.toLowerCase()].includes(host) || isIP(host) > 0;
}

/**
 * @param {string} host what the server listens on
 * @param {ReturnType<typeof interfacesHere>} [interfaces]
 * @returns {string[]} IPv4 addresses, the likeliest to be a phone's network first; a host that is one
 *     address is itself, unless it is this machine's own (localhost)
 */
export function lanAddresses(host, interfaces = interfacesHere()) {
  if (!WILDCARD.has(host)) return isLoopback(host) ? [] : [host];
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
 * What a page is told that asks how others reach its server. Only a browser on this machine that has
 * opened the page by the machine's own name learns its addresses: no stranger behind a proxy, and no
 * other site in the same browser.
 *
 * @param {{headers: Record<string, string>, address: string, secure: boolean}} request `address`: the
 *     client's; the port is that of its Host
 * @param {string} host what the server listens on
 * @param {ReturnType<typeof interfacesHere>} [interfaces]
 * @returns {string[]} URLs of the page
 */
export function invitations(request, host, interfaces) {
  const { headers, address, secure } = request;
  const site = headers['sec-fetch-site'] ?? 'same-origin';
  const own = isLoopback(hostOf(request)) && isLoopback(address);
  if (!own || site !== 'same-origin') return [];
  const [port = ''] = /:\d+$/.exec(headers.host) ?? [];
  const scheme = secure ? 'https' : 'http';
  return lanAddresses(host, interfaces).map((one) => `${scheme}://${inUrl(one)}${port}/`);
}

/**
 * This machine's network interfaces, as node:os has them. None where the system does not tell them: Node asks by a
 * netlink socket, which a service whose address families are restricted may not open (EAFNOSUPPORT).
 *
 * @returns {ReturnType<typeof networkInterfaces>}
 */
export function interfacesHere() {
  try {
    return networkInterfaces();
  } catch (error) {
    if (error.code !== 'ERR_SYSTEM_ERROR') throw error;
    return {};
  }
}
