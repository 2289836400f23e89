/**
 * What TLS costs:
 *
 *     node test/bench/tls.js [clients]      5,000 by default; also npm run bench:tls
 *
 * Starts bin/sprites with a certificate of its own making (openssl) and drives it by the swarm, over the plain port and
 * over TLS in turn: the growth of its resident size a parked client, its CPU a sprite at 2,000 a second, and the CPU of
 * a handshake. One run; ratios hold better than times.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { launch, ROOT } from '../support/launch.js';
import { answerHelp } from '../support/opening-comment.js';

answerHelp(import.meta.url);

const CLIENTS = Number(process.argv[2] ?? 5000);
/** Clients that are there before the measuring begins, so that what every server has is not counted. */
const WARM = 500;
const RATE = 2000;
const SECONDS = 8;

const directory = mkdtempSync(join(tmpdir(), 'sprites-tls-'));
const cert = join(directory, 'cert.pem');
const key = join(directory, 'key.pem');

function resident(pid) {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kilobytes) * 1024;
}

/** CPU time that a process has used, in microseconds. */
function cpu(pid) {
  const fields = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
  return Number(fields[0]) / 1000;
}

function swarm(url, ...args) {
  const trust = url.startsWith('https') ? ['--insecure'] : [];
  const all = [`${ROOT}bin/sprites-swarm`, ...args, '--url', url, ...trust];
  return spawn(process.execPath, all, { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Runs until so many are parked at a server. */
async function untilParked(admin, count) {
  for (;;) {
    const status = await (await fetch(`http://127.0.0.1:${admin}/status`)).json();
    if (status.parked >= count) return;
    await pause(200);
  }
}

async function measure(scheme) {
  const { child, listening } = launch({
    ...{ drain: 0, 'admin-port': 0, 'tls-cert': cert, 'tls-key': key, 'tls-port': 0 },
    ...{ 'address-joins': 0, 'address-clients': 0, 'log-level': 'error' }
  });
  const { port, tlsPort, adminPort } = await listening;
  const url = scheme === 'https' ? `https://127.0.0.1:${tlsPort}` : `http://127.0.0.1:${port}`;
  try {
    const warm = swarm(url, 'park', String(WARM), '-d', '600s');
    await untilParked(adminPort, WARM);
    await pause(2000);
    const before = resident(child.pid);
    const cpuBefore = cpu(child.pid);
    const crowd = swarm(url, 'park', String(CLIENTS), '-d', '600s');
    await untilParked(adminPort, WARM + CLIENTS);
    const opened = (cpu(child.pid) - cpuBefore) / CLIENTS;
    await pause(2000);
    const bytes = (resident(child.pid) - before) / CLIENTS;
    for (const one of [warm, crowd]) {
      one.kill();
      await once(one, 'exit');
    }
    const throwing = swarm(url, 'throw', '256', '--rate', String(RATE), '-d', `${SECONDS + 4}s`);
    await untilParked(adminPort, 200);
    await pause(2000);
    const [began, from] = [performance.now(), cpu(child.pid)];
    await pause((SECONDS - 3) * 1000);
    const sprites = ((performance.now() - began) / 1000) * RATE;
    const sprite = (cpu(child.pid) - from) / sprites;
    await once(throwing, 'exit');
    return { bytes, opened, sprite };
  } finally {
    child.kill();
    await once(child, 'exit');
  }
}

try {
  execFileSync(
    'openssl',
    // prettier-ignore
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key,
      '-out', cert, '-days', '2', '-subj', '/CN=localhost'],
    { stdio: 'ignore' }
  );
  console.log(
    `| way in | bytes a parked client (${CLIENTS}) | µs of CPU to join and park | µs of CPU a sprite |`
  );
  console.log('| --- | --- | --- | --- |');
  for (const scheme of ['http', 'https']) {
    const { bytes, opened, sprite } = await measure(scheme);
    console.log(
      `| ${scheme} | ${Math.round(bytes)} | ${Math.round(opened)} | ${sprite.toFixed(1)} |`
    );
  }
} finally {
  rmSync(directory, { recursive: true });
}
