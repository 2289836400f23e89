/** By which addresses others reach the server of a page that was opened at this machine's own name. */

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** @returns {boolean} whether this page was opened at an address that is of no use to others */
export const isAtHome = () => LOOPBACK.test(location.hostname);

/**
 * @param {string} base the server's URL
 * @returns {Promise<string[]>} URLs of the server, the likeliest first; none where the page has been
 *     reached by such an address itself, or the server does not say
 */
export async function addressesOf(base) {
  if (!isAtHome()) return [];
  try {
    const response = await fetch(new URL('addresses', base));
    const { addresses } = await response.json();
    return Array.isArray(addresses) ? addresses.filter((one) => typeof one === 'string') : [];
  } catch {
    return []; // Offline, or a server that doesn't say: then this page's own address has to do.
  }
}
