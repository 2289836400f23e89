/**
 * What the journal costs: `npm run bench:state`.
 *
 *     node test/bench/state.js [--only none,second] [--rounds 5] [--seconds 4] [--clients 5000]
 *                              [--throwers 64] [--rate 8000] [--late-seconds 12] [--late-only]
 *                              [--before DIRECTORY]
 *                              [--million 1000000] [--snapshots 6] [--json] [--strict]
 *
 * First, unless --rounds is 0, bin/sprites without a state, and with one by each --sync, side by side,
 * in turn and in several rounds; with --before also a built checkout of another version, without a
 * state. For each: the server's CPU per sprite, all its threads together, and sprites/s, of
 * --throwers closed loops (load/, as in run.js); then how late sprites arrive at --rate a second
 * (bin/sprites-swarm), for --late-seconds: of a run of four, the first moments, in which code is still
 * compiled, are the latest hundredth. --late-only leaves the closed loops out. Ratios are of neighbors in time, to the other version where there is one, else
 * to the one without a state.
 *
 * Then, unless --million is 0, the same state with so many clients (state-million.js): bytes of a
 * snapshot, the longest turns of the loop while --snapshots are made, on the clock and of its own
 * CPU, and how long a start takes after a crash.
 *
 * The state lies in the folder for temporary files: TMPDIR says on which disk. Exit status: 0, or
 * with --strict 1 where a figure is not what it is held to; 2 on a wrong option.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { canPin, during, startSprites } from './contenders.js';
import { inRounds, markdown, show, spreads } from './figures.js';
import { closedLoops, Load, runSwarm } from './load.js';
import { ask } from './server-memory.js';
import { measureMillion } from './state-million.js';
import { answerHelp, refuseUsage, takeNumbers } from '../support/documents.js';

answerHelp(import.meta.url);

/** CPU a sprite at most, as a multiple of the one before; where there is none, of that without a state. */
const HELD = { second: 1.15, none: 1 };

/** Milliseconds of the longest turn while snapshots are made. */
const HELD_TURN = 10;

/** Throws a second of the million, and seconds from one of its snapshots to the next. */
const MILLION = { rate: 2000, every: 5 };

/** Small enough that snapshots are made while it is measured. */
const STATE = { 'journal-bytes': '64M', 'snapshot-every': 5 };

const KINDS = ['none', 'never', 'second', 'turn'];

const flag = { type: 'boolean', default: false };
const values = takeNumbers(
  import.meta.url,
  {
    ...{ rounds: [5], seconds: [4, 0.1], 'late-seconds': [12, 0.1], clients: [5000, 1] },
    ...{ throwers: [64, 1], rate: [8000, 1], million: [1000000], snapshots: [6, 1] }
  },
  {
    before: { type: 'string', default: '' },
    only: { type: 'string', default: KINDS.join() },
    ...{ json: flag, strict: flag, 'late-only': flag }
  }
);
const wanted = values.only.split(',');
if (!wanted.every((kind) => KINDS.includes(kind))) {
  refuseUsage(import.meta.url, `--only takes ${KINDS.join()}`);
}
const pin = canPin();
const kinds = [...(values.before ? ['before'] : []), ...wanted];

