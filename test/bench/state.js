/**
 * What the journal costs: `npm run bench:state`.
 *
 *     node test/bench/state.js [--only none,second] [--rounds 5] [--seconds 4] [--clients 5000]
 *                              [--throwers 64] [--rate 8000] [--before DIRECTORY] [--json] [--strict]
 *
 * bin/sprites without a state, and with one by each --sync, side by side, in turn and in several
 * rounds; with --before also a built checkout of another version, without a state. For each: the
 * server's CPU per sprite, all its threads together, and sprites/s, of --throwers closed loops
 * (load/, as in run.js); then how late sprites arrive at --rate a second (bin/sprites-swarm).
 * Ratios are of neighbors in time. The state lies in the folder for temporary files: TMPDIR says
 * on which disk.
 *
 * Exit status: 0, or with --strict 1 where a figure is not what it is held to; 2 on a wrong option.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

import { canPin, startLoad, startNode } from './contenders.js';
import { spread } from './figures.js';
import { spritesArgs } from './sprites.js';
import { answerHelp, refuseUsage } from '../support/opening-comment.js';

answerHelp(import.meta.url);

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** CPU a sprite at most, as a multiple of that without a state; and of that, of the one before. */
const HELD = { second: 1.15, none: 1 };

/** Small enough that snapshots are made while it is measured. */
const STATE = { 'journal-bytes': '64M', 'snapshot-every': 5 };

const KINDS = ['none', 'never', 'second', 'turn'];

const { values } = parseArgs({
  options: Object.fromEntries(
    [
      ...Object.entries({
        rounds: '5',
        seconds: '4',
        clients: '5000',
        throwers: '64',
        rate: '8000'
      }),
      ...Object.entries({ before: '', only: KINDS.join() })
    ]
      .map(([name, value]) => [name, { type: 'string', default: value }])
      .concat(['json', 'strict'].map((name) => [name, { type: 'boolean', default: false }]))
  )
});
const wanted = values.only.split(',');
const numbers = ['rounds', 'seconds', 'clients', 'throwers', 'rate'].map((name) => values[name]);
if (!wanted.every((kind) => KINDS.includes(kind)) || !numbers.every((value) => value > 0)) {
  refuseUsage(import.meta.url, 'an option has no such value');
}
const pin = canPin();
const kinds = [...(values.before ? ['before'] : []), ...wanted];

/** Runs `measure` over a fresh server of a kind. */
async function withServer(kind, measure) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-state-'));
  const kept = kind !== 'none' && kind !== 'before';
  const state = kept ? { state: join(folder, 'state'), sync: kind, ...STATE } : {};
  let args = spritesArgs({ capacity: 20000, drain: 0, 'log-level': 'warn', ...state });
  if (kind === 'before')
    args = args.map((one) => one.replace(`${ROOT}bin/`, `${values.before}/bin/`));
  const server = await startNode(kind, pin, args);
  try {
    return await measure(server);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true });
  }
}

async function throwAll(server) {
  const { clients, throwers, seconds } = values;
  const load = startLoad(server, pin, {
    contract: 'sprites',
    clients,
    throwers,
    warmup: 1,
    seconds
  });
  try {
    await load.next('parked');
    load.child.stdin.write('throw\n');
    const { rate, cpuPerSprite, missing, repeated } = await load.next('result');
    if (missing + repeated > 0) throw new Error(`${missing} missing, ${repeated} repeated`);
    return { rate, cpuPerSprite };
  } finally {
    await load.stop();
  }
}

/** How late sprites come at a rate, in milliseconds; and the longest stall of the server's loop. */
async function lateness(server) {
  const args = ['throw', values.clients, '--rate', values.rate, '--time', values.seconds];
  const { stdout } = await promisify(execFile)(
    pin ? 'taskset' : 'env',
    [
      ...(pin ? ['-c', '1'] : []),
      ...[process.execPath, `${ROOT}bin/sprites-swarm`, ...args],
      ...['--port', String(server.port), '--json', '--quiet']
    ],
    { maxBuffer: 2 ** 26 }
  ).catch((error) => error);
  const { latency, faults } = JSON.parse(stdout);
  if (faults.length > 0) throw new Error(faults.join('; '));
  const answer = once(server.probe, 'message');
  server.probe.send({});
  const [{ longestStall }] = await answer;
  return { p50: latency.arrival.p50, p99: latency.arrival.p99, stall: longestStall };
}

const rounds = [];
for (let i = 0; i < values.rounds; i += 1) {
  const round = {};
  for (const kind of i % 2 ? kinds.toReversed() : kinds) {
    round[kind] = await withServer(kind, throwAll);
    Object.assign(round[kind], await withServer(kind, lateness));
  }
  rounds.push(round);
}
const against = (kind) => (kind === 'none' && values.before ? 'before' : 'none');
const summary = kinds.map((kind) => {
  const of = (figure) => spread(rounds.map((round) => round[kind][figure]));
  const ratio = spread(
    rounds.map((round) => round[kind].cpuPerSprite / round[against(kind)].cpuPerSprite)
  );
  return {
    ...{ kind, ratio, cpu: of('cpuPerSprite'), rate: of('rate') },
    ...{ p50: of('p50'), p99: of('p99'), stall: of('stall') }
  };
});
if (values.json) {
  process.stdout.write(`${JSON.stringify({ pinned: pin, held: HELD, summary })}\n`);
} else {
  const show = ({ median, min, max }, digits) =>
    `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
  const lines = [
    `| state | CPU a sprite | × without | sprites/s | p50 at ${values.rate}/s | p99 | longest stall |`,
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...summary.map(
      ({ kind, ratio, cpu, rate, p50, p99, stall }) =>
        `| ${kind} | ${show(cpu, 2)} µs | ${show(ratio, 2)} | ${show(rate, 0)} | ` +
        `${show(p50, 2)} ms | ${show(p99, 2)} ms | ${show(stall, 1)} ms |`
    )
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
const high = summary.filter(
  ({ kind, ratio }) => ratio.median > HELD[kind] && (kind !== 'none' || values.before !== '')
);
for (const { kind, ratio } of high) {
  process.stderr.write(`${kind}: ${ratio.median.toFixed(2)}, held to ${HELD[kind]}\n`);
}
if (values.strict && high.length > 0) process.exitCode = 1;
