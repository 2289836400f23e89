import { inUrl, lanAddresses, WILDCARD_HOSTS } from './lan-addresses.js';

/**
 * Explains to an operator why a port can't be opened, and what to do.
 */

/** Advice for each system error, by its code. */
const ADVICE = {
  EADDRINUSE: ({ port }) => `is taken by another program: choose another port by --${port}`,
  EADDRNOTAVAIL: ({ host }) =>
    'is no address of this host: give one that it has by' +
    ` --${host}, or 0.0.0.0 for all of them`,
  EAFNOSUPPORT: ({ host }) => `is of a family this host does not speak: give another by --${host}`,
  EACCES: ({ port }) =>
    `takes a privilege: choose a port from 1024 up by --${port}, or give the` +
    ' program CAP_NET_BIND_SERVICE',
  ENOTFOUND: ({ host }) => `is an unknown name: give an address by --${host}`,
  EAI_AGAIN: ({ host }) => `is a name that cannot be looked up now: give an address by --${host}`
};

/** The system calls whose errors are explained: not EACCES of a file, for example. */
const EXPLAINED_CALLS = ['listen', 'bind', 'getaddrinfo'];

const authority = (host, port) => `${inUrl(host)}:${port}`;

/**
 * @param {'http' | 'https'} scheme
 * @param {string} host the address that the server listens on
 * @param {number} port 0 for none
 * @returns {string[]} URLs for a browser: the first for this machine, the others for its network, where the server listens
 *     on every address; none without a port
 */
export function urlsOf(scheme, host, port) {
  if (port === 0) return [];
  const addresses = WILDCARD_HOSTS.has(host) ? ['localhost', ...lanAddresses(host)] : [host];
  return addresses.map((address) => `${scheme}://${authority(address, port)}/`);
}

/**
 * Waits for a port to open. Adds advice to the message of its error.
 *
 * @template T
 * @param {{host: string, port: string}} names the options of host and port, without their dashes
 * @param {{host: string, port: number}} values the values of these options
 * @param {Promise<T>} opening
 * @returns {Promise<T>} settles as `opening` does
 */
export async function explainPortErrors(names, { host, port }, opening) {
  try {
    return await opening;
  } catch (error) {
    const adviceOf = ADVICE[error.code];
    if (adviceOf !== undefined && EXPLAINED_CALLS.includes(error.syscall)) {
      error.message = `${authority(host, port)} ${adviceOf(names)}`;
    }
    throw error;
  }
}
