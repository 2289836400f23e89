/**
 * What TLS costs:
 *
 *     node test/bench/tls.js [clients]      5,000 by default; also npm run bench:tls
 *
 * Starts bin/sprites with a certificate of its own making (openssl) and drives it by the swarm, over the plain port and
 * over TLS in turn: the growth of its resident size a parked client, its CPU a sprite at 2,000 a second, and the CPU of
 * a handshake. One run; ratios hold better than times.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { certificate } from '../support/certificate.js';
import { launch } from '../support/launch.js';
import { untilCounts } from '../support/until.js';
import { answerHelp } from '../support/documents.js';
import { markdown } from './figures.js';
import { runSwarm } from './load.js';
import { cpuOf, residentBytes, statusAt } from './usage.js';

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

/** Waits until so many are parked at a server. */
const untilParked = (admin, count) =>
  untilCounts(
    () => statusAt(admin),
    ({ parked }) => parked >= count,
    PATIENCE
  );

async function measure(scheme) {
  const { child, listening } = launch({
    ...{ drain: 0, 'admin-port': 0, 'tls-port': 0, ...files },
    ...{ 'address-joins': 0, 'address-clients': 0, 'log-level': 'error' }
  });
  const { port, tlsPort, adminPort } = await listening;
  const url = scheme === 'https' ? `https://127.0.0.1:${tlsPort}` : `http://127.0.0.1:${port}`;
  try {
    const warm = swarm(url, ['park', WARM], 600);
    await untilParked(adminPort, WARM);
    await pause(2000);
    const before = residentBytes([child.pid]);
    const cpuBefore = cpuOf(child.pid) * 1e6;
    const crowd = swarm(url, ['park', CLIENTS], 600);
    await untilParked(adminPort, WARM + CLIENTS);
    const opened = (cpuOf(child.pid) * 1e6 - cpuBefore) / CLIENTS;
    await pause(2000);
    const bytes = (residentBytes([child.pid]) - before) / CLIENTS;
    for (const { child: one, result } of [warm, crowd]) {
      one.kill();
      await result;
    }
    const throwing = swarm(url, ['throw', 256, `--rate=${RATE}`], SECONDS + 4);
    await untilParked(adminPort, 200);
    await pause(2000);
    const [began, from] = [performance.now(), cpuOf(child.pid) * 1e6];
    await pause((SECONDS - 3) * 1000);
    const sprites = ((performance.now() - began) / 1000) * RATE;
    const sprite = (cpuOf(child.pid) * 1e6 - from) / sprites;
    await throwing.result;
    return { bytes, opened, sprite };
  } finally {
    child.kill();
    await once(child, 'exit');
  }
}

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
