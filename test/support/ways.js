import { certificate } from './certificate.js';
import { Wire } from './http.js';
import { startServer } from './server.js';
import { temporary } from './processes.js';

/** The port in the line of a server's that begins so. */
export function portIn(server, words) {
  const line = server.lines.find((one) => one.startsWith(words));
  return Number(/:(\d+)\//.exec(line)[1]);
}

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
  await server.until(() => server.lines.some((line) => line.startsWith('Metrics')));
  const way = (port, open = () => Wire.open(port)) => ({ port, open });
  const tls = portIn(server, 'TLS');
  const ways = {
    main: way(server.port),
    tls: way(tls, () => Wire.openTls(tls)),
    admin: way(portIn(server, 'Metrics'))
  };
  if (workers > 0) ways.workers = way(portIn(server, 'Joins,'));
  return { server, ways };
}
