/**
 * How much CPU time workers take off the main thread, and their own costs.
 *
 *     node test/bench/workers.js [--workers 1,2] [--rounds 5] [--seconds 4] [--clients 3000]
 *                                [--throwers 128] [--rate 8000] [--only full,rate,lone] [--json] [--strict]
 *
 * It measures without workers and with them, in turn and in several rounds; differences and ratios are of consecutive
 * runs. The swarm's engine loads the main port in three ways: at full speed (`full`: --throwers closed loops that
 * throw for all --clients in turn; with two cores the main thread has one, and workers and load the other), with
 * --rate sprites a second (`rate`), and with single sprites (`lone`: 20 a second among 100 clients). CPU is the
 * kernel's account, user and system. Late is the time of a sprite from throw to arrival.
 *
 * Exit status: 0; 1 if a sprite was missing or came twice or, with --strict, a figure exceeds its bound; 2 for a wrong
 * option.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

import { canPin, withStarted, LOAD_CORE, parseNames, startSprites } from './contenders.js';
import {
  compareKinds,
  fail,
  fine,
  knownVerdicts,
  report,
  spreadCell,
  tableOf,
  describeMachine,
  whole
} from './figures.js';
import { byClock, closedLoops, withLoad } from './load.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';
import { threadsOf } from './usage.js';

answerHelp(import.meta.url);

/** Bounds of workers, for medians. */
const BOUNDS = {
  /** The main thread's CPU a sprite with workers, as a multiple of its CPU without. */
  main: 0.15,
  /** The CPU a sprite of all threads together, as a multiple of that without workers. */
  all: 1.15,
  /** Increase of p99 of the time from throw to arrival, with --rate sprites a second, in milliseconds. */
  p99: 0.5,
  /** Increase of the median time of a lone sprite, in milliseconds. */
  lone: 0.1
};

/** Warm-up until the rate is steady, in seconds. */
const WARMUP = 1.5;

/** The load of lone sprites: sprites a second, and clients. */
const LONE_SPRITES = { rate: 20, clients: 100 };

function readOptions() {
  const { workers, only, ...options } = takeValues(import.meta.url, {
    ...{ rounds: [5, 1], seconds: [4, 1], clients: [3000, 1], throwers: [128, 1], rate: [8000, 1] },
    ...{ workers: '1,2', only: 'full,rate,lone', json: false, strict: false }
  });
  if (!/^[1-9](,[1-9])*$/.test(workers)) {
    refuseUsage(import.meta.url, '--workers takes numbers from 1 to 9');
  }
  const loads = loadsOf(options);
  const names = parseNames(only, loads, import.meta.url);
  return {
    ...options,
    kinds: ['0', ...workers.split(',')],
    loads: Object.fromEntries(names.map((name) => [name, loads[name]]))
  };
}

/** The loads, by name. */
const loadsOf = ({ clients, throwers, rate }) => ({
  full: { pinned: true, clients, throwers },
  rate: { pinned: false, clients, lanes: throwers, rate },
  lone: { pinned: false, ...LONE_SPRITES }
});

const canPinCores = canPin();

/** Pins the workers to the load's core: the main thread has the other core. */
function pinWorkers(pid) {
  for (const thread of threadsOf(pid)) {
    const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8');
    if (!name.startsWith('worker')) continue;
    execFileSync('taskset', ['-p', '-c', String(LOAD_CORE), String(thread)]);
  }
}

/**
 * @returns {Promise<{cpu: number, all: number, rate: number, p50: number, p99: number}>} CPU in µs a sprite, of the
 *     main thread and of all threads; sprites a second; times from throw to arrival, in milliseconds
 */
async function measure(workers, { pinned, ...loadOptions }, seconds) {
  const pin = pinned && canPinCores;
  const options = { drain: 0, workers, 'log-level': 'warn' };
  return withStarted(await startSprites(options, { pin, probed: false }), async (server) => {
    if (pin) pinWorkers(server.pids[0]);
    const loadPart = { port: server.port, ...loadOptions };
    const engineOptions = loadOptions.rate ? byClock(loadPart) : closedLoops(loadPart);
    return withLoad([engineOptions], pin, async (load) => {
      const { late, rate, ...cpu } = await load.throwAll(server, { warmup: WARMUP, seconds });
      const { mainCpuPerSprite, cpuPerSprite } = cpu;
      return { cpu: mainCpuPerSprite, all: cpuPerSprite, rate, p50: late.p50, p99: late.p99 };
    });
  });
}

/** Returns the ratios and differences to the rounds without workers. */
const ratiosOf = ({ 0: without }) => ({
  main: (one, i) => one.cpu / without[i].cpu,
  all: (one, i) => one.all / without[i].all,
  later50: (one, i) => one.p50 - without[i].p50,
  later99: (one, i) => one.p99 - without[i].p99
});

/** Compares a row with its bounds. The CPU of a lone sprite is spent on wake-ups, and has no bound. */
function verdictsOf({ load, kind, main, all, later50, later99 }) {
  const bounds = {
    full: { main, all },
    rate: { main, all, p99: later99 },
    lone: { lone: later50 }
  };
  return knownVerdicts(
    Object.entries(kind > 0 ? bounds[load] : {}).map(([name, { median }]) => [
      `${load}, ${kind} workers: ${name} at most ${BOUNDS[name]}`,
      ...[median, fine.format, median <= BOUNDS[name]]
    ])
  );
}

/** Columns of the table, from a row of compareKinds(). */
const COLUMNS = {
  load: ({ load }) => load,
  workers: ({ kind }) => kind,
  'main thread, µs a sprite': ({ cpu }) => spreadCell(cpu, fine),
  'of that without': ({ main }) => spreadCell(main, fine),
  'all, of it': ({ all }) => spreadCell(all, fine),
  'sprites/s': ({ rate }) => spreadCell(rate, whole),
  'p50, ms': ({ p50 }) => spreadCell(p50, fine),
  'p99, ms': ({ p99 }) => spreadCell(p99, fine),
  'p50 later': ({ later50 }) => spreadCell(later50, fine),
  'p99 later': ({ later99 }) => spreadCell(later99, fine)
};

async function main() {
  const { seconds, ...options } = readOptions();
  const summary = await compareKinds({
    ...options,
    measure: (workers, load) => measure(workers, load, seconds),
    figures: ['cpu', 'rate', 'p50', 'p99'],
    ratios: ratiosOf
  });
  report(options, {
    table: tableOf(COLUMNS, summary),
    about: describeMachine(canPinCores),
    held: summary.flatMap(verdictsOf),
    summary
  });
}

main().catch(fail);
