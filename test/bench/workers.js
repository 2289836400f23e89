/**
 * What workers take off the main thread, and what they cost.
 *
 *     node test/bench/workers.js [--workers 1,2] [--rounds 5] [--seconds 4] [--clients 3000]
 *                                [--throwers 128] [--rate 8000] [--only full,rate,lone] [--json] [--strict]
 *
 * It measures without workers and with them, in turn and in several rounds; differences and
 * ratios are of neighbors in time. The load is the swarm's engine on the main port, three times: at full
 * speed (`full`: --throwers closed loops that throw in the names of all --clients; where there are two
 * cores the main thread has one, and workers and load the other), with --rate sprites a second, and
 * with a lone sprite now and then (`lone`: 20 a second among 100 clients). CPU is the kernel's account, user and
 * system; late is how long a sprite was on its way from throw to arrival.
 *
 * Exit status: 0, or 1 where a sprite was missing or came twice or, with --strict, a figure is above what it is
 * held to; 2 on a wrong option.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

import { canPin, during, LOAD_CORE, namesIn, startSprites } from './contenders.js';
import {
  compareKinds,
  fail,
  fine,
  judged,
  report,
  show,
  tableOf,
  whereOf,
  whole
} from './figures.js';
import { byClock, closedLoops, withLoad } from './load.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';
import { threadsOf } from './usage.js';

answerHelp(import.meta.url);

/** What workers are held to, in medians. */
const HELD = {
  /** The main thread's CPU a sprite with workers, as a multiple of that without. */
  main: 0.15,
  /** That of all threads together. */
  all: 1.15,
  /** By how many milliseconds a sprite may be later than without: 99 in 100 of --rate a second. */
  p99: 0.5,
  /** A lone one, at the median. */
  lone: 0.1
};

/** Seconds of load before the window opens: the rate has settled. */
const WARMUP = 1.5;

/** A lone sprite: so many a second, among so many clients. */
const LONE = { rate: 20, clients: 100 };

function readOptions() {
  const { workers, only, ...options } = takeValues(import.meta.url, {
    ...{ rounds: [5, 1], seconds: [4, 1], clients: [3000, 1], throwers: [128, 1], rate: [8000, 1] },
    ...{ workers: '1,2', only: 'full,rate,lone', json: false, strict: false }
  });
  if (!/^[1-9](,[1-9])*$/.test(workers)) {
    refuseUsage(import.meta.url, '--workers takes numbers from 1 to 9');
  }
  const loads = loadsOf(options);
  const names = namesIn(only, loads, import.meta.url);
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
  lone: { pinned: false, ...LONE }
});

const pins = canPin();

/** Keeps the workers on the load's core: the main thread has its own. */
function pinWorkers(pid) {
  for (const thread of threadsOf(pid)) {
    const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8');
    if (!name.startsWith('worker')) continue;
    execFileSync('taskset', ['-p', '-c', String(LOAD_CORE), String(thread)]);
  }
}

/**
 * @returns {Promise<{cpu: number, all: number, rate: number, p50: number, p99: number}>} CPU in µs a sprite, of the main
 *     thread and of all; sprites a second; milliseconds on their way
 */
async function measure(workers, { pinned, ...how }, seconds) {
  const pin = pinned && pins;
  const options = { drain: 0, workers, 'log-level': 'warn' };
  return during(await startSprites(options, { pin, probed: false }), async (server) => {
    if (pin) pinWorkers(server.pids[0]);
    const part = { port: server.port, ...how };
    const loops = how.rate ? byClock(part) : closedLoops(part);
    return withLoad([loops], pin, async (load) => {
      const { late, rate, ...cpu } = await load.throwAll(server, { warmup: WARMUP, seconds });
      const { mainCpuPerSprite, cpuPerSprite } = cpu;
      return { cpu: mainCpuPerSprite, all: cpuPerSprite, rate, p50: late.p50, p99: late.p99 };
    });
  });
}

/** To the rounds without workers. */
const ratiosOf = ({ 0: without }) => ({
  main: (one, i) => one.cpu / without[i].cpu,
  all: (one, i) => one.all / without[i].all,
  later50: (one, i) => one.p50 - without[i].p50,
  later99: (one, i) => one.p99 - without[i].p99
});

/** What holds. A lone sprite's CPU is spent on waking up: it has no bound. */
function verdictsOf({ load, kind, main, all, later50, later99 }) {
  const bounds = {
    full: { main, all },
    rate: { main, all, p99: later99 },
    lone: { lone: later50 }
  };
  return judged(
    Object.entries(kind > 0 ? bounds[load] : {}).map(([name, { median }]) => [
      `${load}, ${kind} workers: ${name} at most ${HELD[name]}`,
      ...[median, fine.format, median <= HELD[name]]
    ])
  );
}

/** Of a row of compareKinds(). */
const COLUMNS = {
  load: ({ load }) => load,
  workers: ({ kind }) => kind,
  'main thread, µs a sprite': ({ cpu }) => show(cpu, fine),
  'of that without': ({ main }) => show(main, fine),
  'all, of it': ({ all }) => show(all, fine),
  'sprites/s': ({ rate }) => show(rate, whole),
  'p50, ms': ({ p50 }) => show(p50, fine),
  'p99, ms': ({ p99 }) => show(p99, fine),
  'p50 later': ({ later50 }) => show(later50, fine),
  'p99 later': ({ later99 }) => show(later99, fine)
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
    about: whereOf(pins),
    held: summary.flatMap(verdictsOf),
    summary
  });
}

main().catch(fail);
