/**
 * What an attack costs others: `npm run bench:attacks -- [seconds] [rounds] [attack …]` (5, 5, all).
 *
 * Honest clients of one address throw 2,000 sprites a second by the clock; another address attacks in one way, as fast as
 * it can: resets, pipelining, slow readers, handshakes, bodies that never end. In each round there is one spell without an
 * attack, and one with each.
 *
 * The server has a core of its own. The attacker shares the other with the honest clients, at nice 19: so it takes no time
 * from them that the server would seem to have taken, and what is left of a core is what it attacks with. Ratios are to
 * the spell without an attack of the same round; medians, smallest and largest in brackets.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { onCore, start } from './contenders.js';
import { inRounds, markdown, show, spreads } from './figures.js';
import { runSwarm } from './load.js';
import { statusAt } from './usage.js';
import { certificate } from '../support/certificate.js';
import { launch, SPRITES } from '../support/launch.js';
import { answerHelp } from '../support/documents.js';

answerHelp(import.meta.url);

const SECONDS = Number(process.argv[2] ?? 5);
const ROUNDS = Number(process.argv[3] ?? 5);
const RATE = 2000;
const CLIENTS = 256;
const ALL = ['resets', 'pipelining', 'slow readers', 'handshakes', 'bodies'];
const ATTACKS = process.argv.length > 4 ? process.argv.slice(4) : ALL;
const ATTACKER = fileURLToPath(new URL('attacker.js', import.meta.url));

/** The honest clients' account of one spell. */
async function throwSprites({ port, adminPort }) {
  // The swarm ends with 1 unless all sprites have arrived.
  const { throwing, latency, account, use } = await runSwarm(
    ['throw', CLIENTS, '--quiet'],
    { rate: RATE, time: SECONDS, port, 'status-port': adminPort, wait: 30 },
    1
  ).result;
  return {
    rate: throwing.perSecond,
    p50: latency.arrival.p50,
    p99: latency.arrival.p99,
    refused: account.refused + account.unanswered,
    cores: use.cores
  };
}

/** What the front door has done so far. */
async function doneBy({ adminPort }) {
  const all = await statusAt(adminPort);
  return { connections: all.accepted, requests: all.requests, at: performance.now() };
}

/** One spell: an attack, or none. */
async function measure(ports, attack) {
  let before = await doneBy(ports);
  const command = ['nice', '-n', 19, process.execPath, ATTACKER, attack, '--port', ports.port];
  const attacker = attack && start(1, [...command, '--tls', ports.tlsPort], { stdio: 'inherit' });
  // The attacker starts slowly: its priority is low.
  while (attacker && (await doneBy(ports)).connections < before.connections + 30) await pause(100);
  before = await doneBy(ports);
  const figures = await throwSprites(ports);
  const after = await doneBy(ports);
  if (attacker) {
    attacker.kill();
    await once(attacker, 'exit');
  }
  const aSecond = (name) => ((after[name] - before[name]) / (after.at - before.at)) * 1000;
  return { ...figures, connections: aSecond('connections'), requests: aSecond('requests') };
}

const folder = mkdtempSync(join(tmpdir(), 'sprites-attacks-'));
const server = launch(
  { ...{ drain: 0, 'admin-port': 0, 'tls-port': 0, 'log-level': 'error' }, ...certificate(folder) },
  { command: [...onCore(0), ...SPRITES] }
);
try {
  const ports = await server.listening;
  await measure(ports);
  const rounds = await inRounds(['none', ...ATTACKS], ROUNDS, (attack) =>
    measure(ports, attack === 'none' ? null : attack)
  );
  const ratio = (name) => (figures, i) => figures[name] / rounds.none[i][name];
  const columns = {
    'connections a second': ['connections', 0],
    'requests a second': ['requests', 0],
    'sprites a second, of none': ['rateOfNone', 3],
    'p50 ms': ['p50', 2],
    'p99 ms': ['p99', 2],
    'p99, of none': ['p99OfNone', 2],
    refused: ['refused', 0],
    'cores of the server': ['cores', 2]
  };
  const ratios = { rateOfNone: ratio('rate'), p99OfNone: ratio('p99') };
  const names = ['connections', 'requests', 'p50', 'p99', 'refused', 'cores'];
  const rows = Object.entries(rounds).map(([attack, all]) => {
    const figures = spreads(all, names, ratios);
    return [attack, ...Object.values(columns).map(([name, digits]) => show(figures[name], digits))];
  });
  const headings = ['attack', ...Object.keys(columns)];
  console.log(markdown([headings, ...rows]));
} finally {
  server.child.kill();
  await server.ended;
  rmSync(folder, { recursive: true });
}
