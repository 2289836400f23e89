import { certificate } from './certificate.js';
import { Wire } from './http.js';
import { startServer } from './server.js';
import { temporary } from './processes.js';

/**
 * Starts a server with every port that there is: the main port, TLS, the admin port and the transient one.
 *
 * @param {import('tap').Test} t
 * @param {Record<string, string | number>} [options] as startServer's; `workers` 0: the first three alone
 * @returns {Promise<{server: object, ways: Record<string, {port: number, open: () => Promise<Wire>}>}>}
 *     `ways` by name: main, tls, admin and workers
 */
export async function startWithEveryWay(t, { workers = 2, ...options } = {}) {
  const ports = { 'admin-port': 0, 'tls-port': 0, ...(workers > 0 && { 'transient-port': 0 }) };
  const server = await startServer(t, {
    options: { drain: 0, workers, ...ports, ...certificate(temporary(t)), ...options }
  });
  const way = (port, open = () => Wire.open(port)) => ({ port, open });
  const ways = {
    main: way(server.port),
    tls: way(server.tlsPort, () => Wire.openTls(server.tlsPort)),
    admin: way(server.adminPort)
  };
  if (workers > 0) ways.workers = way(server.transientPort);
  return { server, ways };
}
