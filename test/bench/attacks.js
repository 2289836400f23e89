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
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { canPin } from './contenders.js';
import { spread } from './figures.js';
import { certificate } from '../support/certificate.js';
import { launch, ROOT, SPRITES } from '../support/launch.js';
import { answerHelp } from '../support/documents.js';

answerHelp(import.meta.url);

const SECONDS = Number(process.argv[2] ?? 5);
const ROUNDS = Number(process.argv[3] ?? 5);
const RATE = 2000;
const CLIENTS = 256;
const ALL = ['resets', 'pipelining', 'slow readers', 'handshakes', 'bodies'];
const ATTACKS = process.argv.length > 4 ? process.argv.slice(4) : ALL;
const ATTACKER = fileURLToPath(new URL('attacker.js', import.meta.url));

const run = promisify(execFile);
const on = (core) => (canPin() ? ['taskset', '-c', String(core)] : []);

/** The honest clients' account of one spell. */
async function throwSprites({ port, adminPort }) {
  const [program, ...args] = [
    ...[...on(1), process.execPath, `${ROOT}bin/sprites-swarm`, 'throw', CLIENTS],
    ...['--rate', RATE, '-d', `${SECONDS}s`, '--port', port, '--status-port', adminPort],
    ...['--json', '--quiet', '--wait', 30]
  ].map(String);
  // It ends with 1 where not all sprites have arrived.
  const { stdout } = await run(program, args, { maxBuffer: 2 ** 26 }).catch((error) => error);
  const { throwing, latency, account, use } = JSON.parse(stdout);
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
  const all = await (await fetch(`http://127.0.0.1:${adminPort}/status`)).json();
  return { connections: all.accepted, requests: all.requests, at: performance.now() };
}

/** One spell: an attack, or none. */
async function measure(ports, attack) {
  let before = await doneBy(ports);
  const [program, ...args] = [...on(1), 'nice', '-n', '19', process.execPath, ATTACKER, attack];
  const where = ['--port', String(ports.port), '--tls', String(ports.tlsPort)];
  const attacker = attack && spawn(program, [...args, ...where], { stdio: 'inherit' });
  // It starts slowly, nice as it is.
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
  { command: [...on(0), ...SPRITES] }
);
try {
  const ports = await server.listening;
  await measure(ports);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const figures = { none: await measure(ports) };
    for (const attack of ATTACKS) figures[attack] = await measure(ports, attack);
    rounds.push(figures);
  }
  const cell = (values, digits) => {
    const [median, min, max] = ['median', 'min', 'max'].map((name) =>
      spread(values)[name].toFixed(digits)
    );
    return `${median} (${min}–${max})`;
  };
  const column = (attack, name) => rounds.map((figures) => figures[attack][name]);
  const ratio = (attack, name) =>
    rounds.map((figures) => figures[attack][name] / figures.none[name]);
  console.log(
    '| attack | connections a second | requests a second | sprites a second, of none | p50 ms | p99 ms | p99, of none | refused | cores of the server |'
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const attack of ['none', ...ATTACKS]) {
    const cells = [
      cell(column(attack, 'connections'), 0),
      cell(column(attack, 'requests'), 0),
      cell(ratio(attack, 'rate'), 3),
      cell(column(attack, 'p50'), 2),
      cell(column(attack, 'p99'), 2),
      cell(ratio(attack, 'p99'), 2),
      cell(column(attack, 'refused'), 0),
      cell(column(attack, 'cores'), 2)
    ];
    console.log(`| ${[attack, ...cells].join(' | ')} |`);
  }
} finally {
  server.child.kill();
  await server.ended;
  rmSync(folder, { recursive: true });
}
