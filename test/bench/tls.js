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
import { setTimeout as pause } from 'node:timers/promises';

import { certificate } from '../support/certificate.js';
import { untilCounts } from '../support/until.js';
import { answerHelp } from '../support/documents.js';
import { during, startSprites } from './contenders.js';
import { markdown } from './figures.js';
import { runSwarm } from './load.js';
import { residentBytes } from './usage.js';

answerHelp(import.meta.url);

const CLIENTS = Number(process.argv[2] ?? 3000);
/** Clients that are there before the measuring begins, so that what every server has is not counted. */
const WARM = 500;
/** Seconds in which all are parked. */
const PATIENCE = 600;

const directory = mkdtempSync(join(tmpdir(), 'sprites-tls-'));
const files = certificate(directory);
const OPTIONS = { drain: 0, 'admin-port': 0, 'tls-port': 0, ...files, 'log-level': 'error' };

const measure = async (scheme) =>
  during(await startSprites(OPTIONS, { probed: false }), async (server) => {
    const url = `${scheme}://127.0.0.1:${scheme === 'https' ? server.tlsPort : server.port}`;
    const swarms = [];
    /** Parks so many more; the resident size once they are at rest. */
    const park = async (clients, all) => {
      const words = ['park', clients, '--quiet', ...(scheme === 'https' ? ['--insecure'] : [])];
      swarms.push(runSwarm(words, { url, time: 600 }));
      await untilCounts(server.status, ({ parked }) => parked >= all, PATIENCE);
      await pause(2000);
      return residentBytes(server.pids);
    };
    const before = await park(WARM, WARM);
    const after = await park(CLIENTS, WARM + CLIENTS);
    for (const { child, result } of swarms) {
      child.kill();
      await result;
    }
    return Math.round((after - before) / CLIENTS);
  });

try {
  const rows = [['way in', `bytes a parked client (${CLIENTS})`]];
  for (const scheme of ['http', 'https']) rows.push([scheme, await measure(scheme)]);
  console.log(markdown(rows));
} finally {
  rmSync(directory, { recursive: true });
}
