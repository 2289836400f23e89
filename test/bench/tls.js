/**
 * What TLS costs:
 *
 *     node test/bench/tls.js [clients]      5,000 by default; also npm run bench:tls
 *
 * Starts bin/sprites with a certificate of its own making (openssl) and drives it by the swarm, over the plain port and
 * over TLS in turn: the growth of its resident size a parked client, its CPU a sprite at 2,000 a second, and the CPU of
 * a handshake. One run; ratios hold better than times.
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
import { cpuOf, residentBytes } from './usage.js';

answerHelp(import.meta.url);

const CLIENTS = Number(process.argv[2] ?? 5000);
/** Clients that are there before the measuring begins, so that what every server has is not counted. */
const WARM = 500;
const RATE = 2000;
const SECONDS = 8;
/** Seconds in which all are parked. */
const PATIENCE = 600;

const directory = mkdtempSync(join(tmpdir(), 'sprites-tls-'));
const files = certificate(directory);

const swarm = (url, words, time) =>
  runSwarm([...words, '--quiet', ...(url.startsWith('https') ? ['--insecure'] : [])], {
    url,
    time
  });

const OPTIONS = { drain: 0, 'admin-port': 0, 'tls-port': 0, ...files, 'log-level': 'error' };

const measure = async (scheme) =>
  during(await startSprites(OPTIONS, { probed: false }), async (server) => {
    const url = `${scheme}://127.0.0.1:${scheme === 'https' ? server.tlsPort : server.port}`;
    const untilParked = (count) =>
      untilCounts(server.status, ({ parked }) => parked >= count, PATIENCE);
    const [pid] = server.pids;
    const warm = swarm(url, ['park', WARM], 600);
    await untilParked(WARM);
    await pause(2000);
    const before = residentBytes([pid]);
    const cpuBefore = cpuOf(pid) * 1e6;
    const crowd = swarm(url, ['park', CLIENTS], 600);
    await untilParked(WARM + CLIENTS);
    const opened = (cpuOf(pid) * 1e6 - cpuBefore) / CLIENTS;
    await pause(2000);
    const bytes = (residentBytes([pid]) - before) / CLIENTS;
    for (const { child, result } of [warm, crowd]) {
      child.kill();
      await result;
    }
    const throwing = swarm(url, ['throw', 256, `--rate=${RATE}`], SECONDS + 4);
    await untilParked(200);
    await pause(2000);
    const [began, from] = [performance.now(), cpuOf(pid) * 1e6];
    await pause((SECONDS - 3) * 1000);
    const sprites = ((performance.now() - began) / 1000) * RATE;
    const sprite = (cpuOf(pid) * 1e6 - from) / sprites;
    await throwing.result;
    return { bytes, opened, sprite };
  });

try {
  const rows = [];
  for (const scheme of ['http', 'https']) {
    const { bytes, opened, sprite } = await measure(scheme);
    rows.push([scheme, Math.round(bytes), Math.round(opened), sprite.toFixed(1)]);
  }
  const parked = `bytes a parked client (${CLIENTS})`;
  console.log(
    markdown([['way in', parked, 'µs of CPU to join and park', 'µs of CPU a sprite'], ...rows])
  );
} finally {
  rmSync(directory, { recursive: true });
}
