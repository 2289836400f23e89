import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:https';
import { createSecureContext } from 'node:tls';

import { createNodeServer } from './node-server.js';
import { explained } from '../base/port-errors.js';

/**
 * The same routes over TLS, by Node's own https. A parked poll costs much more here than behind the
 * front door (test/README.md says how much): for many clients, a proxy that ends TLS is the better way.
 */

/** Connections that may wait to be accepted; the kernel allows at most net.core.somaxconn. */
const BACKLOG = 65535;

/** Reads the file that an option names. */
function readOption(name, path) {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`--${name} ${path} can't be read (${error.code})`, { cause: error });
  }
}

/**
 * Reads certificate and key, and holds them against each other.
 *
 * @param {{tlsCert: string, tlsKey: string}} options
 * @returns {{cert: Buffer, key: Buffer}}
 * @throws {Error} in one line that names the option
 */
function readIdentity({ tlsCert, tlsKey }) {
  const cert = readOption('tls-cert', tlsCert);
  const key = readOption('tls-key', tlsKey);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new Error(
      `--tls-cert ${tlsCert} and --tls-key ${tlsKey} are no certificate with its key, both in PEM` +
        ` (${error.message})`,
      { cause: error }
    );
  }
  return { cert, key };
}

/** What there is where no TLS is served in this process. */
function nowhere() {
  const nothing = () => {};
  return { port: 0, stopListening: nothing, closeIdle: nothing, close: nothing };
}

/**
 * Opens the TLS port, if there is to be one. Where workers share it (`shared`), they serve it, with the
 * certificate and key that were read here (openTlsIn).
 *
 * @param {object} parts
 * @param {ReturnType<import('./routes.js').createRoutes>} parts.routes
 * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
 * @param {import('./connection-budget.js').ConnectionBudget} parts.budget
 * @param {import('./refusals.js').Refusals} [parts.refusals]
 * @param {object} parts.options see lib/operator/options.js: tlsCert, tlsKey, tlsPort, host …
 * @param {{port: number}} parts.shared the port that workers share; 0: none
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<{port: number, identity: () => object | undefined, reload: () => void,
 *     stopListening: () => void, closeIdle: () => void, close: () => void,
 *     certificateEnd: () => number | undefined}>} port 0 without TLS; `reload` reads certificate and key
 *     anew, for the handshakes from then on; `certificateEnd` in seconds since 1970
 * @throws {Error} when certificate or key can't be read or don't fit, or the port can't be had
 */
export async function openTls({ options, shared, log, ...parts }) {
  const nothing = () => {};
  if (options.tlsCert === 'none') {
    const reload = () => log.info('there is no TLS, and nothing to read anew');
    return { ...nowhere(), reload, identity: nothing, certificateEnd: nothing };
  }
  /** @type {number} seconds since 1970 */
  let certificateEnd;
  let identity;
  function read() {
    identity = readIdentity(options);
    certificateEnd = Date.parse(new X509Certificate(identity.cert).validTo) / 1000;
    return identity;
  }
  read();
  const served =
    shared.port > 0
      ? { ...nowhere(), port: shared.port, take: nothing }
      : await openTlsIn({ options, log, ...parts, identity });
  return {
    ...served,
    identity: () => identity,
    certificateEnd: () => certificateEnd,
    reload() {
      try {
        served.take(read());
        log.info('TLS certificate and key read anew');
      } catch (error) {
        log.error({ err: error }, 'TLS certificate and key not changed');
      }
    }
  };
}

/**
 * Serves TLS in this process.
 *
 * @param {object} parts as openTls's
 * @param {{cert: Buffer, key: Buffer}} parts.identity
 * @param {number} [parts.socket] a descriptor that listens already, instead of the port of the options
 * @returns {Promise<{port: number, take: (identity: object) => void, stopListening: () => void,
 *     closeIdle: () => void, close: () => void}>} `take` serves with another certificate and key
 * @throws {Error} when the port can't be had
 */
export async function openTlsIn({ options, identity, socket, ...parts }) {
  const { budget } = parts;
  const server = createNodeServer({
    ...parts,
    options,
    fits: () => budget.fits() && budget.fitsInAll(),
    create: (settings, handle) =>
      createServer(
        {
          ...settings,
          // Who has sent all it will may still read its answer, as without TLS.
          allowHalfOpen: true,
          handshakeTimeout: options.headTime * 1000,
          ...identity
        },
        handle
      ),
    arrival: 'secureConnection'
  });
  const { host, tlsPort: port } = options;
  if (socket === undefined) server.listen({ port, host, backlog: BACKLOG });
  else server.listen({ fd: socket }, BACKLOG);
  await explained({ host: 'host', port: 'tls-port' }, { host, port }, once(server, 'listening'));
  return {
    port: server.address().port,
    take: (other) => server.setSecureContext(other),
    stopListening: () => server.close(),
    closeIdle: () => server.closeIdleConnections(),
    close() {
      server.close();
      server.closeEveryConnection();
    }
  };
}