/** Runs `measure` over a fresh server of a kind. */
async function withServer(kind, measure) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-state-'));
  const kept = kind !== 'none' && kind !== 'before';
  const state = kept ? { state: join(folder, 'state'), sync: kind, ...STATE } : {};
  const program = kind === 'before' ? `${values.before}/bin/sprites` : undefined;
  const options = { capacity: 20000, drain: 0, 'log-level': 'warn', ...state };
  try {
    return await during(await startSprites(options, { pin, program }), measure);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function throwAll(server) {
  const { clients, throwers, seconds } = values;
  const load = new Load([closedLoops({ port: server.port, clients, throwers })], pin);
  return during(load, async () => {
    await load.park();
    return load.throwAll(server, { warmup: 1, seconds });
  });
}

/** How late sprites come at a rate, in milliseconds; and the longest stall of the server's loop. */
async function lateness(server) {
  const options = { rate: values.rate, time: values.lateSeconds, port: server.port };
  const { latency, faults } = await runSwarm(['throw', values.clients, '--quiet'], options, 1)
    .result;
  if (faults.length > 0) throw new Error(faults.join('; '));
  const { longestStall } = await ask(server);
  return { p50: latency.arrival.p50, p99: latency.arrival.p99, stall: longestStall };
}

async function measureRounds() {
  const all = await inRounds(kinds, values.rounds, async (kind) => ({
    ...(!values.lateOnly && (await withServer(kind, throwAll))),
    ...(await withServer(kind, lateness))
  }));
  const first = all[kinds[0]];
  const figures = ['p50', 'p99', 'stall', ...(values.lateOnly ? [] : ['cpuPerSprite', 'rate'])];
  const ratios = figures.map((name) => [name, (round, i) => round[name] / first[i][name]]);
  return Object.entries(all).map(([kind, rounds]) => ({
    ...{ kind, ...spreads(rounds, figures) },
    ratios: spreads(rounds, [], Object.fromEntries(ratios))
  }));
}

function showRounds(summary) {
  const columns = {
    cpuPerSprite: ['CPU a sprite', 'µs', 2],
    rate: ['sprites/s', '', 0],
    p50: [`p50 at ${values.rate}/s`, 'ms', 2],
    p99: ['p99', 'ms', 2],
    stall: ['longest stall', 'ms', 1]
  };
  const [{ kind: first }] = summary;
  const shown = Object.entries(columns).filter(([figure]) => figure in summary[0]);
  return markdown([
    ['state', ...shown.flatMap(([, [title]]) => [title, `× ${first}`])],
    ...summary.map((kind) => [
      kind.kind,
      ...shown.flatMap(([figure, [, unit, digits]]) => [
        `${show(kind[figure], digits)} ${unit}`.trim(),
        show(kind.ratios[figure], 2)
      ])
    ])
  ]);
}

function showMillion({ longest, dearest, slow, snapshots, snapshotBytes, start }) {
  const turn = ({ took, own, waited, asleep }) =>
    `${took.toFixed(1)} ms on the clock: ${own.toFixed(1)} of its own CPU, ready and waiting for ` +
    `a processor ${waited.toFixed(1)}, asleep ${asleep.toFixed(1)}`;
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  return [
    `${values.million} clients, ${MILLION.rate} throws a second, ${snapshots} snapshots of ` +
      `${megabytes(snapshotBytes)}:`,
    `- longest turn ${turn(longest)}`,
    `- most CPU in a turn: ${turn(dearest)}`,
    `- turns above ${HELD_TURN} ms: ${slow}`,
    `- a start after a crash, with a minute's journal (${megabytes(start.journalBytes)}): listens ` +
      `after ${(start.listening / 1000).toFixed(2)} s, of that ` +
      `${(start.reading / 1000).toFixed(2)} s for the state`
  ];
}

/** What is above what it is held to, in words. */
function highIn(summary, million) {
  const high = summary
    .filter(
      ({ kind, ratios }) =>
        ratios.cpuPerSprite?.median > HELD[kind] && (kind !== 'none' || values.before !== '')
    )
    .map(
      ({ kind, ratios }) =>
        `${kind}: ${ratios.cpuPerSprite.median.toFixed(2)}, held to ${HELD[kind]}`
    );
  if (million?.longest.took > HELD_TURN) {
    high.push(`longest turn: ${million.longest.took.toFixed(1)} ms, held to ${HELD_TURN}`);
  }
  return high;
}

const summary = values.rounds > 0 ? await measureRounds() : [];
const million =
  values.million > 0
    ? await measureMillion({
        ...{ clients: values.million, ...MILLION },
        seconds: values.snapshots * MILLION.every
      })
    : undefined;
if (values.json) {
  process.stdout.write(`${JSON.stringify({ pinned: pin, held: HELD, summary, million })}\n`);
} else {
  const lines = [
    ...(summary.length > 0 ? [showRounds(summary)] : []),
    ...(million ? ['', ...showMillion(million)] : [])
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
const high = highIn(summary, million);
for (const line of high) process.stderr.write(`${line}\n`);
if (values.strict && high.length > 0) process.exitCode = 1;
