/**
 * The cost of an attack for honest clients: `npm run bench:attacks -- [seconds] [rounds] [attack …]` (5, 5, all).
 *
 * Honest clients of one address throw 2,000 sprites a second by the clock. Another address attacks in one way, as fast
 * as it can: resets, pipelining, slow readers, handshakes, bodies that never end. Each round has a measurement without
 * an attack, and one with each attack.
 *
 * The server has a core of its own. The attacker shares the other core with the honest clients, at nice 19: it attacks
 * with the rest of that core, and takes no time from the clients that would count as the server's. Ratios are to the
 * measurement without an attack in the same round. Figures are medians, with least and most in brackets.
 */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { pinningWords, start } from './contenders.js';
import {
  compareKinds,
  fine,
  report,
  spreadCell,
  tableOf,
  describeMachine,
  whole
} from './figures.js';
import { byClock, withLoad } from './load.js';
import { statusAt } from './usage.js';
import { certificate } from '../support/certificate.js';
import { launch, SPRITES } from '../support/launch.js';
import { answerHelp } from '../support/documents.js';
import { atExit, temporary } from '../support/processes.js';

answerHelp(import.meta.url);

const SECONDS = Number(process.argv[2] ?? 5);
const ROUNDS = Number(process.argv[3] ?? 5);
const RATE = 2000;
const CLIENTS = 256;
const ALL = ['resets', 'pipelining', 'slow readers', 'handshakes', 'bodies'];
const ATTACKS = process.argv.length > 4 ? process.argv.slice(4) : ALL;
const ATTACKER = fileURLToPath(new URL('attacker.js', import.meta.url));

/** Throws the honest clients' sprites of one measurement. */
function throwSprites(server) {
  const part = byClock({ port: server.port, clients: CLIENTS, lanes: 64, rate: RATE });
  return withLoad([part], true, async (load) => {
    const figures = await load.throwAll(server, { warmup: 0, seconds: SECONDS });
    // The sprites of the next measurement must not land at these clients.
    await load.leave();
    const { rate, late, refused, grown, seconds } = figures;
    return { rate, p50: late.p50, p99: late.p99, refused, cores: grown.cpu / seconds };
  });
}

/** Returns the server's counts of connections and requests so far. */
async function readCounts({ adminPort }) {
  const status = await statusAt(adminPort);
  return { connections: status.accepted, requests: status.requests, at: performance.now() };
}

/** Measures the honest clients during one attack, or none. */
async function measure(server, attack) {
  let before = await readCounts(server);
  const command = ['nice', '-n', 19, process.execPath, ATTACKER, attack, '--port', server.port];
  const attacker = attack && start(1, [...command, '--tls', server.tlsPort], { stdio: 'inherit' });
  // The attacker starts slowly: its priority is low.
  while (attacker && (await readCounts(server)).connections < before.connections + 30)
    await pause(100);
  before = await readCounts(server);
  const figures = await throwSprites(server);
  const after = await readCounts(server);
  if (attacker) {
    attacker.kill();
    await once(attacker, 'exit');
  }
  const perSecond = (name) => ((after[name] - before[name]) / (after.at - before.at)) * 1000;
  return { ...figures, connections: perSecond('connections'), requests: perSecond('requests') };
}

const COLUMNS = {
  attack: ({ kind }) => kind,
  'connections a second': ({ connections }) => spreadCell(connections, whole),
  'requests a second': ({ requests }) => spreadCell(requests, whole),
  'sprites a second, of none': ({ rateOfNone }) => spreadCell(rateOfNone, fine),
  'p50 ms': ({ p50 }) => spreadCell(p50, fine),
  'p99 ms': ({ p99 }) => spreadCell(p99, fine),
  'p99, of none': ({ p99OfNone }) => spreadCell(p99OfNone, fine),
  refused: ({ refused }) => spreadCell(refused, whole),
  'cores of the server': ({ cores }) => spreadCell(cores, fine)
};

const { child, ended, listening } = launch(
  {
    ...{ drain: 0, 'admin-port': 0, 'tls-port': 0, 'log-level': 'error' },
    ...certificate(temporary(atExit))
  },
  { command: [...pinningWords(0), ...SPRITES] }
);
try {
  const server = { ...(await listening), pids: [child.pid] };
  await measure(server);
  const rows = await compareKinds({
    ...{ kinds: ['none', ...ATTACKS], loads: { attacked: server }, rounds: ROUNDS },
    measure: (attack) => measure(server, attack === 'none' ? null : attack),
    figures: ['connections', 'requests', 'p50', 'p99', 'refused', 'cores'],
    ratios: ({ none }) => ({
      rateOfNone: ({ rate }, i) => rate / none[i].rate,
      p99OfNone: ({ p99 }, i) => p99 / none[i].p99
    })
  });
  report({}, { table: tableOf(COLUMNS, rows), about: describeMachine(true) });
} finally {
  child.kill();
  await ended;
}
