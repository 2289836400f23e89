import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:https';
import { createSecureContext } from 'node:tls';

import { createNodeServer } from './node-server.js';
import { explained } from './port-errors.js';

/**
 * The same routes over TLS, by Node's own https. A parked poll costs much more here than behind the
 * front door (test/README.md says how much): for many clients, a proxy that ends TLS is the better way.
 */

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

/**
 * Opens the TLS port, if there is to be one.
 *
 * @param {object} parts
 * @param {ReturnType<import('./routes.js').createRoutes>} parts.routes
 * @param {import('./address-limits.js').AddressLimits} parts.limits
 * @param {import('./connection-budget.js').ConnectionBudget} parts.budget
 * @param {import('./refusals.js').Refusals} [parts.refusals]
 * @param {object} parts.options see lib/server/options.js: tlsCert, tlsKey, tlsPort, host …
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<{port: number, reload: () => void, stopListening: () => void,
 *     closeIdle: () => void, close: () => void, certificateEnd: () => number | undefined}>} port 0
 *     without TLS; `reload` reads certificate and key anew, for the handshakes from then on;
 *     `certificateEnd` in seconds since 1970
 * @throws {Error} when certificate or key can't be read or don't fit, or the port can't be had
 */
export async function openTls({ routes, limits, budget, refusals, options, log }) {
  const nothing = () => {};
  if (options.tlsCert === 'none') {
    const reload = () => log.info('there is no TLS, and nothing to read anew');
    return {
      port: 0,
      reload,
      certificateEnd: nothing,
      stopListening: nothing,
      closeIdle: nothing,
      close: nothing
    };
  }
  /** @type {number} seconds since 1970 */
  let certificateEnd;
  function read() {
    const identity = readIdentity(options);
    certificateEnd = Date.parse(new X509Certificate(identity.cert).validTo) / 1000;
    return identity;
  }

  const server = createNodeServer({
    routes,
    limits,
    options,
    budget,
    refusals,
    fits: () => budget.fits() && budget.fitsInAll(),
    create: (settings, handle) =>
      createServer(
        {
          ...settings,
          // Who has sent all it will may still read its answer, as without TLS.
          allowHalfOpen: true,
          handshakeTimeout: options.headTime * 1000,
          ...read()
        },
        handle
      ),
    arrival: 'secureConnection'
  });
  function reload() {
    try {
      server.setSecureContext(read());
      log.info('TLS certificate and key read anew');
    } catch (error) {
      log.error({ err: error }, 'TLS certificate and key not changed');
    }
  }

  const { host, tlsPort: port } = options;
  server.listen({ port, host, backlog: 65535 });
  await explained({ host: 'host', port: 'tls-port' }, { host, port }, once(server, 'listening'));
  return {
    port: server.address().port,
    reload,
    certificateEnd: () => certificateEnd,
    stopListening: () => server.close(),
    closeIdle: () => server.closeIdleConnections(),
    close() {
      server.close();
      server.closeEveryConnection();
    }
  };
}
