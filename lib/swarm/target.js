import dns from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import tls from 'node:tls';

import { inUrl } from '../base/lan-addresses.js';
import { UsageError } from '../base/option-help.js';

/** The address and the TLS settings of the server that the command line names. */

/**
 * @param {string} host a name or an address
 * @returns {Promise<{address: string, host: string}>} the numeric address, and the host as in a URL
 * @throws {UsageError} when the name has no address
 */
export async function resolveTarget(host) {
  try {
    const { address } = await dns.lookup(host, { order: 'ipv4first' });
    return { address, host: inUrl(host) };
  } catch (error) {
    throw new UsageError(`no address for "${host}" (${error.code ?? error.message})`);
  }
}

/** Error codes of node:tls for a certificate that is not trusted. */
const DISTRUST_CODE = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED_CERT|UNABLE_TO_)/;

/** Error messages of node:tls for a server without TLS. */
const NO_TLS_MESSAGE = /wrong version number|packet length too long/i;

/** @param {string} [file] @returns {string} PEM of the authorities in the file; without one, of Node's authorities */
export function readAuthorities(file) {
  if (file) return readFileSync(file, 'utf8');
  const authorities = tls.getCACertificates?.('default') ?? tls.rootCertificates;
  return authorities.join('\n');
}

/**
 * @param {object} options of parse()
 * @returns {?object} options of node:tls for a connection; null for plain http
 * @throws {UsageError} when the authorities can't be read
 */
export function tlsOf({ tls: isTls, ca, insecure, host }) {
  if (!isTls) return null;
  try {
    return {
      ...(ca && { ca: readAuthorities(ca) }),
      rejectUnauthorized: !insecure,
      ...(isIP(host) === 0 && { servername: host })
    };
  } catch (error) {
    throw new UsageError(`--ca ${ca}: ${error.message}`);
  }
}

/**
 * @param {object} options of parse()
 * @returns {?string} the certificates that the engine accepts: see tls-engine.js; null for plain http
 */
export function trustedCertificates({ tls: isTls, ca, insecure }) {
  if (!isTls) return null;
  return insecure ? 'any' : (ca ?? 'known');
}

/**
 * @param {Error} error error of the first request
 * @param {string} host
 * @returns {?string} a message for an error that no retry can mend; null for any other error
 */
export function permanentErrorMessage({ code, message }, host) {
  if (DISTRUST_CODE.test(code ?? '')) {
    return (
      `the certificate of ${host} is not believed (${message}): give the file of its authority ` +
      'by --ca, or believe any by --insecure'
    );
  }
  if (NO_TLS_MESSAGE.test(message)) return `${host} speaks no TLS there: is it http://?`;
  return null;
}
