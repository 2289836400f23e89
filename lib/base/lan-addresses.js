import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

/**
 * The addresses by which other machines reach this machine, for a person at it: to click, to send, to scan with a phone.
 * Also the names under which requests for this machine come.
 */

export const WILDCARD_HOSTS = new Set(['0.0.0.0', '::']);
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/;
const PRIVATE = /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)/; // RFC 1918
const LINK_LOCAL = /^169\.254\./;
/** Interfaces of networks inside this machine, for containers and virtual machines: no phone is in such a network. */
const VIRTUAL = /^(?:docker|br-|veth|virbr|vmnet|vboxnet|tun|tap|wg|cni|flannel)/;

/** @returns {string} an address or a name for a URL: IPv6 in brackets */
export const inUrl = (host) => (host.includes(':') ? `[${host}]` : host);

/** @returns {boolean} whether a host, an address or a name, is only reached from this machine */
export const isLoopback = (host = '') => LOOPBACK.test(host);

/** Returns the host of a request, without its port; '' without a Host field, and an invalid one unchanged. */
function hostOf({ headers: { host = '' } }) {
  const [, v6, name = v6] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(host) ?? [
    undefined,
    host
  ];
  return name.toLowerCase();
}

/**
 * Returns whether a request names this machine by a name that no attacker can control. An attacker can let any other
 * name point here (DNS rebinding): to a browser this server is then part of the attacker's site, whose pages may read
 * its answers.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {string} [name] the operator's name for this machine
 * @returns {boolean} also true without a host: no browser sends such a request
 */
export function hasTrustedHost(request, name = 'localhost') {
  const host = hostOf(request);
  return ['', 'localhost', name.toLowerCase()].includes(host) || isIP(host) > 0;
}

/**
 * @param {string} host the address that the server listens on
 * @param {ReturnType<typeof localInterfaces>} [interfaces]
 * @returns {string[]} IPv4 addresses, the one in the likeliest network of a phone first; the host itself where the
 *     server listens on one address, unless that is loopback
 */
export function lanAddresses(host, interfaces = localInterfaces()) {
  if (!WILDCARD_HOSTS.has(host)) return isLoopback(host) ? [] : [host];
  const ranked = [];
  for (const [name, list] of Object.entries(interfaces)) {
    for (const { address, family, internal } of list) {
      if (internal || family !== 'IPv4' || LINK_LOCAL.test(address)) continue;
      const rank = (VIRTUAL.test(name) ? 2 : 0) + (PRIVATE.test(address) ? 0 : 1);
      ranked.push({ address, rank });
    }
  }
  return ranked.sort((a, b) => a.rank - b.rank).map(({ address }) => address);
}

/**
 * Returns the URLs by which others reach the server, for its page. Only a browser on this machine that has opened the page
 * by the machine's own name gets them: no stranger behind a proxy, and no other site in the same browser.
 *
 * @param {{headers: Record<string, string>, address: string, secure: boolean}} request `address` is the
 *     client's; the port is that of the Host field
 * @param {string} host the address that the server listens on
 * @param {ReturnType<typeof localInterfaces>} [interfaces]
 * @returns {string[]} URLs of the page
 */
export function shareableUrls(request, host, interfaces) {
  const { headers, address, secure } = request;
  const site = headers['sec-fetch-site'] ?? 'same-origin';
  const isFromThisMachine = isLoopback(hostOf(request)) && isLoopback(address);
  if (!isFromThisMachine || site !== 'same-origin') return [];
  const [port = ''] = /:\d+$/.exec(headers.host) ?? [];
  const scheme = secure ? 'https' : 'http';
  return lanAddresses(host, interfaces).map((one) => `${scheme}://${inUrl(one)}${port}/`);
}

/**
 * Returns this machine's network interfaces, as node:os has them; none where the system refuses: Node opens a netlink
 * socket, which a service with restricted address families may not do (EAFNOSUPPORT).
 *
 * @returns {ReturnType<typeof networkInterfaces>}
 */
export function localInterfaces() {
  try {
    return networkInterfaces();
  } catch (error) {
    if (error.code !== 'ERR_SYSTEM_ERROR') throw error;
    return {};
  }
}
