/**
 * What TLS costs a parked client:
 *
 *     node test/bench/tls.js [clients]      3,000 by default; also npm run bench:tls
 *
 * Starts bin/sprites with a certificate of its own making (openssl), parks the swarm over the plain port and over TLS in
 * turn, and prints by how many bytes a client the server's resident size grows. One run.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { certificate } from '../support/certificate.js';
import { answerHelp } from '../support/documents.js';
import { during, startSprites } from './contenders.js';
import { tableOf } from './figures.js';
import { Load } from './load.js';
import { atRest, residentBytes } from './usage.js';

answerHelp(import.meta.url);

const CLIENTS = Number(process.argv[2] ?? 3000);
/** Clients that are there before the measuring begins, so that what every server has is not counted. */
const WARM = 500;

const directory = mkdtempSync(join(tmpdir(), 'sprites-tls-'));
const files = certificate(directory);
const OPTIONS = { drain: 0, 'admin-port': 0, 'tls-port': 0, ...files, 'log-level': 'error' };

const measure = async (scheme) =>
  during(await startSprites(OPTIONS, { probed: false }), async (server) => {
    const [port, believed] = scheme === 'https' ? [server.tlsPort, 'any'] : [server.port, null];
    const loads = [];
    try {
      /** Parks so many more; the resident size once they are at rest. */
      const park = async (clients) => {
        loads.push(new Load([{ port, clients }], false, believed));
        await loads.at(-1).park();
        await atRest(server.pids);
        return residentBytes(server.pids);
      };
      const before = await park(WARM);
      return Math.round(((await park(CLIENTS)) - before) / CLIENTS);
    } finally {
      await Promise.all(loads.map((load) => load.stop()));
    }
  });

try {
  const rows = [];
  for (const scheme of ['http', 'https']) rows.push({ scheme, bytes: await measure(scheme) });
  const columns = {
    'way in': ({ scheme }) => scheme,
    [`bytes a parked client (${CLIENTS})`]: ({ bytes }) => bytes
  };
  console.log(tableOf(columns, rows));
} finally {
  rmSync(directory, { recursive: true });
}
